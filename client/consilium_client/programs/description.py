"""A program in words, for those who decide whether it may train on their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from consilium_client.programs.measuring import Cost, measured
from consilium_client.programs.program import Call, Program, Shape, Tensor

LAYERS: Final = frozenset({
    "batch_norm.default", "bmm.default", "conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding",
    "conv3d.default", "conv3d.padding", "conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input",
    "embedding.default", "group_norm.default", "gru.input", "instance_norm.default", "layer_norm.default",
    "linear.default", "lstm.input", "matmul.default", "rms_norm.default", "scaled_dot_product_attention.default",
})  # fmt: skip
SHOWN: Final = 40
BYTES: Final = 4  # of a value


def described(program: Program, rows: int) -> list[tuple[str, str]]:
    """A title and a text each. `rows`: of a training step. Raises as `measured` does."""
    cost = measured(program, rows)
    kinds = {one.operator for one in program.nodes}
    frozen = sum(math.prod(shape) for shape, _ in program.frozen.values())
    return [
        ("takes", f"{_by(program.shape)} {program.type_} for each row"),
        ("gives", f"{program.outputs} logit(s) for each {'token' if len(cost.shapes[-1] or ()) == 3 else 'row'}"),
        (
            "holds",
            f"{_sum(program.trainable):,} trained values, {_sum(program.moving):,} that layers write, and {frozen:,}"
            " frozen",
        ),
        ("computes", f"{len(program.nodes):,} nodes of {len(kinds)} kinds of operators"),
        (
            "a step",
            f"of {rows} rows takes {cost.operations:,} operations forward, and up to {BYTES * cost.values:,} bytes for"
            " its results",
        ),
        ("layers", "\n".join(_layers(program, cost))),
    ]


def _layers(program: Program, cost: Cost) -> Iterator[str]:
    """A line each: operator, shape of a row's result, and its trained tensors."""
    chosen = [at for at, one in enumerate(program.nodes) if one.operator in LAYERS]
    for at in chosen[:SHOWN]:
        call, shape = program.nodes[at], cost.shapes[at]
        name = call.operator.partition(".")[0]
        yield f"{name:<14} {_by(shape[1:]) if shape else '':<16} {', '.join(_tensors(call))}".rstrip()
    if len(chosen) > SHOWN:
        yield f"and {len(chosen) - SHOWN} more"


def _tensors(call: Call) -> list[str]:
    return [one.name for one in call.all_arguments() if isinstance(one, Tensor)]


def _sum(tensors: Mapping[str, Shape]) -> int:
    return sum(map(math.prod, tensors.values()))


def _by(shape: Shape) -> str:
    return " × ".join(map(str, shape)) or "1"
