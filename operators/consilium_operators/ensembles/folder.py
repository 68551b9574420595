"""An ensemble's files. Each member's folder is as `download-model` wrote it, with all its checks.

| file | content |
|---|---|
| `ensemble.json` | `EnsembleFile`: number, chain, contract of parts; each member's task, gain, digest and folder |
| `task-7` | the model of task 7, one such folder for each member |
| `model.onnx` | all members and their weighted mean as one graph, unless it was left out (`onnx_graph`) |
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from consilium_chain.ledger.ensembles import ENSEMBLES, FEWEST_MEMBERS, MOST_MEMBERS, Ensemble, Member
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.strict_json import parse_json
from consilium_core.visible_text import shown
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import FILES, INDEX, ONNX, Digest, SavedModel, read_model
from consilium_operators.prediction import require_answers

ENSEMBLE: Final = "ensemble.json"
MOST_BYTES: Final = 1 << 16  # of `ensemble.json`
MOST_GRAPH: Final = 1 << 32
MOST_GAIN: Final = 1 << 96  # as the contract stores it
MOST_SHOWN: Final = 80  # characters of a value, in a message


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MemberFile(_Plain):
    """`gain`: what voters measured of the task, in millionths of its metric. `sha256`: of the model's parameters."""

    task: int = Field(ge=1, lt=ENSEMBLES)
    gain: int = Field(ge=1, lt=MOST_GAIN)
    sha256: Digest
    folder: str


class EnsembleFile(_Plain):
    """`contract`: of the parts. `onnx`: SHA-256 of `model.onnx`, if it was written."""

    format: Literal["consilium-ensemble-1"] = "consilium-ensemble-1"
    number: int = Field(gt=ENSEMBLES, lt=2 * ENSEMBLES)
    chain_id: int = Field(ge=1)
    contract: str
    members: Annotated[tuple[MemberFile, ...], Field(min_length=FEWEST_MEMBERS, max_length=MOST_MEMBERS)]
    onnx: Digest | None = None

    @property
    def ensemble(self) -> Ensemble:
        """As the chain has it."""
        return Ensemble(self.number, tuple(Member(one.task, one.gain) for one in self.members))

    @property
    def sha256(self) -> str:
        """The digest in receipts: SHA-256 of number, chain and members as JSON with sorted keys and without spaces."""
        members = [one.model_dump(include={"task", "gain", "sha256"}) for one in self.members]
        content = {"chain_id": self.chain_id, "members": members, "number": self.number}
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def written(self) -> bytes:
        """The file's bytes."""
        return self.model_dump_json(indent=2, exclude_none=True).encode()


@dataclass(frozen=True)
class SavedEnsemble:
    """A folder's content, all of it checked. `models`: of the members, in their order."""

    index: EnsembleFile
    models: tuple[SavedModel, ...]

    @property
    def name(self) -> str:
        """For people: names of tasks may be the same."""
        return f"ensemble {self.index.number - ENSEMBLES} of {len(self.models)} models"

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the members' answers; their sum is 1."""
        return self.index.ensemble.weights

    @property
    def schema(self) -> DataSchema:
        """The schema of rows, which all members read alike."""
        return self.models[0].spec.data

    @property
    def verified(self) -> bool:
        """False if a check of a member failed."""
        return all(one.index.verified for one in self.models)

    def require_alike(self) -> None:
        """Raises EnsembleError (MembersDiffer) unless all models read the same rows, answer the same question and were
        judged by the same metric, so that their gains compare; (MemberLocal) for a model that is not whole;
        OperatorError (ForetellsTokens, MarksPixels) for a language model or a segmentation.
        """
        for one in self.models:
            require_answers(one)
            if local := one.spec.training.local:
                raise EnsembleError("MemberLocal", task=one.index.task, names=", ".join(local))
        first, *others = ((one.index.task, _asked(one.spec)) for one in self.models)
        for task, asked in others:
            for field in first[1] | asked:
                wanted, found = first[1].get(field), asked.get(field)
                if wanted != found:
                    raise EnsembleError(
                        "MembersDiffer", first=first[0], second=task, field=field,
                        wanted=shown(str(wanted), MOST_SHOWN), found=shown(str(found), MOST_SHOWN),
                    )  # fmt: skip


