"""What hospitals learn from texts by adapters on a pretrained encoder, and from images by a small network.

As `learning`, which adds these rows to its own: rounds are played in this process by the nodes' own code. Institutes of
MedQuAD are hospitals; the X-rays of PneumoniaMNIST, which are one hospital's, are dealt unevenly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_lab.demo.datasets import DemoData, deal_medquad, deal_pneumonia, examples_of
from consilium_lab.demo.references import local_only, pooled, simulate_fedavg
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_zk.constants import BYTES_PER_BLOB
from threadpoolctl import threadpool_limits

from bench.client.learning_rounds import ALONE, FEDAVG, POOLED, PRIVATE, ROUNDS, plainly, plans, play, privately, tested

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
UNTRAINED = "untrained"
STEPS_TIMED = 12


@dataclass(frozen=True)
class Kind:
    """`deal`: by seed. `private`: sections of the task file of private runs, by epsilon; none where none is run. What
    they train by was chosen at epsilon 8 by the training rows of a seed that is not among these."""

    folder: str
    data: str
    model: str
    deal: Callable[[int], DemoData]
    rounds: int
    private_rounds: int
    seeds: int
    metrics: tuple[str, ...]
    sections: Mapping[str, Any]
    private: Mapping[float, Mapping[str, Any]]


def _noised(epsilon: float) -> Mapping[str, Any]:
    return {
        "training": {"epochs": 4, "batch_size": 256, "learning_rate": 0.5},
        "update": {"bits": 16, "value_range": 1.0, "clip_norm": 8.0},
        "privacy": {"epsilon": epsilon, "max_grad_norm": 1.0},
    }


# Nobody judges these rounds. A committee would refuse the first: institutes ask about different things, and the mean of
# long steps is at first worse in log loss than where they began. The demo clips at 2, which it accepts from the start.
MUCH_AT_ONCE = {"update": {"bits": 8, "value_range": 0.1, "clip_norm": 8.0}}

KINDS = (
    Kind(
        "medquad", "medquad, 5 institutes", "lora", lambda seed: deal_medquad(SHARED / "medquad", 5, 1, seed, 208, 480),
        rounds=6, private_rounds=0, seeds=2, metrics=("accuracy",), sections=MUCH_AT_ONCE, private={},
    ),
    Kind(
        "pneumoniamnist", "pneumonia, 6 hospitals", "cnn",
        lambda seed: deal_pneumonia(SHARED / "pneumoniamnist", 6, 1, seed),
        rounds=6, private_rounds=10, seeds=4, metrics=("accuracy", "auc"), sections={},
        private={epsilon: _noised(epsilon) for epsilon in (8.0, 3.0)},
    ),
)  # fmt: skip


def spec_of(kind: Kind, data: DemoData, sections: Mapping[str, Any]) -> TaskSpec:
    rounds = kind.private_rounds if "privacy" in sections else kind.rounds
    usual = task_spec(data, TaskSettings(rounds=rounds)).model_dump()
    return TaskSpec.model_validate({**usual, **sections})


def study(number: int, seed: int) -> list[dict[str, Any]]:
    """One seed's results of one of `KINDS`, in one process."""
    kind = KINDS[number]
    with threadpool_limits(1):
        data = kind.deal(seed)
        spec = spec_of(kind, data, kind.sections)
        hospitals, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
        sums = np.sum([sums_of(part, data.schema) for part in hospitals], axis=0)
        averaged = simulate_fedavg(data, spec, seed, quantised=False).history
        found: list[tuple[str, float | None, Mapping[str, float]]] = [
            (UNTRAINED, None, averaged[0]),
            (POOLED, None, pooled(data, spec, seed)),
            (ALONE, None, local_only(data, spec, seed)),
            (FEDAVG, None, averaged[-1]),
            (ROUNDS, None, tested(spec, play(spec, hospitals, sums, seed, plainly(spec, seed)), sums, held_out)),
        ]
        for epsilon, sections in kind.private.items():
            private, public = spec_of(kind, data, sections), public_sums(data.schema)
            model = play(private, hospitals, public, seed, privately(private, plans(private, hospitals)))
            found.append((PRIVATE, epsilon, tested(private, model, public, held_out)))
    return [
        {
            "data": kind.data, "model": kind.model, "method": method, "epsilon": epsilon, "seed": seed,
            "metric": metric, "value": round(values[metric], 4),
        }
        for method, epsilon, values in found for metric in kind.metrics
    ]  # fmt: skip


def cost(kind: Kind) -> dict[str, Any]:
    """What a round takes: time of a step on an otherwise idle machine, by all its cores where the model takes them."""
    data = kind.deal(0)
    spec = spec_of(kind, data, kind.sections)
    model, (part, *_) = model_of(spec), examples_of(data.hospitals[:1], data.schema)
    inputs, times = model.inputs(part, sums_of(part, data.schema)), [time.perf_counter()]
    rows = slice(0, spec.training.batch_size * STEPS_TIMED)
    train(
        spec, model.initial(0), inputs[rows], part.labels[rows], 0, lambda *_: times.append(time.perf_counter())
    )  # fmt: skip
    return {
        "data": kind.data, "model": kind.model, "parameters": spec.parameters, "blobs": spec.update_blobs,
        "bytes_a_round": spec.update_blobs * BYTES_PER_BLOB, "batch_size": spec.training.batch_size,
        "threads": model.threads, "seconds_a_step": round(median(np.diff(times[2:])), 4),
    }  # fmt: skip
