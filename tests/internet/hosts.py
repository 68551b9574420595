"""Hosts of one machine: a network namespace each, with an address and names of its own, joined by a bridge.

Nothing of it is in the machine's own namespace, so that any number of such internets live side by side with the same
addresses. Whatever happens to the process that made one, `guard.py` takes it down.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from internet.forward import serve
from internet.guard import clocks_of

HERE = Path(__file__).resolve().parent
TOOLS = {
    "ip": "iproute2",
    "nft": "nftables",
    "nginx": "nginx-light",
    "redis-server": "redis-server",
    "cc": "gcc libc6-dev",
}
BRIDGE = "br0"
NETWORK = "10.77.0"
CLONE_NEWNET = 0x40000000
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
START = 10.0  # seconds

# Whoever comes from outside is turned away, and counted; answers to what this host asked for come in.
OUTBOUND_ONLY = """
table inet hospital {
  counter refused { }
  chain input {
    type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    counter name refused
  }
}
"""


def why_not_here() -> str | None:
    """Why no such internet can be built on this machine, in words; None where one can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    for program, package in TOOLS.items():
        if shutil.which(program) is None:
            return f"{program} is not installed: apt-get install {package}"
    name = f"c{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None if made.returncode == 0 else "this kernel or container makes no network namespaces"


def enter(namespace: str) -> None:
    """Moves the calling thread into a network namespace. Raises OSError."""
    with Path("/run/netns", namespace).open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)


@dataclass(frozen=True)
class Link:
    """What a bad line does to each frame, both ways: seconds, a share, bytes a second."""

    delay: float = 0.15
    jitter: float = 0.05
    loss: float = 0.03
    rate: int = 250_000


class Clock:
    """A host's time of day: the machine's, or that many seconds off."""

    def __init__(self, folder: Path, built: Path) -> None:
        folder.mkdir()
        self.preloaded = Path(shutil.copy(built, folder))
        self._offset = folder / "offset"
        self.set(0)

    @staticmethod
    def build(folder: Path) -> Path:
        folder.mkdir(mode=0o755)
        built = folder / "wrong_clock.so"
        _run("cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", str(built), str(HERE / "wrong_clock.c"), "-ldl")
        return built

    def set(self, ahead: int) -> None:
        """Of every process there, at once, as whoever sets a clock does. Seconds."""
        with self._offset.open("r+b" if self._offset.exists() else "wb") as file:
            file.write(struct.pack("q", ahead))


class Host:
    """One machine of the internet."""

    def __init__(self, internet: Internet, name: str, address: str, clock: Clock) -> None:
        self.internet, self.name, self.address, self.clock = internet, name, address, clock
        self.namespace = f"{internet.prefix}-{name}"
        self._port = f"p-{name}"  # its end of the cable, at the bridge
        self._line: subprocess.Popen[bytes] | None = None

    def connect(self) -> None:
        bridge = self.internet.bridge
        _ip("netns", "add", self.namespace)
        _ip("-n", bridge, "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        _ip("-n", bridge, "link", "set", self._port, "master", BRIDGE, "up")
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        _ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self.namespace, "link", "set", "eth0", "up")
        _inside(self.namespace, lambda: _checksums_in_software("eth0"))

    def command(self, arguments: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *arguments]

    def run(self, arguments: Sequence[str], timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
        ran: subprocess.CompletedProcess[str] = subprocess.run(
            self.command(arguments), capture_output=True, text=True, timeout=timeout, check=False, **options
        )
        return ran

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self.command(arguments), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
            env={**environment, "LD_PRELOAD": str(self.clock.preloaded)},
        )  # fmt: skip
        self.internet.started.append(process)
        return process

    def processes(self, *words: str) -> list[psutil.Process]:
        """Living ones whose command line has all the words; the oldest first."""
        found = []
        for number in _ip("netns", "pids", self.namespace).split():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(int(number))
                line = " ".join(process.cmdline())
                if process.status() != psutil.STATUS_ZOMBIE and all(word in line for word in words):
                    found.append(process)
        return sorted(found, key=lambda process: process.create_time())

    def listens_on(self) -> list[str]:
        """Addresses and ports of TCP, loopback's left out."""
        shown = self.run(["ss", "-H", "-l", "-t", "-n"]).stdout.splitlines()
        local = [line.split()[3] for line in shown]
        return [one for one in local if not one.startswith(("127.", "[::1]", "[::ffff:127."))]

    # Firewall

    def let_nobody_in(self) -> None:
        self.run(["nft", "-f", "-"], input=OUTBOUND_ONLY).check_returncode()

    def refused(self) -> int:
        """Packets from outside that nobody here had asked for."""
        shown = self.run(["nft", "list", "counter", "inet", "hospital", "refused"])
        shown.check_returncode()
        return int(shown.stdout.split("packets")[1].split()[0])

    # The cable

    def cut_off(self) -> None:
        _ip("-n", self.internet.bridge, "link", "set", self._port, "down")

    def back(self) -> None:
        _ip("-n", self.internet.bridge, "link", "set", self._port, "up")

    def worsen(self, link: Link = Link()) -> None:
        """Until `mend`. By the kernel where it has netem; else by `slow_link.py` between the cable and the bridge."""
        by_kernel = [
            "qdisc", "replace", "dev", self._port, "root", "netem", "delay", f"{link.delay}s", f"{link.jitter}s",
            "loss", f"{100 * link.loss}%", "rate", f"{8 * link.rate}bit",
        ]  # fmt: skip
        inward = ["tc", "-n", self.internet.bridge, *by_kernel]
        outward = ["tc", "-n", self.namespace, *by_kernel[:3], "eth0", *by_kernel[4:]]
        if all(subprocess.run(one, capture_output=True, check=False).returncode == 0 for one in (inward, outward)):
            return
        tap = f"t-{self.name}"
        settings = [str(value) for value in (link.delay, link.jitter, link.loss, link.rate)]
        program = [sys.executable, str(HERE / "slow_link.py"), self._port, tap, *settings]
        self._line = subprocess.Popen(["ip", "netns", "exec", self.internet.bridge, *program], start_new_session=True)
        self.internet.started.append(self._line)
        end = time.monotonic() + START
        while subprocess.run(["ip", "-n", self.internet.bridge, "link", "show", tap], capture_output=True).returncode:
            assert self._line.poll() is None, "the slow line did not start"
            assert time.monotonic() < end, "the slow line is late"
            time.sleep(0.05)
        _ip("-n", self.internet.bridge, "link", "set", self._port, "nomaster")
        _ip("-n", self.internet.bridge, "link", "set", tap, "master", BRIDGE, "up")

    def mend(self) -> None:
        if self._line is None:
            for namespace, device in ((self.internet.bridge, self._port), (self.namespace, "eth0")):
                clear = ["tc", "-n", namespace, "qdisc", "del", "dev", device, "root"]
                subprocess.run(clear, capture_output=True, check=False)
            return
        self._line.kill()
        self._line.wait()
        self._line = None
        _ip("-n", self.internet.bridge, "link", "set", self._port, "master", BRIDGE)


