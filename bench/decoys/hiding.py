"""Decoys: how surely a voter with data sees that they are bad, and how surely a detector without data finds them.

Rounds are played in this process with the nodes' own training, quantising and scoring. Per family of decoys and its
strength: what honest voters' scores of it are, and how well a detector that learnt from other tasks' revealed
decoys tells it from the genuine sums. For the chosen family: whom the slash rule strikes.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from consilium_client.models.metrics import auc
from consilium_zk.decoys import STRENGTH, STRENGTH_UNIT, negated_delta_lanes, published_lanes, read_lanes
from consilium_zk.errors import LaneOutOfRange
from matplotlib import pyplot
from matplotlib.axes import Axes
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bench.decoys.detector import Sample, guessed_scores, round_samples, suspicion
from bench.decoys.families import FAMILIES, Family, make_decoy
from bench.decoys.rounds import HEART, Committee, Round, Scenario, Vector, lower_median, play
from bench.results_store import figure, say, write_figure

TASKS = 24
ROUNDS = 5
LONG, LONG_TASKS = 15, 8
STAGES = ("round 1", "round 2", "later")
MARGINS = (0.02, 0.05, 0.1)
MARGIN = 0.05  # a task's own
CHOSEN, CHOSEN_STRENGTH = "flipped", STRENGTH / STRENGTH_UNIT
NOTHING, SINGLE = "no decoy: trained again", "one decoy beside one cohort"
TWINS, FLIPPED = "a decoy beside every cohort", "the chosen one: every cohort flipped"
OUTSIDER = "the same, to one who does not know the rarer class"
GROUPS = {NOTHING: "#8a8f98", SINGLE: "#5fa3c7", TWINS: "#d9a441", FLIPPED: "#b1307c"}
SLOW = {"learning_rate": 0.05, "epochs": 2}

SCENARIOS = (
    Scenario("wdbc", "wdbc, logistic, 2 cohorts", "wdbc", 4, 5, 2, ROUNDS),
    Scenario("wdbc-4", "wdbc, logistic, 4 cohorts", "wdbc", 8, 5, 4, ROUNDS),
    Scenario("wdbc-noise", "wdbc, logistic, noisy updates", "wdbc", 4, 5, 2, ROUNDS, noise=0.1),
    Scenario(
        "wdbc-mlp", "wdbc, mlp, 3 cohorts", "wdbc", 6, 5, 3, ROUNDS,
        {"model": {"name": "mlp", "hidden": [32]}, "training": SLOW},
    ),
    Scenario("heart", "heart, logistic, 2 cohorts", "heart", 4, 9, 2, ROUNDS),
    Scenario(
        "heart-mlp", "heart, mlp, 2 cohorts", "heart", 4, 9, 2, ROUNDS,
        {"model": {"name": "mlp", "hidden": [64]}, "training": {**SLOW, "epochs": 1}},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Played:
    """One round with its decoys: honest scores (voters, decoys), in the order of `cohorts`."""

    task: int
    turn: Round
    cohorts: list[int]
    scores: NDArray[np.float64]


def stage(number: int) -> str:
    return STAGES[min(number, len(STAGES)) - 1]


def lay_decoys(
    family: Family, strength: float, tasks: Sequence[tuple[Committee, list[Round]]]
) -> tuple[list[Played], list[Sample]]:
    """One decoy in every round, beside a cohort drawn at random; or one beside every cohort."""
    played, samples = [], []
    for task, (committee, turns) in enumerate(tasks):
        random = np.random.default_rng([task, 99])
        for turn in turns:
            drawn = int(random.integers(len(turn.cohorts)))
            cohorts = list(range(len(turn.cohorts))) if family.twins else [drawn]
            decoys = {cohort: make_decoy(family, strength, turn, cohort, random) for cohort in cohorts}
            scores = np.array([committee.score(turn, decoys[cohort]) for cohort in cohorts]).T
            played.append(Played(task, turn, cohorts, scores))
            medians = dict(zip(cohorts, lower_median(scores), strict=True))
            of_round = round_samples(task, turn, decoys, family.twins)
            for sample in of_round:
                own = lower_median(turn.scores)[sample.cohort]
                sample.median = float(medians[sample.cohort] if sample.decoy else own)
            samples += of_round
    return played, samples


def judge(played: Sequence[Played], name: str) -> dict[str, float]:
    """Honest voters' scores of the decoys of one stage."""
    mine = [one for one in played if stage(one.turn.number) == name]
    scores = np.concatenate([one.scores.reshape(-1) for one in mine])
    floor = mine[0].turn.spec.judging.accept_floor
    above = np.concatenate([(one.scores >= one.turn.scores[:, one.cohorts]).reshape(-1) for one in mine])
    return {
        "median": round(float(np.median(scores)), 4),
        "best_99": round(float(np.quantile(scores, 0.99)), 4),
        "not_below_zero": round(float(np.mean(scores >= 0)), 4),
        "not_below_floor": round(float(np.mean(scores >= floor)), 4),
        "not_below_own_genuine": round(float(np.mean(above)), 4),
        "scores": len(scores),
    }


