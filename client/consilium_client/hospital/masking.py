"""A hospital's part in masked rounds: its encryption key, its secret shares, and its answers that unmask a sum.

Before anything leaves, it writes to its own disk which hospitals it masked with and answered for. It never does so for
other hospitals: not after a restart, and not if the chain names others than before.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import members
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_zk.blobs import Blob, add
from consilium_zk.curve import Commitment
from consilium_zk.disputes import (
    agreements_to_wire,
    disputed,
    pair_points,
    parse_points,
    points_to_wire,
    show_pair,
    state,
)
from consilium_zk.errors import Malformed, ShapeWrong
from consilium_zk.key_exchange import BYTES_PER_KEY, public_key
from consilium_zk.secret_shares import ShareBundle
from consilium_zk.secure_aggregation import MaskedCohort, MaskingHospital

from consilium_client.errors import NodeError

_BYTES_PER_MAP = 32


@dataclass(frozen=True)
class Accused:
    """A cohort that the aggregator accused: members and survivors as bit maps, and how many blobs an update has."""

    round: int
    cohort: int
    survivors: int
    accusation: bytes
    blobs: int


class Masking:
    """One hospital in one masked task. Cohorts and survivors are bit maps over hospitals' indices, as on chain."""

    def __init__(self, folder: Path, ledger: Ledger, store: ArtifactStore, task: int) -> None:
        self._folder, self._ledger, self._store, self._task = folder, ledger, store, task
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key_file = folder / "encryption.key"
        if not self._key_file.exists():
            write_private_file(self._key_file, secrets.token_bytes(BYTES_PER_KEY))
        self._private = self._key_file.read_bytes()
        self.encryption_key = public_key(self._private)
        self._cohorts: dict[tuple[int, int], MaskedCohort] = {}  # the latest, by round and members
        self._read: dict[tuple[int, int], dict[int, ShareBundle]] = {}  # likewise

    def require_key(self, index: int) -> None:
        """Raises EncryptionKeyLost if this hospital announced another key than it has: it could decrypt nothing. If the
        block with its joining was undone meanwhile, nothing is announced.
        """
        if self._ledger.record.encryption_keys(self._task).get(index, self.encryption_key) != self.encryption_key:
            raise NodeError("EncryptionKeyLost", path=self._key_file)

    def forget(self) -> None:
        """Deletes the encryption key and all records once the task has ended."""
        self._key_file.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def secret_shares(self, round_: int, cohort: int, index: int, seed: bytes) -> bytes:
        """This hospital's secret shares of a round, always the same bytes."""
        return self._hospital(round_, cohort, index, seed).share_bundle().to_wire()

    def masked(self, round_: int, cohort: int, index: int, seed: bytes, blobs: Sequence[Blob]) -> Iterator[Blob]:
        """Weighted blobs, masked with all hospitals that have committed. Commitments must be closed.

        Raises MaskingTooSmall, MaskingChanged, ArtifactMissing, ArtifactCorrupt.
        """
        share_bundles = self._share_bundles(round_, cohort, index)
        hospital = self._hospital(round_, cohort, index, seed)
        seeds = hospital.seeds(share_bundles)
        self._write_down("masked", round_, share_bundles)
        return (add([blob, hospital.mask(seeds, number)]) for number, blob in enumerate(blobs))

    def answer(self, round_: int, cohort: int, survivors: int, index: int, seed: bytes) -> bytes:
        """The answer that takes the masks from the sum of the `survivors` that the chain has fixed.

        Raises NotASurvivor, MaskingTooSmall, MaskingChanged, ArtifactMissing, ArtifactCorrupt.
        """
        alive = list(members(cohort & survivors))
        if index not in alive:
            raise NodeError("NotASurvivor", round=round_)
        share_bundles = self._share_bundles(round_, cohort, index)
        answer, faults = self._hospital(round_, cohort, index, seed).answer(share_bundles, alive)
        self._write_down("masked", round_, share_bundles)
        self._write_down("answered", round_, alive)
        for dealer, error in faults.items():
            emit("share-bundle-invalid", round=round_, hospital=dealer, error=name_of(error))
        return answer

    def statement(self, round_: int, cohort: int, index: int, masked: Iterable[Blob]) -> bytes:
        """The statement to sign with masked blobs. Raises MaskingTooSmall, ArtifactMissing, ArtifactCorrupt."""
        share_bundles = self._share_bundles(round_, cohort, index)
        return state(masked, self._cohort(round_, cohort), share_bundles).to_wire()

    def points(self, accused: Accused, index: int, seed: bytes) -> bytes:
        """The first dispute statement, on an accused cohort's masks: `consilium_zk.disputes.pair_points`, as bytes."""
        return points_to_wire(self._points(accused, index, seed))

    def agreements(self, accused: Accused, index: int, seed: bytes, points: Mapping[int, bytes]) -> bytes:
        """The second dispute statement: shared keys with the hospitals whose signed `points` are not those of the masks
        shared with them; or nothing. It leaves out hospitals without readable points, which are named for that.
        """
        theirs = {}
        for other in members(accused.survivors & ~(1 << index)):
            try:
                theirs[other] = parse_points(points.get(other, b""), set(members(accused.survivors)) - {other})
            except (ShapeWrong, Malformed):
                continue
        cohort = self._cohort(accused.round, accused.cohort)
        share_bundles = self._share_bundles(accused.round, accused.cohort, index)
        private = self._hospital(accused.round, accused.cohort, index, seed).mask_private
        return agreements_to_wire(
            {
                other: show_pair(index, private, other, share_bundles[other], cohort.context, accused.accusation)
                for other in disputed(index, self._points(accused, index, seed), theirs)
            }
        )

    def _points(self, accused: Accused, index: int, seed: bytes) -> dict[int, Commitment]:
        survivors = list(members(accused.survivors))
        self._cohort(accused.round, accused.cohort).require_enough(survivors)
        share_bundles = self._share_bundles(accused.round, accused.cohort, index)
        _, pairs = self._hospital(accused.round, accused.cohort, index, seed).seeds(share_bundles)
        return pair_points(index, pairs, survivors, accused.accusation, accused.blobs)

    def _hospital(self, round_: int, cohort: int, index: int, seed: bytes) -> MaskingHospital:
        return MaskingHospital(index, seed, self._private, self._cohort(round_, cohort))

    def _cohort(self, round_: int, cohort: int) -> MaskedCohort:
        """Read from the chain once: its keys do not change any more."""
        if (round_, cohort) not in self._cohorts:
            self._cohorts = {(round_, cohort): masked_cohort(self._ledger, self._task, round_, cohort)}
        return self._cohorts[round_, cohort]

    def _share_bundles(self, round_: int, cohort: int, index: int) -> dict[int, ShareBundle]:
        """The cohort's secret shares for this hospital, read once, when commitments are closed: each read takes those
        for all others, too. Raises MaskingTooSmall, because a lagging chain node may not show all of them yet.
        """
        if (round_, cohort) not in self._read:
            masked = self._cohort(round_, cohort)
            share_bundles = read_share_bundles(self._ledger, self._store, self._task, round_, masked, index)
            masked.require_masking(index, share_bundles)
            self._read = {(round_, cohort): share_bundles}
        return self._read[round_, cohort]

    def _write_down(self, what: str, round_: int, hospitals: Sequence[int] | dict[int, ShareBundle]) -> None:
        """Raises MaskingChanged if this was done for others before."""
        bit_map = sum(1 << index for index in hospitals).to_bytes(_BYTES_PER_MAP, "big")
        file = self._folder / f"{what}-{round_}"
        if not file.exists():
            write_private_file(file, bit_map)
        if file.read_bytes() != bit_map:
            self._read.clear()  # likewise
            raise NodeError("MaskingChanged", round=round_, what=what)
