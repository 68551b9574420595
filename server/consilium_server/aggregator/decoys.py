"""Decoys (decoys) at the aggregator: sums published as they are or sign-flipped, and the secrets that disclose them.

Seed and blinders are on disk before the publication, because a restart must not cost the bond.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consilium_chain.ledger.publishing import Decoys, DisclosedBlob, DisclosedCohort, cohort_commitments
from consilium_chain.ledger.structs import STATISTICS_ROUND, RoundState, ballot_size, members
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.tasks.task_spec import PAGE_GAS, settle_gas
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_zk.blobs import blinders
from consilium_zk.curve import Commitment, parse_commitment
from consilium_zk.decoys import is_flipped, published_blob, published_commitment, seed_commitment

from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.uploads import CohortSum
from consilium_server.errors import DecoysLost

SEED_BYTES = 32
SETTLE_GAS = 200_000  # without the part that grows with nodes and scores

Blinders = tuple[int, int]


@dataclass(frozen=True)
class RoundSecrets:
    """The seed, 32 bytes; two blinders of each summed blob, by cohort; the points of the hospitals in these sums, one
    per blob; a bit map of these hospitals.
    """

    seed: bytes
    blinders: Mapping[int, list[Blinders]]
    points: Mapping[int, Sequence[Commitment]] = field(default_factory=dict)
    survivors: int = 0


@dataclass
class HiddenSums:
    """A round's sums before publication. `seed`: 32 secret random bytes."""

    task: int
    round: int
    seed: bytes
    negated_delta: NegatedDelta
    _blinders: dict[int, list[Blinders]] = field(default_factory=dict)
    _points: dict[int, Sequence[Commitment]] = field(default_factory=dict)

    def hide(self, cohort: int, total: CohortSum, weight: int, points: Mapping[int, Sequence[Commitment]]) -> CohortSum:
        """A cohort's published sum, given its true sum, its total weight and its survivors' points: without blinders,
        and flipped by the seed.
        """
        self._points |= points
        flipped = is_flipped(self.seed, self.task, self.round, cohort)
        layout = self.negated_delta.layout
        secret = self._blinders[cohort] = [blinders(blob) for blob in total.blobs]
        blobs = [
            published_blob(blob, back, weight, layout, flipped)
            for blob, back in zip(total.blobs, self.negated_delta.blobs, strict=True)
        ]
        commitments = [
            published_commitment(point, weight, own, back, layout, flipped)
            for point, own, back in zip(total.commitments, secret, self.negated_delta.points, strict=True)
        ]
        return CohortSum(blobs, commitments)

    @property
    def decoys(self) -> Decoys:
        """Commitments to the seed and to the negated delta. They are published with the sums."""
        return Decoys(seed_commitment(self.seed), self.negated_delta.digest)

    @property
    def secrets(self) -> RoundSecrets:
        """Secrets that disclose the decoys."""
        return RoundSecrets(self.seed, dict(self._blinders), dict(self._points))


def store_secrets(folder: Path, round_: int, found: RoundSecrets) -> None:
    """Writes a round's secrets into its task's folder."""
    pairs = {cohort: [[hex(one) for one in pair] for pair in blobs] for cohort, blobs in found.blinders.items()}
    points = {index: [point.hex() for point in row] for index, row in found.points.items()}
    text = json.dumps({"seed": found.seed.hex(), "survivors": found.survivors, "points": points, "blinders": pairs})
    write_private_file(_path(folder, round_), text)


def read_secrets(folder: Path, round_: int) -> RoundSecrets:
    """Reads a round's secrets. Raises DecoysLost."""
    try:
        raw = json.loads(_path(folder, round_).read_text())
        pairs = {
            int(cohort): [(int(first, 16), int(second, 16)) for first, second in blobs]
            for cohort, blobs in raw["blinders"].items()
        }
        seed = bytes.fromhex(raw["seed"])
        if len(seed) != SEED_BYTES:
            raise ValueError("seed")
        points = {
            int(index): [parse_commitment(bytes.fromhex(point)) for point in row]
            for index, row in raw["points"].items()
        }
        return RoundSecrets(seed, pairs, points, int(raw["survivors"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        # Unchained: the error could quote the secrets.
        raise DecoysLost("DecoysLost", path=str(_path(folder, round_))) from None


def _path(folder: Path, round_: int) -> Path:
    return folder / f"round-{round_}.json"


def earlier_secrets(task: AggregatedTask, round_: int) -> RoundSecrets | None:
    """Secrets of an earlier publication of this round, or of an attempt at one. Raises DecoysLost."""
    return read_secrets(task.secrets_folder, round_) if _path(task.secrets_folder, round_).exists() else None


def hidden_sums(
    task: AggregatedTask, round_: int, earlier: RoundSecrets | None, on_chain: Decoys | None
) -> HiddenSums | None:
    """Begins a round's hidden sums, with the `earlier` seed if there is one; None in a round without decoys.

    A transaction with the earlier seed may reach the chain at any time. Raises DecoysLost if the decoys `on_chain`
    are others.
    """
    if not task.params.has_decoys(round_):
        return None
    seed = earlier.seed if earlier else secrets.token_bytes(SEED_BYTES)
    before = (dict(earlier.blinders), dict(earlier.points)) if earlier else ()
    hidden = HiddenSums(task.number, round_, seed, task.sums.negated_delta(round_), *before)
    if on_chain not in (None, hidden.decoys):
        raise DecoysLost("DecoysLost", path=str(task.secrets_folder))
    return hidden


def disclose(task: AggregatedTask, round_: int, round_state: RoundState, force: bool) -> None:
    """Discloses on chain which sums were sign-flipped, with the proof of all sums. Settles in the same call if it can.

    `force`: without a dry run. Raises DecoysLost, Refused.
    """
    secret, ledger = read_secrets(task.secrets_folder, round_), task.ledger
    hashes, cohorts = task.point_hashes(round_), task.cohorts(round_, round_state)

    def disclosed(cohort: int) -> DisclosedCohort:
        survivors = {index: secret.points[index] for index in members(cohorts[cohort] & round_state.survivors)}
        commitments = cohort_commitments(hashes, cohorts[cohort], survivors)
        pairs = zip(secret.blinders[cohort], commitments, strict=True)
        return DisclosedCohort(cohort, [DisclosedBlob(pair, given) for pair, given in pairs])

    closed = round_state.viable_cohorts & ~round_state.summed_cohorts
    receipts = ledger.aggregator.disclose_decoys(
        task.number, round_, secret.seed, task.sums.negated_delta(round_).points,
        [disclosed(cohort) for cohort in members(closed)], _settle_gas(task, len(task.addresses())), force,
    )  # fmt: skip
    emit("disclosed", round=round_, gas=sum(receipt.gas_used for receipt in receipts))


def _settle_gas(task: AggregatedTask, hospitals: int) -> int:
    """An upper bound on the gas of settling a round, or its first page."""
    voters = task.params.max_voters
    scores = voters * ballot_size(task.params, STATISTICS_ROUND + 1, task.params.cohorts)
    return SETTLE_GAS + min(PAGE_GAS, settle_gas(hospitals + voters, scores))
