"""A SuperNode is whole or gone: with one thread less it would look alive and answer nobody.

A relay ends with its node.
"""

from __future__ import annotations

import subprocess
import sys

import psutil

PROGRAM = """
import importlib, threading
from consilium_client.relay.flower_internals import run_supernode

def body():
    {body}

def flowers_own():
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    {then}

importlib.import_module("flwr.supernode.cli.flower_supernode").flower_supernode = flowers_own
run_supernode([])
"""


def supernode(body: str, then: str) -> subprocess.CompletedProcess[str]:
    """One whose work is `body` in a thread, and then `then`."""
    program = PROGRAM.format(body=body, then=then)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_it_ends_with_a_thread_and_says_of_what() -> None:
    ended = supernode('open("/nowhere/at-all")', "threading.Event().wait()")
    assert ended.returncode == 1
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/at-all'" in ended.stderr


def test_a_thread_may_end_on_purpose() -> None:
    for body in ("pass", "raise SystemExit(1)"):
        assert supernode(body, "print('goes on')").stdout == "goes on\n"


ENDS_WITH_NODE = """
import os, sys, threading, time
import consilium_client.relay.flower_internals as internals

def tell():
    os.write(1, b"%d\\n" % os.getpid())  # whole, beside the other's

internals.run_supernode = lambda *_: (tell(), threading.Event().wait())
internals.run_executor = lambda _a, _s, woken: (tell(), internals._follow(woken, None))
internals.run_relay("127.0.0.1:1", None, [])
"""


def test_a_relay_and_its_executor_end_with_their_node() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ENDS_WITH_NODE], stdin=pipe, stdout=pipe, text=True) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        both = [psutil.Process(int(relay.stdout.readline())) for _ in range(2)]
        relay.stdin.close()  # as a killed node's
        _, left = psutil.wait_procs(both, timeout=30)
        assert left == []
