"""What the reference makes of a task's first training round on a real chain, and whether the chain says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chain_driver import BOND, TaskDriver
from consilium_chain.ledger.structs import Outcome, Payout, Role, SlashReason, VoidReason
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Reason, Settlement, settle

Scores = Sequence[Sequence[int] | None]


def expected(task: TaskDriver, scores: Scores, flipped: int | None) -> Settlement:
    """What the reference makes of the task's first training round, before which nobody was paid or slashed. Every
    voter has a seat.
    """
    terms, state = Terms.of(task.params), task.operator.tasks.round_state(task.task, 1)
    record = RoundRecord(
        pool_left=task.params.pool,
        weights=tuple(hospital.weight for hospital in task.operator.tasks.hospitals(task.task)),
        hospital_bonds=(BOND,) * task.hospitals,
        voter_bonds=(BOND,) * task.voters,
        aggregator_bond=BOND,
        cohorts=tuple(task.operator.tasks.cohort_members(task.task, 1, k) for k in range(state.cohorts)),
        viable=state.viable_cohorts,
        committed=state.committed,
        survivors=state.survivors,
        flipped=flipped,
        seated=(1 << task.voters) - 1,
        scores=tuple(None if ballot is None else tuple(ballot) for ballot in scores),
        dropped=state.dropped_cohorts,
        named=state.named,
    )
    return settle(terms, record)


def assert_as_expected(task: TaskDriver, wanted: Settlement) -> None:
    """The chain's medians, payments, slashes and explanations of the first training round are the reference's."""
    state = task.operator.tasks.round_state(task.task, 1)
    outcome = Outcome.SETTLED if wanted.void is VoidReason.NONE else Outcome.VOID
    assert (state.outcome, state.void_reason) == (outcome, wanted.void)
    assert (state.medians, state.accepted_cohorts) == (wanted.medians, wanted.accepted)
    assert state.guilty == wanted.guilty
    addresses = {
        Role.HOSPITAL: [node.address for node in task.nodes],
        Role.VOTER: [judge.address for judge in task.judges],
        Role.AGGREGATOR: [task.aggregator.address],
    }
    paid, slashed = Counter[str](), Counter[str]()
    for event in task.events("Rewarded"):
        paid[event["account"]] += event["amount"]
    for event in task.events("Slashed"):
        slashed[event["account"]] += event["amount"]
    for account in wanted.accounts:
        address = addresses[account.role][account.index]
        assert (paid.pop(address, 0), slashed.pop(address, 0)) == (account.reward, account.slash), account
        assert task.operator.tasks.explain(task.task, 1, address) == Payout(
            account.role, account.reason.code, account.base, account.part, account.whole, account.reward, account.slash
        )
    assert (paid, slashed) == ({}, {})
    assert task.chain.unaccounted() == 0


def reasons(wanted: Settlement, role: Role) -> list[Reason]:
    return [account.reason for account in wanted.accounts if account.role is role]


def slashes(task: TaskDriver) -> list[tuple[str, int, SlashReason]]:
    return [(e["account"], e["amount"], SlashReason(e["reason"])) for e in task.events("Slashed")]
