"""The published sums of a model's shards: the tasks that train it together (docs/protocol.md).

A task that trains a model alone is its only shard. A round of a shard begins when all shards have settled the round
before (`Training.sol`), so every reader adds up the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, Phase, RoundState
from consilium_chain.rounds.sums import CohortSum, PublishedSums, added
from consilium_chain.tasks.task_spec import TaskSpec

States = Mapping[int, RoundState]  # of one round, by task


class ShardSums:
    """Adds up the sums of a model's shards. `own`: those of the task itself.

    Methods raise as `PublishedSums.accepted` does; RecordIncomplete also for a round that another shard has not
    settled.
    """

    def __init__(self, ledger: Ledger, store: ArtifactStore, task: int, spec: TaskSpec) -> None:
        self._ledger, self._store, self._task, self._spec = ledger, store, task, spec
        self.own = PublishedSums(ledger, store, task, spec)

    def states(self, round_: int) -> States:
        """The round in each shard that has played it. A shard that ended before it is left out."""
        found = {task: self._ledger.tasks.round_state(task, round_) for task in self._sums}
        return {task: state for task, state in found.items() if not self._never_came(task, state)}

    def accepted(self, round_: int, states: States) -> CohortSum | None:
        """The sum of the accepted cohorts of all shards in a training round; None without any."""
        return added(self._sums[task].accepted(round_, state) for task, state in states.items())

    def counted(self) -> CohortSum | None:
        """Round 0's sum over the hospitals of all shards. Shards whose sum is void or out of range are left out; None
        if all are."""
        states = self.states(STATISTICS_ROUND)
        for task, state in states.items():
            if state.outcome is Outcome.PENDING:
                raise RecordIncomplete(f"round 0 of task {task} is not settled")
        settled = {task: state for task, state in states.items() if state.outcome is Outcome.SETTLED}
        return added(self._sums[task].cohort_sum(STATISTICS_ROUND, 0, state) for task, state in settled.items())

    def forget(self, round_: int) -> None:
        """As `PublishedSums.forget`, in all shards."""
        for sums in self._sums.values():
            sums.forget(round_)

    @cached_property
    def _sums(self) -> dict[int, PublishedSums]:
        if self._spec.rounds.shards == 1:
            return {self._task: self.own}
        shards = self._ledger.tasks.shards(self._task)
        others = {
            task: PublishedSums(self._ledger, self._store, task, self._spec) for task in shards if task != self._task
        }
        return dict(sorted({self._task: self.own, **others}.items()))

    def _never_came(self, task: int, state: RoundState) -> bool:
        if state.outcome is not Outcome.PENDING or len(self._sums) == 1:
            return False
        return self._ledger.tasks.state(task).phase is Phase.ENDED
