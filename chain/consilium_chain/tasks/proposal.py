"""A task file's terms for the contract, and their consequences for the pool: a round's pay, and the largest pool."""

from __future__ import annotations

from dataclasses import dataclass, replace

from consilium_chain.ledger.structs import TaskParams
from consilium_chain.settlement.payouts import BASIS_POINTS, portion, round_part
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.money_spec import SLASH_PER_FEE, TOKEN
from consilium_chain.tasks.task_spec import TaskSpec


def task_params(spec: TaskSpec, spec_hash: bytes, aggregator: str) -> TaskParams:
    """The contract's half of a task. Scores and thresholds in millionths, amounts in the smallest unit."""
    judging, money, windows = spec.judging, spec.money, spec.windows
    amounts = ("pool", "hospital_bond", "voter_bond", "aggregator_bond", "tick_bounty")
    scores = ("accept_floor", "harmful_below", "decoy_margin", "rank_floor")
    # The other settings of these sections have the same names and units in the contract.
    of_file = {"metric", "plugin", "tolerance", "least_rows", "least_of_class"}
    values = spec.rounds.model_dump() | judging.model_dump(exclude=of_file) | money.model_dump()
    values |= {name: getattr(money, name) * TOKEN for name in amounts}
    values |= {name: round(getattr(judging, name) * MICRO) for name in scores}
    values |= {f"{phase}_window": seconds for phase, seconds in windows.model_dump().items()}
    return TaskParams(
        **values,
        spec_hash=spec_hash,
        aggregator=aggregator,
        tolerance_abs=round(judging.tolerance * MICRO),
        statistics_blobs=spec.statistics_blobs,
        update_blobs=spec.update_blobs,
        digests=spec.update.publication == "digests",
        masked=spec.update.masked,
        update_bits=spec.update.bits,
        lane_bits=spec.update_layout.lane_bits,
    )


def keeps(on_chain: TaskParams, of_file: TaskParams) -> bool:
    """True if the contract enforces all terms of a file. The pool may be larger (`fund`), never smaller."""
    return on_chain == with_pool_of(on_chain, of_file)


def with_pool_of(on_chain: TaskParams, of_file: TaskParams) -> TaskParams:
    """A file's terms with the pool on the chain, if that is larger."""
    return replace(of_file, pool=max(of_file.pool, on_chain.pool))


@dataclass(frozen=True)
class RoundPay:
    """The most that one round pays, by role, in the token's smallest unit."""

    hospitals: int
    voters: int
    aggregator: int


def round_pay(params: TaskParams, pool: int) -> RoundPay:
    """The pay of a round in a task of these terms with this pool."""
    payable = round_part(pool, params.rounds, pool)
    shares = params.hospital_share_bps, params.voter_share_bps, params.aggregator_share_bps
    return RoundPay(*(portion(payable, share) for share in shares))


def room_in_pool(params: TaskParams) -> int | None:
    """The most that `fund` may add, so that the aggregator's slash for a missed round stays at least twice its fee
    (`TaskRules.sol`). None without a limit, if rounds pay the aggregator nothing.
    """
    if params.aggregator_share_bps == 0:
        return None
    fee = portion(params.aggregator_bond, params.not_published_slash_bps) // SLASH_PER_FEE
    payable = ((fee + 1) * BASIS_POINTS - 1) // params.aggregator_share_bps  # the most whose portion is that fee
    return payable * params.rounds + params.rounds - 1 - params.pool
