"""Writes settlement.json and settlement_rounds.jsonl: what the plain Python reference of settlement answers to random
and extreme questions, about its arithmetic and about whole rounds, one to a line.

Run with the repository's rooms importable: `python tests/vectors/generate_settlement.py`. The output does not change
from run to run. forge asks the contracts the same questions (`chain/contracts/test/Settlement.t.sol`), so a change to
either side that the other does not make is found by both suites. Integers are decimal strings, since JSON readers round
large numbers; bit maps and small counts among them, so that every value is read alike.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, VoidReason, members
from consilium_chain.settlement.payouts import (
    BASIS_POINTS,
    counts,
    gain,
    is_near,
    lower_median,
    penalty,
    portion,
    rank_claim,
    round_part,
    share,
)
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle

UINT16, UINT32, UINT64, UINT128 = (2**bits - 1 for bits in (16, 32, 64, 128))
INT64_MIN, INT64_MAX = INVALID_SCORE, 2**63 - 1
EDGES = (INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX)
QUESTIONS, CASES, ARENAS = 96, 120, 40
MIXES = ((1, 0, 0, 0), (4, 1, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0), (2, 0, 0, 1), (1, 0, 0, 2))  # of voters
Ballot = tuple[int, ...]
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
    medians_of = {"genuine": scores(), "decoy": scores(), "accept_floor": scores(), "margin": uints(UINT64)}
    for i in range(0, QUESTIONS, 2):  # likewise
        medians_of["accept_floor"][i] = medians_of["genuine"][i] + source.choice((-1, 0, 0, 1))
        edge = medians_of["genuine"][i] - medians_of["margin"][i] + source.choice((-1, 0, 0, 1))
        medians_of["decoy"][i] = max(edge, INT64_MIN)
        medians_of["accept_floor"][i] = min(max(medians_of["accept_floor"][i], INT64_MIN), INT64_MAX)
    apart = random.Random(85)  # so that the other questions stay as they are
    ranks, decays = ([apart.randint(0, most) for _ in range(QUESTIONS)] for most in (63, BASIS_POINTS))
    return {
        "portion": table(portion, {"amount": amounts, "basis_points": basis_points}),
        "penalty": table(penalty, {"bond": amounts, "basis_points": basis_points, "left": uints(UINT128)}),
        "round_part": table(round_part, {"pool": amounts, "rounds": uints(UINT16, 1), "left": uints(UINT128)}),
        "gain": table(gain, {"weight": uints(UINT32), "median": scores()}),
        "share": table(share, {"amount": amounts, "part": uints(2**95), "whole": uints(2**103)}),
        "rank_claim": table(rank_claim, {"rank": ranks, "decay_bps": decays}),
        "is_near": table(is_near, near),
        "counts": table(counts, medians_of),
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
        max_hospitals=source.choice((9, 64, 256)),
        hospital_bond=max(1, any_uint(source, 10**21)),
        voter_bond=max(1, any_uint(source, 10**21)),
        aggregator_bond=max(1, any_uint(source, 10**21)),
        digests=source.random() < 0.3,
        decoys=source.random() < 0.7,
        min_reveals=source.randint(1, 3),
        accept_floor=accept_floor,
        harmful_below=accept_floor - source.randint(0, 4_000),
        tolerance_abs=source.choice((0, 2_000, 20_000, 20_000, UINT64)),
        tolerance_bps=source.choice((0, 3_000, BASIS_POINTS)),
        decoy_margin=source.choice((0, 2_000, 2_000, 5_000, 5_000, UINT64)),
        hospital_share_bps=hospital_share,
        voter_share_bps=voter_share,
        aggregator_share_bps=BASIS_POINTS - hospital_share - voter_share,
        rank_decay_bps=0,
        rank_floor=0,
        harmful_slash_bps=source.randint(0, BASIS_POINTS),
        withheld_slash_bps=source.randint(0, BASIS_POINTS),
        not_revealed_slash_bps=source.randint(0, BASIS_POINTS),
        failed_decoy_slash_bps=source.randint(0, BASIS_POINTS),
        not_published_slash_bps=source.randint(0, BASIS_POINTS),
    )


def any_record(source: random.Random, terms: Terms) -> RoundRecord:
    """A round such as the contract's earlier phases can leave behind."""
    hospitals, voters = source.randint(1, 9), source.randint(terms.min_reveals, 8)
    count = source.randint(1, min(5, hospitals))
    assigned = source.sample(range(hospitals), source.randint(count, hospitals))
    cohorts = [sum(1 << hospital for hospital in assigned[k::count]) for k in range(count)]
    present = 1 << assigned[0]
    committed = subset(source, sum(cohorts), 0.85) | present
    survivors = subset(source, committed, 0.9) | present
    able = sum(1 << k for k in range(count) if cohorts[k] & survivors)
    viable = subset(source, able, source.choice((0.9, 0.9, 0.3)))
    dropped = subset(source, able & ~viable, 0.5)
    named = subset(source, survivors & sum(cohorts[k] for k in members(dropped)), 0.6)
    # So that the other questions stay as they are. The seed spells some fields otherwise, for the same reason.
    spelt = str(terms).replace("decoys=", "canaries=").replace("decoy_", "canary_")
    apart = random.Random(spelt.replace(", rank_decay_bps=0, rank_floor=0", ""))
    if named:  # and of who dealt and kept its upload
        named |= subset(apart, committed & ~survivors & sum(cohorts[k] for k in members(dropped)), 0.6)
    if not named:  # then a round without a sum is over before it is judged
        viable, dropped = viable | 1, dropped & ~1
    flipped = subset(source, viable, 0.5) if terms.decoys else 0
    # Nobody reveals before there are as many seated as must reveal.
    seated = subset(source, (1 << voters) - 1, 0.85) | (1 << terms.min_reveals) - 1
    revealed = [source.random() < 0.9 and seated >> i & 1 for i in range(voters)]
    asked = terms.decoys or terms.digests or named != 0
    scores = ballots(source, terms, flipped, count, asked, revealed)
    pool_left = min(terms.pool, any_uint(source, 10**24))
    record = RoundRecord(
        pool_left=pool_left,
        forfeited=min(pool_left, any_uint(apart, 10**24)),
        late=apart.random() < 0.2,
        weights=tuple(source.randint(1, source.choice((8, UINT32))) for _ in range(hospitals)),
        hospital_bonds=tuple(part_of(source, terms.hospital_bond) for _ in range(hospitals)),
        voter_bonds=tuple(part_of(source, terms.voter_bond) for _ in range(voters)),
        aggregator_bond=part_of(source, terms.aggregator_bond),
        cohorts=tuple(cohorts),
        viable=viable,
        committed=committed,
        survivors=survivors & sum(cohorts[k] for k in members(viable | dropped)),
        flipped=flipped if terms.decoys else None,
        seated=seated,
        scores=scores,
        dropped=dropped,
        named=named,
    )
    # A round that is void by its ballots is over before anybody discloses what was sign-flipped.
    over = settle(terms, record).void is not VoidReason.NONE
    return replace(record, flipped=None) if over or source.random() < 0.1 else record


