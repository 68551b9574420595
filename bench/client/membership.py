"""Membership inference on a task's published sums: two attackers, by rows, hospitals in the sum, and noise.

Hospitals of the breast-cancer data play the demo's five rounds in this process, by the nodes' own training, clipping,
quantising and adding up, standardised by the schema. An attacker sees each round's base and mean update, knows the task
file, and has candidate rows: all members and as many others. It gives each a score, and rounds' scores are added.

projection  how far the mean update goes along a step on the candidate alone
regression  the candidate's part where the mean update is explained by steps on all candidates (ridge regression)

`python -m bench.client.membership` writes the package's data file and the tables of the docs from the results; a
test compares all three.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.standardise import public_sums
from consilium_client.data.table.reader import Table
from consilium_client.models import Inputs, Vector, model_of
from consilium_client.models.metrics import auc
from consilium_client.models.torch_parameters import trainable
from consilium_client.models.torch_training import prepare
from consilium_client.privacy import membership
from consilium_client.privacy.membership import EPSILONS, MANY_STEPS, ONE_STEP, Measured, noised
from consilium_lab.demo.datasets import DemoData, deal_wdbc, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_lab.result_files import laid_out
from numpy.typing import NDArray
from opacus import GradSampleModule
from threadpoolctl import threadpool_limits

from bench.client.learning_rounds import Reals, Train, plainly, plans, play, privately
from bench.results_store import figure, say, write_figure

ROOT = Path(__file__).resolve().parents[2]
HOSPITALS, ROWS = (1, 2, 3, 6), (8, 30, 100)
ROUNDS = 5
FALSE_ALARMS = 0.05
MEMBERS, MOST_TRIALS, LEAST_TRIALS = 2_000, 60, 12  # members asked about in all trials of a setting
RIDGE = 1e-5  # of the candidates' mean squared gradient
# The demo's model and learning rate, and a larger model, which many steps of that length would throw about.
MODELS: Mapping[str, Mapping[str, Any]] = {"logistic": {"name": "logistic"}, "mlp": {"name": "mlp", "hidden": [64, 32]}}
LEARNING_RATE, LEARNING_RATES = 0.2, {"logistic": 0.2, "mlp": 0.02}  # of one step; of many
TRAININGS: Mapping[str, float | None] = {
    ONE_STEP: None, MANY_STEPS: None, **{noised(epsilon): epsilon for epsilon in reversed(EPSILONS)},
}  # fmt: skip
COLOURS = ("#b1588c", "#d9a441", "#2f6f9f", "#1f9e89")


@dataclass(frozen=True)
class Setting:
    model: str
    training: str
    rows: int
    hospitals: int


def settings() -> Iterator[Setting]:
    """All settings for which the data has nearly as many other rows as members."""
    for model in MODELS:
        for training in TRAININGS:
            for rows in ROWS:
                for hospitals in HOSPITALS:
                    if rows * hospitals <= 300:
                        yield Setting(model, training, rows, hospitals)


def spec_of(data: DemoData, setting: Setting) -> TaskSpec:
    """The demo's task; a private one as the demo's private one."""
    epsilon = TRAININGS[setting.training]
    usual = task_spec(data, TaskSettings(rounds=ROUNDS, epsilon=epsilon)).model_dump()
    changes: dict[str, Any] = {"model": MODELS[setting.model]}
    if epsilon is None:
        many = {"epochs": 12, "batch_size": 32, "learning_rate": LEARNING_RATES[setting.model]}
        one = {"epochs": 1, "batch_size": max(ROWS), "learning_rate": LEARNING_RATE}
        changes["training"] = one if setting.training == ONE_STEP else many
        changes["update"] = {**usual["update"], "clip_norm": 8.0}
    return TaskSpec.model_validate({**usual, **changes})


class Attackers:
    """Both attackers. `rounds`: by attack, each candidate's score in each round that was read."""

    def __init__(self, spec: TaskSpec, inputs: Inputs, labels: NDArray[np.int64]) -> None:
        self._spec, self._inputs, self._labels = spec, inputs, labels
        steps_in_one_place = spec.training.epochs == 1 or spec.privacy is not None
        self._along = 0.0 if steps_in_one_place else 0.5  # many steps' gradients are those halfway, about
        self.rounds: list[dict[str, Reals]] = []

    def read(self, base: Vector, mean: Reals) -> None:
        at_base = self._gradients(base)
        halfway = (base + self._along * mean).astype(np.float32)
        along = at_base if self._along == 0 else self._gradients(halfway)
        gram = along @ along.T
        ridge = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        scores = {
            "projection": -(at_base @ mean) / (np.linalg.norm(at_base, axis=1) + 1e-12),
            "regression": np.linalg.solve(gram + ridge, -(along @ mean)),
        }
        self.rounds.append({attack: _standard(values) for attack, values in scores.items()})

    def after(self, rounds: int) -> dict[str, Reals]:
        seen = self.rounds[:rounds]
        return {attack: np.sum([one[attack] for one in seen], axis=0) for attack in seen[0]}

    def _gradients(self, parameters: Vector) -> Reals:
        """Of each candidate's loss, float64 (candidates, p)."""
        model, module, rows, targets = prepare(self._spec, parameters, self._inputs, self._labels)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)  # as in privacy.py
            model.loss(GradSampleModule(module, loss_reduction="sum")(rows), targets, "sum").backward()  # type: ignore[no-untyped-call]
        parts = [vars(one)["grad_sample"].flatten(1).numpy() for one in trainable(module)]
        return np.concatenate(parts, axis=1).astype(np.float64)


