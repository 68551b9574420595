"""Holds this process to limits by the system: memory, files, and a list of system calls. Only Linux has such a list.

The list has what threads, memory and clocks need, and reading and writing of descriptors that are open already. Any
other call fails with EPERM: sockets, opening, execution, other processes. Limits cannot be raised again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from consilium_client.programs.errors import ProgramError

OPEN_FILES: Final = 16
OPEN_FILES_READING: Final = 256
_PAGE: Final = resource.getpagesize()


@dataclass(frozen=True)
class _Machine:
    """`architecture`: of the kernel's audit. Numbers of system calls: those of `_CALLS`, in that order, and others."""

    architecture: int
    allowed: Sequence[int]
    seccomp: int
    clone: int
    clone3: int
    prctl: int
    tgkill: int
    openat: int
    fcntl: int
    reading: Sequence[int]  # of `_READING`, as far as this machine has them


# read write readv writev close fstat lseek mmap munmap mprotect mremap madvise brk
# futex set_robust_list rseq membarrier sched_yield sched_getaffinity getcpu gettid getpid getppid
# rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall exit exit_group
# getrandom clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday ppoll getrusage sysinfo uname
# Of a process that may read: newfstatat statx faccessat faccessat2 readlinkat getdents64 getcwd pread64 dup fadvise64
# statfs fstatfs times getuid geteuid getgid getegid; and stat lstat access readlink, which aarch64 has not
_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        (0, 1, 19, 20, 3, 5, 8, 9, 11, 10, 25, 28, 12,
         202, 273, 334, 324, 24, 204, 309, 186, 39, 110,
         13, 14, 15, 131, 219, 60, 231,
         318, 228, 229, 230, 35, 96, 271, 98, 99, 63),
        seccomp=317, clone=56, clone3=435, prctl=157, tgkill=234, openat=257, fcntl=72,
        reading=(262, 332, 269, 439, 267, 217, 79, 17, 32, 221, 137, 138, 100, 102, 107, 104, 108, 4, 6, 21, 89),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (63, 64, 65, 66, 57, 80, 62, 222, 215, 226, 216, 233, 214,
         98, 99, 293, 283, 124, 123, 168, 178, 172, 173,
         134, 135, 139, 132, 128, 93, 94,
         278, 113, 114, 115, 101, 169, 73, 165, 179, 160),
        seccomp=277, clone=220, clone3=435, prctl=167, tgkill=131, openat=56, fcntl=25,
        reading=(79, 291, 48, 439, 78, 61, 17, 67, 23, 223, 43, 44, 153, 174, 175, 176, 177),
    ),
}  # fmt: skip
_IOCTL: Final = {"x86_64": 16, "aarch64": 29}  # a GPU's driver is called by it

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NAME, _SET_NO_NEW_PRIVILEGES = 1, 4, 15, 38
_FILTER, _ALL_THREADS = 1, 1  # operation and flag of seccomp
_THREAD: Final = 0x00010000  # flag of clone: a thread of this process, and no process of its own
_LOAD, _EQUAL, _ANY_BIT, _GIVE = 0x20, 0x15, 0x45, 0x06  # of BPF
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32  # offsets in the call's data
_WRITES: Final = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC  # flags of opening
_FLAGS_OF, _COPY = 3, 1030  # commands of fcntl, by which libraries open a file twice
_KILL, _FAIL, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def is_held_by_calls() -> bool:
    """True where this system has a list of calls; elsewhere only resources are limited."""
    return sys.platform == "linux"


def end_with(parent: int) -> None:
    """This process dies with the thread that started it. `parent`: its process. Raises ProgramError (NotConfined)."""
    if is_held_by_calls():
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def confine(memory: int, device: str) -> None:
    """Limits all threads of this process from now on. `memory`: bytes that it may hold beyond those of now.

    Raises ProgramError (NotConfined) if Linux has no filter of calls for it.
    """
    if not is_held_by_calls():
        _limit_files(OPEN_FILES)
        return
    with goes_first() as held:
        _hold(held, memory, OPEN_FILES, _rules(device))


