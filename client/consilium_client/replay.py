"""The model as the public record gives it: nobody is asked for a base model, everybody derives it.

A base is the initial parameters plus, for each settled round, the weighted mean of the accepted cohorts' published
sums. Elementwise IEEE arithmetic in a fixed order: every machine gets the same bits.
"""

from __future__ import annotations

import numpy as np
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger import Ledger
from consilium_chain.sums import CohortSum, PublishedSums
from consilium_chain.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_chain.views import STATISTICS_ROUND, Outcome, RoundState
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

from consilium_client.errors import RetreatMismatched, StatisticsOutOfRange
from consilium_client.models import Vector, model_of
from consilium_client.standardise import public_sums
from consilium_client.task import JoinedTask

FIRST_ROUND = STATISTICS_ROUND + 1  # of training
_CHUNK = 1 << 15  # values at a time, which stay in cache, and need no other memory of the model's size


class PublicRecord:
    """Derives a task's models from chain and artifact store, and keeps the first and the latest two, whatever number of
    rounds there is.

    Everything here raises RecordIncomplete, ArtifactMissing or ArtifactCorrupt where the record does not give it.
    """

    def __init__(self, ledger: Ledger, store: ArtifactStore, task: JoinedTask) -> None:
        self._ledger, self._task = ledger, task
        spec = task.spec
        self.sums = PublishedSums(ledger, store, task.number, spec)
        self._quantiser = Quantiser(spec.update.bits, spec.update.value_range)
        first = model_of(spec).initial(seed=int.from_bytes(task.params.spec_hash[:8], "big"))
        self._bases: dict[int, Vector] = {FIRST_ROUND: first}

    def statistics(self) -> NDArray[np.float64]:
        """What everybody standardises by: float64 (statistics_values,). Raises StatisticsOutOfRange.

        By the schema, whatever round 0 brought; in a task with exact statistics, round 0's sums over all hospitals.
        """
        if self._task.spec.statistics == "schema":
            return public_sums(self._task.spec.data)
        state = self._ledger.round_state(self._task.number, STATISTICS_ROUND)
        if state.outcome is not Outcome.SETTLED:
            raise RecordIncomplete(f"round 0 of task {self._task.number} is not settled")
        found = self.sums.cohort_sum(STATISTICS_ROUND, 0, state)
        if found is None:
            raise StatisticsOutOfRange(self._task.number)
        return Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(found.lanes, found.weight)

    def base(self, round_: int) -> Vector:
        """The model that round `round_` (1 …) starts from: float32 (p,)."""
        for done in range(max(known for known in self._bases if known <= round_), round_):
            self._bases[done + 1] = self._apply(self._bases[done], self.sums.accepted(done))
            # The first one stays, so that any other can be derived anew.
            self._bases = {k: base for k, base in self._bases.items() if k >= done or k == FIRST_ROUND}
        return self._bases[round_]

    def candidates(self, round_: int, cohort: int, state: RoundState) -> list[Vector | None]:
        """Base plus a cohort's mean update: as published, and in a canary round turned. None for no valid model."""
        found = self.sums.readings(round_, cohort, state)
        return [None if one is None else self._apply(self.base(round_), one) for one in found]

    def require_canaries(self, round_: int) -> None:
        """Raises RetreatMismatched unless the aggregator has said of this canary round what the record gives.

        The contract takes what canaries take back from the aggregator: voters see that it is not of its own choosing.
        """
        published = self._ledger.canaries_set(self._task.number, round_)
        if published is None:
            raise RecordIncomplete(f"what the canaries of round {round_} take back is not on this chain node")
        expected = self.sums.retreat(round_).digest
        if published.retreat_digest != expected:
            raise RetreatMismatched(round_, published.retreat_digest, expected)

    def _apply(self, base: Vector, total: CohortSum | None) -> Vector:
        if total is None:
            return base
        model = base.copy()
        for start in range(0, model.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            model[part] += self._quantiser.dequantise_mean(total.lanes[part], total.weight).astype(np.float32)
        return model
