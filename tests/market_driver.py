"""A server of predictions in its own process, its task, and buyers' accounts."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.local_node import free_port
from consilium_core.children import child_environment
from eth_account import Account
from model_driver import written

PATIENCE = 60.0  # seconds for a process to start, on a busy machine


class Server:
    """`consilium serve` of the local chain's usual account. `model`: a model's or an ensemble's folder; or a task's
    text, for a model of random parameters. Without `--price` in the options, 0.01 tokens.
    """

    def __init__(
        self, folder: Path, chain: LocalChain, book: Path, task: int, model: str | Path, *options: str
    ) -> None:
        self.folder, self.port, self._options = folder, free_port(), options
        deployment = chain.deployment
        at = (task, deployment.chain_id, deployment.tasks)
        self.model = model if isinstance(model, Path) else written(folder, model, task=at)
        price = [] if "--price" in options else ["--price", "0.01"]
        self._command = [
            sys.executable, "-m", "consilium_cli.main", "serve", str(task), str(self.model),
            *price, "--port", str(self.port), "--rpc", chain.node.url, "--address-book", str(book),
            "--book", str(folder / "sales.sqlite"), *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"
        self.authority: Path | None = None  # of its certificate, if it has one

    @property
    def url(self) -> str:
        if self.authority is not None:
            return f"https://localhost:{self.port}"
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=child_environment(), start_new_session=True
            )
        end = time.monotonic() + PATIENCE
        verify = True if self.authority is None else ssl.create_default_context(cafile=str(self.authority))
        while True:
            try:
                httpx.get(self.url, timeout=5, verify=verify)
                return self
            except httpx.HTTPError:
                assert self._process.poll() is None, self.log.read_text()
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.1)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As systemd does: the server redeems before it ends."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)
        if self._process is not None:
            self._process.wait(PATIENCE)


def buyer_of(chain: LocalChain, tokens: int) -> Ledger:
    """A fresh account with tokens, in the smallest unit, and without ether."""
    ledger = chain.ledger(bytes(Account.create().key))
    if tokens:
        chain.treasury.token.transfer(ledger.address, tokens)
    return ledger
