"""The round as a pure state machine: properties of `next_steps` over all states of a chain, for each party."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consilium_chain.ledger.structs import Outcome, Phase, RoundState, TaskState, VoidReason, members
from consilium_chain.rounds.machine import (
    PHASES,
    AsAggregator,
    AsAnybody,
    AsHospital,
    AsVoter,
    Step,
    View,
    expected_uploads,
    is_judged,
    may_come,
    next_steps,
)
from consilium_chain.rounds.timing import deadline_passed, dispute_step, margin
from hypothesis import given
from hypothesis import strategies as st

MAPS = st.integers(0, 2**8 - 1)
TIMES = st.integers(0, 200)
STATE = TaskState("0x" + "11" * 20, Phase.NONE, 1, 0, 0, 0, True, False, 0, 0, 0)
ROUND = RoundState(
    Outcome.PENDING, VoidReason.NONE, 1, 0, bytes(32), bytes(32), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    False, ()
)  # fmt: skip
TIMED = [
    Phase.JOINING, Phase.COMMITTING, Phase.UPLOADING, Phase.PUBLISHING, Phase.DISPUTING, Phase.SCORING, Phase.REVEALING,
    Phase.DISCLOSING,
]  # fmt: skip


BY_ANYBODY = (Step.TICK, Step.FORM_COHORTS, Step.DRAW_SEATS, Step.SETTLE)
HANDED_OVER = (Step.SIGN, Step.UPLOAD, Step.UNMASK)


@st.composite
def views(draw: st.DrawFn, phases: list[Phase] = list(Phase)) -> View:  # noqa: B006 - never changed
    phase = draw(st.sampled_from(phases))
    deadline = draw(st.integers(1, 200)) if phase in TIMED else 0
    seated = draw(MAPS)
    revealed = draw(MAPS) & seated
    viable = draw(MAPS)
    round_ = replace(
        ROUND, members=draw(MAPS), committed=draw(MAPS), seated=seated, revealed=revealed,
        mismatched=draw(MAPS) & revealed, viable_cohorts=viable,
        summed_cohorts=draw(st.one_of(MAPS.map(lambda some: some & viable), st.just(viable))),
        survivors=draw(MAPS), accused=draw(MAPS), stood_down=draw(MAPS),
    )  # fmt: skip
    state = replace(STATE, phase=phase, deadline=deadline, round=draw(st.integers(0, 2)))
    return View(
        replace(state, active_hospitals=draw(MAPS), active_voters=draw(MAPS)), round_, draw(TIMES), draw(st.booleans()),
        has_decoys=draw(st.booleans()), masked=draw(st.booleans()), min_reveals=draw(st.integers(1, 4)),
        publish_window=draw(st.integers(1, 60)),
    )  # fmt: skip


@given(st.integers(0, 9), st.integers(0, 9))
def test_points_are_shown_from_a_block_on(block: int, shows_at: int) -> None:
    view = View(replace(STATE, phase=Phase.UPLOADING, deadline=200), ROUND, 0, block=block, masked=True)
    assert (Step.UPLOAD in next_steps(view, AsHospital(0, shows_at=shows_at))) == (block >= shows_at)


def step(view: View, awaited: int = 0, arrived: int = 0, refused: bool = False, has_parts: bool = True) -> Step | None:
    """The aggregator's; None: it waits."""
    (found,) = next_steps(view, AsAggregator(awaited, arrived, refused, has_parts)) or (None,)
    return found


@st.composite
def hospitals(draw: st.DrawFn) -> AsHospital:
    flags = {name: draw(st.booleans()) for name, kind in AsHospital.__annotations__.items() if kind == "bool"}
    disputed = draw(st.frozensets(st.tuples(st.integers(0, 2), st.integers(0, 1))))
    return AsHospital(draw(st.integers(0, 7)), **flags, send_at=draw(TIMES), disputed=disputed)


VOTERS = st.builds(AsVoter, st.integers(0, 7), st.booleans(), st.booleans())


def test_every_phase_has_its_rules_and_every_step_its_phase() -> None:
    assert list(PHASES) == list(Phase)
    steps = {step for rules in PHASES.values() for step in (*rules.aggregator, *rules.hospital, *rules.voter)}
    assert steps == set(Step) - {Step.JOIN}


@given(views(), MAPS, MAPS, st.booleans(), st.booleans())
def test_anybody_takes_the_aggregators_steps_that_are_anybodys(
    view: View, awaited: int, arrived: int, refused: bool, has_parts: bool
) -> None:
    found, own = next_steps(view, AsAnybody()), step(view, awaited, arrived, refused, has_parts)
    assert set(found) <= {Step.STOP, *BY_ANYBODY}
    assert found == (own,) or own not in (Step.STOP, *BY_ANYBODY)


