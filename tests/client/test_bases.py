"""The base's digest is in each signed update: a stale or altered base is found, named, and derived anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rounds.signed_updates import NO_BASE, agreed_base
from consilium_client.errors import NodeError
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_core.logs import log_to
from consilium_verify.checks import bases_agree
from consilium_verify.report import Name, Report, Result
from consilium_verify.verification import verify_round
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault
from training_driver import GOOD, ROWS, TrainingTask, propose, task_file

BAD = [[-900_000]]
FALSE = b"\x11" * 32
Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def told() -> Iterator[Told]:
    heard: Told = []
    with log_to(lambda event, fields: heard.append((event, dict(fields)))):
        yield heard


@pytest.fixture
def task(local_chain: LocalChain, tmp_path: Path) -> TrainingTask:
    """Its first training round accepts commitments of two real nodes."""
    made = propose(local_chain, tmp_path, task_file("epochs = 1", rounds=3))
    for index in range(2):
        made.start(index)
    made.join(rows=ROWS).first_round().form()
    return made


def derived(task: TrainingTask) -> PublicRecord:
    """As a new process derives it."""
    ledger = Ledger(task.operator.connection, task.chain.deployment)
    return PublicRecord(ledger, task.store, load_task(ledger, task.store, task.task))


def verified(task: TrainingTask, round_: int) -> Report:
    return verify_round(Ledger(task.operator.connection, task.chain.deployment), task.store, task.task, round_)


def bases(report: Report) -> list[tuple[Result, str]]:
    return [(check.result, check.detail) for check in report.checks if check.name is Name.BASES]


def of_bases(told: Told) -> list[tuple[str, int]]:
    return [(event, fields["round"]) for event, fields in told if event.startswith("base-")]


def test_updates_state_the_base_that_the_record_gives(task: TrainingTask, told: Told) -> None:
    task.play_round()
    task.form().play_round()
    for round_ in (0, 1, 2):
        digest = derived(task).base_digest(round_)
        stated = task.operator.record.stated_bases(task.task, round_)
        assert stated == {node.address: digest for node in task.nodes}
        assert bases(verified(task, round_)) == [(Result.HOLDS, f"2 of 2 hospitals stated the base {digest.hex()}")]
    assert derived(task).base_digest(1) == derived(task).base_digest(0) != derived(task).base_digest(2)
    assert of_bases(told) == []


def test_an_update_of_an_undone_base_is_not_committed_and_the_node_derives_anew(task: TrainingTask, told: Told) -> None:
    task.commit_all().publish()
    task.draw()
    with task.chain.undone():
        task.judge(GOOD).form()
        stale = task.made(0)
    task.judge(BAD).form()
    assert stale is not None
    assert stale.signed.base != derived(task).base_digest(2) == derived(task).base_digest(1)
    node = task.running[0]
    with raises_fault(NodeError, "BaseStale", match=derived(task).base_digest(2).hex()):
        node.updates.signed(2, stale)
    node.updates.commit(node.context.view())
    assert ("round-failed", {"round": 2, "error": "BaseStale"}) in told
    assert task.round_state.committed == 0
    # Whatever stands on chain is uploaded: otherwise the hospital would be slashed for it.
    task.commit(1)
    task.pass_deadline()
    task.tick()
    task.publish()
    task.draw().judge(GOOD)
    assert of_bases(told) == [("base-undone", 2)]
    task.form()
    (one,) = [node for index, node in task.running.items() if task.round_state.members >> index & 1]
    made = one.updates.of(3)
    assert made is not None
    assert made.signed.base == derived(task).base_digest(3)


def alter(record: PublicRecord, round_: int) -> None:
    """As a fault of memory or of a library would."""
    state = record._states[round_]
    model = np.nextafter(state.outer.model, np.float32(np.inf))
    record._states[round_] = replace(state, outer=replace(state.outer, model=model))


@pytest.mark.parametrize("altered", [(1,), (2,), (1, 2)], ids=["first", "latest", "both"])
def test_a_party_with_an_altered_base_derives_it_anew_from_the_last_that_agrees(
    task: TrainingTask, told: Told, altered: tuple[int, ...]
) -> None:
    record = derived(task)
    task.play_round()
    task.form().commit_all()
    record.base(2)
    for round_ in altered:
        alter(record, round_)
    record.refresh(2)
    assert record.base(2).tobytes() == derived(task).base(2).tobytes()
    assert record.base(1).tobytes() == derived(task).base(1).tobytes()
    assert of_bases(told) == [("base-healed", altered[0])]
    record.refresh(2)
    assert len(of_bases(told)) == 1


def test_hospitals_that_state_a_false_base_change_nobodys_model(task: TrainingTask, told: Told) -> None:
    """The record has the last word. An auditor sees who stated another base."""
    task.false_base = FALSE
    record = derived(task)
    before = record.base(1).tobytes()
    task.commit_all()
    record.refresh(1)
    assert of_bases(told) == [("base-differs", 1)]
    assert told[-1][1]["stated"] == FALSE.hex()
    assert record.base(1).tobytes() == before
    task.publish()
    task.draw().judge(GOOD)
    report = verified(task, 1)
    ((result, detail),) = bases(report)
    assert result is Result.FAILS
    assert report.failed == ["bases"]
    assert all(f"{node.address} stated {FALSE.hex()}" in detail for node in task.nodes)


@given(st.lists(st.sampled_from([b"a" * 32, b"b" * 32, NO_BASE]), max_size=9), st.integers(0, 9))
def test_a_base_is_agreed_by_more_than_half_of_all(stated: list[bytes], silent: int) -> None:
    hospitals = len(stated) + silent
    agreed = agreed_base(stated, hospitals)
    most = [base for base in (b"a" * 32, b"b" * 32) if stated.count(base) * 2 > hospitals]
    assert agreed == (most[0] if most else None)


@given(right=st.integers(0, 5), wrong=st.integers(0, 5))
def test_one_liar_does_not_discredit_a_round(right: int, wrong: int) -> None:
    stated = {f"0x{index:040x}": b"a" * 32 if index < right else FALSE for index in range(right + wrong)}
    check = bases_agree(b"a" * 32, stated)
    assert (check.result is Result.FAILS) == (wrong > right)
    assert check.detail.count(FALSE.hex()) == wrong
    assert check.detail.startswith(f"{right} of {right + wrong} hospitals")
