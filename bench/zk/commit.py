"""The cost of a commitment, from floats to KZG commitments, and of masking and unmasking after it.

Against the KZG library alone on the same blobs, against the same commitments computed with py_ecc, and against one
Pedersen commitment to each parameter (the construction of zkFL; Wang et al., arXiv 2310.02554). One core, processor
time, all sides alternating, so that what else the machine does strikes them alike.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import ckzg
import numpy as np
from consilium_zk import masks
from consilium_zk.blobs import Blob, add, from_scalars, scale, to_scalars, with_blinders
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_FIELD_ELEMENT, FIELD_ELEMENTS_PER_BLOB
from consilium_zk.kzg import commit, setup
from consilium_zk.packing import LaneLayout, pack
from consilium_zk.quantise import Quantiser
from matplotlib.axes import Axes
from numpy.typing import NDArray
from py_arkworks_bls12381 import G1Point, Scalar
from py_ecc import optimized_bls12_381 as py_ecc
from py_ecc.bls.g2_primitives import G1_to_pubkey, pubkey_to_G1

from bench.results_store import COLOURS, figure, say, spread, write_figure

PARAMETERS = 1_000_000
TOTAL_WEIGHT = 60
VALUE_RANGE = 0.1
AIM = 1_000_000  # parameters a second and core at 8 bits
PY_ECC_SCALARS = 32
PEDERSEN_PARAMETERS = 2_000
WINDOW = 256  # multiples of one power of a fixed base that are computed beforehand
COHORT = 10
# Models that the zkFL paper reports on: parameters, and its minutes, on its authors' machines and with its proofs.
PAPER = (("ResNet-18", 11_200_000, "10 to 20"), ("ResNet-50", 25_600_000, "54.72"))
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


def committed(blobs: Sequence[bytes]) -> list[bytes]:
    return [ckzg.blob_to_kzg_commitment(blob, setup()) for blob in blobs]


def one_by_one(commit: Callable[[int, int], bytes], messages: Sequence[int], blinders: Sequence[int]) -> list[bytes]:
    return [commit(*pair) for pair in zip(messages, blinders, strict=True)]


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Processor seconds of this process, and what the function returned."""
    started = time.process_time()
    result = function()
    return time.process_time() - started, result


def full_path(
    update: NDArray[np.float32], quantiser: Quantiser, layout: LaneLayout
) -> tuple[dict[str, float], list[Blob]]:
    """A hospital's work on a clipped update, stage by stage, and the blobs that came out."""
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
        raw.append(timed(partial(committed, blobs))[0])
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


def measure_others(repetitions: int) -> dict[str, Any]:
    """One blob's parameters committed to by the full path; samples of them with py_ecc and with Pedersen commitments.

    Seconds a parameter. py_ecc adds up scalar times point, as its users do: it has no multi-scalar multiplication, so
    its time is that of its sample times scalars. Pedersen commitments g^m h^r come from arkworks, once by the library's
    multiplication, once from tables of multiples of both bases; each ends as 48 bytes, as ours do.
    """
    say(f"against py_ecc and Pedersen commitments, {repetitions} times")
    layout, quantiser = LaneLayout(8, TOTAL_WEIGHT), Quantiser(8, VALUE_RANGE)
    parameters = layout.lanes_per_blob
    update = np.random.default_rng(2).normal(0, VALUE_RANGE / 4, parameters).astype(np.float32)
    lanes = quantiser.quantise(update)
    sample = to_scalars(pack(lanes, layout)[0])[:PY_ECC_SCALARS]
    commitment = commit(from_scalars([*sample, *[0] * (FIELD_ELEMENTS_PER_BLOB - len(sample))]))
    points = [pubkey_to_G1(raw) for raw in lagrange_points(len(sample))]
    messages = lanes[:PEDERSEN_PARAMETERS].tolist()
    pedersen = Pedersen()
    seconds: dict[str, list[float]] = {"ours": [], "py_ecc": [], "pedersen": [], "pedersen_by_tables": []}
    for _ in range(repetitions):
        ours, _ = full_path(update, quantiser, layout)
        seconds["ours"].append(sum(ours.values()) / parameters)
        spent, found = timed(lambda: by_py_ecc(points, sample))
        if found != commitment:
            raise RuntimeError("py_ecc comes to another commitment")
        seconds["py_ecc"].append(spent / len(sample) * FIELD_ELEMENTS_PER_BLOB / parameters)
        blinders = [secrets.randbelow(BLS_MODULUS) for _ in messages]
        plain, one = timed(partial(one_by_one, pedersen.commit, messages, blinders))
        tables, other = timed(partial(one_by_one, pedersen.by_tables, messages, blinders))
        if one != other:
            raise RuntimeError("the tables come to another Pedersen commitment")
        seconds["pedersen"].append(plain / len(messages))
        seconds["pedersen_by_tables"].append(tables / len(messages))
    return {
        "bits": 8,
        "sample": {
            "ours": f"{parameters} parameters, one blob",
            "py_ecc": f"{len(sample)} of the blob's scalars; the point is compared with ours",
            "pedersen": f"{len(messages)} parameters, fresh blinders; both ways' points are compared",
        },
        "ns_per_parameter": {name: spread([value * 1e9 for value in values], 1) for name, values in seconds.items()},
        "ratios": {
            name: spread([a / b for a, b in zip(values, seconds["ours"], strict=True)], 1)
            for name, values in seconds.items()
            if name != "ours"
        },
    }


