"""The report of a verification, as plain values: checks, derived values, and what is proven and what is not. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
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
    MODEL = "model"
    SETTLEMENT = "settlement"


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True)


class Check(_Plain):
    """One check. `detail`: the compared values; of a failed check a line for each fault, and of accused cohorts a line
    for each hospital.
    """

    name: Name
    result: Result
    detail: str


class Derived(_Plain):
    """A value that two verifiers can compare: its values' bytes, little-endian and in order, hashed by SHA-256."""

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
        """True if nothing fails. A check that was not made does not fail: it is listed as not proven."""
        return not self.named(Result.FAILS)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def proven(self) -> tuple[str, ...]:
        return tuple(claim.said(self.subject) for claim in _CLAIMS if claim.holds(self._by_name))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def not_proven(self) -> tuple[str, ...]:
        open_ = [check for check in self.checks if check.result is not Result.HOLDS]
        said = [f"{check.name}, which {VERBS[check.result]}: {check.detail}" for check in open_]
        return (*said, *LIMITS, *_of_earlier_rounds(self.subject))

    def named(self, result: Result) -> list[str]:
        """Names of the checks with this result."""
        return [str(check.name) for check in self.checks if check.result is result]

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
        """By round, the names of the checks that fail; without the rounds in which none does."""
        return {one.subject.round: one.named(Result.FAILS) for one in self.rounds if not one.holds}


def holds(name: Name, detail: str) -> Check:
    return Check(name=name, result=Result.HOLDS, detail=detail)


def fails(name: Name, faults: str | Iterable[str]) -> Check:
    return Check(name=name, result=Result.FAILS, detail=faults if isinstance(faults, str) else "\n".join(faults))


def unchecked(name: Name, why: str) -> Check:
    return Check(name=name, result=Result.UNCHECKED, detail=why)


def derived(what: str, values: NDArray[np.float32] | NDArray[np.float64]) -> Derived:
    """`values`: of shape (n,)."""
    raw = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    return Derived(what=what, values=values.size, type=values.dtype.name, sha256=hashlib.sha256(raw).hexdigest())


# --- in words ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Claim:
    """Proven where all of these checks hold."""

    by: tuple[Name, ...]
    text: str

    def holds(self, results: Mapping[Name, Result]) -> bool:
        return all(results.get(name) is Result.HOLDS for name in self.by)

    def said(self, subject: Subject) -> str:
        return self.text.format(**subject.model_dump())


_CLAIMS = (
    _Claim(
        (Name.TASK_FILE,),
        "The task file is the one that the chain names, and its terms are those that the contract enforces: compared"
        " here.",
    ),
    _Claim(
        (Name.SUMS, Name.BLOBS),
        "The publication is the weighted sum of the updates that {survivors} survivors committed to, and nothing else:"
        " recomputed here from their points and the blobs. That a commitment opens to one blob only rests on KZG's"
        " binding and on Ethereum's ceremony, of which one participant in all has to have been honest.",
    ),
    _Claim(
        (Name.SUMS,),
        "Every survivor knew the update behind its commitments, in this round and under its own name: the contract"
        " checked a KZG proof of them before it took them.",
    ),
    _Claim(
        (Name.DECOYS,),
        "What decoys take back follows from earlier rounds, and which sums were sign-flipped was fixed before"
        " publication: recomputed here; the contract compared only the second.",
    ),
    _Claim((Name.LANES,), "Every accepted sum's mean is within the quantiser's range: all lanes were read here."),
    _Claim(
        (Name.CHEATERS,),
        "The cheaters by the evidence on accused cohorts, if any, are named above: recomputed here from commitments and"
        " from the evidence that hospitals signed. It gives no honest hospital that answered in time, unless somebody"
        " forges signatures or finds collisions of SHA-256 or keccak256.",
    ),
    _Claim(
        (Name.MODEL,),
        "Every derivation from this record gives the bits whose digest is above: the arithmetic is elementwise IEEE in"
        " a fixed order.",
    ),
    _Claim(
        (Name.SETTLEMENT,),
        "Rewards and slashes of the round are what the rules make of the revealed scores: recomputed here in plain"
        " integers.",
    ),
)

# Limits of every round, with any result of its checks.
LIMITS = (
    "That hospitals trained honestly, or on real data: sums are exact for any updates.",
    "That one hospital's own values were in range: only sums are published, and only their lanes can be read.",
    "That nobody saw a single update: masks leave nothing in the record that could show it, either way.",
    "That rows were counted truly: a hospital states its own weight.",
    "Why a hospital is missing from the sums: whether it or the aggregator kept its upload back.",
    "Why a cohort was dropped that nobody is accused of: whether too few answered, or the aggregator gave it up.",
    "That scores are honest: what is accepted follows from the committee's medians.",
    "That cohorts and seats were drawn as the beacon says, and who sent what was entitled to: left to the contract.",
    "That the node tells the truth of its chain, and the address book names these contracts: use a node of your own.",
)


def _of_earlier_rounds(subject: Subject) -> tuple[str, ...]:
    if subject.round == 0:
        return ()
    earlier = "round 0" if subject.round == 1 else f"rounds 0 to {subject.round - 1}"
    return (f"The same of {earlier}: the contract's hashes were taken as they are; verify each by itself.",)
