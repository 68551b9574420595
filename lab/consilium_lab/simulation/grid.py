"""A task in several forms, each simulated on the same rows: what costs less, and what it costs in accuracy."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.codec_specs import HashCodec, LowRankCodec
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples
from consilium_core.artifacts.backends import Place

from consilium_lab.demo.references import Metrics
from consilium_lab.errors import LabError
from consilium_lab.pages import BLUE, MUTED, figure_of, svg, table_of, write_document
from consilium_lab.simulation.run import simulate

Changes = dict[str, dict[str, Any] | None]
"""Sections of the task file, as they become."""

RATIOS, RANKS = (10, 50, 100), (1, 4)
LEAST_NUMBERS = 4  # of an update
BITS, EPSILONS, TIMES = (4, 8, 16), (8.0, 3.0), (1, 2, 4)
MOST = 0.5  # of the cohorts, that a proposed form accepts
NEAR = 0.01  # of the best metric: a task that costs less is worth that
OUTERS: Mapping[str, dict[str, Any]] = {
    "mean": {"name": "mean"},
    "momentum 0.5": {"name": "momentum"},
    "nesterov": {"name": "nesterov", "fading": 0.7},
}


@dataclass(frozen=True)
class GridRow:
    """`form`: by axis, in words. `bytes_a_round`: the lanes of a hospital's update. `blobs_a_round`: of a hospital.
    `accepted`: share of the cohorts. `is_frontier`: no other is as good with fewer bytes. `task_file`: its text.
    """

    form: Mapping[str, str]
    metrics: Metrics
    bytes_a_round: int
    blobs_a_round: int
    chain_blobs: int
    gas: int
    epsilon: float | None
    accepted: float
    task_file: str
    is_frontier: bool = False


def _codecs(spec: TaskSpec) -> Iterator[tuple[str, Changes]]:
    shapes = spec.model.tensors(spec.data)
    choices: list[tuple[str, HashCodec | LowRankCodec]] = [
        (f"hash 1/{ratio}", HashCodec(name="hash", buckets=max(1, spec.parameters // ratio))) for ratio in RATIOS
    ]
    choices += [(f"lowrank {rank}", LowRankCodec(name="lowrank", rank=rank)) for rank in RANKS]
    yield "dense", {"update": {"codec": {"name": "dense"}}}
    for name, codec in choices:
        try:
            numbers = codec.size(shapes)
        except ValueError:  # it saves nothing in this model
            continue
        if numbers >= LEAST_NUMBERS:
            yield name, {"update": {"codec": codec.model_dump()}}


def _epsilons(spec: TaskSpec) -> Iterator[tuple[str, Changes]]:
    norm = spec.privacy.max_grad_norm if spec.privacy else 1.0
    yield "none", {"privacy": None}
    if spec.statistics == "schema":
        for epsilon in EPSILONS:
            yield f"{epsilon:g}", {"privacy": {"epsilon": epsilon, "max_grad_norm": norm}}


AXES: Mapping[str, Callable[[TaskSpec], Iterator[tuple[str, Changes]]]] = {
    "codec": _codecs,
    "outer": lambda _: ((name, {"outer": outer}) for name, outer in OUTERS.items()),
    "epochs": lambda spec: (
        (str(times * spec.training.epochs), {"training": {"epochs": times * spec.training.epochs, "steps": None}})
        for times in TIMES
    ),
    "bits": lambda _: ((str(bits), {"update": {"bits": bits}}) for bits in BITS),
    "epsilon": _epsilons,
}


def forms(spec: TaskSpec, axes: Sequence[str]) -> list[tuple[dict[str, str], str]]:
    """Each combination, in words, and its task file. Raises LabError (GridUnknown)."""
    if unknown := [axis for axis in axes if axis not in AXES]:
        raise LabError("GridUnknown", axis=unknown[0], known=", ".join(AXES))
    found = []
    for chosen in itertools.product(*(list(AXES[axis](spec)) for axis in axes)):
        whole = spec.model_dump(mode="json", exclude_none=True)
        for _, changes in chosen:
            for section, change in changes.items():
                if change is None:
                    whole.pop(section, None)
                elif section in ("outer", "privacy"):
                    whole[section] = change
                else:
                    whole[section] = _without_none(whole[section] | change)
        words = dict(zip(axes, (name for name, _ in chosen), strict=True))
        found.append((words, tomli_w.dumps(whole)))
    return found


def _without_none(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value is not None}


def simulate_grid(
    spec: TaskSpec,
    axes: Sequence[str],
    hospitals: Mapping[str, Examples],
    voters: Mapping[str, Examples],
    seed: int = 0,
    on_row: Callable[[GridRow, int], None] = lambda row, of: None,
    places: Sequence[Place] = (),
) -> list[GridRow]:
    """Simulates each form of the task that its schema allows. `on_row` gets each, and the number of all forms.

    Raises LabError (GridUnknown), and as `simulate` does.
    """
    rows: list[GridRow] = []
    wanted = forms(spec, axes)
    for words, text in wanted:
        try:
            form = parse_task_spec(text.encode())
        except SpecInvalid:
            continue
        played, costs = simulate(text.encode(), hospitals, voters, seed, compared=False, places=places), estimate(form)
        cohorts = sum(len(one.cohorts) for one in played.rounds)
        last = played.rounds[-1].metrics if played.rounds else played.start
        row = GridRow(
            words, last, -(-form.coordinates * form.update_layout.lane_bits // 8), form.update_blobs,
            costs.published_blobs, costs.all_gas, form.privacy.epsilon if form.privacy else None,
            sum(one.settlement.accepted.bit_count() for one in played.rounds) / max(cohorts, 1), text,
        )  # fmt: skip
        rows.append(row)
        on_row(row, len(wanted))
    return frontier(rows, ranked_by(spec))


def ranked_by(spec: TaskSpec) -> str:
    """The metric by which forms are compared: the task's own, or accuracy in place of its loss."""
    return "accuracy" if spec.judging.metric == "log_loss" else spec.judging.metric


