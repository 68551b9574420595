"""Fixtures that several files of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from indexed_network import TASK_FILE, IndexedNetwork
from redis_driver import Redis, running_redis


@pytest.fixture
def network(tmp_path: Path, database_url: str) -> Iterator[IndexedNetwork]:
    """One proposed task, in each kind of database."""
    network = IndexedNetwork(tmp_path, database_url)
    with network.mined():
        network.propose(1, TASK_FILE)
    yield network
    network.engine.dispose()


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with running_redis(tmp_path_factory.mktemp("broker") / "redis") as server:
        yield server