def confine_reader(held: IO[bytes], memory: int) -> None:
    """As `confine` for a process that may go on to open files, but only to read them. `held`: as of `goes_first`."""
    _hold(held, memory, OPEN_FILES_READING, _rules("cpu", reads=True))


def goes_first() -> IO[bytes]:
    """This process is the first to go where memory is short. Returns a file that tells how much it holds."""
    Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    return open("/proc/self/statm", "rb", buffering=0)


def take_no_privileges() -> None:
    """Neither this process nor another one that it becomes gets more rights."""
    _prctl(_SET_NO_NEW_PRIVILEGES, 1)


def pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Requests and answers. A library that prints must not write among the answers."""
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return os.fdopen(0, "rb", closefd=False), os.fdopen(answers, "wb")


def _limit_files(most: int) -> None:
    for name, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, most)):
        resource.setrlimit(name, (value, value))


def _hold(held: IO[bytes], memory: int, files: int, rules: Iterator[bytes]) -> None:
    """`RLIMIT_DATA` counts the writable private memory."""
    _limit_files(files)
    held.seek(0)
    now = int(held.read(1_000).split()[5]) * _PAGE
    resource.setrlimit(resource.RLIMIT_DATA, (now + memory,) * 2)
    _prctl(_SET_DUMPABLE, 0)
    take_no_privileges()
    _install(list(rules))


def _rules(device: str, reads: bool = False) -> Iterator[bytes]:
    machine, name = _MACHINES.get(platform.machine()), platform.machine()
    if machine is None or sys.byteorder != "little":
        raise ProgramError("NotConfined", why=f"the numbers of {name}'s system calls are not known here")
    yield from (_rule(_LOAD, _ARCHITECTURE), _rule(_EQUAL, machine.architecture, 1, 0), _rule(_GIVE, _KILL))
    yield _rule(_LOAD, _NUMBER)
    more = ([_IOCTL[name]] if device != "cpu" else []) + (list(machine.reading) if reads else [])
    for number in (*machine.allowed, *more):
        yield from (_rule(_EQUAL, number, 0, 1), _rule(_GIVE, _ALLOW))
    if reads:
        yield from (_rule(_EQUAL, machine.openat, 0, 4), _rule(_LOAD, _THIRD), _rule(_ANY_BIT, _WRITES, 1, 0))
        yield from (_rule(_GIVE, _ALLOW), _rule(_GIVE, _FAIL | errno.EPERM))
        yield from (_rule(_EQUAL, machine.fcntl, 0, 5), _rule(_LOAD, _SECOND), _rule(_EQUAL, _FLAGS_OF, 1, 0))
        yield from (_rule(_EQUAL, _COPY, 0, 1), _rule(_GIVE, _ALLOW), _rule(_GIVE, _FAIL | errno.EPERM))
    # The C library takes the older call then, whose flags a filter can read.
    yield from (_rule(_EQUAL, machine.clone3, 0, 1), _rule(_GIVE, _FAIL | errno.ENOSYS))
    for number, test, wanted in (
        (machine.clone, _ANY_BIT, _THREAD),
        (machine.prctl, _EQUAL, _SET_NAME),
        (machine.tgkill, _EQUAL, os.getpid()),
    ):
        yield from (_rule(_EQUAL, number, 0, 3), _rule(_LOAD, _FIRST), _rule(test, wanted, 0, 1), _rule(_GIVE, _ALLOW))
    yield _rule(_GIVE, _FAIL | errno.EPERM)


def _rule(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_so, if_not, value)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("rules", ctypes.c_char_p))


def _install(rules: list[bytes]) -> None:
    """For all threads: those of libraries run already."""
    program, number = _Program(len(rules), b"".join(rules)), _MACHINES[platform.machine()].seccomp
    _require(_libc().syscall(number, _FILTER, _ALL_THREADS, ctypes.byref(program)), "seccomp")


def _prctl(option: int, value: int) -> None:
    _require(_libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _require(result: int, call: str) -> None:
    if result:
        why = f"{call} failed: {os.strerror(ctypes.get_errno())}"
        raise ProgramError("NotConfined", why=why)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
