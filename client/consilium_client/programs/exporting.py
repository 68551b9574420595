"""Makes a program from a PyTorch module, on its author's machine. Only here does the author's code run.

`torch.export` traces the module, as it evaluates, into a graph of ATen operators. This keeps the graph, and leaves out
all that only its tracing needs.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn

from consilium_client.programs.errors import ProgramError
from consilium_client.programs.interpreter import DTYPES, Interpreter
from consilium_client.programs.measuring import measured
from consilium_client.programs.operators import ALLOWED, INTEGERS, MOVING
from consilium_client.programs.program import Argument, Call, Input, Node, Program, Tensor, Type, parse_program, written

TOLERANCE: Final = 1e-4  # of logits, relative to their size: other kernels may add in another order
_LEFT_OUT = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking", "copy"})  # of named arguments
_SAME: Final[Mapping[str, str]] = {  # other names of one operator
    "lift_fresh_copy.default": "clone.default", "alias.default": "clone.default", "to.other": "type_as.default",
    "alias_copy.default": "clone.default",
}  # fmt: skip
_CONVERSIONS = frozenset({"to.dtype", "to.dtype_layout", "to.device", "_to_copy.default"})
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Exported:
    """`tensors`: all of the program's, with their starting values."""

    program: Program
    raw: bytes
    tensors: Mapping[str, NDArray[Any]]


def exported(module: nn.Module, example: torch.Tensor, outputs: str | int | None = None) -> Exported:
    """`example`: two or more rows of the model's input. `outputs`: the name or index of the logits in the module's
    result, if that is no tensor. Norms that evaluate while the module trains (`norm.eval()`) keep their running means.

    Raises ProgramError (NotExportable, and as `parse_program` does).
    """
    if example.ndim < 2 or len(example) < 2 or example.dtype not in (torch.float32, torch.int64):
        raise _not("the example is not two or more rows of float32 or int64: stack two of them")
    trained = {name: one.training for name, one in module.named_modules()}
    still = {name for name, trains in trained.items() if module.training and not trains}
    try:
        with _without_caches(module):
            return _evaluating(_Logits(module, outputs).eval(), example, still)
    finally:
        for name, one in module.named_modules():
            one.training = trained[name]


@contextmanager
def _without_caches(module: nn.Module) -> Iterator[None]:
    """Models of `transformers` keep what earlier tokens gave, for the next call. A program has no next call."""
    configs = [getattr(part, "config", None) for part in module.modules()]
    caching = [one for one in configs if one is not None and getattr(one, "use_cache", False)]
    for one in caching:
        one.use_cache = False
    try:
        yield
    finally:
        for one in caching:
            one.use_cache = True


def _evaluating(module: nn.Module, example: torch.Tensor, still: Collection[str]) -> Exported:
    try:
        with warnings.catch_warnings(action="ignore"):  # of the author's module: the graph below is checked anyway
            traced = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim.AUTO},), strict=False)
    except Exception as error:  # of the author's code and of the tracer: all kinds
        raise _not(f"PyTorch cannot trace it: {f'{error}'.strip().partition(chr(10))[0][:300]}") from error
    graph = _Graph(traced, example, still)
    raw = written(graph.program())
    program = parse_program(raw)
    measured(program, 1, training=False)
    for rows in (2, len(example) + 1):
        measured(program, rows)
    tensors = {name: graph.tensors[name].detach().numpy() for name in (*program.learnt, *program.frozen)}
    found = Exported(program, raw, tensors)
    _require_equal(module, found, example)
    return found


class _Logits(nn.Module):
    def __init__(self, module: nn.Module, outputs: str | int | None) -> None:
        super().__init__()
        self.module, self._outputs = module, outputs

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found = self.module(rows)
        if isinstance(self._outputs, str) and not isinstance(found, Mapping):
            found = getattr(found, self._outputs)
        elif self._outputs is not None:
            found = found[self._outputs]
        if not isinstance(found, torch.Tensor) or found.ndim not in (2, 3):
            raise ValueError("its result is no tensor of rows and logits: name these by outputs=")
        return found


def _require_equal(module: nn.Module, found: Exported, example: torch.Tensor) -> None:
    """The program computes as the module does."""
    tensors = {name: torch.from_numpy(np.array(values)) for name, values in found.tensors.items()}
    again = Interpreter(found.program, tensors).eval()
    with torch.no_grad():
        for rows in (example, example[:1]):
            try:
                expected = module(rows)
            except Exception as error:  # of the author's code: all kinds
                raise _not(f"it cannot compute {len(rows)} row(s): {error}") from error
            given = again(rows)
            size = float(expected.abs().max()) or 1.0
            if not torch.allclose(given, expected, atol=TOLERANCE * size, rtol=0):
                raise _not("the graph computes other logits than the module: it changes a tensor that it shares")
        if given.ndim == 3:
            _require_causal(again, example)


