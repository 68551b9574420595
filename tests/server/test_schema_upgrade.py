"""A database outlives its programs: a later one upgrades it, an earlier one does not write to it, also while it runs,
and nothing is lost.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import tomli_w
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port
from consilium_core.children import child_environment
from consilium_server.api.routing import BLOCK_HEADER
from consilium_server.database import engine as engines
from consilium_server.database.engine import connect, open_database, reading, schema_of, writing
from consilium_server.database.tables import Base, JobRow
from consilium_server.errors import DatabaseUnfit
from consilium_server.index import store
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from consilium_server.jobs.store import all_jobs
from fastapi.testclient import TestClient
from index_driver import Traffic, changeable_chain
from indexed_network import IndexedNetwork, app_of
from raised_faults import raises_fault
from sqlalchemy import Engine, insert, inspect, select, text
from worker_driver import COMMAND, Worker, until

VERSIONS = sorted(engines._versions())
JOB = JobRow("pin", "1/0", 1.0, 2.0, 2.0, "done", 0, None, None, "what was copied", 0.0, "host:1:a", 0.0)
LATER = """
revision = "9999"
down_revision = "{newest}"
branch_labels = depends_on = None
from alembic import op
import sqlalchemy as sa

def upgrade():
    op.add_column("payments", sa.Column("note", sa.String(8), nullable=True))
    op.create_table("notes", sa.Column("number", sa.BigInteger(), primary_key=True))
"""


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with changeable_chain() as chain:
        yield Traffic(chain, seed=5).steps(60, has_addresses=False)


def reader(chain: LocalChain) -> Ledger:
    return Ledger(Connection(chain.node.url), chain.deployment)


def as_written(before: Engine, ledger: Ledger, folder: Path) -> None:
    """Writes today's rows as an earlier program would have, without tables and columns that came later."""
    newest = open_database(f"sqlite:///{folder / 'newest.sqlite'}")
    Indexer(ledger, newest).catch_up()
    known = inspect(before)
    with newest.connect() as rows, writing(before) as connection:
        for table in Base.metadata.sorted_tables:
            if known.has_table(table.name):
                named = {column.name: column for column in table.columns}
                columns = [named[one["name"]] for one in known.get_columns(table.name)]
                found = [dict(row) for row in rows.execute(select(*columns)).mappings()]
                if found:
                    connection.execute(insert(table), found)
    newest.dispose()


