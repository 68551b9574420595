"""A model that a task brings as a program: nothing of its author's code runs here."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import ImageSchema, TableSchema
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.errors import ModelError
from consilium_client.models import Evaluation, Inputs, Vector, probabilities_of, require_finite
from consilium_client.models.computed import Computed
from consilium_client.models.torch_parameters import load
from consilium_client.models.weights import vector_of
from consilium_client.programs.confined import Progress, Work, computed, is_elsewhere
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.library import loaded
from consilium_client.programs.measuring import measured
from consilium_client.programs.row_gradients import TRIED, require_apart

EVALUATED_AT_ONCE = 256  # rows
INPUTS_AT_ONCE = 1 << 26  # values, in one call of the process that computes
OF_VALUES = 32  # bytes for each value of a step's results: with gradients, and a convolution's own room
OF_WEIGHTS, OF_ARRAYS = 16, 4  # bytes for each byte of weights (gradients, moments, copies), and of what is given
VALUES_AT_ONCE = 1 << 27  # of all nodes' results: a gigabyte
HEAVY = 10_000_000  # operations of a row, from which on more threads are faster


class OfProgram(Computed):
    """Computed by a process of its own (`programs.confined`), but within `computing_here`, where `module` is for."""

    def __init__(self, spec: ProgramSpec, data: TableSchema | ImageSchema) -> None:
        """Raises ShapeMismatch, and as `loaded` and `measured` do."""
        self._spec, self._data = spec, data
        self._loaded = loaded(spec, data)
        self._program = self._loaded.program
        self.parameters = spec.parameters(data)
        self.input_shape = self._program.shape
        if self._program.outputs != data.outputs:
            raise ModelError("ShapeMismatch", what="logits", expected=(data.outputs,), found=(self._program.outputs,))
        expected = (data.columns,) if isinstance(data, TableSchema) else (data.channels, data.height, data.width)
        if self._program.shape != expected or self._program.type_ != "float32":
            raise ModelError("ShapeMismatch", what="program's inputs", expected=expected, found=self._program.shape)
        self._of_row = measured(self._program, 1, training=False)
        self._at_once = max(1, min(EVALUATED_AT_ONCE, VALUES_AT_ONCE // self._of_row.values))
        measured(self._program, self._at_once, training=False)
        if self._of_row.operations > HEAVY:
            self.threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0))

    def require_apart(self) -> None:
        if is_elsewhere():
            self.elsewhere(Work("require-apart", {}, {}, self.memory(TRIED), self.window))
        else:
            require_apart(self.module(self.initial(0)))

    def initial(self, seed: int) -> Vector:
        """As its author left them, for any seed."""
        return vector_of({name: self._loaded.tensors[name] for name in self._program.learnt})

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised columns, float32 (n, columns), or images, float32 (n, channels, height, width)."""
        standardiser = Standardiser.from_sums(sums)
        if isinstance(examples, Table):
            return standardiser.transform(examples)
        return standardiser.transform_images(of_kind(ImageSet, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as other families are. Activations: what a dense last layer takes, or the logits.

        Raises ProgramError (ProgramEnded, NotConfined, ProgramFailed) too.
        """
        self.require(parameters, inputs)
        if not is_elsewhere():
            logits, activations = self.results(parameters, inputs)
        else:
            size = self._at_once * max(1, INPUTS_AT_ONCE // (self._at_once * math.prod(self.input_shape)))
            parts = [inputs[start : start + size] for start in range(0, len(inputs), size)] or [inputs]
            found = [self._computed_elsewhere(parameters, part) for part in parts]
            logits, activations = (np.concatenate([one[name] for one in found]) for name in ("logits", "activations"))
        probabilities = probabilities_of(logits)
        require_finite("activations", activations)
        return Evaluation(probabilities, activations)

    def results(self, parameters: Vector, inputs: Inputs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Logits (n, outputs) and activations (n, width), by this process."""
        torch.set_num_threads(self.threads)
        module, features = self.module(parameters).double().eval(), self._program.features
        logits, activations = [], []
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(inputs), self._at_once):
                found = module.computed(part.double(), kept=features)
                logits.append(found[-1].numpy())
                activations.append(logits[-1] if features is None else found[features].numpy())
        return np.concatenate(logits), np.concatenate(activations)

    def _computed_elsewhere(self, parameters: Vector, inputs: Inputs) -> dict[str, NDArray[Any]]:
        shapes = self._of_row.shapes
        width = (shapes[-1 if self._program.features is None else self._program.features] or ())[1:]
        wanted = {
            "logits": ((len(inputs), self._program.outputs), "float64"),
            "activations": ((len(inputs), *width), "float64"),
        }
        given = {"parameters": parameters, "inputs": inputs}
        memory = self.memory(self._at_once, *given.values())
        return self.elsewhere(Work("evaluate", given, wanted, memory, self.window))

    def memory(self, rows: int, *arrays: NDArray[Any]) -> int:
        """Bytes that a process may take for steps of `rows` rows, with the arrays that it is given."""
        weights = sum(one.nbytes for one in self._loaded.tensors.values())
        given = sum(one.nbytes for one in arrays)
        return OF_VALUES * rows * self._of_row.values + OF_WEIGHTS * weights + OF_ARRAYS * given

    def elsewhere(self, work: Work, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
        """As `programs.confined.computed`."""
        return computed(self._spec, self._data, work, progress)

    def module(self, parameters: Vector) -> Interpreter:
        self.require(parameters)
        tensors = {name: torch.from_numpy(values.copy()) for name, values in self._loaded.tensors.items()}
        module = Interpreter(self._program, tensors)
        load(module, parameters)
        return module
