"""Writes settlement.json: what the plain Python reference of settlement answers to random and extreme questions.

Run with the repository's rooms importable: `python tests/vectors/generate_settlement.py`. The output does not change
from run to run. forge asks the contracts the same questions (`chain/contracts/test/Settlement.t.sol`), so a change to
either side that the other does not make is found by both suites. Integers are decimal strings, since JSON readers round
large numbers; bit maps and small counts among them, so that every value is read alike.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from consilium_chain.settlement import (
    BASIS_POINTS,
    RoundRecord,
    Settlement,
    Terms,
    budget,
    gain,
    is_near,
    lower_median,
    penalty,
    portion,
    settle,
    share,
)
from consilium_chain.views import INVALID_SCORE, members

UINT16, UINT32, UINT64, UINT128 = (2**bits - 1 for bits in (16, 32, 64, 128))
INT64_MIN, INT64_MAX = INVALID_SCORE, 2**63 - 1
EDGES = (INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX)
QUESTIONS, CASES = 96, 64
Column = list[int]


def any_uint(source: random.Random, most: int) -> int:
    """Of any magnitude; the ends more often than chance would have it."""
    edge = source.choice((0, 1, most, None, None, None, None))
    return min(most, source.getrandbits(source.randint(1, most.bit_length()))) if edge is None else edge


def any_score(source: random.Random) -> int:
    if source.random() < 0.3:
        return source.choice(EDGES)
    bits = source.randint(1, 63)
    return source.randint(-(2**bits), 2**bits - 1)


def table(function: Callable[..., int], columns: dict[str, Column]) -> dict[str, list[str]]:
    results = [int(function(*row)) for row in zip(*columns.values(), strict=True)]
    return {name: [str(value) for value in column] for name, column in {**columns, "result": results}.items()}


def functions(source: random.Random) -> dict[str, Any]:
    def uints(most: int, least: int = 0) -> Column:
        return [max(least, any_uint(source, most)) for _ in range(QUESTIONS)]

    def scores() -> Column:
        return [any_score(source) for _ in range(QUESTIONS)]

    amounts, basis_points = uints(UINT128), uints(BASIS_POINTS)
    near = {"score": scores(), "median": scores(), "tolerance_abs": uints(UINT64), "tolerance_bps": uints(UINT16)}
    for i in range(0, QUESTIONS, 2):  # chance alone would never put a score just in or just out of reach
        span = near["tolerance_abs"][i] + portion(abs(near["median"][i]), near["tolerance_bps"][i])
        edge = near["median"][i] + source.choice((-1, 1)) * (span + source.choice((0, 1)))
        near["score"][i] = min(max(edge, INT64_MIN), INT64_MAX)
    return {
        "portion": table(portion, {"amount": amounts, "basis_points": basis_points}),
        "penalty": table(penalty, {"bond": amounts, "basis_points": basis_points, "left": uints(UINT128)}),
        "budget": table(budget, {"pool": amounts, "rounds": uints(UINT16, 1), "left": uints(UINT128)}),
        "gain": table(gain, {"weight": uints(UINT32), "median": scores()}),
        "share": table(share, {"amount": amounts, "part": uints(2**95), "whole": uints(2**103)}),
        "is_near": table(is_near, near),
        "lower": medians(source),
    }


def medians(source: random.Random) -> list[dict[str, Any]]:
    lists = [[edge] for edge in EDGES] + [[INT64_MAX, INT64_MIN], [0] * 7, list(EDGES), list(reversed(EDGES))]
    lists += [[any_score(source) for _ in range(source.randint(1, 40))] for _ in range(40)]
    lists.append([any_score(source) for _ in range(256)])
    return [{"values": [str(v) for v in values], "result": str(lower_median(values))} for values in lists]


def subset(source: random.Random, of: int, likelihood: float) -> int:
    return sum(1 << i for i in members(of) if source.random() < likelihood)


def any_terms(source: random.Random) -> Terms:
    hospital_share = source.randint(0, BASIS_POINTS)
    voter_share = source.randint(0, BASIS_POINTS - hospital_share)
    accept_floor = source.randint(-3_000, 1_000)
    return Terms(
        pool=any_uint(source, 10**24),
        rounds=source.randint(1, 9),
        hospital_bond=max(1, any_uint(source, 10**21)),
        voter_bond=max(1, any_uint(source, 10**21)),
        min_reveals=source.randint(1, 3),
        accept_floor=accept_floor,
        harmful_below=accept_floor - source.randint(0, 4_000),
        tolerance_abs=source.choice((0, 2_000, 20_000, UINT64)),
        tolerance_bps=source.choice((0, 3_000, BASIS_POINTS)),
        hospital_share_bps=hospital_share,
        voter_share_bps=voter_share,
        aggregator_share_bps=BASIS_POINTS - hospital_share - voter_share,
        harmful_slash_bps=source.randint(0, BASIS_POINTS),
        not_revealed_slash_bps=source.randint(0, BASIS_POINTS),
    )


def any_record(source: random.Random, terms: Terms) -> RoundRecord:
    """A round such as the contract's earlier phases can leave behind."""
    hospitals, voters = source.randint(1, 9), source.randint(terms.min_reveals, 8)
    count = source.randint(1, min(5, hospitals))
    dealt = source.sample(range(hospitals), source.randint(count, hospitals))
    cohorts = [sum(1 << hospital for hospital in dealt[k::count]) for k in range(count)]
    committed = subset(source, sum(cohorts), 0.85)
    viable = sum(1 << k for k in range(count) if cohorts[k] & committed and source.random() < 0.9)
    present = sum(cohorts[k] for k in members(viable)) & committed
    truth = [source.choice((-5_000, -1_000, 0, 3_000, 9_000)) for _ in range(count)]
    wild = source.random() < 0.2

    def scores() -> tuple[int, ...]:
        return tuple(any_score(source) if wild else value + source.randint(-1_500, 1_500) for value in truth)

    # Nobody reveals before there are as many seated as must reveal.
    seated = subset(source, (1 << voters) - 1, 0.85) | (1 << terms.min_reveals) - 1
    return RoundRecord(
        pool_left=min(terms.pool, any_uint(source, 10**24)),
        weights=tuple(source.randint(1, source.choice((8, UINT32))) for _ in range(hospitals)),
        hospital_bonds=tuple(source.choice((terms.hospital_bond, terms.hospital_bond // 3)) for _ in range(hospitals)),
        voter_bonds=tuple(source.choice((terms.voter_bond, terms.voter_bond // 3)) for _ in range(voters)),
        cohorts=tuple(cohorts),
        viable=viable,
        committed=committed,
        survivors=subset(source, present, 0.9),
        seated=seated,
        scores=tuple(scores() if seated >> i & 1 and source.random() < 0.9 else None for i in range(voters)),
    )


def plain(value: Any) -> Any:
    """Integers as strings; a voter without scores as an empty list."""
    if value is None:
        return []
    return [plain(item) for item in value] if isinstance(value, tuple) else str(value)


def answer(settlement: Settlement) -> dict[str, Any]:
    accounts = settlement.accounts
    return {
        "void": int(settlement.void),
        "medians": plain(settlement.medians),
        "accepted": str(settlement.accepted),
        "harmful": str(settlement.harmful),
        "roles": [int(account.role) for account in accounts],
        "rewards": [str(account.reward) for account in accounts],
        "slashes": [str(account.slash) for account in accounts],
        "bases": [str(account.base) for account in accounts],
        "parts": [str(account.part) for account in accounts],
        "wholes": [str(account.whole) for account in accounts],
        "reasons": [account.reason.name for account in accounts],
        "codes": [int(account.reason.code) for account in accounts],
        "pool_left": str(settlement.pool_left),
    }


def case(source: random.Random) -> dict[str, Any]:
    terms = any_terms(source)
    record = any_record(source, terms)
    return {
        "terms": {field.name: plain(getattr(terms, field.name)) for field in fields(Terms)},
        "record": {field.name: plain(getattr(record, field.name)) for field in fields(RoundRecord)},
        "answer": answer(settle(terms, record)),
    }


def vectors() -> dict[str, Any]:
    source = random.Random(2024)
    return {
        "source": "tests/vectors/generate_settlement.py, by consilium_chain.settlement",
        "functions": functions(source),
        "settlements": [case(source) for _ in range(CASES)],
    }


def text() -> str:
    return json.dumps(vectors(), separators=(",", ":")).replace('{"terms"', '\n{"terms"') + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "settlement.json").write_text(text(), encoding="utf-8")
