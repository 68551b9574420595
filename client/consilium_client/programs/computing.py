"""The process that computes one program. `confined` starts it, and its requests come from there.

Arguments: the parent's process, bytes of memory, device, and 1 to load the libraries of differential privacy. All of
them are loaded and used once before the limits begin, because no file can be opened afterwards. It reads the program
only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import IO, Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.faults import FaultError
from pydantic import TypeAdapter

from consilium_client.models import training
from consilium_client.models.program import OfProgram
from consilium_client.models.training import Guides
from consilium_client.programs import rehearsal
from consilium_client.programs.confined import Progress, computing_here
from consilium_client.programs.confinement import confine, end_with, pipes
from consilium_client.programs.frames import Arrays, FrameBroken, receive_arrays, receive_header, send, stated
from consilium_client.programs.library import Files, keep
from consilium_client.programs.tokenizing import unpacked

Found = Mapping[str, Any]  # arrays
Answer = Callable[[Mapping[str, Any], Arrays, Progress], Found]


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


@computing_here()
def serve(requests: IO[bytes], answers: IO[bytes], read: Answer) -> None:
    """Answers requests until the node has ended. `read`: the answer to the first one, `read`: further answers by the
    names of their requests. Those to the requests for training are here.
    """
    calls: Mapping[str, Answer] = {"read": read}

    def progress(done: int, steps: int, loss: float) -> None:
        send(answers, {"kind": "progress", "done": done, "steps": steps, "loss": loss})

    while True:
        try:
            header = receive_header(requests)
        except FrameBroken:
            return  # the node has ended
        arrays = receive_arrays(requests, stated(header))
        try:
            found = calls[header["kind"]](header, arrays, progress)
        except Exception as error:  # told in full, and the next request may do
            send(answers, fault(error))
            continue
        if header["kind"] == "read":
            calls, found = {**found, **TRAINING}, {}
        send(answers, {"kind": "result"}, found)


def _read(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Found:
    model = ProgramSpec.model_validate(header["model"])
    data: DataSchema = TypeAdapter[DataSchema](DataSchema).validate_python(header["data"])
    keep(Files(**{one.name: arrays[one.name].tobytes() for one in fields(Files)}), model)
    found = OfProgram(model, data)  # read and measured
    return {
        "evaluate": lambda header, arrays, _: _evaluated(found, arrays),
        "tokenize": lambda header, arrays, _: {"tokens": found.tokens(unpacked(arrays))},
        "require-apart": lambda header, arrays, _: _apart(found),
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
    given = arrays["base"], arrays["inputs"], arrays["labels"], int(header["seed"]), progress, header["device"], guides
    if header["within"] is None:
        return {"found": training.train(spec, *given)}
    return {"found": training.learn(spec, spec.basis(bytes.fromhex(header["within"])), *given)}


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


def fault(error: Exception) -> dict[str, Any]:
    """Values that JSON has, and texts as a screen takes them."""
    if not isinstance(error, FaultError):
        return {"kind": "error", "error": "none", "name": type(error).__name__}
    values = {name: _plain(value) for name, value in error.values.items()}
    return {"kind": "error", "error": type(error).__name__, "name": error.name, "values": values}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, int | np.integer):
        return int(value)
    return "".join(one if one.isprintable() else " " for one in f"{value}")[:200]


if __name__ == "__main__":
    main()
