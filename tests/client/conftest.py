"""Fixtures of programs and of the processes that compute them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of programs and their store. In the end no process of a program is left."""
    from consilium_client.programs import confined  # torch: seconds to import
    from program_driver import processes

    yield tmp_path_factory.mktemp("programs")
    confined.end_all()
    assert processes() == []
