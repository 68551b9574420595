"""The process that computes one program. `confined` starts it, and its requests come from there.

Arguments: the parent's process, bytes of memory, device, and 1 to load the libraries of differential privacy. All of
them are loaded and used once before the limits begin, because no file can be opened afterwards. It reads the program
only then.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from pydantic import TypeAdapter

from consilium_client.models import torch_training
from consilium_client.models.program import OfProgram
from consilium_client.models.training import Guides
from consilium_client.programs import rehearsal
from consilium_client.programs.confined import Progress
from consilium_client.programs.confinement import confine, end_with, pipes
from consilium_client.programs.frames import Arrays, send
from consilium_client.programs.library import Files, keep
from consilium_client.programs.serving import Answer, Found, fault, serve
from consilium_client.programs.tokenizing import unpacked


def main() -> None:
    parent, memory, device, private = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1"
    requests, answers = pipes()
    try:
        end_with(parent)
        rehearsal.rehearse(device, private)
        confine(memory, device)
    except Exception as error:
        send(answers, fault(error))
        raise
    serve(requests, answers, _read)


def _read(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
    model = ProgramSpec.model_validate(header["model"])
    data: DataSchema = TypeAdapter[DataSchema](DataSchema).validate_python(header["data"])
    keep(Files(**{one.name: arrays[one.name].tobytes() for one in fields(Files)}), model)
    found = OfProgram(model, data)  # read and measured
    return {
        "evaluate": lambda header, arrays, _: _evaluated(found, arrays),
        "tokenize": lambda header, arrays, _: {"tokens": found.tokens(unpacked(arrays))},
        "require-apart": lambda header, arrays, _: _apart(found),
        **TRAINING,
    }


def _evaluated(model: OfProgram, arrays: Arrays) -> Found:
    answers, activations = model.results(arrays["parameters"], arrays["inputs"])
    return {"answers": answers, "activations": activations}


def _apart(model: OfProgram) -> Found:
    model.require_apart()
    return {}


def _trained(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
    spec = TaskSpec.model_validate(header["spec"])
    held_out = (arrays["held_out_inputs"], arrays["held_out_labels"]) if "held_out_inputs" in arrays else None
    guides = Guides(held_out, arrays.get("correction"), arrays.get("class_weights"))
    within = None if header["within"] is None else spec.basis(bytes.fromhex(header["within"]))
    given = within, arrays["base"], arrays["inputs"], arrays["labels"], int(header["seed"]), progress
    return {"found": torch_training.trained(spec, *given, header["device"], guides)}


def _trained_privately(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
    from consilium_client.privacy import dp_sgd  # loaded by the rehearsal, if this process is for private tasks

    spec = TaskSpec.model_validate(header["spec"])
    if spec.privacy is None:
        raise ValueError("this task is not private")
    mechanism = dp_sgd.Mechanism(**header["mechanism"])
    given = arrays["base"], arrays["inputs"], arrays["labels"], progress, header["device"]
    if header["within"] is None:
        return {"found": dp_sgd.train_privately(spec, spec.privacy, mechanism, *given)}
    basis = spec.basis(bytes.fromhex(header["within"]))
    return {"found": dp_sgd.learn_privately(spec, spec.privacy, mechanism, basis, *given)}


TRAINING: Mapping[str, Answer] = {"train": _trained, "train-privately": _trained_privately}


if __name__ == "__main__":
    main()
