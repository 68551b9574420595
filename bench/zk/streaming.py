"""Memory of a private round, whatever the model's size: a hospital's and the aggregator's, each in a fresh process.

What both do is in `streamed`. Of a cohort of 10, three upload and the others are gone, so that the aggregator has the
most masks to take away; the protocol would call off a round with so few. The mean that comes out is compared with what
went in. What both still keep of every blob is its commitment, 48 bytes, and the aggregator a factor to check it by.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB

from bench.children import Child
from bench.results_store import COLOURS, figure, say, spread, write_figure
from bench.zk import streamed

SIZES = (1_000_000, 10_000_000, 100_000_000)
BITS = 8
TOTAL_WEIGHT = 60
COHORT = 10
SURVIVORS = [2, 5, 9]
SCALE = 0.025  # standard deviation of the update's values
VALUE_RANGE = 0.1
PATIENCE = 3600.0
KIB = 1024
MIB = KIB * KIB


def write_update(path: Path, parameters: int) -> None:
    generator = np.random.default_rng(parameters)
    with path.open("wb") as file:
        for start in range(0, parameters, streamed.VALUES_AT_A_TIME):
            count = min(streamed.VALUES_AT_A_TIME, parameters - start)
            (generator.standard_normal(count, dtype=np.float32) * np.float32(SCALE)).tofile(file)


def largest_error(folder: Path, factor: float) -> float:
    """The largest distance of the mean to the clipped update that every survivor had."""
    pairs = zip(streamed.chunks(folder / "mean.bin"), streamed.chunks(folder / "update.bin"), strict=True)
    return max(float(np.abs(mean - update * factor).max()) for mean, update in pairs)


def measure_size(parameters: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        folder = Path(home)
        write_update(folder / "update.bin", parameters)
        norm = streamed.norm(folder / "update.bin")
        plan = streamed.Plan(
            parameters=parameters,
            bits=BITS,
            total_weight=TOTAL_WEIGHT,
            weight=TOTAL_WEIGHT // COHORT,
            value_range=VALUE_RANGE,
            max_norm=norm / 2,
            key_roots=[secrets.randbelow(BLS_MODULUS) for _ in range(COHORT)],
            own_roots=[secrets.randbelow(BLS_MODULUS) for _ in range(COHORT)],
            survivors=SURVIVORS,
        )
        plan.write(folder / "plan.json")
        for index in SURVIVORS:
            say(f"{parameters:,} parameters, hospital {index}")
            run(folder, "hospital", str(index))
        say(f"{parameters:,} parameters, aggregator")
        run(folder, "aggregator")
        error = largest_error(folder, plan.max_norm / norm)
        if error > plan.quantiser.step:
            raise RuntimeError(f"the mean is off by {error}, more than a step of {plan.quantiser.step}")
        return {
            "parameters": parameters,
            "blobs": plan.layout.blobs_for(parameters),
            "update_mib": round(parameters * 4 / MIB, 1),
            "blobs_mib": round(plan.layout.blobs_for(parameters) * BYTES_PER_BLOB / MIB, 1),
            "hospital": side([read(folder, f"hospital{index}") for index in SURVIVORS]),
            "aggregator": side([read(folder, "aggregator")]),
            "largest_error_in_steps": round(error / plan.quantiser.step, 3),
        }


def run(folder: Path, *arguments: str) -> None:
    role, *index = arguments
    with Child([streamed.__name__, role, str(folder), *index], folder / "log") as child:
        child.wait(PATIENCE)


def read(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def side(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """MiB of a process of this side, before it began and at most; the growth is the difference. Processor seconds."""
    mib = {name: [run[f"{name}_kib"] / KIB for run in runs] for name in ("baseline", "baseline_peak", "peak")}
    growth = [peak - before for peak, before in zip(mib["peak"], mib["baseline"], strict=True)]
    return {
        **{f"{name}_mib": spread(values, 1) for name, values in mib.items()},
        "growth_mib": spread(growth, 1),
        "seconds": {stage: spread([run["seconds"][stage] for run in runs], 2) for stage in runs[0]["seconds"]},
    }


def measure(quick: bool) -> dict[str, Any]:
    rows = [measure_size(parameters) for parameters in ((100_000, 200_000) if quick else SIZES)]
    return {
        "what": "growth of the largest resident set over what a process holds after imports and setup, MiB, for the"
        " largest size; each side a fresh process that reads and writes files blob by blob",
        "parameters": rows[-1]["parameters"],
        **{f"{name}_growth_mib": rows[-1][name]["growth_mib"]["median"] for name in ("hospital", "aggregator")},
        "bits": BITS,
        "total_weight": TOTAL_WEIGHT,
        "cohort": COHORT,
        "uploads": len(SURVIVORS),
        "rows": rows,
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (axes,) = figure(8, 3.6)
    sizes = [row["parameters"] for row in result["rows"]]
    for name, label in (("update_mib", "the update itself, float32"), ("blobs_mib", "its blobs")):
        axes.plot(sizes, [row[name] for row in result["rows"]], ":", color=COLOURS["plain"])
        axes.text(sizes[-1] * 1.1, result["rows"][-1][name], label, va="center", fontsize=9)
    for name, shade in (("hospital", COLOURS["committing"]), ("aggregator", COLOURS["scoring"])):
        grown = [row[name]["growth_mib"]["median"] for row in result["rows"]]
        axes.plot(sizes, grown, "o-", color=shade)
        axes.text(sizes[-1] * 1.1, grown[-1], f"{name}: {grown[-1]:.1f} MiB", va="center", fontsize=9, color=shade)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.2)
    axes.set_xticks(sizes, [f"{size / 1e6:g} M" for size in sizes])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("parameters")
    axes.set_ylabel("memory above the baseline, MiB")
    axes.set_title("Memory of a private round, blob by blob", loc="left")
    write_figure(folder, "streaming", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"memory, {row['parameters'] / 1e6:g} M parameters",
            f"hospital {row['hospital']['growth_mib']['median']:.1f} MiB above"
            f" {row['hospital']['baseline_mib']['median']:.0f}, aggregator"
            f" {row['aggregator']['growth_mib']['median']:.1f} above {row['aggregator']['baseline_mib']['median']:.0f}",
        )
        for row in result["rows"]
    ]
