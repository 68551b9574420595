"""Files of weights and exported programs in the artifact store, for tasks that start from them or train them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.model_specs import program_statement
from consilium_chain.tasks.start_specs import MOST_PARTS, FileStart
from consilium_client.programs.program import parse_program
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from consilium_operators.errors import OperatorError

PROGRAM, WEIGHTS, FROZEN = "program.json", "weights.safetensors", "frozen.safetensors"
TOKENIZER = "tokenizer.json"


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
    tokenizer = _stored(store, path / TOKENIZER) if (path / TOKENIZER).is_file() else []
    padding = _padding(path / TOKENIZER) if tokenizer else 0
    return program_section(raw, _stored(store, path / WEIGHTS), frozen, author, tokenizer, padding)


def _padding(path: Path) -> int:
    """The token that fills texts up, as `export` wrote it. Raises ProgramFolderInvalid."""
    try:
        return int(json.loads(path.read_bytes())["padding"]["pad_id"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise OperatorError("ProgramFolderInvalid", path=path.parent, missing=f"a padding in {path.name}") from error


def _require_files(folder: Path, *names: str) -> None:
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise OperatorError("ProgramFolderInvalid", path=folder, missing=" and ".join(missing))


def program_section(
    raw: bytes, weights: list[str], frozen: Sequence[str] = (), author: LocalAccount | None = None,
    tokenizer: Sequence[str] = (), padding: int = 0,
) -> str:  # fmt: skip
    """The section `[model]` of a program's file. `weights`, `frozen`, `tokenizer`: the hashes of its files' parts.
    `author` signs. `padding`: the token that fills texts up.

    Raises ProgramError.
    """
    program = parse_program(raw)
    head: dict[str, Any] = {
        "name": "program",
        "program": keccak(raw).hex(),
        "weights": weights,
        "moving": list(program.moving),
    }
    head |= {"frozen": list(frozen)} if frozen else {}
    head |= {"tokenizer": list(tokenizer), "padding": padding} if tokenizer else {}
    if author is not None:
        statement = program_statement(keccak(raw).hex(), weights, frozen, tokenizer)
        head["signature"] = author.sign_message(statement).signature.hex()
    shapes = [f"{json.dumps(name)} = {list(shape)}\n" for name, shape in program.learnt.items()]  # a line each
    return tomli_w.dumps({"model": head}) + "\n[model.shapes]\n" + "".join(shapes)


def _stored(store: ArtifactStore, file: Path) -> list[str]:
    size, most = file.stat().st_size, MOST_PARTS * MOST_FILE_BYTES
    if not 0 < size <= most:
        raise OperatorError("WeightsTooLong", path=file, size=size, most=most)
    with file.open("rb") as source:
        return [store.put_file(part).hex() for part in iter(lambda: source.read(MOST_FILE_BYTES), b"")]
