"""What hostile bytes are made of, and the bounds within which whoever reads them must stay."""

from __future__ import annotations

import copy
import json
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import strategies as st

SECONDS = 10.0  # of processor time, for one input: the slowest honest one takes half a second
DEEP = 200_000

# Pieces that parsers of many kinds trip over.
TOKENS: tuple[bytes, ...] = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"\x1a",
    b'"',
    b"'",
    b"\\",
    b"\\ud800",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[[",
    b",",
    b":",
    b"=",
    b".",
    b"#",
    b"/../",
    b"%00",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"nan",
    b"inf",
    b"null",
    b"true",
    b"-",
    b"-1",
    b"0",
    b"1e999",
    b"0x",
    b"9" * 25,
    b"9" * 5_000,
    b"0x" + b"f" * 600,
    b"2147483648",
    b"18446744073709551616",
    b"\xef\xbc\x91",
    b"\xf0\x9f\x98\x80" * 4,
    b"\xff" * 32,
    bytes(32),
    b"\x80" + bytes(47),
    b"\xc0" + bytes(47),
    b"A" * 4_096,
)
# In place of any part of a tree.
HOSTILE: tuple[Any, ...] = (
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    2**256,
    10**400,
    -(10**400),
    0.5,
    -0.0,
    1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "0",
    "x",
    "\x00",
    "0x",
    "0x0",
    "1" * 5_000,
    "f" * 64,
    "0x" + "00" * 20,
    "any",
    "１",
    "é" * 300,
    "../../etc/passwd",
    "https://[",
    "s3://",
    "A" * 20_000,
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    [0] * 2_000,
)


def bytes_like(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Valid ones cut, repeated, put together anew and flipped, and now and then bytes of no kind at all."""

    @st.composite
    def draw(give: Callable[..., Any]) -> bytes:
        raw = bytearray(give(st.sampled_from(samples)))
        for _ in range(give(st.integers(1, 4))):
            at = give(st.integers(0, len(raw)))
            end = min(len(raw), at + give(st.sampled_from([1, 1, 4, 32, 48, 1_000])))
            match give(st.integers(0, 8)):
                case 0:
                    del raw[at:end]
                case 1:
                    raw[at:at] = raw[at:end]
                case 2:
                    raw[at:end] = give(st.binary(max_size=40))
                case 3:
                    raw[at:at] = give(st.sampled_from(TOKENS))
                case 4:
                    raw[at:end] = give(st.sampled_from(TOKENS))
                case 5:
                    raw = raw[:at]
                case 6:
                    other = give(st.sampled_from(samples))
                    raw[at:] = other[at:]
                case 7:
                    raw[at:end] = bytes([give(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))]) * (end - at)
                case _ if at < len(raw):
                    raw[at] ^= 1 << give(st.integers(0, 7))
        return bytes(raw)

    return st.one_of(draw(), draw(), draw(), st.binary(max_size=300))


def trees_like(
    samples: Sequence[bytes], load: Callable[[bytes], Any], dump: Callable[[Any], bytes]
) -> st.SearchStrategy[bytes]:
    """Trees whose parts are replaced, left out, moved, repeated and renamed; or their bytes, changed."""
    trees = [load(sample) for sample in samples]

    @st.composite
    def draw(give: Callable[..., Any]) -> bytes:
        tree = copy.deepcopy(give(st.sampled_from(trees)))
        for _ in range(give(st.integers(1, 3))):
            paths = list(_paths(tree))
            if not paths:
                break
            holder, key = give(st.sampled_from(paths))
            match give(st.integers(0, 4)):
                case 0 | 1:
                    holder[key] = copy.deepcopy(give(st.sampled_from(HOSTILE)))
                case 2:
                    del holder[key]
                case 3:
                    other, place = give(st.sampled_from(paths))
                    holder[key] = copy.deepcopy(other[place])
                case _ if isinstance(holder, dict):
                    holder[give(st.sampled_from(["", "x", "0", " 1", "é", "__class__", f"{key}2"]))] = holder[key]
                case _:
                    holder.insert(key, copy.deepcopy(holder[key]))
        return dump(tree)

    return st.one_of(draw(), draw(), bytes_like(samples))


def json_like(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    return trees_like(samples, json.loads, lambda tree: json.dumps(tree).encode())


def toml_like(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    import tomllib

    return trees_like(samples, lambda raw: tomllib.loads(raw.decode()), lambda tree: tomli_w.dumps(tree).encode())


def _paths(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of a tree by what holds it and where."""
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in list(parts):
        yield tree, key
        yield from _paths(part)


def deep(opening: bytes, inside: bytes = b"", closing: bytes = b"") -> bytes:
    """Nested deeper than any parser's stack."""
    return opening * DEEP + inside + closing * DEEP


class Hung(BaseException):
    """Not an Exception: what catches these must not catch it."""


@contextmanager
def bounded(megabytes: int, seconds: float = SECONDS) -> Iterator[None]:
    """Fails where more processor time is used, or where the process's memory grows further, even for a moment.

    What a library takes when it is first used, as tables and threads, does not count: use it once before.
    """

    def stop(*_: object) -> None:
        raise Hung(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    start = _memory("VmRSS")  # first: rubbish that is collected meanwhile would count as grown
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew (proc(5))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    grown = _memory("VmHWM") - start
    assert grown <= megabytes << 10, f"memory grew by {grown >> 10} MB, of {megabytes} allowed"


def _memory(which: str) -> int:
    """In KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{which}:"))
