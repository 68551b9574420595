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
    """Starts the children on `keep_running`, starts again whichever ended, and ends both on exit."""

    def __init__(self, settings: HospitalSettings, socket_path: Path) -> None:
        home = socket_path.parent
        self._runtime = f"127.0.0.1:{free_port()}"
        self._secret_file = home / "executor.secret"
        write_private_file(self._secret_file, secrets.token_hex(32))
        module = [sys.executable, "-m", "consilium_client.relay.flower_internals"]
        host, port = self._runtime.split(":")
        flower = settings.flower
        self._commands = {
            "supernode": [
                *module, "supernode",
                "--superlink", flower.superlink,
                "--root-certificates", str(flower.ca_certificate),
                "--auth-supernode-private-key", str(flower.transport_key),
                "--host", host, "--port", port,
                "--isolation", "process",
                "--superexec-auth-secret-file", str(self._secret_file),
            ],
            "executor": [*module, "executor", self._runtime, str(self._secret_file)],
        }  # fmt: skip
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
        for name, command in self._commands.items():
            child = self._children.get(name)
            if child is not None and child.poll() is None:
                continue
            if time.monotonic() - self._started.get(name, -RESTART_AFTER) < RESTART_AFTER:
                continue
            self._started[name] = time.monotonic()
            self._logs.mkdir(parents=True, exist_ok=True)
            with (self._logs / f"{name}.log").open("ab") as log:
                self._children[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)

    def __enter__(self) -> RelayProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        for child in self._children.values():
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
