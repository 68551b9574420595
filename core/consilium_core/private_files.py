"""Files with secrets, which their owner alone may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from consilium_core.errors import KeystoreError

# Folders of systemd's LoadCredential=. Each is for its unit's user alone. Where root owns a file there, the group bits
# of its mode are the mask of that user's ACL (acl(5)).
CREDENTIALS = Path("/run/credentials")
PRIVATE = 0o600


def write_private_file(path: Path, content: str | bytes) -> None:
    """Writes a file that only its owner can read, as `write_whole` does."""
    write_whole(path, content, PRIVATE)


def write_new_private_file(path: Path, content: str) -> None:
    """Writes a file that only its owner can read, and is on disk on return. Raises KeystoreError if it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError as error:
        raise KeystoreError(f"{path} exists already and stays as it is: pass another path") from error
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
    sync_folder(path.parent)


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Writes a file whole or not at all. It is on disk on return. The process's umask restricts `mode`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """On return the names in the folder outlast a power cut, as a file's bytes do after fsync."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def exposing(path: Path) -> int:
    """The bits of a file's mode that let others in."""
    return stat.S_IRWXO if path.is_relative_to(CREDENTIALS) else stat.S_IRWXG | stat.S_IRWXO


def read_private_file(path: Path) -> str:
    """Reads a file that only its owner may read. Raises KeystoreError if it is missing or open to others."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise KeystoreError(f"{path} does not exist") from error
    if mode & exposing(path):
        raise KeystoreError(f"{path} can be read by others; run `chmod 600 {path}`")
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):  # the error would quote a byte of the secret
        raise KeystoreError(f"{path} is not a text file that this user can read") from None
