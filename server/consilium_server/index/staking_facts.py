"""Rows of the contract Staking, and the state from which all new rows continue. Pure, except for `Latest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.event_logs import Event

from consilium_server.database.sale_tables import PartsRow, SaleRow
from consilium_server.database.tables import Fact, PoolRow, Position, UnbondingRow

NodeKey = tuple[str, int]  # node, role
PositionKey = tuple[str, str, int]  # delegator, node, role
RequestKey = tuple[str, int]  # delegator, number
Key = TypeVar("Key")
Value = TypeVar("Value")


class Latest(dict[Key, Value], Generic[Key, Value]):
    """Latest values by key. `read` gets a value that is not here yet, if there is one."""

    def __init__(self, read: Callable[[Key], Value | None] = lambda key: None) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, key: Key) -> Value:
        value = self._read(key)
        if value is None:
            raise KeyError(key)
        self[key] = value
        return value

    def find(self, key: Key) -> Value | None:
        """The value of a key; None if there is none."""
        try:
            return self[key]
        except KeyError:
            return None


@dataclass
class Known:
    """State before some events. `roles`: of a task's participants, by task and account. `voter_keys`: by account.

    `prices`: of predictions, by task and server. `parts`: of models, by task and holder. `sales`: by task and kind.
    `undivided`: of an ensemble's sale, the amount whose events for members are still to come.
    """

    pools: Latest[NodeKey, PoolRow] = field(default_factory=Latest)
    positions: Latest[PositionKey, Position] = field(default_factory=Latest)
    unbondings: Latest[RequestKey, UnbondingRow] = field(default_factory=Latest)
    roles: Latest[int, dict[str, int]] = field(default_factory=lambda: Latest(lambda task: {}))
    operators: Latest[int, str] = field(default_factory=Latest)
    voter_keys: Latest[str, bool] = field(default_factory=Latest)
    prices: Latest[tuple[int, str], int] = field(default_factory=Latest)
    parts: Latest[tuple[int, str], PartsRow] = field(default_factory=Latest)
    sales: Latest[tuple[int, str], SaleRow] = field(default_factory=Latest)
    undivided: int = 0


def position_of(event: Event, item: int = 0) -> dict[str, Any]:
    """The columns with the position of an event on the chain."""
    return {"block": event.block, "log_index": event.index, "item": item}


def staking_facts(event: Event, known: Known, time: int) -> list[Fact]:
    """A row for each pool, position and request that the event changes."""
    values = event.values
    if event.name == "HeldOutCommitted":
        return []
    if event.name == "VoterKeyRegistered":
        known.voter_keys[values["voter"]] = True
        changes: dict[str, Any] = {"voter_key": True}
        key = (values["voter"], int(Role.VOTER))
        return [_pool(event, known, key, time, changes)] if known.pools.find(key) else []
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
        **position_of(event), node=node, role=role, generation=0, assets=0, shares=0, unbonding_shares=0, locked=0,
        commission_bps=event.values["commissionBps"], next_commission_bps=None, next_commission_at=None, index_x48=1,
        rewarded=0, burnt=0, forfeited=0, voter_key=role == Role.VOTER and known.voter_keys.find(node) is True,
    )  # fmt: skip


def _pool(event: Event, known: Known, key: NodeKey, time: int, changes: Mapping[str, Any]) -> PoolRow:
    """The pool's next row. An announced change that took effect meanwhile is in it, unless the event sets another."""
    pool = known.pools[key]
    known.pools[key] = replace(pool, **position_of(event), **(in_effect(pool, time) | dict(changes)))
    return known.pools[key]


def in_effect(pool: Any, time: int) -> dict[str, Any]:
    """The columns of a pool's row that announced changes have changed until `time`."""
    found: dict[str, Any] = {}
    if pool.next_commission_at is not None and pool.next_commission_at <= time:
        found |= {"commission_bps": pool.next_commission_bps, "next_commission_bps": None, "next_commission_at": None}
    if pool.next_withdrawal_at is not None and pool.next_withdrawal_at <= time:
        found |= {"withdrawal_address": pool.next_withdrawal_address}
        found |= {"next_withdrawal_address": None, "next_withdrawal_at": None}
    return found


def _changes(event: Event, known: Known, pool: PoolRow, time: int) -> dict[str, Any]:
    values = event.values
    match event.name:
        case "CommissionSet" if values["effectiveAt"] > time:  # a raise, announced
            return {"next_commission_bps": values["commissionBps"], "next_commission_at": values["effectiveAt"]}
        case "CommissionSet":
            lowered = {"commission_bps": values["commissionBps"]}
            return lowered | {"next_commission_bps": None, "next_commission_at": None}
        case "WithdrawalAddressSet" if values["effectiveAt"] > time:  # a change, announced
            later = {"next_withdrawal_address": values["withdrawalAddress"]}
            return later | {"next_withdrawal_at": values["effectiveAt"]}
        case "WithdrawalAddressSet":
            now = {"withdrawal_address": values["withdrawalAddress"]}
            return now | {"next_withdrawal_address": None, "next_withdrawal_at": None}
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
        case "RewardAdded" | "Given":
            return {"rewarded": pool.rewarded + values["amount"]}
        case "RewardsVested":
            return {"index_x48": values["indexX48"]}
    raise ValueError(f"this version does not know the event {event.name} of Staking: update the program")


def _position(event: Event, known: Known, key: NodeKey, generation: int) -> Position:
    values = event.values
    (node, role), delegator = key, values["delegator"]
    position = known.positions.find((delegator, node, role)) or Position(
        **position_of(event), delegator=delegator, node=node, role=role, generation=generation, shares=0, delegated=0,
        withdrawn=0, claimed=0,
    )  # fmt: skip
    held = position.shares if position.generation == generation else 0
    shares = {"Delegated": held + values.get("shares", 0), "UnbondingStarted": held - values.get("shares", 0)}
    amount = values.get("amount", 0)
    known.positions[delegator, node, role] = replace(
        position, **position_of(event), generation=generation, shares=shares.get(event.name, held),
        delegated=position.delegated + (amount if event.name == "Delegated" else 0),
        withdrawn=position.withdrawn + (amount if event.name == "Unbonded" else 0),
        claimed=position.claimed + (amount if event.name == "Claimed" else 0),
    )  # fmt: skip
    return known.positions[delegator, node, role]


def _request(event: Event, known: Known, key: NodeKey, generation: int) -> UnbondingRow:
    values = event.values
    number = (values["delegator"], values["requestId"])
    if event.name == "Unbonded":
        row = replace(known.unbondings[number], **position_of(event), shares=0)
    else:
        row = UnbondingRow(
            **position_of(event), delegator=values["delegator"], request=values["requestId"], node=key[0], role=key[1],
            generation=generation, shares=values["shares"], matures_at=values["maturesAt"],
        )  # fmt: skip
    known.unbondings[number] = row
    return row
