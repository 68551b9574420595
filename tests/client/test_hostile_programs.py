"""Programs that attack their reader: each is refused by name before anything of it is computed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.errors import ModelError
from consilium_client.programs import library
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.exporting import exported
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.library import Files
from consilium_client.programs.measuring import measured
from consilium_client.programs.program import MOST_BYTES, MOST_NODES, MOST_OF_LIST, canonical, parse_program
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_operators.weights import program_section
from eth_utils.crypto import keccak
from raised_faults import raises_fault
from safetensors.numpy import save
from task_files import DATA
from torch import nn

Changes = Callable[[dict[str, Any]], object]
HUGE = 1 << 39
X, W = {"input": 0}, {"tensor": "1.weight"}


def module() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))


SOUND = exported(module(), torch.randn(3, 4))


def with_nodes(*before: Any) -> Changes:
    """Nodes before all others, whose numbers move."""

    def change(found: dict[str, Any]) -> None:
        def later(one: dict[str, Any]) -> dict[str, Any]:
            return {"node": one["node"] + len(before)} if "node" in one else one

        moved = json.loads(json.dumps(found["nodes"]), object_hook=later)
        found["nodes"] = [*before, *moved]

    return change


def with_last(*nodes: Any) -> Changes:
    return lambda found: found["nodes"].extend(nodes)


def replaced(at: int, place: int, value: Any) -> Changes:
    """An argument of a node."""
    return lambda found: found["nodes"][at][1].__setitem__(place, value)


def field(name: str, value: Any) -> Changes:
    return lambda found: found.__setitem__(name, value)


def add(first: Any, second: Any) -> Any:
    return ["add.Tensor", [first, second], {}]


def squarings(times: int) -> Changes:
    """An integer that would have 2^times digits."""
    size = ["sym_size.int", [X, 1], {}]
    return with_nodes(size, *(["int.mul", [{"node": k}, {"node": k}], {}] for k in range(times)))


def doublings(times: int) -> Changes:
    """A tensor that doubles with each node."""
    first = ["cat.default", [[X, X], 1], {}]
    return with_nodes(first, *(["cat.default", [[{"node": k}, {"node": k}], 1], {}] for k in range(times)))


MALFORMED: dict[str, Changes] = {
    "no nodes": field("nodes", []),
    "nodes that are no list": field("nodes", {"0": []}),
    "a node that is no list": with_last("relu.default"),
    "a node without arguments": with_last(["relu.default"]),
    "an argument of a later node": replaced(0, 0, {"node": 1}),
    "an argument of its own node": replaced(0, 0, {"node": 0}),
    "an argument of a node below zero": replaced(1, 0, {"node": -1}),
    "true as a node's number": replaced(2, 0, {"node": True}),
    "a reference of two kinds": replaced(0, 0, {"input": 0, "node": 0}),
    "an input that there is not": replaced(0, 0, {"input": 1}),
    "a list of lists": replaced(0, 0, [[X]]),
    "a list without end": with_last(["cat.default", [[{"node": 0}] * (MOST_OF_LIST + 1)], {}]),
    "twenty arguments": with_last(["relu.default", [0] * 20, {}]),
    "an integer beyond all sizes": replaced(0, 0, 1 << 80),
    "a text with a path": with_last(["pad.default", [{"node": 0}, [1, 1], "../../etc/passwd"], {}]),
    "a text as long as a book": with_last(["pad.default", [{"node": 0}, [1, 1], "a" * 1_000], {}]),
    "a named argument that no operator has": with_last(["relu.default", [{"node": 0}], {"__class__": 1}]),
    "a type that is none": with_last(["to.dtype", [{"node": 0}, {"type": "object"}], {}]),
    "a float that is none": with_last(["mul.Scalar", [{"node": 0}, {"float": "1e999"}], {}]),
    "a tensor that it does not have": replaced(0, 1, {"tensor": "2.weight"}),
    "a tensor that no node uses": lambda found: found["frozen"].append(["mask", [3], "bool"]),
    "a tensor stated twice": lambda found: found["trainable"].append(found["trainable"][0]),
    "a tensor that is trainable and frozen": lambda found: found["frozen"].append(["0.bias", [3], "float32"]),
    "a tensor with a path as its name": lambda found: found["trainable"][0].__setitem__(0, "../../home"),
    "a tensor without a name": lambda found: found["trainable"][0].__setitem__(0, ""),
    "a tensor of texts": lambda found: found["frozen"].append(["mask", [3], "object"]),
    "a tensor of nine dimensions": lambda found: found["trainable"][0].__setitem__(1, [1] * 9),
    "a tensor of no size": lambda found: found["trainable"][0].__setitem__(1, [0, 4]),
    "a tensor of half a row": lambda found: found["trainable"][0].__setitem__(1, [1.5, 4]),
    "nothing to train": lambda found: (found["frozen"].extend([[*one, "float32"] for one in found["trainable"]]),
                                       found["trainable"].clear()),
    "a layer that writes into trained weights": replaced(1, 3, {"tensor": "1.weight"}),
    "a layer that writes into its input": replaced(1, 3, X),
    "a layer that would write into frozen means": lambda found: (
        found["frozen"].extend([*one, "float32"] for one in found["moving"]), found["moving"].clear(),
        found["nodes"][1][1].__setitem__(5, True),
    ),
    "two layers that write into one mean": with_last(["batch_norm.default", [
        {"node": 0}, W, W, {"tensor": "1.running_mean"}, {"tensor": "1.running_var"}, False, 0.1, 1e-5, False], {}]),
    "a moving tensor that nothing writes": lambda found: found["moving"].append(["0.bias2", [3]]),
    "an input of texts": field("input", {"shape": [4], "type": "str"}),
    "logits of no class": field("outputs", 0),
    "another format": field("format", "consilium-program-2"),
    "a field more": field("hook", "os.system"),
    # Refused by its shapes, which alone go through the graph:
    "other logits than it says": field("outputs", 5),
    "weights that do not fit": replaced(0, 0, {"tensor": "0.bias"}),
    "numbers of words that are no integers": with_nodes(["embedding.default", [W, X], {}]),
    "too few arguments": with_last(["addmm.default", [{"node": 0}], {}]),
    "an integer that grows": squarings(60),
    "an integer divided by zero": with_nodes(["sym_size.int", [X, 1], {}], ["int.floordiv", [{"node": 0}, 0], {}]),
    "arithmetic on tensors as if on integers": with_nodes(["int.mul", [X, X], {}]),
    "a dimension that there is not": with_nodes(["select.int", [X, 7, 0], {}]),
    "as many tensors as values": with_nodes(["zeros.default", [[1 << 20]], {}], ["unbind.int", [{"node": 0}], {}]),
    "as many parts as values": with_nodes(["zeros.default", [[1 << 20]], {}], ["split.Tensor", [{"node": 0}, 1], {}]),
    "parts of no length": with_nodes(["split.Tensor", [X, 0], {}]),
    "an item of no list": with_nodes(["item", [X, "shape"], {}]),
    "a result that is no tensor": with_last(["sym_size.int", [{"node": 0}, 0], {}]),
    "one result for all rows": with_last(["sum.default", [{"node": 3}], {}]),
    "logits that are integers": with_last(["to.dtype", [{"node": 3}, {"type": "int64"}], {}]),
}  # fmt: skip

TOO_LARGE: dict[str, Changes] = {
    "a million nodes": lambda found: field("nodes", found["nodes"] * (MOST_NODES // 4 + 1))(found),
    "a huge tensor made": with_nodes(["zeros.default", [[HUGE]], {}]),
    "a huge tensor stretched": with_nodes(["expand.default", [{"tensor": "0.bias"}, [1 << 20, 1 << 20, 3]], {}]),
    "a range without end": with_nodes(["arange.default", [HUGE], {}]),
    "an outer product of the rows": with_nodes(["repeat.default", [X, [1 << 14, 1 << 14]], {}]),
    "a tensor that doubles": doublings(40),
    "multiplications for days": with_nodes(
        ["zeros.default", [[1 << 14, 1 << 14]], {}],
        *(["mm.default", [{"node": 0}, {"node": 0}], {}] for _ in range(14)),
        *(["mm.default", [{"node": 0}, {"node": 0}], {}] for _ in range(14)),
    ),
    "a convolution's padding": with_nodes(["constant_pad_nd.default", [X, [1 << 30, 1 << 30]], {}]),
}  # fmt: skip

FORBIDDEN: dict[str, Any] = {
    "an unknown operator": "frobnicate.default",
    "an operator in place": "add_.Tensor",
    "an operator that writes elsewhere": "add.out",
    "an operator that draws": "randn_like.default",
    "a custom operator": "mylib.attack.default",
    "a higher-order operator": "while_loop",
    "a loop": "scan",
    "a file's reader": "from_file.default",
    "memory by strides": "as_strided.default",
    "set's own data": "set_.source_Tensor",
    "a value that leaves the graph": "item.default",
    "Python's own": "builtins.eval",
    "an attribute of the class": "__class__",
    "no name": 7,
}


def changed(change: Changes) -> bytes:
    found = json.loads(SOUND.raw)
    change(found)
    return canonical(found)


def refuse(raw: bytes) -> None:
    program = parse_program(raw)
    measured(program, 64, training=False)


@pytest.fixture(autouse=True)
def nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes go through on the device "meta", which has no memory."""
    computed = Interpreter.computed

    def without_data(self: Interpreter, rows: torch.Tensor, *watch: Any) -> list[Any]:
        assert rows.device.type == "meta"
        assert {one.device.type for one in self.trained} == {"meta"}
        return computed(self, rows, *watch)

    monkeypatch.setattr(Interpreter, "computed", without_data)


