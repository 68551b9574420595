"""Who missed which deadline, and by how much, from the chain's events alone."""

from __future__ import annotations

import pytest
from chain_driver import SHARED_WINDOWS, LocalChain, TaskDriver
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.deadlines import Deadlines, Missed, fields_of, in_words
from consilium_chain.transport_keys import TransportKey

LATE = 70  # seconds
WINDOW = SHARED_WINDOWS["join_window"]


def missed_in(task: TaskDriver) -> list[Missed]:
    """What all of a task's events tell, read as a watcher reads them."""
    ledger = task.operator
    deadlines = Deadlines(ledger.tasks.params(task.task))
    events = ledger.logs.between(ledger.deployment.first_block, ledger.connection.blocks.number())
    own = [event for event in events if event.values.get("taskId") == task.task]
    found = [deadlines.take(event, ledger.connection.blocks.time_of(event.block)) for event in own]
    return [one for one in found if one is not None]


def pass_deadline(task: TaskDriver) -> None:
    state = task.operator.tasks.state(task.task)
    task.chain.pass_time(state.deadline + LATE - task.operator.connection.blocks.now())


def addresses(*ledgers: Ledger) -> tuple[str, ...]:
    return tuple(sorted(ledger.address for ledger in ledgers))


def test_aggregator_that_fixes_no_survivors_is_named_with_its_delay(local_chain: LocalChain) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, terms=SHARED_WINDOWS).to_committing().commit_all()
        pass_deadline(task)
        (missed,) = missed_in(task.tick())
    assert (missed.round, missed.phase, missed.missing) == (1, Phase.UPLOADING, addresses(task.aggregator))
    assert missed.window == WINDOW * 3 // 2  # with the aggregator's grace
    assert LATE <= missed.ended_after < LATE + 30


def test_hospital_that_does_not_commit_is_named_beside_the_one_that_did(local_chain: LocalChain) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, terms=SHARED_WINDOWS).to_committing()
        task.commit(0)
        pass_deadline(task)
        (missed,) = missed_in(task.tick())
    assert (missed.phase, missed.missing, missed.acted) == (Phase.COMMITTING, addresses(task.nodes[1]), 1)
    assert missed.spare is not None
    assert WINDOW - 60 < missed.spare <= WINDOW
    words = in_words({**fields_of(missed), "missing": ["hospital-2"]})
    assert words.startswith(f"round 1, committing: hospital-2 did not act within {WINDOW} s; the phase was ended 7")
    assert words.endswith(f"; 1 acted in time, the last {missed.spare} s before the end")


def test_voters_that_neither_score_nor_reveal_are_named(local_chain: LocalChain) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, voters=3, terms=SHARED_WINDOWS | {"max_voters": 3}).to_scoring()
        scores = [[20_000] * task.round_state.cohorts] * 2
        for voter, own in enumerate(scores):
            task.score(voter, own)
        pass_deadline(task)
        task.tick().reveal(0)
        pass_deadline(task)
        task.operator.phases.settle(task.task, task.round)
        scoring, revealing = missed_in(task)
    assert (scoring.phase, scoring.missing, scoring.acted) == (Phase.SCORING, addresses(task.judges[2]), 2)
    assert (revealing.phase, revealing.missing, revealing.acted) == (Phase.REVEALING, addresses(task.judges[1]), 1)


@pytest.mark.parametrize("aggregator", [True, False])
def test_task_that_too_few_joined_says_how_many_more_it_needs(local_chain: LocalChain, aggregator: bool) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, terms=SHARED_WINDOWS | {"min_hospitals": 2})
        if aggregator:
            task.aggregator.aggregator.join(task.task)
        task.nodes[0].hospital.join(task.task, 10, TransportKey.generate())
        pass_deadline(task)
        (missed,) = missed_in(task.tick())
    more = ("1 of at least 2 hospitals", "1 of at least 1 voters")
    assert missed.missing == (*(() if aggregator else addresses(task.aggregator)), *more)
    assert (missed.phase, missed.acted) == (Phase.JOINING, 1 + aggregator)


def test_task_whose_phases_all_end_in_time_missed_nothing(local_chain: LocalChain) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, terms=SHARED_WINDOWS).to_scoring()
        task.judge([[20_000] * task.round_state.cohorts])
        assert missed_in(task) == []
