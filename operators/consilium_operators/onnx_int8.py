"""A model's `model.onnx` with weights and activations of 8 bits, as `model-int8.onnx`: for phones and small machines.

onnxruntime quantises the layers that multiply, each weight by its output channel (static, QDQ; Jacob et al., CVPR
2018). Scaling and probabilities stay as they are, and so do inputs and outputs. Ranges of activations come from the
rows on which the file is then measured. The file is written only if it does as well there, to a point.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
from consilium_chain.tasks.features import CategoryFeature
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays, ranges
from consilium_client.data.table.reader import Table
from consilium_client.models.objectives import objective_of
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import ONNX, ONNX_INT8, SavedModel, add_files, read_model
from consilium_operators.onnx_file import onnx_of, quiet, session_of
from consilium_operators.prediction import Predictor

MOST_WORSE: Final = 0.01  # of a metric
MOST_CALIBRATED: Final = 256  # rows whose activations are looked at
LAYERS: Final = ("MatMul", "Gemm", "Conv")


@dataclass(frozen=True)
class Quantised:
    """Both files' bytes, and each shown metric of both on the labelled rows: as it is, and of 8 bits. `difference`: as
    `add_onnx` returns it.
    """

    difference: float
    float_bytes: int
    int8_bytes: int
    rows: int
    metrics: Mapping[str, tuple[float, float]]


def add_int8(folder: Path, data: Path, mapping: Path | None = None, local: Path | None = None) -> Quantised:
    """Writes `model.onnx` and `model-int8.onnx` into a model's folder. `data`: labelled rows, read by `mapping` or the
    model's own. `local`: as of `add_onnx`.

    Raises OperatorError (Int8Worse, ForetellsTokens, MarksPixels), DataError, and as `add_onnx` does.
    """
    saved = read_model(folder)
    saved = saved if local is None else saved.with_local(local)
    predictor = Predictor(saved, clamp=True)
    predictor.require_answers()
    examples = predictor.read(data, mapping, labelled=True).examples
    raw, difference = onnx_of(saved)
    add_files(folder, {ONNX: raw})
    small, metrics = quantised(saved, raw, examples, predictor.most_rows)
    add_files(folder, {ONNX_INT8: small})
    return Quantised(difference, len(raw), len(small), examples.rows, metrics)


def quantised(
    saved: SavedModel, raw: bytes, examples: Examples, at_once: int
) -> tuple[bytes, dict[str, tuple[float, float]]]:
    """The bytes of the small file, by labelled examples, and `Quantised.metrics`. `raw`: the file as it is. Raises
    Int8Worse.
    """
    schema = saved.spec.data
    values = graph_inputs(examples, schema)
    small = _small(raw, values[:MOST_CALIBRATED])
    objective = objective_of(schema)
    whole, after = (_computed(file, values, at_once) for file in (raw, small))
    metrics = dict[str, tuple[float, float]]()
    for name in schema.asked.shown:
        measure = objective.measures[name]
        before, now = (measure.worth(examples.labels, one) for one in (whole, after))
        if before - now > MOST_WORSE:
            raise OperatorError(
                "Int8Worse", metric=name.replace("_", " "), before=abs(before), after=abs(now), rows=examples.rows
            )
        metrics[name] = abs(before), abs(now)
    return small, metrics


def graph_inputs(examples: Examples, schema: DataSchema) -> NDArray[Any]:
    """The graph's input (`onnx_file`) of examples as nodes have them, (n, …)."""
    if isinstance(examples, ImageSet):
        return examples.pixels
    if isinstance(examples, Stays):
        low, high = (ends[:, None] for ends in ranges(of_kind(SeriesSchema, schema)))
        return np.asarray(low + examples.values.astype(np.float64) * (high - low))
    return np.stack(list(_columns(of_kind(Table, examples), of_kind(TableSchema, schema))), axis=1)


def _columns(table: Table, schema: TableSchema) -> Iterator[NDArray[np.float64]]:
    at = 0
    for feature in schema.features:
        width = len(list(feature.encoded))
        block, at = table.features[:, at : at + width], at + width
        if isinstance(feature, CategoryFeature):
            indices = np.where(block.any(axis=1), 1 + np.argmax(block, axis=1), 0)
            codes = np.array(feature.codes, np.float64)[indices]
            yield np.where(np.isnan(block).any(axis=1), np.nan, codes)
        else:
            yield feature.min + block[:, 0] * (feature.max - feature.min)


def _small(raw: bytes, values: NDArray[Any]) -> bytes:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Rows(CalibrationDataReader):  # type: ignore[misc]  # untyped
        def __init__(self, name: str) -> None:
            self._rows = ({name: values[[at]]} for at in range(len(values)))

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._rows, None)

    graph = onnx.load_from_string(raw)
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "small.onnx"
        quantize_static(
            graph, path, Rows(graph.graph.input[0].name), QuantFormat.QDQ, op_types_to_quantize=list(LAYERS),
            per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        found = onnx.load(path)
    found.metadata_props.extend(graph.metadata_props)
    return bytes(found.SerializeToString())


def _computed(raw: bytes, values: NDArray[Any], at_once: int) -> NDArray[np.float64]:
    """Predictions float64 (n, answers)."""
    session = session_of(raw)
    (name,) = (one.name for one in session.get_inputs())
    parts = (values[start : start + at_once] for start in range(0, len(values), at_once))
    return np.concatenate([session.run(None, {name: part})[0] for part in parts]).astype(np.float64)