def as_of(version: str, url: str) -> Engine:
    """The database that a program of that version makes."""
    engine = connect(url)
    config, _ = engines._scripts()
    with engines._alone(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    return engine


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_what_an_earlier_version_wrote_is_kept_and_brought_up_to_date(
    traffic: Traffic, database_url: str, tmp_path: Path, version: str
) -> None:
    before, ledger = as_of(version, database_url), reader(traffic.chain)
    as_written(before, ledger, tmp_path)
    has_jobs = version >= "0002"
    if has_jobs:
        with writing(before) as connection:
            store.add(connection, [JOB])
    before.dispose()
    after = open_database(database_url)
    with after.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    traffic.steps(5, has_addresses=False)
    assert reindex(ledger, after, None, tmp_path, replace=False) > 100  # or it raises IndexDiffers
    assert [job.mark for job in all_jobs(after)] == ["what was copied"] * has_jobs
    after.dispose()


def test_a_program_that_runs_writes_nothing_once_a_later_one_has_changed_the_tables(database: Engine) -> None:
    with writing(database) as connection:
        store.add(connection, [JOB])
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with raises_fault(DatabaseUnfit, "SchemaTooNew", match="update the program"), writing(database) as connection:
        pytest.fail("it may not come this far")
    with reading(database) as connection:
        assert connection.scalar(text("SELECT count(*) FROM jobs")) == 1


def test_an_api_serves_on_and_says_that_it_is_to_be_updated(tmp_path: Path, database_url: str) -> None:
    network = IndexedNetwork(tmp_path, database_url)
    with network.mined():
        pass
    with TestClient(app_of(network)) as client:
        assert client.get("/ready").status_code == 200
        with writing(network.engine) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        assert client.get("/v1/network").status_code == 200
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert "version 9999" in answer.json()["detail"]
    network.engine.dispose()


# Processes of two versions at one database


@dataclass
class Api:
    url: str
    config: Path

    def ready(self) -> tuple[int, str]:
        try:
            answer = httpx.get(f"{self.url}/ready")
        except httpx.ConnectError:
            return 0, ""
        return answer.status_code, answer.text

    def block(self) -> int:
        """The number of the block that an answer belongs to."""
        return int(httpx.get(f"{self.url}/v1/network").raise_for_status().headers[BLOCK_HEADER])


@contextmanager
def serving(chain: LocalChain, folder: Path, database: str, before: str = "") -> Iterator[Api]:
    folder.mkdir()
    chain.deployment.write(folder / "deployment.json")
    port, config = free_port(), folder / "api.toml"
    config.write_text(
        tomli_w.dumps(
            {
                "home": str(folder / "home"),
                "deployment": str(folder / "deployment.json"),
                "artifacts": str(folder / "artifacts"),
                "database_url": database,
                "origin": "http://127.0.0.1",
                "port": port,
            }
        )
    )
    process = consilium(before, "server", "api", "--config", str(config))
    try:
        api = Api(f"http://127.0.0.1:{port}", config)
        until(lambda: api.ready()[0])
        yield api
    finally:
        process.kill()
        process.communicate()


def consilium(before: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", before + COMMAND, *arguments], env=child_environment(), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture
def later(tmp_path: Path) -> str:
    """Makes a process of a later version, with a migration that this program does not know."""
    folder = tmp_path / "migrations"
    shutil.copytree(engines.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "v9999_later.py").write_text(LATER.format(newest=VERSIONS[-1]))
    return (
        "from pathlib import Path\nfrom consilium_server.database import engine\n"
        f"engine.MIGRATIONS = Path({str(folder)!r})\n"
    )


@pytest.mark.timeout(580)
@pytest.mark.deep
@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_processes_of_two_versions_at_one_database(
    traffic: Traffic, database_url: str, tmp_path: Path, later: str
) -> None:
    chain = traffic.chain
    around: dict[str, Any] = {"database_url": database_url}
    earlier = Worker(chain, tmp_path / "earlier", **around)
    with earlier, serving(chain, tmp_path / "api", database_url) as api:
        until(lambda: api.ready()[0] == 200)
        with Worker(chain, tmp_path / "later", before=later, **around) as worker:
            until(lambda: worker.told("working"))
            refused = until(lambda: failures(earlier, "SchemaTooNew"))
            assert "version 9999" in refused[0]["why"]
            traffic.steps(5).touch()
            latest = max(event.block for event in reader(chain).logs.between())
            until(lambda: api.block() >= latest)  # who reads is served, by whichever version
            status, said = api.ready()
            assert (status, "version 9999" in said, "update the program" in said) == (503, True, True)
            with serving(chain, tmp_path / "later api", database_url, later) as other:
                until(lambda: other.ready()[0] == 200)
                assert other.block() >= latest
            assert earlier.end() == 0
            assert worker.end() == 0
            assert not failures(worker)
    again = consilium("", "server", "worker", "--config", str(earlier.config))
    assert "SchemaTooNew" in again.communicate(timeout=60)[1]
    assert again.returncode == 1
    compared = consilium(later, "server", "reindex", "--config", str(worker.config))
    assert (compared.communicate(timeout=120)[1], compared.returncode) == ("", 0)
    engine = connect(database_url)
    found = schema_of(engine)
    assert (found.found, found.newest, found.is_known) == ("9999", VERSIONS[-1], False)
    engine.dispose()


def failures(worker: Worker, error: str | None = None) -> list[dict[str, Any]]:
    return [line for line in worker.told("job-failed") if error in (None, line["error"])]
