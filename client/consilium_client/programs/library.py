"""The programs that this process has read, each once, by the hashes that its task names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.family_spec import Data
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from eth_utils.crypto import keccak
from numpy.typing import NDArray

from consilium_client.models.weights import parse_tensors
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.program import Program, malformed, parse_program

Key = tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """A program's files: its graph, canonical JSON; its weights, and its frozen tensors, if it has any, safetensors;
    its tokenizer, if it reads texts.
    """

    graph: bytes
    weights: bytes
    frozen: bytes = b""
    tokenizer: bytes = b""

    @property
    def digests(self) -> list[bytes]:
        """keccak256 of the graph, and of each 8 MiB of the others."""
        parts = [
            raw[at : at + MOST_FILE_BYTES]
            for raw in (self.weights, self.frozen, self.tokenizer) for at in range(0, len(raw), MOST_FILE_BYTES)
        ]  # fmt: skip
        return [keccak(one) for one in (self.graph, *parts)]


@dataclass(frozen=True)
class Loaded:
    """`tensors`: all of the program's, with their starting values. `tokenizer`: its file."""

    program: Program
    tensors: Mapping[str, NDArray[Any]]
    tokenizer: bytes = b""


_SOURCES: Final[dict[Key, Callable[[], Files]]] = {}
_LOADED: Final[dict[Key, Loaded]] = {}


def offer(store: ArtifactStore, spec: TaskSpec) -> None:
    """Names the store that has the task's program, if its model is one. It is read at its first use."""
    model = spec.model
    if isinstance(model, ProgramSpec):
        _SOURCES[_key(model)] = lambda: files_of(store, model)


def keep(files: Files, spec: ProgramSpec) -> None:
    """Reads a program from its files. Raises ProgramError (ProgramMissing) unless they have the hashes of `spec`."""
    if files.digests != spec.digests:
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
    files, start = list[bytes](), 0
    for own in (spec.weights, spec.frozen, spec.tokenizer):
        files.append(b"".join(parts[start : start + len(own)]))
        start += len(own)
    return Files(graph, *files)


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
    tensors = parse_tensors(files.weights, {name: (shape, "float32") for name, shape in program.learnt.items()})
    for name in program.learnt:
        if not np.isfinite(tensors[name]).all():
            raise malformed(f"the tensor {name} has values that are not finite")
    if bool(program.frozen) != bool(files.frozen):
        raise malformed("its task file and its graph differ on whether it has frozen tensors")
    frozen = parse_tensors(files.frozen, program.frozen) if program.frozen else {}
    return Loaded(program, tensors | frozen, files.tokenizer)


def _require_stated(program: Program, spec: ProgramSpec, data: Data) -> None:
    if list(program.learnt.items()) != list(spec.tensors(data).items()) or list(program.moving) != spec.moving:
        raise malformed("its trained tensors are not those of the task file, in their order")


def _key(spec: ProgramSpec) -> Key:
    return spec.program, *spec.weights, "frozen", *spec.frozen, "tokenizer", *spec.tokenizer
