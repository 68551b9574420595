"""A canary round at the aggregator: sums published as they are or turned, and the secrets that show it later.

Seed and blinders are on disk before anything is published: a restart must not cost the bond.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from consilium_chain.keystore import write_private_file
from consilium_chain.ledger.publishing import Canaries
from consilium_chain.rounds.sums import Retreat
from consilium_zk.blobs import blinders
from consilium_zk.canaries import is_turned, published_blob, published_commitment, seed_commitment

from consilium_server.aggregator.uploads import CohortSum
from consilium_server.errors import CanariesLost

SEED_BYTES = 32

Blinders = tuple[int, int]


@dataclass(frozen=True)
class RoundSecrets:
    """The seed, 32 bytes, and the two blinders of each of a cohort's summed blobs, by cohort; whose updates are in
    these sums (a bit map).
    """

    seed: bytes
    blinders: Mapping[int, list[Blinders]]
    survivors: int = 0


@dataclass
class HiddenSums:
    """A round's sums on their way to publication. `seed`: 32 random bytes that nobody else knows."""

    task: int
    round: int
    seed: bytes
    retreat: Retreat
    _blinders: dict[int, list[Blinders]] = field(default_factory=dict)

    def hide(self, cohort: int, total: CohortSum, weight: int) -> CohortSum:
        """What is published of a cohort's sum of this total weight: without blinders, turned if the seed says so."""
        turned = is_turned(self.seed, self.task, self.round, cohort)
        layout = self.retreat.layout
        secret = self._blinders[cohort] = [blinders(blob) for blob in total.blobs]
        blobs = [
            published_blob(blob, back, weight, layout, turned)
            for blob, back in zip(total.blobs, self.retreat.blobs, strict=True)
        ]
        commitments = [
            published_commitment(point, weight, own, back, layout, turned)
            for point, own, back in zip(total.commitments, secret, self.retreat.points, strict=True)
        ]
        return CohortSum(blobs, commitments)

    @property
    def canaries(self) -> Canaries:
        return Canaries(seed_commitment(self.seed), self.retreat.digest)

    @property
    def secrets(self) -> RoundSecrets:
        return RoundSecrets(self.seed, dict(self._blinders))


def keep(folder: Path, round_: int, secrets: RoundSecrets) -> None:
    """Writes a round's secrets into its task's folder."""
    pairs = {cohort: [[hex(one) for one in pair] for pair in blobs] for cohort, blobs in secrets.blinders.items()}
    text = json.dumps({"seed": secrets.seed.hex(), "survivors": secrets.survivors, "blinders": pairs})
    write_private_file(_path(folder, round_), text)


def are_kept(folder: Path, round_: int) -> bool:
    return _path(folder, round_).exists()


def kept(folder: Path, round_: int) -> RoundSecrets:
    """Raises CanariesLost."""
    try:
        raw = json.loads(_path(folder, round_).read_text())
        pairs = {
            int(cohort): [(int(first, 16), int(second, 16)) for first, second in blobs]
            for cohort, blobs in raw["blinders"].items()
        }
        seed = bytes.fromhex(raw["seed"])
        if len(seed) != SEED_BYTES:
            raise ValueError("seed")
        return RoundSecrets(seed, pairs, int(raw["survivors"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Unchained: the error could quote the secrets.
        raise CanariesLost(str(_path(folder, round_))) from None


def _path(folder: Path, round_: int) -> Path:
    return folder / f"round-{round_}.json"
