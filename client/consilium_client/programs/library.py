"""The programs that this process has read, each once, by the hashes that its task names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.model_specs import Data, ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from consilium_client.models.weights import parse_tensors
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.program import Program, malformed, parse_program

Key = tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """A program's two files: its graph, canonical JSON, and its weights, safetensors."""

    graph: bytes
    weights: bytes


@dataclass(frozen=True)
class Loaded:
    """`tensors`: all of the program's, with their starting values."""

    program: Program
    tensors: Mapping[str, NDArray[Any]]


_SOURCES: Final[dict[Key, Callable[[], Files]]] = {}
_LOADED: Final[dict[Key, Loaded]] = {}


def offer(store: ArtifactStore, spec: TaskSpec) -> None:
    """Names the store that has the task's program, if its model is one. It is read at its first use."""
    model = spec.model
    if isinstance(model, ProgramSpec):
        _SOURCES[_key(model)] = lambda: files_of(store, model)


def keep(files: Files, spec: ProgramSpec) -> None:
    """Reads a program from its files. Raises ProgramError (ProgramMissing) unless they have the hashes of `spec`."""
    weights = files.weights
    parts = [weights[at : at + MOST_FILE_BYTES] for at in range(0, len(weights), MOST_FILE_BYTES)]
    if _key(spec) != tuple(keccak(one).hex() for one in (files.graph, *parts)):
        raise ProgramError("ProgramMissing", program=spec.program)
    _SOURCES[_key(spec)] = lambda: files


def kept(spec: ProgramSpec) -> Files:
    """The files of a program that `loaded` gives. Raises ProgramError (ProgramMissing), and as `files_of` does."""
    if _key(spec) not in _SOURCES:
        raise ProgramError("ProgramMissing", program=spec.program)
    return _SOURCES[_key(spec)]()


def files_of(store: ArtifactStore, spec: ProgramSpec) -> Files:
    """Raises ArtifactMissing, ArtifactCorrupt."""
    graph, *parts = map(store.get_file, spec.digests)
    return Files(graph, b"".join(parts))


def loaded(spec: ProgramSpec, data: Data) -> Loaded:
    """Raises ProgramError (ProgramMissing, and as `parse_program` does), ModelError (WeightsUnusable), and as
    `files_of` does.
    """
    key = _key(spec)
    if key not in _LOADED:
        _LOADED[key] = _read(kept(spec), spec, data)
    found = _LOADED[key]
    _require_stated(found.program, spec, data)
    return found


def _read(files: Files, spec: ProgramSpec, data: Data) -> Loaded:
    program = parse_program(files.graph)
    _require_stated(program, spec, data)
    wanted = {**{name: (shape, "float32") for name, shape in program.learnt.items()}, **program.frozen}
    tensors = parse_tensors(files.weights, wanted)
    for name in program.learnt:
        if not np.isfinite(tensors[name]).all():
            raise malformed(f"the tensor {name} has values that are not finite")
    return Loaded(program, tensors)


def _require_stated(program: Program, spec: ProgramSpec, data: Data) -> None:
    if list(program.learnt.items()) != list(spec.tensors(data).items()) or list(program.moving) != spec.moving:
        raise malformed("its trained tensors are not those of the task file, in their order")


def _key(spec: ProgramSpec) -> Key:
    return spec.program, *spec.weights