def lagrange_points(count: int) -> list[bytes]:
    """The first points of the setup in the order of a blob's scalars, compressed: commitments to one scalar of one."""
    units = ([0] * index + [1] + [0] * (FIELD_ELEMENTS_PER_BLOB - 1 - index) for index in range(count))
    return [commit(from_scalars(unit)) for unit in units]


def by_py_ecc(points: list[Any], scalars: list[int]) -> bytes:
    total = py_ecc.Z1
    for point, scalar in zip(points, scalars, strict=True):
        total = py_ecc.add(total, py_ecc.multiply(point, scalar))
    return bytes(G1_to_pubkey(total))


class Pedersen:
    """Commitments g^m h^r to one small number each, 48 bytes."""

    def __init__(self) -> None:
        self._g, self._h = G1Point(), G1Point.hash_to_curve(b"h", b"CONSILIUM-BENCH")
        self._multiples = self._table(self._g)
        self._powers = []
        base = self._h
        for _ in range(BYTES_PER_FIELD_ELEMENT):
            self._powers.append(self._table(base))
            base = self._powers[-1][-1] + base

    @staticmethod
    def _table(base: Any) -> list[Any]:
        table = [G1Point.identity()]
        for _ in range(WINDOW - 1):
            table.append(table[-1] + base)
        return table

    def commit(self, message: int, blinder: int) -> bytes:
        return bytes((self._g * Scalar(message) + self._h * Scalar(blinder)).to_compressed_bytes())

    def by_tables(self, message: int, blinder: int) -> bytes:
        """The same with an addition for every byte of the blinder."""
        total = self._multiples[message]
        for table, digit in zip(self._powers, blinder.to_bytes(BYTES_PER_FIELD_ELEMENT, "little"), strict=True):
            total += table[digit]
        return bytes(total.to_compressed_bytes())


