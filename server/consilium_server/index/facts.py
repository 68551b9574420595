"""What logs of the contracts mean, as rows of the tables. Pure: nothing is read or written here.

Totals of pools and positions go from row to row: whoever asks for the rows of some events brings the latest rows before
them (`needs`, `Known`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
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
    PoolRow,
    Position,
    TaskRow,
    UnbondingRow,
)

NodeKey = tuple[str, int]  # node, role
PositionKey = tuple[str, str, int]  # delegator, node, role
RequestKey = tuple[str, int]  # delegator, number
MemberKey = tuple[int, str]  # task, account

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


@dataclass
class Known:
    """What is known before some events, by key: the latest rows, who takes part in tasks, who has a voter's key."""

    pools: dict[NodeKey, PoolRow] = field(default_factory=dict)
    positions: dict[PositionKey, Position] = field(default_factory=dict)
    unbondings: dict[RequestKey, UnbondingRow] = field(default_factory=dict)
    roles: dict[MemberKey, int] = field(default_factory=dict)
    operators: dict[int, str] = field(default_factory=dict)
    voter_keys: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Needs:
    """Keys of what rows of some events are made from."""

    pools: frozenset[NodeKey]
    positions: frozenset[PositionKey]
    unbondings: frozenset[RequestKey]
    members: frozenset[MemberKey]
    ended: frozenset[int]
    voters: frozenset[str]


def needs(events: Iterable[Event], staking: str) -> Needs:
    """`staking`: the contract's address."""
    pools, positions, unbondings = set(), set(), set()
    members, ended, voters = set(), set(), set()
    for event in events:
        values = event.values
        if event.contract == staking:
            if "role" in values:
                pools.add((values["node"], int(values["role"])))
            if "delegator" in values:
                positions.add((values["delegator"], values["node"], int(values["role"])))
            if event.name == "Unbonded":
                unbondings.add((values["delegator"], values["requestId"]))
            if event.name == "VoterKeyRegistered":
                pools.add((values["voter"], int(Role.VOTER)))
            if event.name == "NodeRegistered" and values["role"] == Role.VOTER:
                voters.add(values["node"])
        elif event.name in ("Rewarded", "Slashed", "BountyPaid"):
            members.add((values["taskId"], values["account"]))
        elif event.name == "TaskEnded":
            ended.add(values["taskId"])
    return Needs(*map(frozenset, (pools, positions, unbondings, members, ended, voters)))  # type: ignore[arg-type]


def facts(
    events: Iterable[Event],
    times: Mapping[int, int],
    staking: str,
    known: Known,
    params: Mapping[int, TaskParams],
) -> list[Fact]:
    """Rows of events that are in order, and follow on what is `known`, which comes to know them, too.

    times: of blocks, by number. staking: the contract's address. params: terms of the tasks that are proposed here.
    """
    rows: list[Fact] = []
    for event in events:
        is_staking = event.contract == staking
        rows.append(_event_row(event, is_staking))
        rows += _of_staking(event, known, times[event.block]) if is_staking else _of_task(event, known, params)
    return rows


def _event_row(event: Event, is_staking: bool) -> EventRow:
    values = event.values
    place = next((name for name in ABOUT if name in values), None)
    role = values.get("role", ABOUT[place] if place else None)
    return EventRow(
        block=event.block,
        log_index=event.index,
        item=0,
        contract="staking" if is_staking else "tasks",
        name=event.name,
        transaction=bytes.fromhex(event.transaction.removeprefix("0x")),
        task=values.get("taskId"),
        round=values.get("round"),
        account=values[place] if place else None,
        role=None if role is None else int(role),
        other=values.get("delegator"),
        values={name: _plain(value) for name, value in values.items()},
    )


def _plain(value: Any) -> Any:
    """As JSON can hold it and any reader takes it."""
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


def _place(event: Event, item: int = 0) -> dict[str, Any]:
    return {"block": event.block, "log_index": event.index, "item": item}


