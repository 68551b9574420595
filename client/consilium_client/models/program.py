"""A model that a task brings as a program: nothing of its author's code runs here."""

from __future__ import annotations

import os

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
from consilium_client.models import Evaluation, Inputs, Model, Vector, probabilities_of
from consilium_client.models.torch_parameters import load
from consilium_client.models.weights import vector_of
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.library import loaded
from consilium_client.programs.measuring import measured
from consilium_client.programs.row_gradients import require_apart

EVALUATED_AT_ONCE = 256  # rows
VALUES_AT_ONCE = 1 << 27  # of all nodes' results: a gigabyte
HEAVY = 10_000_000  # operations of a row, from which on more threads are faster


class OfProgram(Model):
    def __init__(self, spec: ProgramSpec, data: TableSchema | ImageSchema) -> None:
        """Raises ShapeMismatch, and as `loaded` and `measured` do."""
        self._loaded = loaded(spec, data)
        self._program = self._loaded.program
        self.parameters = spec.parameters(data)
        self.input_shape = self._program.shape
        if self._program.outputs != data.outputs:
            raise ModelError("ShapeMismatch", what="logits", expected=(data.outputs,), found=(self._program.outputs,))
        expected = (data.columns,) if isinstance(data, TableSchema) else (data.channels, data.height, data.width)
        if self._program.shape != expected or self._program.type_ != "float32":
            raise ModelError("ShapeMismatch", what="program's inputs", expected=expected, found=self._program.shape)
        of_row = measured(self._program, 1, training=False)
        self._at_once = max(1, min(EVALUATED_AT_ONCE, VALUES_AT_ONCE // of_row.values))
        measured(self._program, self._at_once, training=False)
        if of_row.operations > HEAVY:
            self.threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0))

    def require_apart(self) -> None:
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
        """In double precision, as other families are. Activations: what a dense last layer takes, or the logits."""
        self.require(parameters, inputs)
        torch.set_num_threads(self.threads)
        module, features = self.module(parameters).double().eval(), self._program.features
        logits, activations = [], []
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(inputs), self._at_once):
                found = module.computed(part.double(), kept=features)
                logits.append(found[-1].numpy())
                activations.append(logits[-1] if features is None else found[features].numpy())
        return Evaluation(probabilities_of(np.concatenate(logits)), np.concatenate(activations))

    def module(self, parameters: Vector) -> Interpreter:
        self.require(parameters)
        tensors = {name: torch.from_numpy(values.copy()) for name, values in self._loaded.tensors.items()}
        module = Interpreter(self._program, tensors)
        load(module, parameters)
        return module
