"""Asserts which fault an error tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from consilium_core.faults import Fault


@contextmanager
def raises_fault(kind: type[Fault], name: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[Fault]]:
    """Expects an error of this class with this fault; `match`: a regular expression of its message."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.name == name
