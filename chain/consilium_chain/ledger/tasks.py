"""Reads of the task contract."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.structs import Hospital, Payout, Phase, RoundState, TaskParams, TaskState, Voter


class Tasks:
    """Every method raises ChainUnreachable, DeploymentInvalid, and Refused for an unknown task or round.

    `block`: as of that block, by default the latest.
    """

    def __init__(self, contracts: Contracts) -> None:
        self._contracts, self._tasks = contracts, contracts.tasks

    def count(self, block: int | None = None) -> int:
        return int(self._tasks.read("taskCount", block=block))

    def params(self, task: int) -> TaskParams:
        return TaskParams.from_chain(self._tasks.read("params", task))

    def state(self, task: int, block: int | None = None) -> TaskState:
        return TaskState.from_chain(self._tasks.read("state", task, block=block))

    def shards(self, task: int) -> range:
        """The tasks that train one model with this one, itself included."""
        shard = self.state(task).shard
        if shard == 0:
            return range(task, task + 1)
        return range(task + 1 - shard, task + 1 - shard + self.params(task).shards)

    def have_shards_reached(self, task: int, round_: int) -> bool:
        """True if each other shard of the model is in this round, or in a later one, or has ended."""
        others = (self.state(other) for other in self.shards(task) if other != task)
        return all(other.phase is Phase.ENDED or other.round >= round_ for other in others)

    def have_shards_closed(self, task: int, round_: int) -> bool:
        """True if no other shard of the model takes commitments to this round any more."""
        others = [self.state(other) for other in self.shards(task) if other != task]
        open_ = [one for one in others if one.round <= round_ and one.phase <= Phase.COMMITTING]
        return all(one.phase is Phase.COMMITTING and one.deadline == 0 for one in open_)

    def round_state(self, task: int, round_: int) -> RoundState:
        return RoundState.from_chain(self._tasks.read("roundState", task, round_))

    def hospitals(self, task: int) -> list[Hospital]:
        return [Hospital.from_chain(raw) for raw in self._tasks.read("hospitals", task)]

    def voters(self, task: int) -> list[Voter]:
        return [Voter.from_chain(raw) for raw in self._tasks.read("voters", task)]

    def cohort_members(self, task: int, round_: int, cohort: int) -> int:
        """Bit map of hospitals."""
        return int(self._tasks.read("cohortMembers", task, round_, cohort))

    def cohort_of(self, task: int, round_: int, index: int) -> int | None:
        """The number of a hospital's cohort, by its index; None outside all."""
        cohorts = range(self.round_state(task, round_).cohorts)
        return next((one for one in cohorts if self.cohort_members(task, round_, one) >> index & 1), None)

    def expected_blob_hashes(self, task: int, round_: int, cohort: int, count: int) -> list[bytes]:
        """Versioned hashes of a cohort's first `count` blobs, 32 bytes each; zero until they are known."""
        calls = [self._tasks.encode("expectedBlobHash", task, round_, cohort, blob) for blob in range(count)]
        return list(self._tasks.read("multicall", calls))

    def explain(self, task: int, round_: int, account: str) -> Payout:
        """An account's reward and slash in a round, with the reason."""
        return Payout.from_chain(self._tasks.read("explain", task, round_, account))

    def score_commitment(
        self, task: int, round_: int, scores: Sequence[int], salt: bytes, voter: str | None = None
    ) -> bytes:
        """The commitment to a ballot, 32 bytes. `salt`: 32 bytes; `voter`: by default this account."""
        account = voter or self._contracts.address
        return bytes(self._tasks.read("scoreCommitment", task, round_, account, list(scores), salt))

    def refundable(self, account: str, block: int | None = None) -> int:
        """The tokens that tasks owe to an operator."""
        return int(self._tasks.read("claimable", account, block=block))

    def total_refundable(self, block: int | None = None) -> int:
        return int(self._tasks.read("totalClaimable", block=block))
