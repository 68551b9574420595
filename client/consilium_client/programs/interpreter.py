"""Computes a program: a torch module that calls one allowed operator after the other. Nothing of the author's runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from consilium_client.programs.errors import ProgramError
from consilium_client.programs.operators import CREATING, MOVING, SWITCHED
from consilium_client.programs.program import (
    MOST_OF_LIST,
    MOST_SIZE,
    Argument,
    Call,
    Input,
    Node,
    Program,
    Tensor,
    Type,
)

DTYPES: Final = {"float32": torch.float32, "int64": torch.int64, "int32": torch.int32, "bool": torch.bool}
FAULTS: Final = (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, AttributeError)
LONGEST_FAULT: Final = 200  # characters
Watch = Callable[[int, Any], None]


@dataclass
class _State:
    """`tensors`: by name, as they are now. `values`: the nodes' results so far."""

    rows: torch.Tensor
    tensors: Mapping[str, torch.Tensor]
    values: list[Any]
    real: torch.dtype  # instead of float32
    training: bool


_Read = Callable[[_State], Any]


class Interpreter(nn.Module):
    """(n, *shape) -> logits (n, outputs). Its parameters are the trainable tensors, in their order."""

    def __init__(self, program: Program, tensors: Mapping[str, torch.Tensor]) -> None:
        """`tensors`: all of the program's, of their shapes and types. They are not copied."""
        super().__init__()
        self.program = program
        self.trained = nn.ParameterList([nn.Parameter(tensors[name]) for name in program.trainable])
        self.moving = {name: tensors[name] for name in program.moving}
        self._frozen = {name: tensors[name] for name in program.frozen}
        self._steps = [_step(call, program) for call in program.nodes]
        self._spent = _spent(program)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Interpreter:
        """As `.to` and `.double` need it: names with points cannot be buffers of a module."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.moving = {name: fn(one) for name, one in self.moving.items()}
        self._frozen = {name: fn(one) for name, one in self._frozen.items()}
        return self

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.computed(rows)[-1]
        return logits

    def computed(
        self,
        rows: torch.Tensor,
        watch: Watch = lambda at, found: None,
        trained: Sequence[torch.Tensor] | None = None,
        kept: int | None = None,
    ) -> list[Any]:
        """The nodes' results: the last, that of node `kept`, and None for others, whose memory is given back after
        their last use. `watch` gets each, with its number, before the next is computed. `trained`: instead of the
        parameters. Raises ProgramFailed.
        """
        given = self.trained if trained is None else trained
        tensors = {**dict(zip(self.program.trainable, given, strict=True)), **self.moving, **self._frozen}
        state = _State(rows, tensors, [], self.trained[0].dtype, self.training)
        for at, step in enumerate(self._steps):
            try:
                found = step(state)
            except FAULTS as error:
                why = f"{error}".partition("\n")[0][:LONGEST_FAULT]
                operator_ = self.program.nodes[at].operator
                raise ProgramError("ProgramFailed", node=at, operator=operator_, why=why) from error
            state.values.append(found)
            watch(at, found)
            for number in self._spent[at]:
                if number != kept:
                    state.values[number] = None
            del found
        return state.values


def _spent(program: Program) -> list[list[int]]:
    """For each node the results that no later one uses. The last result stays."""
    last = {at: at for at in range(len(program.nodes))}
    for at, call in enumerate(program.nodes):
        last |= {one.number: at for one in call.all_arguments() if isinstance(one, Node)}
    del last[len(program.nodes) - 1]
    found: list[list[int]] = [[] for _ in program.nodes]
    for number, at in last.items():
        found[at].append(number)
    return found


def _step(call: Call, program: Program) -> _Read:
    function, flag, norm = _function(call.operator), SWITCHED.get(call.operator), call.operator in MOVING
    means = call.arguments[MOVING[call.operator][0]] if norm else None
    if norm and not (isinstance(means, Tensor) and means.name in program.moving):
        flag, norm = None, False
    readers = [_reader(one) for one in call.arguments]
    named = {name: _reader(one) for name, one in call.named.items()}
    creates, variance = call.operator in CREATING, MOVING[call.operator][1] if norm else 0

    def step(state: _State) -> Any:
        given = [read(state) for read in readers]
        if flag is not None:
            given[flag] = state.training
        if norm and not state.training:  # rounding a sum of updates can leave a variance below zero
            given[variance] = given[variance].clamp(min=0)
        others = {name: read(state) for name, read in named.items()}
        if creates:
            others["device"] = state.rows.device
        return function(*given, **others)

    return step


def _function(name: str) -> Callable[..., Any]:
    """Of an allowed operator."""
    if name == "item":
        return operator.getitem
    kind, _, overload = name.partition(".")
    if kind == "int":
        return _bounded(getattr(operator, overload))
    if name == "view.default":  # strides, which views need, differ between devices and versions of PyTorch
        kind = "reshape"
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, kind), overload)
    if name in _RECURRENT:
        return _in_single_precision(found)
    return _few(found, *_PARTS[name]) if name in _PARTS else found


_RECURRENT: Final = frozenset({"gru.input", "lstm.input"})


def _in_single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Also in mixed precision: few processors train recurrent layers in bfloat16."""

    def compute(*given: Any) -> Any:
        rows = given[0]
        device = rows.device.type
        if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
            return function(*given)
        with torch.autocast(device, enabled=False):
            return function(*map(whole, given))

    def whole(one: Any) -> Any:
        if isinstance(one, list):
            return list(map(whole, one))
        return one.float() if isinstance(one, torch.Tensor) and one.dtype is torch.bfloat16 else one

    return compute


# Of operators that give a list: the index of the dimension's argument, and how many tensors come of its size.
_PARTS: Final[Mapping[str, tuple[int, Callable[[int, int], int]]]] = {
    "unbind.int": (0, lambda size, _: size),
    "chunk.default": (1, lambda size, parts: min(size, parts)),
    "split.Tensor": (1, lambda size, length: -(-size // length)),
}


def _few(function: Callable[..., Any], index: int, parts: Callable[[int, int], int]) -> Callable[..., Any]:
    """Bounds the list: of a large dimension it would fill the memory."""

    def compute(given: torch.Tensor, *others: int) -> Any:
        dimension = others[index] if index < len(others) else 0
        many = parts(given.shape[dimension], others[0] if index else 0)
        if many > MOST_OF_LIST:
            raise ValueError(f"it would give {many} tensors, more than {MOST_OF_LIST}")
        return function(given, *others)

    return compute


def _bounded(function: Callable[..., int]) -> Callable[..., int]:
    """Integers that no graph can make grow."""

    def compute(*numbers: int) -> int:
        if any(isinstance(one, torch.SymInt) for one in numbers):  # of a tracer, which computes nothing
            return function(*numbers)
        if not all(type(one) is int for one in numbers):
            raise TypeError("it takes integers")
        found = function(*numbers)
        if abs(found) > MOST_SIZE:
            raise ValueError(f"its result is beyond {MOST_SIZE}")
        return found

    return compute


def _reader(argument: Argument) -> _Read:
    match argument:
        case Node(number):
            return lambda state: state.values[number]
        case Tensor(name):
            return lambda state: state.tensors[name]
        case Input():
            return lambda state: state.rows
        case Type(name):
            dtype = DTYPES[name]
            return lambda state: state.real if dtype is torch.float32 else dtype
        case tuple():
            readers = [_reader(one) for one in argument]
            return lambda state: [read(state) for read in readers]
    return lambda state: argument