def arenas() -> Iterator[tuple[Terms, RoundRecord]]:
    """Rounds in which each hospital is alone in its cohort, paid by rank. In every second one two cohorts tie."""
    source, found = random.Random(85), 0
    while found < ARENAS:
        plain_terms = any_terms(source)
        record = any_record(source, plain_terms)
        decay, floor = source.choice((1, 5_000, 8_500, 8_500, BASIS_POINTS)), source.choice((1, 1, 2_500))
        terms = replace(plain_terms, rank_decay_bps=decay, rank_floor=floor)
        alone = len(record.cohorts) > 1 and all(cohort.bit_count() == 1 for cohort in record.cohorts)
        if not alone or (settle(terms, record).void is not VoidReason.NONE and source.random() < 0.9):
            continue
        yield terms, tied(terms, record) if found % 2 else record
        found += 1


def tied(terms: Terms, record: RoundRecord) -> RoundRecord:
    """With the scores of cohort 0 for cohort 1, too."""
    count, differ = len(record.cohorts), (record.flipped or 0) & 1 != (record.flipped or 0) >> 1 & 1

    def ballot(scores: Ballot) -> Ballot:
        if not terms.decoys:
            return (scores[0], scores[0], *scores[2:])
        first, second = scores[0], scores[count]
        other = (second, first) if differ else (first, second)
        return (first, other[0], *scores[2:count], second, other[1], *scores[count + 2 :])

    return replace(record, scores=tuple(None if one is None else ballot(one) for one in record.scores))