def detect(samples: Sequence[Sample], twins: bool) -> dict[str, dict[str, Any]]:
    """By stage and kind of detector: AUC; the share of rounds in which it finds the decoy (of all candidates; with
    twins, which side is genuine) and in which it prefers the genuine one of the pair."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for kind in ("informed", "stranger") if twins else ("informed",):
        marks = suspicion(samples, stranger=kind == "stranger")
        for name in STAGES:
            picked = [i for i, sample in enumerate(samples) if stage(sample.round) == name]
            found[name][kind] = _found(samples, marks, picked, twins)
    return found


def _found(samples: Sequence[Sample], marks: Vector, picked: Sequence[int], twins: bool) -> dict[str, Any]:
    rounds: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in picked:
        rounds[samples[i].task, samples[i].round].append(i)
    pairs, all_of = [], []
    for members in rounds.values():
        lead = sum(marks[i] * (1 if samples[i].decoy else -1) for i in members if samples[i].paired)
        pairs.append((float(np.sign(round(lead, 9))) + 1) / 2)  # a tie is a coin
        all_of.append(samples[max(members, key=lambda i: float(marks[i]))].decoy)
    decoy = [samples[i].decoy for i in picked]
    tasks = np.array([samples[i].task for i in picked])
    return {
        "auc": _auc_with_interval(np.array(decoy), marks[list(picked)], tasks),
        "pair": _share(sum(pairs), len(pairs)),
        **({} if twins else {"of_all": _share(sum(all_of), len(all_of))}),
    }


def _auc_with_interval(decoy: NDArray[np.bool_], marks: Vector, tasks: NDArray[np.int64]) -> list[float]:
    """AUC, and the ends of its 95 % interval by drawing tasks anew."""
    random, drawn = np.random.default_rng(0), []
    rows_of = [np.flatnonzero(tasks == task) for task in np.unique(tasks)]
    for _ in range(100):
        rows = np.concatenate([rows_of[i] for i in random.integers(len(rows_of), size=len(rows_of))])
        drawn.append(auc(decoy[rows].astype(np.int64), marks[rows]) or 0.0)
    whole = auc(decoy.astype(np.int64), marks) or 0.0
    return [round(float(x), 3) for x in (whole, *np.quantile(drawn, [0.025, 0.975]))]


def _share(hits: float, count: int) -> list[float]:
    """A share, and the ends of its 95 % interval (Wilson 1927)."""
    z = 1.96
    middle, width = hits + z * z / 2, z * sqrt(hits * (count - hits) / count + z * z / 4)
    return [round(x, 3) for x in (hits / count, (middle - width) / (count + z * z), (middle + width) / (count + z * z))]


def strike(played: Sequence[Played], margin: float) -> dict[str, dict[str, float | None]]:
    """The slash rule at one margin: pairs that count (the committee accepts the genuine one, and its medians are
    `margin` apart), and honest votes that it would strike. By stage."""
    found = {}
    for name in STAGES:
        pairs = armed = votes = struck = 0
        closest = float("inf")
        for one in played:
            if stage(one.turn.number) != name:
                continue
            genuine = one.turn.scores[:, one.cohorts]
            apart = lower_median(genuine) - lower_median(one.scores)
            counts = np.isin(one.cohorts, one.turn.accepted) & (apart >= margin)
            lead = (genuine - one.scores)[:, counts]
            pairs, armed = pairs + len(counts), armed + int(counts.sum())
            votes, struck = votes + lead.size, struck + int((lead <= 0).sum())
            closest = min(closest, float((lead / apart[counts]).min(initial=np.inf)))
        least = None if closest == float("inf") else round(closest, 3)
        found[name] = {"pairs": pairs, "armed": armed, "votes": votes, "struck": struck, "least_lead": least}
    return found


def no_model(tasks: Sequence[tuple[Committee, list[Round]]], strength: float) -> dict[str, list[float]]:
    """Share of the chosen decoys, by stage, that leave the quantiser's range: voters refuse them without scoring."""
    left: dict[str, list[bool]] = defaultdict(list)
    for _, turns in tasks:
        for turn in turns:
            left[stage(turn.number)] += out_of_range(turn, strength)
    return {name: _share(sum(found), len(found)) for name, found in left.items()}


