"""A verifiable round against the same Flower round without commitments and chain, paired in one run.

Both sides train the same model on the same rows with the same seeds. Plain rounds run before and after the verifiable
ones, each side's processes alone on the machine, so that a machine that grows slower or faster strikes both alike.
The first round of every start warms up and does not count.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import plain_flower
import tomli_w
from children import Child
from consilium_chain.localnode import LocalNode, free_port
from consilium_chain.task_spec import TaskSpec
from consilium_chain.views import Outcome, Phase
from consilium_cli.demo.chronicle import Chronicle
from consilium_cli.demo.datasets import DemoData, Frame, deal_wdbc, write_csv
from consilium_cli.demo.network import Network, Role, build, prepare_output, start
from consilium_cli.demo.options import DemoOptions
from consilium_cli.demo.processes import Processes
from consilium_cli.demo.references import row_weight
from consilium_cli.demo.tally import Evaluator
from consilium_cli.demo.task_file import TaskSettings, task_spec
from consilium_client.metrics import accuracy
from consilium_client.models import predict
from consilium_client.standardise import Standardiser, table_sums
from consilium_client.tables import Table, read_table
from results_store import COLOURS, figure, say, spread, write_figure

SEED = 0
AIM = 1.5
POLL = 0.1
PATIENCE = 240.0  # seconds for one side's rounds
FAREWELL = 15.0
PHASES = ("forming", "committing", "uploading", "publishing", "drawing", "scoring", "revealing")
# Generous: a phase ends as soon as all have done their part, and a missed deadline would be another measurement.
WINDOWS = {"join": 120, "commit": 120, "upload": 90, "publish": 90, "score": 90, "reveal": 60}


@dataclass(frozen=True)
class Scenario:
    """A task to measure; `changes` are sections of the demo's task file that differ."""

    name: str
    label: str
    changes: dict[str, dict[str, Any]]
    hospitals: int
    voters: int
    rounds: int
    plain_rounds: int  # before, and again after

    def spec(self, data: DemoData) -> TaskSpec:
        demo = task_spec(data, TaskSettings(rounds=self.rounds, windows=WINDOWS, masked=False)).model_dump()
        return TaskSpec.model_validate({**demo, **{k: {**demo[k], **v} for k, v in self.changes.items()}})


LOGISTIC = Scenario("logistic", "demo model", {}, hospitals=4, voters=5, rounds=6, plain_rounds=4)
# value_range and clip_norm are about twice what honest updates of this training show. Every candidate is accepted:
# what is measured is speed, and both sides should go on from the same model.
MILLION = Scenario(
    "mlp-1m",
    "1M-parameter MLP",
    {
        "model": {"name": "mlp", "hidden": [970, 1000]},
        "training": {"learning_rate": 0.05},
        "update": {"bits": 8, "value_range": 0.2, "clip_norm": 3.0},
        "rounds": {"max_weight": 4},
        "judging": {"accept_floor": -1.0, "harmful_below": -2.0, "tolerance": 1.0},
    },
    hospitals=4,
    voters=3,
    rounds=4,
    plain_rounds=4,
)


def measure(quick: bool) -> dict[str, Any]:
    scenarios = [LOGISTIC, MILLION]
    if quick:
        scenarios = [Scenario(**{**vars(one), "rounds": 2, "plain_rounds": 2}) for one in scenarios]
    return {
        "what": "seconds of a round, medians without each start's first round; uploading ends where the aggregator has"
        " every upload, publishing is its adding up, checking and sending of the sums",
        "aim_ratio": AIM,
        "rows": [measure_scenario(scenario) for scenario in scenarios],
    }


