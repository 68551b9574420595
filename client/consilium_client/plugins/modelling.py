"""Answers of the process that computes a plug-in's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import PluginSpec
from pydantic import TypeAdapter

from consilium_client.models.plugin import OfPlugin
from consilium_client.plugins import building
from consilium_client.programs import rehearsal
from consilium_client.programs.computing import TRAINING
from consilium_client.programs.confined import Progress
from consilium_client.programs.frames import Arrays
from consilium_client.programs.serving import Answer, Found


def rehearse() -> None:
    rehearsal.rehearse("cpu", False)


def read(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Mapping[str, Answer]:
    """Imports the plug-in, and builds it once. Later requests bring the task's shapes, which may not be known yet."""
    spec = PluginSpec.model_validate(header["model"])
    adapter: TypeAdapter[TableSchema | ImageSchema] = TypeAdapter(TableSchema | ImageSchema)
    data = adapter.validate_python(header["data"])
    building.built(spec, data)

    def described(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
        return {"found": building.described(spec, data)}

    def started(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
        named = PluginSpec.model_validate(header["model"])
        return {"found": building.start(named, data, header["seed"])}

    def evaluated(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
        named = OfPlugin(PluginSpec.model_validate(header["model"]), data)
        return {"logits": named.results(arrays["parameters"], arrays["inputs"])}

    return {"describe": described, "start": started, "evaluate": evaluated, **TRAINING}