@given(views(), st.one_of(hospitals(), VOTERS))
def test_nodes_that_are_not_in_the_task_join_while_it_is_open_and_else_do_nothing(
    view: View, party: AsHospital | AsVoter
) -> None:
    found = next_steps(view, replace(party, is_member=False))
    assert found == ((Step.JOIN,) if view.state.phase is Phase.JOINING else ())
    assert Step.JOIN not in next_steps(view, replace(party, is_member=True))


@given(views(), hospitals())
def test_a_hospital_sends_nothing_that_the_contract_refuses(view: View, party: AsHospital) -> None:
    found, phase, bit = next_steps(view, party), view.state.phase, 1 << party.index
    if Step.COMMIT in found:
        assert phase is Phase.COMMITTING
        assert party.has_update
        assert not view.round.committed & bit
        assert view.now >= party.send_at
    if Step.RESUME in found:
        assert phase in (Phase.COMMITTING, Phase.UPLOADING, Phase.PUBLISHING)
        assert not view.state.active_hospitals & bit
    if Step.DISPUTE in found:
        assert found[0] is Step.DISPUTE
        assert phase is Phase.DISPUTING
        assert view.masked
        assert view.round.accused & view.round.survivors & bit
        assert dispute_step(view.state, view.publish_window, view.now) < 2
    if Step.TICK in found:
        assert view.now > view.state.deadline > 0


@given(views(), hospitals())
def test_a_hospital_trains_once_a_round_and_while_commitments_are_open(view: View, party: AsHospital) -> None:
    in_reach = party.is_reached or view.state.round != 0
    wanted = party.is_member and view.state.phase is Phase.COMMITTING and not party.has_begun and in_reach
    assert (Step.TRAIN in next_steps(view, party)) == wanted


@given(views(), hospitals())
def test_a_hospital_notes_a_commitment_once_and_its_loss_while_it_can_send_it_again(
    view: View, party: AsHospital
) -> None:
    is_committed = bool(view.round.committed >> party.index & 1)
    if Step.NOTE_COMMITMENT in next_steps(view, party):
        assert party.has_update
        assert party.knows_commitment != is_committed
        assert is_committed or view.state.phase is Phase.COMMITTING


@given(views(), st.sampled_from(HANDED_OVER))
def test_a_part_of_a_round_that_is_due_may_come_and_never_after_one_that_may_not(view: View, part: Step) -> None:
    state = view.state
    if part in next_steps(view, AsHospital(0)):
        assert may_come(state, state.round, part)
    if not may_come(state, state.round, part):
        later = [replace(view, state=replace(state, phase=phase)) for phase in Phase if phase >= state.phase]
        assert not any(part in next_steps(one, AsHospital(0)) for one in later)
    assert may_come(state, state.round + 1, part) == (state.phase is not Phase.ENDED)
    assert not may_come(state, state.round + 2, part)
    assert not may_come(state, state.round - 1, part)


@given(views(), VOTERS)
def test_a_voter_takes_one_step_that_the_contract_takes(view: View, party: AsVoter) -> None:
    found, bit = next_steps(view, party), 1 << party.index
    assert len(found) <= 1
    if Step.SCORE in found or Step.STAND_DOWN in found:
        assert view.state.phase is Phase.SCORING
        assert view.state.active_voters & bit
        assert not (view.round.seated | view.round.stood_down) & bit
        assert (Step.STAND_DOWN in found) == party.is_paused
    owes = party.is_member and view.state.phase is Phase.REVEALING and view.round.seated & ~view.round.revealed & bit
    assert (Step.REVEAL in found) == bool(owes)  # also while it is paused


@given(views(TIMED), MAPS, MAPS, st.booleans())
def test_aggregator_never_waits_after_a_deadline(view: View, awaited: int, arrived: int, refused: bool) -> None:
    late = replace(view, now=view.state.deadline + 1)
    moves = [Step.TICK, Step.SETTLE] + [Step.DISCLOSE] * (view.state.phase is Phase.REVEALING)
    assert step(late, awaited, arrived, refused) in moves


@given(views(), MAPS, MAPS, st.booleans())
def test_aggregator_stops_exactly_at_the_end(view: View, awaited: int, arrived: int, refused: bool) -> None:
    stops = step(view, awaited, arrived, refused) is Step.STOP
    assert stops == (view.state.phase in (Phase.ENDED, Phase.NONE))


