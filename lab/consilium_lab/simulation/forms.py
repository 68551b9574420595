"""The forms of a task that a grid plays, by axis: in words, and as a task file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomli_w
from consilium_chain.tasks.codec_specs import CodecSpec, DctCodec, HashCodec, LowRankCodec, SketchCodec
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_lab.errors import LabError

Changes = Mapping[str, dict[str, Any] | None]
"""Sections of the task file, as they become."""

RATIOS, RANKS = (10, 50, 100), (1, 4)
LEAST_NUMBERS = 4  # of an update
BITS, EPSILONS, TIMES, DROPOUTS = (4, 8, 16), (8.0, 3.0), (1, 2, 4), (0.0, 0.1, 0.3)
OUTERS: Mapping[str, dict[str, Any]] = {
    "mean": {"name": "mean"},
    "momentum 0.5": {"name": "momentum"},
    "nesterov": {"name": "nesterov", "fading": 0.7},
}


@dataclass(frozen=True)
class Choice:
    """A point of an axis. `hospitals`: the number that take part. `dropouts`: the chance of each to miss a round."""

    name: str
    sections: Changes = field(default_factory=dict)
    hospitals: int | None = None
    dropouts: float | None = None


@dataclass(frozen=True)
class Form:
    """`words`: by axis. `task_file`: its text. `hospitals`, `dropouts`: as in `Choice`."""

    words: Mapping[str, str]
    task_file: str
    hospitals: int
    dropouts: float


def _codecs(spec: TaskSpec, hospitals: int) -> Iterator[Choice]:
    shapes = spec.model.tensors(spec.data)
    choices: list[tuple[str, CodecSpec]] = [
        (f"hash 1/{ratio}", HashCodec(name="hash", buckets=max(1, spec.parameters // ratio))) for ratio in RATIOS
    ]
    choices += [(f"lowrank {rank}", LowRankCodec(name="lowrank", rank=rank)) for rank in RANKS]
    choices.append(("dct 1/16", DctCodec(name="dct", kept=4)))
    choices.append(("sketch 1/10", SketchCodec(name="sketch", columns=max(1, spec.parameters // 30))))
    yield Choice("dense", {"update": {"codec": {"name": "dense"}}})
    for name, codec in choices:
        try:
            numbers = codec.size(shapes)
        except ValueError:  # it saves nothing in this model
            continue
        if numbers >= LEAST_NUMBERS:
            yield Choice(name, {"update": {"codec": codec.model_dump(exclude_none=True), **_ranges(spec, codec)}})


def _ranges(spec: TaskSpec, codec: CodecSpec) -> dict[str, float]:
    """A number of a sketch adds up many values, with chance signs: its range grows with their root."""
    if not isinstance(codec, SketchCodec):
        return {}
    summed = math.ceil(math.sqrt(spec.parameters / codec.columns))
    return {"value_range": summed * spec.update.value_range, "clip_norm": codec.rows * spec.update.clip_norm}


def _epsilons(spec: TaskSpec, hospitals: int) -> Iterator[Choice]:
    norm = spec.privacy.max_grad_norm if spec.privacy else 1.0
    yield Choice("none", {"privacy": None})
    if spec.statistics == "schema":
        for epsilon in EPSILONS:
            yield Choice(f"{epsilon:g}", {"privacy": {"epsilon": epsilon, "max_grad_norm": norm}})


def _epochs(spec: TaskSpec, hospitals: int) -> Iterator[Choice]:
    for epochs in (times * spec.training.epochs for times in TIMES):
        yield Choice(str(epochs), {"training": {"epochs": epochs, "steps": None}})


def _hospitals(spec: TaskSpec, hospitals: int) -> Iterator[Choice]:
    """All, half of them, and the fewest that the task allows. The task admits no more, so that its costs are theirs."""
    rounds = spec.rounds
    least = min(rounds.min_hospitals, hospitals)
    for count in sorted({hospitals, max(-(-hospitals // 2), least), least}, reverse=True):
        # As many cohorts as the contract forms of them.
        cohorts = max(1, min(rounds.cohorts, count // rounds.min_cohort_size))
        sections: Changes = {"rounds": {"max_hospitals": count, "cohorts": cohorts}}
        yield Choice(f"{count} of {hospitals}", sections, hospitals=count)


AXES: Mapping[str, Callable[[TaskSpec, int], Iterator[Choice]]] = {
    "codec": _codecs,
    "outer": lambda *_: (Choice(name, {"outer": outer}) for name, outer in OUTERS.items()),
    "epochs": _epochs,
    "bits": lambda *_: (Choice(str(bits), {"update": {"bits": bits}}) for bits in BITS),
    "epsilon": _epsilons,
    "hospitals": _hospitals,
    "dropouts": lambda *_: (Choice(f"{chance:.0%}", dropouts=chance) for chance in DROPOUTS),
}


def forms(spec: TaskSpec, axes: Sequence[str], hospitals: int, dropouts: float = 0.0) -> list[Form]:
    """Each combination. `hospitals`, `dropouts`: where no axis varies them. Raises LabError (GridUnknown)."""
    if unknown := [axis for axis in axes if axis not in AXES]:
        raise LabError("GridUnknown", axis=unknown[0], known=", ".join(AXES))
    found, axes = [], list(dict.fromkeys(axes))
    for chosen in itertools.product(*(list(AXES[axis](spec, hospitals)) for axis in axes)):
        words = {axis: choice.name for axis, choice in zip(axes, chosen, strict=True)}
        counts = [choice.hospitals for choice in chosen if choice.hospitals is not None]
        chances = [choice.dropouts for choice in chosen if choice.dropouts is not None]
        text = _changed(spec, [choice.sections for choice in chosen])
        found.append(Form(words, text, (counts or [hospitals])[0], (chances or [dropouts])[0]))
    return found


def _changed(spec: TaskSpec, changes: Sequence[Changes]) -> str:
    """The task file with these sections."""
    whole = spec.model_dump(mode="json", exclude_none=True)
    for section, change in itertools.chain.from_iterable(one.items() for one in changes):
        if change is None:
            whole.pop(section, None)
        elif section in ("outer", "privacy"):
            whole[section] = change
        else:
            merged = whole[section] | change
            whole[section] = {name: value for name, value in merged.items() if value is not None}
    return tomli_w.dumps({name: whole[name] for name in TaskSpec.model_fields if name in whole})  # [sale] stays last


def taking_part(rows: Mapping[str, int], count: int) -> list[str]:
    """`count` hospitals, evenly spaced among all in the order of their rows, the largest first. In the given order."""
    by_rows = sorted(rows, key=lambda name: -rows[name])
    chosen = {by_rows[index * len(by_rows) // count] for index in range(count)}
    return [name for name in rows if name in chosen]
