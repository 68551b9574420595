"""What a commitment costs: from floats to KZG commitments, against the KZG library alone on the same blobs.

One core, processor time, both sides alternating, so that what else the machine does strikes both alike.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import ckzg
import numpy as np
from consilium_zk.blobs import Blob, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.kzg import commit, open_at, setup, verify_opening
from consilium_zk.packing import LaneLayout, pack
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray
from results_store import figure, say, spread, write_figure

PARAMETERS = 1_000_000
TOTAL_WEIGHT = 60
VALUE_RANGE = 0.1
AIM = 1_000_000  # parameters a second and core at 8 bits
STAGES = ("random numbers", "quantise", "pack", "blind", "commit")

Result = TypeVar("Result")


@contextmanager
def single_core() -> Iterator[None]:
    """Keeps this process on one core, as long as it lasts."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Processor seconds of this process, and what the function returned."""
    started = time.process_time()
    result = function()
    return time.process_time() - started, result


def full_path(
    update: NDArray[np.float32], quantiser: Quantiser, layout: LaneLayout
) -> tuple[dict[str, float], list[Blob]]:
    """What a hospital does with a clipped update, stage by stage; and the blobs that came out."""
    seconds: dict[str, float] = {}
    generator = np.random.default_rng(secrets.randbits(128))
    seconds["random numbers"], uniforms = timed(lambda: generator.random(len(update)))
    seconds["quantise"], lanes = timed(lambda: quantiser.quantise(update, uniforms))
    seconds["pack"], packed = timed(lambda: pack(lanes, layout))
    seconds["blind"], blobs = timed(
        lambda: [with_blinders(b, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS)) for b in packed]
    )
    seconds["commit"], _ = timed(lambda: [commit(blob) for blob in blobs])
    return seconds, blobs


def measure_bits(bits: int, parameters: int, repetitions: int) -> dict[str, Any]:
    say(f"{parameters:,} parameters of {bits} bits, {repetitions} times")
    layout = LaneLayout(bits, TOTAL_WEIGHT)
    quantiser = Quantiser(bits, VALUE_RANGE)
    update = np.random.default_rng(0).normal(0, VALUE_RANGE / 4, parameters).astype(np.float32)
    runs: list[dict[str, float]] = []
    raw: list[float] = []
    full_path(update, quantiser, layout)  # caches and the allocator warm up
    for _ in range(repetitions):
        seconds, blobs = full_path(update, quantiser, layout)
        runs.append(seconds)
        raw.append(timed(lambda blobs=blobs: [ckzg.blob_to_kzg_commitment(b, setup()) for b in blobs])[0])  # type: ignore[misc]
    full = [sum(seconds.values()) for seconds in runs]
    return {
        "bits": bits,
        "parameters": parameters,
        "total_weight": TOTAL_WEIGHT,
        "lane_bits": layout.lane_bits,
        "lanes_per_scalar": layout.lanes_per_scalar,
        "blobs": layout.blobs_for(parameters),
        "full_s": spread(full),
        "raw_ckzg_s": spread(raw),
        "params_per_s_core": round(parameters / spread(full)["median"]),
        "ratio_to_raw_ckzg": round(float(np.median(np.array(full) / np.array(raw))), 3),
        "ratio_spread": spread([a / b for a, b in zip(full, raw, strict=True)], 3),
        "stages_s": {stage: spread([seconds[stage] for seconds in runs])["median"] for stage in STAGES},
    }


def measure_opening(repetitions: int) -> dict[str, Any]:
    """Opening and checking one blob; the checking is what the precompile does on chain."""
    lanes = np.random.default_rng(1).integers(0, 255, 50_000, dtype=np.uint64)
    blob = with_blinders(pack(lanes, LaneLayout(8, TOTAL_WEIGHT))[0], *(secrets.randbelow(BLS_MODULUS) for _ in "ab"))
    point, z = commit(blob), secrets.randbelow(BLS_MODULUS)
    opening = open_at(blob, z)
    return {
        "commit_s": spread([timed(lambda: commit(blob))[0] for _ in range(repetitions)]),
        "open_s": spread([timed(lambda: open_at(blob, z))[0] for _ in range(repetitions)]),
        "verify_s": spread([timed(lambda: verify_opening(point, z, opening))[0] for _ in range(repetitions)]),
    }


def measure(quick: bool) -> dict[str, Any]:
    parameters, repetitions = (100_000, 2) if quick else (PARAMETERS, 9)
    with single_core():
        setup()
        rows = [measure_bits(bits, parameters, repetitions) for bits in (8, 16)]
        per_blob = measure_opening(repetitions)
    return {
        "params_per_s_core": rows[0]["params_per_s_core"],
        "ratio_to_raw_ckzg": rows[0]["ratio_to_raw_ckzg"],
        "aim_params_per_s_core": AIM,
        "what": "stochastic quantisation, packing, blinding and commitment on one core, processor time,"
        " against ckzg.blob_to_kzg_commitment alone on the same blobs, alternating",
        "rows": rows,
        "per_blob": per_blob,
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (axes,) = figure(8, 2.8)
    shades = ("#d9d9d9", "#c9b458", "#5fa3c7", "#b1588c", "#2f6f9f")
    rows = list(reversed(result["rows"]))
    for position, row in enumerate(rows):
        left = 0.0
        for stage, shade in zip(STAGES, shades, strict=True):
            seconds = row["stages_s"][stage] / row["parameters"] * 1e9
            label = f"{stage} (KZG library)" if stage == "commit" else stage
            axes.barh(position, seconds, left=left, color=shade, label=label if position == 0 else None)
            left += seconds
        speed, ratio = row["params_per_s_core"] / 1e6, row["ratio_to_raw_ckzg"]
        axes.text(
            left * 0.98,
            position,
            f"{speed:.2f} M parameters a second\n{ratio:.2f} × the library alone",
            va="center",
            ha="right",
            color="white",
        )
    axes.axvline(1e9 / AIM, color="black", linewidth=1, linestyle=":")
    axes.text(1e9 / AIM, len(rows) - 0.45, " aim at 8 bits", va="bottom", ha="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{row['bits']}-bit values" for row in rows])
    axes.set_xlim(0, max(1e9 / AIM, *(1e9 / row["params_per_s_core"] for row in rows)) * 1.1)
    axes.set_xlabel("processor time per parameter, nanoseconds, one core")
    axes.set_title("Committing to an update", loc="left", pad=18)
    axes.legend(frameon=False, ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.45, -0.25))
    write_figure(folder, "commit", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        (
            f"commit, {row['bits']} bits",
            f"{row['params_per_s_core']:,} parameters/s and core, {row['ratio_to_raw_ckzg']:.2f} × raw ckzg",
        )
        for row in result["rows"]
    ]
    blob = {name: entry["median"] * 1000 for name, entry in result["per_blob"].items()}
    return [
        *lines,
        (
            "one blob",
            f"commit {blob['commit_s']:.1f} ms, open {blob['open_s']:.1f} ms, verify {blob['verify_s']:.1f} ms",
        ),
    ]
