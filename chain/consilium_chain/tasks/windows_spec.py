"""The windows of a task's phases."""

from __future__ import annotations

from typing import Annotated

from consilium_core.typed_toml import Section
from pydantic import Field

from consilium_chain.tasks.training_specs import UINT32

Seconds = Annotated[int, Field(ge=1, le=UINT32)]


class WindowsSpec(Section):
    """The longest time of each phase, in seconds. A phase ends early when all have done their part."""

    join: Seconds = Field(default=120, description="to join, from the proposal on")
    commit: Seconds = Field(default=60, description="to train and to commit")
    upload: Seconds = Field(default=60, description="to upload")
    publish: Seconds = Field(default=30, description="to publish sums, to dispute them, and to show decoys")
    score: Seconds = Field(default=60, description="to evaluate and to commit to scores")
    reveal: Seconds = Field(default=30, description="to reveal scores")

    def longest(self, rounds: int) -> int:
        """The longest duration of a task with this many training rounds, in seconds, with a live beacon.

        Each round takes all of its windows: half of an upload or publication more if late, three publications for a
        dispute, one and a half for disclosing decoys. A dead beacon adds a week, which the contract counts too
        (`task_spec.BEACON_DAYS`).
        """
        halves = 2 * (self.commit + self.score + self.reveal) + 3 * self.upload + 12 * self.publish
        return self.join + -(-(rounds + 1) * halves // 2)
