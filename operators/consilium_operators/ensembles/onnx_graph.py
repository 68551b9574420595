"""An ensemble as one ONNX graph: input and output as a member's own `model.onnx` has them (`onnx_file`).

Each member's graph has prefixed names and the shared input. The output is the mean of the members' by their weights,
added up in float64. Metadata are a model's, with `ensemble`, the digest as `sha256`, and as JSON `members`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from consilium_chain.tasks.data_schemas import CorpusSchema, TextSchema

from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.folder import SavedEnsemble
from consilium_operators.ensembles.predictor import EnsemblePredictor
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import SavedModel
from consilium_operators.onnx_file import difference_of, drawn, onnx_of, require_packages, run

if TYPE_CHECKING:
    import onnx

MOST_BYTES: Final = 2_000_000_000  # Protocol Buffers end at 2 GiB
OF_A_MEMBER: Final = ("classes", "answers", "columns", "values")  # metadata that all members share


def ensemble_onnx(saved: SavedEnsemble) -> tuple[bytes, float]:
    """A file's bytes, and the largest difference of a prediction from PyTorch's on drawn examples. Raises EnsembleError
    (GraphImpossible), OperatorError (OnnxNotInstalled, OnnxDiffers).
    """
    require_packages()
    schema = saved.schema
    if isinstance(schema, TextSchema | CorpusSchema):
        raise _impossible("its members read texts, each by a tokenizer of its own")
    raw = _composed(saved, [_of_a_member(one) for one in saved.models])
    examples, given = drawn(schema)
    expected = EnsemblePredictor(saved, clamp=True).answered(examples).predictions
    return raw, difference_of(run(raw, given), expected, schema.asked)


def _of_a_member(saved: SavedModel) -> bytes:
    try:
        return onnx_of(saved)[0]
    except OperatorError as error:
        if error.name != "OnnxImpossible":
            raise
        raise _impossible(f"task {saved.index.task} has none: {error.values['why']}") from error


def _impossible(why: str) -> EnsembleError:
    return EnsembleError("GraphImpossible", why=why)


def _composed(saved: SavedEnsemble, members: Sequence[bytes]) -> bytes:
    import onnx
    from onnx import compose

    if sum(map(len, members)) > MOST_BYTES:
        raise _impossible(f"its members' graphs have more than {MOST_BYTES:,} bytes, and a file may not")
    models = [onnx.load_from_string(raw) for raw in members]
    about = {one.key: one.value for one in models[0].metadata_props if one.key in OF_A_MEMBER}
    given, asked = models[0].graph.input[0], models[0].graph.output[0]
    parts = [
        compose.add_prefix(one, f"{member.folder}/", rename_inputs=False)
        for one, member in zip(models, saved.index.members, strict=True)
    ]
    graph = onnx.helper.make_graph(
        [node for one in parts for node in one.graph.node], saved.name, [given], [asked],
        [constant for one in parts for constant in one.graph.initializer],
    )  # fmt: skip
    _add_mean(graph, [one.graph.output[0].name for one in parts], saved.weights, asked.name)
    made = onnx.helper.make_model(
        graph, opset_imports=_opsets(parts), ir_version=max(one.ir_version for one in parts),
        functions=[function for one in parts for function in one.functions],
    )  # fmt: skip
    index = saved.index
    shown = [one.model_dump(include={"task", "gain", "sha256"}) for one in index.members]
    onnx.helper.set_model_props(
        made,
        {"task": saved.name, "ensemble": str(index.number), "sha256": index.sha256, "members": json.dumps(shown)}
        | about,
    )
    raw: bytes = made.SerializeToString()
    return raw


def _opsets(parts: Sequence[onnx.ModelProto]) -> list[Any]:
    """One exporter wrote all parts, so each domain has one version."""
    found = {one.domain: one for part in parts for one in part.opset_import}
    if any(found[one.domain].version != one.version for part in parts for one in part.opset_import):
        raise _impossible("its members' graphs have operators of different versions")
    return list(found.values())


def _add_mean(graph: onnx.GraphProto, outputs: Sequence[str], weights: Sequence[float], name: str) -> None:
    """The outputs' weighted sum, in float64, and as float32."""
    from onnx import TensorProto, helper

    for at, (output, weight) in enumerate(zip(outputs, weights, strict=True)):
        graph.initializer.append(helper.make_tensor(f"weight-{at}", TensorProto.DOUBLE, [], [weight]))
        graph.node.extend([
            helper.make_node("Cast", [output], [f"answer-{at}"], to=TensorProto.DOUBLE),
            helper.make_node("Mul", [f"answer-{at}", f"weight-{at}"], [f"share-{at}"]),
        ])  # fmt: skip
    graph.node.extend([
        helper.make_node("Sum", [f"share-{at}" for at in range(len(outputs))], ["mean"]),
        helper.make_node("Cast", ["mean"], [name], to=TensorProto.FLOAT),
    ])  # fmt: skip