def _standard(scores: Reals) -> Reals:
    """So that each round counts alike."""
    centred: Reals = scores - scores.mean()
    deviation = float(centred.std())
    return centred / deviation if deviation else centred


def judged(trials: list[Reals], members: int) -> dict[str, float]:
    """AUC and share found. Each trial's scores begin with its `members` members'.

    All trials share one threshold: a single trial has too few non-members for a 5 % quantile.
    """
    areas = [_area(scores, members) for scores in trials]
    bar = np.quantile(np.concatenate([scores[members:] for scores in trials]), 1 - FALSE_ALARMS, method="higher")
    return {
        "auc": round(fmean(areas), 3), "error": round(stdev(areas) / len(areas) ** 0.5, 3),
        "found": round(fmean(float(np.mean(scores[:members] > bar)) for scores in trials), 3),
    }  # fmt: skip


def _area(scores: Reals, members: int) -> float:
    found = auc((np.arange(len(scores)) < members).astype(np.int64), np.stack([-scores, scores], axis=1))
    if found is None:
        raise ValueError("there are no non-members")
    return found


def attacked(data: DemoData, everyone: Table, setting: Setting, trial: int) -> list[dict[str, Reals]]:
    """One trial: candidates' scores by attack, after the first round and after all rounds. Members come first."""
    spec, members = spec_of(data, setting), setting.rows * setting.hospitals
    order = np.random.default_rng([trial, setting.hospitals, setting.rows]).permutation(everyone.rows)
    candidates = _rows(everyone, order[: 2 * members])
    parts = [_rows(candidates, one) for one in np.split(np.arange(members), setting.hospitals)]
    sums = public_sums(data.schema)
    attackers = Attackers(spec, model_of(spec).inputs(candidates, sums), candidates.labels)
    trained: Train = plainly(spec, trial) if spec.privacy is None else privately(spec, plans(spec, parts))
    play(spec, parts, sums, trial, trained, attackers.read)
    return [attackers.after(1), attackers.after(ROUNDS)]


def _rows(table: Table, chosen: NDArray[np.int64]) -> Table:
    return replace(table, features=table.features[chosen], labels=table.labels[chosen])


