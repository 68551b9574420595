"""A released model as ONNX: a person's values to each class's probability, in one file.

| | name | |
|---|---|---|
| input, of a table | `rows` | float64 (n, columns), in the task's order; NaN is a missing value |
| input, of images | `pixels` | uint8, of 16 bits uint16, (n, channels, height, width), of the task's size |
| input, of series | `series` | float64 (n, variables, steps); NaN in a step without a measurement |
| input, of a program of texts | `tokens` | int64 (n, tokens), of the program's tokenizer |
| output | `probabilities` | float32 (n, classes); of a language model (n, tokens, all tokens), of each next one |
| output, of another question | `answers` | float32 (n, answers): an amount, or chances |
| output, of a segmentation | `answers` | float32 (n, classes, height, width): each pixel's probabilities |

The public standardisation is a part of the graph. As with `--clamp`, a value beyond its column's range counts as the
nearest bound, and an unknown code as missing. A named value is its position among the task's, from 0. The file's
metadata have `task`, `sha256` of the model's parameters, and as JSON `classes`, `answers`, `columns` and `values`: the
names of a column that has some.
"""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import CorpusSchema, TableSchema, TextSchema
from consilium_chain.tasks.features import Feature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import OnEncoder, ProgramSpec
from consilium_chain.tasks.questions import Question, Regression
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.image.reader import ImageSet, room
from consilium_client.data.series.stays import Stays, ranges, shares
from consilium_client.data.text.reader import TextSet
from consilium_client.models import model_of, next_token
from consilium_client.models.objectives.base import Objective, Predictions
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import ONNX, SavedModel, add_files, read_model
from consilium_operators.model_inputs import ChannelInput, CodeInput, Input, MissingInput, NumericInput, VariableInput
from consilium_operators.prediction import Predictor, columns, examples_of

MOST_DIFFERENCE: Final = 1e-5  # of a probability, or of an amount in its deviations, between ONNX and PyTorch
PACKAGES: Final = ("onnx", "onnxruntime", "onnxscript")
PROBABILITIES, ANSWERS = "probabilities", "answers"  # the output's name
_EXAMPLES = 64  # rows to compare on; of images, an eighth


def add_onnx(folder: Path, local: Path | None = None) -> float:
    """Writes a model's folder as `model.onnx` into it. `local`: a hospital's own local tensors, which are then in it.

    Returns the largest difference of a prediction from PyTorch's on drawn examples. Raises OperatorError
    (ModelFolderInvalid, LocalTensorsMissing, OnnxNotInstalled, OnnxImpossible, OnnxDiffers).
    """
    saved = read_model(folder)
    raw, difference = onnx_of(saved if local is None else saved.with_local(local))
    add_files(folder, {ONNX: raw})
    return difference


def onnx_of(saved: SavedModel) -> tuple[bytes, float]:
    """A file's bytes, and the largest difference of a prediction. Raises as `add_onnx` does."""
    require_packages()
    schema = saved.spec.data
    if isinstance(saved.spec.model, OnEncoder):
        raise _impossible("it reads texts, whose tokenizer no graph has")
    if saved.spec.model.name == "plugin":
        raise _impossible("it is a plug-in, whose code only a process without keys and network runs")
    predictor = Predictor(saved, clamp=True)
    examples, given = _of_texts(predictor) if isinstance(schema, TextSchema | CorpusSchema) else drawn(schema)
    raw = _exported(saved, torch.from_numpy(given))
    found, expected = run(raw, given), predictor.evaluation(examples)
    if expected.rows is not None:
        found = _of_next(found, given, of_kind(ProgramSpec, saved.spec.model).padding)
    return raw, difference_of(found, expected.predictions, schema.asked)


def difference_of(found: NDArray[np.float32], expected: Predictions, asked: Question) -> float:
    """The largest one of a prediction, of a regression in its deviations. Raises OperatorError (OnnxDiffers)."""
    unit = asked.deviation if isinstance(asked, Regression) else 1.0
    difference = float((np.abs(found - expected) / unit).max())
    if not difference <= MOST_DIFFERENCE:
        raise OperatorError("OnnxDiffers", difference=difference, most=MOST_DIFFERENCE)
    return difference


