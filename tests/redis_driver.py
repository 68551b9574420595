"""A Redis of the tests' own: on loopback with a password, in a folder of its own, gone with the test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from consilium_chain.rpc.local_node import free_port

PASSWORD = "s3cret-of-the-broker"
START = 30.0  # seconds


class Redis:
    """A server, which may be killed and started again, with what it had on disk or without."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def client(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port, password=PASSWORD, socket_timeout=5)

    def start(self) -> None:
        settings = {
            "port": str(self.port), "bind": "127.0.0.1", "dir": str(self.folder), "requirepass": PASSWORD,
            "appendonly": "yes", "appendfsync": "everysec", "save": "",
        }  # fmt: skip
        # A password belongs in no list of processes.
        config = self.folder / "redis.conf"
        config.write_text("".join(f'{name} "{value}"\n' for name, value in settings.items()))
        config.chmod(0o600)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(["redis-server", str(config)], stdout=log, stderr=log)
        end = time.monotonic() + START
        while True:
            try:
                with self.client() as client:
                    assert client.ping()
                return
            except redis.RedisError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self, empty: bool) -> None:
        self.kill()
        if empty:
            shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        self.start()


@contextmanager
def running_redis(folder: Path) -> Iterator[Redis]:
    """Skips the test where none is installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed: apt-get install redis-server")
    folder.mkdir(parents=True)
    server = Redis(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