def measure(quick: bool) -> dict[str, Any]:
    data = deal_wdbc(6, 5, 0)
    parts = examples_of([*data.hospitals, *data.held_out], data.schema)
    tables = [part for part in parts if isinstance(part, Table)]
    everyone = Table(np.concatenate([one.features for one in tables]), np.concatenate([one.labels for one in tables]))
    chosen = [one for one in settings() if not quick or (one.rows, one.hospitals) == (8, 3)]
    say(f"{len(chosen)} settings")
    rows = []
    with threadpool_limits(1):
        for setting in chosen:
            trials = 2 if quick else max(LEAST_TRIALS, min(MOST_TRIALS, MEMBERS // (setting.rows * setting.hospitals)))
            found = [attacked(data, everyone, setting, trial) for trial in range(trials)]
            members = setting.rows * setting.hospitals
            for attack in found[0][0]:
                first, last = (judged([one[when][attack] for one in found], members) for when in (0, 1))
                rows.append({**asdict(setting), "attack": attack, "trials": trials, "first": first, "all": last})
    return {
        "what": f"`first`: by the first round's sum; `all`: by the sums of {ROUNDS} rounds. AUC 0.5 is a guess, 1 is"
        f" certain; `found` is the share of members found at no more than {FALSE_ALARMS:.0%} false alarms; `error` the"
        " AUC's standard error over trials. `rows` are each hospital's; `hospitals` those in the sum that do not"
        " conspire. Seeds are fixed, but for noise, which is the operating system's",
        "data": "wdbc, 569 rows of 30 columns, standardised by the schema's ranges",
        "rounds": ROUNDS,
        "parameters": {name: spec_of(data, Setting(name, ONE_STEP, 8, 1)).parameters for name in MODELS},
        "rows": rows,
    }


# --- tables, plot and package data ------------------------------------------------------------------------------------


def shown(result: Mapping[str, Any]) -> list[Measured]:
    """The better attacker's figures over all rounds, for each setting, in the order measured."""
    best: dict[tuple[Any, ...], Measured] = {}
    for row in result["rows"]:
        key = row["model"], row["training"], row["rows"], row["hospitals"]
        one = Measured(*key, auc=row["all"]["auc"], error=row["all"]["error"], found=row["all"]["found"])
        if key not in best or one.auc > best[key].auc:
            best[key] = one
    return list(best.values())


def packaged(result: Mapping[str, Any]) -> str:
    """The data file of `consilium_client.privacy.membership`."""
    rows = [asdict(one) for one in shown(result)]
    return laid_out({"data": result["data"], "rounds": result["rounds"], "rows": rows}) + "\n"


def whole_table(found: list[Measured]) -> str:
    """For docs/privacy.md: AUC, and in brackets the share found, by hospitals in the sum: without noise by the worse
    training, and with the weakest noise. The picture has both trainings and all levels of noise.
    """
    lines = [
        f"| model | rows each | {' | '.join(_in_sum(one) for one in HOSPITALS)} |",
        "|---|---|" + "---|" * len(HOSPITALS),
    ]
    weakest = max(EPSILONS)
    for model in MODELS:
        for words, trainings in (("no noise", (ONE_STEP, MANY_STEPS)), (f"epsilon {weakest:g}", (noised(weakest),))):
            for rows in ROWS:
                of = {
                    one.hospitals: one
                    for one in sorted(found, key=lambda one: one.auc)
                    if (one.model, one.rows) == (model, rows) and one.training in trainings
                }
                cells = [_cell(of[one]) if one in of else "" for one in HOSPITALS]
                lines.append(f"| {model}, {words} | {rows} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _in_sum(hospitals: int) -> str:
    return "one hospital" if hospitals == 1 else f"sum of {hospitals}"


def _cell(one: Measured) -> str:
    return f"{one.auc:.2f} ({one.found:.0%})"


DOCS: Mapping[str, Callable[[list[Measured]], str]] = {"docs/privacy.md": whole_table}


def with_table(text: str, table: str) -> str:
    """The page with this table where one with the same first line is."""
    head = re.escape(table.splitlines()[0])
    return re.sub(rf"^{head}\n(\|.*\n)*", lambda _: table, text, flags=re.MULTILINE)


def plot(result: dict[str, Any], folder: Path) -> None:
    found = shown(result)
    drawn, axes = figure(11, 6.6, len(ROWS), len(MODELS))
    for axis, (model, rows) in zip(axes, [(model, rows) for model in MODELS for rows in ROWS], strict=True):
        for index, (training, colour) in enumerate(zip(TRAININGS, COLOURS, strict=True)):
            line = [one for one in found if (one.model, one.training, one.rows) == (model, training, rows)]
            if not line:
                continue
            across = [HOSPITALS.index(one.hospitals) + 0.05 * (index - 1.5) for one in line]
            values, errors = [one.auc for one in line], [2 * one.error for one in line]
            axis.errorbar(across, values, errors, color=colour, marker="o", capsize=2, label=training)
        axis.axhline(0.5, color="#8a8f98", linewidth=0.8, linestyle=":")
        axis.set_xlim(-0.3, len(HOSPITALS) - 0.7)
        axis.set_ylim(0.4, 1.03)
        axis.set_xticks(range(len(HOSPITALS)), [str(one) for one in HOSPITALS])
        axis.set_title(f"{model}, {rows} rows each", loc="left")
        axis.set_xlabel("hospitals in the sum that do not conspire")
        axis.set_ylabel("AUC of the better attacker")
    axes[len(ROWS) - 1].legend(frameon=False, loc="upper right")  # where lines are low
    write_figure(folder, "membership", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"{one.model}, {one.training}, {one.hospitals} × {one.rows} rows", f"AUC {one.auc:.3f} ± {one.error:.3f}")
        for one in shown(result)
    ]


if __name__ == "__main__":
    measured = json.loads((ROOT / "bench/results/membership.json").read_text())
    membership.FILE.write_text(packaged(measured))
    for name, rendered in DOCS.items():
        page = ROOT / name
        page.write_text(with_table(page.read_text(), rendered(shown(measured))))