def measure_scenario(scenario: Scenario) -> dict[str, Any]:
    data = deal_wdbc(scenario.hospitals, scenario.voters, SEED)
    spec = scenario.spec(data)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        say(f"{scenario.label}: {scenario.plain_rounds} plain rounds")
        before = plain_side(home / "before", scenario, data, spec)
        say(f"{scenario.label}: {scenario.rounds} verifiable rounds")
        rounds, verifiable_accuracy = verifiable_side(home / "verifiable", scenario, data, spec)
        say(f"{scenario.label}: {scenario.plain_rounds} plain rounds")
        after = plain_side(home / "after", scenario, data, spec)
    plain = [one for side in (before, after) for one in side["rounds"][1:]]
    plain_s = median([one["seconds"] for one in plain])
    verifiable_s = median([one["seconds"] for one in rounds])
    phases = {name: round(median([one["phases"][name] for one in rounds]), 3) for name in PHASES}
    aggregating = sum(phases[name] for name in ("committing", "uploading", "publishing"))
    return {
        "name": scenario.name,
        "model": scenario.label,
        "clients": scenario.hospitals,
        "voters": scenario.voters,
        "cohorts": spec.rounds.cohorts,
        "params": spec.parameters,
        "bits": spec.update.bits,
        "blobs_per_update": spec.update_blobs,
        "training": spec.training.model_dump(),
        "plain_s": round(plain_s, 3),
        "verifiable_s": round(verifiable_s, 3),
        "ratio_to_flower": round(verifiable_s / plain_s, 2),
        "ratio_train_to_aggregate": round(aggregating / plain_s, 2),
        "phases_s": phases,
        "slowest_hospital": {name: round(median([one[name] for one in rounds]), 3) for name in ("train_s", "commit_s")},
        "slowest_voter_score_s": round(median([one["score_s"] for one in rounds]), 3),
        "plain_train_s": round(median([one["train_s"] for one in plain]), 3),
        "spread": {
            "plain_s": spread([one["seconds"] for one in plain], 3),
            "verifiable_s": spread([one["seconds"] for one in rounds], 3),
        },
        "accuracy": {"plain": round(after["accuracy"], 4), "verifiable": round(verifiable_accuracy, 4)},
        "rounds": {"plain": plain, "verifiable": rounds},
    }


# Plain Flower


def plain_side(home: Path, scenario: Scenario, data: DemoData, spec: TaskSpec) -> dict[str, Any]:
    """Runs plain rounds in a child with children of its own; its rounds and the last model's accuracy."""
    home.mkdir()
    task_file = home / "task.toml"
    task_file.write_text(tomli_w.dumps(spec.model_dump(mode="json")))
    tables = [read_frame(frame, home, data) for frame in data.hospitals]
    standardiser = Standardiser.from_sums(np.sum([table_sums(table, data.schema) for table in tables], axis=0))
    rows = [home / f"rows-{index}.npz" for index in range(len(tables))]
    for table, path in zip(tables, rows, strict=True):
        np.savez(path, features=standardiser.transform(table), labels=table.labels)
    plan = plain_flower.Plan(
        home=str(home),
        port=free_port(),
        task_file=str(task_file),
        rows=[str(path) for path in rows],
        weights=[row_weight(table.rows, spec) for table in tables],
        rounds=scenario.plain_rounds,
        seed=SEED,
    )
    plan.write(home / "plan.json")
    with Child([plain_flower.__file__, "server", str(home / "plan.json")], home / "server.log") as child:
        child.wait(PATIENCE)
    held_out = [read_frame(frame, home, data) for frame in data.held_out]
    features = standardiser.transform(Table(np.concatenate([t.features for t in held_out]), np.zeros(0, np.int64)))
    model = np.load(home / "model.npy", allow_pickle=False)
    probabilities = predict(spec.model, spec.data.columns, model, features)
    return {
        "rounds": json.loads((home / "rounds.json").read_text()),
        "accuracy": accuracy(np.concatenate([t.labels for t in held_out]), probabilities),
    }


def read_frame(frame: Frame, folder: Path, data: DemoData) -> Table:
    write_csv(frame, folder / "rows.csv")
    return read_table(folder / "rows.csv", data.schema)


# The platform


def verifiable_side(
    home: Path, scenario: Scenario, data: DemoData, spec: TaskSpec
) -> tuple[list[dict[str, Any]], float]:
    """Runs the task as the demo does, every party a process; its rounds after the first, and the model's accuracy."""
    options = DemoOptions(hospitals=scenario.hospitals, voters=scenario.voters, seed=SEED, output=home)
    prepare_output(home)
    with LocalNode() as node:
        network = build(options, data, tomli_w.dumps(spec.model_dump(mode="json")).encode(), node)
        with Processes(home / "logs") as processes:
            chronicle = Chronicle(network.treasury, network.task, time.monotonic())
            start(network, processes)
            follow(network, processes, chronicle)
            processes.wait(FAREWELL)
            chronicle.update(processes.lines())
        rounds = [verifiable_round(network, chronicle, number) for number in range(2, spec.rounds.rounds + 1)]
        final = Evaluator(network).metrics(spec.rounds.rounds + 1)["accuracy"]
    return rounds, float(final or 0.0)


