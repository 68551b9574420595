"""Frames between a node and the process that computes a program: a header of JSON, then arrays as they are in memory.

The header is preceded by its length, 4 bytes little-endian. A reader states the arrays that it expects, so no byte of
the other side decides how much is read.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

MOST_HEADER: Final = 1 << 22  # bytes: a task file's sections, or a fault
Arrays = Mapping[str, NDArray[Any]]
Shapes = Mapping[str, tuple[tuple[int, ...], str]]  # shape and type by name
TYPES: Final = ("float32", "float64", "int64", "uint8")


class FrameBroken(Exception):
    """The other side has ended, or sent something else than a frame."""


def send(into: IO[bytes], header: Mapping[str, Any], arrays: Arrays | None = None) -> None:
    """Raises OSError (BrokenPipeError) if the other side has ended."""
    given = dict(arrays or {})
    stated = {name: [one.shape, one.dtype.name] for name, one in given.items()}
    raw = json.dumps({**header, "arrays": stated}).encode()
    if len(raw) > MOST_HEADER:
        raise ValueError("a frame's header is too long")
    into.write(struct.pack("<I", len(raw)) + raw)
    for one in given.values():
        into.write(np.ascontiguousarray(one).reshape(-1).view(np.uint8).data)
    into.flush()


def receive_header(source: IO[bytes]) -> dict[str, Any]:
    """Raises FrameBroken."""
    (length,) = struct.unpack("<I", _exactly(source, 4))
    if length > MOST_HEADER:
        raise FrameBroken
    try:
        found = json.loads(_exactly(source, length))
    except (ValueError, RecursionError) as error:
        raise FrameBroken from error
    if not isinstance(found, dict):
        raise FrameBroken
    return found


def receive_arrays(source: IO[bytes], shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Those after a header, in order. Raises FrameBroken."""
    found: dict[str, NDArray[Any]] = {}
    for name, (shape, type_) in shapes.items():
        values = np.empty(math.prod(shape), type_)
        rest = values.view(np.uint8).data
        while len(rest):
            read = source.readinto(rest)  # type: ignore[attr-defined]  # of all binary files
            if not read:
                raise FrameBroken
            rest = rest[read:]
        found[name] = values.reshape(shape)
    return found


def stated(header: Mapping[str, Any]) -> Shapes:
    """The arrays that a trusted sender's header announces."""
    return {name: (tuple(shape), type_) for name, (shape, type_) in header["arrays"].items()}


def _exactly(source: IO[bytes], length: int) -> bytes:
    raw = source.read(length)
    if len(raw) != length:
        raise FrameBroken
    return raw
