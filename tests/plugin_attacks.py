"""Attempts of a plug-in to leave its process, as code for a wheel. FOLDER is a folder that it must not read."""

from __future__ import annotations

ATTACKS = """
import ctypes
import os
import socket
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")


def environment():
    if "CONSILIUM_PASSWORD" not in os.environ:
        raise OSError


def attempts(data):
    key, parent = os.path.join(FOLDER, "key"), os.getppid()
    x86 = os.uname().machine == "x86_64"
    return {
        "a socket": socket.socket,
        "a pair of sockets": socket.socketpair,
        "a connection": lambda: socket.create_connection(("127.0.0.1", 9)),
        "a process": os.fork,
        "a program": lambda: subprocess.run(["/bin/true"]),
        "another image": lambda: os.execv("/bin/true", ["true"]),
        "reading a key": lambda: open(key).read(),
        "reading a key by a system call": lambda: call(257 if x86 else 56, -100, key.encode(), 0, 0),
        "a key in the environment": environment,
        "the environment of its parent": lambda: open(f"/proc/{parent}/environ").read(),
        "the memory of its parent": lambda: open(f"/proc/{parent}/mem", "rb"),
        "its own environment's file": lambda: open("/proc/self/environ").read(),
        "listing a folder": lambda: os.listdir(FOLDER),
        "users": lambda: open("/etc/passwd").read(),
        "writing a file": lambda: open(key + ".copy", "w"),
        "writing beside its code": lambda: open(__file__ + ".copy", "w"),
        "writing over its code": lambda: open(__file__, "r+"),
        "emptying its code": lambda: os.close(os.open(__file__, os.O_RDONLY | os.O_TRUNC)),
        "removing its code": lambda: os.unlink(__file__),
        "a folder": lambda: os.mkdir(key + ".d"),
        "a link": lambda: os.link(__file__, key + ".link"),
        "a signal to its parent": lambda: os.kill(parent, 0),
        "tracing": lambda: call(101 if x86 else 117, 16, parent, 0, 0),
        "reading another's memory": lambda: call(310 if x86 else 270, parent, 0, 0, 0, 0, 0),
        "a ring of calls": lambda: call(425, 8, 0),
        "a name space": lambda: call(272 if x86 else 97, 0x10000000),
        "a file in memory": lambda: os.memfd_create("x"),
        "keys of the kernel": lambda: call(250 if x86 else 219, 0, 0, 0),
        "a life without its parent": lambda: call(157 if x86 else 167, 1, 0, 0, 0, 0),
        "a lower limit of its parent": lambda: call(302 if x86 else 261, parent, 7, b"\\\\0" * 16, 0),
        "owning signals of a pipe": lambda: call(72 if x86 else 25, 1, 8, parent),
    }


def tried(data):
    found = []
    for attempt in attempts(data).values():
        try:
            attempt()
        except (OSError, subprocess.SubprocessError):
            found.append(0.0)
        else:
            found.append(1.0)
    return found
"""
NAMES = [line.split('"')[1] for line in ATTACKS.splitlines() if line.startswith('        "')]