def follow(network: Network, processes: Processes, chronicle: Chronicle) -> None:
    """Watches until the task ends. Raises RuntimeError if a process fails or it takes too long."""
    end = time.monotonic() + PATIENCE
    while network.treasury.state(network.task).phase is not Phase.ENDED:
        chronicle.update(processes.lines())
        for name in processes.ended_badly():
            raise RuntimeError(f"{name} ended with an error: {processes.errors_of(name)}")
        if time.monotonic() > end:
            raise RuntimeError(f"the task did not end within {PATIENCE:.0f} s")
        time.sleep(POLL)
    chronicle.update(processes.lines())


def verifiable_round(network: Network, chronicle: Chronicle, number: int) -> dict[str, Any]:
    """Raises RuntimeError unless the round was settled with every hospital in it."""
    state = network.treasury.round_state(network.task, number)
    everyone = (1 << len(network.of(Role.HOSPITAL))) - 1
    if state.outcome is not Outcome.SETTLED or state.survivors != everyone:
        raise RuntimeError(f"round {number} ended {state.outcome.name} without some: no measurement of a whole round")

    def told(event: str, field: str) -> float:
        """The slowest party's seconds."""
        return max(float(line.fields[field]) for line in chronicle.lines_of(event) if line.fields["round"] == number)

    lasted = chronicle.phase_seconds(number)  # of the last round, also how long the nodes took to leave
    phases = {name: lasted.get(name, 0.0) for name in PHASES}
    total = sum(phases.values())
    # The publication moves the task through two phases; what the aggregator does for it begins within the first.
    publishing = told("published", "seconds")
    phases["uploading"], phases["publishing"] = phases["uploading"] + phases["publishing"] - publishing, publishing
    return {
        "round": number,
        "seconds": round(total, 3),
        "phases": {name: round(seconds, 3) for name, seconds in phases.items()},
        "train_s": told("committed", "train_s"),
        "commit_s": told("committed", "commit_s"),
        "score_s": told("scored", "seconds"),
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    rows = result["rows"]
    drawn, all_axes = figure(10, 4.2, columns=len(rows))
    for axes, row in zip(all_axes, rows, strict=True):
        axes.bar(0, row["plain_s"], color=COLOURS["plain"], width=0.6)
        axes.text(0, row["plain_s"], f"{row['plain_s']:.1f} s", ha="center", va="bottom")
        bottom = 0.0
        for name in PHASES:
            seconds = row["phases_s"][name]
            axes.bar(1, seconds, bottom=bottom, color=COLOURS[name], width=0.6)
            if seconds > 0.04 * row["verifiable_s"]:
                axes.text(1.34, bottom + seconds / 2, f"{name} {seconds:.1f} s", va="center", fontsize=9)
            bottom += seconds
        axes.text(1, bottom, f"{row['verifiable_s']:.1f} s", ha="center", va="bottom")
        axes.axhline(AIM * row["plain_s"], color="black", linewidth=1, linestyle=":")
        axes.text(-0.45, AIM * row["plain_s"], f"{AIM} × plain: the aim", ha="left", va="bottom", fontsize=8)
        axes.set_xticks([0, 1], ["plain Flower", "verifiable"])
        axes.set_xlim(-0.5, 2.2)
        axes.set_ylabel("seconds a round")
        axes.set_title(
            f"{row['model']}: {row['params']:,} parameters, {row['clients']} hospitals\n"
            f"{row['ratio_to_flower']:.1f} × plain Flower",
            loc="left",
            fontsize=10,
        )
    write_figure(folder, "round", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"round, {row['params']:,} parameters",
            f"{row['verifiable_s']:.2f} s against {row['plain_s']:.2f} s: {row['ratio_to_flower']:.2f} ×"
            f" (to the published sum {row['ratio_train_to_aggregate']:.2f} ×)",
        )
        for row in result["rows"]
    ]
