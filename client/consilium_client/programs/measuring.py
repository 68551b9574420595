"""A program's results and costs, without data: its shapes alone go through the graph, node by node, before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils.flop_counter import FlopCounterMode

from consilium_client.programs.errors import ProgramError
from consilium_client.programs.interpreter import DTYPES, Interpreter
from consilium_client.programs.program import Program, malformed

MOST_VALUES: Final = 1 << 28  # of one node's result
MOST_OPERATIONS: Final = 1 << 41  # of one row, forward
MOST_OF_A_STEP: Final = 1 << 32  # of all results together: 16 GiB of float32


@dataclass(frozen=True)
class Cost:
    """The cost of a step on `rows` rows. `values`: of all nodes' results. `operations`: multiplications and additions,
    forward.

    `shapes`: of each node's result; None if it is no tensor.
    """

    rows: int
    values: int
    operations: int
    shapes: tuple[tuple[int, ...] | None, ...]


def measured(program: Program, rows: int, training: bool = True) -> Cost:
    """Raises ProgramError (ProgramTooLarge; ProgramMalformed if the graph cannot be computed or gives no logits)."""
    module, shapes = _without_data(program).train(training), list[tuple[int, ...] | None]()
    values = 0

    def watch(at: int, found: Any) -> None:
        nonlocal values
        for one in found if isinstance(found, list | tuple) else [found]:
            size = one.numel() if isinstance(one, torch.Tensor) else 1
            values += size
            _require(f"the result of node {at} on {rows} rows", size, MOST_VALUES)
            _require(f"a step on {rows} rows", values, MOST_OF_A_STEP)
        shapes.append(tuple(found.shape) if isinstance(found, torch.Tensor) else None)

    given = torch.empty((rows, *program.shape), dtype=DTYPES[program.type_], device="meta")
    counter = FlopCounterMode(display=False)
    try:
        with torch.no_grad(), counter:
            found = module.computed(given, watch)[-1]
    except ProgramError as error:
        if error.name != "ProgramFailed":
            raise
        raise malformed("node {node} ({operator}) cannot be computed: {why}".format(**error.values)) from error
    is_real = isinstance(found, torch.Tensor) and found.is_floating_point()
    if not is_real or not _are_logits(shapes[-1], program, rows):
        raise malformed(f"its last node does not give {program.outputs} logits for each of {rows} rows, or tokens")
    operations = counter.get_total_flops()
    _require(f"a step on {rows} rows", operations, MOST_OPERATIONS * rows, "operations")
    return Cost(rows, values, operations, tuple(shapes))


def _are_logits(shape: tuple[int, ...] | None, program: Program, rows: int) -> bool:
    """Of each row, or of each token of a row."""
    is_text = program.type_ == "int64" and len(program.shape) == 1
    return shape == (rows, program.outputs) or (is_text and shape == (rows, *program.shape, program.outputs))


def _without_data(program: Program) -> Interpreter:
    shapes = {**{name: (shape, "float32") for name, shape in program.learnt.items()}, **program.frozen}
    empty = {
        name: torch.empty(shape, dtype=DTYPES[type_], device="meta") for name, (shape, type_) in shapes.items()
    }  # fmt: skip
    return Interpreter(program, empty)


def _require(what: str, found: int, most: int, unit: str = "values") -> None:
    if found > most:
        raise ProgramError("ProgramTooLarge", what=what, found=found, most=most, unit=unit)
