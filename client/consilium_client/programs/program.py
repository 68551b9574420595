"""A program's file: canonical JSON from strangers, parsed once into plain values. Pure; imports no torch.

| field | content |
|---|---|
| `format` | `consilium-program-1` |
| `input` | `shape` of one row, without the batch, and `type` |
| `outputs` | logits of a row |
| `trainable`, `moving`, `frozen` | tensors: [name, shape] each; `frozen` ones with their type, too |
| `nodes` | [operator, arguments, named arguments] each, in the order of computing; the last gives the logits |

Trainable tensors are learnt by gradients. Layers write the moving ones in training (running means); these travel with
an update, too. An argument is null, true or false, an integer, a float, a text, a list without further lists, or one of
{"node": k}, an earlier node's result; {"tensor": name}; {"input": 0}; {"type": name}; {"float": "inf"}, -inf, nan.

Canonical: keys in order, no spaces, ASCII, as Python's json writes it. So one program has one hash.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from consilium_client.programs.errors import ProgramError
from consilium_client.programs.operators import ALLOWED, MOVING, SWITCHED, TYPES

FORMAT: Final = "consilium-program-1"
MOST_BYTES: Final = 4 << 20
MOST_NODES: Final = 10_000
MOST_TENSORS: Final = 10_000
MOST_ARGUMENTS, MOST_OF_LIST, MOST_DIMENSIONS = 16, 256, 8
MOST_SIZE: Final = 1 << 40  # of a dimension's or an argument's integer
SLICE_END: Final = (1 << 63) - 1  # ATen's word for "to the end"
LONGEST_NAME, LONGEST_TEXT = 200, 32

_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
_TEXT = re.compile(r"[a-zA-Z0-9_,\->. ]*")
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """The result of an earlier node, by its number."""

    number: int


@dataclass(frozen=True)
class Tensor:
    name: str


@dataclass(frozen=True)
class Input:
    """The rows."""


@dataclass(frozen=True)
class Type:
    name: str


Argument = None | bool | int | float | str | Node | Tensor | Input | Type | tuple["Argument", ...]


@dataclass(frozen=True)
class Call:
    """A node: an operator of `operators.ALLOWED` with its arguments."""

    operator: str
    arguments: tuple[Argument, ...]
    named: Mapping[str, Argument]

    def all_arguments(self) -> Iterator[Argument]:
        """Those of lists one by one."""
        for one in (*self.arguments, *self.named.values()):
            yield from one if isinstance(one, tuple) else (one,)


@dataclass(frozen=True)
class Program:
    """`shape`, `type_`: of a row's input. `frozen`: shape and type of each. `nodes`: the last gives the logits."""

    shape: Shape
    type_: str
    outputs: int
    trainable: Mapping[str, Shape]
    moving: Mapping[str, Shape]
    frozen: Mapping[str, tuple[Shape, str]]
    nodes: Sequence[Call]

    @property
    def learnt(self) -> dict[str, Shape]:
        """The tensors of an update, in its order."""
        return {**self.trainable, **self.moving}

    @property
    def features(self) -> int | None:
        """The node whose result the last layer takes; None if the last node is no dense layer."""
        last = self.nodes[-1]
        first = last.arguments[0] if last.operator == "linear.default" else None
        return first.number if isinstance(first, Node) else None


# --- reading -------------------------------------------------------------------------------------------------------


def parse_program(raw: bytes) -> Program:
    """Raises ProgramError (ProgramMalformed, OperatorForbidden, ProgramTooLarge)."""
    if len(raw) > MOST_BYTES:
        raise _too_large("its file", len(raw), MOST_BYTES, "bytes")
    try:
        from_json(raw, allow_inf_nan=False)  # bounds nesting, which Python's parser does not
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise malformed("it is not JSON, or is nested too deeply") from error
    if not isinstance(found, dict) or canonical(found) != raw:
        raise malformed("it is not canonical JSON: keys in order, no spaces, ASCII, nothing twice")
    wanted = {"format", "input", "outputs", "trainable", "moving", "frozen", "nodes"}
    if set(found) != wanted:
        raise malformed(f"its fields are not {', '.join(sorted(wanted))}")
    if found["format"] != FORMAT:
        raise malformed(f"its format is not {FORMAT}")
    return _program(found)


