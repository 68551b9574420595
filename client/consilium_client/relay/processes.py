"""The relay's two processes as children of a node: Flower's SuperNode and the executor of the installed relay app."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from pathlib import Path

from consilium_chain.keystore import write_private_file
from consilium_chain.localnode import child_environment, free_port

from consilium_client.config import HospitalSettings
from consilium_client.relay.app import SOCKET_VARIABLE

RESTART_AFTER = 2.0  # seconds between two starts of a child that ended


class RelayProcesses:
    """Starts the children on `keep_running`, starts again whichever ended, and ends both on exit.

    The executor asks the SuperNode at a port of loopback. Whatever took that port before the SuperNode could, maybe
    another hospital's, keeps it: so each start of the SuperNode is at another one, with another executor.
    """

    def __init__(self, settings: HospitalSettings, socket_path: Path) -> None:
        home = socket_path.parent
        self._flower = settings.flower
        self._secret_file = home / "executor.secret"
        write_private_file(self._secret_file, secrets.token_hex(32))
        self._runtime = ("127.0.0.1", 0)
        self._environment = child_environment() | {
            SOCKET_VARIABLE: str(socket_path),
            "FLWR_HOME": str(home / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        self._logs = home / "logs"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started: dict[str, float] = {}

    def keep_running(self) -> None:
        if self._is_to_start("supernode"):
            self._end("executor")
            self._runtime = ("127.0.0.1", free_port())
            self._start("supernode", self._supernode())
            self._start("executor", self._executor())
        elif self._is_to_start("executor"):
            self._start("executor", self._executor())

    def _is_to_start(self, name: str) -> bool:
        child = self._children.get(name)
        ended = child is None or child.poll() is not None
        return ended and time.monotonic() - self._started.get(name, -RESTART_AFTER) >= RESTART_AFTER

    def _start(self, name: str, arguments: list[str]) -> None:
        self._started[name] = time.monotonic()
        self._logs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "consilium_client.relay.flower_internals", name, *arguments]
        with (self._logs / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)

    def _supernode(self) -> list[str]:
        host, port = self._runtime
        return [
            "--superlink", self._flower.superlink,
            "--root-certificates", str(self._flower.ca_certificate),
            "--auth-supernode-private-key", str(self._flower.transport_key),
            "--host", host, "--port", str(port),
            "--isolation", "process",
            "--superexec-auth-secret-file", str(self._secret_file),
        ]  # fmt: skip

    def _executor(self) -> list[str]:
        host, port = self._runtime
        return [f"{host}:{port}", str(self._secret_file)]

    def __enter__(self) -> RelayProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(*self._children)

    def _end(self, *names: str) -> None:
        children = [self._children[name] for name in names if name in self._children]
        for child in children:
            if child.poll() is None:
                child.terminate()
        for child in children:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
