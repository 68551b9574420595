"""A model's files: named tensors, their task, their origin, and the checks of every round.

| file | content |
|---|---|
| `model.safetensors` | the parameters, float32, by the names of the family's torch module; without local tensors |
| `model.json` | `ModelFile`: task file, statistics, inputs, mapping, and the SHA-256 of the other files |
| `proof.json` | `Proof`: round by round the published sums, their transaction, and the result of each check |
| `model-card.md` | the same for people |
| `program.json`, `program.safetensors` | the program and its author's weights, if the model is a program |
| `program-frozen.safetensors` | its frozen tensors, if it has any |
| `program-tokenizer.json` | its tokenizer, if it reads texts |
| `report.json`, `report.svg` | an evaluation and its picture, if `add_evaluation` wrote them (`evaluation_file`) |
| `model.onnx` | the same model as ONNX, if `add_onnx` wrote it (`onnx_file`) |
| `model-int8.onnx` | the same with weights of 8 bits, if `add_int8` wrote it (`onnx_int8`) |

No file contains code, and no file is read with pickle.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from consilium_chain.errors import SpecInvalid
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_client.data.mapping import Mapping
from consilium_client.errors import DataError, ModelError
from consilium_client.models import Vector
from consilium_client.models.objectives import objective_of
from consilium_client.models.objectives.base import Answer
from consilium_client.models.weights import Tensors, parse_model_tensors, vector_of
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.library import Files, keep
from consilium_core.visible_text import Name
from consilium_verify.report import Report, derived
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_serializer
from safetensors.numpy import save

from consilium_operators.errors import OperatorError
from consilium_operators.measuring import Measured
from consilium_operators.model_inputs import Input, model_inputs

MODEL, CARD, PROOF, INDEX = "model.safetensors", "model-card.md", "proof.json", "model.json"
PROGRAM, PROGRAM_WEIGHTS = "program.json", "program.safetensors"
ONNX, ONNX_INT8 = "model.onnx", "model-int8.onnx"
REPORT, REPORT_PICTURE, REPORT_PAGE = "report.json", "report.svg", "report.html"
PROGRAM_FROZEN, PROGRAM_TOKENIZER = "program-frozen.safetensors", "program-tokenizer.json"
OWN = (MODEL, CARD, PROOF, PROGRAM, PROGRAM_WEIGHTS, PROGRAM_FROZEN, PROGRAM_TOKENIZER)
ADDED = (ONNX, ONNX_INT8, REPORT, REPORT_PICTURE, REPORT_PAGE)
FILES = frozenset({INDEX, *OWN, *ADDED})
MOST_BYTES = 1 << 32  # of one file

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelFile(_Plain):
    """`task_file`: its text, whose keccak256 is `spec_hash`. `round`: the last one whose sums are in the model.

    `verified`: no check of any round failed. `sha256`: of the file's parameters, their bytes little-endian, as
    `consilium verify` prints it. `classes`, `answers` and `inputs` follow from the task file and the statistics.
    `mapping`: of the files that the model's users have, unless they name another. `measured`: if its author has
    held-out rows. `files`: the SHA-256 of each.
    """

    format: Literal["consilium-model-1"] = "consilium-model-1"
    task: int
    name: Name
    chain_id: int
    contract: str
    spec_hash: Digest
    task_file: str
    round: int
    rounds: int
    verified: bool
    sha256: Digest
    statistics: tuple[FiniteFloat, ...]
    classes: tuple[str, ...]
    answers: tuple[Answer, ...] | None = None  # earlier files have none
    inputs: tuple[Input, ...]
    mapping: Mapping | None = None
    measured: Measured | None = None
    files: dict[str, Digest]

    @property
    def written(self) -> bytes:
        """The file's bytes."""
        return self.model_dump_json(indent=2, exclude_none=True).encode()

    @field_serializer("mapping")
    def _as_written(self, mapping: Mapping | None) -> dict[str, Any] | None:
        """Without defaults: an absent column may have no other settings."""
        return None if mapping is None else mapping.model_dump(mode="json", exclude_unset=True)


class CohortProof(_Plain):
    """A cohort's published sum: the weights of its hospitals, and the versioned hash of each blob."""

    cohort: int
    hospitals: dict[str, int]
    versioned_hashes: tuple[str, ...]
    flipped: bool
    accepted: bool
    median: int | None


class RoundProof(_Plain):
    """`report`: of the round's checks, as `consilium verify --json` prints it."""

    round: int
    block: int
    transaction: str
    cohorts: tuple[CohortProof, ...]
    report: Report


class Proof(_Plain):
    task: int
    operator: str
    chain_id: int
    contract: str
    spec_hash: Digest
    model_sha256: Digest
    rounds: tuple[RoundProof, ...]


@dataclass(frozen=True)
class SavedModel:
    """A folder's content, all of it checked. `tensors`: float32, by name. `sums`: float64 (statistics_values,).
    `report`: an evaluation that was added.
    """

    index: ModelFile
    spec: TaskSpec
    tensors: Tensors
    sums: NDArray[np.float64]
    card: str
    report: EvaluationReport | None = None

    @property
    def parameters(self) -> Vector:
        """All of the model, float32 (p,). Raises OperatorError (LocalTensorsMissing)."""
        if missing := [name for name in self.spec.training.local if name not in self.tensors]:
            raise OperatorError("LocalTensorsMissing", names=", ".join(missing))
        return vector_of({name: self.tensors[name] for name in self.spec.model.tensors(self.spec.data)})

    def with_local(self, path: Path) -> SavedModel:
        """The model with a hospital's own local tensors, of a file in its home. Raises ModelFolderInvalid."""
        own = _tensors(path, _read(path), self.spec, self.spec.training.local)
        return replace(self, tensors={**self.tensors, **own})