def require_packages() -> None:
    """Raises OperatorError (OnnxNotInstalled)."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise OperatorError("OnnxNotInstalled", packages=", ".join(missing))


class _Whole(nn.Module):
    """Values as a person has them -> predictions float32 (n, answers)."""

    def __init__(self, encoding: nn.Module, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.encoding, self.model, self._objective = encoding, model, objective

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self._objective.as_predictions(self.model(self.encoding(values)))


class _OfTable(nn.Module):
    """Rows float64 (n, columns) -> the model's inputs float32 (n, inputs), as `model_inputs` defines them."""

    def __init__(self, names: Sequence[str], inputs: Sequence[Input]) -> None:
        super().__init__()
        tables = [one for one in inputs if isinstance(one, NumericInput | CodeInput | MissingInput)]
        most = max(len(one.codes) if isinstance(one, CodeInput) else 1 for one in tables)
        codes = [[*one.codes] if isinstance(one, CodeInput) else [] for one in tables]
        numeric = [one if isinstance(one, NumericInput) else None for one in tables]
        # The optimiser of onnxscript 0.7 takes `sub` for a node's name, so these have longer ones.
        self._at = [names.index(one.column) for one in tables]
        self._constant("input_min", [-math.inf if one is None else one.min for one in numeric])
        self._constant("input_max", [math.inf if one is None else one.max for one in numeric])
        self._constant("input_code", [one.code if isinstance(one, CodeInput) else math.nan for one in tables])
        self._constant("input_codes", [[*known, *[math.nan] * (most - len(known))] for known in codes])
        self._constant("input_subtract", [one.subtract for one in tables])
        self._constant("input_multiply", [one.multiply for one in tables])
        self.register_buffer("input_is_code", torch.tensor([isinstance(one, CodeInput) for one in tables]))
        gaps = [isinstance(one, MissingInput) for one in tables]
        self._has_gaps = any(gaps)
        if self._has_gaps:
            self.register_buffer("input_is_gap", torch.tensor(gaps))

    def _constant(self, name: str, values: list[Any]) -> None:
        self.register_buffer(name, torch.tensor(values, dtype=torch.float64))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        given, of = rows[:, self._at], dict(self.named_buffers())
        clamped = torch.minimum(torch.maximum(given, of["input_min"]), of["input_max"])
        # onnxruntime chooses between float32 values alone.
        number = ((clamped - of["input_subtract"]) * of["input_multiply"]).float()
        code = (((given == of["input_code"]).double() - of["input_subtract"]) * of["input_multiply"]).float()
        is_known = (given.unsqueeze(2) == of["input_codes"]).any(dim=2)
        values = torch.where(of["input_is_code"], code, number)
        is_missing = torch.isnan(given) | (of["input_is_code"] & ~is_known)
        found = torch.where(is_missing, torch.zeros_like(values), values)
        if not self._has_gaps:
            return found
        gap = ((torch.isnan(given).double() - of["input_subtract"]) * of["input_multiply"]).float()
        return torch.where(of["input_is_gap"], gap, found)


class _OfImages(nn.Module):
    """Pixels (n, channels, height, width) -> the model's inputs, float32 of the same shape."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        super().__init__()
        channels = [one for one in inputs if isinstance(one, ChannelInput)]
        shift = torch.tensor([[[one.subtract * one.multiply]] for one in channels])
        self.register_buffer("input_multiply", torch.tensor([[[one.multiply]] for one in channels]))
        self.register_buffer("input_shift", shift)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        of = dict(self.named_buffers())
        return pixels.float() * of["input_multiply"] - of["input_shift"]


class _OfSeries(nn.Module):
    """Series float64 (n, variables, steps) -> the model's inputs float32 (n, 2 · variables, steps)."""

    def __init__(self, inputs: Sequence[Input], steps: int) -> None:
        super().__init__()
        variables, self._steps = [one for one in inputs if isinstance(one, VariableInput)], steps
        for name in ("min", "max", "subtract", "multiply"):
            values = [[getattr(one, name)] for one in variables]
            self.register_buffer(f"input_{name}", torch.tensor(values, dtype=torch.float64))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        of, measured = dict(self.named_buffers()), 1 - torch.isnan(series).float()
        clamped = torch.minimum(torch.maximum(series, of["input_min"]), of["input_max"])
        number = ((clamped - of["input_subtract"]) * of["input_multiply"]).float()
        # onnxruntime chooses between float32 values alone. A value reaches twice as many steps with each turn.
        value, known, reach = torch.where(measured > 0, number, torch.zeros_like(number)), measured, 1
        while reach < self._steps:
            value = torch.where(known > 0, value, _later(value, reach))
            known, reach = torch.maximum(known, _later(known, reach)), 2 * reach
        return torch.cat([value, measured], dim=1)


def _later(values: torch.Tensor, by: int) -> torch.Tensor:
    """The same (n, variables, steps) so many steps later, with zeros before."""
    return nn.functional.pad(values[:, :, :-by], (by, 0))