class Disk:
    """A folder on a disk of its own, which can be full."""

    def __init__(self, folder: Path, mebibytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        mode = oct(folder.stat().st_mode & 0o777)[2:]
        _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode={mode}", "small-internet", str(folder))
        self.folder, self._filler = folder, folder / ".filler"

    def fill(self) -> None:
        """To the last byte."""
        length = 1 << 20
        with self._filler.open("wb", buffering=0) as file:
            while length >= 512:
                try:
                    file.write(bytes(length))
                except OSError:
                    length //= 2

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)


class Internet:
    """A bridge, and the hosts that are connected to it. Leaving the context takes everything down."""

    def __init__(self, *folders: Path) -> None:
        """`folders`: below these are its disks."""
        self.prefix = f"c{secrets.token_hex(3)}"
        self.bridge = f"{self.prefix}-net"
        self.hosts: dict[str, Host] = {}
        self._guard = subprocess.Popen(
            [sys.executable, str(HERE / "guard.py"), self.prefix, *map(str, folders)], stdin=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._reaches: list[_Reach] = []
        self.started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Internet:
        _ip("netns", "add", self.bridge)
        _ip("-n", self.bridge, "link", "add", BRIDGE, "type", "bridge", "forward_delay", "0")
        _ip("-n", self.bridge, "link", "set", BRIDGE, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for reach in self._reaches:
            reach.close()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(60)
        for process in self.started:
            process.wait(10)

    def connect(self, names: Mapping[str, Sequence[str]]) -> None:
        """Hosts, and the names by which others know each of them."""
        clocks = clocks_of(self.prefix)
        built = Clock.build(clocks)
        for number, name in enumerate(names, start=2):
            self.hosts[name] = Host(self, name, f"{NETWORK}.{number}", Clock(clocks / name, built))
        lines = ["127.0.0.1 localhost", *(f"{self.hosts[h].address} {' '.join(known)}" for h, known in names.items())]
        for host in self.hosts.values():
            folder = Path("/etc/netns", host.namespace)
            folder.mkdir(parents=True)
            (folder / "hosts").write_text("\n".join(lines) + "\n")
            host.connect()

    def reach(self, host: str, address: str, port: int) -> int:
        """A port on this machine's loopback that leads to an address as `host` sees it."""
        self._reaches.append(_Reach(self.hosts[host].namespace, address, port))
        return self._reaches[-1].port


class _Reach:
    """Takes connections here, and goes on with them in another namespace."""

    def __init__(self, namespace: str, address: str, port: int) -> None:
        self._namespace, self._target = namespace, (address, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        enter(self._namespace)
        serve(self._listening, self._target)


def _inside(namespace: str, action: Callable[[], object]) -> None:
    """In a thread of its own, which ends there: a thread cannot be sure to come back."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            enter(namespace)
            action()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _checksums_in_software(device: str) -> None:
    """Otherwise frames leave a virtual cable without them, and longer than any line takes."""
    value = array.array("I", [ETHTOOL_STXCSUM, 0])
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP", device.encode(), value.buffer_info()[0]))


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
