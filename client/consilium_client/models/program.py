"""A model that a task brings as a program: nothing of its author's code runs here."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import CorpusSchema, DataSchema, TableSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, Labels
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet
from consilium_client.errors import ModelError
from consilium_client.models import Evaluation, Inputs, Vector, next_token, require_finite
from consilium_client.models.computed import Computed
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import load
from consilium_client.models.weights import vector_of
from consilium_client.programs.confined import Progress, Work, computed, is_elsewhere
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.library import loaded
from consilium_client.programs.measuring import measured
from consilium_client.programs.row_gradients import TRIED, require_apart
from consilium_client.programs.tokenizing import packed, require_library, tokens_of

EVALUATED_AT_ONCE = 256  # rows
INPUTS_AT_ONCE = 1 << 26  # values, in one call of the process that computes
OF_VALUES = 32  # bytes for each value of a step's results: with gradients, and a convolution's own room
OF_WEIGHTS, OF_ARRAYS = 16, 4  # bytes for each byte of weights (gradients, moments, copies), and of what is given
TEXTS_AT_ONCE = 4_096  # in one call
OF_TOKENIZER, OF_TEXT = 64, 256  # bytes for each byte of a tokenizer's file, and of texts
VALUES_AT_ONCE = 1 << 27  # of all nodes' results: a gigabyte
HEAVY = 10_000_000  # operations of a row, from which on more threads are faster


class OfProgram(Computed):
    """Computed by a process of its own (`programs.confined`), but within `computing_here`, where `module` is for."""

    def __init__(self, spec: ProgramSpec, data: DataSchema) -> None:
        """Raises ShapeMismatch, and as `loaded` and `measured` do."""
        self._spec, self._data = spec, data
        self._loaded = loaded(spec, data)
        self._program = self._loaded.program
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape = self._program.shape
        self._of_row = measured(self._program, 1, training=False)
        self._require_fits()
        self._at_once = max(1, min(EVALUATED_AT_ONCE, VALUES_AT_ONCE // self._of_row.values))
        measured(self._program, self._at_once, training=False)
        if self._of_row.operations > HEAVY:
            self.threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0))

    def _require_fits(self) -> None:
        data, program = self._data, self._program
        shape: tuple[int, ...]
        if isinstance(data, TableSchema):
            type_, shape = "float32", (data.columns,)
        elif isinstance(data, ImageSchema):
            type_, shape = "float32", (data.channels, data.height, data.width)
        elif isinstance(data, SeriesSchema):
            type_, shape = "float32", (data.channels, data.steps)
        else:  # of any number of tokens
            type_, shape = "int64", program.shape[:1] or (1,)
        if program.shape != shape or program.type_ != type_:
            found = (program.type_, *program.shape)
            raise ModelError("ShapeMismatch", what="program's inputs", expected=(type_, *shape), found=found)
        logits = self._of_row.shapes[-1] or ()
        pixels = math.prod(shape[1:]) if isinstance(data.asked, Segmentation) else 1
        wanted = (*shape, program.outputs) if self._foretells else (data.outputs * pixels,)
        if logits[1:] != wanted:
            raise ModelError("ShapeMismatch", what="logits", expected=wanted, found=logits[1:])

    @property
    def _foretells(self) -> bool:
        """True of a language model: each token has logits, for the next one."""
        return isinstance(self._data, CorpusSchema)

    def require_installed(self) -> None:
        if self._spec.tokenizer:
            require_library()

    def require_apart(self) -> None:
        if is_elsewhere():
            self.elsewhere(Work("require-apart", {}, {}, self.memory(TRIED), self.window))
        else:
            require_apart(self.module(self.initial(0)))

    def initial(self, seed: int) -> Vector:
        """As its author left them, for any seed."""
        return vector_of({name: self._loaded.tensors[name] for name in self._program.learnt})

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised columns, float32 (n, columns), images, float32 (n, channels, height, width), series, float32 (n,
        channels, steps), or tokens, int64 (n, tokens). Raises ProgramError (TokenizerUnusable, ProgramEnded,
        NotConfined) too.
        """
        if isinstance(examples, TextSet):
            return self._tokens_elsewhere(examples.texts) if is_elsewhere() else self.tokens(examples.texts)
        standardiser = Standardiser.from_sums(sums)
        if isinstance(examples, Table):
            return standardiser.transform(examples)
        if isinstance(examples, Stays):
            return standardiser.transform_stays(examples)
        return standardiser.transform_images(of_kind(ImageSet, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as other families are. Activations: what a dense last layer takes, or the logits.

        Raises ProgramError (ProgramEnded, NotConfined, ProgramFailed) too.
        """
        self.require(parameters, inputs)
        if not is_elsewhere():
            answers, activations = self.results(parameters, inputs)
        else:
            size = self._at_once * max(1, INPUTS_AT_ONCE // (self._at_once * math.prod(self.input_shape)))
            parts = [inputs[start : start + size] for start in range(0, len(inputs), size)] or [inputs]
            found = [self._computed_elsewhere(parameters, part) for part in parts]
            answers, activations = (np.concatenate([one[name] for one in found]) for name in ("answers", "activations"))
        require_finite("activations", activations)
        if not self._foretells:
            return self.evaluation(answers, activations)
        require_finite("predictions", answers)
        asked = next_token.targets_of(inputs, self._spec.padding) != next_token.NONE
        return Evaluation(answers[asked], activations, np.nonzero(asked)[0])

    def results(self, parameters: Vector, inputs: Inputs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Answers and activations (n, width), by this process. Answers are logits (n, outputs), or of a language model
        `next_token.likelihoods` (n, tokens, 2); its activations are the tokens' mean.
        """
        torch.set_num_threads(self.threads)
        module, features = self.module(parameters).double().eval(), self._program.features
        answers, activations = [], []
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(inputs), self._at_once):
                found = module.computed(part if self._program.type_ == "int64" else part.double(), kept=features)
                logits, wide = found[-1], found[-1 if features is None else features]
                if self._foretells:
                    targets = torch.from_numpy(next_token.targets_of(part.numpy(), self._spec.padding))
                    logits, wide = next_token.likelihoods(logits, targets), wide.mean(dim=1)
                answers.append(logits.numpy())
                activations.append(wide.numpy())
        return np.concatenate(answers), np.concatenate(activations)

    def targets(self, inputs: Inputs, labels: Labels) -> NDArray[Any]:
        """A language model's are next tokens, (n, tokens)."""
        return next_token.targets_of(inputs, self._spec.padding) if self._foretells else super().targets(inputs, labels)

    def tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """int64 (n, tokens), by this process. Raises ProgramError (TokenizerUnusable)."""
        return tokens_of(self._loaded.tokenizer, texts, self._program.shape[0], self._spec.padding)

    def _tokens_elsewhere(self, texts: Sequence[str]) -> NDArray[np.int64]:
        length, found = self._program.shape[0], []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = texts[start : start + TEXTS_AT_ONCE]
            given, wanted = packed(part), {"tokens": ((len(part), length), "int64")}
            memory = OF_TOKENIZER * len(self._loaded.tokenizer) + OF_TEXT * given["texts"].nbytes
            found.append(self.elsewhere(Work("tokenize", given, wanted, memory, self.window))["tokens"])
        return np.concatenate(found) if found else np.empty((0, length), np.int64)

    def _computed_elsewhere(self, parameters: Vector, inputs: Inputs) -> dict[str, NDArray[Any]]:
        shapes = self._of_row.shapes
        width = (shapes[-1 if self._program.features is None else self._program.features] or ())[1:]
        answers = (*self._program.shape, 2) if self._foretells else (self._program.outputs,)
        width = width[-1:] if self._foretells else width
        wanted = {
            "answers": ((len(inputs), *answers), "float64"),
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