def canonical(value: Any) -> bytes:
    """JSON with one form for each value. Raises ValueError for floats that are not finite."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def malformed(why: str) -> ProgramError:
    return ProgramError("ProgramMalformed", why=why)


def _too_large(what: str, found: int, most: int, unit: str) -> ProgramError:
    return ProgramError("ProgramTooLarge", what=what, found=found, most=most, unit=unit)


def _program(found: dict[str, Any]) -> Program:
    given = found["input"]
    if not isinstance(given, dict) or set(given) != {"shape", "type"} or given["type"] not in ("float32", "int64"):
        raise malformed("its input is not a shape with the type float32 or int64")
    program = Program(
        _shape(given["shape"], "its input"), given["type"], _integer(found["outputs"], 1, 1 << 20, "outputs"),
        dict(_tensor(one, 2)[:2] for one in _tensors(found["trainable"])),
        dict(_tensor(one, 2)[:2] for one in _tensors(found["moving"])),
        {name: (shape, type_) for name, shape, type_ in (_tensor(one, 3) for one in _tensors(found["frozen"]))},
        tuple(_call(at, one) for at, one in enumerate(_nodes(found["nodes"]))),
    )  # fmt: skip
    _require_tensors(program, sum(len(found[kind]) for kind in ("trainable", "moving", "frozen")))
    return program


def _require_tensors(program: Program, stated: int) -> None:
    """Each tensor is stated once, is used, and is written only if it is a moving one, by one node."""
    known = {**program.trainable, **program.moving, **program.frozen}
    if len(known) != stated:
        raise malformed("two of its tensors have one name")
    if not program.trainable:
        raise malformed("it has no trainable tensor")
    used, written = set[str](), list[str]()
    for at, call in enumerate(program.nodes):
        used |= {one.name for one in call.all_arguments() if isinstance(one, Tensor)}
        for index in MOVING.get(call.operator, ()):
            into = call.arguments[index] if index < len(call.arguments) else None
            if isinstance(into, Tensor) and into.name in program.moving:
                written.append(into.name)
            elif not (into is None or _is_still(call, program, into)):
                raise malformed(f"node {at} would write into something that is not a moving tensor")
    if unknown := sorted(used - set(known)):
        raise malformed(f"a node uses the tensor {unknown[0]}, which it does not have")
    if unused := sorted(set(known) - used):
        raise malformed(f"no node uses the tensor {unused[0]}")
    if sorted(written) != sorted(program.moving):
        raise malformed("a moving tensor is not written by exactly one node")


def _is_still(call: Call, program: Program, means: Argument) -> bool:
    """True of a norm that has frozen means, and no rows' own."""
    flag = call.arguments[SWITCHED[call.operator]] if len(call.arguments) > SWITCHED[call.operator] else None
    return isinstance(means, Tensor) and means.name in program.frozen and flag is False


def _nodes(given: Any) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise malformed("it has no list of nodes")
    if len(given) > MOST_NODES:
        raise _too_large("its graph", len(given), MOST_NODES, "nodes")
    return given


