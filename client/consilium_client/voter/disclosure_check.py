"""Checks an opened evaluation against the chain, the public record and the voter's own rows, for their auditor.

Each check is a finding; one that fails does not keep the others from being made, unless they rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from consilium_chain.ledger.ledger import Ledger
from consilium_zk.errors import ZkError
from consilium_zk.evaluation import ballot_salt, drawn, held_out_root, root_of_opening
from numpy.typing import NDArray

from consilium_client.errors import FingerprintError
from consilium_client.voter.disclosure import OpenedBatch, Opening, seed_of
from consilium_client.voter.evaluating import Judge, in_batches
from consilium_client.voter.fingerprints import TOLERANCE, worst_deviation


class Name(StrEnum):
    BALLOT = "ballot"
    ROWS = "rows"
    DRAW = "draw"
    PATHS = "paths"
    FINGERPRINTS = "fingerprints"
    SCORES = "scores"


@dataclass(frozen=True)
class Finding:
    """holds: None if it was not checked."""

    name: Name
    holds: bool | None
    detail: str


def audit(ledger: Ledger, judge: Judge, opening: Opening, drawn_only: bool = False) -> Iterator[Finding]:
    """Findings, in the order in which they rest on one another. `drawn_only`: evaluates nothing but the drawn batches.

    The judge is of the opening's task and of the rows that the auditor holds. Raises RecordIncomplete where the round
    has not ended or its record gives no models, ArtifactMissing, ArtifactCorrupt.
    """
    yield _ballot(ledger, opening)
    rows = _rows(ledger, judge, opening)
    yield rows
    if not rows.holds:
        rest = (Name.DRAW, Name.PATHS, Name.FINGERPRINTS, Name.SCORES)
        yield from (Finding(name, None, "it needs the rows that the voter committed to") for name in rest)
        return
    draw = _draw(ledger, judge, opening)
    yield draw
    yield _paths(judge, opening)
    yield from _evaluation(ledger, judge, opening, drawn_only, opening.batches if draw.holds else ())


def _ballot(ledger: Ledger, opening: Opening) -> Finding:
    task, round_, voter = opening.task, opening.round, opening.voter
    committed, scores = (
        ledger.record.committed_ballot(task, round_, voter),
        ledger.record.revealed_scores(task, round_, voter),
    )
    if committed is None or scores is None:
        missing = "committed to no ballot" if committed is None else "has not revealed its ballot"
        return Finding(Name.BALLOT, False, f"{voter} {missing} in round {round_}")
    salt = ballot_salt(opening.root, opening.blinding)
    if ledger.tasks.score_commitment(task, round_, scores, salt, voter) != committed:
        return Finding(Name.BALLOT, False, "root and blinding do not give the salt that the ballot was committed with")
    return Finding(Name.BALLOT, True, f"root 0x{opening.root.hex()}, fixed before anybody revealed")


def _rows(ledger: Ledger, judge: Judge, opening: Opening) -> Finding:
    committed = ledger.record.held_out_root(opening.task, opening.voter)
    count = len(judge.rows)
    if committed is None:
        return Finding(Name.ROWS, False, f"{opening.voter} committed to no rows before it joined the task")
    if held_out_root(opening.held_out_secret, judge.rows) != committed:
        return Finding(Name.ROWS, False, f"these {count} rows do not give the root on chain, 0x{committed.hex()}")
    return Finding(Name.ROWS, True, f"{count} rows, {judge.batches} batches, root 0x{committed.hex()}")


def _draw(ledger: Ledger, judge: Judge, opening: Opening) -> Finding:
    wanted = drawn(seed_of(ledger, opening.task, opening.round, opening.voter), judge.batches)
    shown = tuple(batch.index for batch in opening.batches)
    if shown != wanted:
        return Finding(Name.DRAW, False, f"drawn are {_listed(wanted)}; shown are {_listed(shown)}")
    return Finding(Name.DRAW, True, f"{len(wanted)} of {judge.batches}: {_listed(wanted)}")


def _paths(judge: Judge, opening: Opening) -> Finding:
    strays = []
    for batch in opening.batches:
        try:
            root = root_of_opening(batch.index, judge.batches, batch.salt, batch.fingerprints, batch.path)
        except ZkError:  # no leaf of this tree, or no path to it
            root = b""
        if root != opening.root:
            strays.append(batch.index)
    if strays:
        return Finding(Name.PATHS, False, f"not beneath it: {_listed(strays)}")
    return Finding(Name.PATHS, True, f"{len(opening.batches)} of {len(opening.batches)}")


def _evaluation(
    ledger: Ledger, judge: Judge, opening: Opening, drawn_only: bool, batches: Sequence[OpenedBatch]
) -> Iterator[Finding]:
    """Runs each model once, for both findings. `batches`: ascending; none if they are not those drawn."""
    state = ledger.tasks.round_state(opening.task, opening.round)
    chosen = [batch.index for batch in batches]
    worths: dict[int, float] = {}
    made: list[list[NDArray[np.float64]]] = [[] for _ in batches]
    if batches or not drawn_only:
        for index, parameters in judge.models(opening.round, state):
            evaluation = judge.evaluate(parameters, chosen if drawn_only else None)
            parts = in_batches(evaluation.activations)
            for own, part in zip(made, parts if drawn_only else [parts[batch] for batch in chosen], strict=True):
                own.append(part)
            if not drawn_only:
                worths[index] = judge.worth(evaluation)
    yield _fingerprints(batches, made)
    if drawn_only:
        yield Finding(Name.SCORES, None, "left out: only the drawn batches were evaluated")
        return
    shown = ledger.record.revealed_scores(opening.task, opening.round, opening.voter)
    if shown is None:
        yield Finding(Name.SCORES, None, "none were revealed")
        return
    yield _scores(shown, judge.scores(opening.round, state, worths), judge.rounding)


def _fingerprints(batches: Sequence[OpenedBatch], made: Sequence[Sequence[NDArray[np.float64]]]) -> Finding:
    """made: by batch, the activations of each model."""
    if not batches:
        return Finding(Name.FINGERPRINTS, None, "it needs the batches that chance drew")
    off: dict[int, float] = {}
    for batch, own in zip(batches, made, strict=True):
        try:
            off[batch.index] = worst_deviation(batch.fingerprints, own)
        except FingerprintError:
            off[batch.index] = np.inf
    made_up = [index for index, worst in off.items() if worst > TOLERANCE]
    of = f"{len(batches)} batches by {len(made[0])} models"
    if made_up:
        return Finding(Name.FINGERPRINTS, False, f"of {of}, these were not evaluated as said: {_listed(made_up)}")
    return Finding(Name.FINGERPRINTS, True, f"{of}, at most {max(off.values()):.1e} off, of {TOLERANCE:.1e} allowed")


def _scores(shown: Sequence[int], computed: Sequence[int], rounding: int) -> Finding:
    pairs = list(zip(shown, computed, strict=True))
    wrong = [index for index, (said, found) in enumerate(pairs) if abs(said - found) > rounding]
    if wrong:
        said = "; ".join(f"{pairs[index][0]} was said at {index}, and {pairs[index][1]} found" for index in wrong)
        return Finding(Name.SCORES, False, said)
    return Finding(Name.SCORES, True, f"{len(pairs)} of {len(pairs)}, from all rows")


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
