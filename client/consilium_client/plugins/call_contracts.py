"""The contracts of a plug-in's metric and reader, as checks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import tomli_w
from consilium_chain.tasks.plugin_specs import MetricPlugin, ReaderPlugin
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.data.kinds import kind_of
from consilium_client.plugins.asking import worth
from consilium_client.plugins.findings import Checks, Findings, require
from consilium_client.programs import confined

ROWS: Final = 200
SECONDS: Final = 60.0
ALIKE: Final = 1e-9  # relative, of a number on the same rows in another order
SURE: Final = 3.0  # added to the logit of a row's class


def metric_suite(spec: MetricPlugin, classes: int, findings: Findings) -> Checks:
    """On drawn rows of so many classes."""
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(ROWS) % classes)
    logits = generator.standard_normal((ROWS, classes))
    better, worse = (_shares(logits + sign * SURE * np.eye(classes)[labels]) for sign in (1, -1))

    def of(probabilities: NDArray[np.float64], order: NDArray[np.int64] | slice = slice(None)) -> float:
        return worth(spec, labels[order], probabilities[order], SECONDS)

    def counts() -> str:
        for one in (
            np.eye(classes)[labels],
            np.eye(classes)[(labels + 1) % classes],
            np.full_like(better, 1 / classes),
        ):
            of(one)  # certain, wrong and equal ones, as models at their start give
        section = {"metric": "plugin", "plugin": spec.model_dump(exclude_defaults=True)}
        findings.named = tomli_w.dumps({"judging": section})
        return f"{of(better):.6g}"

    def again() -> None:
        require(of(better) == of(better), "two calls differ: draw by no clock, and keep nothing from call to call")

    def anew() -> None:
        before = of(better)
        confined.end(spec, None)
        require(of(better) == before, "voters and auditors would find different scores")

    def in_any_order() -> None:
        found, other = of(better), of(better, generator.permutation(ROWS))
        require(abs(found - other) <= ALIKE * max(1, abs(found)), f"{found:.12g} becomes {other:.12g}")

    def compares() -> str:
        good, bad = of(better), of(worse)
        is_more = good > bad
        return f"{good:.6g}, and wrong ones {bad:.6g}" + ("" if is_more else ": MORE IS BETTER, so this looks reversed")

    yield "it gives a finite number, without files, keys and network", counts
    yield "the same rows have the same number", again
    yield "another process gives the same number", anew
    yield "the order of rows does not count", in_any_order
    yield "good predictions score", compares


def reader_suite(spec: ReaderPlugin, task: TaskSpec, path: Path, findings: Findings) -> Checks:
    """On the file or folder at `path`, for a task's data."""
    schema = task.data.model_copy(update={"reader": spec})
    of_reader, kind = task.model_copy(update={"data": schema}), kind_of(schema)
    kept = []  # for the checks after it

    def reads() -> str:
        kept.append(kind.read(path, schema, None))
        findings.named = tomli_w.dumps({"reader": spec.model_dump(exclude_defaults=True)})
        profile = kind.profile(kept[0], of_reader)
        findings.notes = [
            f"{one.column or profile.things}: {one.count:,} of {one.of:,}: {one.concern}" for one in profile.findings
        ]
        classes = ", ".join(f"{count:,} {name}" for name, count in profile.answers)
        return f"{profile.rows:,} {profile.things}: {classes}"

    def again() -> None:
        both = kept[0], kind.read(path, schema, None)
        first, second = (list(kind.examples(one, schema).row_bytes()) for one in both)
        require(first == second, "two readings differ, so a voter's rows would not be those of its commitment")

    def fits() -> None:
        kind.examples(kept[0], schema)

    yield "it reads the data, without other files, keys and network", reads
    yield "the data fit the task", fits
    yield "a second reading gives the same rows", again


def _shares(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.exp(logits - logits.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return found
