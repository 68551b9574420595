"""Which events cost money, whom they concern, and the words for them. Pure, and without any text of strangers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Protocol

from consilium_chain.ledger.structs import Role, SlashReason, VoidReason, members
from consilium_core.units import tokens

from consilium_server.database.tables import EventRow

TOLD = (
    "Slashed", "PoolWiped", "HospitalAbsent", "RoundVoided", "RoundSettled", "TaskStopped", "TaskEnded",
    "CommissionSet", "WithdrawalAddressSet",
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """`accounts`: those that it concerns. `words`: one sentence."""

    kind: str
    words: str
    accounts: frozenset[str]
    task: int | None = None
    round: int | None = None


class Known(Protocol):
    """Facts that events do not have."""

    def parties(self, task: int) -> Mapping[str, tuple[Role, int]]:
        """Role and position of each participant; the operator is none."""

    def operator(self, task: int) -> str | None: ...

    def cohorts(self, task: int, round_: int) -> Mapping[int, int]:
        """Bit maps of hospitals' positions, by cohort."""

    def rank_floor(self, task: int) -> int | None:
        """The least median that has a rank in an arena; None in another task."""


def told_of(event: EventRow, time: int, known: Known) -> Told | None:
    """None if the event costs nobody money. `time`: of its block, in seconds."""
    name, task, round_, account, values = event.name, event.task, event.round, event.account, event.values
    if task is None:
        return _of_staking(name, account or "", values, time)
    where = f"task {task}" if round_ is None else f"task {task}, round {round_}"

    def told(kind: str, words: str, accounts: Iterable[str]) -> Told:
        return Told(kind, words, frozenset(accounts), task, round_)

    match name:
        case "Slashed":
            lost, why = tokens(int(values["amount"])), _named(SlashReason, values["reason"])
            return told("slash", f"{account} lost {lost} tokens: {why} ({where}).", [str(account)])
        case "HospitalAbsent":
            words = f"{account} did not commit in time, and sits out until it resumes ({where})."
            return told("missed", words, [str(account)])
        case "RoundVoided":
            why = _named(VoidReason, values["reason"])
            return told("void", f"The round is void, and pays nothing: {why} ({where}).", known.parties(task))
        case "RoundSettled":
            rejected = _rejected(values, known.cohorts(task, round_ or 0), known.rank_floor(task))
            if not rejected:
                return None
            positions = {position for map_ in rejected for position in members(map_)}
            parties = known.parties(task).items()
            hit = [one for one, (role, position) in parties if role is Role.HOSPITAL and position in positions]
            cohorts = "cohort was" if len(rejected) == 1 else "cohorts were"
            return told("rejected", f"{len(rejected)} {cohorts} rejected, and earn nothing ({where}).", hit)
        case "TaskStopped":
            return told("ended", f"Its operator stopped the task after this round ({where}).", known.parties(task))
        case "TaskEnded":
            refund = tokens(int(values["refund"]))
            everybody = [*known.parties(task), *filter(None, [known.operator(task)])]
            return told("ended", f"The task ended; {refund} tokens go back to its operator ({where}).", everybody)
    return None


def _of_staking(name: str, node: str, values: Mapping[str, Any], time: int) -> Told | None:
    if name == "PoolWiped":
        return Told("wiped", f"A slash took all stake of {node}: its shares are worth nothing.", frozenset([node]))
    if name == "CommissionSet" and int(values["effectiveAt"]) > time:
        percent = int(values["commissionBps"]) / 100
        words = f"{node} raises its commission to {percent:g} % at {_shown(int(values['effectiveAt']))}."
        return Told("commission", words, frozenset([node]))
    if name == "WithdrawalAddressSet":
        since, to = int(values["effectiveAt"]), values["withdrawalAddress"]
        words = f"Stake and rewards of {node} are paid to {to} from {_shown(since)} on."
        return Told("address", words, frozenset([node, to]))
    return None


def matured(delegator: str, node: str, at: int) -> Told:
    """Unbonded stake of `delegator` can be withdrawn."""
    words = f"Stake of {delegator} with {node} can be withdrawn since {_shown(at)}."
    return Told("matured", words, frozenset([delegator]))


def _rejected(values: Mapping[str, Any], cohorts: Mapping[int, int], floor: int | None) -> Collection[int]:
    """The cohorts that are not accepted; in an arena, which accepts the best alone, those below its floor."""
    if floor is not None:
        medians = [int(median) for median in values["medians"]]
        return [map_ for cohort, map_ in cohorts.items() if cohort >= len(medians) or medians[cohort] < floor]
    accepted = int(values["acceptedCohorts"])
    return [map_ for cohort, map_ in cohorts.items() if not accepted >> cohort & 1]


def _named(kind: type[IntEnum], number: str) -> str:
    return kind(int(number)).name.lower().replace("_", " ")


def _shown(time: int) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M} UTC"
