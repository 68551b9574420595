"""Fixtures of more than one room."""

from __future__ import annotations

import os
from collections.abc import Iterator

# Test processes share the machine's cores: threads of one that wait for each other take them from the rest.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
