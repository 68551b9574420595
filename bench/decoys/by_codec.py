"""Decoys under codecs and outer steps: whole simulated tasks, and what became of their honest votes.

Each round of a task has voters × cohorts pairs of a sum and its decoy. `slashed`: votes that lost stake; no honest one
should. `untested`: votes of rounds whose decoys could not be told from their sums, which pay no voter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import tomli_w
from consilium_chain.ledger.structs import Role
from consilium_chain.settlement.settlement import Reason
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_pneumonia, deal_wdbc, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_lab.simulation.run import simulate
from threadpoolctl import threadpool_limits

from bench.results_store import Skipped, figure, say, write_figure

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
VOTERS, COHORTS = 5, 2
MOST_GAP = 10.0  # nats; a decoy that is no model at all is further from its sum
DENSE, MEAN = {"name": "dense"}, {"name": "mean"}
FADING = {"name": "nesterov", "learning_rate": 0.7, "momentum": 0.9, "fading": 0.7}
DILOCO = {"name": "nesterov", "learning_rate": 0.7, "momentum": 0.9}
SCAFFOLD = {"training": {"control_variates": True, "steps": 10, "epochs": 1}}
FEW = {"update": {"bits": 4, "value_range": 0.05, "clip_norm": 4.0}}


@dataclass(frozen=True)
class Case:
    """`tasks`: played, by seed."""

    data: str
    deal: Callable[[int], DemoData]
    codec: Mapping[str, Any]
    outer: Mapping[str, Any]
    rounds: int
    tasks: int
    sections: Mapping[str, Any]


def _wdbc(seed: int) -> DemoData:
    return deal_wdbc(6, VOTERS, seed)


def _pneumonia(seed: int) -> DemoData:
    return deal_pneumonia(SHARED / "pneumoniamnist", 6, VOTERS, seed)


def _heart(seed: int) -> DemoData:
    return deal_heart(SHARED / "heart", VOTERS, seed)


CASES = (
    Case("breast cancer", _wdbc, DENSE, MEAN, 5, 20, {}),
    Case("breast cancer", _wdbc, DENSE, FADING, 5, 20, {}),
    Case("breast cancer", _wdbc, DENSE, DILOCO, 5, 20, {}),
    Case("breast cancer", _wdbc, {"name": "hash", "buckets": 16}, MEAN, 5, 20, {}),
    Case("breast cancer", _wdbc, {"name": "dct", "chunk": 8, "kept": 4}, MEAN, 5, 20, {}),
    Case("breast cancer", _wdbc, {"name": "sketch", "columns": 5, "rows": 3}, MEAN, 5, 20, {}),
    Case("breast cancer", _wdbc, DENSE, MEAN, 5, 20, {"update": {"bits": 3, "feedback": True}}),
    Case("breast cancer", _wdbc, DENSE, MEAN, 5, 20, SCAFFOLD),
    Case("pneumonia", _pneumonia, {"name": "hash", "buckets": 467}, MEAN, 8, 13, FEW),
    Case("pneumonia", _pneumonia, {"name": "hash", "buckets": 467}, FADING, 8, 13, FEW),
)


def spec_of(case: Case, data: DemoData) -> TaskSpec:
    usual = task_spec(data, TaskSettings(rounds=case.rounds, cohorts=COHORTS)).model_dump()
    sections = {name: {**usual[name], **section} for name, section in case.sections.items()}
    chosen = {**usual, **sections, "outer": case.outer}
    return TaskSpec.model_validate({**chosen, "update": {**chosen["update"], "codec": case.codec}})


def played(job: tuple[int, int]) -> dict[str, Any]:
    """One task of a case, by its number and a seed."""
    case, seed = CASES[job[0]], job[1]
    with threadpool_limits(1):
        data = case.deal(seed)
        raw = tomli_w.dumps(spec_of(case, data).model_dump(mode="json", exclude_none=True)).encode()
        parties = [
            {f"{kind}-{index}": part for index, part in enumerate(examples_of(frames, data.schema))}
            for kind, frames in (("hospital", data.hospitals), ("voter", data.held_out))
        ]
        found = simulate(raw, parties[0], parties[1], seed, compared=False)
    votes = [
        one.settlement.account(Role.VOTER, voter) for one in found.rounds for voter in range(VOTERS)
        if one.settlement.medians
    ]  # fmt: skip
    pairs = [
        (own / MICRO, other / MICRO)
        for one in found.rounds
        for own, other in zip(one.settlement.medians, one.settlement.decoy_medians, strict=True)
    ]
    return {
        "pairs": VOTERS * len(pairs), "votes": len(votes), "slashed": sum(vote.slash > 0 for vote in votes),
        "untested": sum(vote.reason is Reason.UNTESTED for vote in votes),
        "gaps": [own - other for own, other in pairs],
        "rejected": sum(len(one.cohorts) - one.settlement.accepted.bit_count() for one in found.rounds),
    }  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each case."""
    if not SHARED.exists():
        raise Skipped("the data sets are not beside this checkout")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for number, case in enumerate(CASES[:1] if quick else CASES):
            jobs = [(number, seed) for seed in range(1 if quick else case.tasks)]
            rows.append(_row(case, list(pool.map(played, jobs))))
            say(f"{case.data}, {_words(rows[-1])}: {rows[-1]['slashed']} of {rows[-1]['votes']} votes slashed")
            yield {"what": "honest votes in simulated tasks with decoys, and what became of them", "rows": rows}


