"""Structured logging: events with fields, one JSON object a line on standard output, or a screen instead.

Logs have amounts, indices, names of phases and errors. They never have data, keys, or texts of foreign exceptions.
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


def json_line(event: str, fields: Mapping[str, object]) -> str:
    """The log format: {"at": unix seconds, "event": name, field: value, …} and a newline."""
    return json.dumps({"at": round(time.time(), 3), "event": event, **fields}) + "\n"


def _to_stdout(event: str, fields: Mapping[str, object]) -> None:
    sys.stdout.write(json_line(event, fields))
    sys.stdout.flush()


def _dropped(event: str, fields: Mapping[str, object]) -> None:
    pass


_sink: Sink = _to_stdout
_hints: Sink = _dropped
_listeners: list[Sink] = []
_about: ContextVar[Mapping[str, object]] = ContextVar("fields of all events", default=MappingProxyType({}))


def emit(event: str, **fields: object) -> None:
    """Logs an event, from any thread."""
    whole = {**_about.get(), **fields}
    _sink(event, whole)
    for hear in _listeners:
        hear(event, whole)


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Within, all events of this thread have these fields too."""
    token = _about.set(fields)
    try:
        yield
    finally:
        _about.reset(token)


def hint(event: str, **fields: object) -> None:
    """Progress for a screen only: no log keeps it."""
    _hints(event, fields)


@contextmanager
def heard_by(listener: Sink) -> Iterator[None]:
    """Within, `listener` hears of all events, too. It must neither wait nor raise."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def log_to(sink: Sink, hints: Sink = _dropped) -> Iterator[None]:
    """Within, this process's events go to `sink` instead of standard output, and its hints to `hints`."""
    global _sink, _hints
    before, _sink, _hints = (_sink, _hints), sink, hints
    try:
        yield
    finally:
        _sink, _hints = before
