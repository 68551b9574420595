"""The demo's dishonest parties: real nodes with one step replaced. The packages of real nodes do not contain them.

Run as a program: `python -m consilium_lab.adversaries.nodes KIND --home FOLDER --task N [--round N]`.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from consilium_chain.ledger.structs import STATISTICS_ROUND, RoundState, ballot_size, members
from consilium_chain.settings import read_settings
from consilium_client.data.examples import Examples
from consilium_client.home import HospitalHome, VoterHome
from consilium_client.hospital.node import HospitalNode
from consilium_client.models import Vector
from consilium_client.replay import FIRST_ROUND
from consilium_client.voter.ballots import Ballot
from consilium_client.voter.judging import Voter
from consilium_client.voter.node import VoterNode
from consilium_core.logs import emit
from consilium_server.aggregator.collection import Collection
from consilium_server.aggregator.node import Aggregator
from consilium_server.aggregator.uploads import CohortSum, Contribution
from consilium_server.config import AggregatorSettings
from consilium_zk.basis import Coordinates
from consilium_zk.blobs import Blob, add
from consilium_zk.blobs import negate as negate_blob
from consilium_zk.kzg import Commitment, commit

from consilium_lab.demo.options import Attack, Cheat

SIGN_FLIP_FACTOR = -10.0  # the clip then shortens the update
PATIENCE = 50  # tries, a fifth of a second apart


class SignFlipper(HospitalNode):
    """Sends its update times −10."""

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        return SIGN_FLIP_FACTOR * super().local_update(round_, base)


class LabelFlipper(HospitalNode):
    """Trains on its rows with every label flipped."""

    def read_data(self) -> Examples:
        examples = super().read_data()
        return examples.relabelled(len(self.task.spec.data.classes) - 1 - examples.labels)


class NoiseMaker(HospitalNode):
    """Sends noise of the largest allowed norm, without training."""

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        noise = np.random.default_rng(secrets.randbits(128)).standard_normal(self.training.record.basis.size)
        return noise * (self.task.spec.update.clip_norm / np.linalg.norm(noise))


class FalseUploader(HospitalNode):
    """Uploads other values than it committed to, masked, and signs them. It is honest in the statistics round."""

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]:
        return masked if round_ == STATISTICS_ROUND else [_one_lane_changed(masked[0]), *masked[1:]]


class Copier(HospitalNode):
    """Submits the last round's best model, which is the base, as its own."""

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        return np.zeros(self.training.record.basis.size)


class Repeater(HospitalNode):
    """Repeats the step that the last round's best update made, in the hope that it was too short."""

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        record = self.training.record
        before = base if round_ == FIRST_ROUND else record.base(round_ - 1)
        return record.basis.gather(base - before).astype(np.float64)


class LazyVoter(VoterNode):
    """Evaluates nothing, and gives zero to all."""

    def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
        return (0,) * ballot_size(self.task.params, round_, round_state.cohorts)


class SilentVoter(VoterNode):
    """Takes its seat and never reveals."""

    def reveal(self, ballot: Ballot) -> None:
        emit("silent", round=ballot.round)


class Colluder(HospitalNode):
    """Waits for another hospital's commitment and posts a copy of it, so that its sum would count that update twice.

    A hash names its hospital: no point of the colluder gives the copied one, so its upload is refused.
    """

    cheat_round = 0

    def point_hashes(self, round_: int, points: Sequence[Commitment]) -> list[bytes]:
        if round_ != self.cheat_round:
            return super().point_hashes(round_, points)
        for _ in range(PATIENCE):
            if others := self.ledger.record.point_hashes(self.task.number, round_):
                emit("copied", round=round_, hospital=next(iter(others)))
                return next(iter(others.values()))
            time.sleep(0.2)
        return super().point_hashes(round_, points)


class CheatingAggregator(Aggregator):
    """Honest except in one round."""

    cheat = Cheat.CHANGE_BLOB
    cheat_round = 0
    _ignored = False  # it has ignored the signed updates of that round

    def commit_for_hospitals(self, collection: Collection, round_state: RoundState) -> None:
        if self.cheat is not Cheat.IGNORE_COMMITMENTS or collection.round != self.cheat_round:
            super().commit_for_hospitals(collection, round_state)
        elif not self._ignored and collection.signed.keys() >= set(members(round_state.members)):
            self._ignored = True
            emit("ignored", round=collection.round, updates=len(collection.signed))

    def forces(self, round_: int) -> bool:
        return round_ == self.cheat_round and self.cheat is not Cheat.IGNORE_COMMITMENTS

    def sum_to_publish(self, round_: int, total: CohortSum, parts: Sequence[Contribution]) -> CohortSum:
        if round_ != self.cheat_round or self.cheat is Cheat.IGNORE_COMMITMENTS:
            return total
        if self.cheat is Cheat.DROP_HOSPITAL:  # the contract still counts the hospital as a survivor
            dropped = parts[0].upload.blobs
            blobs = [add([blob, negate_blob(own)]) for blob, own in zip(total.blobs, dropped, strict=True)]
        else:
            blobs = [_one_lane_changed(total.blobs[0]), *total.blobs[1:]]
        return CohortSum(blobs, [commit(blob) for blob in blobs])


def _one_lane_changed(blob: Blob) -> Blob:
    changed = bytearray(blob)
    changed[31] ^= 1
    return Blob(bytes(changed))


HOSPITALS = {
    Attack.SIGN_FLIP: SignFlipper,
    Attack.LABEL_FLIP: LabelFlipper,
    Attack.NOISE: NoiseMaker,
    Attack.FALSE_UPLOAD: FalseUploader,
    Attack.COPY: Copier,
    Attack.REPEAT: Repeater,
}
VOTERS = {Attack.LAZY: LazyVoter, Attack.SILENT: SilentVoter}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=[*Attack, *Cheat, "colluder"])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--round", type=int, default=0)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.kind in list(Attack) and Attack(given.kind) in HOSPITALS:
        HOSPITALS[Attack(given.kind)](HospitalHome.open(given.home).approved_settings(given.task)).run()
    elif given.kind in list(Attack):
        Voter(VoterHome.open(given.home), VOTERS[Attack(given.kind)]).run_one(given.task)
    elif given.kind == "colluder":
        Colluder.cheat_round = given.round
        Colluder(HospitalHome.open(given.home).approved_settings(given.task)).run()
    else:
        CheatingAggregator.cheat, CheatingAggregator.cheat_round = Cheat(given.kind), given.round
        CheatingAggregator(read_settings(given.home / "node.toml", AggregatorSettings)).run()


if __name__ == "__main__":
    main()
