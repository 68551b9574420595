"""A disclosure: a voter shows its evaluation of randomly drawn batches to an auditor who holds its rows.

It is as confidential as the rows, because the models are public, and a model's activations say much about its rows.
Only the auditor may get it. The auditor checks it against the chain, the public record and the rows. Each check is a
finding. If one fails, the others are still made, unless they rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from consilium_chain.ledger.ledger import Ledger
from consilium_zk.errors import ZkError
from consilium_zk.evaluation import (
    FINGERPRINT_TAG,
    ballot_salt,
    batch_leaves,
    draw_seed,
    drawn,
    held_out_root,
    leaf_salt,
    root_of_disclosure,
)
from consilium_zk.merkle import path_of
from eth_utils.address import is_checksum_address
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from consilium_client.errors import ClientError, FingerprintError, NodeError
from consilium_client.voter.ballots import Ballot, Bytes
from consilium_client.voter.evaluating import Judge, in_batches
from consilium_client.voter.fingerprints import TOLERANCE, worst_deviation

MOST_BYTES = 1 << 28  # of a file: more than 22 batches of any ballot have


def _address(text: str) -> str:
    if not is_checksum_address(text):
        raise ValueError("this is not an address with a checksum (EIP-55)")
    return text


Word = Annotated[Bytes, Field(min_length=32, max_length=32)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Address = Annotated[str, AfterValidator(_address)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class DisclosedBatch(_Part):
    """`fingerprints`: of all models, one after the other. `path`: from the leaf up."""

    index: Count
    salt: Word
    fingerprints: Bytes
    path: Annotated[tuple[Word, ...], Field(strict=False)]


class Disclosure(_Part):
    """`held_out_secret`: it gives, with the rows, the voter's commitment to its rows."""

    format: Literal["consilium-evaluation-1"]
    chain_id: Count
    contract: Address
    task: Count
    round: Count
    voter: Address
    held_out_secret: Word
    root: Word
    blinding: Word
    batches: Annotated[tuple[DisclosedBatch, ...], Field(strict=False)]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises DisclosureMalformed."""
        try:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            why = f"the file cannot be read: {error.strerror or type(error).__name__}"
            raise ClientError("DisclosureMalformed", path=path, why=why) from error
        if len(raw) > MOST_BYTES:
            raise ClientError("DisclosureMalformed", path=path, why=f"the file has more than {MOST_BYTES} bytes")
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors(include_input=False, include_context=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            # Unchained: the error could quote what the file holds.
            raise ClientError("DisclosureMalformed", path=path, why=f"{where}: {first['msg']}") from None


def seed_of(ledger: Ledger, task: int, round_: int, voter: str) -> bytes:
    """The seed of the draw of a voter's batches. Raises RecordIncomplete before the round has ended."""
    contract, own = (bytes.fromhex(account.removeprefix("0x")) for account in (ledger.deployment.tasks, voter))
    return draw_seed(ledger.record.ending_hash(task, round_), ledger.connection.chain_id, contract, task, round_, own)


def disclose(ledger: Ledger, task: int, ballot: Ballot, held_out_secret: bytes) -> Disclosure:
    """The disclosure of this account's ballot. Raises NothingEvaluated, RecordIncomplete before the round has ended."""
    evaluated, voter = ballot.evaluated, ledger.address
    if not evaluated.fingerprints:
        raise NodeError("NothingEvaluated", round=ballot.round)
    leaves = batch_leaves(FINGERPRINT_TAG, evaluated.secret, evaluated.fingerprints)
    chosen = drawn(seed_of(ledger, task, ballot.round, voter), len(leaves))
    return Disclosure(
        format="consilium-evaluation-1",
        chain_id=ledger.connection.chain_id,
        contract=ledger.deployment.tasks,
        task=task,
        round=ballot.round,
        voter=voter,
        held_out_secret=held_out_secret,
        root=evaluated.root,
        blinding=evaluated.blinding,
        batches=tuple(
            DisclosedBatch(
                index=index,
                salt=leaf_salt(evaluated.secret, index),
                fingerprints=evaluated.fingerprints[index],
                path=tuple(path_of(leaves, index)),
            )
            for index in chosen
        ),
    )


# The auditor's check


class Name(StrEnum):
    BALLOT = "ballot"
    ROWS = "rows"
    DRAW = "draw"
    PATHS = "paths"
    FINGERPRINTS = "fingerprints"
    SCORES = "scores"


@dataclass(frozen=True)
class Finding:
    """`holds`: None if it was not checked."""

    name: Name
    holds: bool | None
    detail: str


def audit(ledger: Ledger, judge: Judge, disclosure: Disclosure, drawn_only: bool = False) -> Iterator[Finding]:
    """Findings, each after those that it rests on. `drawn_only`: evaluates only the drawn batches.

    `judge`: of the disclosure's task and the auditor's rows. Raises RecordIncomplete if the round has not ended or its
    record gives no models, ArtifactMissing, ArtifactCorrupt.
    """
    yield _ballot(ledger, disclosure)
    rows = _rows(ledger, judge, disclosure)
    yield rows
    if not rows.holds:
        rest = (Name.DRAW, Name.PATHS, Name.FINGERPRINTS, Name.SCORES)
        yield from (Finding(name, None, "not checked without the rows that the voter committed to") for name in rest)
        return
    draw = _draw(ledger, judge, disclosure)
    yield draw
    yield _paths(judge, disclosure)
    yield from _evaluation(ledger, judge, disclosure, drawn_only, disclosure.batches if draw.holds else ())


