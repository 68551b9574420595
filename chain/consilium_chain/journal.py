"""What a process tells whoever runs it: one JSON object a line on standard output, or what a screen makes of it.

Journals carry amounts, indices, names of phases and errors: never data, keys, or text from foreign exceptions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

Sink = Callable[[str, Mapping[str, object]], None]


def _json_line(event: str, fields: Mapping[str, object]) -> None:
    """{"at": unix seconds, "event": …, …}, flushed."""
    sys.stdout.write(json.dumps({"at": round(time.time(), 3), "event": event, **fields}) + "\n")
    sys.stdout.flush()


_sink: Sink = _json_line


def emit(event: str, **fields: object) -> None:
    """Tells it, from any thread."""
    _sink(event, fields)


@contextmanager
def told_to(sink: Sink) -> Iterator[None]:
    """Within, whatever this process tells goes to `sink` in place of standard output."""
    global _sink
    before, _sink = _sink, sink
    try:
        yield
    finally:
        _sink = before
