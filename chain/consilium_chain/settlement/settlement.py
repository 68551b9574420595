"""Rewards and slashes of a round: the contract's arithmetic in plain integers, with a reason for every account.

Pure: no I/O, no clock, no randomness. A reference for `phases/Settling.sol` and `libraries/Verdicts.sol`, with the same
vectors (`tests/vectors/settlement_rounds.jsonl`). Amounts in the token's smallest unit, scores in millionths, sets of
hospitals, voters and cohorts as bit maps over their indices. The unpaid part of a round is burnt in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from consilium_chain.errors import SettlementInvalid
from consilium_chain.ledger.structs import PayoutReason, Role, VoidReason, members
from consilium_chain.settlement.payouts import (
    counts,
    gain,
    is_near,
    lower_median,
    penalty,
    portion,
    rank_claim,
    ranking,
    reach,
    round_part,
    share,
)
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.money_spec import TOKEN


class Reason(StrEnum):
    """The reason for an account's result. Every account of the task has one."""

    PAID = "paid"
    VOID = "the round is void, so nobody is paid"
    NOT_DISCLOSED = "did not disclose the decoys"
    MISMATCHED = "most voters say that its publication or its named hospitals do not match"
    SAT_OUT = "was not assigned to a cohort"
    NOT_COMMITTED = "committed no update"
    NOT_IN_SUM = "its cohort has no published sum"
    WITHHELD = "its committed update is not in its cohort's sum"
    FALSE_UPLOAD = "its upload, its statement or its silence broke its cohort's sum"
    HARMFUL = "its cohort's median is below the harmful threshold"
    REJECTED = "its cohort's median is below the acceptance floor"
    NO_IMPROVEMENT = "its cohort was accepted but improved nothing"
    NO_SEAT = "had no seat"
    NOT_REVEALED = "held a seat and did not reveal"
    UNTESTED = "no cohort's medians distinguish its sum from its decoy, so no voter is paid"
    FAILED_DECOY = "rated a decoy no worse than the sum"
    FAR = "a score is too far from the median"
    LATE = "fixed survivors, published or disclosed in a grace period"

    @property
    def code(self) -> PayoutReason:
        """The same in the answer of `explain` on chain."""
        return PayoutReason[self.name]


@dataclass(frozen=True)
class Account:
    """One account's round: `reward` is `base` times `part` of `whole`, rounded down, when the reason is PAID."""

    role: Role
    index: int  # 0 for the aggregator
    base: int  # its role's share of this round
    reason: Reason
    detail: str = ""
    part: int = 0  # its claim: weight times improvement or its rank's, one seat, or weight in the sums
    whole: int = 0  # all claims: of hospitals, taken seats, or committed weight
    reward: int = 0
    slash: int = 0


@dataclass(frozen=True)
class Settlement:
    """A round's result. Conserved: `pool_left` plus `paid` is the earlier pool; `burnt` leaves bonds. `forfeited`: the
    part of `pool_left` that this round and earlier ones could have paid.
    """

    void: VoidReason
    medians: tuple[int, ...]  # per cohort, of its sum, 0 for one that was not judged; empty in a void round
    decoy_medians: tuple[int, ...]  # likewise of its decoy; empty without decoys
    counted: int  # bit map of the cohorts whose two medians hold voters to them
    accepted: int  # bit map of cohorts that move the model: in an arena of the best
    harmful: int  # bit map of hospitals in the sums of harmful cohorts
    guilty: int  # bit map of hospitals that broke a cohort's sum, as the committee agreed
    accounts: tuple[Account, ...]  # hospitals, voters, the aggregator
    pool_left: int
    forfeited: int

    @property
    def paid(self) -> int:
        return sum(account.reward for account in self.accounts)

    @property
    def burnt(self) -> int:
        return sum(account.slash for account in self.accounts)

    def account(self, role: Role, index: int = 0) -> Account:
        """Raises SettlementInvalid for an index that the task does not have."""
        for account in self.accounts:
            if (account.role, account.index) == (role, index):
                return account
        raise SettlementInvalid(f"the task has no {role.name.lower()} {index}")


