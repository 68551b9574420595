"""When a demo may put its chain's clock forward: only where no honest party has anything left to do in a phase.

And what it says of a deadline that was missed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from consilium_chain.ledger.structs import Outcome, Phase, RoundState, TaskParams, TaskState, VoidReason
from consilium_chain.rounds.deadlines import Missed
from consilium_chain.rounds.timing import margin
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import LocalNode
from consilium_chain.tasks.proposal import task_params
from consilium_lab.demo.clock import Leap, Scene, leap
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.processes import Line
from consilium_lab.demo.run import WINDOW, windows
from consilium_lab.demo.tally import late_parties
from consilium_lab.demo.task_file import TaskSettings, task_spec

NOW, DEADLINE = 1_000, 1_500
HOSPITALS, VOTERS = ("hospital-1", "hospital-2", "hospital-3"), ("voter-1", "voter-2")
STATE = TaskState("0x" + "11" * 20, Phase.COMMITTING, 1, DEADLINE, 0, 0, True, False, 0, 0b111, 0b11)
ROUND = RoundState(
    Outcome.PENDING, VoidReason.NONE, 1, 0, bytes(32), bytes(32), 0b111, 0b111, 1, 0b111, 0, 0, 0, 0, 0, 0, 0, 0b11, 0,
    0, 0, 0, 0, 0, False, (),
)  # fmt: skip


@pytest.fixture(scope="module")
def params() -> TaskParams:
    spec = task_spec(deal_wdbc(3, 2, 0), TaskSettings(windows=windows(5)))
    return task_params(spec, bytes(32), "0x" + "22" * 20)


def scene(params: TaskParams, phase: Phase, round_: dict[str, Any] | None = None, **known: Any) -> Scene:
    state = replace(STATE, phase=phase)
    return Scene(state, replace(ROUND, **round_ or {}), params, NOW, HOSPITALS, VOTERS, 0b111, **known)


@pytest.mark.parametrize("parties", [3, 11, 32, 128])
def test_windows_are_ten_minutes_and_grow_with_more_parties_than_a_machine_starts_at_once(parties: int) -> None:
    found = windows(parties)
    assert set(found.values()) == {max(WINDOW, -(-WINDOW * parties // 32))}
    assert len(found) == 6


@pytest.mark.parametrize("phase", list(Phase))
def test_leap_never_comes_while_an_honest_party_has_something_to_do(params: TaskParams, phase: Phase) -> None:
    """The third hospital is idle, and the second one, honest, is as late as it is."""
    known = {
        "idle_hospitals": 0b100,
        "uploaded": 0b001,
        "answered": 0b001,
        "submitted_evidence": 0b001,
        "idle_voters": 0b10,
    }
    unfinished = {"committed": 0b001, "accused": 0b111, "seated": 0b11}
    assert leap(scene(params, phase, unfinished, **known)) is None
    assert leap(scene(params, phase, unfinished)) is None


def test_leap_goes_past_the_deadline_of_a_hospital_that_will_not_commit(params: TaskParams) -> None:
    found = leap(scene(params, Phase.COMMITTING, {"committed": 0b011}, idle_hospitals=0b100))
    assert found == Leap(DEADLINE + 1, "hospital-3 will not act; all others have acted")


def test_leap_leaves_the_aggregator_its_margin_where_an_upload_or_an_answer_will_not_come(params: TaskParams) -> None:
    idle: dict[str, Any] = {"idle_hospitals": 0b001}
    upload = leap(scene(params, Phase.UPLOADING, uploaded=0b110, **idle))
    answer = leap(scene(params, Phase.PUBLISHING, answered=0b110, **idle))
    assert upload is not None
    assert answer is not None
    assert upload.until == answer.until == DEADLINE - margin(WINDOW) == DEADLINE - 450


def test_leap_is_for_no_stranger_whose_upload_the_aggregator_does_not_await(params: TaskParams) -> None:
    """The phase ends without it at any moment, and a leap would take the time of the next one: a void round."""
    stranger = scene(params, Phase.UPLOADING, uploaded=0b110, idle_hospitals=0b001, strangers=0b001)
    assert leap(stranger) is None
    assert leap(replace(stranger, params=replace(params, masked=False))) is not None
    assert leap(replace(stranger, uploaded=0b010, idle_hospitals=0b101)) is not None


def test_leap_does_not_wait_for_a_hospital_whose_cohort_has_fallen(params: TaskParams) -> None:
    fallen = replace(scene(params, Phase.UPLOADING, uploaded=0b010, idle_hospitals=0b001), viable_members=0b011)
    assert leap(fallen) is not None


def test_leap_goes_to_half_of_the_time_where_hospitals_then_commit_themselves(params: TaskParams) -> None:
    found = leap(scene(params, Phase.COMMITTING, {"committed": 0}, aggregator_ignores=True))
    assert found is not None
    assert found.until == (NOW + DEADLINE) // 2


@pytest.mark.parametrize("phase", [Phase.PUBLISHING, Phase.DISCLOSING])
def test_leap_goes_past_the_deadline_of_an_aggregator_that_was_refused(params: TaskParams, phase: Phase) -> None:
    assert leap(scene(params, phase)) is None
    found = leap(scene(params, phase, aggregator_refused=True))
    assert found is not None
    assert found.until == DEADLINE + 1


def test_leap_goes_from_step_to_step_of_disputing_and_leaves_the_last_to_the_aggregator(params: TaskParams) -> None:
    accused = scene(params, Phase.DISPUTING, {"accused": 0b111}, submitted_evidence=0b111)
    steps = [DEADLINE - 2 * WINDOW, DEADLINE - WINDOW]
    for before, until in zip([DEADLINE - 3 * WINDOW, *steps], steps, strict=False):
        found = leap(replace(accused, now=before))
        assert found is not None
        assert found.until == until
    assert leap(replace(accused, now=steps[1])) is None


def test_leap_goes_past_the_deadline_of_a_silent_voter_alone(params: TaskParams) -> None:
    found = leap(scene(params, Phase.REVEALING, {"revealed": 0b01}, idle_voters=0b10))
    assert found == Leap(DEADLINE + 1, "voter-2 will not act; all others have acted")
    assert leap(scene(params, Phase.REVEALING, {"revealed": 0b00}, idle_voters=0b10)) is None


def test_leap_goes_past_the_deadline_of_a_voter_alone_that_neither_takes_a_seat_nor_stands_down(
    params: TaskParams,
) -> None:
    found = leap(scene(params, Phase.SCORING, {"seated": 0b01}, idle_voters=0b10))
    assert found == Leap(DEADLINE + 1, "voter-2 will not act; all others have acted")
    assert leap(scene(params, Phase.SCORING, {"seated": 0b00}, idle_voters=0b10)) is None
    assert leap(scene(params, Phase.SCORING, {"seated": 0b01, "stood_down": 0b10}, idle_voters=0b10)) is None


@pytest.fixture
def node() -> Iterator[LocalNode]:
    with LocalNode() as running:
        yield running


def test_put_forward_moves_every_block_from_the_next_one_on(node: LocalNode) -> None:
    connection = Connection(node.url)
    before, block = connection.blocks.now(), connection.blocks.number()
    node.put_forward(599)
    end = time.monotonic() + 20
    while connection.blocks.number() < block + 4 and time.monotonic() < end:
        time.sleep(0.1)
    assert 599 <= connection.blocks.now() - before < 599 + 25


def test_late_party_is_named_with_its_phase_and_by_how_much() -> None:
    missed = Missed(0, Phase.PUBLISHING, 20, 3, ("0xA",), 0, None)
    tried = {"event": "refused", "call": "publish", "error": "PhaseOver", "round": 0, "late_s": 39}
    others = [Line("aggregator", {**tried, "round": 1}), Line("voter-1", tried)]
    (said,) = late_parties([missed], [Line("aggregator", tried), *others], {"0xA": "aggregator"}.__getitem__)
    assert said == (
        "round 0, publishing: aggregator did not act within 20 s; the phase was ended 3 s later;"
        " aggregator tried publish 39 s late"
    )
