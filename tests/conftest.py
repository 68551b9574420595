"""Fixtures of more than one room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Test processes share the machine's cores: threads of one that wait for each other take them from the rest.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from chain_driver import LocalChain
from consilium_server.database.engine import open_database
from hypothesis import settings
from postgres_driver import Postgres, running_postgres
from sqlalchemy import Engine

settings.register_profile("untimed", deadline=None)  # no test hangs on how fast an example is
settings.load_profile("untimed")

# The files that last the longest start first. Started last, one would run alone while the other processes are idle.
LONGEST = (
    "test_jobs_worker.py", "test_deploying.py", "test_indexing.py", "test_voter_runs.py", "test_gas_bounds.py",
    "test_attacks_refused.py", "test_decoy_rounds.py", "test_estimate.py", "test_dispute_rounds.py",
    "test_rows_stay.py", "test_verify.py", "test_phases_end.py", "test_several_nodes.py", "test_sponsor.py",
    "test_economics.py", "test_dashboard_predicts.py", "test_artifact_locations.py", "test_dashboard_names.py",
    "test_local_node.py", "test_deploy_command.py", "test_commits_relayed.py", "test_operator_commands.py",
    "test_voter_commands.py", "test_hospital_commits.py", "test_evaluation_audit.py", "test_hospital_evidence.py",
    "test_dashboard_languages.py", "test_dashboard_forecast.py", "test_wheel.py", "test_notebooks.py",
    "test_relay_flower.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


# A file's tests begin on a new chain where the last one has more blocks. anvil mines four empty ones a second, and all
# of it grows with them: after 12,000 it takes a ninth of a core while nobody asks it for anything, and has written
# 18 GB of states. What reads all accounts and all tasks (`unaccounted`) also reads those of every file before.
LONG_CHAIN = 400  # blocks
# Files pass time on the chain, and the next file finds it ahead of this machine's clock. It always is: else a test that
# trusts this clock fails in some orders only.
AHEAD = 40 * 24 * 3_600  # seconds


class SharedChain:
    """The chain of the files that one process tests, one after the other."""

    def __init__(self) -> None:
        self._chain: LocalChain | None = None

    def of_next_file(self) -> LocalChain:
        if self._chain is not None and self._chain.treasury.connection.blocks.number() > LONG_CHAIN:
            self.end()
        if self._chain is None:
            self._chain = LocalChain()
            self._chain.pass_time(AHEAD)
        return self._chain

    def end(self) -> None:
        if self._chain is not None:
            self._chain.node.stop()
            self._chain = None


@pytest.fixture(scope="session")
def chain_of_files() -> Iterator[SharedChain]:
    chain = SharedChain()
    yield chain
    chain.end()


@pytest.fixture(scope="module")
def local_chain(chain_of_files: SharedChain) -> LocalChain:
    """A local node with the contracts deployed, shared by a file's tests, and with other files while it is short."""
    return chain_of_files.of_next_file()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; one per process of the test run."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'index.sqlite'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def database(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url)
    yield engine
    engine.dispose()
