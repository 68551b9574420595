"""A round's phases as spans, as the aggregator sees them on the chain. The round itself is the root of its trace."""

from __future__ import annotations

import time

from consilium_chain.ledger.structs import Phase
from consilium_core.tracing import record


class Timeline:
    def __init__(self, task: int) -> None:
        self._task = task
        self._round, self._phase = -1, ""  # before the first look
        self._round_began = self._phase_began = 0

    def look(self, round_: int, phase: str) -> None:
        """The present round and phase. Those before them are over."""
        if (round_, phase) == (self._round, self._phase):
            return
        has_ended = phase == Phase.ENDED.name
        self._close(is_round_over=has_ended or round_ != self._round)
        if has_ended:
            return
        now = time.time_ns()
        if round_ != self._round:
            self._round, self._round_began = round_, now
        self._phase, self._phase_began = phase, now

    def _close(self, is_round_over: bool) -> None:
        if not self._phase:
            return
        record(f"phase {self._phase.lower()}", self._phase_began, task=self._task, round=self._round, phase=self._phase)
        if is_round_over:
            record(f"round {self._round}", self._round_began, is_root=True, task=self._task, round=self._round)
        self._phase = ""
