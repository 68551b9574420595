"""Files of weights and exported programs in the artifact store, for tasks that start from them or train them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import tomli_w
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.model_specs import program_statement
from consilium_chain.tasks.start_specs import MOST_PARTS, FileStart
from consilium_client.programs.program import parse_program
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from consilium_operators.errors import OperatorError

PROGRAM, WEIGHTS, FROZEN = "program.json", "weights.safetensors", "frozen.safetensors"


def store_weights(store: ArtifactStore, path: Path, author: LocalAccount | None = None) -> str:
    """Stores a file of weights in parts, or the folder of a program; returns the section `[start]`, or `[model]`.

    `author`: signs the program. Raises OperatorError (WeightsTooLong, ProgramFolderInvalid), ProgramError, OSError.
    """
    if not path.is_dir() and author is None:
        return tomli_w.dumps({"start": FileStart(name="file", parts=_stored(store, path)).model_dump()})
    _require_files(path, PROGRAM, WEIGHTS)
    raw = (path / PROGRAM).read_bytes()
    has_frozen = bool(parse_program(raw).frozen)
    _require_files(path, *([FROZEN] if has_frozen else []))
    store.put_file(raw)
    frozen = _stored(store, path / FROZEN) if has_frozen else []
    return program_section(raw, _stored(store, path / WEIGHTS), frozen, author)


def _require_files(folder: Path, *names: str) -> None:
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise OperatorError("ProgramFolderInvalid", path=folder, missing=" and ".join(missing))


def program_section(
    raw: bytes, weights: list[str], frozen: Sequence[str] = (), author: LocalAccount | None = None
) -> str:
    """The section `[model]` of a program's file. `weights`, `frozen`: the hashes of its files' parts. `author` signs.

    Raises ProgramError.
    """
    program = parse_program(raw)
    head = {"name": "program", "program": keccak(raw).hex(), "weights": weights, "moving": list(program.moving)}
    head |= {"frozen": list(frozen)} if frozen else {}
    if author is not None:
        head["signature"] = author.sign_message(program_statement(keccak(raw).hex(), weights, frozen)).signature.hex()
    shapes = [f"{json.dumps(name)} = {list(shape)}\n" for name, shape in program.learnt.items()]  # a line each
    return tomli_w.dumps({"model": head}) + "\n[model.shapes]\n" + "".join(shapes)


def _stored(store: ArtifactStore, file: Path) -> list[str]:
    size, most = file.stat().st_size, MOST_PARTS * MOST_FILE_BYTES
    if not 0 < size <= most:
        raise OperatorError("WeightsTooLong", path=file, size=size, most=most)
    with file.open("rb") as source:
        return [store.put_file(part).hex() for part in iter(lambda: source.read(MOST_FILE_BYTES), b"")]
