"""What a round pays and slashes: the contract's arithmetic in plain integers, and in words for every account.

Pure: no I/O, no clock, no randomness. A reference for `phases/Settling.sol` and `libraries/{Payouts,Medians}.sol`,
held to the same vectors (`tests/vectors/settlement.json`). Amounts in the token's smallest unit, scores in millionths,
sets of hospitals, voters and cohorts as bit maps over their indices. Every division rounds down, so that parts never
exceed the whole; what is left stays in the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from consilium_chain.errors import SettlementInvalid
from consilium_chain.task_spec import MICRO, TOKEN
from consilium_chain.views import PayoutReason, Role, TaskParams, VoidReason, members

BASIS_POINTS = 10_000

# --- libraries/Payouts.sol, libraries/Medians.sol ------------------------------------------------------------------


def portion(amount: int, basis_points: int) -> int:
    return amount * basis_points // BASIS_POINTS


def penalty(bond: int, basis_points: int, left: int) -> int:
    """A slash of `basis_points` of `bond`, as far as what is `left` of it reaches."""
    return min(portion(bond, basis_points), left)


def budget(pool: int, rounds: int, left: int) -> int:
    """What a round may pay: an even part of the pool, as far as what is `left` of it reaches."""
    return min(pool // rounds, left)


def gain(weight: int, median: int) -> int:
    """A hospital's claim on the hospitals' part: weight times improvement, nothing for none."""
    return weight * median if median > 0 else 0


def share(amount: int, part: int, whole: int) -> int:
    """`amount` times `part` of `whole`; nothing of nothing."""
    return amount * part // whole if whole else 0


def reach(median: int, tolerance_abs: int, tolerance_bps: int) -> int:
    """How far from the median a score may lie and still be paid."""
    return tolerance_abs + portion(abs(median), tolerance_bps)


def is_near(score: int, median: int, tolerance_abs: int, tolerance_bps: int) -> bool:
    return abs(score - median) <= reach(median, tolerance_abs, tolerance_bps)


def lower_median(values: Sequence[int]) -> int:
    """The element at place (n - 1) // 2 of the n >= 1 values in ascending order: one of them, never an average."""
    return sorted(values)[(len(values) - 1) // 2]


# --- what settling reads -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """The part of a task's parameters that settling reads. Shares and slashes in basis points."""

    pool: int
    rounds: int
    hospital_bond: int
    voter_bond: int
    min_reveals: int
    accept_floor: int
    harmful_below: int
    tolerance_abs: int
    tolerance_bps: int
    hospital_share_bps: int
    voter_share_bps: int
    aggregator_share_bps: int
    harmful_slash_bps: int
    not_revealed_slash_bps: int

    @classmethod
    def of(cls, params: TaskParams) -> Terms:
        return cls(**{name: getattr(params, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class RoundRecord:
    """A round as it stands when `settle` is called. `scores[v]` are voter v's, one per cohort; None if not revealed."""

    pool_left: int
    weights: tuple[int, ...]  # per hospital
    hospital_bonds: tuple[int, ...]  # what is left of each
    voter_bonds: tuple[int, ...]
    cohorts: tuple[int, ...]  # per cohort: bit map of its hospitals
    viable: int  # bit map of cohorts
    committed: int
    survivors: int
    seated: int
    scores: tuple[tuple[int, ...] | None, ...]

    def __post_init__(self) -> None:
        """Raises SettlementInvalid where no round on chain could look like this."""
        if len(self.weights) != len(self.hospital_bonds):
            raise SettlementInvalid(f"{len(self.weights)} weights for {len(self.hospital_bonds)} hospitals' bonds")
        if len(self.scores) != len(self.voter_bonds):
            raise SettlementInvalid(f"scores of {len(self.scores)} voters, but bonds of {len(self.voter_bonds)}")
        if self.revealed & ~self.seated:
            raise SettlementInvalid(f"voters {list(members(self.revealed & ~self.seated))} revealed without a seat")
        for voter in members(self.revealed):
            if len(self.scores_of(voter)) != len(self.cohorts):
                raise SettlementInvalid(f"voter {voter} scored not {len(self.cohorts)} cohorts")
        dealt = 0
        for cohort in self.cohorts:
            if dealt & cohort:
                raise SettlementInvalid(f"hospitals {list(members(dealt & cohort))} are in two cohorts")
            dealt |= cohort
        known = {
            "viable": (self.viable, (1 << len(self.cohorts)) - 1),
            "cohorts": (dealt, (1 << len(self.weights)) - 1),
            "committed": (self.committed, dealt),
            "survivors": (self.survivors, self.committed),
            "seated": (self.seated, (1 << len(self.voter_bonds)) - 1),
        }
        for name, (part, whole) in known.items():
            if part & ~whole:
                raise SettlementInvalid(f"{name} names {list(members(part & ~whole))}, whom the round does not have")

    @property
    def revealed(self) -> int:
        return sum(1 << voter for voter, scores in enumerate(self.scores) if scores is not None)

    def scores_of(self, voter: int) -> tuple[int, ...]:
        """Of a voter that revealed."""
        scores = self.scores[voter]
        if scores is None:
            raise SettlementInvalid(f"voter {voter} has not revealed")
        return scores

    def cohort_of(self, hospital: int) -> int | None:
        return next((k for k, cohort in enumerate(self.cohorts) if cohort >> hospital & 1), None)


# --- what settling decides -----------------------------------------------------------------------------------------


class Reason(StrEnum):
    """Why an account got what it got. Every account of the task has one."""

    PAID = "paid"
    VOID = "the round is void: too few revealed, nobody is paid"
    SAT_OUT = "was not dealt into a cohort"
    NOT_COMMITTED = "committed no update"
    NOT_IN_SUM = "its update is in no published sum"
    HARMFUL = "its cohort's median is below the harmful threshold"
    REJECTED = "its cohort's median is below the acceptance floor"
    NO_IMPROVEMENT = "its cohort was accepted but improved nothing"
    NO_SEAT = "had no seat"
    NOT_REVEALED = "held a seat and did not reveal"
    FAR = "a score is too far from the median"

    @property
    def code(self) -> PayoutReason:
        """What `explain` on chain says for it."""
        return PayoutReason[self.name]


@dataclass(frozen=True)
class Account:
    """One account's round: `reward` is `base` times `part` of `whole`, rounded down, when the reason is PAID."""

    role: Role
    index: int  # 0 for the aggregator
    base: int  # what its role shares in this round
    part: int  # its claim: weight times improvement, one seat, or weight in the sums
    whole: int  # all claims: of hospitals, seats taken, or weight committed
    reward: int
    slash: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True)
class Settlement:
    """The round's end. Conserved: `pool_left` after plus `paid` is what was in the pool; `burnt` leaves bonds."""

    void: VoidReason
    medians: tuple[int, ...]  # per cohort, 0 for one that was not judged; empty in a void round
    accepted: int  # bit map of cohorts
    harmful: int  # bit map of hospitals in the sums of harmful cohorts
    accounts: tuple[Account, ...]  # hospitals, voters, the aggregator
    pool_left: int

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
    """Judges, pays and slashes as `Settling.sol` does; O((hospitals + voters) × cohorts)."""
    revealed = record.revealed
    if revealed.bit_count() < terms.min_reveals:
        accounts = (
            *(_unpaid(Role.HOSPITAL, i, 0, Reason.VOID) for i in range(len(record.weights))),
            *(_void_voter(terms, record, i) for i in range(len(record.voter_bonds))),
            _unpaid(Role.AGGREGATOR, 0, 0, Reason.VOID),
        )
        return Settlement(VoidReason.TOO_FEW_SCORES, (), 0, 0, accounts, record.pool_left)

    medians = tuple(_median(record, revealed, k) for k in range(len(record.cohorts)))
    judged = _Judged(terms, record, medians)
    harmful = 0
    for cohort in members(record.viable):
        if medians[cohort] < terms.harmful_below:
            harmful |= record.cohorts[cohort] & record.survivors
    payable = budget(terms.pool, terms.rounds, record.pool_left)
    accounts = (
        *_hospitals(judged, portion(payable, terms.hospital_share_bps)),
        *_voters(judged, portion(payable, terms.voter_share_bps)),
        _aggregator(record, portion(payable, terms.aggregator_share_bps)),
    )
    left = record.pool_left - sum(account.reward for account in accounts)
    return Settlement(VoidReason.NONE, medians, judged.accepted, harmful, accounts, left)


@dataclass(frozen=True)
class _Judged:
    terms: Terms
    record: RoundRecord
    medians: tuple[int, ...]

    @property
    def accepted(self) -> int:
        return sum(1 << k for k in members(self.record.viable) if self.medians[k] >= self.terms.accept_floor)


def _median(record: RoundRecord, revealed: int, cohort: int) -> int:
    if not record.viable >> cohort & 1:
        return 0
    return lower_median([record.scores_of(voter)[cohort] for voter in members(revealed)])


def _hospitals(judged: _Judged, base: int) -> tuple[Account, ...]:
    record = judged.record
    gains = [0] * len(record.weights)
    for cohort in members(judged.accepted):
        for i in members(record.cohorts[cohort] & record.survivors):
            gains[i] = gain(record.weights[i], judged.medians[cohort])
    whole = sum(gains)
    return tuple(_hospital(judged, i, base, part, whole) for i, part in enumerate(gains))


def _hospital(judged: _Judged, index: int, base: int, part: int, whole: int) -> Account:
    terms, record = judged.terms, judged.record
    cohort = record.cohort_of(index)
    if cohort is None:
        return _unpaid(Role.HOSPITAL, index, base, Reason.SAT_OUT)
    if not record.committed >> index & 1:
        return _unpaid(Role.HOSPITAL, index, base, Reason.NOT_COMMITTED)
    if not record.survivors >> index & 1 or not record.viable >> cohort & 1:
        return _unpaid(Role.HOSPITAL, index, base, Reason.NOT_IN_SUM)
    median = judged.medians[cohort]
    detail = f"weight {record.weights[index]}, cohort {cohort} improved {_score(median)}"
    if median < terms.harmful_below:
        slash = penalty(terms.hospital_bond, terms.harmful_slash_bps, record.hospital_bonds[index])
        return Account(Role.HOSPITAL, index, base, 0, whole, 0, slash, Reason.HARMFUL, detail)
    if not judged.accepted >> cohort & 1:
        return Account(Role.HOSPITAL, index, base, 0, whole, 0, 0, Reason.REJECTED, detail)
    if part == 0:
        return Account(Role.HOSPITAL, index, base, 0, whole, 0, 0, Reason.NO_IMPROVEMENT, detail)
    return Account(Role.HOSPITAL, index, base, part, whole, share(base, part, whole), 0, Reason.PAID, detail)


def _voters(judged: _Judged, base: int) -> tuple[Account, ...]:
    seats = judged.record.seated.bit_count()
    accounts = []
    for i, scores in enumerate(judged.record.scores):
        if scores is None:
            accounts.append(_silent(judged.terms, judged.record, i, base))
        elif far := _far(judged, scores):
            accounts.append(Account(Role.VOTER, i, base, 0, seats, 0, 0, Reason.FAR, far))
        else:
            accounts.append(Account(Role.VOTER, i, base, 1, seats, share(base, 1, seats), 0, Reason.PAID))
    return tuple(accounts)


def _void_voter(terms: Terms, record: RoundRecord, index: int) -> Account:
    if record.scores[index] is None:
        return _silent(terms, record, index, 0)
    return _unpaid(Role.VOTER, index, 0, Reason.VOID)


def _silent(terms: Terms, record: RoundRecord, index: int, base: int) -> Account:
    """A voter without scores: slashed if it held a seat."""
    if not record.seated >> index & 1:
        return _unpaid(Role.VOTER, index, base, Reason.NO_SEAT)
    slash = penalty(terms.voter_bond, terms.not_revealed_slash_bps, record.voter_bonds[index])
    return Account(Role.VOTER, index, base, 0, record.seated.bit_count(), 0, slash, Reason.NOT_REVEALED)


def _far(judged: _Judged, scores: Sequence[int]) -> str:
    """The first cohort whose median is out of a voter's reach, in words; empty if there is none."""
    terms = judged.terms
    for cohort in members(judged.record.viable):
        score, median = scores[cohort], judged.medians[cohort]
        if not is_near(score, median, terms.tolerance_abs, terms.tolerance_bps):
            allowed = reach(median, terms.tolerance_abs, terms.tolerance_bps)
            return f"cohort {cohort}: {_score(score)} is more than {_score(allowed)} from the median {_score(median)}"
    return ""


def _aggregator(record: RoundRecord, base: int) -> Account:
    """Paid by how much of the committed weight made it into the sums."""
    part, whole = (sum(record.weights[i] for i in members(of)) for of in (record.survivors, record.committed))
    detail = f"brought weight {part} of {whole} into the sums"
    return Account(Role.AGGREGATOR, 0, base, part, whole, share(base, part, whole), 0, Reason.PAID, detail)


def _unpaid(role: Role, index: int, base: int, reason: Reason) -> Account:
    return Account(role, index, base, 0, 0, 0, 0, reason)


# --- in words ------------------------------------------------------------------------------------------------------


def explain(settlement: Settlement, role: Role, index: int = 0) -> str:
    """One account's round in a sentence or two: the amount, what it is a part of, and why it is reduced or nothing.

    Raises SettlementInvalid for an index that the task does not have.
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
    """An amount in whole tokens, exactly, with its unit."""
    whole, rest = divmod(amount, TOKEN)
    fraction = f".{rest:018d}".rstrip("0") if rest else ""
    return f"{whole}{fraction} token{'' if amount == TOKEN else 's'}"


def _score(millionths: int) -> str:
    """A score in the metric's own unit, exactly."""
    whole, rest = divmod(abs(millionths), MICRO)
    return f"{'-' if millionths < 0 else ''}{whole}.{rest:06d}"