def _row(case: Case, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    gaps = [min(gap, MOST_GAP) for task in tasks for gap in task["gaps"]]
    totals = {name: sum(task[name] for task in tasks) for name in ("pairs", "votes", "slashed", "untested", "rejected")}
    changed = {name: value for section in case.sections.values() for name, value in section.items()}
    return {
        "data": case.data, "codec": dict(case.codec), "outer": dict(case.outer), "changed": changed,
        "tasks": len(tasks), "rounds": case.rounds, **totals,
        "least_gap": round(min(gaps), 4), "median_gap": round(median(gaps), 4),
    }  # fmt: skip


def _words(row: Mapping[str, Any]) -> str:
    codec, outer = row["codec"], row["outer"]
    size = f" {codec['buckets']}" if "buckets" in codec else ""
    fading = ", fading" if outer.get("fading", 1) < 1 else ""
    changed = row.get("changed", {})
    more = f", {changed['bits']} bits with feedback" if changed.get("feedback") else ""
    more += ", control variates" if changed.get("control_variates") else ""
    return f"{codec['name']}{size}, {outer['name']}{fading}{more}"


def plot(result: dict[str, Any], folder: Path) -> None:
    """Votes by what became of them."""
    drawn, (axes,) = figure(8, 0.5 * len(result["rows"]) + 1.2)
    for index, row in enumerate(result["rows"]):
        left = 0.0
        for name, colour in (("paid or far", "#1f9e89"), ("untested", "#d9a441"), ("slashed", "#b1307c")):
            other = row["votes"] - row["untested"] - row["slashed"]
            share = (other if name == "paid or far" else row[name]) / row["votes"]
            axes.barh(index, share, left=left, color=colour, height=0.6, label=name if index == 0 else None)
            left += share
    axes.set_yticks(range(len(result["rows"])), [f"{row['data']}: {_words(row)}" for row in result["rows"]])
    axes.invert_yaxis()
    axes.set_xlabel("share of honest votes")
    drawn.legend(frameon=False, ncols=3, fontsize=8, loc="outside lower center")
    write_figure(folder, "decoy_codecs", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{row['data']}, {_words(row)}",
            f"{row['pairs']:,} pairs: {row['slashed']} votes slashed, {row['untested']} of {row['votes']} untested",
        )
        for row in result["rows"]
    ]