def _require_causal(program: Interpreter, example: torch.Tensor) -> None:
    """No token's logits may depend on later tokens: with the answer in sight, a language model learns nothing."""
    middle = example.shape[1] // 2
    other = example.clone()
    other[:, middle:] = (example[:, middle:] == 0).long()
    before, after = program(example)[:, :middle], program(other)[:, :middle]
    if not torch.allclose(before, after, rtol=0, atol=TOLERANCE * (float(before.abs().max()) or 1.0)):
        raise _not("a token's logits depend on later tokens: give the model a causal mask")


class _Graph:
    """A traced graph as a program's nodes. `tensors`: by name. `still`: modules whose running means do not move."""

    def __init__(self, traced: torch.export.ExportedProgram, example: torch.Tensor, still: Collection[str]) -> None:
        self._still = still
        self.tensors: dict[str, torch.Tensor] = {}
        self._calls: list[Call] = []
        self._known: dict[fx.Node, Argument] = {}
        self._shape, self._type = tuple(example.shape[1:]), _NAMES[example.dtype]
        self._bind(traced)
        logits = self._inlined(traced.graph_module, traced.graph)[0]
        if not isinstance(logits, Node):
            raise _not("its result depends on no operator")
        self._last = logits.number

    def _bind(self, traced: torch.export.ExportedProgram) -> None:
        placeholders = {one.name: one for one in traced.graph.nodes if one.op == "placeholder"}
        values = {**traced.state_dict, **traced.constants}
        for spec in traced.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT:
                self._known[node] = Input()
                continue
            value = values.get(spec.target or "")
            if not isinstance(value, torch.Tensor):
                raise _not(f"{spec.target} is no tensor")
            name = self._known_as(value) or (spec.target or "").removeprefix("module.")
            self._known[node] = Tensor(name)
            self.tensors[name] = value
        if traced.graph_signature.buffers_to_mutate:
            raise _not("it changes a buffer in evaluation")

    def _known_as(self, value: torch.Tensor) -> str | None:
        """The name of the same tensor, if a module has it under two: they must stay one in training."""
        return next((name for name, one in self.tensors.items() if _is_same(one, value)), None)

    def program(self) -> Program:
        """Without nodes that lead to nothing, and tensors that no node uses."""
        calls = self._needed()
        used = {one.name for call in calls for one in call.all_arguments() if isinstance(one, Tensor)}
        moving = [
            one.name for call in calls for index in MOVING.get(call.operator, ())
            if isinstance(one := call.arguments[index], Tensor) and one.name.rpartition(".")[0] not in self._still
        ]  # fmt: skip
        trainable, frozen = dict[str, tuple[int, ...]](), dict[str, tuple[tuple[int, ...], str]]()
        for name, value in self.tensors.items():
            if name in used and name not in moving:
                if isinstance(value, nn.Parameter) and value.requires_grad:
                    trainable[name] = tuple(value.shape)
                else:
                    frozen[name] = tuple(value.shape), _type_of(name, value.dtype)
                _type_of(name, value.dtype)
        return Program(
            self._shape, self._type, self._outputs, trainable,
            {name: tuple(self.tensors[name].shape) for name in moving}, frozen, calls,
        )  # fmt: skip

    def _needed(self) -> list[Call]:
        """The nodes that the last one needs, by their new numbers."""
        needed, last = {self._last}, self._last
        for at in range(last, -1, -1):
            if at in needed:
                needed |= {one.number for one in self._calls[at].all_arguments() if isinstance(one, Node)}
        number = {old: new for new, old in enumerate(sorted(needed))}

        def moved(argument: Argument) -> Argument:
            if isinstance(argument, tuple):
                return tuple(map(moved, argument))
            return Node(number[argument.number]) if isinstance(argument, Node) else argument

        return [
            Call(one.operator, tuple(map(moved, one.arguments)), {name: moved(it) for name, it in one.named.items()})
            for one in (self._calls[at] for at in sorted(needed))
        ]

    def _inlined(self, owner: nn.Module, graph: fx.Graph) -> list[Argument]:
        """Appends a graph's nodes; returns its results. Its placeholders are known."""
        for node in graph.nodes:
            if node.op == "call_function":
                self._call(owner, node)
            elif node.op == "output":
                (results,) = node.args
                first = results[0] if isinstance(results, tuple | list) else results
                value = first.meta.get("val") if isinstance(first, fx.Node) else None
                if isinstance(value, torch.Tensor) and value.ndim in (2, 3):
                    self._outputs = int(value.shape[-1])
                return [self._argument(one) for one in results]
        raise AssertionError("a graph ends with its output")

    def _call(self, owner: nn.Module, node: fx.Node) -> None:
        name = _operator(node)
        if name.startswith(("_assert", "sym_constrain", "_guards")):
            return
        if name == "wrap_with_set_grad_enabled":
            self._known[node] = self._without_gradients(owner, node)
            return
        if name == "item":
            of = self._known[node.args[0]]  # type: ignore[index]
            if isinstance(of, tuple):
                self._known[node] = of[int(node.args[1])]  # type: ignore[arg-type]
                return
        if name in _CONVERSIONS:
            self._convert(node)
            return
        in_place = name.partition(".")[0].endswith("_") and not name.startswith("__")
        plain = name.replace("_.", ".", 1) if in_place else name
        plain = _SAME.get(plain, plain)
        if plain not in ALLOWED:
            raise _not(f"it needs the operator {name}, which no program may have")
        arguments = tuple(self._argument(one) for one in node.args)
        given = {key: one for key, one in node.kwargs.items() if key not in _LEFT_OUT and one is not None}
        named = {key: self._argument(one) for key, one in given.items()}
        self._calls.append(Call(plain, arguments, named))
        self._known[node] = Node(len(self._calls) - 1)
        if in_place:
            self._renew(node)

    def _convert(self, node: fx.Node) -> None:
        """Between types; the device is the reader's own."""
        given, types = self._argument(node.args[0]), [one for one in _flat(node) if isinstance(one, torch.dtype)]
        if not types:
            self._known[node] = given
            return
        self._calls.append(Call("to.dtype", (given, self._argument(types[0])), {}))
        self._known[node] = Node(len(self._calls) - 1)

    def _renew(self, node: fx.Node) -> None:
        """Later nodes read from its result what an operator wrote in place. `_require_equal` finds shared memory."""
        self._known[node.args[0]] = self._known[node]  # type: ignore[index]

    def _without_gradients(self, owner: nn.Module, node: fx.Node) -> Argument:
        enabled, part, *given = node.args
        if not isinstance(part, fx.Node) or not isinstance(part.target, str):
            raise _not("it has a part that no graph holds")
        inner = getattr(owner, part.target)
        placeholders = [one for one in inner.graph.nodes if one.op == "placeholder"]
        self._known |= dict(zip(placeholders, map(self._argument, given), strict=True))
        results = self._inlined(inner, inner.graph)
        if enabled:
            return tuple(results)
        found: list[Argument] = []
        for one in results:
            self._calls.append(Call("detach.default", (one,), {}))
            found.append(Node(len(self._calls) - 1))
        return tuple(found)

    def _argument(self, given: Any) -> Argument:
        if isinstance(given, fx.Node):
            return self._known[given]
        if isinstance(given, torch.dtype):
            if given not in _NAMES:
                raise _not(f"it computes in {given}: use float32")
            return Type(_NAMES[given])
        if isinstance(given, list | tuple):
            return tuple(map(self._argument, given))
        if given is None or isinstance(given, bool | int | float | str):
            return given
        raise _not(f"an operator has an argument that no program holds: {type(given).__name__}")


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.data_ptr(), one.shape, one.stride(), one.dtype) == (
        other.data_ptr(),
        other.shape,
        other.stride(),
        other.dtype,
    )


def _flat(node: fx.Node) -> tuple[Any, ...]:
    return (*node.args, *node.kwargs.values())


def _operator(node: fx.Node) -> str:
    """A target's name as programs have it."""
    if isinstance(node.target, torch._ops.OpOverload):
        space, _, name = f"{node.target}".partition(".")
        return name if space == "aten" else f"{node.target}"
    if node.target is operator.getitem:
        return "item"
    name = getattr(node.target, "__name__", f"{node.target}")
    return f"int.{name}" if name in INTEGERS and getattr(operator, name, None) is node.target else name


def _type_of(name: str, dtype: torch.dtype) -> str:
    if dtype not in _NAMES:
        raise _not(f"the tensor {name} is {dtype}: convert the module by .float()")
    return _NAMES[dtype]


def _not(why: str) -> ProgramError:
    return ProgramError("NotExportable", why=why)