def settle(terms: Terms, record: RoundRecord) -> Settlement:
    """Judges, pays and slashes as `Settling.sol`; O((hospitals + voters) × cohorts).

    Raises SettlementInvalid if no round with these terms can have this record.
    """
    record.require_fits(terms)
    payable = round_part(terms.pool, terms.rounds, record.pool_left - record.forfeited)
    void = _void_reason(terms, record)
    if void is not VoidReason.NONE:
        void_accounts = tuple(_void_accounts(terms, record, void))
        return Settlement(void, (), (), 0, 0, 0, 0, void_accounts, record.pool_left, record.forfeited + payable)

    judged = _Judged(terms, record)
    accounts = (
        *_hospitals(judged, portion(payable, terms.hospital_share_bps)),
        *_voters(judged, portion(payable, terms.voter_share_bps)),
        _aggregator(record, portion(payable, terms.aggregator_share_bps)),
    )
    paid = sum(account.reward for account in accounts)
    return Settlement(
        void=void,
        medians=judged.medians,
        decoy_medians=judged.decoy_medians,
        counted=judged.counted,
        accepted=judged.accepted,
        harmful=judged.harmful,
        guilty=record.named,
        accounts=accounts,
        pool_left=record.pool_left - paid,
        forfeited=record.forfeited + payable - paid,
    )


# --- void rounds ---------------------------------------------------------------------------------------------------


def _void_reason(terms: Terms, record: RoundRecord) -> VoidReason:
    revealed, mismatched = record.revealed.bit_count(), _accusers(terms, record).bit_count()
    if revealed >= terms.min_reveals and 2 * mismatched > revealed:
        return VoidReason.MISMATCHED
    if revealed - mismatched < terms.min_reveals:
        return VoidReason.TOO_FEW_SCORES
    is_closed = (
        terms.decoys and record.flipped is None and record.viable != 0
    )  # without a sum, there are no decoys to disclose
    return VoidReason.NOT_DISCLOSED if is_closed else VoidReason.NONE


def _accusers(terms: Terms, record: RoundRecord) -> int:
    """Bit map of voters who say that the publication or the named hospitals do not match, if that is a valid ballot."""
    return record.mismatched if terms.decoys or terms.digests or record.named else 0


def _void_accounts(terms: Terms, record: RoundRecord, void: VoidReason) -> Iterator[Account]:
    for i in range(len(record.weights)):
        yield _withheld(terms, record, i, 0) or Account(Role.HOSPITAL, i, 0, Reason.VOID)
    for i, scores in enumerate(record.scores):
        yield _silent(terms, record, i, 0) if scores is None else Account(Role.VOTER, i, 0, Reason.VOID)
    if void is VoidReason.TOO_FEW_SCORES:
        yield Account(Role.AGGREGATOR, 0, 0, Reason.VOID)
    else:
        slash = penalty(terms.aggregator_bond, terms.not_published_slash_bps, record.aggregator_bond)
        yield Account(Role.AGGREGATOR, 0, 0, Reason[void.name], slash=slash)


# --- judged rounds -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judged:
    """The committee's verdict by medians. Cohorts and hospitals as bit maps."""

    terms: Terms
    record: RoundRecord

    @cached_property
    def medians(self) -> tuple[int, ...]:
        return self._medians(self.record.genuine_of)

    @cached_property
    def decoy_medians(self) -> tuple[int, ...]:
        return self._medians(self.record.decoy_of) if self.terms.decoys else ()

    @cached_property
    def accepted(self) -> int:
        if self.is_arena:
            return sum(1 << k for k in self.ranking[:1])
        return self._cohorts(lambda k: not self.is_rejected(k))

    @property
    def is_arena(self) -> bool:
        return self.terms.rank_decay_bps != 0

    @cached_property
    def ranking(self) -> list[int]:
        """An arena's cohorts with a rank, the best first."""
        return ranking(self.medians, self.terms.rank_floor)

    def is_rejected(self, cohort: int) -> bool:
        return self.medians[cohort] < self.terms.accept_floor

    def gains(self) -> list[int]:
        """Hospitals' claims."""
        record, found = self.record, [0] * len(self.record.weights)
        if self.is_arena:  # each hospital is alone in its cohort
            for rank, cohort in enumerate(self.ranking):
                for i in members(record.cohorts[cohort] & record.survivors):
                    found[i] = rank_claim(rank, self.terms.rank_decay_bps)
            return found
        for cohort in members(self.accepted):
            for i in members(record.cohorts[cohort] & record.survivors):
                found[i] = gain(record.weights[i], self.medians[cohort])
        return found

    @cached_property
    def counted(self) -> int:
        floor, margin = self.terms.accept_floor, self.terms.decoy_margin
        if not self.terms.decoys:
            return 0
        return self._cohorts(lambda k: counts(self.medians[k], self.decoy_medians[k], floor, margin))

    @cached_property
    def harmful(self) -> int:
        cohorts = self._cohorts(lambda k: self.medians[k] < self.terms.harmful_below)
        return sum(self.record.cohorts[k] & self.record.survivors for k in members(cohorts))

    def _cohorts(self, holds: Callable[[int], bool]) -> int:
        return sum(1 << k for k in members(self.record.viable) if holds(k))

    def _medians(self, score: Callable[[int, int], int]) -> tuple[int, ...]:
        voters = list(members(self.record.revealed & ~_accusers(self.terms, self.record)))
        return tuple(
            lower_median([score(voter, k) for voter in voters]) if self.record.viable >> k & 1 else 0
            for k in range(len(self.record.cohorts))
        )


