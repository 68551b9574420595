"""When to ask a chain node for the next block: a pure function of the answers so far.

`at` is a monotonic clock in seconds, and need not agree with the chain's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two questions while blocks come fast, or their time is unknown
PUBLIC_PAUSE = 2.0  # seconds, at least, between two questions to a public chain: some have a block in a quarter of one
GROWTH = 1.5  # of a pause, after each answer without a new block
FAST = 1.5  # seconds: local chains, whose blocks also come between two beats
SLOWEST = 60.0  # seconds
SAMPLES = 1_000  # blocks whose distance counts
LEAST_SAMPLES = 2  # a local chain's clock may be moved forward
# Parts of a block's time. A question that comes too early costs another one, and all questions after it come later.
# They then come earlier bit by bit. So one in 26 is too early, by any spread of blocks' arrivals.
LATER, EARLIER = 1 / 12, 1 / 300
SKIPPED_GROWTH = 3.0  # of the pauses until the next slot
CLOCK_ERROR = 1e-3  # seconds


@dataclass(frozen=True)
class Pace:
    """The newest block known, and when to ask for the next one. Times in seconds.

    `gaps`: the latest distances of blocks. `block_seconds`: a distance that nine in ten of them exceed, so that skipped
    slots make no chain slow, a reorganisation makes none fast, and a local chain may rest. None while it is unknown.
    `lag`: after a block's own time, the first question for it. `least_pause`: between two questions while blocks come
    fast, or their time is unknown.
    """

    number: int = -1
    time: int = 0
    gaps: tuple[float, ...] = ()
    block_seconds: float | None = None
    lag: float = 0.0
    asked_at: float = float("-inf")
    misses: int = 0  # answers without a new block since that block, from when the next one was due
    next_at: float = float("-inf")
    least_pause: float = FIRST_PAUSE

    @property
    def is_fast(self) -> bool:
        """True if a new block may be there at any time, or if the blocks' time is unknown."""
        return self.block_seconds is None or self.block_seconds <= FAST

    @property
    def may_lag(self) -> bool:
        """True if the newest block that is known may be used until the next question is due."""
        return not self.is_fast or self.least_pause > FIRST_PAUSE

    def answered(self, at: float, number: int, time: int) -> Pace:
        """The pace after the node named its newest block, by its number and its time on the chain's clock."""
        if number > self.number:
            found = self._after_block(at, number, time)
        elif number < self.number:  # the chain was reorganised, or another node answered
            found = replace(self, number=number, time=time)._after_miss(at)
        else:
            found = self._after_miss(at)
        return replace(found, asked_at=at)

    def due(self) -> Pace:
        """The pace once there is a reason to ask at once."""
        return replace(self, next_at=float("-inf"))

    @property
    def expected_at(self) -> float:
        """When the next block should be there. Only for a pace that is not fast."""
        return self.time + (self.block_seconds or 0.0) + self.lag

    def _after_block(self, at: float, number: int, time: int) -> Pace:
        gap = (time - self.time) / (number - self.number)
        gaps, seconds = self.gaps, self.block_seconds
        if self.number >= 0 and gap >= 0:
            gaps = (*gaps, gap)[-SAMPLES:]
            if len(gaps) >= LEAST_SAMPLES:
                seconds = min(sorted(gaps)[len(gaps) // 10], SLOWEST)
        known = replace(self, number=number, time=time, gaps=gaps, block_seconds=seconds, misses=0)
        if known.is_fast or seconds is None:
            return replace(known, next_at=at + self.least_pause)
        lag, missing_after = self.lag, self.asked_at - time
        if self.is_fast:
            lag = at - time
        elif self.misses and missing_after >= lag - CLOCK_ERROR:  # else the chain skipped a slot
            lag = missing_after + LATER * seconds
        elif not self.misses and at <= self.next_at + LATER * seconds:
            lag -= EARLIER * seconds
        known = replace(known, lag=min(lag, at - time))
        return replace(known, next_at=min(max(at + FIRST_PAUSE, known.expected_at), at + seconds))

    def _after_miss(self, at: float) -> Pace:
        seconds = self.block_seconds
        missed = replace(self, misses=self.misses + 1)
        if self.is_fast or seconds is None:
            pause = min(FIRST_PAUSE * GROWTH ** min(self.misses, 20), LONGEST_PAUSE)
            return replace(missed, next_at=at + max(pause, self.least_pause))
        if at < self.expected_at - LATER * seconds:  # somebody asked for another reason
            return replace(self, next_at=min(self.expected_at, at + seconds))
        pause = LATER * seconds * SKIPPED_GROWTH ** min(self.misses, 20)
        into_slot = (at - self.expected_at) % seconds
        return replace(missed, next_at=at + max(FIRST_PAUSE, min(pause, seconds - into_slot)))
