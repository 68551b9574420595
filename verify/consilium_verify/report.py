"""The report of a verification as plain values: checks, derived values, proven and unproven claims. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from consilium_client.models import digest_of
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, computed_field


class Result(StrEnum):
    HOLDS = "holds"
    FAILS = "FAILS"
    UNCHECKED = "not checked"


VERBS = {Result.FAILS: "fails", Result.UNCHECKED: "was not checked"}


class Name(StrEnum):
    """Checks, in the order in which they are made."""

    TASK_FILE = "task file"
    DECOYS = "decoys"
    SUMS = "sums"
    BLOBS = "blobs"
    LANES = "lanes"
    CHEATERS = "cheaters"
    BASES = "bases"
    MODEL = "model"
    SETTLEMENT = "settlement"


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True)


class Check(_Plain):
    """`detail`: the compared values. A failed check has a line for each fault, accused cohorts have one for each
    hospital.
    """

    name: Name
    result: Result
    detail: str


class Derived(_Plain):
    """Values that two verifiers can compare by the SHA-256 of their bytes, little-endian and in order."""

    what: str
    values: int
    type: str
    sha256: str


class Subject(_Plain):
    """The round that was checked, and the node that was asked."""

    task: int
    round: int
    rounds: int
    outcome: str
    chain_id: int
    contract: str
    node: str
    survivors: int


class Report(_Plain):
    """Round-trips through JSON (`model_dump_json`, `model_validate_json`)."""

    subject: Subject
    checks: tuple[Check, ...]
    derived: tuple[Derived, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def holds(self) -> bool:
        """True if no check fails. A check that was not made is listed as not proven."""
        return not self.failed

    @computed_field  # type: ignore[prop-decorator]
    @property
    def proven(self) -> tuple[str, ...]:
        return tuple(claim.filled(self.subject) for claim in _CLAIMS if claim.holds(self._by_name))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def not_proven(self) -> tuple[str, ...]:
        open_ = [check for check in self.checks if check.result is not Result.HOLDS]
        open_claims = [f"{check.name}, which {VERBS[check.result]}: {check.detail}" for check in open_]
        return (*open_claims, *LIMITS, *_of_earlier_rounds(self.subject))

    def named(self, result: Result) -> list[str]:
        """Names of the checks with this result."""
        return [str(check.name) for check in self.checks if check.result is result]

    @property
    def failed(self) -> list[str]:
        """Names of the checks that fail."""
        return self.named(Result.FAILS)

    @property
    def unchecked(self) -> list[str]:
        """Names of the checks that were not made."""
        return self.named(Result.UNCHECKED)

    @property
    def failed_first(self) -> list[Check]:
        return sorted(self.checks, key=lambda check: check.result is not Result.FAILS)

    @property
    def _by_name(self) -> Mapping[Name, Result]:
        return {check.name: check.result for check in self.checks}


class TaskReport(_Plain):
    """Reports of a task's rounds that have an outcome, ascending."""

    task: int
    rounds: tuple[Report, ...]

    @property
    def failed(self) -> dict[int, list[str]]:
        """The names of the failed checks by round, without rounds that hold."""
        return {one.subject.round: one.failed for one in self.rounds if not one.holds}


def holds(name: Name, detail: str) -> Check:
    return Check(name=name, result=Result.HOLDS, detail=detail)


def fails(name: Name, faults: str | Iterable[str]) -> Check:
    return Check(name=name, result=Result.FAILS, detail=faults if isinstance(faults, str) else "\n".join(faults))


def unchecked(name: Name, why: str) -> Check:
    return Check(name=name, result=Result.UNCHECKED, detail=why)


def derived(what: str, values: NDArray[np.float32] | NDArray[np.float64]) -> Derived:
    """`values`: of shape (n,)."""
    return Derived(what=what, values=values.size, type=values.dtype.name, sha256=digest_of(values).hex())


# --- claims --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Claim:
    """Proven if all of these checks hold."""

    by: tuple[Name, ...]
    text: str

    def holds(self, results: Mapping[Name, Result]) -> bool:
        return all(results.get(name) is Result.HOLDS for name in self.by)

    def filled(self, subject: Subject) -> str:
        return self.text.format(**subject.model_dump())


_CLAIMS = (
    _Claim(
        (Name.TASK_FILE,),
        "The task file is the one that the chain names, and the contract enforces its terms: compared here.",
    ),
    _Claim(
        (Name.SUMS, Name.BLOBS),
        "The publication is exactly the weighted sum of the updates that {survivors} survivors committed to: recomputed"
        " here from their points and the blobs. A commitment opens to one blob only, by KZG's binding and Ethereum's"
        " ceremony, in which at least one participant must have been honest.",
    ),
    _Claim(
        (Name.SUMS,),
        "Every survivor knew the update behind its commitments, in this round and under its own name: the contract"
        " checked a KZG proof before it accepted them.",
    ),
    _Claim(
        (Name.DECOYS,),
        "The negated delta of decoys follows from earlier rounds, and the sign-flipped sums were fixed before"
        " publication: recomputed here; the contract compared only the second.",
    ),
    _Claim((Name.LANES,), "Every accepted sum's mean is within the quantiser's range: all lanes were read here."),
    _Claim(
        (Name.CHEATERS,),
        "The cheaters of accused cohorts, if any, are named above: recomputed here from commitments and from signed"
        " uploads and evidence. No honest hospital that submitted evidence in time is among them, unless signatures"
        " were forged or collisions of SHA-256 or keccak256 found.",
    ),
    _Claim(
        (Name.BASES,),
        "Most hospitals signed that they trained from the base that this record gives: derived and compared here. Those"
        " with another one are named above.",
    ),
    _Claim(
        (Name.MODEL,),
        "Every derivation from this record gives the same bits, with the digest above: the arithmetic is elementwise"
        " IEEE in a fixed order.",
    ),
    _Claim(
        (Name.SETTLEMENT,),
        "Rewards and slashes of the round follow from the revealed scores by the rules: recomputed here in integers.",
    ),
)

# Limits of every round, independent of its checks.
LIMITS = (
    "That hospitals trained honestly, or on real data: sums are exact for any updates.",
    "That one hospital's own values were in range: only sums are published, and only their lanes can be read.",
    "That nobody saw a single update: the record of masked updates cannot show it.",
    "That rows were counted correctly: a hospital states its own weight.",
    "Why a hospital is missing from the sums: it or the aggregator may have held back its upload.",
    "Why a cohort without an accusation was dropped: too few may have answered, or the aggregator gave it up.",
    "That scores are honest: acceptance follows from the committee's medians.",
    "That cohorts and seats follow the beacon, and that senders had a right to their calls: the contract checks both.",
    "That the node reports its chain truly, and that the address book names the right contracts: use your own node.",
)


def _of_earlier_rounds(subject: Subject) -> tuple[str, ...]:
    if subject.round == 0:
        return ()
    earlier = "round 0" if subject.round == 1 else f"rounds 0 to {subject.round - 1}"
    return (f"The same for {earlier}: the contract's hashes were not checked here; verify each round by itself.",)
