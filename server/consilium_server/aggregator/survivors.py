"""The hospitals of a round whose updates its sums may hold: asked to upload first, then fixed as survivors."""

from __future__ import annotations

from consilium_chain.ledger.structs import RoundState, members
from consilium_core.logs import emit

from consilium_server.aggregator.round_work import RoundWork
from consilium_server.aggregator.task import AggregatedTask


def uploaders(task: AggregatedTask, work: RoundWork, round_state: RoundState) -> int:
    """Bit map of the hospitals that are asked to upload: all who committed.

    In a masked task only those in a large enough masking: others upload nothing, and their cohort has no sum.
    """
    committed, known = round_state.committed, work.known
    if not task.params.masked:
        return committed
    if known.uploaders is None or known.uploaders[0] != committed:
        found = 0
        for cohort in _viable_cohorts(task, work, round_state):
            masking = work.masking(cohort, committed)
            if len(masking) >= _least(task, work, cohort):
                found |= sum(1 << index for index in masking)
        known.uploaders = committed, found
    return known.uploaders[1]


def fix_survivors(task: AggregatedTask, work: RoundWork, round_state: RoundState) -> None:
    """Fixes on chain whose updates the sums hold. Raises Refused.

    If a reorganisation took back the block that had them, they stay: hospitals answer for no others.
    """
    survivors = _survivors(task, work, round_state) if work.survivors is None else work.survivors
    receipt = task.ledger.aggregator.fix_survivors(task.number, work.number, survivors)
    work.survivors = survivors
    emit("survivors-fixed", round=work.number, survivors=survivors.bit_count(), gas=receipt.gas_used)


def _survivors(task: AggregatedTask, work: RoundWork, round_state: RoundState) -> int:
    """Bit map of those who uploaded soundly, in cohorts where enough did for their sum to be had."""
    survivors = 0
    for cohort in _viable_cohorts(task, work, round_state):
        sound = work.sound_statements(cohort, round_state.committed)
        uploaded = sum(1 << index for index in sound) & work.arrived & round_state.committed
        if uploaded.bit_count() >= _least(task, work, cohort):
            survivors |= uploaded
    return survivors


def _viable_cohorts(task: AggregatedTask, work: RoundWork, round_state: RoundState) -> list[int]:
    """Bit maps of their members."""
    ledger = task.ledger
    return [ledger.tasks.cohort_members(task.number, work.number, c) for c in members(round_state.viable_cohorts)]


def _least(task: AggregatedTask, work: RoundWork, cohort: int) -> int:
    """Fewest survivors with which a masked cohort, by its members' bit map, has a sum."""
    return max(task.params.min_cohort_size, work.masked_cohort(cohort).least)
