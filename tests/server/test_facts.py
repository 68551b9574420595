"""Rows of facts against the plain reference of the pools (tests/vectors/staking_pools.json). The test turns its
histories into events, without the contract's arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.ledger.structs import Phase, Role, SlashReason
from consilium_chain.rpc.event_logs import Event
from consilium_server.database.tables import EventRow, Fact, Participant, Payment, PhaseStart, PoolRow, Position
from consilium_server.database.tables import UnbondingRow as Request
from consilium_server.index.facts import facts
from consilium_server.index.staking_facts import Known, Latest
from hypothesis import given
from hypothesis import strategies as st

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "staking_pools.json").read_text())
NAMES = [scenario["name"] for scenario in VECTORS["scenarios"]]
UNBONDING = int(VECTORS["unbonding"])
COMMISSIONS = [int(one) for one in VECTORS["commissions"]]
ACTORS = [f"0x{index:040x}" for index in range(int(VECTORS["actors"]))]  # the first own the nodes
STAKING, TASKS = "staking", "tasks"
ROLE = int(Role.HOSPITAL)


def event(name: str, block: int, index: int, contract: str = STAKING, /, **values: Any) -> Event:
    return Event(name, values, block, index, "0x" + bytes(32).hex(), contract)


@dataclass
class History:
    """The events of a scenario's steps, as the contract would emit them: one block for each step."""

    steps: list[dict[str, Any]]
    events: list[Event] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # By node: assets, shares, unbonding shares, generation; the commission in effect and the one announced.
        self.pools = [[0, 0, 0, 0] for _ in COMMISSIONS]
        self.commissions: list[tuple[int, tuple[int, int] | None]] = [(bps, None) for bps in COMMISSIONS]
        self.requests: dict[tuple[int, int], tuple[int, int, int]] = {}  # node, generation, shares
        self.burnt = 0
        self.times[0] = 0
        for node, bps in enumerate(COMMISSIONS):
            self.events.append(event("NodeRegistered", 0, node, node=ACTORS[node], role=ROLE, commissionBps=bps))
        balance = 0
        for block, step in enumerate(self.steps, 1):
            self.times[block] = step["at"]
            for index, (name, values) in enumerate(self._told(step, balance)):
                self.events.append(event(name, block, index, role=ROLE, **values))
            balance = step["balance"]

    def _told(self, step: dict[str, Any], balance: int) -> Iterator[tuple[str, dict[str, Any]]]:
        node, actor, argument, result = step["node"], step["actor"], step["argument"], step["result"]
        pool, about = self.pools[node], {"node": ACTORS[node]}
        about_both = about | {"delegator": ACTORS[actor]}
        totals = {"totalAssets": step["assets"], "totalShares": step["shares"]}
        match step["op"]:
            case "delegate":
                pool[:2] = step["assets"], step["shares"]
                yield "Delegated", about_both | {"amount": argument, "shares": result} | totals
            case "unbond":
                pool[2] = step["unbonding_shares"]
                self.requests[actor, result] = (node, pool[3], argument)
                told = {"requestId": result, "shares": argument, "maturesAt": step["at"] + UNBONDING}
                yield "UnbondingStarted", about_both | told | {"totalUnbondingShares": pool[2]}
            case "withdraw":
                yield self._unbonded(actor, argument, result)
            case "redelegate":
                yield self._unbonded(actor, argument, result)
                minted = step["shares"] - pool[1]
                pool[:2] = step["assets"], step["shares"]
                yield "Delegated", about_both | {"amount": result, "shares": minted} | totals
            case "lock" | "unlock":
                name = {"lock": "StakeLocked", "unlock": "StakeUnlocked"}[step["op"]]
                yield name, about | {"amount": argument, "totalLocked": step["locked"]}
            case "slash" if result:
                forfeited = balance - step["balance"] - result
                pool[:3] = step["assets"], step["shares"], step["unbonding_shares"]
                self.burnt += result + forfeited
                yield "StakeSlashed", about | {"amount": result, "forfeited": forfeited} | totals
                if not step["assets"]:
                    pool[3] += 1
                    yield "PoolWiped", about | {"generation": pool[3]}
            case "reward":
                yield "RewardAdded", about | {"amount": argument, "vestingEnd": step["at"]}
            case "claim":
                yield "Claimed", about_both | {"amount": result}
            case "set_commission":
                bps, announced = self.commissions[node]
                if announced is not None and announced[0] <= step["at"]:
                    bps = announced[1]
                at = step["at"] + (UNBONDING if argument > bps else 0)
                self.commissions[node] = (bps, (at, argument)) if argument > bps else (argument, None)
                yield "CommissionSet", about | {"commissionBps": argument, "effectiveAt": at}

    def _unbonded(self, actor: int, number: int, amount: int) -> tuple[str, dict[str, Any]]:
        node, generation, shares = self.requests[actor, number]
        pool = self.pools[node]
        if generation == pool[3]:
            pool[:3] = pool[0] - amount, pool[1] - shares, pool[2] - shares
        about = {"node": ACTORS[node], "delegator": ACTORS[actor], "requestId": number, "shares": shares}
        return "Unbonded", about | {"amount": amount, "totalAssets": pool[0], "totalShares": pool[1]}

    def rows(self, cuts: Sequence[int] = ()) -> list[Fact]:
        """All rows, made range by range: a range knows only the latest rows."""
        found: list[Fact] = []
        for first, last in pairwise([0, *sorted(cuts), len(self.times)]):
            part = [one for one in self.events if first <= one.block < last]
            found += facts(part, self.times, STAKING, latest(found), {})
        return found