def out_of_range(turn: Round, strength: float) -> list[bool]:
    """By cohort: whether the chosen decoy leaves the quantiser's range."""
    bits, found = turn.spec.update.bits, []
    negated_delta = negated_delta_lanes(turn.progress, bits, round(strength * STRENGTH_UNIT))
    for genuine in turn.cohorts:
        published = published_lanes(genuine.lanes, negated_delta, genuine.weight, bits, flipped=True)
        try:
            read_lanes(published, negated_delta, genuine.weight, bits, flipped=False)
            found.append(False)
        except LaneOutOfRange:
            found.append(True)
    return found


def long_task(scenario: Scenario, count: int) -> dict[str, Any]:
    """The chosen family in a task that goes on: by round, the furthest that a parameter has gone, as a share of the
    quantiser's range (mean over tasks); by strength, the share of decoys that leave it, and the least distance of
    the medians of a sum and its decoy, which is brought back to the range's end."""
    with threadpool_limits(1):
        tasks = [play(scenario, seed) for seed in range(count)]
    family = next(family for family in FAMILIES if family.name == CHOSEN)
    random = np.random.default_rng(0)  # of which this family draws nothing
    strengths: list[dict[str, Any]] = []
    for strength in family.strengths:
        left, apart = defaultdict[int, list[bool]](list), defaultdict[int, list[float]](list)
        for committee, turns in tasks:
            for turn in turns:
                left[turn.number] += out_of_range(turn, strength)
                made = [make_decoy(family, strength, turn, cohort, random) for cohort in range(len(turn.cohorts))]
                scores = np.array([committee.score(turn, one) for one in made]).T
                apart[turn.number] += (lower_median(turn.scores) - lower_median(scores)).tolist()
        shares = [_share(sum(found), len(found)) for found in left.values()]
        strengths.append(
            {
                "strength": strength,
                "no_model": shares,
                "least_apart": [round(min(found), 3) for found in apart.values()],
            }
        )
    reach = [[np.abs(turn.progress).max() / turn.quantiser.offset for turn in turns] for _, turns in tasks]
    return {
        "label": scenario.label,
        "tasks": count,
        "progress": [round(float(x), 3) for x in np.mean(reach, axis=0)],
        "strengths": strengths,
    }


