"""`consilium simulate TASK.toml`: a task's rounds on one's own rows, in this process. Loads nothing heavy at first."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_client.data.examples import Examples
    from consilium_lab.simulation.run import PlayedRound, Simulation

SITES_OPTION = "NAME=PATH of a hospital's table, or of its folder of texts or images; one for each hospital"


class TaskByDefault(TyperGroup):
    """`consilium simulate FILE …` is `consilium simulate task FILE …`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args[0] in self.commands or not Path(args[0]).suffix
        return super().resolve_command(ctx, args if known else ["task", *args])


def simulate_task_command(
    task: Annotated[Path, typer.Argument(help="task file, TOML (docs/operator.md)")],
    site: Annotated[list[str], typer.Option(help=SITES_OPTION)],
    voter: Annotated[list[str], typer.Option(help="NAME=PATH of a voter's held-out data; one for each voter")],
    mapping: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PATH of a mapping for this hospital's or voter's data (docs/data.md)"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="seed of cohorts, of decoys and of the reference trainings")] = 0,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="file for the result, JSON")] = None,
) -> None:
    """Plays a task's rounds on your own data in this process: training, sums, judging and pay. Nothing leaves it."""
    from consilium_lab.simulation.run import simulate
    from consilium_operators.proposals import read_task
    from rich.console import Console

    raw, spec = read_task(task)
    sites, voters, mappings = (_named(given, what) for given, what in
                               ((site, "--site"), (voter, "--voter"), (mapping or [], "--mapping")))  # fmt: skip
    if unknown := [name for name in mappings if name not in sites | voters]:
        raise click.BadParameter(f"{unknown[0]} is neither a site nor a voter", param_hint="--mapping")
    if both := sorted(sites.keys() & voters.keys()):
        raise click.BadParameter(f"{both[0]} is a site, too; give it another name", param_hint="--voter")
    console = Console()
    hospitals = _read(sites, mappings, spec, held_out=False)
    held_out = _read(voters, mappings, spec, held_out=True)
    rows = ", ".join(f"{name} {part.rows}" for name, part in hospitals.items())
    console.print(f"{spec.name}: {spec.parameters:,} parameters; rows: {rows}; held out:"
                  f" {sum(part.rows for part in held_out.values())}", highlight=False)  # fmt: skip
    with console.status(f"round 1 of {spec.rounds.rounds}") as status:

        def on_round(played: PlayedRound) -> None:
            done = played.number == spec.rounds.rounds
            status.update("reference trainings" if done else f"round {played.number + 1} of {spec.rounds.rounds}")

        result = simulate(raw, hospitals, held_out, seed, on_round)
    _show(console, result)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(as_json(result), indent=1, allow_nan=False) + "\n")
        console.print(f"written: {output}", highlight=False)
    console.print(f"\nNext: consilium operator check {task}   # its costs and risks\n"
                  "      consilium demo               # the same rounds with a chain and a process for each party",
                  highlight=False)  # fmt: skip


def _named(given: list[str], option: str) -> dict[str, Path]:
    """Paths by name. Raises BadParameter."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{text!r} is not NAME=PATH", param_hint=option)
        if name in found:
            raise click.BadParameter(f"the name {name!r} is given twice", param_hint=option)
        if not Path(path).exists():
            raise click.BadParameter(f"{path} does not exist", param_hint=option)
        found[name] = Path(path)
    return found


def _read(paths: dict[str, Path], mappings: dict[str, Path], spec: TaskSpec, held_out: bool) -> dict[str, Examples]:
    """Raises DataError."""
    from consilium_client.data.kinds import read_examples

    return {
        name: read_examples(path, spec.data, mappings.get(name), allow_one_class=not held_out)
        for name, path in paths.items()
    }


def _show(console: Any, result: Simulation) -> None:
    from consilium_core.units import tokens
    from rich import box
    from rich.table import Table

    rounds = Table(box=box.SIMPLE_HEAD)
    for title in ("round", "accuracy", "AUC", "log loss"):
        rounds.add_column(title, justify="right")
    rounds.add_column("improvement by cohort, as the voters' median")
    rounds.add_row("0", *_metrics(result.start), "")
    for played in result.rounds:
        rounds.add_row(str(played.number), *_metrics(played.metrics), _cohorts(result, played))
    console.print(rounds)
    money = Table(box=box.SIMPLE_HEAD)
    for title in ("party", "paid", "slashed", "accuracy alone"):
        money.add_column(title, justify="left" if title == "party" else "right")
    for name, paid in result.paid.items():
        alone = f"{result.alone[name]['accuracy']:.3f}" if name in result.alone else ""
        money.add_row(name, tokens(paid), tokens(result.slashed[name]), alone)
    console.print(money)
    last, plain = result.rounds[-1].metrics, "" if result.spec.privacy is None else ", without noise,"
    console.print(f"together {last['accuracy']:.3f}; all rows in one place{plain} {result.pooled['accuracy']:.3f};"
                  " accuracy on the voters' rows", highlight=False)  # fmt: skip
    if len(result.rounds) < result.spec.rounds.rounds:
        console.print("the task ended early: too few hospitals have a bond left", style="yellow")
    if result.spec.privacy is not None:
        epsilon, delta = result.spec.privacy.epsilon, result.spec.privacy.delta
        console.print(f"all rounds together cost a row at most epsilon {epsilon:g} at delta {delta:g}", highlight=False)


def _metrics(found: dict[str, float]) -> list[str]:
    return [f"{found[name]:.3f}" for name in ("accuracy", "auc", "log_loss")]


def _cohorts(result: Simulation, played: PlayedRound) -> str:
    settlement = played.settlement
    if not settlement.medians:
        return f"void: {settlement.void.name.lower().replace('_', ' ')}"
    words = [
        f"{', '.join(result.hospitals[index] for index in cohort)} {settlement.medians[number] / 1e6:+.4f}"
        + ("" if settlement.accepted >> number & 1 else " rejected")
        for number, cohort in enumerate(played.cohorts)
    ]
    return "; ".join(words)


def as_json(result: Simulation) -> dict[str, Any]:
    """Money in the token's smallest unit, as text; scores in millionths."""
    return {
        "task": result.spec.name,
        "start": _finite(result.start),
        "rounds": [
            {
                "round": one.number,
                "cohorts": [[result.hospitals[index] for index in cohort] for cohort in one.cohorts],
                "medians": list(one.settlement.medians), "decoy_medians": list(one.settlement.decoy_medians),
                "accepted": [bool(one.settlement.accepted >> k & 1) for k in range(len(one.cohorts))],
                "void": one.settlement.void.name, "metrics": _finite(one.metrics),
            }
            for one in result.rounds
        ],
        "pooled": _finite(result.pooled),
        "alone": {name: _finite(metrics) for name, metrics in result.alone.items()},
        "paid": {name: str(paid) for name, paid in result.paid.items()},
        "slashed": {name: str(slashed) for name, slashed in result.slashed.items()},
    }  # fmt: skip


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no NaN: the AUC of rows of one class is null."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}
