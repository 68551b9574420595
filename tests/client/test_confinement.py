"""The system's limits on a process that computes programs, tried from inside of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consilium_client.programs import confinement
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.program import written
from program_modules import MODULES, made
from raised_faults import raises_fault
from safetensors.numpy import save_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters system calls")
PROBE = """
import ctypes, errno, json, os, resource, signal, socket, subprocess, sys, threading
from consilium_client.programs.confinement import confine
from consilium_client.programs.rehearsal import rehearse

secret, out = sys.argv[1:3]
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
calling, kept = socket.socket(), os.open(out, os.O_WRONLY)
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")


def prctl(option, value):
    if libc.prctl(option, value, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


x86 = os.uname().machine == "x86_64"
ATTEMPTS = {
    "a socket": socket.socket,
    "a pair of sockets": socket.socketpair,
    "a connection of an old socket": lambda: calling.connect(listener.getsockname()),
    "sending by an old socket": lambda: calling.send(b"x"),
    "a program": lambda: subprocess.run(["/bin/true"]),
    "another image": lambda: os.execv("/bin/true", ["true"]),
    "a process": os.fork,
    "reading a key": lambda: open(secret),
    "writing a file": lambda: open(secret + ".copy", "w"),
    "removing a file": lambda: os.unlink(secret),
    "listing a folder": lambda: os.listdir("/"),
    "the memory of its parent": lambda: open(f"/proc/{os.getppid()}/mem", "rb"),
    "a signal to its parent": lambda: os.kill(os.getppid(), 0),
    "tracing": lambda: call(101 if x86 else 117, 16, os.getppid(), 0, 0),
    "reading another's memory": lambda: call(310 if x86 else 270, os.getppid(), 0, 0, 0, 0, 0),
    "a ring of calls": lambda: call(425, 8, 0),
    "a program of the kernel": lambda: call(321 if x86 else 280, 0, 0, 0),
    "a name space": lambda: call(272 if x86 else 97, 0x10000000),
    "a mount": lambda: call(165 if x86 else 40, 0, 0, 0, 0, 0),
    "a file in memory": lambda: os.memfd_create("x"),
    "keys of the kernel": lambda: call(250 if x86 else 219, 0, 0, 0),
    "a higher limit": lambda: resource.setrlimit(resource.RLIMIT_DATA, (-1, -1)),
    "a lower limit of its parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (8, 8)),
    "a core of it": lambda: prctl(4, 1),
    "a life without its parent": lambda: prctl(1, 0),
}
found, ready, go = {}, threading.Event(), threading.Event()


def attempt(name, function):
    try:
        function()
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
    except ValueError as error:  # of setrlimit
        found[name] = "EPERM"
    else:
        found[name] = "done"


def old_thread():
    ready.set()
    go.wait()
    attempt("a socket of a thread that ran before", socket.socket)


thread = threading.Thread(target=old_thread)
thread.start()
ready.wait()
rehearse("cpu", False)
confine(1 << 28, "cpu")
go.set()
thread.join()
for name, function in ATTEMPTS.items():
    attempt(name, function)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    os.write(kept, b"a secret")
except OSError as error:
    found["writing to an open file"] = {"EFBIG": "EPERM"}.get(errno.errorcode[error.errno])
try:
    bytearray(1 << 30)
except MemoryError:
    found["memory"] = "EPERM"
again = threading.Thread(target=lambda: None)
again.start()
again.join()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "key").write_text("secret")
    (folder / "out").touch()
    yield json.loads(run(PROBE, folder / "key", folder / "out"))
    assert (folder / "key").read_text() == "secret"
    assert (folder / "out").read_bytes() == b""


def run(script: str, *arguments: Any) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    "what",
    [
        "a socket", "a pair of sockets", "a connection of an old socket", "sending by an old socket", "a program",
        "another image", "a process", "reading a key", "writing a file", "removing a file", "listing a folder",
        "the memory of its parent", "a signal to its parent", "tracing", "reading another's memory",
        "a ring of calls", "a program of the kernel", "a name space", "a mount", "a file in memory",
        "keys of the kernel", "a higher limit", "a lower limit of its parent", "a core of it",
        "a life without its parent", "a socket of a thread that ran before", "writing to an open file", "memory",
    ],
)  # fmt: skip
def test_the_system_refuses(what: str, attempts: dict[str, str]) -> None:
    assert attempts[what] == "EPERM"


COMPUTING = """
import sys
from pathlib import Path

import torch
from consilium_client.programs.confinement import confine
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.measuring import measured
from consilium_client.programs.program import parse_program
from consilium_client.programs.rehearsal import rehearse
from consilium_client.programs.row_gradients import take_row_gradients
from safetensors.numpy import load

found = []
for folder in map(Path, sys.argv[1:]):
    files = [(folder / name).read_bytes() for name in ("program", "weights", "example")]
    found.append((folder.name, *files))
rehearse("cpu", True)
confine(4 << 30, "cpu")
for name, graph, weights, example in found:
    program, rows = parse_program(graph), torch.from_numpy(load(example)["rows"])
    module = Interpreter(program, {name: torch.from_numpy(one) for name, one in load(weights).items()})
    measured(program, len(rows))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        optimizer = torch.optim.AdamW(module.parameters())
        module.train()(rows).square().sum().backward()
        optimizer.step()
    if not program.moving:
        take_row_gradients(module, lambda logits, _: logits.square().sum(), rows, torch.zeros(len(rows)))
    module.eval()
    if rows.is_floating_point():
        module.double()(rows.double())
    print(name)
"""


def test_all_kinds_of_layers_compute_without_opening_a_file(tmp_path: Path) -> None:
    for at, name in enumerate(MODULES):
        _, found, example, _ = made(name)
        (tmp_path / f"{at}").mkdir()
        (tmp_path / f"{at}" / "program").write_bytes(written(found.program))
        save_file(dict(found.tensors), tmp_path / f"{at}" / "weights")
        save_file({"rows": example.numpy()}, tmp_path / f"{at}" / "example")
    assert run(COMPUTING, *sorted(tmp_path.iterdir())).split() == [f"{at}" for at in range(len(MODULES))]


def test_another_machine_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with raises_fault(ProgramError, "NotConfined", "riscv64.*leave out tasks with programs"):
        list(confinement._rules("cpu"))


def test_a_machine_has_a_number_for_each_call_of_another() -> None:
    machines = confinement._MACHINES.values()
    assert len({len(one.allowed) for one in machines}) == 1
    assert all(len(set(one.allowed)) == len(one.allowed) for one in machines)


def test_a_process_whose_parent_has_ended_ends() -> None:
    script = "from consilium_client.programs.confinement import end_with; end_with(1); print('goes on')"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