def _hospitals(judged: _Judged, base: int) -> Iterator[Account]:
    record = judged.record
    gains = judged.gains()
    whole = sum(gains)
    for i, part in enumerate(gains):
        is_named = record.named >> i & 1  # costs more than withholding an upload, and nobody is slashed twice
        withheld = None if is_named else _withheld(judged.terms, record, i, base)
        yield withheld or _hospital(judged, i, base, part, whole)


def _hospital(judged: _Judged, index: int, base: int, part: int, whole: int) -> Account:
    terms, record = judged.terms, judged.record
    cohort = record.cohort_of(index)
    if cohort is None:
        return Account(Role.HOSPITAL, index, base, Reason.SAT_OUT)
    if not record.committed >> index & 1:
        return Account(Role.HOSPITAL, index, base, Reason.NOT_COMMITTED)
    if record.named >> index & 1:
        slash = penalty(terms.hospital_bond, terms.harmful_slash_bps, record.hospital_bonds[index])
        return Account(Role.HOSPITAL, index, base, Reason.FALSE_UPLOAD, f"cohort {cohort}", slash=slash)
    if not record.summed >> index & 1:
        return Account(Role.HOSPITAL, index, base, Reason.NOT_IN_SUM)
    detail = f"weight {record.weights[index]}, cohort {cohort} improved {_score(judged.medians[cohort])}"
    if judged.is_arena and cohort in judged.ranking:
        detail = f"rank {judged.ranking.index(cohort) + 1}, improved {_score(judged.medians[cohort])}"
    if judged.harmful >> index & 1:
        slash = penalty(terms.hospital_bond, terms.harmful_slash_bps, record.hospital_bonds[index])
        return Account(Role.HOSPITAL, index, base, Reason.HARMFUL, detail, whole=whole, slash=slash)
    if judged.is_rejected(cohort):
        return Account(Role.HOSPITAL, index, base, Reason.REJECTED, detail, whole=whole)
    if part == 0:
        return Account(Role.HOSPITAL, index, base, Reason.NO_IMPROVEMENT, detail, whole=whole)
    return Account(Role.HOSPITAL, index, base, Reason.PAID, detail, part, whole, share(base, part, whole))


def _withheld(terms: Terms, record: RoundRecord, index: int, base: int) -> Account | None:
    """A hospital that was left out of the survivors, in any round."""
    if not record.withheld >> index & 1:
        return None
    slash = min(terms.withheld_slash, record.hospital_bonds[index])
    return Account(Role.HOSPITAL, index, base, Reason.WITHHELD, slash=slash)


def _voters(judged: _Judged, base: int) -> Iterator[Account]:
    for i, scores in enumerate(judged.record.scores):
        yield _silent(judged.terms, judged.record, i, base) if scores is None else _voter(judged, i, base)


