"""Plain reference of the staking contract's pools, and the writer of tests/vectors/staking_pools.json.

What the contract does with one price and one reward index per pool, this does with a loop over everybody. Integers
only; `//` rounds down where the contract does. Amounts are in wei, rewards in 2^-48 wei, times in seconds.

Run `python tests/chain/pool_reference.py` to write the vectors again; the output does not change from run to run.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "staking_pools.json"
ONE = 1 << 48  # fractions of a wei
BASIS_POINTS = 10_000
OWN_PART = 10  # of what bonds lock, the owner's own: one in so many
UNBONDING = 604_800
VESTING = 86_400
SUPPLY = 2**96 - 1
SHARES_LIMIT = 2**112
NODES = 2
ACTORS = 4  # the first two own the nodes


@dataclass
class Request:
    node: int
    generation: int
    shares: int
    matures_at: int


@dataclass
class Node:
    owner: int
    commission_bps: int
    raise_to: tuple[int, int] | None = None  # (time, basis points)
    assets: int = 0
    locked: int = 0
    generation: int = 0
    commission: int = 0
    unvested: int = 0
    vested_at: int = 0
    vesting_end: int = 0
    holdings: list[int] = field(default_factory=lambda: [0] * ACTORS)
    leaving: int = 0
    earned: list[int] = field(default_factory=lambda: [0] * ACTORS)

    @property
    def shares(self) -> int:
        return sum(self.holdings) + self.leaving

    def worth(self, shares: int) -> int:
        return shares * self.assets // self.shares if self.shares else 0

    @property
    def free(self) -> int:
        return max(0, self.worth(sum(self.holdings)) - self.locked)

    def claimable(self, actor: int) -> int:
        return self.earned[actor] // ONE + (self.commission if actor == self.owner else 0)

    def advance(self, now: int) -> None:
        if self.raise_to is not None and self.raise_to[0] <= now:
            self._share_out(self.raise_to[0])
            self.commission_bps, self.raise_to = self.raise_to[1], None
        self._share_out(now)

    def _share_out(self, now: int) -> None:
        vested = self.unvested
        if now < self.vesting_end:
            vested = self.unvested * (now - self.vested_at) // (self.vesting_end - self.vested_at)
        earning = sum(self.holdings)
        fee = vested * self.commission_bps // BASIS_POINTS if earning else vested
        each = (vested - fee) // earning if earning else 0
        if fee < ONE and each == 0:
            return
        self.commission += fee // ONE
        self.earned = [had + shares * each for had, shares in zip(self.earned, self.holdings, strict=True)]
        self.unvested -= fee // ONE * ONE + each * earning
        self.vested_at = now


@dataclass
class Staking:
    """All nodes, and what left or entered. Each operation takes the time; refused ones raise ValueError."""

    nodes: list[Node] = field(default_factory=lambda: [Node(owner, 500 * (owner + 1)) for owner in range(NODES)])
    requests: list[list[Request | None]] = field(default_factory=lambda: [[] for _ in range(ACTORS)])
    paid_in: int = 0
    paid_out: int = 0
    burnt: int = 0

    def delegate(self, now: int, actor: int, node: int, amount: int) -> int:
        self.paid_in += amount
        return self._enter(now, actor, node, amount)

    def unbond(self, now: int, actor: int, node: int, shares: int) -> int:
        pool = self.nodes[node]
        if not 0 < shares <= pool.holdings[actor]:
            raise ValueError("not so many shares")
        pool.advance(now)
        pool.holdings[actor] -= shares
        pool.leaving += shares
        self.requests[actor].append(Request(node, pool.generation, shares, now + UNBONDING))
        return len(self.requests[actor]) - 1

    def withdraw(self, now: int, actor: int, request: int) -> int:
        amount = self._exit(now, actor, request)
        self.paid_out += amount
        return amount

    def redelegate(self, now: int, actor: int, node: int, request: int) -> int:
        amount = self._exit(now, actor, request)
        self._enter(now, actor, node, amount)
        return amount

    def claim(self, now: int, actor: int, node: int) -> int:
        pool = self.nodes[node]
        pool.advance(now)
        amount, fraction = divmod(pool.earned[actor], ONE)
        pool.earned[actor] = 0
        pool.unvested += fraction
        if actor == pool.owner:
            amount, pool.commission = amount + pool.commission, 0
        self.paid_out += amount
        return amount

    def set_commission(self, now: int, node: int, basis_points: int) -> None:
        pool = self.nodes[node]
        pool.advance(now)
        is_raise = basis_points > pool.commission_bps
        pool.raise_to = (now + UNBONDING, basis_points) if is_raise else None
        pool.commission_bps = pool.commission_bps if is_raise else basis_points

    def lock(self, node: int, amount: int) -> None:
        if amount > self.nodes[node].free:
            raise ValueError("not so much free")
        self.nodes[node].locked += amount

    def unlock(self, node: int, amount: int) -> None:
        self.nodes[node].locked -= amount

    def slash(self, now: int, node: int, amount: int) -> int:
        pool = self.nodes[node]
        pool.advance(now)
        amount = min(amount, pool.locked)
        if amount == 0:
            return 0
        forfeited = min(-(-pool.unvested * amount // (pool.assets * ONE)), pool.unvested // ONE)
        pool.unvested -= forfeited * ONE
        pool.locked -= amount
        pool.assets -= amount
        self.burnt += amount + forfeited
        if pool.assets == 0:
            pool.holdings, pool.leaving = [0] * ACTORS, 0
            pool.generation += 1
        return amount

    def reward(self, now: int, node: int, amount: int) -> None:
        pool = self.nodes[node]
        pool.advance(now)
        pool.unvested += amount * ONE
        pool.vested_at, pool.vesting_end = now, now + VESTING
        self.paid_in += amount

    @property
    def balance(self) -> int:
        return self.paid_in - self.paid_out - self.burnt

    def owed(self) -> int:
        """All that the contract holds, in 2^-48 wei."""
        return sum((pool.assets + pool.commission) * ONE + pool.unvested + sum(pool.earned) for pool in self.nodes)

    def _enter(self, now: int, actor: int, node: int, amount: int) -> int:
        pool = self.nodes[node]
        pool.advance(now)
        minted = amount * pool.shares // pool.assets if pool.shares else amount
        if amount == 0 or pool.shares + minted >= SHARES_LIMIT:
            raise ValueError("nothing to delegate, or a worn out pool")
        pool.assets += amount
        pool.holdings[actor] += minted
        return minted

    def _own(self, node: int, left_out: int) -> int:
        """The owner's shares, unbonding ones too, but for one request's."""
        pool = self.nodes[node]
        unbonding = sum(
            request.shares
            for number, request in enumerate(self.requests[pool.owner])
            if request and number != left_out and (request.node, request.generation) == (node, pool.generation)
        )
        return pool.holdings[pool.owner] + unbonding

    def _exit(self, now: int, actor: int, number: int) -> int:
        request = self.requests[actor][number]
        if request is None or now < request.matures_at:
            raise ValueError("closed, or not matured")
        pool = self.nodes[request.node]
        is_current = request.generation == pool.generation
        amount = pool.worth(request.shares) if is_current else 0
        if pool.assets - amount < pool.locked:
            raise ValueError("still backing bonds")
        if is_current:
            pool.assets -= amount
            pool.leaving -= request.shares
            if actor == pool.owner and pool.worth(self._own(request.node, number)) < pool.locked // OWN_PART:
                raise ValueError("less than the owner's part")
        self.requests[actor][number] = None
        return amount


class Scenario:
    """A random sequence of operations that the contract accepts, with what each must leave behind."""

    def __init__(self, name: str, largest: int, longest: int, harshness: float, steps: int) -> None:
        self._source = random.Random(name)
        self._largest, self._longest, self._harshness = largest, longest, harshness
        self._now = 0
        self.staking = Staking()
        self.name = name
        self.steps: list[dict[str, Any]] = []
        while len(self.steps) < steps:
            self._step()

    def _step(self) -> None:
        kinds = ["delegate", "unbond", "lock", "reward"] * 3 + ["withdraw", "redelegate"] * 4
        kinds += ["slash", "unlock", "claim", "wait"] * 2 + ["set_commission"]
        kind = self._source.choice(kinds)
        node, actor = self._source.randrange(NODES), self._source.randrange(ACTORS)
        if kind == "wait":
            self._now += self._source.choice([1, self._longest // 20, self._longest])
            return
        argument = self._argument(kind, node, actor)
        if argument is not None:
            result = self._apply(kind, node, actor, argument)
            self._record(kind, node, actor, argument, result)

    def _argument(self, kind: str, node: int, actor: int) -> int | None:
        """An amount, or shares, a request, basis points: what the operation takes; None if it cannot be done now."""
        pool = self._pool_now(node)
        if kind in ("delegate", "reward"):
            return self._amount(self._largest)
        if kind == "unbond":
            return self._part(pool.holdings[actor], 0.4)
        if kind == "lock":
            return self._part(pool.free, self._harshness)
        if kind in ("unlock", "slash"):
            return self._part(pool.locked, self._harshness)
        if kind == "set_commission":
            return self._source.randrange(BASIS_POINTS + 1)
        if kind in ("withdraw", "redelegate"):
            return self._request(actor, needs_worth=kind == "redelegate")
        return 0 if pool.claimable(actor) else None

    def _pool_now(self, node: int) -> Node:
        """A copy: looking must not be an occasion to share out rewards, which the contract did not have."""
        pool = deepcopy(self.staking.nodes[node])
        pool.advance(self._now)
        return pool

    def _request(self, actor: int, needs_worth: bool) -> int | None:
        for number, request in enumerate(self.staking.requests[actor]):
            if request is None or request.matures_at > self._now:
                continue
            pool = self.staking.nodes[request.node]
            worth = pool.worth(request.shares) if request.generation == pool.generation else 0
            if worth or not needs_worth:
                try:
                    deepcopy(self.staking)._exit(self._now, actor, number)
                except ValueError:
                    continue
                return number
        return None

    def _amount(self, most: int) -> int:
        return self._source.randint(1, max(1, most >> self._source.randrange(most.bit_length())))

    def _part(self, whole: int, all_chance: float) -> int | None:
        if whole == 0:
            return None
        return whole if self._source.random() < all_chance else self._source.randint(1, whole)

    def _apply(self, kind: str, node: int, actor: int, argument: int) -> int:
        staking, now = self.staking, self._now
        if kind == "delegate":
            return staking.delegate(now, actor, node, argument)
        if kind == "unbond":
            return staking.unbond(now, actor, node, argument)
        if kind == "withdraw":
            return staking.withdraw(now, actor, argument)
        if kind == "redelegate":
            return staking.redelegate(now, actor, node, argument)
        if kind == "claim":
            return staking.claim(now, actor, node)
        if kind == "slash":
            return staking.slash(now, node, argument)
        if kind in ("lock", "unlock"):
            getattr(staking, kind)(node, argument)
        else:
            getattr(staking, kind)(now, node, argument)
        return 0

    def _record(self, kind: str, node: int, actor: int, argument: int, result: int) -> None:
        pool = self._pool_now(node)
        self.steps.append(
            {
                "at": str(self._now),
                "op": kind,
                "node": str(node),
                "actor": str(actor),
                "argument": str(argument),
                "result": str(result),
                "balance": str(self.staking.balance),
                "assets": str(pool.assets),
                "shares": str(pool.shares),
                "unbonding_shares": str(pool.leaving),
                "locked": str(pool.locked),
                "free": str(pool.free),
                "commission": str(pool.commission),
                "unvested_x48": str(pool.unvested),
            }
            | {f"holding_{each}": str(pool.holdings[each]) for each in range(ACTORS)}
            | {f"claimable_{each}": str(pool.claimable(each)) for each in range(ACTORS)}
        )


def scenarios() -> list[Scenario]:
    """Amounts that are ordinary, tiny (where rounding shows) and enormous; slashes that are partial and total."""
    return [
        Scenario("ordinary amounts", 10**21, UNBONDING, 0.1, 70),
        Scenario("a few wei", 20, UNBONDING, 0.2, 70),
        Scenario("total slashes", 10**12, UNBONDING, 0.95, 90),
        Scenario("a supply of 96 bits", 2**90, UNBONDING, 0.1, 70),
        Scenario("seconds apart", 10**18, 60, 0.1, 40),
    ]


def vectors() -> dict[str, Any]:
    # A scenario is a table by columns, which forge reads a column at a time.
    return {
        "source": "tests/chain/pool_reference.py",
        "supply": str(SUPPLY),
        "unbonding": str(UNBONDING),
        "vesting": str(VESTING),
        "commissions": [str(node.commission_bps) for node in Staking().nodes],
        "actors": str(ACTORS),
        "scenarios": [
            {"name": scenario.name}
            | {column: [step[column] for step in scenario.steps] for column in scenario.steps[0]}
            for scenario in scenarios()
        ],
    }


def as_text() -> str:
    """One column a line."""
    return json.dumps(vectors()).replace('], "', '],\n"').replace(', "scenarios"', ',\n"scenarios"') + "\n"


if __name__ == "__main__":
    VECTORS.write_text(as_text(), encoding="utf-8")