def latest(rows: Sequence[Fact]) -> Known:
    """The state that the tables would give."""
    pools = {(row.node, row.role): row for row in rows if isinstance(row, PoolRow)}
    positions = {(row.delegator, row.node, row.role): row for row in rows if isinstance(row, Position)}
    unbondings = {(row.delegator, row.request): row for row in rows if isinstance(row, Request)}
    return Known(Latest(pools.get), Latest(positions.get), Latest(unbondings.get))


def history(name: str) -> History:
    columns = next(scenario for scenario in VECTORS["scenarios"] if scenario["name"] == name)
    count = len(columns["at"])
    read = {
        key: [one if key == "op" else int(one) for one in values] for key, values in columns.items() if key != "name"
    }
    return History([{key: values[step] for key, values in read.items()} for step in range(count)])


@pytest.mark.parametrize("name", NAMES)
def test_totals_are_those_of_the_reference_after_every_step(name: str) -> None:
    told = history(name)
    rows = told.rows()
    for block, step in enumerate(told.steps, 1):
        until = [row for row in rows if row.block <= block]
        node = ACTORS[step["node"]]
        pool = [row for row in until if isinstance(row, PoolRow) and row.node == node][-1]
        for name in ("assets", "shares", "unbonding_shares", "locked"):
            assert getattr(pool, name) == step[name], (block, step["op"], name)
        held = {row.delegator: row for row in until if isinstance(row, Position) and row.node == node}
        for index, actor in enumerate(ACTORS):
            position = held.get(actor)
            current = position.shares if position and position.generation == pool.generation else 0
            assert current == step[f"holding_{index}"], (block, step["op"], index)
    last = {row.node: row for row in rows if isinstance(row, PoolRow)}
    assert sum(pool.burnt + pool.forfeited for pool in last.values()) == told.burnt
    given_ = sum(step["argument"] for step in told.steps if step["op"] == "reward")
    assert sum(pool.rewarded for pool in last.values()) == given_
    kept = {row.delegator: 0 for row in rows if isinstance(row, Position)}
    for row in {(row.delegator, row.node): row for row in rows if isinstance(row, Position)}.values():
        kept[row.delegator] += row.claimed
    paid = [sum(step["result"] for step in told.steps if (step["op"], step["actor"]) == ("claim", i)) for i in range(4)]
    assert [kept.get(actor, 0) for actor in ACTORS] == paid


