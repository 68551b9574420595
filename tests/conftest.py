"""Fixtures of more than one room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chain_driver import LocalChain
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # no test hangs on how fast an example is
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def local_chain() -> Iterator[LocalChain]:
    """A local node with the contracts deployed; one per process of the test run, shared by its tests."""
    with LocalChain() as chain:
        yield chain
