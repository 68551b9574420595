"""Rows that new rows go on from: totals of pools and positions go from row to row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from consilium_chain.ledger.structs import Event, Role

from consilium_server.database.tables import PoolRow, Position, UnbondingRow

NodeKey = tuple[str, int]  # node, role
PositionKey = tuple[str, str, int]  # delegator, node, role
RequestKey = tuple[str, int]  # delegator, number
MemberKey = tuple[int, str]  # task, account


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


def place_of(event: Event, item: int = 0) -> dict[str, Any]:
    return {"block": event.block, "log_index": event.index, "item": item}