@given(data=st.data(), name=st.sampled_from(NAMES))
def test_rows_do_not_hang_on_where_ranges_end(data: st.DataObject, name: str) -> None:
    told = history(name)
    cuts = data.draw(st.lists(st.integers(0, len(told.times)), max_size=20))
    assert told.rows(cuts) == told.rows()


@given(raise_to=st.integers(501, 10_000), wait=st.integers(0, 2 * UNBONDING))
def test_an_announced_commission_takes_effect_in_its_time(raise_to: int, wait: int) -> None:
    node = {"node": ACTORS[0], "role": ROLE}
    events = [
        event("NodeRegistered", 1, 0, **node, commissionBps=500),
        event("CommissionSet", 2, 0, **node, commissionBps=raise_to, effectiveAt=UNBONDING),
        event("StakeLocked", 3, 0, **node, amount=0, totalLocked=0),
    ]
    rows = facts(events, {1: 0, 2: 0, 3: wait}, STAKING, Known(), {})
    announced, after = [row for row in rows if isinstance(row, PoolRow)][1:]
    assert (announced.commission_bps, announced.next_commission_bps) == (500, raise_to)
    assert announced.next_commission_at == UNBONDING
    in_effect = wait >= UNBONDING
    assert after.commission_bps == (raise_to if in_effect else 500)
    assert (after.next_commission_at is None) == in_effect


def test_money_of_model_shares_counts_as_rewards() -> None:
    node = {"node": ACTORS[0], "role": ROLE}
    events = [
        event("NodeRegistered", 1, 0, **node, commissionBps=500),
        event("RewardAdded", 2, 0, **node, amount=5, vestingEnd=9),
        event("Given", 3, 0, **node, amount=7, vestingEnd=9),
    ]
    rows = facts(events, {1: 0, 2: 0, 3: 0}, STAKING, Known(), {})
    assert [row.rewarded for row in rows if isinstance(row, PoolRow)] == [0, 5, 12]


@pytest.mark.parametrize(("wait", "paid"), [(UNBONDING - 1, ACTORS[1]), (UNBONDING, ACTORS[2])])
def test_an_announced_withdrawal_address_takes_effect_in_its_time(wait: int, paid: str) -> None:
    node = {"node": ACTORS[0], "role": ROLE}
    events = [
        event("NodeRegistered", 1, 0, **node, commissionBps=500),
        event("WithdrawalAddressSet", 2, 0, **node, withdrawalAddress=ACTORS[1], effectiveAt=0),
        event("WithdrawalAddressSet", 3, 0, **node, withdrawalAddress=ACTORS[2], effectiveAt=UNBONDING),
        event("StakeLocked", 4, 0, **node, amount=0, totalLocked=0),
        event("WithdrawalAddressSet", 5, 0, **node, withdrawalAddress=paid, effectiveAt=wait),
    ]
    rows = facts(events, {1: 0, 2: 0, 3: 0, 4: wait, 5: wait}, STAKING, Known(), {})
    pools = [row for row in rows if isinstance(row, PoolRow)]
    kept = [(one.withdrawal_address, one.next_withdrawal_address, one.next_withdrawal_at) for one in pools]
    pending = (ACTORS[1], ACTORS[2], UNBONDING)
    settled = (paid, None, None)
    between = pending if wait < UNBONDING else settled
    assert kept == [(None, None, None), (ACTORS[1], None, None), pending, between, settled]