def part_of(source: random.Random, bond: int) -> int:
    """What is left of a bond, often less than a slash takes."""
    return source.choice((bond, bond, bond // 3 + 1, bond // 50 + 1))


def ballots(
    source: random.Random, terms: Terms, flipped: int, cohorts: int, asked: bool, revealed: Sequence[object]
) -> tuple[Ballot | None, ...]:
    """Per voter: honest, lazy, wild or one that says that nothing matches; None where it did not reveal."""
    truth = [source.choice((-5_000, -1_000, 0, 3_000, 9_000, 9_000)) for _ in range(cohorts)]
    decoy = [value - source.choice((0, 2_000, 9_000, 9_000, 40_000)) for value in truth]
    mixes = MIXES if asked else MIXES[:-2]
    kinds = source.choices(("honest", "lazy", "wild", "mismatch"), source.choice(mixes), k=len(revealed))

    def ballot(kind: str) -> Ballot:
        if kind == "mismatch":
            return (DOES_NOT_MATCH,) * (2 * cohorts if terms.decoys else cohorts)
        pairs = []
        for k in range(cohorts):
            genuine, other = (value + source.randint(-1_500, 1_500) for value in (truth[k], decoy[k]))
            if kind == "lazy" or source.random() < 0.05:
                other = genuine
            if kind == "wild":
                genuine, other = any_score(source), any_score(source)
            pairs.append((other, genuine) if flipped >> k & 1 else (genuine, other))
        first, second = zip(*pairs, strict=True)
        said = first + second if terms.decoys else first
        return said if said[0] != DOES_NOT_MATCH else (0, *said[1:])  # in this place it is a word, not a score

    return tuple(ballot(kind) if shown else None for kind, shown in zip(kinds, revealed, strict=True))


def plain(value: Any) -> Any:
    """Integers as strings, truths as 0 or 1; a voter without scores as an empty list."""
    if value is None:
        return []
    return [plain(item) for item in value] if isinstance(value, tuple) else str(int(value))


def answer(settlement: Settlement) -> dict[str, Any]:
    accounts = settlement.accounts
    return {
        "void": int(settlement.void),
        "medians": plain(settlement.medians),
        "decoy_medians": plain(settlement.decoy_medians),
        "counted": str(settlement.counted),
        "accepted": str(settlement.accepted),
        "harmful": str(settlement.harmful),
        "guilty": str(settlement.guilty),
        "roles": [int(account.role) for account in accounts],
        "rewards": [str(account.reward) for account in accounts],
        "slashes": [str(account.slash) for account in accounts],
        "bases": [str(account.base) for account in accounts],
        "parts": [str(account.part) for account in accounts],
        "wholes": [str(account.whole) for account in accounts],
        "reasons": [account.reason.name for account in accounts],
        "codes": [int(account.reason.code) for account in accounts],
        "pool_left": str(settlement.pool_left),
        "forfeited": str(settlement.forfeited),
    }


def questions() -> Iterator[tuple[Terms, RoundRecord]]:
    """The rounds of the vectors."""
    source = random.Random(2024)
    for _ in range(CASES):
        terms = any_terms(source)
        yield terms, any_record(source, terms)
    yield from arenas()


def case(terms: Terms, record: RoundRecord) -> dict[str, Any]:
    disclosed = {"flipped": str(record.flipped or 0), "disclosed": plain(record.flipped is not None)}
    return {
        "terms": {field.name: plain(getattr(terms, field.name)) for field in fields(Terms)},
        "record": {field.name: plain(getattr(record, field.name)) for field in fields(RoundRecord)} | disclosed,
        "answer": answer(settle(terms, record)),
    }


def vectors() -> str:
    source = "tests/vectors/generate_settlement.py, by consilium_chain.settlement.payouts"
    return _text({"source": source, "functions": functions(random.Random(2024))})


def rounds() -> str:
    return "".join(_text(case(terms, record)) for terms, record in questions())


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    folder = Path(__file__).parent
    (folder / "settlement.json").write_text(vectors(), encoding="utf-8")
    (folder / "settlement_rounds.jsonl").write_text(rounds(), encoding="utf-8")
