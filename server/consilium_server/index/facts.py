"""Turns logs of the contracts into rows of the tables. Pure, except that `Known` may read rows of the tables.

Totals of pools and positions continue from the latest rows before the events, which `Known` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from consilium_server.index.sale_facts import account_of, sale_facts, task_of
from consilium_server.index.staking_facts import Known, position_of, staking_facts

EXACT = 1 << 53  # integers up to this are exact in every reader of JSON
# The fields with the account that an event is about, and the role that each implies.
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
    events: Iterable[Event],
    times: Mapping[int, int],
    staking: str,
    known: Known,
    params: Mapping[int, TaskParams],
    model_shares: str = "",
) -> list[Fact]:
    """Rows of events in order. Updates `known`, the state before the events.

    times: of blocks, by number. staking, model_shares: addresses of contracts. params: terms of the tasks that these
    events propose.
    """
    rows: list[Fact] = []
    for event in events:
        if event.contract == model_shares:
            rows += [_sale_row(event), *sale_facts(event, known)]
            continue
        is_staking = event.contract == staking
        rows.append(_event_row(event, is_staking))
        rows += staking_facts(event, known, times[event.block]) if is_staking else _of_task(event, known, params)
    return rows


def _sale_row(event: Event) -> EventRow:
    values = event.values
    return EventRow(
        **position_of(event), contract="model_shares", name=event.name, transaction=_hash(event), task=task_of(values),
        round=None, account=account_of(values), role=None, other=values.get("server") if "buyer" in values else None,
        values={name: _plain(value) for name, value in values.items()},
    )  # fmt: skip


def _hash(event: Event) -> bytes:
    return bytes.fromhex(event.transaction.removeprefix("0x"))


def _event_row(event: Event, is_staking: bool) -> EventRow:
    values = event.values
    about = next((name for name in ABOUT if name in values), None)
    role = values.get("role", ABOUT[about] if about else None)
    return EventRow(
        block=event.block, log_index=event.index, item=0, contract="staking" if is_staking else "tasks",
        name=event.name, transaction=_hash(event), task=values.get("taskId"),
        round=values.get("round"), account=values[about] if about else None, role=None if role is None else int(role),
        other=values.get("delegator"), values={name: _plain(value) for name, value in values.items()},
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """The value for JSON: bytes as hexadecimal text, and integers as decimal text."""
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


def _of_task(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    """Rows of an event of the contract Tasks; none for an event that only `EventRow` has."""
    values, at = event.values, position_of(event)
    match event.name:
        case "TaskProposed":
            terms = params[values["taskId"]]
            known.operators[values["taskId"]] = values["operator"]
            row = TaskRow(
                **at, task=values["taskId"], operator=values["operator"], aggregator=terms.aggregator,
                spec_hash=bytes(values["specHash"]), pool=values["pool"], params=_terms(terms),
            )  # fmt: skip
            return [row]
        case "TaskFunded":
            return [Funding(**at, task=values["taskId"], pool=values["pool"])]
        case "PhaseStarted":
            phase, deadline = int(values["phase"]), values["deadline"]
            return [PhaseStart(**at, task=values["taskId"], round=values["round"], phase=phase, deadline=deadline)]
        case "HospitalJoined" | "VoterJoined" | "AggregatorJoined":
            name, role = next((name, role) for name, role in ABOUT.items() if name in values and role is not None)
            known.roles[values["taskId"]][values[name]] = int(role)
            participant = Participant(
                **at, task=values["taskId"], account=values[name], role=int(role), position=values.get("index", 0),
                weight=values.get("weight", 0),
            )  # fmt: skip
            return [participant]
        case "CohortsFormed":
            return [
                Cohort(**position_of(event, item), task=values["taskId"], round=values["round"], members=members)
                for item, members in enumerate(values["members"])
            ]
        case "RoundSettled":
            medians, accepted = list(values["medians"]), values["acceptedCohorts"]
            return [_outcome(event, Outcome.SETTLED, VoidReason.NONE, medians, accepted)]
        case "RoundVoided":
            return [_outcome(event, Outcome.VOID, values["reason"], [], 0)]
        case "Rewarded" | "Slashed" | "BountyPaid":
            paid_as = known.roles[values["taskId"]].get(values["account"])
            return [_payment(event, values["account"], paid_as, values["amount"])]
        case "TaskEnded":
            return [_payment(event, known.operators[values["taskId"]], None, values["refund"])]
    return []


def _outcome(event: Event, outcome: int, reason: int, medians: list[int], accepted: int) -> OutcomeRow:
    values = event.values
    return OutcomeRow(
        **position_of(event), task=values["taskId"], round=values["round"], outcome=int(outcome), reason=int(reason),
        medians=medians, accepted=accepted,
    )  # fmt: skip


def _payment(event: Event, account: str, role: int | None, amount: int) -> Payment:
    kinds = {"Rewarded": "reward", "Slashed": "slash", "BountyPaid": "bounty", "TaskEnded": "refund"}
    values = event.values
    return Payment(
        **position_of(event), task=values["taskId"], round=values.get("round"), account=account, role=role,
        kind=kinds[event.name], amount=amount, reason=int(values["reason"]) if event.name == "Slashed" else None,
    )  # fmt: skip