@pytest.mark.parametrize("order", ["key first", "node first"])
def test_a_voters_key_shows_in_its_pool_whichever_came_first(order: str) -> None:
    key: tuple[str, dict[str, Any]] = ("VoterKeyRegistered", {"voter": ACTORS[0], "publicKey": b"\x01"})
    registered: list[tuple[str, dict[str, Any]]] = [
        ("NodeRegistered", {"node": ACTORS[0], "role": int(role), "commissionBps": 0}) for role in Role
    ]
    told = [key, *registered] if order == "key first" else [*registered, key]
    events = [event(name, 1, index, **values) for index, (name, values) in enumerate(told)]
    rows = facts(events, {1: 0}, STAKING, Known(), {})
    last = {row.role: row.voter_key for row in rows if isinstance(row, PoolRow)}
    assert last == {Role.HOSPITAL: False, Role.VOTER: True, Role.AGGREGATOR: False}


def test_payments_say_as_what_an_account_was_paid() -> None:
    events = [
        event("HospitalJoined", 1, 0, TASKS, taskId=3, hospital="h", index=0, weight=2**32 - 1),
        event("VoterJoined", 1, 1, TASKS, taskId=3, voter="v", index=0),
        event("AggregatorJoined", 1, 2, TASKS, taskId=3, aggregator="a"),
        event("Rewarded", 2, 0, TASKS, taskId=3, round=1, account="h", amount=5),
        event("Slashed", 2, 1, TASKS, taskId=3, round=1, account="v", amount=6, reason=3),
        event("BountyPaid", 2, 2, TASKS, taskId=3, round=1, account="stranger", amount=7),
        event("PhaseStarted", 2, 3, TASKS, taskId=3, round=1, phase=int(Phase.ENDED), deadline=0),
        event("TaskEnded", 2, 4, TASKS, taskId=3, refund=8),
    ]
    rows = facts(events, {1: 0, 2: 0}, STAKING, Known(operators=Latest({3: "o"}.get)), {})
    paid = [(row.account, row.role, row.kind, row.amount, row.reason) for row in rows if isinstance(row, Payment)]
    assert paid == [
        ("h", Role.HOSPITAL, "reward", 5, None),
        ("v", Role.VOTER, "slash", 6, SlashReason.NOT_REVEALED),
        ("stranger", None, "bounty", 7, None),
        ("o", None, "refund", 8, None),
    ]
    joined = [(row.account, row.role, row.weight) for row in rows if isinstance(row, Participant)]
    assert joined == [("h", Role.HOSPITAL, 2**32 - 1), ("v", Role.VOTER, 0), ("a", Role.AGGREGATOR, 0)]
    assert [row.phase for row in rows if isinstance(row, PhaseStart)] == [Phase.ENDED]


@given(
    st.dictionaries(
        st.text(max_size=8).map("_{}".format),  # no name that the index reads, such as role
        st.one_of(
            st.booleans(), st.integers(-(2**255), 2**256 - 1), st.binary(max_size=40), st.lists(st.integers(-9, 2**255))
        ),
    )
)
def test_values_of_any_event_are_kept_as_json_can_hold_them(values: dict[str, Any]) -> None:
    (row,) = facts([Event("Unheard", values, 1, 0, "0x" + bytes(32).hex(), TASKS)], {1: 0}, STAKING, Known(), {})
    assert isinstance(row, EventRow)
    kept = json.loads(json.dumps(row.values))
    assert kept == row.values
    for name, value in values.items():
        back = kept[name]
        if isinstance(value, bytes):
            back = bytes.fromhex(back.removeprefix("0x"))
        elif isinstance(value, list):
            back = [int(one) for one in back]
        elif not isinstance(value, bool):
            back = int(back)
        assert back == value


def test_an_event_of_staking_that_nobody_knows_is_not_passed_over() -> None:
    known = Known()
    facts([event("NodeRegistered", 1, 0, node=ACTORS[0], role=ROLE, commissionBps=0)], {1: 0}, STAKING, known, {})
    with pytest.raises(ValueError, match="does not know"):
        facts([event("StakeDoubled", 2, 0, node=ACTORS[0], role=ROLE)], {2: 0}, STAKING, known, {})