@given(views(), MAPS, MAPS, st.booleans())
def test_aggregator_publishes_only_in_time_and_never_what_was_refused(
    view: View, awaited: int, arrived: int, refused: bool
) -> None:
    found = step(view, awaited, arrived, refused)
    if found in (Step.PUBLISH, Step.FIX_SURVIVORS):
        fixes = view.masked and view.state.phase is Phase.UPLOADING
        assert found is (Step.FIX_SURVIVORS if fixes else Step.PUBLISH)
        assert view.state.phase in (Phase.UPLOADING, Phase.PUBLISHING)
        assert view.now <= view.state.deadline
        assert not refused


@given(views(), MAPS, MAPS, st.booleans())
def test_aggregator_ticks_only_where_the_contract_would_move(
    view: View, awaited: int, arrived: int, refused: bool
) -> None:
    """`tick` before a deadline costs gas and is refused (PhaseNotOver)."""
    if step(view, awaited, arrived, refused) is Step.TICK:
        assert view.now > view.state.deadline > 0


@given(views([Phase.UPLOADING]), MAPS, MAPS)
def test_aggregator_publishes_with_all_awaited_uploads_or_shortly_before_the_deadline(
    view: View, awaited: int, arrived: int
) -> None:
    if view.now > view.state.deadline:
        return
    hurried = view.now + view.upload_margin >= view.state.deadline
    complete = all(arrived >> index & 1 for index in members(awaited))
    assert (step(view, awaited, arrived) is not None) == (complete or hurried)


@given(views([Phase.PUBLISHING]), st.booleans())
def test_aggregator_publishes_once_it_has_all_parts_or_shortly_before_the_deadline(view: View, has_parts: bool) -> None:
    in_time = replace(view, now=min(view.now, view.state.deadline))
    hurried = in_time.now + view.answer_margin >= view.state.deadline
    assert (step(in_time, has_parts=has_parts) is Step.PUBLISH) == (has_parts or hurried)


@given(views([Phase.DISPUTING]), st.booleans())
def test_aggregator_names_cheaters_in_the_last_of_three_steps_alone(view: View, refused: bool) -> None:
    over, last = view.now > view.state.deadline, view.now >= view.state.deadline - view.publish_window
    names = last and not over and not refused
    assert step(view, refused=refused) is (Step.TICK if over else Step.NAME if names else None)


