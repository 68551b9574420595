"""The pay of a task's rounds by its pool, and the largest pool. Amounts in the token's smallest unit."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.ledger.structs import TaskParams
from consilium_chain.settlement.payouts import BASIS_POINTS, portion, round_part
from consilium_chain.tasks.task_spec import SLASH_PER_FEE


@dataclass(frozen=True)
class RoundPay:
    """The most that one round pays, by role."""

    hospitals: int
    voters: int
    aggregator: int


def round_pay(params: TaskParams, pool: int) -> RoundPay:
    """The pay of a round in a task of these terms with this pool."""
    payable = round_part(pool, params.rounds, pool)
    shares = params.hospital_share_bps, params.voter_share_bps, params.aggregator_share_bps
    return RoundPay(*(portion(payable, share) for share in shares))


def room_in_pool(params: TaskParams) -> int | None:
    """The most that `fund` may add: with more, what the aggregator loses for letting a round go by would not be twice
    the fee of one any more (`TaskRules.sol`). None without a limit, where rounds pay the aggregator nothing.
    """
    if params.aggregator_share_bps == 0:
        return None
    fee = portion(params.aggregator_bond, params.not_published_slash_bps) // SLASH_PER_FEE
    payable = ((fee + 1) * BASIS_POINTS - 1) // params.aggregator_share_bps  # the most whose portion is that fee
    return payable * params.rounds + params.rounds - 1 - params.pool