def measure_after(parameters: int, repetitions: int) -> dict[str, Any]:
    """The masks that follow the commitment to an update of 8-bit values.

    Mask: what the last of a cohort does, its weight, own mask and one mask
    with each other. Unmask: the survivors' own masks, and those of who dropped out with them, away from a sum.
    """
    say(f"masking and unmasking {parameters:,} parameters, {repetitions} times")
    update = np.random.default_rng(3).normal(0, VALUE_RANGE / 4, parameters).astype(np.float32)
    _, blobs = full_path(update, Quantiser(8, VALUE_RANGE), LaneLayout(8, TOTAL_WEIGHT))
    context, roots = b"bench", [secrets.randbelow(BLS_MODULUS) for _ in range(COHORT)]
    keys = {index: masks.mask_key(root) for index, root in enumerate(roots)}
    own = [masks.own_seed(root, context) for root in roots]
    last = COHORT - 1
    pairs = masks.pair_seeds(last, roots[last], keys, context)
    weight = TOTAL_WEIGHT // COHORT

    def masked() -> list[Blob]:
        return [add([scale(blob, weight), masks.mask(last, own[last], pairs, k)]) for k, blob in enumerate(blobs)]

    def unmasked(dropped: int) -> list[Blob]:
        gone = {last: pairs} if dropped else {}
        return [masks.without(b, masks.residue(own[: COHORT - dropped], gone, k)) for k, b in enumerate(blobs)]

    work: dict[str, Callable[[], object]] = {
        "commit": lambda: [commit(blob) for blob in blobs],
        "mask": masked,
        "unmask": lambda: unmasked(0),
        "unmask, 1 dropped out": lambda: unmasked(1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repetitions):
        for name, function in work.items():
            seconds[name].append(timed(function)[0])
    return {
        "bits": 8,
        "parameters": parameters,
        "blobs": len(blobs),
        "cohort": COHORT,
        "seconds": {name: spread(values) for name, values in seconds.items()},
        "params_per_s_core": {
            name: round(parameters / spread(values, 9)["median"]) for name, values in seconds.items()
        },
        "ratios_to_commit": {
            name: spread([a / b for a, b in zip(values, seconds["commit"], strict=True)], 4)
            for name, values in seconds.items()
            if name != "commit"
        },
    }


def projection(ns_per_parameter: dict[str, dict[str, float | int]]) -> dict[str, Any]:
    """Seconds for whole models on one core, by the rates measured here."""
    return {
        "what": "a projection: the rate here times parameters, one core. The paper's minutes are as it reports them, on"
        " other hardware and with its proofs: not like for like",
        "rows": [
            {
                "model": model,
                "parameters": parameters,
                "seconds": {
                    name: round(value["median"] * parameters / 1e9, 1) for name, value in ns_per_parameter.items()
                },
                "paper_minutes": minutes,
            }
            for model, parameters, minutes in PAPER
        ],
    }


def measure(quick: bool) -> dict[str, Any]:
    parameters, repetitions = (100_000, 2) if quick else (PARAMETERS, 9)
    with single_core():
        setup()
        rows = [measure_bits(bits, parameters, repetitions) for bits in (8, 16)]
        others = measure_others(repetitions)
        after = measure_after(parameters, repetitions)
    rates = after["params_per_s_core"]
    return {
        "params_per_s_core": rows[0]["params_per_s_core"],
        "ratio_to_raw_ckzg": rows[0]["ratio_to_raw_ckzg"],
        "ratio_to_py_ecc": others["ratios"]["py_ecc"]["median"],
        "ratio_to_pedersen_per_parameter": others["ratios"]["pedersen_by_tables"]["median"],
        **{f"{name}_params_per_s_core": rates[name] for name in ("mask", "unmask")},
        "aim_params_per_s_core": AIM,
        "what": "stochastic quantisation, packing, blinding and commitment on one core, processor time,"
        " against ckzg.blob_to_kzg_commitment alone on the same blobs, alternating; py_ecc's and Pedersen's time a"
        " parameter over ours (Pedersen with tables of multiples, its faster way);"
        f" mask and unmask in a cohort of {COHORT}, of whom nobody dropped out",
        "rows": rows,
        "others": others,
        "after": after,
        "projection": projection(others["ns_per_parameter"]),
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (stages, rates) = figure(8, 5.6, rows=2)
    plot_stages(result, stages)
    plot_rates(result, rates)
    write_figure(folder, "commit", drawn)


def plot_stages(result: dict[str, Any], axes: Axes) -> None:
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


def plot_rates(result: dict[str, Any], axes: Axes) -> None:
    theirs = {name: 1e9 / value["median"] for name, value in result["others"]["ns_per_parameter"].items()}
    bars = [
        ("py_ecc: the same commitment", theirs["py_ecc"], COLOURS["plain"]),
        ("Pedersen commitment to each", theirs["pedersen"], COLOURS["plain"]),
        ("the same, with tables", theirs["pedersen_by_tables"], COLOURS["plain"]),
        ("commit", result["params_per_s_core"], COLOURS["committing"]),
        (f"unmask the sum of {COHORT}", result["unmask_params_per_s_core"], COLOURS["uploading"]),
        (f"mask, one of {COHORT}", result["mask_params_per_s_core"], COLOURS["uploading"]),
    ]
    for position, (_, rate, shade) in enumerate(reversed(bars)):
        axes.barh(position, rate, color=shade)
        axes.text(rate * 1.1, position, _short(rate), va="center", fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, _, _ in reversed(bars)])
    axes.set_xscale("log")
    axes.set_xlim(100, max(rate for _, rate, _ in bars) * 10)
    axes.set_xlabel("parameters a second and core, 8-bit values")
    axes.set_title("Against other ways, and what follows", loc="left")


def _short(rate: float) -> str:
    return f"{rate / 1e6:,.1f} M" if rate >= 1e6 else f"{rate / 1e3:,.1f} k"


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        (
            f"commit, {row['bits']} bits",
            f"{row['params_per_s_core']:,} parameters/s and core, {row['ratio_to_raw_ckzg']:.2f} × raw ckzg",
        )
        for row in result["rows"]
    ]
    rates = {name: f"{result[f'{name}_params_per_s_core'] / 1e6:.1f} M" for name in ("mask", "unmask")}
    return [
        *lines,
        (
            "commit, against others",
            f"{result['ratio_to_py_ecc']:,.0f} × as fast as py_ecc,"
            f" {result['ratio_to_pedersen_per_parameter']:,.0f} × as Pedersen commitments to each parameter",
        ),
        ("parameters/s and core", ", ".join(f"{name} {rate}" for name, rate in rates.items())),
    ]
