"""An aggregator's folder is restored on another machine between publication and disclosure: the round continues."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest
from consilium_chain.ledger.structs import Outcome, Phase, SlashReason
from consilium_chain.rounds.machine import Step
from consilium_server.aggregator.node import Aggregator
from consilium_server.database.engine import open_database
from consilium_zk.decoys import is_flipped
from decoy_driver import DecoyDriver
from postgres_driver import Postgres
from sqlalchemy import Engine
from test_decoys_kept import aggregator_of, attempt, give_uploads, party, played, secrets_of, uploaded, weighted

__all__ = ["played", "uploaded"]  # fixtures


def published(task: DecoyDriver, folder: Path, database: Engine | None = None) -> Path:
    """The folder of a lost aggregator that has published the round; its store is elsewhere."""
    first = aggregator_of(*party(task, folder), database)
    give_uploads(first, weighted(task))
    attempt(first, Step.PUBLISH)
    assert task.phase is Phase.DRAWING
    secret = secrets_of(first)
    task.flipped = int(is_flipped(secret.seed, task.task, 1, 0))
    return folder / "home"


def on_another_machine(
    task: DecoyDriver, folder: Path, copy: Path | None, database: Engine | None = None
) -> Aggregator:
    other = folder / "another machine"
    shutil.copytree(folder / "store", other / "store")
    if copy is not None:
        shutil.copytree(copy, other / "home")
    return aggregator_of(*party(task, other), database)


def test_what_was_published_is_disclosed_from_a_copy(uploaded: DecoyDriver, tmp_path: Path) -> None:
    home = published(uploaded, tmp_path)
    copy = home.rename(tmp_path / "copy")
    again = on_another_machine(uploaded, tmp_path, copy)
    uploaded.draw().vote([uploaded.ballot([60_000], [-80_000])])
    again.conduct(None, {})  # type: ignore[arg-type]  # nothing is asked of hospitals any more
    state = uploaded.operator.tasks.round_state(uploaded.task, 1)
    assert (state.outcome, state.flipped_cohorts) == (Outcome.SETTLED, uploaded.flipped)
    assert uploaded.events("Slashed") == []


def test_what_was_published_is_disclosed_from_the_database_alone(
    uploaded: DecoyDriver, tmp_path: Path, postgres: Postgres
) -> None:
    database = open_database(postgres.database())
    home = published(uploaded, tmp_path, database)
    home.rename(tmp_path / "lost")
    again = on_another_machine(uploaded, tmp_path, None, database)
    uploaded.draw().vote([uploaded.ballot([60_000], [-80_000])])
    again.conduct(None, {})  # type: ignore[arg-type]  # nothing is asked of hospitals any more
    state = uploaded.operator.tasks.round_state(uploaded.task, 1)
    assert (state.outcome, state.flipped_cohorts) == (Outcome.SETTLED, uploaded.flipped)
    assert uploaded.events("Slashed") == []
    database.dispose()


def test_without_a_copy_the_round_is_void_and_costs_the_aggregator_alone(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It logs the missing secrets, and would use them if they came back before the deadline. Here they do not."""
    published(uploaded, tmp_path)
    again = on_another_machine(uploaded, tmp_path, None)
    uploaded.draw().vote([uploaded.ballot([60_000], [-80_000])])
    conducting = threading.Thread(target=again.conduct, args=(None, {}), daemon=True)
    conducting.start()
    said, end = "", time.monotonic() + 120
    while "decoys-lost" not in said:
        assert time.monotonic() < end, said
        time.sleep(0.2)
        said += capsys.readouterr().out
    (line,) = [line for line in map(json.loads, said.splitlines()) if line["event"] == "decoys-lost"]
    assert "restore it from a backup" in line["error"]
    for phase in (Phase.REVEALING, Phase.DISCLOSING):  # it moves both on by itself
        end = time.monotonic() + 120
        while uploaded.phase is not phase:
            assert time.monotonic() < end
            time.sleep(0.2)
        uploaded.pass_deadline()
    conducting.join(120)
    assert not conducting.is_alive()
    assert uploaded.operator.tasks.round_state(uploaded.task, 1).outcome is Outcome.VOID
    slashed = [(one["account"], one["reason"]) for one in uploaded.events("Slashed")]
    assert slashed == [(uploaded.aggregator.address, SlashReason.NOT_DISCLOSED)]
