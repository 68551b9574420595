"""Content-addressed files: task files under their keccak256, blobs under their EIP-4844 versioned hash.

The store needs no trust: whoever reads, checks the bytes against the name that the chain gave.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.errors import BlobMalformed
from consilium_zk.kzg import commit, versioned_hash
from eth_utils.crypto import keccak

from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing


class ArtifactStore:
    """Artifacts in a folder. Writes are atomic and repeatable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_file(self, raw: bytes) -> bytes:
        """Stores a file; returns its keccak256 (32 bytes)."""
        digest = keccak(raw)
        self._write(f"file-{digest.hex()}", raw)
        return digest

    def get_file(self, digest: bytes) -> bytes:
        raw = self._read(f"file-{digest.hex()}")
        if keccak(raw) != digest:
            raise ArtifactCorrupt(digest.hex(), str(self._folder))
        return raw

    def put_blob(self, raw: Blob, digest: bytes) -> None:
        """Stores a blob under its versioned hash, which the caller has computed."""
        self._write(f"blob-{digest.hex()}", raw)

    def get_blob(self, digest: bytes) -> Blob:
        """The blob whose KZG commitment has this versioned hash: recomputed here, about 30 ms."""
        try:
            blob = parse_blob(self._read(f"blob-{digest.hex()}"))
        except BlobMalformed as error:
            raise ArtifactCorrupt(digest.hex(), str(self._folder)) from error
        if versioned_hash(commit(blob)) != digest:
            raise ArtifactCorrupt(digest.hex(), str(self._folder))
        return blob

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError as error:
            raise ArtifactMissing(name, str(self._folder)) from error

    def _write(self, name: str, raw: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.replace(temporary, self._folder / name)