def read_ensemble(folder: Path) -> SavedEnsemble:
    """Raises EnsembleError (EnsembleFolderInvalid, MembersDiffer, MemberLocal), OperatorError (ModelFolderInvalid,
    ForetellsTokens, MarksPixels).
    """
    index = _index(folder / ENSEMBLE)
    models = []
    for one in index.members:
        found = read_model(folder / one.folder)
        own = found.index
        if (own.task, own.chain_id, own.sha256) != (one.task, index.chain_id, one.sha256):
            raise _invalid(folder / one.folder, f"it is not the model of task {one.task} that {ENSEMBLE} names")
        models.append(found)
    saved = SavedEnsemble(index, tuple(models))
    saved.require_alike()
    if index.onnx is not None and _digest(folder / ONNX) != index.onnx:
        raise _invalid(folder / ONNX, f"its SHA-256 is not the one in {ENSEMBLE}: it was changed")
    return saved


def _index(path: Path) -> EnsembleFile:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _invalid(path, f"it has more than {MOST_BYTES:,} bytes")
        raw = path.read_bytes()
        parse_json(raw)
        index = EnsembleFile.model_validate_json(raw)
    except OSError as error:
        raise _invalid(path, f"it cannot be read: {error.strerror}") from error
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or ENSEMBLE
        raise _invalid(path, f"{where}: {fault['msg']}") from None
    except ValueError as error:
        raise _invalid(path, str(error)) from None
    if any(one.task >= other.task for one, other in pairwise(index.members)):
        raise _invalid(path, "its members' tasks do not ascend")
    if wrong := [one for one in index.members if one.folder != folder_of(one.task)]:  # no path leaves the folder
        raise _invalid(path, f"the folder of task {wrong[0].task} is not {folder_of(wrong[0].task)}")
    return index


def folder_of(task: int) -> str:
    """A member's, in the ensemble's."""
    return f"task-{task}"


def _asked(spec: TaskSpec) -> dict[str, Any]:
    """All that rows, answers and gains depend on, by dotted name: without priors of scaling, and subgroups."""
    found = {"kind": spec.data.kind, **spec.data.model_dump(mode="json", exclude={"subgroups"})}
    for one in found.get("features", ()):
        one.pop("mean", None)
        one.pop("deviation", None)
    return {**dict(_flat("data", found)), "judging.metric": spec.judging.metric}


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    parts: Mapping[str, Any] = {}
    if isinstance(value, dict):
        parts = value
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        parts = {str(at): one for at, one in enumerate(value, 1)}
    if not parts:
        return [(name, value)]
    return [found for key, part in parts.items() for found in _flat(f"{name}.{key}".lstrip("."), part)]


def write_ensemble(folder: Path, index: EnsembleFile, models: Mapping[int, Path], graph: bytes | None) -> None:
    """Writes all files into a new folder, or none. `models`: each member's folder, by task. `graph`: `model.onnx`.

    Raises OperatorError (OutputTaken), and as `read_ensemble` does.
    """
    if folder.exists():
        raise OperatorError("OutputTaken", path=folder)
    onnx = None if graph is None else hashlib.sha256(graph).hexdigest()
    index = index.model_copy(update={"onnx": onnx})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        (draft := Path(scratch) / "ensemble").mkdir()
        for one in index.members:
            _copy(models[one.task], draft / one.folder)
        if graph is not None:
            (draft / ONNX).write_bytes(graph)
        (draft / ENSEMBLE).write_bytes(index.written)
        read_ensemble(draft)
        draft.rename(folder)


def _copy(source: Path, target: Path) -> None:
    """A model's own files, and no others of its folder."""
    target.mkdir()
    for name in {INDEX, *read_model(source).index.files}:
        if name not in FILES:
            raise OperatorError("ModelFolderInvalid", path=source / INDEX, why=f"it names the file {shown(name)}")
        shutil.copyfile(source / name, target / name)


def _digest(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_GRAPH:
            raise _invalid(path, f"it has more than {MOST_GRAPH:,} bytes")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _invalid(path, f"it cannot be read: {error.strerror}") from error


def _invalid(path: Path, why: str) -> EnsembleError:
    return EnsembleError("EnsembleFolderInvalid", path=path, why=why)