def _ballot(ledger: Ledger, disclosure: Disclosure) -> Finding:
    task, round_, voter = disclosure.task, disclosure.round, disclosure.voter
    committed, scores = (
        ledger.votes.committed_ballot(task, round_, voter),
        ledger.votes.revealed_scores(task, round_, voter),
    )
    if committed is None or scores is None:
        missing = "committed to no ballot" if committed is None else "has not revealed its ballot"
        return Finding(Name.BALLOT, False, f"{voter} {missing} in round {round_}")
    salt = ballot_salt(disclosure.root, disclosure.blinding)
    if ledger.tasks.score_commitment(task, round_, scores, salt, voter) != committed:
        return Finding(Name.BALLOT, False, "root and blinding do not give the salt of the committed ballot")
    return Finding(Name.BALLOT, True, f"root 0x{disclosure.root.hex()}, fixed before the reveals")


def _rows(ledger: Ledger, judge: Judge, disclosure: Disclosure) -> Finding:
    committed = ledger.votes.held_out_root(disclosure.task, disclosure.voter)
    count = len(judge.rows)
    if committed is None:
        return Finding(Name.ROWS, False, f"{disclosure.voter} committed to no rows before it joined the task")
    if held_out_root(disclosure.held_out_secret, judge.rows) != committed:
        return Finding(Name.ROWS, False, f"these {count} rows do not give the root on chain, 0x{committed.hex()}")
    return Finding(Name.ROWS, True, f"{count} rows, {judge.batches} batches, root 0x{committed.hex()}")


def _draw(ledger: Ledger, judge: Judge, disclosure: Disclosure) -> Finding:
    wanted = drawn(seed_of(ledger, disclosure.task, disclosure.round, disclosure.voter), judge.batches)
    shown = tuple(batch.index for batch in disclosure.batches)
    if shown != wanted:
        return Finding(Name.DRAW, False, f"the draw gives {_listed(wanted)}, but the file has {_listed(shown)}")
    return Finding(Name.DRAW, True, f"{len(wanted)} of {judge.batches}: {_listed(wanted)}")


def _paths(judge: Judge, disclosure: Disclosure) -> Finding:
    strays = []
    for batch in disclosure.batches:
        try:
            root = root_of_disclosure(batch.index, judge.batches, batch.salt, batch.fingerprints, batch.path)
        except ZkError:  # not a leaf of this tree, or not its path
            root = b""
        if root != disclosure.root:
            strays.append(batch.index)
    if strays:
        return Finding(Name.PATHS, False, f"these batches are not in the tree: {_listed(strays)}")
    return Finding(Name.PATHS, True, f"{len(disclosure.batches)} of {len(disclosure.batches)}")


def _evaluation(
    ledger: Ledger, judge: Judge, disclosure: Disclosure, drawn_only: bool, batches: Sequence[DisclosedBatch]
) -> Iterator[Finding]:
    """Runs each model once, for both findings. `batches`: ascending; empty if they are not the drawn ones."""
    state = ledger.tasks.round_state(disclosure.task, disclosure.round)
    chosen = [batch.index for batch in batches]
    worths: dict[int, float] = {}
    made: list[list[NDArray[np.float64]]] = [[] for _ in batches]
    if batches or not drawn_only:
        for index, parameters in judge.models(disclosure.round, state):
            evaluation = judge.evaluate(parameters, chosen if drawn_only else None)
            parts = in_batches(evaluation.activations)
            for own, part in zip(made, parts if drawn_only else [parts[batch] for batch in chosen], strict=True):
                own.append(part)
            if not drawn_only:
                worths[index] = judge.worth(evaluation)
    yield _fingerprints(batches, made)
    if drawn_only:
        yield Finding(Name.SCORES, None, "not checked: only the drawn batches were evaluated")
        return
    shown = ledger.votes.revealed_scores(disclosure.task, disclosure.round, disclosure.voter)
    if shown is None:
        yield Finding(Name.SCORES, None, "the voter revealed none")
        return
    yield _scores(shown, judge.scores(disclosure.round, state, worths), judge.rounding)


def _fingerprints(batches: Sequence[DisclosedBatch], made: Sequence[Sequence[NDArray[np.float64]]]) -> Finding:
    """`made`: for each batch, the activations of each model."""
    if not batches:
        return Finding(Name.FINGERPRINTS, None, "not checked without the drawn batches")
    off: dict[int, float] = {}
    for batch, own in zip(batches, made, strict=True):
        try:
            off[batch.index] = worst_deviation(batch.fingerprints, own)
        except FingerprintError:
            off[batch.index] = np.inf
    made_up = [index for index, worst in off.items() if worst > TOLERANCE]
    of = f"{len(batches)} batches by {len(made[0])} models"
    if made_up:
        return Finding(Name.FINGERPRINTS, False, f"of {of}, these do not match their fingerprints: {_listed(made_up)}")
    return Finding(Name.FINGERPRINTS, True, f"{of}, at most {max(off.values()):.1e} off, of {TOLERANCE:.1e} allowed")


def _scores(shown: Sequence[int], computed: Sequence[int], rounding: int) -> Finding:
    pairs = list(zip(shown, computed, strict=True))
    wrong = [index for index, (voted, own) in enumerate(pairs) if abs(voted - own) > rounding]
    if wrong:
        differences = (f"score {index} is {pairs[index][0]}, but {pairs[index][1]} was computed" for index in wrong)
        return Finding(Name.SCORES, False, "; ".join(differences))
    return Finding(Name.SCORES, True, f"{len(pairs)} of {len(pairs)}, from all rows")


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
