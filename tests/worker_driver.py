"""`consilium server worker` as a process, as tests start, kill and read it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from chain_driver import LocalChain, task_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.proposal import task_params as params_of
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.children import child_environment
from consilium_core.private_files import write_private_file
from voter_driver import TASK

Found = TypeVar("Found")
PATIENCE = 150.0  # seconds for a process to start and do something, on a busy machine
# Ranges so short that a kill falls between, before and within transactions.
SHORT_RANGES = """
from consilium_server.index import indexer
indexer.FIRST_SPAN = indexer.LONGEST_SPAN = 3
"""
COMMAND = "from consilium_cli.main import main; main()"


def until(look: Callable[[], Found], patience: float = PATIENCE) -> Found:
    """What it says once that is something."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, f"{look} said nothing in {patience} s"
        time.sleep(0.1)
    return found


class Worker:
    """Its settings are in `folder`, and what its processes said. `account`: whose key it gets. `before`: code that its
    processes run first.
    """

    def __init__(
        self, chain: LocalChain, folder: Path, account: Ledger | None = None, before: str = "", **settings: Any
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.home, self._before = folder, folder / "home", before
        self._process: subprocess.Popen[bytes] | None = None
        chain.deployment.write(folder / "deployment.json")
        own: dict[str, Any] = {
            "home": str(self.home),
            "chain_url": chain.node.url,
            "deployment": str(folder / "deployment.json"),
            "artifacts": [str(folder / "artifacts")],
            "index_seconds": 0.3,
            "watch_seconds": 0.5,
            "precedence_seconds": 5.0,
        }
        if account is not None:
            write_private_file(folder / "password", "secret\n")
            write_keystore(folder / "key.json", account.connection.signer, "secret", LIGHT_SCRYPT_N)
            own |= {"keystore": str(folder / "key.json"), "password_file": str(folder / "password")}
        self.config = folder / "worker.toml"
        self.config.write_text(tomli_w.dumps(own | settings))

    def start(self) -> Worker:
        arguments = ["-c", self._before + COMMAND, "server", "worker", "--config", str(self.config)]
        with (self.folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, *arguments], stdout=said, stderr=said, env=child_environment()
            )
        return self

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        os.kill(self._process.pid, number)
        return self._process.wait(60)

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Nothing stays, whatever the test left behind."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for file in self.home.glob("tasks/*/pid"):
            try:
                os.killpg(int(file.read_text().split()[0]), signal.SIGKILL)
            except ProcessLookupError:
                continue

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def told(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def jobs(self) -> dict[tuple[str, str], dict[str, Any]]:
        """As the command says it."""
        command = [sys.executable, "-m", "consilium_cli.main", "server", "jobs", "--all", "--config", str(self.config)]
        ran = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True, timeout=60)
        rows = [json.loads(line) for line in ran.stdout.splitlines()]
        return {(row["job"], row["subject"]): row for row in rows}


def conducted(chain: LocalChain, folder: Path, account: Ledger, name: str) -> int:
    """A task of this aggregator without other participants."""
    text = TASK.replace("who will fall ill", name)
    store, spec = ArtifactStore(folder / "artifacts"), parse_task_spec(text.encode())
    terms = asdict(params_of(spec, store.put_file(text.encode()), account.address))
    return chain.treasury.operator.propose(task_params(**terms | {"aggregator": account.address}))


def pid_in(folder: Path) -> int | None:
    try:
        return int((folder / "pid").read_text().split()[0])
    except (FileNotFoundError, ValueError):
        return None
