"""The process that computes one plug-in. `programs.confined` starts it, and its requests come from there.

Arguments: as of `programs.computing`, but it computes on the CPU. Files out of reach come first, then libraries, then
the list of system calls. Only then does it read which plug-in is wanted, hold its files against their digest, and
import it. So this list allows reading files, and Landlock bounds which.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

# Libraries with threads are imported after Landlock has begun.
from consilium_client.plugins.landlock import read_only, readable, require_linux
from consilium_client.programs.confinement import confine_reader, end_with, goes_first, pipes

if TYPE_CHECKING:
    from consilium_client.programs.computing import Answer, Found
    from consilium_client.programs.confined import Progress
    from consilium_client.programs.frames import Arrays


def main() -> None:
    parent, memory = int(sys.argv[1]), int(sys.argv[2])
    requests, answers = pipes()
    sys.dont_write_bytecode = True
    tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"  # torch asks as it loads; nothing is written
    fault: Exception | None = None
    try:
        require_linux()
        end_with(parent)
        held = goes_first()
        read_only(readable())
    except Exception as error:
        fault = error
    from consilium_client.programs import computing, rehearsal
    from consilium_client.programs.frames import send

    try:
        if fault is not None:
            raise fault
        rehearsal.rehearse("cpu", False)
        confine_reader(held, memory)
        held.close()
    except Exception as error:
        send(answers, computing.fault(error))
        raise
    computing.serve(requests, answers, _read)


def _read(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Mapping[str, Answer]:
    """Imports the plug-in, and builds it once. Later requests bring the task's shapes, which may not be known yet."""
    from consilium_chain.tasks.data_schemas import ImageSchema, TableSchema
    from consilium_chain.tasks.model_specs import PluginSpec
    from pydantic import TypeAdapter

    from consilium_client.models.plugin import OfPlugin
    from consilium_client.plugins import building

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

    return {"describe": described, "start": started, "evaluate": evaluated}


if __name__ == "__main__":
    main()