def write_model(
    folder: Path, index: ModelFile, tensors: Tensors, card: str, proof: Proof, program: Files | None = None
) -> None:
    """Writes all files or none: they have another name until all are complete. Fills in `index.files`. `program`: its
    files, if the model is one.

    An earlier model's files are replaced one by one, so that readers always find each.
    """
    contents = {MODEL: save(dict(tensors)), CARD: card.encode(), PROOF: proof.model_dump_json(indent=2).encode()}
    if program is not None:
        contents |= {PROGRAM: program.graph, PROGRAM_WEIGHTS: program.weights}
        contents |= {PROGRAM_FROZEN: program.frozen} if program.frozen else {}
        contents |= {PROGRAM_TOKENIZER: program.tokenizer} if program.tokenizer else {}
    files = {name: hashlib.sha256(raw).hexdigest() for name, raw in contents.items()}
    index = ModelFile.model_validate(index.model_dump() | {"files": files})
    contents[INDEX] = index.written
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        draft = Path(scratch) / folder.name
        draft.mkdir()
        for name, raw in contents.items():
            (draft / name).write_bytes(raw)
        if folder.exists():
            for name in ADDED:  # to the earlier model
                (folder / name).unlink(missing_ok=True)
            for name in contents:
                (draft / name).replace(folder / name)
        else:
            draft.rename(folder)


def read_model(folder: Path) -> SavedModel:
    """Raises ModelFolderInvalid."""
    try:
        index = ModelFile.model_validate_json(_read(folder / INDEX))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or INDEX
        raise _invalid(folder / INDEX, f"{where}: {fault['msg']}") from None
    contents = {}
    for name in (MODEL, CARD, PROOF, *(set(ADDED) & index.files.keys())):
        contents[name] = _read(folder / name)
        if hashlib.sha256(contents[name]).hexdigest() != index.files.get(name):
            raise _invalid(folder / name, f"its SHA-256 is not the one in {INDEX}: it was changed")
    spec = _spec(folder, index)
    if isinstance(spec.model, ProgramSpec):
        try:
            frozen = _read(folder / PROGRAM_FROZEN) if spec.model.frozen else b""
            tokenizer = _read(folder / PROGRAM_TOKENIZER) if spec.model.tokenizer else b""
            keep(Files(_read(folder / PROGRAM), _read(folder / PROGRAM_WEIGHTS), frozen, tokenizer), spec.model)
        except ProgramError as error:
            raise _invalid(folder / PROGRAM, "its program is not the one of its task file") from error
    if len(index.statistics) != spec.data.statistics_values:
        raise _invalid(
            folder / INDEX, f"it has {len(index.statistics)} statistics, but the task has {spec.data.statistics_values}"
        )
    _require_derived(folder, index, spec)
    names = [name for name in spec.model.tensors(spec.data) if name not in spec.training.local]
    tensors = _tensors(folder / MODEL, contents[MODEL], spec, names)
    if derived("", vector_of(tensors)).sha256 != index.sha256:
        raise _invalid(folder / MODEL, f"the digest of its parameters is not the one in {INDEX}")
    report = _report(folder / REPORT, contents[REPORT], index) if REPORT in contents else None
    return SavedModel(index, spec, tensors, np.array(index.statistics), contents[CARD].decode(), report)


def add_files(folder: Path, added: dict[str, bytes]) -> None:
    """Writes more files into a model's folder, or others instead of its own. Raises ModelFolderInvalid."""
    index = read_model(folder).index
    files = {**index.files, **{name: hashlib.sha256(raw).hexdigest() for name, raw in added.items()}}
    for name, raw in (*added.items(), (INDEX, index.model_copy(update={"files": files}).written)):
        draft = folder / f".{name}.new"  # a reader finds the old file or the new one
        draft.write_bytes(raw)
        draft.replace(folder / name)


def _report(path: Path, raw: bytes, index: ModelFile) -> EvaluationReport:
    try:
        found = EvaluationReport.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(path, "it is not a report of this program") from error
    if (found.task, found.round, found.sha256) != (index.task, index.round, index.sha256):
        raise _invalid(path, "it is a report of another model")
    return found


def _invalid(path: Path, why: str) -> OperatorError:
    return OperatorError("ModelFolderInvalid", path=path, why=why)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _invalid(path, f"it has more than {MOST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise _invalid(path, f"it cannot be read: {error.strerror}") from error


def _spec(folder: Path, index: ModelFile) -> TaskSpec:
    raw = index.task_file.encode()
    if spec_hash(raw).hex() != index.spec_hash:
        raise _invalid(folder / INDEX, "its task file does not hash to its spec_hash")
    try:
        return parse_task_spec(raw)
    except SpecInvalid as error:
        raise _invalid(folder / INDEX, f"its task file is invalid: {error}") from error


def _require_derived(folder: Path, index: ModelFile, spec: TaskSpec) -> None:
    follows = (
        tuple(spec.data.classes), index.answers and objective_of(spec.data).answers,
        model_inputs(spec.data, np.array(index.statistics)),
    )  # fmt: skip
    if (index.classes, index.answers, index.inputs) != follows:
        raise _invalid(folder / INDEX, "its classes or inputs do not follow from its task file and statistics")
    if index.mapping is not None:
        if index.mapping.query is not None:
            raise _invalid(folder / INDEX, "its mapping has a query, which only the owner of the data may write")
        try:
            index.mapping.require_fits(spec.data)
        except DataError as error:
            raise _invalid(folder / INDEX, str(error)) from error


def _tensors(path: Path, raw: bytes, spec: TaskSpec, names: Iterable[str]) -> Tensors:
    try:
        return parse_model_tensors(raw, spec, names)
    except ModelError as error:
        raise _invalid(path, error.values["why"]) from error
