"""Turns logs of the contracts into rows of the tables. Pure: nothing is read or written here.

Totals of pools and positions go on from row to row: the caller brings the latest rows before the events (`needs`,
`Known`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from consilium_chain.ledger.structs import Outcome, Role, TaskParams, VoidReason
from consilium_chain.rpc.event_logs import Event

from consilium_server.database.tables import (
    Cohort,
    EventRow,
    Fact,
    Funding,
    OutcomeRow,
    Participant,
    Payment,
    PhaseStart,
    TaskRow,
)
from consilium_server.index.staking_facts import Known, place_of, staking_facts

EXACT = 1 << 53  # what every reader of JSON takes for the number that it is
# The fields that say whom an event is about, and what that makes of the account.
ABOUT: Mapping[str, Role | None] = {
    "node": None,
    "hospital": Role.HOSPITAL,
    "voter": Role.VOTER,
    "aggregator": Role.AGGREGATOR,
    "operator": None,
    "account": None,
    "guardian": None,
}


def facts(
    events: Iterable[Event], times: Mapping[int, int], staking: str, known: Known, params: Mapping[int, TaskParams]
) -> list[Fact]:
    """Rows of events that are in order and follow on `known`, which is brought up to date.

    times: of blocks, by number. staking: the contract's address. params: terms of the tasks that are proposed here.
    """
    rows: list[Fact] = []
    for event in events:
        is_staking = event.contract == staking
        rows.append(_event_row(event, is_staking))
        rows += staking_facts(event, known, times[event.block]) if is_staking else _of_task(event, known, params)
    return rows


def _event_row(event: Event, is_staking: bool) -> EventRow:
    values = event.values
    place = next((name for name in ABOUT if name in values), None)
    role = values.get("role", ABOUT[place] if place else None)
    return EventRow(
        block=event.block, log_index=event.index, item=0, contract="staking" if is_staking else "tasks",
        name=event.name, transaction=bytes.fromhex(event.transaction.removeprefix("0x")), task=values.get("taskId"),
        round=values.get("round"), account=values[place] if place else None, role=None if role is None else int(role),
        other=values.get("delegator"), values={name: _plain(value) for name, value in values.items()},
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """The value as JSON can hold it and every reader takes it."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, int):
        return str(int(value))
    return [_plain(one) for one in value]


def _terms(params: TaskParams) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in asdict(params).items():
        is_exact = isinstance(value, bool) or (isinstance(value, int) and abs(value) <= EXACT)
        shown[name] = value if is_exact else _plain(value)
    return shown


# Tasks


def _of_task(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    make = _MAKERS.get(event.name)
    return [] if make is None else make(event, known, params)


def _proposed(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    terms = params[values["taskId"]]
    known.operators[values["taskId"]] = values["operator"]
    row = TaskRow(
        **place_of(event), task=values["taskId"], operator=values["operator"], aggregator=terms.aggregator,
        spec_hash=bytes(values["specHash"]), pool=values["pool"], params=_terms(terms),
    )  # fmt: skip
    return [row]


def _funded(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    return [Funding(**place_of(event), task=event.values["taskId"], pool=event.values["pool"])]


def _phase(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    return [
        PhaseStart(
            **place_of(event),
            task=values["taskId"],
            round=values["round"],
            phase=int(values["phase"]),
            deadline=values["deadline"],
        )
    ]


def _joined(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    name, role = next((name, role) for name, role in ABOUT.items() if name in values and role is not None)
    known.roles[values["taskId"], values[name]] = int(role)
    row = Participant(
        **place_of(event), task=values["taskId"], account=values[name], role=int(role), position=values.get("index", 0),
        weight=values.get("weight", 0),
    )  # fmt: skip
    return [row]


def _cohorts(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    return [
        Cohort(**place_of(event, item), task=values["taskId"], round=values["round"], members=members)
        for item, members in enumerate(values["members"])
    ]


def _outcome(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    is_settled = event.name == "RoundSettled"
    row = OutcomeRow(
        **place_of(event), task=values["taskId"], round=values["round"],
        outcome=int(Outcome.SETTLED if is_settled else Outcome.VOID),
        reason=int(VoidReason.NONE if is_settled else values["reason"]),
        medians=list(values["medians"]) if is_settled else [], accepted=values["acceptedCohorts"] if is_settled else 0,
    )  # fmt: skip
    return [row]


def _paid(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    task = values["taskId"]
    is_refund = event.name == "TaskEnded"
    account = known.operators[task] if is_refund else values["account"]
    row = Payment(
        **place_of(event), task=task, round=values.get("round"), account=account,
        role=None if is_refund else known.roles.get((task, account)),
        kind={"Rewarded": "reward", "Slashed": "slash", "BountyPaid": "bounty", "TaskEnded": "refund"}[event.name],
        amount=values["refund"] if is_refund else values["amount"],
        reason=int(values["reason"]) if event.name == "Slashed" else None,
    )  # fmt: skip
    return [row]


_MAKERS: Mapping[str, Callable[[Event, Known, Mapping[int, TaskParams]], list[Fact]]] = {
    "TaskProposed": _proposed,
    "TaskFunded": _funded,
    "PhaseStarted": _phase,
    "HospitalJoined": _joined,
    "VoterJoined": _joined,
    "AggregatorJoined": _joined,
    "CohortsFormed": _cohorts,
    "RoundSettled": _outcome,
    "RoundVoided": _outcome,
    "Rewarded": _paid,
    "Slashed": _paid,
    "BountyPaid": _paid,
    "TaskEnded": _paid,
}
