"""Shards: several tasks train one model, each with hospitals, committee and pool of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chain_driver import LocalChain, refused
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, Phase
from consilium_chain.rounds.machine import AsAnybody, Step, next_steps
from consilium_chain.rounds.sums import CohortSum, PublishedSums, added
from consilium_client.models.fold import Fold
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_operators.summary import summarised
from consilium_server.open_steps import chain_view, take_open_step
from consilium_verify.report import Name, Result
from consilium_verify.verification import verify_round
from training_driver import GOOD, ROWS, TrainingTask, shards, task_file

EXACT = 'statistics = "exact"'


def of_shards(chain: LocalChain, folder: Path, top: str = EXACT, rest: str = "", rounds: int = 3) -> list[TrainingTask]:
    """Two shards, which hospitals, voters and the aggregator have joined."""
    raw = task_file(f"epochs = 1\n{rest}", top=top, rounds=rounds).replace(b"[rounds]\n", b"[rounds]\nshards = 2\n")
    found = shards(chain, folder, raw)
    for one in found:
        for index in range(2):
            one.start(index)
        one.join(rows=ROWS)
    return found


def ledger(task: TrainingTask) -> Ledger:
    return Ledger(task.operator.connection, task.chain.deployment)


def derived(task: TrainingTask) -> PublicRecord:
    return PublicRecord(ledger(task), task.store, load_task(ledger(task), task.store, task.task))


def own_sum(task: TrainingTask, round_: int) -> CohortSum:
    assert task.spec is not None
    found = PublishedSums(ledger(task), task.store, task.task, task.spec).accepted(round_)
    assert found is not None
    return found


def due(task: TrainingTask) -> tuple[Step, ...]:
    """The step that anybody may take now, which is taken."""
    reader = ledger(task)
    view = chain_view(reader, task.task, reader.tasks.state(task.task), task.round_state)
    steps = next_steps(view, AsAnybody())
    for step in steps:
        take_open_step(task.operator, task.task, step, task.round, task.round_state)
    return steps


def form(task: TrainingTask) -> None:
    """By the steps that an aggregator takes, too: without a seed, the first one requests it."""
    while task.phase is Phase.FORMING:
        task.beacon()
        assert due(task) == (Step.FORM_COHORTS,)


def play_both(one: TrainingTask, other: TrainingTask) -> None:
    one.commit_all()
    assert (one.phase, one.deadline, due(one)) == (Phase.COMMITTING, 0, ())  # the other still takes commitments
    with refused("ShardBehind", taskId=other.task, round=one.round, wanted=one.round):
        one.operator.phases.tick(one.task)
    other.commit_all()
    assert other.phase is Phase.UPLOADING
    assert due(one) == (Step.TICK,)
    assert one.phase is Phase.UPLOADING
    one.publish()
    other.publish()


def form_both(one: TrainingTask, other: TrainingTask) -> None:
    form(one)
    form(other)


def settled_in_one(chain: LocalChain, folder: Path) -> list[TrainingTask]:
    """Round 1 is settled in the first shard; the other one draws its seats."""
    one, other = of_shards(chain, folder)
    one.first_round(), other.first_round()
    form_both(one, other)
    play_both(one, other)
    one.draw().judge(GOOD)
    return [one, other]


def test_shards_train_one_model_from_the_sums_of_all(local_chain: LocalChain, tmp_path: Path) -> None:
    one, other = of_shards(local_chain, tmp_path)
    assert list(one.operator.tasks.shards(other.task)) == [one.task, other.task]
    one.first_round()
    assert due(one) == ()  # the other is behind
    with refused("ShardBehind", taskId=other.task, round=0, wanted=1):
        one.operator.phases.form_cohorts(one.task, 0)
    with pytest.raises(RecordIncomplete, match=f"round 0 of task {other.task} is not settled"):
        derived(one).statistics()
    other.first_round()
    statistics = derived(one).statistics()
    np.testing.assert_array_equal(statistics, derived(other).statistics())
    assert statistics[0] == pytest.approx(2 * sum(ROWS))  # rows of all hospitals
    form_both(one, other)
    for round_ in (1, 2):
        assert derived(one).base_digest(round_) == derived(other).base_digest(round_)
        play_both(one, other)
        one.draw().judge(GOOD)
        assert due(one) == ()
        with refused("ShardBehind", taskId=other.task, round=round_, wanted=round_ + 1):
            one.operator.phases.form_cohorts(one.task, 0)
        other.draw().judge(GOOD)
        form_both(one, other)

    spec, record = one.spec, derived(one)
    assert spec is not None
    fold = Fold(spec, one.params.spec_hash)
    both = added(own_sum(task, 1) for task in (one, other))
    assert both is not None
    expected = fold.after(fold.begin(record.base(1)), 1, both.lanes, both.weight).outer.model
    np.testing.assert_array_equal(record.base(2), expected)
    alone = own_sum(one, 1)
    assert not np.array_equal(record.base(2), fold.candidate(fold.begin(record.base(1)), alone.lanes, alone.weight))
    for task in (one, other):
        for round_ in (0, 1, 2):
            assert verify_round(ledger(task), task.store, task.task, round_).holds
    assert local_chain.unaccounted() == 0


def test_a_shard_that_fails_leaves_the_model_to_the_others(local_chain: LocalChain, tmp_path: Path) -> None:
    one, other = settled_in_one(local_chain, tmp_path)
    report = verify_round(ledger(one), one.store, one.task, 1)
    assert {check.name: check.result for check in report.checks}[Name.MODEL] is Result.UNCHECKED
    other.draw()
    other.pass_deadline()
    other.tick()  # no ballots
    assert other.operator.tasks.round_state(other.task, 1).outcome is Outcome.VOID
    form(one)
    spec, record = one.spec, derived(one)
    assert spec is not None
    fold, alone = Fold(spec, one.params.spec_hash), own_sum(one, 1)
    expected = fold.after(fold.begin(record.base(1)), 1, alone.lanes, alone.weight).outer.model
    np.testing.assert_array_equal(record.base(2), expected)
    form(other)
    one.commit_all()
    other.pass_deadline()
    other.tick()  # nobody has committed, and the shard ends
    assert other.phase is Phase.ENDED
    assert due(one) == (Step.TICK,)
    one.publish()
    one.draw().judge(GOOD)
    form(one)  # it does not wait for the one that ended
    assert one.phase is Phase.COMMITTING
    np.testing.assert_array_equal(derived(one).base(3), derived(other).base(3))


def test_a_model_is_derived_anew_if_another_shard_s_round_is_undone(local_chain: LocalChain, tmp_path: Path) -> None:
    one, other = settled_in_one(local_chain, tmp_path)
    record = derived(one)
    with local_chain.undone():
        other.draw().judge(GOOD)
        before = record.base(2)
    record.refresh(2)
    with pytest.raises(RecordIncomplete, match=f"round 1 of task {other.task} is not settled"):
        record.base(2)
    other.draw()
    other.pass_deadline()
    other.tick()  # no ballots: this time the round is void
    record.refresh(2)
    assert not np.array_equal(record.base(2), before)
    np.testing.assert_array_equal(record.base(2), derived(one).base(2))


def test_a_summary_counts_the_rows_of_all_shards(local_chain: LocalChain, tmp_path: Path) -> None:
    one, other = of_shards(local_chain, tmp_path, rest="[summary]\n", top="")
    one.first_round()
    with pytest.raises(RecordIncomplete):
        summarised(ledger(one), one.store, one.task)
    other.first_round()
    found = [summarised(ledger(task), task.store, task.task) for task in (one, other)]
    assert [(shown.hospitals, shown.rows) for shown in found] == [(4, 2 * sum(ROWS))] * 2
    assert found[0].columns == found[1].columns
    for task in (one, other):
        assert task.operator.tasks.round_state(task.task, STATISTICS_ROUND).survivors.bit_count() == 2
