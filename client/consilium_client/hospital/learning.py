"""A hospital's updates over a task's rounds: what steers their training, and their encoding in blobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_zk.basis import Basis, Coordinates, Shared
from consilium_zk.blobs import Blob
from consilium_zk.packing import packed
from consilium_zk.quantise import Quantiser, clip_norm
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.hospital.memory import Memory
from consilium_client.models import Inputs, Vector
from consilium_client.models.descent import Progress
from consilium_client.models.training import Guides, in_round, learn, mean_gradient, no_progress, train
from consilium_client.models.weights import named_tensors


class Record(Protocol):
    """The part of `PublicRecord` that steers training."""

    @property
    def basis(self) -> Basis: ...

    def latest_mean(self, round_: int) -> tuple[int, Coordinates] | None: ...

    def class_weights(self) -> NDArray[np.float32] | None: ...


class Updates:
    """Of one hospital in one task. `memory`: of its own earlier ones."""

    def __init__(self, spec: TaskSpec, record: Record, memory: Memory) -> None:
        self._spec, self._record, self._memory = spec, record, memory
        self._basis = record.basis

    def learn(
        self,
        round_: int,
        base: Vector,
        rows: tuple[Inputs, Labels],
        held_out: tuple[Inputs, Labels] | None,
        seed: int,
        progress: Progress = no_progress,
        device: str | None = None,
    ) -> Coordinates:
        """A round's update float64 (k,), by `training.learn`. `rows`: inputs and labels. Raises as that does, as the
        record does, and MemoryDamaged.
        """
        spec, guides = in_round(self._spec, round_), self._guides(round_, held_out)
        if not isinstance(self._basis, Shared):
            return learn(spec, self._basis, base, *rows, seed, progress, device, guides)
        trained = train(spec, self.own_model(round_, base), *rows, seed, progress, device, guides)
        self._memory.keep("local", round_, trained[~self._basis.is_shared])
        moved: Coordinates = np.subtract(trained, base, dtype=np.float64)[self._basis.is_shared]
        return moved

    def own_model(self, round_: int, base: Vector) -> Vector:
        """A round's base with this hospital's own local tensors, float32 (p,)."""
        if not isinstance(self._basis, Shared):
            return base
        kept = self._memory.recall("local", round_, self._basis.parameters - self._basis.size)
        if kept is None:
            return base
        found = base.copy()
        found[~self._basis.is_shared] = kept[1]
        return found

    def local_tensors(self) -> dict[str, NDArray[np.float32]]:
        """This hospital's own ones after the last round that it trained, by name; none if it never did."""
        if not isinstance(self._basis, Shared):
            return {}
        after = self._spec.rounds.rounds + 1
        if self._memory.recall("local", after, self._basis.parameters - self._basis.size) is None:
            return {}
        model = self.own_model(after, np.zeros(self._basis.parameters, np.float32))
        named = named_tensors(self._spec, model)
        return {name: named[name] for name in self._spec.training.local}

    def _guides(self, round_: int, held_out: tuple[Inputs, Labels] | None) -> Guides:
        """Those of a round's training. `held_out`: inputs and labels of the hospital's rows that are kept out."""
        correction = self._correction(round_)
        as_trained = None if correction is None else correction.astype(np.float32)
        return Guides(held_out, as_trained, self._record.class_weights())

    def _correction(self, round_: int) -> Coordinates | None:
        """SCAFFOLD's c - c_i, float64 (k,): the mean gradient of all hospitals less this one's own (Karimireddy et al.,
        ICML 2020, option II of algorithm 1). None until both are known.

        Gradients follow from updates, because all hospitals make as many steps of one length. So c is public already,
        and no second vector travels: it is that of the latest settled round (docs/models.md).
        """
        if not self._spec.training.control_variates:
            return None
        own = self._memory.recall("variate", round_, self._spec.coordinates)
        mean = self._record.latest_mean(round_)
        return None if own is None or mean is None else self._gradient(*mean) - own[1]

    def _gradient(self, round_: int, update: Coordinates) -> Coordinates:
        return mean_gradient(self._spec.training, self._spec.rounds.rounds, round_, update)

    def blobs(self, round_: int, update: Coordinates, rounding_seed: int) -> list[Blob]:
        """A round's update float64 (k,): clipped, quantised, and packed. Keeps what later rounds need, on return."""
        if self._spec.training.control_variates:
            own = self._gradient(round_, clip_norm(update, self._spec.update.clip_norm))
            correction = self._correction(round_)
            self._memory.keep("variate", round_, own if correction is None else own - correction)
        if not self._spec.update.feedback:
            return update_blobs(update, self._spec, rounding_seed)
        kept = self._memory.recall("unsent", round_, self._spec.coordinates)
        sent, unsent = _quantiser(self._spec).with_feedback(
            update, None if kept is None else kept[1], self._spec.update.clip_norm
        )
        self._memory.keep("unsent", round_, unsent)
        return list(packed(_padded(sent, self._spec), self._spec.update_layout))


def update_blobs(update: Coordinates, spec: TaskSpec, rounding_seed: int) -> list[Blob]:
    """An update float64 (k,), clipped, quantised by randomness of the seed, and packed."""
    clipped = clip_norm(update, spec.update.clip_norm)
    return list(packed(_lanes(clipped, spec, rounding_seed), spec.update_layout))


def _lanes(update: Coordinates, spec: TaskSpec, seed: int) -> Iterator[NDArray[np.uint64]]:
    """The quantised update, a blob's lanes at a time. Zeros after the coordinates fill the last blob."""
    size = spec.update_layout.lanes_per_blob
    quantiser, noise = _quantiser(spec), np.random.default_rng(seed)
    for start in range(0, spec.lanes, size):
        part = update[start : start + size]
        part = np.pad(part, (0, size - len(part)))
        yield quantiser.quantise(part, noise.random(size))


def _padded(sent: NDArray[np.uint64], spec: TaskSpec) -> Iterator[NDArray[np.uint64]]:
    """The same of integers: the offset stands for zero."""
    size, zero = spec.update_layout.lanes_per_blob, _quantiser(spec).offset
    for start in range(0, spec.lanes, size):
        part = sent[start : start + size]
        yield np.pad(part, (0, size - len(part)), constant_values=zero)


def _quantiser(spec: TaskSpec) -> Quantiser:
    return Quantiser(spec.update.bits, spec.update.value_range)
