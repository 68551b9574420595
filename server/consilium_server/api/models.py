"""Models of tasks in the server's folder, as `consilium operator download-model` writes them.

Clients need not trust them: the public record has all inputs of a model, and the same command derives it again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path as FilePath
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from consilium_server.api import schemas
from consilium_server.api.context import Service
from consilium_server.api.problems import Problem, documented
from consilium_server.api.routing import NOT_MODIFIED, Shared, is_known, media
from consilium_server.api.schemas import ModelFileName, TaskNumber

INDEX = "model.json"
LARGEST_INDEX = 1 << 23  # bytes: twice that of a table of ten thousand columns
AGAIN = {"Cache-Control": "no-cache"}

models = APIRouter(prefix="/v1", tags=["tasks"])
ROUTERS = (models,)


class ModelIndex(BaseModel):
    """The part of `model.json` that the API shows."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: Literal["consilium-model-1"]
    task: int
    chain_id: int
    contract: str
    round: NonNegativeInt
    rounds: NonNegativeInt
    verified: bool
    sha256: schemas.Sha256
    spec_hash: schemas.Sha256 = "0" * 64
    task_file: str = ""
    measured: schemas.Measured | None = None


def references_file(models: FilePath, task: int) -> FilePath:
    """Beside the model's folder, which each round's model replaces."""
    return models / f"task-{task}-references.json"


def model_folder(models: FilePath, task: int) -> FilePath:
    """Folder of a task's model."""
    return models / f"task-{task}"


@models.get(
    "/tasks/{task}/models", response_model=schemas.Models, operation_id="listModels",
    summary="The task's model, if this server has it: none or one", responses=documented(422, 429),
)  # fmt: skip
def list_models(service: Shared, response: Response, task: TaskNumber) -> schemas.Models:
    response.headers.update(AGAIN)
    found = find_model(service, task)
    if found is None:
        return schemas.Models(items=[])
    folder, index = found
    references = _references(folder, index)
    files = [
        schemas.ModelFile(name=name, size=(folder / name).stat().st_size)
        for name in get_args(ModelFileName)
        if (folder / name).is_file()
    ]
    return schemas.Models(items=[schemas.ModelView(**dict(index), references=references, files=files)])


@models.get(
    "/tasks/{task}/model/{file}",
    operation_id="getModelFile",
    summary="A file of a task's model: its parameters, their description, its card, or the proof of each round",
    response_class=Response,
    responses=media("the bytes of the file", "application/octet-stream", {"type": "string", "format": "binary"})
    | documented(404, 422, 429)
    | NOT_MODIFIED,
)
def get_model_file(
    request: Request, service: Shared, task: TaskNumber, name: Annotated[ModelFileName, Path(alias="file")]
) -> Response:
    found = find_model(service, task)
    if found is None or not (path := found[0] / name).is_file():
        way = f"derive it with `consilium operator download-model {task}`"
        raise Problem("not-found", f"this server has no {name} of task {task}: {way}")
    # The index determines a model's files: another round's model has another digest of its parameters.
    tag = hashlib.sha256(f"{name} {found[1].model_dump_json()}".encode()).hexdigest()
    headers = AGAIN | {"ETag": f'"{tag}"'}
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return FileResponse(path, headers=headers, media_type="application/octet-stream", filename=f"task-{task}-{name}")


def find_model(service: Service, task: int) -> tuple[FilePath, ModelIndex] | None:
    """Folder and index of the task's model; None if it has none, or one of other contracts."""
    if service.settings.models is None:
        return None
    folder, book = model_folder(service.settings.models, task), service.deployment
    try:
        with (folder / INDEX).open("rb") as file:
            index = ModelIndex.model_validate_json(file.read(LARGEST_INDEX))
    except (OSError, ValidationError):
        return None
    is_own = (index.task, index.chain_id, index.contract) == (task, book.chain_id, book.tasks)
    return (folder, index) if is_own else None


def _references(folder: FilePath, index: ModelIndex) -> schemas.References | None:
    """None without a file, and for a damaged one."""
    try:
        with references_file(folder.parent, index.task).open("rb") as file:
            return schemas.References.model_validate_json(file.read(LARGEST_INDEX))
    except (OSError, ValidationError):
        return None
