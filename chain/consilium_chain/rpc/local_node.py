"""A local chain (anvil) as a child process, for trying things out and for tests."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO

import httpx

from consilium_chain.errors import LocalNodeError

CHAIN_ID = 31_337
# Development accounts of anvil's public mnemonic: worth nothing anywhere.
FAUCET_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
START_TIMEOUT = 60.0  # seconds; a busy machine takes some to load it
ANSWER_TIMEOUT = 30.0
# States of past blocks on disk, beside the latest ones in memory. With `--prune-history` instead, anvil 1.7.1 writes
# none, and its memory grows by 0.3 MiB a block without end. On disk these states grow by 20 MB in 1,000 blocks.
KEPT_STATES = 128


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of `count` consecutive ones. They are below those that systems hand out by themselves (Linux from 32768
    on, others from 49152, RFC 6335), so that no program which asks for any port comes to have one meanwhile.
    """
    while True:
        first = random.randrange(10_000, 32_768 - count)
        try:
            for port in range(first, first + count):
                require_free_port(port, "one of several")
        except LocalNodeError:
            continue
        return first


def require_free_port(port: int, what: str) -> None:
    """Raises LocalNodeError if something listens on the port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise LocalNodeError(
                f"port {port}, wanted for {what}, is in use; stop what listens there or choose another port"
            ) from error


def find_anvil() -> str:
    """The anvil binary: of this checkout's node_modules, else on PATH. Raises LocalNodeError."""
    modules = Path(__file__).resolve().parents[2] / "contracts" / "node_modules"
    for candidate in sorted(modules.glob("@foundry-rs/anvil-*/bin/anvil")):
        return str(candidate)
    if found := shutil.which("anvil"):
        return found
    raise LocalNodeError("anvil is not installed; run `make contracts`, or install it with npm: @foundry-rs/anvil")


class LocalNode:
    """anvil on loopback. Mines each transaction at once, and four blocks a second besides: chain time flows."""

    def __init__(self, port: int | None = None, log: IO[bytes] | None = None, genesis: int | None = None) -> None:
        """`genesis` is the Unix time at which the chain's clock starts, by default now."""
        if port is not None:
            require_free_port(port, "the local chain")
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [find_anvil(), "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--block-time", "0.25", "--mixed-mining", "--accounts", "1", "--silent"]
        self._folder = tempfile.TemporaryDirectory(prefix="consilium-chain-")  # anvil removes none of its files
        self.states = Path(self._folder.name)
        command += ["--max-persisted-states", str(KEPT_STATES), "--cache-path", str(self.states)]
        if genesis is not None:
            command += ["--timestamp", str(genesis)]
        sink = log or subprocess.DEVNULL
        self.process = subprocess.Popen(
            command, stdout=sink, stderr=sink, start_new_session=True, env=child_environment()
        )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self) -> None:
        end = time.monotonic() + START_TIMEOUT
        request = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise LocalNodeError(f"anvil ended with exit code {self.process.returncode} while starting")
            try:
                httpx.post(self.url, json=request, timeout=1).raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise LocalNodeError(f"anvil did not answer within {START_TIMEOUT:.0f} s")

    def put_forward(self, seconds: int) -> None:
        """Moves the chain's clock on: blocks from the next one on are so much later. Raises LocalNodeError."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "evm_increaseTime", "params": [seconds]}
        try:
            httpx.post(self.url, json=request, timeout=ANSWER_TIMEOUT).raise_for_status()
        except httpx.HTTPError as error:
            raise LocalNodeError(
                f"the local chain (anvil) did not put its clock forward: {type(error).__name__}; start anew"
            ) from error

    def require_running(self) -> None:
        """Raises LocalNodeError once it has ended."""
        if self.process.poll() is not None:
            raise LocalNodeError(
                f"the local chain (anvil) ended with exit code {self.process.returncode}, and with it all that was on"
                " it: start anew"
            )

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._folder.cleanup()

    def __enter__(self) -> LocalNode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def child_environment() -> dict[str, str]:
    """The part of the environment that a child process needs: nothing that could hold a secret. Children also need the
    paths of a machine's libraries, as a GPU's may be.
    """
    passed_on = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD")
    return {name: os.environ[name] for name in passed_on if name in os.environ}