def _tensors(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise malformed("its tensors are not in lists")
    if len(given) > MOST_TENSORS:
        raise _too_large("its list", len(given), MOST_TENSORS, "tensors")
    return given


def _tensor(given: Any, parts: int) -> tuple[str, Shape, str]:
    if not isinstance(given, list) or len(given) != parts:
        raise malformed(f"a tensor does not have {parts} parts: name, shape, and a frozen one its type")
    name, type_ = _name(given[0]), given[2] if parts == 3 else TYPES[0]
    if type_ not in TYPES:
        raise malformed(f"the tensor {name} has a type that is not one of {', '.join(TYPES)}")
    return name, _shape(given[1], f"the tensor {name}"), type_


def _name(given: Any) -> str:
    if not isinstance(given, str) or len(given) > LONGEST_NAME or not _NAME.fullmatch(given):
        raise malformed("a tensor's name is not letters, digits and _ in parts with points between")
    return given


def _shape(given: Any, what: str) -> Shape:
    if not isinstance(given, list) or len(given) > MOST_DIMENSIONS:
        raise malformed(f"{what} does not have a shape of at most {MOST_DIMENSIONS} dimensions")
    return tuple(_integer(one, 1, MOST_SIZE, f"a size of {what}") for one in given)


def _integer(given: Any, least: int, most: int, what: str) -> int:
    if type(given) is not int or not least <= given <= most:
        raise malformed(f"{what} is not an integer from {least} to {most}")
    return given


def _call(at: int, given: Any) -> Call:
    if not isinstance(given, list) or len(given) != 3:
        raise malformed(f"node {at} is not an operator, arguments and named arguments")
    operator, arguments, named = given
    if not isinstance(operator, str) or operator not in ALLOWED:
        raise ProgramError("OperatorForbidden", node=at, operator=str(operator)[:LONGEST_NAME])
    if not isinstance(arguments, list) or not isinstance(named, dict) or len(arguments) + len(named) > MOST_ARGUMENTS:
        raise malformed(f"node {at} has no list of at most {MOST_ARGUMENTS} arguments")
    if any(not re.fullmatch(r"[a-z_]{1,32}", name) for name in named):
        raise malformed(f"node {at} has an argument with a name that no operator has")
    return Call(
        operator, tuple(_argument(at, one, True) for one in arguments),
        {name: _argument(at, one, True) for name, one in named.items()},
    )  # fmt: skip


def _argument(at: int, given: Any, lists: bool) -> Argument:
    if given is None or isinstance(given, bool | float):
        return given
    if isinstance(given, int):
        return given if given == SLICE_END else _integer(given, -MOST_SIZE, MOST_SIZE, f"an argument of node {at}")
    if isinstance(given, str):
        if len(given) > LONGEST_TEXT or not _TEXT.fullmatch(given):
            raise malformed(f"node {at} has a text that no operator takes")
        return given
    if isinstance(given, list):
        if not lists or len(given) > MOST_OF_LIST:
            raise malformed(f"node {at} has a list of lists, or of more than {MOST_OF_LIST} arguments")
        return tuple(_argument(at, one, False) for one in given)
    return _reference(at, given)


def _reference(at: int, given: Any) -> Argument:
    match given:
        case {"node": int(number)} if len(given) == 1 and type(number) is int and 0 <= number < at:
            return Node(number)
        case {"tensor": name} if len(given) == 1:
            return Tensor(_name(name))
        case {"input": 0} if len(given) == 1 and type(given["input"]) is int:
            return Input()
        case {"type": str(name)} if len(given) == 1 and name in TYPES:
            return Type(name)
        case {"float": str(name)} if len(given) == 1 and name in _NOT_FINITE:
            return _NOT_FINITE[name]
    raise malformed(f"node {at} has an argument that is no earlier node, tensor, input, type or float")


# --- writing -------------------------------------------------------------------------------------------------------


def written(program: Program) -> bytes:
    """The program's file."""
    return canonical({
        "format": FORMAT,
        "input": {"shape": program.shape, "type": program.type_},
        "outputs": program.outputs,
        "trainable": [[name, shape] for name, shape in program.trainable.items()],
        "moving": [[name, shape] for name, shape in program.moving.items()],
        "frozen": [[name, shape, type_] for name, (shape, type_) in program.frozen.items()],
        "nodes": [
            [one.operator, [*map(_plain, one.arguments)], {name: _plain(value) for name, value in one.named.items()}]
            for one in program.nodes
        ],
    })  # fmt: skip


def _plain(argument: Argument) -> Any:
    match argument:
        case tuple():
            return [_plain(one) for one in argument]
        case Node(number):
            return {"node": number}
        case Tensor(name):
            return {"tensor": name}
        case Input():
            return {"input": 0}
        case Type(name):
            return {"type": name}
        case float() if not math.isfinite(argument):
            return {"float": "nan" if math.isnan(argument) else f"{argument}"}
    return argument
