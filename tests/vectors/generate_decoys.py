"""Writes decoys.json: what decoy rounds publish and what a contract finds, by py_ecc, ckzg and plain integers alone.

Run with py_ecc, ckzg, eth_abi and eth_utils installed: `python tests/vectors/generate_decoys.py TRUSTED_SETUP`. The
output does not change from run to run. Blobs are built lane by lane and committed to; nothing uses that commitments are
linear, which is what the vectors are to test. Points are in EIP-2537 encoding, those of several hospitals one after the
other, in order of their index.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import ckzg
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from generate import blob_of, g1_bytes, hexed, point_of, versioned_hash
from py_ecc.optimized_bls12_381 import G1, curve_order

SCALARS, USABLE = 4096, 4094
TAG = keccak(b"CONSILIUM-V1-CANARY")
STRENGTH = 24  # sixteenths


def commitment(setup: Any, scalars: list[int]) -> bytes:
    return bytes(ckzg.blob_to_kzg_commitment(blob_of(scalars), setup))


def point(setup: Any, scalars: list[int]) -> bytes:
    return g1_bytes(point_of(commitment(setup, scalars)))


def blinder_point(setup: Any, index: int) -> dict[str, Any]:
    raw = point(setup, [int(i == index) for i in range(SCALARS)])
    return {"point": hexed(raw), "words": [hexed(raw[i : i + 32]) for i in range(0, 128, 32)]}


def packed(lanes: list[int], lane_bits: int) -> list[int]:
    """A blob's worth of lanes as scalars, both blinders zero."""
    count = 252 // lane_bits
    scalars = [
        sum(lane << (place * lane_bits) for place, lane in enumerate(lanes[start : start + count]))
        for start in range(0, len(lanes), count)
    ]
    return [*scalars, 0, 0]


def weighted(blobs: list[list[int]], weights: list[int]) -> list[int]:
    columns = zip(*blobs, strict=True)
    return [sum(w * s for w, s in zip(weights, column, strict=True)) % curve_order for column in columns]


def one_blob(
    setup: Any, source: random.Random, bits: int, lane_bits: int, weights: list[int], kind: str
) -> dict[str, Any]:
    """Hospitals' updates of one blob and what becomes of their sum.

    kind: `drawn`, all over the range, with progress; `first`, without progress; `most` and `least`, every lane at an
    end, where a carry would show; `garbage`, scalars all over the field, as a malicious hospital may commit to.
    """
    offset, count, weight = 2 ** (bits - 1) - 1, USABLE * (252 // lane_bits), sum(weights)
    if 4 * weight * offset >= 2**lane_bits:
        raise ValueError("the lanes are too narrow")
    ends = {"most": (2 * offset, -offset), "least": (0, offset)}
    if kind in ends:
        value, back = ends[kind]
        updates, backs = [[value] * count for _ in weights], [back] * count
    else:
        updates = [[source.randrange(2 * offset + 1) for _ in range(count)] for _ in weights]
        progress = [0 if kind == "first" else source.randrange(-offset, offset + 1) for _ in range(count)]
        backs = [max(-offset, min(offset, p * STRENGTH // 16)) for p in progress]
    blobs = [packed(update, lane_bits) for update in updates]
    if kind == "garbage":
        blobs = [[source.randrange(curve_order) for _ in range(SCALARS)] for _ in weights]
    for blob in blobs:
        blob[USABLE:] = [source.randrange(curve_order) for _ in range(SCALARS - USABLE)]
    total, negated_delta = weighted(blobs, weights), [offset + back for back in backs]
    if kind == "garbage":
        ones, back_scalars = packed([1] * count, lane_bits), packed(negated_delta, lane_bits)
        as_it_is = [(s + weight * offset * one) % curve_order for s, one in zip(total, ones, strict=True)]
        flipped = [
            (4 * weight * offset * one - weight * r - s) % curve_order
            for s, one, r in zip(total, ones, back_scalars, strict=True)
        ]
        as_it_is[USABLE:] = flipped[USABLE:] = [0, 0]
    else:  # lane by lane: y is x or -x - back
        sums = [sum(w * lane for w, lane in zip(weights, column, strict=True)) for column in zip(*updates, strict=True)]
        centred = [lane - weight * offset for lane in sums]
        as_it_is = packed([2 * weight * offset + wx for wx in centred], lane_bits)
        flipped = [2 * weight * offset - wx - weight * back for wx, back in zip(centred, backs, strict=True)]
        flipped = packed(flipped, lane_bits)
    return {
        "kind": kind,
        "points": hexed(b"".join(point(setup, blob) for blob in blobs)),
        "first": hexed(total[USABLE].to_bytes(32, "big")),
        "second": hexed(total[USABLE + 1].to_bytes(32, "big")),
        "negated_delta": hexed(point(setup, packed(negated_delta, lane_bits))),
        "hash_as_it_is": hexed(versioned_hash(commitment(setup, as_it_is))),
        "hash_flipped": hexed(versioned_hash(commitment(setup, flipped))),
    }


def one_round(
    setup: Any, source: random.Random, name: str, bits: int, lane_bits: int, weights: list[int], kinds: list[str]
) -> dict[str, Any]:
    """A cohort's round: a blob of each kind, and the secret bit."""
    seed, task, round_, cohort = (
        source.randbytes(32),
        source.randrange(1, 9),
        source.randrange(1, 9),
        source.randrange(4),
    )
    blobs = [one_blob(setup, source, bits, lane_bits, weights, kind) for kind in kinds]
    message = encode(["bytes32", "bytes32", "uint256", "uint256", "uint256"], [TAG, seed, task, round_, cohort])
    return {
        "name": name,
        "bits": bits,
        "lane_bits": lane_bits,
        "weights": weights,
        "task": task,
        "round": round_,
        "cohort": cohort,
        "seed": hexed(seed),
        "seed_commitment": hexed(keccak(encode(["bytes32", "bytes32"], [TAG, seed]))),
        "flipped": bool(keccak(message)[-1] & 1),
        "negated_delta_digest": hexed(keccak(b"".join(bytes.fromhex(blob["negated_delta"][2:]) for blob in blobs))),
        "blobs": blobs,
    }


def main() -> None:
    setup = ckzg.load_trusted_setup(sys.argv[1], 0)
    source = random.Random(2026)
    vectors = {
        "source": "tests/vectors/generate_decoys.py, by py_ecc and ckzg",
        "tag": hexed(TAG),
        "generator": hexed(g1_bytes(G1)),
        "blinder_points": [blinder_point(setup, index) for index in (USABLE, USABLE + 1)],
        "cases": [
            one_round(setup, source, "one hospital, two bits", 2, 3, [1], ["drawn"]),
            one_round(setup, source, "one hospital of the whole weight", 16, 25, [256], ["most", "least", "drawn"]),
            one_round(setup, source, "three hospitals, two blobs", 16, 25, [1, 3, 250], ["drawn", "drawn"]),
            one_round(setup, source, "the first round", 8, 16, [7, 9], ["first"]),
            one_round(setup, source, "the widest lanes", 39, 63, [2**22, 2**22], ["drawn", "most"]),
            one_round(setup, source, "a malicious hospital", 16, 24, [100, 28], ["garbage", "drawn"]),
        ],
    }
    text = json.dumps(vectors, indent=1) + "\n"
    (Path(__file__).parent / "decoys.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
