"""Rounds played in this process by the nodes' own training, clipping, quantising and adding up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.data.examples import Examples
from consilium_client.models import Inputs, Vector, model_of
from consilium_client.models.metrics import accuracy, auc
from consilium_client.models.outer import outer_of
from consilium_client.models.training import train
from consilium_client.privacy.dp_sgd import Mechanism, plan, train_privately
from consilium_core.kinds import of_kind
from consilium_lab.demo.references import row_weight
from consilium_zk.quantise import Quantiser, clip_norm
from numpy.typing import NDArray

POOLED, ALONE, FEDAVG, ROUNDS = "pooled", "alone", "fedavg", "consilium"
PRIVATE = "consilium, private"
Reals = NDArray[np.float64]
Train = Callable[[int, Vector, Inputs, NDArray[np.int64], int], Vector]
Published = Callable[[Vector, Reals], None]


def unread(base: Vector, mean: Reals) -> None:
    pass


def play(
    spec: TaskSpec, parts: Sequence[Examples], sums: Reals, seed: int, trained: Train, published: Published = unread
) -> Vector:
    """All rounds as nodes play them: the model that they end with. `trained` is given a hospital's number and its base,
    inputs and labels, and the round; `sums` are round 0's; `published` is told each round's base and mean update."""
    model = model_of(spec)
    inputs = [model.inputs(part, sums) for part in parts]
    weights = [row_weight(part.rows, spec) for part in parts]
    quantiser, noise = Quantiser(spec.update.bits, spec.update.value_range), np.random.default_rng([seed, 1])
    outer = outer_of(spec.outer)
    state = outer.begin(model.initial(seed))
    for round_ in range(1, spec.rounds.rounds + 1):
        base = state.model
        total = np.zeros(len(base), np.uint64)
        for index, (part, own, weight) in enumerate(zip(parts, inputs, weights, strict=True)):
            update = np.subtract(trained(index, base, own, part.labels, round_), base, dtype=np.float64)
            clipped = clip_norm(update, spec.update.clip_norm)
            total += np.uint64(weight) * quantiser.quantise(clipped, noise.random(len(base)))
        mean = quantiser.dequantise_mean(total, sum(weights))
        published(base, mean)
        state = outer.after(state, mean.__getitem__)
    return state.model


def tested(spec: TaskSpec, parameters: Vector, sums: Reals, held_out: Examples) -> dict[str, float]:
    model = model_of(spec)
    labels, likely = model.evaluate(parameters, model.inputs(held_out, sums)).answers(held_out.labels)
    return {"accuracy": accuracy(labels, likely), "auc": auc(labels, likely) or 0.0}


def plainly(spec: TaskSpec, seed: int) -> Train:
    def trained(index: int, base: Vector, inputs: Inputs, labels: NDArray[np.int64], round_: int) -> Vector:
        return train(spec, base, inputs, labels, (seed * 1_000 + index) * 1_000_003 + round_)

    return trained


def privately(spec: TaskSpec, mechanisms: Sequence[Mechanism]) -> Train:
    def trained(index: int, base: Vector, inputs: Inputs, labels: NDArray[np.int64], round_: int) -> Vector:
        return train_privately(spec, of_kind(PrivacySpec, spec.privacy), mechanisms[index], base, inputs, labels)

    return trained


def plans(spec: TaskSpec, hospitals: Sequence[Examples]) -> list[Mechanism]:
    privacy = of_kind(PrivacySpec, spec.privacy)
    return [plan(spec, privacy, table.rows) for table in hospitals]