def _proposed(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    terms = params[values["taskId"]]
    known.operators[values["taskId"]] = values["operator"]
    row = TaskRow(
        **_place(event),
        task=values["taskId"],
        operator=values["operator"],
        aggregator=terms.aggregator,
        spec_hash=bytes(values["specHash"]),
        pool=values["pool"],
        params=_terms(terms),
    )
    return [row]


def _funded(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    return [Funding(**_place(event), task=event.values["taskId"], pool=event.values["pool"])]


def _phase(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    return [
        PhaseStart(
            **_place(event),
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
        **_place(event),
        task=values["taskId"],
        account=values[name],
        role=int(role),
        position=values.get("index", 0),
        weight=values.get("weight", 0),
    )
    return [row]


def _cohorts(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    return [
        Cohort(**_place(event, item), task=values["taskId"], round=values["round"], members=members)
        for item, members in enumerate(values["members"])
    ]


def _outcome(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    is_settled = event.name == "RoundSettled"
    row = OutcomeRow(
        **_place(event),
        task=values["taskId"],
        round=values["round"],
        outcome=int(Outcome.SETTLED if is_settled else Outcome.VOID),
        reason=int(VoidReason.NONE if is_settled else values["reason"]),
        medians=list(values["medians"]) if is_settled else [],
        accepted=values["acceptedCohorts"] if is_settled else 0,
    )
    return [row]


def _paid(event: Event, known: Known, params: Mapping[int, TaskParams]) -> list[Fact]:
    values = event.values
    task = values["taskId"]
    is_refund = event.name == "TaskEnded"
    account = known.operators[task] if is_refund else values["account"]
    row = Payment(
        **_place(event),
        task=task,
        round=values.get("round"),
        account=account,
        role=None if is_refund else known.roles.get((task, account)),
        kind={"Rewarded": "reward", "Slashed": "slash", "BountyPaid": "bounty", "TaskEnded": "refund"}[event.name],
        amount=values["refund"] if is_refund else values["amount"],
        reason=int(values["reason"]) if event.name == "Slashed" else None,
    )
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


# Staking


def _of_staking(event: Event, known: Known, time: int) -> list[Fact]:
    """A row of each of pool, position and request that the event changes."""
    values = event.values
    if event.name == "HeldOutCommitted":
        return []
    if event.name == "VoterKeyRegistered":
        known.voter_keys.add(values["voter"])
        changes: dict[str, Any] = {"voter_key": True}
        key = (values["voter"], int(Role.VOTER))
        return [_pool(event, known, key, time, changes)] if key in known.pools else []
    key = (values["node"], int(values["role"]))
    if event.name == "NodeRegistered":
        known.pools[key] = _registered(event, key, known)
        return [known.pools[key]]
    generation = known.pools[key].generation
    rows: list[Fact] = []
    if "delegator" in values:
        rows.append(_position(event, known, key, generation))
    if "requestId" in values:
        rows.append(_request(event, known, key, generation))
    if event.name != "Claimed":
        rows.append(_pool(event, known, key, time, _changes(event, known, known.pools[key], time)))
    return rows


def _registered(event: Event, key: NodeKey, known: Known) -> PoolRow:
    node, role = key
    return PoolRow(
        **_place(event),
        node=node,
        role=role,
        generation=0,
        assets=0,
        shares=0,
        unbonding_shares=0,
        locked=0,
        commission_bps=event.values["commissionBps"],
        next_commission_bps=None,
        next_commission_at=None,
        index_x48=1,
        rewarded=0,
        burnt=0,
        forfeited=0,
        voter_key=role == Role.VOTER and node in known.voter_keys,
    )


def _pool(event: Event, known: Known, key: NodeKey, time: int, changes: Mapping[str, Any]) -> PoolRow:
    """The pool's next row: with a commission that took effect meanwhile, unless the event says otherwise."""
    pool = known.pools[key]
    due: dict[str, Any] = {}
    if pool.next_commission_at is not None and pool.next_commission_at <= time:
        due = {"commission_bps": pool.next_commission_bps, "next_commission_bps": None, "next_commission_at": None}
    known.pools[key] = replace(pool, **_place(event), **(due | dict(changes)))
    return known.pools[key]


def _changes(event: Event, known: Known, pool: PoolRow, time: int) -> dict[str, Any]:
    values = event.values
    match event.name:
        case "CommissionSet" if values["effectiveAt"] > time:  # a raise, announced
            return {"next_commission_bps": values["commissionBps"], "next_commission_at": values["effectiveAt"]}
        case "CommissionSet":
            lowered = {"commission_bps": values["commissionBps"]}
            return lowered | {"next_commission_bps": None, "next_commission_at": None}
        case "Delegated":
            return {"assets": values["totalAssets"], "shares": values["totalShares"]}
        case "UnbondingStarted":
            return {"unbonding_shares": values["totalUnbondingShares"]}
        case "Unbonded":
            request = known.unbondings[values["delegator"], values["requestId"]]
            left = values["shares"] if request.generation == pool.generation else 0
            totals = {"assets": values["totalAssets"], "shares": values["totalShares"]}
            return totals | {"unbonding_shares": pool.unbonding_shares - left}
        case "StakeLocked" | "StakeUnlocked":
            return {"locked": values["totalLocked"]}
        case "StakeSlashed":
            return {
                "assets": values["totalAssets"],
                "shares": values["totalShares"],
                "unbonding_shares": pool.unbonding_shares if values["totalAssets"] else 0,
                "locked": pool.locked - values["amount"],
                "burnt": pool.burnt + values["amount"],
                "forfeited": pool.forfeited + values["forfeited"],
            }
        case "PoolWiped":
            return {"generation": values["generation"]}
        case "RewardAdded":
            return {"rewarded": pool.rewarded + values["amount"]}
        case "RewardsVested":
            return {"index_x48": values["indexX48"]}
    raise ValueError(f"Staking has an event {event.name} that this version does not know: update it")


def _position(event: Event, known: Known, key: NodeKey, generation: int) -> Position:
    values = event.values
    (node, role), delegator = key, values["delegator"]
    position = known.positions.get((delegator, node, role)) or Position(
        **_place(event), delegator=delegator, node=node, role=role, generation=generation, shares=0, delegated=0,
        withdrawn=0, claimed=0,
    )  # fmt: skip
    held = position.shares if position.generation == generation else 0
    shares = {"Delegated": held + values.get("shares", 0), "UnbondingStarted": held - values.get("shares", 0)}
    amount = values.get("amount", 0)
    known.positions[delegator, node, role] = replace(
        position,
        **_place(event),
        generation=generation,
        shares=shares.get(event.name, held),
        delegated=position.delegated + (amount if event.name == "Delegated" else 0),
        withdrawn=position.withdrawn + (amount if event.name == "Unbonded" else 0),
        claimed=position.claimed + (amount if event.name == "Claimed" else 0),
    )
    return known.positions[delegator, node, role]


def _request(event: Event, known: Known, key: NodeKey, generation: int) -> UnbondingRow:
    values = event.values
    number = (values["delegator"], values["requestId"])
    if event.name == "Unbonded":
        row = replace(known.unbondings[number], **_place(event), shares=0)
    else:
        row = UnbondingRow(
            **_place(event),
            delegator=values["delegator"],
            request=values["requestId"],
            node=key[0],
            role=key[1],
            generation=generation,
            shares=values["shares"],
            matures_at=values["maturesAt"],
        )
    known.unbondings[number] = row
    return row
