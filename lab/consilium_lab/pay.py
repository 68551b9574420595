"""Explains pay that does not follow rows, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from consilium_chain.settlement.settlement import Reason
from consilium_chain.tasks.judging_spec import RoundsSpec
from consilium_core.units import tokens


@dataclass(frozen=True)
class Share:
    """A hospital's settled round. `paid`: in the token's smallest unit."""

    paid: int
    reason: Reason


@dataclass(frozen=True)
class Earner:
    """A hospital with its settled rounds, by number."""

    name: str
    rows: int
    weight: int
    shares: Mapping[int, Share]

    @property
    def paid(self) -> int:
        return sum(share.paid for share in self.shares.values())


RANKED = "Pay of a round goes by rank: neither rows nor the size of an improvement count."


def pay_in_words(earners: Sequence[Earner], rounds: RoundsSpec, *, is_arena: bool = False) -> list[str]:
    """The rule of pay. Where rows count, a sentence for each hospital that got less than one with fewer rows, or the
    same.

    It is compared with the best paid of these.
    """
    if is_arena:
        return [RANKED]
    steps = "each row" if rounds.rows_per_weight == 1 else f"each {rounds.rows_per_weight} rows, rounded up"
    rule = (
        f"Pay of a round goes by weight times the improvement by the hospital's cohort. Weight: 1 for {steps};"
        f" at most {rounds.max_weight}."
    )
    said = []
    for one in sorted(earners, key=lambda earner: -earner.rows):
        fewer = [other for other in earners if other.rows < one.rows and other.paid >= max(one.paid, 1)]
        if fewer:
            said.append(_compared(one, max(fewer, key=lambda other: (other.paid, other.rows)), rounds.max_weight))
    return [rule, *said]


def _compared(one: Earner, other: Earner, most: int) -> str:
    why: dict[str, list[int]] = defaultdict(list)
    for number, share in one.shares.items():
        if share.paid < other.shares[number].paid:
            is_paid = share.reason is Reason.PAID
            why["its cohort improved the model less" if is_paid else str(share.reason)].append(number)
    reasons = [f"round {', '.join(map(str, numbers))}: {reason}" for reason, numbers in why.items()]
    if one.weight == other.weight:
        cap = "the most that the task allows" if one.weight == most else "by its steps"
        reasons.insert(0, f"both have weight {one.weight}, {cap}")
    return (
        f"{one.name} ({one.rows} rows) was paid {tokens(one.paid)} tokens, and {other.name} ({other.rows} rows)"
        f" {tokens(other.paid)}. Reasons for {one.name}: {'; '.join(reasons)}."
    )