def test_a_fault_that_only_data_show_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes alone do not tell of the types that an operator has no code for."""
    monkeypatch.undo()
    program = parse_program(changed(with_nodes(["bitwise_not.default", [X], {}])))
    tensors = {name: torch.from_numpy(one) for name, one in SOUND.tensors.items()}
    with raises_fault(ProgramError, "ProgramFailed", "bitwise_not.default.*not implemented"):
        Interpreter(program, tensors)(torch.zeros(2, 4))


def test_the_sound_one_is_not_refused() -> None:
    refuse(SOUND.raw)
    refuse(changed(lambda found: None))


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_no_program_is_refused(kind: str) -> None:
    with raises_fault(ProgramError, "ProgramMalformed"):
        refuse(changed(MALFORMED[kind]))


@pytest.mark.parametrize("kind", TOO_LARGE)
@pytest.mark.timeout(20)
def test_what_would_fill_the_memory_is_refused(kind: str) -> None:
    with raises_fault(ProgramError, "ProgramTooLarge"):
        refuse(changed(TOO_LARGE[kind]))


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_operators_that_are_not_listed_are_refused(kind: str) -> None:
    with raises_fault(ProgramError, "OperatorForbidden"):
        refuse(changed(with_last([FORBIDDEN[kind], [{"node": 0}], {}])))


BYTES: dict[str, bytes] = {
    "nothing": b"",
    "a pickle": pickle.dumps({"nodes": []}),
    "a JSON bomb": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a number of a million digits": b'{"format":' + b"9" * 1_000_000 + b"}",
    "a name twice": SOUND.raw.replace(b'{"format"', b'{"format":"consilium-program-1","format"', 1),
    "spaces": SOUND.raw.replace(b":", b": ", 1),
    "another order": SOUND.raw.replace(b'{"format"', b'{"z":1,"format"', 1),
    "letters beyond ASCII": SOUND.raw.replace(b"0.weight", "0.wéight".encode()),
    "not a number": SOUND.raw.replace(b"0.1", b"NaN"),
    "a list": b"[]",
    "bytes that are no text": b"\xff\xfe" + SOUND.raw,
}


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_of_another_form_are_refused(kind: str) -> None:
    assert BYTES[kind] != SOUND.raw
    with raises_fault(ProgramError, "ProgramMalformed"):
        refuse(BYTES[kind])


def test_a_file_that_is_too_long_is_refused_unread() -> None:
    with raises_fault(ProgramError, "ProgramTooLarge", "bytes"):
        refuse(b"[" * (MOST_BYTES + 1))


# --- its weights, and the task file beside it -----------------------------------------------------------------------


def task(raw: bytes, weights: bytes, **changes: Any) -> tuple[TaskSpec, ProgramSpec]:
    section = program_section(raw, [keccak(weights).hex()])
    spec = parse_task_spec(f'name = "a program"\n{DATA}\n{section}'.encode())
    assert isinstance(spec.model, ProgramSpec)
    return spec, spec.model.model_copy(update=changes)


def weights_with(**changes: Any) -> bytes:
    return save({**SOUND.tensors, **changes})


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (b"{}", "WeightsUnusable"),
        (pickle.dumps({"0.weight": 1}), "WeightsUnusable"),
        (save({name: one for name, one in SOUND.tensors.items() if name != "0.bias"}), "WeightsUnusable"),
        (weights_with(more=np.zeros(3, np.float32)), "WeightsUnusable"),
        (weights_with(**{"0.bias": np.zeros(4, np.float32)}), "WeightsUnusable"),
        (weights_with(**{"0.bias": np.zeros(3, np.float64)}), "WeightsUnusable"),
        (weights_with(**{"0.bias": np.full(3, np.nan, np.float32)}), "ProgramMalformed"),
        (weights_with() + bytes(2 << 20), "WeightsUnusable"),
    ],
    ids=["nothing", "a pickle", "one less", "one more", "another shape", "another type", "not a number", "too long"],
)
def test_weights_that_are_not_the_programs_are_refused(weights: bytes, error: str) -> None:
    spec, model = task(SOUND.raw, weights)
    library.keep(Files(SOUND.raw, weights), model)
    with raises_fault(ModelError, error):
        library.loaded(model, spec.data)


def test_other_files_than_the_task_names_are_refused() -> None:
    weights = weights_with()
    spec, model = task(SOUND.raw, weights)
    for files in (Files(SOUND.raw + b" ", weights), Files(SOUND.raw, weights + b" "), Files(b"", b"")):
        with raises_fault(ProgramError, "ProgramMissing"):
            library.keep(files, model)
    with raises_fault(ProgramError, "ProgramMissing"):
        library.loaded(model.model_copy(update={"program": "00" * 32}), spec.data)


def test_shapes_of_the_task_file_are_the_programs_in_their_order() -> None:
    weights = weights_with(**{"0.bias": np.ones(3, np.float32)})
    spec, model = task(SOUND.raw, weights)
    library.keep(Files(SOUND.raw, weights), model)
    backwards = dict(reversed(model.shapes.items()))
    changes: dict[str, Any]
    for changes in ({"shapes": backwards}, {"moving": []}, {"shapes": {**model.shapes, "0.bias": [4]}}):
        with raises_fault(ProgramError, "ProgramMalformed", "in their order"):
            library.loaded(model.model_copy(update=changes), spec.data)
    assert library.loaded(model, spec.data).program == SOUND.program


def test_a_store_that_lies_is_found_by_the_hash(tmp_path: Path) -> None:
    store, weights = ArtifactStore(tmp_path), weights_with(**{"0.bias": np.full(3, 2, np.float32)})
    spec, model = task(SOUND.raw, weights)
    library.offer(store, spec)
    store.put_file(weights)
    with pytest.raises(ArtifactMissing):
        library.loaded(model, spec.data)
    (tmp_path / f"file-{store.put_file(SOUND.raw).hex()}").write_bytes(SOUND.raw.replace(b"relu", b"gelu"))
    with pytest.raises((ArtifactCorrupt, ArtifactMissing)):
        library.loaded(model, spec.data)
