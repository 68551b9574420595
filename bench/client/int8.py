"""A model's `model.onnx` beside `model-int8.onnx`: bytes, metrics on held-out rows, and a prediction's time.

Pooled models of the demo's rows: UCI Heart by `logistic` and two `mlp`, and chest X-rays by `cnn`. Activations' ranges
come from 256 of the held-out rows. `ms`: of one row at a time by onnxruntime on this machine, the median of 200.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from consilium_client.data.examples import joined
from consilium_client.data.standardise import public_sums
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_client.models.weights import named_tensors
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_pneumonia, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import ModelFile, SavedModel
from consilium_operators.model_inputs import model_inputs
from consilium_operators.onnx_file import onnx_of, session_of
from consilium_operators.onnx_int8 import graph_inputs, quantised

from bench.client.codecs import SHARED
from bench.results_store import Skipped, figure, say, write_figure

SEED, VOTERS, TIMED, AT_ONCE = 0, 3, 200, 500
NOWHERE = "0" * 64  # in place of a digest: these models are of no task


@dataclass(frozen=True)
class Tried:
    name: str
    model: Mapping[str, Any]
    epochs: int


TRIED: Mapping[str, tuple[Tried, ...]] = {
    "heart": (
        Tried("heart, logistic", {"name": "logistic"}, 8),
        Tried("heart, mlp 32 16", {"name": "mlp", "hidden": [32, 16]}, 8),
        Tried("heart, mlp 512 512", {"name": "mlp", "hidden": [512, 512]}, 8),
    ),
    "pneumoniamnist": (Tried("chest X-rays, cnn", {"name": "cnn"}, 3),),
}  # fmt: skip


def measure(quick: bool) -> dict[str, Any]:
    if not (SHARED / "heart").is_dir():
        raise Skipped("there is no shared/data beside this checkout")
    found = {}
    for folder, several in TRIED.items():
        if quick and folder != "heart":
            continue
        path = SHARED / folder
        data = deal_heart(path, VOTERS, SEED) if folder == "heart" else deal_pneumonia(path, 6, VOTERS, SEED)
        for tried in several:
            say(tried.name)
            found[tried.name] = one(data, tried)
    return {"what": __doc__, "models": found}


def one(data: DemoData, tried: Tried) -> dict[str, Any]:
    saved = trained(data, tried)
    held_out = joined(examples_of(data.held_out, data.schema))
    raw, _ = onnx_of(saved)
    result: dict[str, Any] = {"parameters": saved.spec.parameters, "rows": held_out.rows, "bytes": len(raw)}
    try:
        small, metrics = quantised(saved, raw, held_out, AT_ONCE)
    except OperatorError as error:
        return result | {"refused": str(error)}
    values = graph_inputs(held_out, saved.spec.data)
    return result | {
        "int8_bytes": len(small),
        "metrics": {name: [round(each, 4) for each in both] for name, both in metrics.items()},
        "ms": [milliseconds(file, values) for file in (raw, small)],
    }  # fmt: skip


def trained(data: DemoData, tried: Tried) -> SavedModel:
    spec = task_spec(data, TaskSettings(model=tried.model))
    longer = spec.training.model_copy(update={"epochs": tried.epochs})
    spec = spec.model_copy(update={"training": longer})
    rows, sums, model = joined(examples_of(data.hospitals, data.schema)), public_sums(spec.data), model_of(spec)
    parameters = train(spec, model.initial(SEED), model.inputs(rows, sums), rows.labels, SEED)
    index = ModelFile(
        task=1, name=spec.name, chain_id=1, contract="0x", spec_hash=NOWHERE, task_file="", round=1, rounds=1,
        verified=False, sha256=NOWHERE, statistics=tuple(sums.tolist()), classes=tuple(spec.data.classes),
        inputs=model_inputs(spec.data, sums), files={},
    )  # fmt: skip
    return SavedModel(index, spec, named_tensors(spec, parameters), sums, "")


def milliseconds(file: bytes, values: Any) -> float:
    session, seconds = session_of(file), []
    (name,) = (given.name for given in session.get_inputs())
    for at in range(TIMED):
        started = time.perf_counter()
        session.run(None, {name: values[[at % len(values)]]})
        seconds.append(time.perf_counter() - started)
    return round(1_000 * median(seconds), 3)


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (sizes, areas) = figure(10, 2.8, 2)
    written = {name: one for name, one in result["models"].items() if "int8_bytes" in one}
    for at, found in enumerate(written.values()):
        for index, (kind, shade) in enumerate((("bytes", "#8a8f98"), ("int8_bytes", "#2f6f9f"))):
            sizes.barh(at + 0.36 * index, found[kind] / 1_000, height=0.34, color=shade)
            areas.barh(at + 0.36 * index, found["metrics"]["auc"][index], height=0.34, color=shade)
    sizes.set_yticks([at + 0.18 for at in range(len(written))], list(written))
    sizes.set_xscale("log")
    sizes.set_xlabel("kB: model.onnx (grey), model-int8.onnx (blue)")
    areas.set_yticks([])
    areas.set_xlim(0.5, 1)
    areas.set_xlabel("AUC on held-out rows")
    write_figure(folder, "int8", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, one.get("refused") or _in_words(one)) for name, one in result["models"].items()]


def _in_words(one: dict[str, Any]) -> str:
    return f"{one['bytes']:,} to {one['int8_bytes']:,} bytes; {one['metrics']}; {one['ms']} ms"
