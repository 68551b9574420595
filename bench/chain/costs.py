"""The chain's cost of a year for a consortium, by network and fees, from the estimate of its task.

`bench/chain/costs.toml` and `consilium_chain/tasks/fees.toml` have the assumptions. Calculated, not measured: gas
figures behind it are measured (`consilium_chain.tasks.estimate`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from consilium_chain.tasks.costs import Cost, Party, Prices, task_costs
from consilium_chain.tasks.fees import ASSUMED as ASSUMED_FEES
from consilium_chain.tasks.fees import DRAND, LEVELS, assumed_fees
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.units import WEI_PER_GWEI

from bench.results_store import figure, write_figure

ASSUMED = Path(__file__).with_suffix(".toml")
# By the blobs of an update: 31, and 576,001 parameters.
MODELS: dict[int, dict[str, Any]] = {1: {"name": "logistic"}, 16: {"name": "mlp", "hidden": [18_000]}}
PARTIES: tuple[Party, ...] = ("operator", "aggregator", "hospital", "seated")
COLOURS = {1: "#5fa3c7", 16: "#2f6f9f"}


def task(assumed: dict[str, Any], blobs: int, on_chain: bool) -> TaskSpec:
    """A private task with masks and decoys; all voters have a seat. Raises ValueError unless it has as many blobs."""
    hospitals, voters = assumed["hospitals"], assumed["voters"]
    found = TaskSpec.model_validate({
        "name": "year", "model": MODELS[blobs],
        "data": {
            "label": "sick", "classes": ["no", "yes"],
            "features": [{"name": f"f{number}", "min": 0.0, "max": 1.0} for number in range(30)],
        },
        "privacy": {"epsilon": 8, "max_grad_norm": 1.0},
        "update": {"publication": "blobs" if on_chain else "digests"},
        "rounds": {
            "rounds": assumed["rounds"], "cohorts": assumed["cohorts"], "min_hospitals": hospitals,
            "max_hospitals": hospitals,
        },
        "judging": {"max_voters": voters, "seats": voters, "min_reveals": 2},
        "money": {"pool": 100_000, "aggregator_bond": 8_000},
    })  # fmt: skip
    if found.update_blobs != blobs:
        raise ValueError(f"the model takes {found.update_blobs} blobs, not {blobs}: choose another size")
    return found


def measure(quick: bool) -> dict[str, Any]:
    assumed = tomllib.loads(ASSUMED.read_text(encoding="utf-8"))
    rows, fees = [], assumed_fees()
    for network in fees.network:
        for blobs in MODELS:
            spec = task(assumed, blobs, network.blobs)
            for level in LEVELS:
                at = fees.prices(network, level)
                costs = task_costs(spec, at, assumed["tasks"], DRAND)
                rows.append({"network": network.name, "blobs": blobs, "fees": level, **_row(assumed, at, costs)})
    assumed |= tomllib.loads(ASSUMED_FEES.read_text(encoding="utf-8"))
    assumed["date"] = assumed["date"].isoformat()
    return {
        "what": "calculated, not measured: dollars that a year's transactions cost, at assumed prices, by the estimate"
        " of a task, which is above the real cost and below its double. `hospital`, `voter`: one of them; `posted`:"
        " bytes of all transactions, which rollups pay for",
        "assumed": assumed,
        "rows": rows,
    }


def _row(assumed: dict[str, Any], at: Prices, costs: dict[Party, Cost]) -> dict[str, Any]:
    counts = dict(zip(PARTIES, (1, 1, assumed["hospitals"], assumed["voters"]), strict=True))
    wei = sum(counts[party] * costs[party].wei for party in PARTIES)
    dollars = {"voter" if party == "seated" else party: costs[party].cents / 100 for party in PARTIES}
    return {
        "gwei": at.gas / WEI_PER_GWEI, "byte_gwei": at.byte / WEI_PER_GWEI,
        "gas": sum(counts[party] * costs[party].gas for party in PARTIES),
        "posted": sum(counts[party] * costs[party].posted for party in PARTIES),
        "ether": float(f"{wei / 10**18:.4g}"), **dollars, "all": at.cents(wei) / 100,
    }  # fmt: skip


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (axes,) = figure(8, 3.4)
    networks = list(dict.fromkeys(row["network"] for row in result["rows"]))
    for row in result["rows"]:
        if row["fees"] != "middle":
            continue
        same = {
            one["fees"]: one["all"]
            for one in result["rows"]
            if (one["network"], one["blobs"]) == (row["network"], row["blobs"])
        }
        y = networks.index(row["network"]) + (-0.2 if row["blobs"] == 1 else 0.2)
        axes.plot([same["low"], same["high"]], [y, y], color=COLOURS[row["blobs"]], linewidth=7, alpha=0.35)
        axes.plot(same["middle"], y, "o", color=COLOURS[row["blobs"]], markersize=8)
        said = f"${same['middle']:,.0f}"
        axes.annotate(said, (same["middle"], y), (0, 6), textcoords="offset points", ha="center", fontsize=9)
    for blobs, colour in COLOURS.items():
        axes.plot([], [], "o", color=colour, label=f"{blobs} blob{'s' if blobs > 1 else ''} an update")
    axes.set_xscale("log")
    axes.set_yticks(range(len(networks)), networks)
    axes.margins(x=0.12, y=0.15)
    axes.invert_yaxis()
    axes.set_xlabel("dollars a year of all parties: at middle fees (dot, figure), and from low to high fees")
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    assumed = result["assumed"]
    axes.set_title(
        f"{assumed['hospitals']} hospitals, {assumed['tasks']} tasks of {assumed['rounds']} rounds a year,"
        f" ether at ${assumed['ether_dollars']:,} (assumed)",
        loc="left",
    )
    write_figure(folder, "costs", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"a year on {row['network']}, {row['blobs']} blobs, middle fees", f"${row['all']:,.0f}")
        for row in result["rows"]
        if row["fees"] == "middle"
    ]
