"""The commands as processes: killed at any moment, stopped, and compared with a fresh index."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import tomli_w
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_core.children import child_environment
from consilium_server.config import DATABASE_URL_VARIABLE
from consilium_server.database.engine import writing
from consilium_server.database.tables import Block
from consilium_server.index import store
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from index_driver import Traffic, changeable_chain
from sqlalchemy import Engine, delete, func, select

COMMAND = "from consilium_cli.main import main; main()"
KILLED = Path(__file__).parents[1] / "index_killed.py"


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with changeable_chain() as chain:
        yield Traffic(chain, seed=11).steps(100)


def settings(chain: LocalChain, folder: Path, **more: str) -> Path:
    chain.deployment.write(folder / "deployment.json")
    config = {
        "home": str(folder / "home"),
        "chain_url": chain.node.url,
        "deployment": str(folder / "deployment.json"),
        "artifacts": str(folder / "artifacts"),
    }
    (folder / "index.toml").write_text(tomli_w.dumps(config | more))
    return folder / "index.toml"


@contextmanager
def running(arguments: Sequence[str | Path], **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A process and its output; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, env=child_environment() | environment
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def heard(lines: IO[bytes], event: str) -> dict[str, Any]:
    """The next log line of this event."""
    for line in lines:
        told: dict[str, Any] = json.loads(line)
        if told["event"] == event:
            return told
    raise AssertionError(f"it ended and told nothing of {event}")


def reader(chain: LocalChain) -> Ledger:
    return Ledger(Connection(chain.node.url), chain.deployment)


@pytest.mark.deep
def test_killed_at_any_moment_and_reorganised_it_keeps_what_a_fresh_index_has(
    traffic: Traffic, database_url: str, database: Engine, tmp_path: Path
) -> None:
    source, chain = random.Random(database.dialect.name), traffic.chain
    config, ledger = settings(chain, tmp_path, database_url=database_url), reader(chain)
    for _ in range(4):
        with running([KILLED, config]) as (process, lines):
            for _ in range(source.randint(1, 8)):  # transactions
                heard(lines, "indexed")
                if source.random() < 0.3:
                    traffic.reorganise(source.randint(1, 25))
                # At the end, for of refused transactions and empty blocks the indexer tells nothing.
                traffic.steps(source.randint(1, 3)).touch()
            time.sleep(source.uniform(0, 0.1))
            os.kill(process.pid, signal.SIGKILL)
        traffic.reorganise(source.randint(1, 40))
        traffic.touch()
    assert reindex(ledger, database, None, tmp_path, replace=False) > 200


def test_index_follows_until_it_is_told_to_stop(traffic: Traffic, tmp_path: Path) -> None:
    config = settings(traffic.chain, tmp_path)
    with running(["-c", COMMAND, "server", "index", "--config", config]) as (process, lines):
        first = heard(lines, "indexed")
        assert first["first"] == traffic.chain.deployment.first_block
        assert first["events_per_second"] > 0
        traffic.touch()
        ledger = reader(traffic.chain)
        touched = max(event.block for event in ledger.logs.between())
        while heard(lines, "indexed")["last"] < touched:
            pass
        traffic.reorganise(ledger.connection.blocks.number() - touched + 2)
        assert heard(lines, "reorganised")["depth"] >= 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    assert (tmp_path / "home" / "index.sqlite").exists()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_reindex_compares_says_what_differs_and_replaces(
    traffic: Traffic, database_url: str, database: Engine, tmp_path: Path
) -> None:
    config = settings(traffic.chain, tmp_path, database_url="sqlite:////nowhere/else.sqlite")
    environment = child_environment() | {DATABASE_URL_VARIABLE: database_url}  # goes before the file's

    def reindexed(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", COMMAND, "server", "reindex", "--config", str(config), *more]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    Indexer(reader(traffic.chain), database).catch_up()
    with writing(database) as connection:
        last = select(func.max(Block.number)).scalar_subquery()
        connection.execute(delete(store.table_of(Block)).where(Block.number == last))
    ran = reindexed()
    assert ran.returncode == 1
    assert "error (IndexDiffers)" in ran.stderr
    assert '"event": "differs", "table": "blocks"' in ran.stdout
    assert reindexed("--replace").returncode == 0
    assert reindex(reader(traffic.chain), database, None, tmp_path, replace=False) > 200


@pytest.mark.parametrize(
    ("url", "error"),
    [("mysql://u:s3cret@h/x", "DatabaseUrlInvalid"), ("postgresql://u:s3cret@127.0.0.1:1/x", "DatabaseUnreachable")],
)
def test_index_says_what_is_wrong_with_its_database_and_no_password(
    traffic: Traffic, tmp_path: Path, url: str, error: str
) -> None:
    config = settings(traffic.chain, tmp_path, database_url=url)
    command = [sys.executable, "-c", COMMAND, "server", "index", "--config", str(config)]
    ran = subprocess.run(command, env=child_environment(), capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert f"error ({error})" in ran.stderr
    assert "s3cret" not in ran.stdout + ran.stderr