def frontier(rows: Sequence[GridRow], metric: str) -> list[GridRow]:
    """The same rows. Those with no other that is better with as few bytes, or as good with fewer, are marked."""

    def is_behind(one: GridRow, other: GridRow) -> bool:
        mine, theirs = _value(one, metric), _value(other, metric)
        return (
            theirs >= mine
            and other.bytes_a_round <= one.bytes_a_round
            and (theirs > mine or other.bytes_a_round < one.bytes_a_round)
        )

    return [replace(row, is_frontier=not any(is_behind(row, other) for other in rows)) for row in rows]


def proposed(rows: Sequence[GridRow], metric: str) -> GridRow:
    """The row of the fewest bytes whose metric is within NEAR of the best one, and that accepts most cohorts."""
    sound = [row for row in rows if row.accepted >= MOST] or list(rows)
    best = max(_value(row, metric) for row in sound)
    near = [row for row in sound if _value(row, metric) >= best - NEAR]
    return min(near, key=lambda row: (row.bytes_a_round, -_value(row, metric)))


def _value(row: GridRow, metric: str) -> float:
    value = row.metrics[metric]
    return -math.inf if math.isnan(value) else value


def picture(rows: Sequence[GridRow], metric: str) -> Any:
    """A matplotlib figure: the metric by bytes a round, and the frontier as a line."""
    from matplotlib.ticker import LogLocator, NullLocator

    figure, axes = figure_of(9, 4.2)
    line = sorted((row for row in rows if row.is_frontier), key=lambda row: row.bytes_a_round)
    axes.plot([row.bytes_a_round for row in line], [row.metrics[metric] for row in line], color=BLUE, linewidth=1.5)
    points: dict[tuple[int, float], list[GridRow]] = {}
    for row in rows:
        points.setdefault((row.bytes_a_round, round(row.metrics[metric], 3)), []).append(row)
    for point, there in points.items():
        colour = BLUE if there[0].is_frontier else MUTED
        axes.plot(*point, "o", color=colour, markersize=6)
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        axes.annotate(
            ", ".join(there[0].form.values()) + more, point, xytext=(6, -10), textcoords="offset points", fontsize=8,
            color=colour,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("bytes of a hospital's update in a round, in lanes", color=MUTED)
    axes.set_ylabel(f"{metric} on held-out rows", color=MUTED)
    return figure


def write_page(path: Path, rows: Sequence[GridRow], metric: str) -> None:
    """One HTML file that loads nothing."""
    chosen = proposed(rows, metric)
    axes = list(rows[0].form)
    lines = [
        "".join(f"<td>{html.escape(row.form[axis])}" for axis in axes)
        + f"<td class=n>{row.metrics[metric]:.3f}<td class=n>{row.bytes_a_round:,}<td class=n>{row.blobs_a_round}"
        + f"<td class=n>{row.gas / 1e6:,.1f} M<td class=n>{row.accepted:.0%}<td>{'yes' if row.is_frontier else ''}"
        for row in rows
    ]
    head = "".join(f"<th>{axis}" for axis in axes) + f"<th class=n>{metric}<th class=n>bytes<th class=n>blobs"
    head += "<th class=n>gas of all<th class=n>cohorts accepted<th>frontier"
    parts = [
        "<h1>One task in several forms</h1>",
        "<p class=sub>Each was simulated on the same rows. Bytes and blobs are a hospital's in a round.</p>",
        svg(picture(rows, metric)), table_of(head, lines),
        f"<h2>Proposed: {html.escape(in_words(chosen))}</h2>",
        f"<p class=note>The fewest bytes within {NEAR:g} of the best {metric}.</p>",
        f"<pre class=wrap>{html.escape(chosen.task_file)}</pre>",
    ]  # fmt: skip
    write_document(path, "Consilium: one task in several forms", parts)


def in_words(row: GridRow) -> str:
    return ", ".join(f"{axis} {name}" for axis, name in row.form.items())
