"""A PostgreSQL of the tests' own: in a folder of its own, on a Unix socket, gone with the test run."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

SERVER = "postgres"  # the user that Debian's package makes: the server refuses to run as root


def binaries() -> Path | None:
    """The newest that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


class Postgres:
    """A server, which gives out empty databases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def database(self) -> str:
        """URL of a database that nobody has used."""
        name = f"db_{secrets.token_hex(6)}"
        with psycopg.connect(host=str(self.folder), dbname="postgres", user=SERVER, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql://{SERVER}@/{name}?host={self.folder}"


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Skips the test where none is installed, or this user can start none."""
    where = binaries()
    if where is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    as_server: list[str] = []
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(SERVER)
        except KeyError:
            pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres")
        as_server = ["setpriv", f"--reuid={SERVER}", f"--regid={SERVER}", "--clear-groups"]
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path is at most 107 characters: pytest's are longer
    if as_server:
        shutil.chown(folder, SERVER, SERVER)
    data = folder / "data"
    # Locale C, no fsync: quick, and the same everywhere.
    subprocess.run(
        [*as_server, str(where / "initdb"), "-D", str(data), "-U", SERVER, "-A", "trust", "--no-sync", "--locale=C",
         "-E", "UTF8"],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    options = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off", "full_page_writes": "off"}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    log = folder / "log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [*as_server, str(where / "postgres"), "-D", str(data), *settings], stdout=sink, stderr=sink, cwd=folder
        )
    try:
        ready = [str(where / "pg_isready"), "-q", "-t", "30", "-h", str(folder), "-U", SERVER]
        for _ in range(300):
            if subprocess.run(ready).returncode == 0:
                break
            assert server.poll() is None, log.read_text(errors="replace")
        yield Postgres(folder)
    finally:
        server.send_signal(signal.SIGQUIT)  # SIGTERM would wait for clients to leave, SIGINT for the disk
        server.wait(30)
        shutil.rmtree(folder)
