"""When to ask for the next block: seldom, soon after it is there, and never too long."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from consilium_chain.rpc import heartbeat
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.rpc.pace import FIRST_PAUSE, GROWTH, LONGEST_PAUSE, PUBLIC_PAUSE, SLOWEST, Pace
from hypothesis import given, settings
from hypothesis import strategies as st

DAY, MOST = 86_400, 10_000  # requests of a hospital on blocks of 12 seconds
TOLERANCE = 1e-4  # seconds: of sums of a clock and the time since 1970


@dataclass
class Blocks:
    """Blocks as a node shows them: when, by the asker's clock, and with which time of the chain."""

    shown_at: list[float]
    times: list[int]

    def newest(self, at: float) -> tuple[int, int]:
        number = bisect_right(self.shown_at, at) - 1
        return number, self.times[number]


def made(seed: int, seconds: int, count: int, spread: float, skipped: float, clock: float) -> Blocks:
    """`spread`: of their arrival, as a part of a block's time; `skipped`: the part of slots without a block."""
    shown: list[float] = []
    times: list[int] = []
    source, slot = random.Random(seed), 0
    while len(shown) < count:
        if not shown or source.random() >= skipped:
            shown.append(clock + (slot + spread * source.random()) * seconds)
            times.append(1_700_000_000 + slot * seconds)
        slot += 1
    return Blocks(shown, times)


def followed(blocks: Blocks) -> tuple[list[float], list[float]]:
    """The moments of all questions, and how late each block was seen."""
    pace, at, questions, late = Pace(), blocks.shown_at[0], [], []
    while pace.number < len(blocks.times) - 1:
        before = pace.number
        questions.append(at)
        pace = pace.answered(at, *blocks.newest(at))
        late += [at - blocks.shown_at[number] for number in range(before + 1, pace.number + 1)]
        at = pace.next_at
    return questions, late


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1 << 32), seconds=st.integers(2, 30), spread=st.floats(0, 0.15), skipped=st.floats(0, 0.03),
    clock=st.floats(0, 1e7),
)  # fmt: skip
def test_pace_asks_seldom_and_sees_each_block_soon(
    seed: int, seconds: int, spread: float, skipped: float, clock: float
) -> None:
    questions, late = followed(made(seed, seconds, 200, spread, skipped, clock))
    learning = 70  # questions, while the blocks' time is unknown and where slots have no block
    assert len(questions) <= learning + 200 * MOST / (DAY / 12)
    assert sorted(late)[len(late) // 2] <= (spread + 0.1) * seconds
    assert max(late) <= seconds + LONGEST_PAUSE
    assert all(b - a >= FIRST_PAUSE - TOLERANCE for a, b in pairwise(questions))


def test_pace_finds_blocks_again_whose_arrival_moves() -> None:
    before, after = made(0, 12, 100, 0.05, 0, 0.0), made(1, 12, 200, 0.05, 0, 5.0)
    moved = Blocks(before.shown_at + after.shown_at[100:], before.times + after.times[100:])
    questions, late = followed(moved)
    assert len(questions) <= 40 + 1.3 * 200
    assert max(late[150:]) <= 3


def test_pace_asks_as_before_while_blocks_come_fast() -> None:
    """Local chains: a block a second, and one with each transaction."""
    pace = Pace().answered(0.0, 1, 100).answered(0.5, 2, 101)
    assert pace.is_fast
    pace = pace.answered(0.9, 3, 101)
    assert pace.is_fast
    pauses, at = [], pace.next_at
    for _ in range(12):
        pauses.append(at)
        pace = pace.answered(at, 3, 101)
        at = pace.next_at
    assert [b - a for a, b in pairwise(pauses)] == pytest.approx(
        [min(FIRST_PAUSE * GROWTH**n, LONGEST_PAUSE) for n in range(11)]
    )


def test_a_clock_moved_forward_makes_no_chain_slow() -> None:
    pace = Pace().answered(0.0, 1, 100).answered(1.0, 2, 5_100)
    assert pace.is_fast
    assert pace.answered(2.0, 3, 5_101).answered(3.0, 4, 10_101).is_fast


def test_pace_of_a_chain_that_stands_is_its_blocks_time() -> None:
    pace = Pace()
    for number in range(20):
        pace = pace.answered(12.0 * number, number, 1_000 + 12 * number)
    questions = [at := pace.next_at]
    while at < 12 * 120:
        pace = pace.answered(at, 19, 1_000 + 12 * 19)
        questions.append(at := pace.next_at)
    assert len(questions) < 100 + 10
    assert max(b - a for a, b in pairwise(questions)) <= 12


def test_one_reorganised_or_skipped_block_changes_no_pace() -> None:
    pace = Pace()
    for number in range(20):
        pace = pace.answered(12.0 * number, number, 1_000 + 12 * number)
    assert pace.answered(240.0, 20, 1_000 + 12 * 19 + 1).block_seconds == 12
    assert pace.answered(252.0, 20, 1_000 + 12 * 21).block_seconds == 12


@given(answers=st.lists(st.tuples(st.integers(0, 1 << 63), st.integers(0, 1 << 63), st.floats(0, 1e6)), max_size=40))
def test_pace_after_any_answers_asks_again_within_bounds(answers: list[tuple[int, int, float]]) -> None:
    """A node may name any block: none makes the next question come at once, or never."""
    pace, at = Pace(), 0.0
    for number, time, pause in answers:
        at += pause
        pace = pace.answered(at, number, time)
        assert at + FIRST_PAUSE - TOLERANCE <= pace.next_at <= at + SLOWEST + TOLERANCE


class Clock:
    """Stands for the module `time`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Node:
    blocks: Blocks
    clock: Clock
    chain_id: int = CHAIN_ID
    questions: list[float] = field(default_factory=list)
    is_told = False

    def follow(self, heard: object) -> None:
        pass

    def saw(self, number: int) -> None:
        pass

    def ask(self, *_: object) -> str:
        self.questions.append(self.clock.now)
        return "0x" + b"".join(part.to_bytes(32, "big") for part in self.blocks.newest(self.clock.now)).hex()


def test_heartbeat_asks_when_the_pace_says(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, clock = made(3, 12, 100, 0.1, 0.02, 0.0), Clock()
    clock.now = blocks.shown_at[0]
    node = Node(blocks, clock)
    monkeypatch.setattr(heartbeat, "time", clock)
    beating, seen = heartbeat.Heartbeat(node), -1  # type: ignore[arg-type]
    while seen < 99:
        seen = beating.wait_after(seen, 2.0)
    questions, _ = followed(blocks)
    assert len(node.questions) == len(questions)
    assert node.questions == pytest.approx(questions, abs=0.02)  # of the clock's steps, at least a millisecond


def test_a_public_chain_of_four_blocks_a_second_is_asked_every_other_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arbitrum. A node also looks at the chain after each block that it knows."""
    count, clock = 4 * 600, Clock()
    node = Node(Blocks([n / 4 for n in range(count)], [1_700_000_000 + n // 4 for n in range(count)]), clock, 42_161)
    monkeypatch.setattr(heartbeat, "time", clock)
    beating, seen = heartbeat.Heartbeat(node), -1  # type: ignore[arg-type]
    while clock.now < 590:
        seen = beating.wait_after(seen, 2.0)
        assert beating.look("hospital", ()).number == seen
    assert len(node.questions) <= 590 / PUBLIC_PAUSE + 1
    assert seen >= 4 * (clock.now - PUBLIC_PAUSE) - 1
