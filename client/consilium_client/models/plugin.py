"""A model whose code is an installed plug-in, which the process of `plugins.computing` imports, and this one never."""

from __future__ import annotations

import json
import math
import os
from typing import Any, Final

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.models import Evaluation, Inputs, Vector, require_finite
from consilium_client.models.computed import Computed
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import load
from consilium_client.plugins import building
from consilium_client.plugins.building import PluginModule
from consilium_client.plugins.installed import verified
from consilium_client.programs.confined import Progress, Work, computed, is_elsewhere

EVALUATED_AT_ONCE: Final = 256  # rows
INPUTS_AT_ONCE: Final = 1 << 26  # values, in one call of the process
ROOM: Final = 6 << 30  # bytes for its libraries and results, whose sizes only it knows
OF_WEIGHTS, OF_ARRAYS = 16, 4  # bytes for each byte of weights (gradients, moments, copies), and of what is given
HEAVY: Final = 100_000  # parameters, from which on more threads are faster


def _cores() -> int:
    """Those that this process may use, where the system says it; an auditor's may not."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OfPlugin(Computed):
    """Activations are its logits: no other layer of it is known."""

    def __init__(self, spec: PluginSpec, data: TableSchema | ImageSchema) -> None:
        self._spec, self._data = spec, data
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape = building.input_shape(data)
        if self.parameters > HEAVY:
            self.threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or _cores()

    def require_installed(self) -> None:
        """Raises as `plugins.installed.verified` does."""
        verified(self._spec)

    def initial(self, seed: int) -> Vector:
        """As the plug-in draws them, where it is installed. Raises PluginError, ProgramError (ProgramEnded)."""
        wanted = {"found": ((self.parameters,), "float32")}
        found: Vector = self._ask("start", {}, wanted, {"seed": seed})["found"]
        require_finite("starting parameters", found)
        return found

    def described(self) -> dict[str, Any]:
        """`shapes` and `moving`, as the plug-in has them. Raises PluginError, ProgramError (ProgramEnded), ValueError
        if its process answers otherwise.
        """
        raw = self._ask("describe", {}, {"found": ((building.DESCRIBED,), "uint8")}, {})["found"]
        found = json.loads(raw.tobytes().rstrip(b"\0"))
        return of_kind(dict, found)

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised columns, float32 (n, columns), or images, float32 (n, channels, height, width)."""
        standardiser = Standardiser.from_sums(sums)
        if isinstance(examples, Table):
            return standardiser.transform(examples)
        return standardiser.transform_images(of_kind(ImageSet, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as other families are. Raises PluginError, ProgramError (ProgramEnded) too."""
        self.require(parameters, inputs)
        if not is_elsewhere():
            logits = self.results(parameters, inputs)
        else:
            size = EVALUATED_AT_ONCE * max(1, INPUTS_AT_ONCE // (EVALUATED_AT_ONCE * math.prod(self.input_shape)))
            parts = [inputs[start : start + size] for start in range(0, len(inputs), size)] or [inputs]
            logits = np.concatenate([self._results_elsewhere(parameters, part) for part in parts])
        return self.evaluation(logits, logits)

    def results(self, parameters: Vector, inputs: Inputs) -> NDArray[np.float64]:
        """Logits (n, outputs), by this process."""
        torch.set_num_threads(self.threads)
        module = self.module(parameters).double().eval()
        with torch.no_grad():
            parts = [module(part.double()) for part in torch.split(torch.from_numpy(inputs), EVALUATED_AT_ONCE)]
        found: NDArray[np.float64] = torch.cat(parts).double().numpy()
        return found

    def _results_elsewhere(self, parameters: Vector, inputs: Inputs) -> NDArray[np.float64]:
        wanted = {"logits": ((len(inputs), self._data.outputs), "float64")}
        found: NDArray[np.float64] = self._ask("evaluate", {"parameters": parameters, "inputs": inputs}, wanted, {})[
            "logits"
        ]
        return found

    def _ask(
        self, kind: str, given: dict[str, NDArray[Any]], wanted: dict[str, Any], values: dict[str, Any]
    ) -> dict[str, NDArray[Any]]:
        values = values | {"model": self._spec.model_dump(mode="json")}
        memory = self.memory(EVALUATED_AT_ONCE, *given.values())
        return self.elsewhere(Work(kind, given, wanted, memory, self.window, values))

    def memory(self, rows: int, *arrays: NDArray[Any]) -> int:
        given = sum(one.nbytes for one in arrays)
        return ROOM + OF_WEIGHTS * 4 * self.parameters + OF_ARRAYS * given

    def elsewhere(self, work: Work, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
        return computed(self._spec, self._data, work, progress)

    def module(self, parameters: Vector) -> PluginModule:
        """Only in the process that computes it. Raises PluginError (PluginElsewhere) in others."""
        self.require(parameters)
        found = building.module(self._spec, self._data)
        load(found, parameters)
        return found
