"""The relay's two processes as children of a node: Flower's SuperNode and the executor of the installed relay app."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from pathlib import Path

from consilium_chain.rpc.local_node import child_environment, free_port
from consilium_core.private_files import write_private_file

from consilium_client.config import HospitalSettings
from consilium_client.relay.app import SOCKET_VARIABLE

RESTART_AFTER = 2.0  # seconds between two starts


class RelayProcesses:
    """Starts the children on `keep_running`, both again where one ended, and ends both on exit.

    The executor asks the SuperNode at a loopback port. Another process, such as another hospital's, may take that port
    first, so each start uses another port. A SuperNode reports the message of an ended executor as lost only after a
    minute. For an ended SuperNode, the SuperLink reports it at once, and the aggregator asks again.
    """

    def __init__(self, settings: HospitalSettings, socket_path: Path) -> None:
        home = socket_path.parent
        self._flower = settings.flower
        self._secret_file = home / "executor.secret"
        write_private_file(self._secret_file, secrets.token_hex(32))
        self._environment = child_environment() | {
            SOCKET_VARIABLE: str(socket_path),
            "FLWR_HOME": str(home / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        self.logs = home / "logs"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started = -RESTART_AFTER  # the clock may begin at 0 with the machine

    def keep_running(self) -> dict[str, int]:
        """Starts both again if one ended by itself. Returns the status of each ended one, by name."""
        ended = {name: status for name, child in self._children.items() if (status := child.poll()) is not None}
        if self._children and not ended:
            return {}
        if time.monotonic() - self._started < RESTART_AFTER:
            return {}
        self._end()
        self._started = time.monotonic()
        runtime = "127.0.0.1", free_port()
        self._start("supernode", self._supernode(*runtime))
        self._start("executor", [f"{runtime[0]}:{runtime[1]}", str(self._secret_file)])
        return ended

    def _start(self, name: str, arguments: list[str]) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "consilium_client.relay.flower_internals", name, *arguments]
        with (self.logs / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)

    def _supernode(self, host: str, port: int) -> list[str]:
        return [
            "--superlink", self._flower.superlink,
            "--root-certificates", str(self._flower.ca_certificate),
            "--auth-supernode-private-key", str(self._flower.transport_key),
            "--host", host, "--port", str(port),
            "--isolation", "process",
            "--superexec-auth-secret-file", str(self._secret_file),
        ]  # fmt: skip

    def __enter__(self) -> RelayProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        for child in self._children.values():
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
