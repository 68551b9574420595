"""MONAI's ResNet-18 as a program on chest X-rays: alone, pooled, by plain averaging, over rounds, and privately.

As `learning`, on a GPU where there is one: on two processors it takes hours. Opacus' validator makes its batch norms to
norms of groups, which private tasks and codecs need. `plain` is FedAvg of the eager module in plain PyTorch, without a
program: weights by rows, all 11 million parameters. `consilium` trains within a basis, quantises, masks and commits,
and reads the sum back. Private runs train the norms and the last layer; the convolutions stay as they were drawn.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.data.examples import joined
from consilium_client.data.standardise import public_sums
from consilium_client.models import Model, Vector, model_of
from consilium_client.models.metrics import accuracy, auc
from consilium_client.models.training import train
from consilium_client.privacy.dp_sgd import learn_privately
from consilium_client.programs import library
from consilium_client.programs.confined import without_windows
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import DemoData, deal_pneumonia, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_lab.result_files import columns_of
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from consilium_zk.basis import Coordinates
from numpy.typing import NDArray
from opacus.validators import ModuleValidator
from torch import nn

from bench.client.folding import Played
from bench.client.learning import ROWS_BY
from bench.client.learning import plot as plot_learning
from bench.client.learning import table as table_of_learning
from bench.client.learning_rounds import ALONE, POOLED, PRIVATE, ROUNDS, plans
from bench.results_store import Skipped, say

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "pneumoniamnist"
UNTRAINED, PLAIN = "untrained", "plain FedAvg, eager"
SEEDS, EPOCHS, EPSILON = 3, 6, 8.0
SECTIONS: Mapping[str, Any] = {
    "training": {"epochs": 1, "batch_size": 64, "optimizer": "adamw", "learning_rate": 0.001},
    "update": {"bits": 8, "value_range": 0.05, "clip_norm": 8.0, "codec": {"name": "lowrank", "rank": 16}},
}
PRIVATELY: Mapping[str, Any] = {
    "training": {"epochs": 4, "batch_size": 256, "learning_rate": 0.2},
    "update": {"bits": 16, "value_range": 1.0, "clip_norm": 8.0},
    "privacy": {"epsilon": EPSILON, "max_grad_norm": 1.0},
}


def resnet(frozen: bool = False) -> nn.Module:
    """`frozen`: its convolutions."""
    from monai.networks.nets.resnet import resnet18

    torch.manual_seed(0)
    made: nn.Module = ModuleValidator.fix(
        resnet18(spatial_dims=2, n_input_channels=1, num_classes=1, conv1_t_size=3, conv1_t_stride=1)
    )
    for one in made.modules():
        if frozen and isinstance(one, nn.Conv2d):
            one.requires_grad_(False)
    return made


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Subject:
    """A model and its data. `deal`: rows by seed. `module`: frozen for private tasks or not. `example`: of its input.
    `export`: more arguments of it. `logits`: of the eager module's result. `tested`: of an evaluation, by name.
    """

    data: str
    model: str
    deal: Callable[[int], DemoData]
    module: Callable[[bool], nn.Module]
    example: torch.Tensor
    sections: Mapping[str, Any]
    private: Mapping[str, Any]
    rounds: int
    tested: Callable[[NDArray[np.int64], NDArray[np.float64]], dict[str, float]]
    export: Mapping[str, Any] = field(default_factory=dict)
    logits: Callable[[Any], torch.Tensor] = lambda found: found  # a tensor


class Study:
    """One seed's runs, all on the same dealt rows and from the same starting values."""

    def __init__(self, subject: Subject, seed: int, rounds: int, folder: Path) -> None:
        self.subject, self.seed, self.rounds = subject, seed, rounds
        data = subject.deal(seed)
        self.parts = examples_of(data.hospitals, data.schema)
        self.held_out = joined(examples_of(data.held_out, data.schema))
        specs = []
        for name, sections in (("whole", subject.sections), ("frozen", subject.private)):
            export(subject.module(name == "frozen"), subject.example, folder / name, **subject.export)
            store = ArtifactStore(folder / f"{name}-artifacts")
            model = tomllib.loads(store_weights(store, folder / name))["model"]
            usual = task_spec(data, TaskSettings(rounds=rounds, model=model)).model_dump()
            specs.append(TaskSpec.model_validate({**usual, **sections}))
            library.offer(store, specs[-1])
        self.spec, self.private = specs
        self.model: Model = model_of(self.spec)
        self.sums = public_sums(data.schema)
        self.inputs = [self.model.inputs(part, self.sums) for part in self.parts]

    def tested(self, parameters: Vector, of: TaskSpec | None = None) -> dict[str, float]:
        model = self.model if of is None else model_of(of)
        found = model.evaluate(parameters, model.inputs(self.held_out, self.sums))
        return self.subject.tested(*found.answers(self.held_out.labels))

    def trained(self, parts: Sequence[int]) -> Vector:
        """All rounds' epochs on these hospitals' rows together."""
        inputs = np.concatenate([self.inputs[at] for at in parts])
        labels = np.concatenate([self.parts[at].labels for at in parts])
        longer = self.spec.training.model_copy(update={"epochs": self.rounds * self.spec.training.epochs})
        spec = self.spec.model_copy(update={"training": longer})
        return train(spec, self.model.initial(0), inputs, labels, self.seed, device=device())

    def plainly(self) -> Vector:
        """FedAvg (McMahan et al., 2017) of the eager module."""
        whole, settings = self.subject.module(False).to(device()).train(), self.spec.training
        generator = np.random.default_rng(self.seed)
        weights = [len(part.labels) for part in self.parts]
        for _ in range(self.rounds):
            total = torch.zeros(self.spec.parameters, device=device())
            for weight, inputs, part in zip(weights, self.inputs, self.parts, strict=True):
                own = deepcopy(whole)
                optimizer = torch.optim.AdamW(_trained(own), settings.learning_rate, weight_decay=0.0)
                for batch in np.array_split(generator.permutation(weight), -(-weight // settings.batch_size)):
                    optimizer.zero_grad()
                    targets = self.model.targets(inputs[batch], part.labels[batch])
                    rows, asked = (torch.from_numpy(one).to(device()) for one in (inputs[batch], targets))
                    logits = self.subject.logits(own(rows))
                    self.model.loss(logits, asked, "mean").backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
                total += weight / sum(weights) * nn.utils.parameters_to_vector(_trained(own)).detach()
            nn.utils.vector_to_parameters(total, _trained(whole))
        return total.cpu().numpy()

    def played(self) -> Vector:
        game = Played(self.spec, self.parts, self.seed, device())
        for round_ in range(1, self.rounds + 1):
            game.play(round_)
        return game.model

    def privately(self) -> Vector:
        """Quantised and added up, without masks and commitments."""
        spec = self.private
        privacy, basis, model = of_kind(PrivacySpec, spec.privacy), spec.basis(bytes(32)), model_of(spec).initial(0)
        for _ in range(spec.rounds.rounds):
            total: Coordinates = np.zeros(basis.size)
            for mechanism, inputs, part in zip(plans(spec, self.parts), self.inputs, self.parts, strict=True):
                total += learn_privately(
                    spec, privacy, mechanism, basis, model, inputs, part.labels, device=device()
                ) / len(self.parts)  # fmt: skip
            model = (model + basis.spread(total, 0, len(model))).astype(np.float32)
        return model

    def alone(self) -> dict[str, float]:
        """The mean of the hospitals' own models."""
        found = [self.tested(self.trained([at])) for at in range(len(self.parts))]
        return {name: fmean(one[name] for one in found) for name in found[0]}

    def run(self) -> Iterator[dict[str, Any]]:
        everywhere = range(len(self.parts))
        methods: Mapping[str, Callable[[], dict[str, float]]] = {
            UNTRAINED: lambda: self.tested(self.model.initial(0)),
            POOLED: lambda: self.tested(self.trained(everywhere)),
            ALONE: self.alone,
            PLAIN: lambda: self.tested(self.plainly()),
            ROUNDS: lambda: self.tested(self.played()),
            PRIVATE: lambda: self.tested(self.privately(), self.private),
        }
        for method, compute in methods.items():
            values, epsilon = compute(), EPSILON if method == PRIVATE else None
            say(f"seed {self.seed}, {method}: {values}")
            for metric, value in values.items():
                yield {
                    "data": self.subject.data, "model": self.subject.model, "method": method, "epsilon": epsilon,
                    "seed": self.seed, "metric": metric, "value": round(value, 4),
                }  # fmt: skip


def _trained(module: nn.Module) -> list[nn.Parameter]:
    return [one for one in module.parameters() if one.requires_grad]


def images() -> Subject:
    return Subject(
        "pneumonia, 6 hospitals", "MONAI ResNet-18", lambda seed: deal_pneumonia(FOLDER, 6, 1, seed), resnet,
        torch.randn(3, 1, 28, 28), SECTIONS, PRIVATELY, EPOCHS,
        lambda labels, likely: {"accuracy": accuracy(labels, likely), "auc": auc(labels, likely) or 0.0},
    )  # fmt: skip


def study(subject: Callable[[], Subject], seed: int, quick: bool) -> list[dict[str, Any]]:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // SEEDS))
    with TemporaryDirectory() as folder, without_windows():
        own = subject()
        return list(Study(own, seed, 1 if quick else own.rounds, Path(folder)).run())


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    if not FOLDER.is_dir():
        raise Skipped("there is no shared/data/pneumoniamnist beside this checkout")
    what = "accuracy and AUC on the test images after all rounds; `alone` is the mean of six models"
    yield from studies(images, quick, SEEDS, {"what": what, "rounds": EPOCHS})


def studies(
    subject: Callable[[], Subject], quick: bool, at_once: int, said: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """So far, after each seed."""
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(at_once, get_context("spawn")) as pool:
        for found in pool.map(study, [subject] * SEEDS, range(1 if quick else SEEDS), [quick] * SEEDS):
            rows += found
            device_name = torch.cuda.get_device_name() if device() == "cuda" else "CPU"
            yield {**said, "device": device_name, "rows": columns_of(rows, ROWS_BY)}


def plot(result: dict[str, Any], folder: Path) -> None:
    plot_learning(result, folder, "learning_programs")


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return table_of_learning(result)