@given(st.integers(1, 60), st.integers(0, 10_000), st.integers(0, 179))
def test_disputing_has_three_steps_as_long_as_the_publishing_window(window: int, start: int, passed: int) -> None:
    state = replace(STATE, phase=Phase.DISPUTING, deadline=start + 3 * window)
    assert dispute_step(state, window, start + passed) == min(passed // window, 2)


@given(views([Phase.UPLOADING]), MAPS)
def test_aggregator_does_not_wait_for_uploads_that_nobody_owes(view: View, arrived: int) -> None:
    in_time = replace(view, now=min(view.now, view.state.deadline))
    assert step(in_time, 0, arrived) is not None


@given(views([Phase.REVEALING]), st.booleans())
def test_aggregator_ends_the_reveals_once_all_seated_have_revealed_or_time_is_up(view: View, refused: bool) -> None:
    over = view.round.revealed == view.round.seated or view.now > view.state.deadline
    closed = view.has_decoys and view.round.viable_cohorts != 0
    discloses = closed and is_judged(view.round, view.min_reveals) and not refused
    assert step(view, refused=refused) is ((Step.DISCLOSE if discloses else Step.SETTLE) if over else None)


REVEALED = replace(ROUND, seated=0b1111, revealed=0b1111, viable_cohorts=0b11)


@pytest.mark.parametrize(
    ("round_", "min_reveals", "judged"),
    [
        (REVEALED, 4, True),
        (replace(REVEALED, revealed=0b0111), 4, False),
        (replace(REVEALED, mismatched=0b0011), 1, True),  # half is not most
        (replace(REVEALED, mismatched=0b0111), 1, False),
        (replace(REVEALED, revealed=0b0111, mismatched=0b0011), 1, False),
        (replace(REVEALED, revealed=0, mismatched=0), 1, False),
    ],
    ids=["all", "too few", "half", "most", "most of the revealed", "nobody"],
)
def test_round_is_disclosed_only_where_there_is_something_to_judge(
    round_: RoundState, min_reveals: int, judged: bool
) -> None:
    """A round that is void in any case needs no disclosure, which would cost gas."""
    assert is_judged(round_, min_reveals) == judged
    revealing = replace(STATE, phase=Phase.REVEALING, deadline=100)
    view = View(revealing, round_, 101, False, False, has_decoys=True, min_reveals=min_reveals)
    assert step(view) is (Step.DISCLOSE if judged else Step.SETTLE)
    assert step(replace(view, has_decoys=False)) is Step.SETTLE


@given(views([Phase.DISCLOSING]), st.booleans())
def test_aggregator_opens_what_is_closed_until_the_deadline_and_settles_what_is_open(view: View, refused: bool) -> None:
    found = step(view, refused=refused)
    late = view.now > view.state.deadline
    if view.round.summed_cohorts == view.round.viable_cohorts:
        assert found is Step.SETTLE
    elif late:
        assert found is Step.TICK
    else:
        assert found is (None if refused else Step.DISCLOSE)


@given(views(), MAPS, MAPS, st.booleans())
def test_aggregator_opens_nothing_that_was_refused_or_has_no_decoys(
    view: View, awaited: int, arrived: int, refused: bool
) -> None:
    if step(view, awaited, arrived, refused) is Step.DISCLOSE:
        assert not refused
        assert view.round.viable_cohorts
        assert view.has_decoys or view.state.phase is Phase.DISCLOSING
        assert view.state.phase in (Phase.REVEALING, Phase.DISCLOSING)


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.DRAWING])
@pytest.mark.parametrize(
    ("ready", "expired", "wanted"),
    [(False, False, "waits"), (True, False, "proves"), (False, True, "asks anew")],
)
def test_aggregator_follows_the_beacon(phase: Phase, ready: bool, expired: bool, wanted: str) -> None:
    view = View(replace(STATE, phase=phase), ROUND, 10**9, ready, expired)
    proves = {Phase.FORMING: Step.FORM_COHORTS, Phase.DRAWING: Step.DRAW_SEATS}[phase]
    assert step(view) is {"waits": None, "proves": proves, "asks anew": Step.TICK}[wanted]


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.DRAWING])
def test_aggregator_asks_anew_for_a_value_that_can_no_longer_be_proven(phase: Phase) -> None:
    """An expired request is past its block, so it looks ready, too: trying to prove it would be refused for ever."""
    assert step(View(replace(STATE, phase=phase), ROUND, 0, beacon_ready=True, beacon_expired=True)) is Step.TICK


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.DRAWING])
@pytest.mark.parametrize("ready", [False, True])  # by the chain's clock: relays may all be dead
def test_aggregator_gives_a_silent_beacon_up_after_its_deadline(phase: Phase, ready: bool) -> None:
    state = replace(STATE, phase=phase, deadline=1_000)
    assert step(View(state, ROUND, 1_001, beacon_ready=ready, beacon_expired=False)) is Step.TICK
    assert step(View(state, ROUND, 1_000, beacon_ready=ready, beacon_expired=False)) is not Step.TICK


@given(st.lists(MAPS, min_size=8, max_size=8), MAPS, MAPS)
def test_expected_uploads_are_the_committed_of_viable_cohorts(cohorts: list[int], viable: int, committed: int) -> None:
    expected = expected_uploads(replace(ROUND, viable_cohorts=viable, committed=committed), cohorts)
    for index in range(8):
        in_viable = any(viable >> c & 1 and cohorts[c] >> index & 1 for c in range(8))
        assert bool(expected >> index & 1) == (in_viable and bool(committed >> index & 1))


@given(st.sets(st.integers(0, 255)))
def test_members_lists_the_bits_of_a_map(indices: set[int]) -> None:
    assert list(members(sum(1 << index for index in indices))) == sorted(indices)


def test_deadline_zero_never_passes() -> None:
    assert not deadline_passed(STATE, 10**12)
    assert not deadline_passed(replace(STATE, deadline=7), 7)
    assert deadline_passed(replace(STATE, deadline=7), 8)


@given(st.integers(8, 100_000))
def test_aggregator_waits_for_a_slow_hospital_until_a_quarter_of_the_window_is_left(window: int) -> None:
    """A hospital that uploads in the third quarter is in the sum, and not slashed."""
    round_ = replace(ROUND, members=0b11, committed=0b11, viable_cohorts=1)
    state = replace(STATE, phase=Phase.UPLOADING, deadline=window)
    slow = View(state, round_, window - margin(window) - 1, False, False, masked=True, upload_margin=margin(window))
    assert step(slow, awaited=0b11, arrived=0b01) is None
    assert step(slow, awaited=0b11, arrived=0b11) is Step.FIX_SURVIVORS
    assert step(replace(slow, now=window - margin(window)), awaited=0b11, arrived=0b01) is Step.FIX_SURVIVORS
