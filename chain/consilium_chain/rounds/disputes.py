"""The accuser's evidence in a dispute over a masked sum, and the cheaters by chain and store.

The chain has the accusation, and the hospitals' dispute statements with their times. The accuser adds one file, and the
uploads blob by blob as files of the store, each under its keccak256.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from consilium_zk.constants import BYTES_PER_FIELD_ELEMENT
from consilium_zk.curve import Commitment, parse_commitment
from consilium_zk.disputes import Case, Evidence, Reason, cheaters, parse_agreements, withholders
from consilium_zk.errors import EvidenceMalformed, ShapeWrong

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import StatementMalformed
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, RoundState
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_chain.rounds.statements import SignedStatement, parse_signed_statement

_BYTES_PER_DIGEST = 32


@dataclass(frozen=True)
class Shown:
    """An accuser's evidence about a cohort, by hospital index.

    answers: if roots are missing after a threshold of answers; nothing else is given then. Otherwise the sum is wrong.
    statements: of the survivors, signed. uploads: the survivors' blobs, each by its keccak256. commitments: the
    survivors' points, one per blob, whose hashes the chain has. roots: of all in the masking, own roots of survivors
    and key roots of the rest.
    """

    statements: Mapping[int, SignedStatement] = field(default_factory=dict)
    uploads: Mapping[int, Sequence[bytes]] = field(default_factory=dict)
    commitments: Mapping[int, Sequence[Commitment]] = field(default_factory=dict)
    roots: Mapping[int, int] = field(default_factory=dict)
    answers: Mapping[int, bytes] = field(default_factory=dict)

    def to_file(self) -> bytes:
        return json.dumps(
            {
                "statements": {str(index): signed.to_wire().hex() for index, signed in self.statements.items()},
                "uploads": {str(index): [digest.hex() for digest in blobs] for index, blobs in self.uploads.items()},
                "commitments": {
                    str(index): [point.hex() for point in points] for index, points in self.commitments.items()
                },
                "roots": {
                    str(index): root.to_bytes(BYTES_PER_FIELD_ELEMENT, "big").hex()
                    for index, root in self.roots.items()
                },
                "answers": {str(index): answer.hex() for index, answer in self.answers.items()},
            }
        ).encode()


def parse_shown(raw: bytes) -> Shown:
    """Raises EvidenceMalformed."""
    try:
        file: dict[str, dict[str, Any]] = json.loads(raw)
        return Shown(
            {int(index): parse_signed_statement(bytes.fromhex(wire)) for index, wire in file["statements"].items()},
            {int(index): [_digest(text) for text in blobs] for index, blobs in file["uploads"].items()},
            {
                int(index): [parse_commitment(bytes.fromhex(text)) for text in points]
                for index, points in file["commitments"].items()
            },
            {int(index): int.from_bytes(bytes.fromhex(root), "big") for index, root in file["roots"].items()},
            {int(index): bytes.fromhex(answer) for index, answer in file["answers"].items()},
        )
    except (StatementMalformed, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EvidenceMalformed(f"the evidence file is malformed ({type(error).__name__})") from error


def _digest(text: str) -> bytes:
    """Takes 32 bytes only: a digest becomes a file name, and the accuser is responsible for a bad one. Raises
    ValueError.
    """
    digest = bytes.fromhex(text)
    if len(digest) != _BYTES_PER_DIGEST:
        raise ValueError(f"{len(digest)} bytes instead of {_BYTES_PER_DIGEST}")
    return digest


def read_case(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int, cohort: int, round_state: RoundState
) -> Case:
    """Reads a cohort's case, by the cohort's number, without the survivors' commitments: the accuser shows these.

    Raises ArtifactMissing, ArtifactCorrupt, EvidenceMalformed.
    """
    masked = masked_cohort(ledger, task, round_, ledger.tasks.cohort_members(task, round_, cohort))
    share_bundles = read_share_bundles(ledger, store, task, round_, masked)
    survivors = [index for index in masked.encryption_keys if round_state.survivors >> index & 1]
    if unmasked := set(survivors) - share_bundles.keys():
        raise EvidenceMalformed(f"survivors {sorted(unmasked)} have no sound secret shares")
    hospitals = ledger.tasks.hospitals(task)
    weights = {index: 1 if round_ == STATISTICS_ROUND else hospitals[index].weight for index in survivors}
    return Case(masked, share_bundles, {index: () for index in survivors}, weights)


def with_commitments(
    ledger: Ledger, task: int, round_: int, case: Case, shown: Mapping[int, Sequence[Commitment]]
) -> Case:
    """The case with the survivors' commitments, as the accuser shows them. Raises EvidenceMalformed for others than the
    chain has the hashes of.
    """
    if shown.keys() != set(case.survivors):
        raise EvidenceMalformed(f"it shows commitments of hospitals {sorted(shown)} instead of {case.survivors}")
    hospitals, hashes = ledger.tasks.hospitals(task), ledger.record.point_hashes(task, round_)
    for index, points in shown.items():
        node = hospitals[index].node
        if ledger.messages.point_hashes(task, round_, node, points) != hashes.get(node):
            raise EvidenceMalformed(f"hospital {index} did not commit to these points")
    return replace(case, commitments=shown)


def find_cheaters(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int, round_state: RoundState
) -> dict[int, Reason]:
    """The cheaters in all accused cohorts of a round, after the last dispute statement is possible.

    The result is the same for every reader of chain and store. Raises EvidenceMalformed for malformed evidence,
    ArtifactMissing and ArtifactCorrupt for missing artifacts.
    """
    found: dict[int, Reason] = {}
    submitted_evidence = ledger.record.submitted_evidence(task, round_)
    for cohort, accused in ledger.record.accusations(task, round_).items():
        case = read_case(ledger, store, task, round_, cohort, round_state)
        shown = parse_shown(store.get_file(accused.evidence))
        if shown.answers:
            reasons = withholders(case, shown.answers)
        else:
            case = with_commitments(ledger, task, round_, case, shown.commitments)
            evidence = _evidence(ledger, store, (task, round_), case, shown, submitted_evidence)
            reasons = cheaters(case, accused.accusation, evidence)
        found |= reasons
    return found


def _evidence(
    ledger: Ledger,
    store: ArtifactStore,
    task_round: tuple[int, int],
    case: Case,
    shown: Shown,
    submitted_evidence: tuple[Mapping[int, bytes], Mapping[int, bytes]],
) -> Evidence:
    hospitals, statements = ledger.tasks.hospitals(task_round[0]), ledger.messages.statements(*task_round)
    for index, signed in shown.statements.items():
        if index not in case.commitments or not statements.is_by(hospitals[index].node, signed):
            raise EvidenceMalformed(f"hospital {index} did not sign its statement")
    # Checked before any blob is read: an upload with another number of blobs may be of any size.
    if odd := [index for index, blobs in shown.uploads.items() if len(blobs) != case.blobs]:
        raise EvidenceMalformed(f"the uploads of hospitals {odd} do not have {case.blobs} blobs")
    survivors = set(case.survivors)
    points, agreements = submitted_evidence
    return Evidence(
        statements={index: signed.statement for index, signed in shown.statements.items()},
        uploads={index: _Stored(store, blobs) for index, blobs in shown.uploads.items()},
        own_roots={index: root for index, root in shown.roots.items() if index in survivors},
        key_roots={index: root for index, root in shown.roots.items() if index not in survivors},
        points={index: raw for index, raw in points.items() if index in survivors},
        agreements={
            (index, other): agreement
            for index, raw in agreements.items()
            if index in survivors
            for other, agreement in _sound_agreements(raw).items()
            if other in survivors
        },
    )


def _sound_agreements(raw: bytes) -> dict[int, bytes]:
    """Malformed bytes count as no agreements: they come from a hospital, and must not stop the case."""
    try:
        return parse_agreements(raw)
    except ShapeWrong:
        return {}


class _Stored(Collection[bytes]):
    """Files of the store, one in memory at a time. Reading raises ArtifactMissing, ArtifactCorrupt."""

    def __init__(self, store: ArtifactStore, digests: Sequence[bytes]) -> None:
        self._store, self._digests = store, digests

    def __len__(self) -> int:
        return len(self._digests)

    def __iter__(self) -> Iterator[bytes]:
        return (self._store.get_file(digest) for digest in self._digests)

    def __contains__(self, blob: object) -> bool:
        return any(blob == own for own in self)