def guess_scores(played: Sequence[Played], samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Share of scores within the task's tolerance of the median: a guess without data, and honest voters'."""
    guesses, judging = guessed_scores(samples), played[0].turn.spec.judging
    found: dict[str, dict[str, float]] = {}
    for name in STAGES:
        for decoy, kind in ((True, "decoy"), (False, "genuine")):
            rows = [i for i, s in enumerate(samples) if stage(s.round) == name and s.decoy is decoy]
            truth = np.array([samples[i].median for i in rows])
            near = np.abs(guesses[rows] - truth) <= judging.tolerance + judging.tolerance_bps / 1e4 * np.abs(truth)
            found.setdefault(name, {})[f"guess_{kind}"] = round(float(near.mean()), 3)
        votes = [(one.scores, lower_median(one.scores)) for one in played if stage(one.turn.number) == name]
        within = [np.abs(s - m) <= judging.tolerance + judging.tolerance_bps / 1e4 * np.abs(m) for s, m in votes]
        found[name]["honest_decoy"] = round(float(np.mean(np.concatenate([x.reshape(-1) for x in within]))), 3)
    return found


def study(scenario: Scenario, count: int, quick: bool) -> dict[str, Any]:
    """All families in one scenario."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sklearn on features that are constant in round 1
        tasks = [play(scenario, seed) for seed in range(count)]
        rows, chosen = [], []
        for family in FAMILIES:
            for strength in family.strengths[-1:] if quick else family.strengths:
                played, samples = lay_decoys(family, strength, tasks)
                detected = detect(samples, family.twins)
                stages = {name: {**judge(played, name), **detected[name]} for name in STAGES}
                rows.append({"family": family.name, "strength": strength, "twins": family.twins, "stages": stages})
                if family.name == CHOSEN:
                    rules = {str(margin): strike(played, margin) for margin in MARGINS}
                    guessed = guess_scores(played, samples)
                    refused = no_model(tasks, strength)
                    chosen.append(
                        {"strength": strength, "margins": rules, "within_tolerance": guessed, "no_model": refused}
                    )
        first = tasks[0][1][0]
        return {
            "name": scenario.name,
            "label": scenario.label,
            "parameters": len(first.base),
            "cohorts": scenario.cohorts,
            "tasks": count,
            "voters": scenario.voters,
            "rows_per_voter": [int(n) for n in (min(tasks[0][0].row_counts), max(tasks[0][0].row_counts))],
            "honest_norm": _honest_norms(tasks),
            "families": rows,
            "chosen": chosen,
        }


def _honest_norms(tasks: Sequence[tuple[Committee, list[Round]]]) -> dict[str, float]:
    norms: dict[str, list[float]] = defaultdict(list)
    for _, turns in tasks:
        for turn in turns:
            norms[stage(turn.number)] += [float(np.linalg.norm(update)) for update in turn.updates]
    return {name: round(float(np.median(values)), 3) for name, values in norms.items()}


def measure(quick: bool) -> dict[str, Any]:
    scenarios = [one for one in SCENARIOS if one.data != "heart" or HEART.is_dir()]
    count = 8 if quick else TASKS
    if quick:
        scenarios = [replace(scenarios[0], rounds=3)]
    say(f"{len(scenarios)} scenarios, {count} tasks each, {len(FAMILIES)} families")
    with ProcessPoolExecutor(2) as pool:
        long = pool.submit(long_task, replace(scenarios[0], rounds=4 if quick else LONG), 2 if quick else LONG_TASKS)
        studies = list(pool.map(study, scenarios, [count] * len(scenarios), [quick] * len(scenarios)))
    return {
        "what": "scores are log loss saved over the base, in nats, on one voter's rows; `median` and `best_99` over all"
        " honest voters; shares and AUC with 95 % intervals; `pair` is the share of rounds in which the detector"
        " prefers the genuine one (chance 1/2), `of_all` that in which it finds the decoy (chance 1/(cohorts + 1))",
        "labels": {family.name: family.label for family in FAMILIES},
        "scenarios": studies,
        "long_task": long.result(),
    }


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """The figures of page and picture: how often each family passes and is found, the slash rule by the task's own
    margin, and all of the chosen family at its strength.
    """
    more = "; lists are by `stages`, but for a share or AUC with its interval in `judged`"
    scenarios = [_brief_scenario(one) for one in result["scenarios"]]
    strengths = [
        {**one, "no_model": [share for share, *_ in one["no_model"]]} for one in result["long_task"]["strengths"]
    ]
    long = {**result["long_task"], "strengths": strengths}
    return {**result, "what": result["what"] + more, "stages": STAGES, "scenarios": scenarios, "long_task": long}


def _brief_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    families = []
    for row in scenario["families"]:
        stages = [row["stages"][name] for name in STAGES]
        found = {
            "not_below_floor": [one["not_below_floor"] for one in stages],
            "pair": [one["informed"]["pair"][0] for one in stages],
        }
        if row["twins"]:
            found["stranger_pair"] = [one["stranger"]["pair"][0] for one in stages]
        else:
            found["of_all"] = [one["informed"]["of_all"][0] for one in stages]
        families.append({name: row[name] for name in ("family", "strength", "twins")} | found)
    rule = []
    for row in scenario["chosen"]:
        at_margin = row["margins"][str(MARGIN)]
        struck = {name: [at_margin[one][name] for one in STAGES] for name in at_margin[STAGES[0]]}
        no_model = [row["no_model"][name][0] for name in STAGES]
        rule.append({"strength": row["strength"], "margin": MARGIN, **struck, "no_model": no_model})
    chosen = next(row for row in scenario["families"] if _is_chosen(row))["stages"]
    near = next(row for row in scenario["chosen"] if row["strength"] == CHOSEN_STRENGTH)["within_tolerance"]
    return {
        **{name: value for name, value in scenario.items() if name not in ("families", "chosen")},
        "families": families,
        "rule": rule,
        "within_tolerance": {name: [near[one][name] for one in STAGES] for name in near[STAGES[0]]},
        "judged": [
            {
                "stage": name, "median": one["median"], "best_99": one["best_99"],
                "auc": one["informed"]["auc"], "pair": one["informed"]["pair"],
                "stranger_auc": one["stranger"]["auc"], "stranger_pair": one["stranger"]["pair"],
            }
            for name, one in chosen.items()
        ],
    }  # fmt: skip


def _is_chosen(row: dict[str, Any]) -> bool:
    return bool((row["family"], row["strength"]) == (CHOSEN, CHOSEN_STRENGTH))


def plot(result: dict[str, Any], folder: Path) -> None:
    """From the brief result."""
    drawn, axes = figure(11, 4.6, len(STAGES))
    marks = dict(zip((one["name"] for one in result["scenarios"]), "osD^vP", strict=False))
    for index, (axis, name) in enumerate(zip(axes, STAGES, strict=True)):
        for scenario in result["scenarios"]:
            for row in scenario["families"]:
                _scatter(axis, row, index, marks[scenario["name"]])
        axis.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
        axis.set_title(name if name != "later" else "rounds 3 to 5", loc="left")
        axis.set(xlim=(-0.05, 1.05), ylim=(0.1, 1.05), xlabel="honest scores that pass it as good")
        axis.text(0.0, 0.13, "wanted: bad, and hidden", fontsize=9, style="italic")
    axes[0].set_ylabel("rounds in which the detector without data\nis right about the pair (dotted: chance)")
    dot = {"linestyle": "", "markersize": 7}
    handles = [pyplot.Line2D([], [], marker="o", color=shade, label=text, **dot) for text, shade in GROUPS.items()]
    handles.append(pyplot.Line2D([], [], marker="o", color=GROUPS[FLIPPED], fillstyle="none", label=OUTSIDER, **dot))
    handles += [
        pyplot.Line2D([], [], marker=marks[one["name"]], color="grey", label=one["label"], **dot)
        for one in result["scenarios"]
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    write_figure(folder, "decoys", drawn)


def _scatter(axis: Axes, row: dict[str, Any], stage: int, mark: str) -> None:
    """Draws a family's point at the stage with that index in `STAGES`."""
    chosen = _is_chosen(row)
    if chosen:
        group = FLIPPED
    elif row["family"].startswith("honest"):
        group = NOTHING
    else:
        group = TWINS if row["twins"] else SINGLE
    passes = row["not_below_floor"][stage]
    size, layer = (75, 3) if chosen else (26, 2)
    axis.scatter(passes, row["pair"][stage], s=size, marker=mark, color=GROUPS[group], alpha=0.8, zorder=layer)
    if chosen:
        axis.scatter(
            passes, row["stranger_pair"][stage], s=size, marker=mark, facecolor="none", edgecolor=GROUPS[group],
            linewidth=1.2, zorder=layer,
        )  # fmt: skip


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    lines = []
    for scenario in result["scenarios"]:
        for row in scenario["families"]:
            if _is_chosen(row):
                told = ", ".join(f"{pair:.2f}" for pair in row["pair"])
                passed = max(row["not_below_floor"])
                lines.append((f"decoys, {scenario['label']}", f"told apart {told}; honest scores passing {passed:.4f}"))
    return lines
