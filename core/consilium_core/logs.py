"""What a process tells whoever runs it: one JSON object a line on standard output, or what a screen makes of it.

Journals carry amounts, indices, names of phases and errors: never data, keys, or text from foreign exceptions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Sink = Callable[[str, Mapping[str, object]], None]


def _json_line(event: str, fields: Mapping[str, object]) -> None:
    """{"at": unix seconds, "event": …, …}, flushed."""
    sys.stdout.write(json.dumps({"at": round(time.time(), 3), "event": event, **fields}) + "\n")
    sys.stdout.flush()


def _unheard(event: str, fields: Mapping[str, object]) -> None:
    pass


_sink: Sink = _json_line
_hints: Sink = _unheard
_about: ContextVar[Mapping[str, object]] = ContextVar("fields of all that is told", default=MappingProxyType({}))


def emit(event: str, **fields: object) -> None:
    """Tells it, from any thread."""
    _sink(event, {**_about.get(), **fields})


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Within, whatever this thread tells has these fields, too."""
    token = _about.set(fields)
    try:
        yield
    finally:
        _about.reset(token)


def hint(event: str, **fields: object) -> None:
    """What is for eyes only, as it happens: a screen may show it, and no journal keeps it."""
    _hints(event, fields)


@contextmanager
def told_to(sink: Sink, hints: Sink = _unheard) -> Iterator[None]:
    """Within, whatever this process tells goes to `sink` in place of standard output, and its hints to `hints`."""
    global _sink, _hints
    before, _sink, _hints = (_sink, _hints), sink, hints
    try:
        yield
    finally:
        _sink, _hints = before