def _of_texts(predictor: Predictor) -> tuple[TextSet, NDArray[Any]]:
    """Drawn texts of one to forty words, and their tokens."""
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice([*"etaoinshrdlu"], size)) for size in generator.integers(1, 9, 100)]
    texts = tuple(" ".join(generator.choice(words, size)) for size in generator.integers(1, 41, _EXAMPLES // 8))
    examples = TextSet(texts, np.zeros(len(texts), np.int64))
    return examples, predictor.inputs(examples)


def _of_next(probabilities: NDArray[np.float32], tokens: NDArray[np.int64], padding: int) -> NDArray[np.float32]:
    """Of all tokens' probabilities those that an evaluation has."""
    targets = next_token.targets_of(tokens, padding)
    found = next_token.likelihoods(torch.from_numpy(probabilities).log(), torch.from_numpy(targets)).numpy()
    return np.asarray(found[targets != next_token.NONE])


def drawn(schema: TableSchema | ImageSchema | SeriesSchema) -> tuple[Any, NDArray[Any]]:
    """Drawn examples as nodes have them, and the same as the graph's input: also missing and foreign values."""
    generator = np.random.default_rng(0)
    if isinstance(schema, ImageSchema):
        shape = (_EXAMPLES // 8, schema.channels, schema.height, schema.width)
        pixels, _ = room(shape[0], schema)
        pixels[:] = generator.integers(0, schema.white + 1, shape)
        return ImageSet(pixels, np.zeros(len(pixels), np.int64)), pixels
    if isinstance(schema, SeriesSchema):
        low, high = (ends[:, None] for ends in ranges(schema))
        series = low + (high - low) * generator.uniform(-0.1, 1.1, (_EXAMPLES, len(low), schema.steps))
        series[generator.random(series.shape) < generator.random((_EXAMPLES, len(low), 1))] = np.nan
        return Stays(shares(series, low, high), np.zeros(_EXAMPLES, np.int64)), series
    bounds = [
        (min(one.codes), max(one.codes)) if one.kind == "category" else (one.min, one.max) for one in schema.features
    ]
    low, high = np.array(bounds).T
    rows = low + (high - low) * generator.uniform(-0.1, 1.1, (_EXAMPLES, len(bounds)))
    for at, feature in enumerate(schema.features):
        if feature.kind == "category":
            rows[:, at] = generator.choice([*feature.codes, max(feature.codes) + 1], _EXAMPLES)
    rows[generator.random(rows.shape) < 0.1] = np.nan
    values = [
        {one.name: _written(one, value) for one, value in zip(schema.features, row, strict=True)}
        for row in rows.tolist()
    ]
    return examples_of(values, schema, clamp=True), rows


def _written(feature: Feature, value: float) -> float | str | None:
    """A value as a request has it."""
    if math.isnan(value) or feature.kind == "numeric" or not feature.is_named:
        return None if math.isnan(value) else value
    return (*feature.names, "\0")[int(value)]  # the last is a foreign one


def _exported(saved: SavedModel, given: torch.Tensor) -> bytes:
    import onnx_ir
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    schema, index = saved.spec.data, saved.index
    encoding: nn.Module
    name, encoding = "tokens", nn.Identity()
    if isinstance(schema, ImageSchema):
        name, encoding = "pixels", _OfImages(index.inputs)
    elif isinstance(schema, TableSchema):
        name, encoding = "rows", _OfTable(columns(schema), index.inputs)
    elif isinstance(schema, SeriesSchema):
        name, encoding = "series", _OfSeries(index.inputs, schema.steps)
        if len(model_of(saved.spec).input_shape) == 1:  # a dense model's
            encoding = nn.Sequential(encoding, nn.Flatten())
    model = model_of(saved.spec)
    output = PROBABILITIES if schema.classes or isinstance(schema, CorpusSchema) else ANSWERS
    module = _Whole(encoding, model.module(saved.parameters), model.objective).eval()
    try:
        with quiet():
            program = torch.onnx.export(
                module, (given,), dynamo=True, dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False,
                input_names=[name], output_names=[output],
            )  # fmt: skip
    except Exception as error:  # of PyTorch's tracer: all kinds
        raise _impossible(f"PyTorch cannot write it ({type(error).__name__})") from error
    if program is None:
        raise AssertionError("without a path the exporter gives the program")
    written = ClearMetadataAndDocStringPass()(program.model).model  # they have this machine's paths
    written.metadata_props.update(
        task=saved.index.name, sha256=saved.index.sha256, classes=json.dumps(schema.classes),
        answers=json.dumps([one.column for one in model.objective.answers]), columns=json.dumps(columns(schema)),
    )  # fmt: skip
    if isinstance(schema, TableSchema) and (named := _named(schema)):
        written.metadata_props.update(values=json.dumps(named))
    raw: bytes = onnx_ir.to_proto(written).SerializeToString()
    return raw


def _named(schema: TableSchema) -> dict[str, list[str]]:
    """By column, its named values: the graph's input is a value's position in it."""
    return {one.name: one.names for one in schema.features if one.kind == "category" and one.is_named}


def run(raw: bytes, given: NDArray[Any]) -> NDArray[np.float32]:
    """Probabilities float32 (n, classes), of the first row by itself and of the others at once."""
    try:
        session = session_of(raw)
        (name,) = (one.name for one in session.get_inputs())
        return np.concatenate([session.run(None, {name: part})[0] for part in (given[:1], given[1:])])
    except Exception as error:  # its own classes derive from none in common
        raise _impossible(f"onnxruntime cannot run it ({type(error).__name__})") from error


def session_of(raw: bytes, threads: int = 0) -> Any:
    """onnxruntime's, of a file's bytes, on the CPU. `threads`: by default one for each core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])


@contextmanager
def quiet() -> Iterator[None]:
    """Without notes on operators of packages that no model here has, and on ways to quantise better."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "")]
    before = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for one, level in zip(loggers, before, strict=True):
            one.setLevel(level)


def _impossible(why: str) -> OperatorError:
    return OperatorError("OnnxImpossible", why=why)
