"""How a process ends that has threads at work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Told to stop (SystemExit, KeyboardInterrupt), the process ends as soon as all inside has been unwound.

    Python's own end would wait for no daemon thread, but end each as it comes back from native code, which C++ answers
    by aborting the process (CPython's gh-87135; from 3.14 on such threads hang instead).
    """
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as told:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if isinstance(told, KeyboardInterrupt) else int(told.code or 0))
