"""From a task file to the terms that the contract enforces, and what they make of the pool: a round's pay, the largest
pool."""

from __future__ import annotations

from dataclasses import dataclass, replace

from consilium_chain.ledger.structs import TaskParams
from consilium_chain.settlement.payouts import BASIS_POINTS, portion, round_part
from consilium_chain.tasks.task_spec import MICRO, SLASH_PER_FEE, TOKEN, TaskSpec


def task_params(spec: TaskSpec, spec_hash: bytes, aggregator: str) -> TaskParams:
    """The contract's half of a task. Scores and thresholds in millionths, amounts in the smallest unit."""
    rounds, judging, money, windows = spec.rounds, spec.judging, spec.money, spec.windows
    return TaskParams(
        spec_hash=spec_hash,
        aggregator=aggregator,
        pool=money.pool * TOKEN,
        hospital_bond=money.hospital_bond * TOKEN,
        voter_bond=money.voter_bond * TOKEN,
        aggregator_bond=money.aggregator_bond * TOKEN,
        tick_bounty=money.tick_bounty * TOKEN,
        rounds=rounds.rounds,
        cohorts=rounds.cohorts,
        min_cohort_size=rounds.min_cohort_size,
        min_hospitals=rounds.min_hospitals,
        max_hospitals=rounds.max_hospitals,
        min_voters=judging.min_voters,
        max_voters=judging.max_voters,
        seats=judging.seats,
        min_reveals=judging.min_reveals,
        statistics_blobs=spec.statistics_blobs,
        update_blobs=spec.update_blobs,
        digests=spec.update.publication == "digests",
        canaries=judging.canaries,
        masked=spec.update.masked,
        update_bits=spec.update.bits,
        lane_bits=spec.update_layout.lane_bits,
        rows_per_weight=rounds.rows_per_weight,
        max_weight=rounds.max_weight,
        accept_floor=round(judging.accept_floor * MICRO),
        harmful_below=round(judging.harmful_below * MICRO),
        tolerance_abs=round(judging.tolerance * MICRO),
        tolerance_bps=judging.tolerance_bps,
        canary_margin=round(judging.canary_margin * MICRO),
        hospital_share_bps=money.hospital_share_bps,
        voter_share_bps=money.voter_share_bps,
        aggregator_share_bps=money.aggregator_share_bps,
        harmful_slash_bps=money.harmful_slash_bps,
        withheld_slash_bps=money.withheld_slash_bps,
        not_revealed_slash_bps=money.not_revealed_slash_bps,
        failed_canary_slash_bps=money.failed_canary_slash_bps,
        not_published_slash_bps=money.not_published_slash_bps,
        join_window=windows.join,
        commit_window=windows.commit,
        upload_window=windows.upload,
        publish_window=windows.publish,
        score_window=windows.score,
        reveal_window=windows.reveal,
    )


def keeps(on_chain: TaskParams, of_file: TaskParams) -> bool:
    """True if the contract enforces all of a file's terms. The pool may be larger (`fund`), never smaller."""
    return on_chain == with_pool_of(on_chain, of_file)


def with_pool_of(on_chain: TaskParams, of_file: TaskParams) -> TaskParams:
    """A file's terms as they stand on chain where they are kept."""
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
    """The most that `fund` may add: with more, what the aggregator loses for letting a round go by would not be twice
    the fee of one any more (`TaskRules.sol`). None without a limit, where rounds pay the aggregator nothing.
    """
    if params.aggregator_share_bps == 0:
        return None
    fee = portion(params.aggregator_bond, params.not_published_slash_bps) // SLASH_PER_FEE
    payable = ((fee + 1) * BASIS_POINTS - 1) // params.aggregator_share_bps  # the most whose portion is that fee
    return payable * params.rounds + params.rounds - 1 - params.pool
