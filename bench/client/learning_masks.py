"""Hospitals learn to mark lesions in volumes: together, alone, federated, and over this platform's rounds.

Volumes are synthetic, written as NIfTI and read as a node reads them: ellipsoids in noise, a bright structure that is
no lesion, and at each site another scale, contrast, shading and orientation of the stored axes. A third of each site's
cases is for testing. As `learning`: rounds are played in this process by the nodes' own code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples, joined
from consilium_client.data.kinds import read_examples
from consilium_client.data.standardise import sums_of
from consilium_client.models import model_of
from consilium_lab.demo.references import evaluated, fedavg, mean_alone, trained_pooled
from consilium_lab.result_files import columns_of
from nibabel.orientations import axcodes2ornt
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bench.client.learning import summary
from bench.client.learning import table as table_of_learning
from bench.client.learning_rounds import ALONE, FEDAVG, POOLED, ROUNDS, plainly, play
from bench.results_store import figure, say, write_figure

SEEDS, CASES, TESTED = 3, 9, 3  # cases of a site, and those of them for testing
SIDE, SLICES = 32, 12
DATA, UNTRAINED = "synthetic volumes, lesions", "untrained"
ROWS_BY = ("data", "model", "method", "epsilon", "metric")


@dataclass(frozen=True)
class Site:
    """`scale`: of its scanner's values. `contrast`: of a lesion, in deviations of the noise. `shading`: across a
    volume. `axes`: as its files have them.
    """

    scale: float
    contrast: float
    shading: float
    axes: str


SITES = (Site(1.0, 3.0, 0.0, "RAS"), Site(7.5, 2.0, 2.0, "LPS"), Site(0.4, 1.6, 1.0, "LIP"), Site(3.0, 2.4, 3.0, "ASR"))


def volume(site: Site, random: np.random.Generator) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Values and mask, (right, front, up)."""
    shape = (SIDE, SIDE, SLICES)
    x, y, z = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    mask = np.zeros(shape, bool)
    for _ in range(random.integers(1, 4)):
        mask |= _ellipsoid((x, y, z), random, 0.15, 0.45)
    values = random.normal(0, 1, shape) + site.shading * (x * random.normal() + y * random.normal())
    values += site.contrast * mask + 2 * site.contrast * (np.abs(np.hypot(x, y) - 0.9) < 0.06)
    return np.rint(100 * site.scale * (values + 10)).astype(np.int16), mask.astype(np.uint8)


def _ellipsoid(
    axes: tuple[NDArray[Any], ...], random: np.random.Generator, least: float, most: float
) -> NDArray[np.bool_]:
    found = sum(((axis - random.uniform(-0.6, 0.6)) / random.uniform(least, most)) ** 2 for axis in axes)
    return np.asarray(found < 1)


def write_site(folder: Path, site: Site, cases: int, random: np.random.Generator) -> Path:
    """A folder in nnU-Net's layout."""
    turned, affine = axcodes2ornt(site.axes), np.diag([1.0, 1.0, 3.0, 1.0])
    for inside in ("imagesTr", "labelsTr"):
        (folder / inside).mkdir(parents=True)
    for at in range(cases):
        for name, values in zip((f"imagesTr/{at}_0000", f"labelsTr/{at}"), volume(site, random), strict=True):
            image = nibabel.Nifti1Image(values, affine).as_reoriented(turned)
            nibabel.save(image, folder / f"{name}.nii.gz")
    return folder


def spec_of(rounds: int) -> TaskSpec:
    return TaskSpec.model_validate({
        "name": "masks", "statistics": "exact",
        "data": {
            "kind": "images", "height": SIDE, "width": SIDE, "window": {"low": 1, "high": 99},
            "question": {"kind": "segmentation", "classes": ["background", "lesion"]},
        },
        "model": {"name": "unet"}, "judging": {"metric": "dice"}, "money": {"pool": 1_000},
        "training": {"epochs": 2, "batch_size": 8, "learning_rate": 0.003, "optimizer": "adamw"},
        "update": {"bits": 16, "value_range": 2.0, "clip_norm": 8.0},
        "rounds": {"rounds": rounds, "max_hospitals": len(SITES), "rows_per_weight": 10},
    })  # fmt: skip


def dealt(spec: TaskSpec, seed: int) -> tuple[list[Examples], Examples]:
    """Each site's training slices, and the testing slices of all."""
    train, tests = list[Examples](), list[Examples]()
    for number, site in enumerate(SITES):
        random = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as folder:
            for name, cases, into in (("train", CASES - TESTED, train), ("test", TESTED, tests)):
                into.append(read_examples(write_site(Path(folder) / name, site, cases, random), spec.data))
    return train, joined(tests)


def study(seed: int, rounds: int) -> list[dict[str, Any]]:
    spec = spec_of(rounds)
    with threadpool_limits(1):
        hospitals, held_out = dealt(spec, seed)
        sums = np.sum([sums_of(part, spec.data) for part in hospitals], axis=0)
        found: list[tuple[str, Mapping[str, float]]] = [
            (UNTRAINED, evaluated(spec, model_of(spec).initial(seed), sums, held_out)),
            (POOLED, trained_pooled(spec, hospitals, held_out, seed)),
            (ALONE, mean_alone(spec, hospitals, held_out, seed)),
            (FEDAVG, fedavg(spec, hospitals, held_out, seed, quantised=False).history[-1]),
            (ROUNDS, evaluated(spec, play(spec, hospitals, sums, seed, plainly(spec, seed)), sums, held_out)),
        ]
    return [
        {
            "data": DATA, "model": "unet", "method": method, "epsilon": None, "seed": seed, "metric": metric,
            "value": round(values[metric], 4),
        }
        for method, values in found for metric in spec.data.asked.shown
    ]  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    rounds, seeds, rows = 2 if quick else 12, 1 if quick else SEEDS, list[dict[str, Any]]()
    for seed in range(seeds):
        rows += study(seed, rounds)
        say(f"seed {seed}")
    what = "metrics on all sites' test slices, synthetic; `alone` is the mean of four models, each tested on all"
    yield {"what": what, "rounds": rounds, "rows": columns_of(rows, ROWS_BY)}


def plot(result: dict[str, Any], folder: Any) -> None:
    """Dice by method: more is better."""
    drawn, (axis,) = figure(7.5, 2.6, rows=1)
    methods = summary(result, "unet", DATA)[::-1]
    for index, (_, values) in enumerate(methods):
        found = values["dice"]
        axis.plot([min(found), max(found)], [index, index], color="#2f6f9f", linewidth=1.2)
        axis.plot([sum(found) / len(found)], [index], "o", color="#2f6f9f")
    axis.set_yticks(range(len(methods)), [label for label, _ in methods])
    axis.set_title(DATA, loc="left")
    axis.set_xlabel("Dice")
    write_figure(folder, "learning_masks", drawn)


table = partial(table_of_learning)
