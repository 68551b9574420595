"""Rounds in this process by the nodes' own training, encoding and fold, where nobody judges and all rounds count.

The sum is masked, unmasked, checked by the commitments and read back, as a chain and its readers would.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples
from consilium_client.data.standardise import class_weights, public_sums, round_0_values
from consilium_client.hospital.learning import Updates
from consilium_client.hospital.memory import InProcess
from consilium_client.models import Vector, model_of
from consilium_client.models.fold import Fold
from consilium_lab.demo.references import row_weight
from consilium_zk.basis import Basis, Coordinates
from consilium_zk.blobs import Blob, add, scale
from consilium_zk.curve import weighted_sum
from consilium_zk.kzg import commit, versioned_hash
from consilium_zk.masks import BYTES_PER_SEED, expand
from consilium_zk.packing import unpack
from numpy.typing import NDArray


class Played:
    """One task's rounds. It is the record that its hospitals read."""

    def __init__(self, spec: TaskSpec, parts: Sequence[Examples], seed: int, device: str = "cpu") -> None:
        self.spec, self._parts, self._seed, self._device = spec, parts, seed, device
        self.sums, self._counted = public_sums(spec.data), None
        if spec.statistics == "exact":
            self._counted = np.sum([round_0_values(part, spec) for part in parts], axis=0)
            self.sums = self._counted[: spec.data.statistics_values]
        model = model_of(spec)
        self._inputs = [model.inputs(part, self.sums) for part in parts]
        self._weights = [row_weight(part.rows, spec) for part in parts]
        self._fold = Fold(spec, seed.to_bytes(BYTES_PER_SEED, "big"))
        self._state = self._fold.begin(model.initial(seed))
        self._updates = [Updates(spec, self, InProcess()) for _ in parts]

    @property
    def basis(self) -> Basis:
        return self._fold.basis

    @property
    def model(self) -> Vector:
        return self._state.outer.model

    def latest_mean(self, round_: int) -> tuple[int, Coordinates] | None:
        return None if self._state.mean is None else (self._state.round, self._state.mean)

    def class_weights(self) -> NDArray[np.float32] | None:
        return None if self._counted is None else class_weights(self._counted, self.spec)

    def play(self, round_: int) -> None:
        """The next round, from 1 on."""
        updates = []
        for index, (part, inputs) in enumerate(zip(self._parts, self._inputs, strict=True)):
            drawn = (self._seed * 1_000 + index) * 1_000_003 + round_ - 1
            own = self._updates[index]
            update = own.learn(round_, self.model, (inputs, part.labels), None, drawn, device=self._device)
            updates.append(own.blobs(round_, update, drawn))
        total = summed(updates, self._weights, self.spec)
        self._state = self._fold.after(self._state, round_, total, sum(self._weights))


def summed(updates: Sequence[Sequence[Blob]], weights: Sequence[int], spec: TaskSpec) -> NDArray[np.uint64]:
    """The weighted sum of the updates' lanes: through masks that cancel, and checked by the commitments of all."""
    found = []
    for blobs in zip(*updates, strict=True):
        masks = [expand(secrets.token_bytes(BYTES_PER_SEED), 0) for _ in blobs]
        uploaded = [add([scale(blob, w), mask]) for blob, w, mask in zip(blobs, weights, masks, strict=True)]
        plain = add([add(uploaded)], masks)
        if versioned_hash(commit(plain)) != versioned_hash(weighted_sum([commit(one) for one in blobs], weights)):
            raise AssertionError("the sum is not the one that was committed to")
        found.append(plain)
    return unpack(found, spec.lanes, spec.update_layout, sum(weights))[: spec.coordinates]
