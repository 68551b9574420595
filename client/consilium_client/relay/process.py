"""The relay as a child of a node: Flower's SuperNode with the executor of the installed relay app."""

from __future__ import annotations

import secrets
import subprocess
import time
from pathlib import Path

from consilium_chain.rpc.local_node import free_port
from consilium_core.children import Child, start_module
from consilium_core.private_files import write_private_file

from consilium_client.config import HospitalSettings
from consilium_client.relay.wire import SOCKET_VARIABLE

RESTART_AFTER = 2.0  # seconds between two starts


class RelayProcess:
    """Starts the relay on `keep_running`, again if it ended, and ends it on exit.

    The executor asks the SuperNode at a loopback port. Another process, such as another hospital's, may take that port
    first, so each start uses another port. For an ended SuperNode, the SuperLink reports a lost message at once, and
    the aggregator asks again.
    """

    def __init__(self, settings: HospitalSettings, socket_path: Path) -> None:
        home = socket_path.parent
        self._flower = settings.flower
        self._secret_file = home / "executor.secret"
        write_private_file(self._secret_file, secrets.token_hex(32))
        self._environment = {SOCKET_VARIABLE: str(socket_path), "FLWR_HOME": str(home / "flower")}
        self.log = home / "logs" / "relay.log"
        self._child: Child | None = None
        self._started = -RESTART_AFTER  # the clock may begin at 0 with the machine

    def keep_running(self) -> int | None:
        """Starts it again if it ended by itself. Returns the status of the ended one."""
        status = self._child.poll() if self._child else None
        if self._child and status is None:
            return None
        if time.monotonic() - self._started < RESTART_AFTER:
            return None
        self._started = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._close()
        with self.log.open("ab") as log:
            self._child = start_module(
                "consilium_client.relay.flower_internals", "relay", *self._arguments("127.0.0.1", free_port()),
                environment=self._environment, output=log, errors=log,
            )  # fmt: skip
        return status

    def _arguments(self, host: str, port: int) -> list[str]:
        return [
            f"{host}:{port}", str(self._secret_file),
            "--superlink", self._flower.superlink,
            "--root-certificates", str(self._flower.ca_certificate),
            "--auth-supernode-private-key", str(self._flower.transport_key),
            "--host", host, "--port", str(port),
            "--isolation", "process",
            "--superexec-auth-secret-file", str(self._secret_file),
        ]  # fmt: skip

    def __enter__(self) -> RelayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        child = self._child
        if child is not None and child.poll() is None:
            child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._close()

    def _close(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
