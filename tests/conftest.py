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


# A chain's time runs ahead of this machine's clock, as any chain's may: code that trusts this clock fails.
AHEAD = 40 * 24 * 3_600  # seconds


@pytest.fixture(scope="module")
def local_chain() -> Iterator[LocalChain]:
    """A local node with the contracts deployed, for the tests of one file: no file finds what another left there."""
    with LocalChain() as chain:
        chain.pass_time(AHEAD)
        yield chain


@pytest.fixture(scope="module")
def chain_of_now() -> Iterator[LocalChain]:
    """The same at this machine's time, for buyers: they sign until a time of their own clock."""
    with LocalChain() as chain:
        yield chain


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
