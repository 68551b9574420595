"""Writes progress.json: what decoys of later rounds take back, by ckzg and plain integers alone.

Run with py_ecc, ckzg, eth_abi and eth_utils installed: `python tests/vectors/generate_progress.py TRUSTED_SETUP`. The
output does not change from run to run. Of each sum only the first lanes are drawn; all others are what updates of
zero leave in them, `empty`.
"""

from __future__ import annotations

import json
import random
import sys
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import ckzg
from generate import hexed
from generate_decoys import STRENGTH, USABLE, packed, point


def one_task(
    setup: Any, source: random.Random, name: str, bits: int, lane_bits: int, blobs: int, rounds: list[list[int]]
) -> dict[str, Any]:
    """rounds: the weights of each one's accepted cohorts. Values drift upwards, so that some are clamped in the end."""
    offset, per_blob = 2 ** (bits - 1) - 1, USABLE * (252 // lane_bits)
    drawn = (blobs - 1) * per_blob + 40
    progress, told = [0] * drawn, []
    for weights in rounds:
        negated_delta = [max(-offset, min(offset, p * STRENGTH // 16)) for p in progress]
        sums, totals = [], [0] * drawn
        for weight in weights:
            values = [source.randrange(-weight * offset // 2, weight * offset + 1) for _ in range(drawn)]
            flipped = source.random() < 0.5
            middle = 2 * weight * offset
            lanes = [
                middle - v - weight * b if flipped else middle + v for v, b in zip(values, negated_delta, strict=True)
            ]
            sums.append(
                {"weight": weight, "flipped": flipped, "empty": str(middle), "lanes": [str(lane) for lane in lanes]}
            )
            totals = [t + v for t, v in zip(totals, values, strict=True)]
        if weights:  # rounded to the nearest, halves upwards
            progress = [
                p + floor(Fraction(t, sum(weights)) + Fraction(1, 2)) for p, t in zip(progress, totals, strict=True)
            ]
        told.append(sums)
    backs = [offset + max(-offset, min(offset, p * STRENGTH // 16)) for p in progress]
    backs += [offset] * (blobs * per_blob - drawn)
    points = [point(setup, packed(backs[at : at + per_blob], lane_bits)) for at in range(0, len(backs), per_blob)]
    return {
        "name": name, "bits": bits, "lane_bits": lane_bits, "blobs": blobs, "parameters": drawn, "rounds": told,
        "negated_delta": hexed(b"".join(points)),
    }  # fmt: skip


def main() -> None:
    setup = ckzg.load_trusted_setup(sys.argv[1], 0)
    source = random.Random(2027)
    vectors = {
        "source": "tests/vectors/generate_progress.py, by ckzg",
        "cases": [
            one_task(setup, source, "three rounds", 16, 25, 1, [[3, 9], [1, 5], [14]]),
            one_task(setup, source, "a round of which nothing was accepted", 8, 16, 1, [[2], [], [7, 1, 3]]),
            one_task(setup, source, "the widest lanes", 39, 63, 1, [[2**22], [2**21, 5]]),
        ],
    }
    text = json.dumps(vectors, indent=None, separators=(",", ":")) + "\n"
    (Path(__file__).parent / "progress.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
