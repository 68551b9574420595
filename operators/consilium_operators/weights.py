"""Files of weights and exported programs in the artifact store, for tasks that start from them or train them."""

from __future__ import annotations

import json
from pathlib import Path

import tomli_w
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.start_specs import MOST_PARTS, FileStart
from consilium_client.programs.program import parse_program
from eth_utils.crypto import keccak

from consilium_operators.errors import OperatorError

PROGRAM, WEIGHTS = "program.json", "weights.safetensors"


def store_weights(store: ArtifactStore, path: Path) -> str:
    """Stores a file of weights in parts, or the folder of a program; returns the section `[start]`, or `[model]`.

    Raises OperatorError (WeightsTooLong, ProgramFolderInvalid), ProgramError, OSError.
    """
    if not path.is_dir():
        return tomli_w.dumps({"start": FileStart(name="file", parts=_stored(store, path)).model_dump()})
    if missing := [name for name in (PROGRAM, WEIGHTS) if not (path / name).is_file()]:
        raise OperatorError("ProgramFolderInvalid", path=path, missing=" and ".join(missing))
    raw = (path / PROGRAM).read_bytes()
    parse_program(raw)
    store.put_file(raw)
    return program_section(raw, _stored(store, path / WEIGHTS))


def program_section(raw: bytes, weights: list[str]) -> str:
    """The section `[model]` of a program's file. `weights`: the hashes of its weights' parts. Raises ProgramError."""
    program = parse_program(raw)
    head = {"name": "program", "program": keccak(raw).hex(), "weights": weights, "moving": list(program.moving)}
    shapes = [f"{json.dumps(name)} = {list(shape)}\n" for name, shape in program.learnt.items()]  # a line each
    return tomli_w.dumps({"model": head}) + "\n[model.shapes]\n" + "".join(shapes)


def _stored(store: ArtifactStore, file: Path) -> list[str]:
    size, most = file.stat().st_size, MOST_PARTS * MOST_FILE_BYTES
    if not 0 < size <= most:
        raise OperatorError("WeightsTooLong", path=file, size=size, most=most)
    with file.open("rb") as source:
        return [store.put_file(part).hex() for part in iter(lambda: source.read(MOST_FILE_BYTES), b"")]