def _voter(judged: _Judged, index: int, base: int) -> Account:
    """A voter that revealed."""
    terms, record = judged.terms, judged.record
    seats = record.seated.bit_count()
    if terms.decoys and record.viable and not judged.counted:  # without a sum, no decoy tests voters
        return Account(Role.VOTER, index, base, Reason.UNTESTED, whole=seats)
    if _accusers(terms, record) >> index & 1:
        return Account(Role.VOTER, index, base, Reason.FAR, "it says that nothing matches", whole=seats)
    if failed := _failed(judged, index):
        slash = penalty(terms.voter_bond, terms.failed_decoy_slash_bps, record.voter_bonds[index])
        return Account(Role.VOTER, index, base, Reason.FAILED_DECOY, failed, whole=seats, slash=slash)
    if far := _far(judged, index):
        return Account(Role.VOTER, index, base, Reason.FAR, far, whole=seats)
    return Account(Role.VOTER, index, base, Reason.PAID, "", 1, seats, share(base, 1, seats))


def _silent(terms: Terms, record: RoundRecord, index: int, base: int) -> Account:
    """A voter without scores: slashed if it held a seat."""
    if not record.seated >> index & 1:
        return Account(Role.VOTER, index, base, Reason.NO_SEAT)
    slash = penalty(terms.voter_bond, terms.not_revealed_slash_bps, record.voter_bonds[index])
    return Account(Role.VOTER, index, base, Reason.NOT_REVEALED, whole=record.seated.bit_count(), slash=slash)


def _failed(judged: _Judged, voter: int) -> str:
    """The first counted cohort whose decoy the voter rates no worse than the sum, in words; empty without one."""
    for cohort in members(judged.counted):
        genuine, decoy = judged.record.genuine_of(voter, cohort), judged.record.decoy_of(voter, cohort)
        if genuine <= decoy:
            return f"cohort {cohort}: {_score(decoy)} for the decoy, {_score(genuine)} for the sum"
    return ""


def _far(judged: _Judged, voter: int) -> str:
    """The first cohort whose median is out of the voter's reach, in words; empty without one."""
    terms = judged.terms
    for cohort in members(judged.record.viable):
        score, median = judged.record.genuine_of(voter, cohort), judged.medians[cohort]
        if not is_near(score, median, terms.tolerance_abs, terms.tolerance_bps):
            allowed = reach(median, terms.tolerance_abs, terms.tolerance_bps)
            return f"cohort {cohort}: {_score(score)} is more than {_score(allowed)} from the median {_score(median)}"
    return ""


def _aggregator(record: RoundRecord, base: int) -> Account:
    """Paid by the share of the committed weight in the sums, if each step was in time."""
    part, whole = (sum(record.weights[i] for i in members(of)) for of in (record.summed, record.committed))
    detail = f"brought weight {part} of {whole} into the sums"
    if record.late:
        return Account(Role.AGGREGATOR, 0, base, Reason.LATE, detail, part, whole)
    return Account(Role.AGGREGATOR, 0, base, Reason.PAID, detail, part, whole, share(base, part, whole))


# --- in words ------------------------------------------------------------------------------------------------------


def explain(settlement: Settlement, role: Role, index: int = 0) -> str:
    """One account's round in a sentence or two: the amount, its base, and the reason if it is reduced or zero.

    Raises SettlementInvalid for an unknown index.
    """
    account = settlement.account(role, index)
    who = "aggregator" if role is Role.AGGREGATOR else f"{role.name.lower()} {index}"
    detail = f" ({account.detail})" if account.detail else ""
    if account.reason is Reason.PAID:
        return (
            f"{who}: paid {tokens(account.reward)}, {account.part} of {account.whole} claims on"
            f" {tokens(account.base)}, rounded down{detail}"
        )
    slashed = f"; slashed {tokens(account.slash)}" if account.slash else ""
    return f"{who}: paid nothing: {account.reason}{detail}{slashed}"


def tokens(amount: int) -> str:
    """An exact amount in whole tokens, with its unit."""
    whole, rest = divmod(amount, TOKEN)
    fraction = f".{rest:018d}".rstrip("0") if rest else ""
    return f"{whole}{fraction} token{'' if amount == TOKEN else 's'}"


def _score(millionths: int) -> str:
    """An exact score in the metric's unit."""
    whole, rest = divmod(abs(millionths), MICRO)
    return f"{'-' if millionths < 0 else ''}{whole}.{rest:06d}"
