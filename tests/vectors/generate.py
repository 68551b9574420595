"""Writes protocol.json: commitments, weighted sums and BLS signatures, by py_ecc and ckzg alone.

Run with py_ecc, ckzg, eth_abi and eth_utils installed: `python tests/vectors/generate.py TRUSTED_SETUP`, where the
setup is Ethereum's (eth-account ships it). The output does not change from run to run. Contract, staking and the
nodes are the addresses that the forge tests put their contracts and nodes at.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import ckzg
from eth_abi.abi import encode
from eth_abi.packed import encode_packed
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.bls.point_compression import decompress_G1
from py_ecc.optimized_bls12_381 import (
    FQ,
    FQ2,
    G1,
    G2,
    b,
    b2,
    curve_order,
    field_modulus,
    is_inf,
    is_on_curve,
    multiply,
    neg,
    normalize,
)

CHAIN_ID = 31337
TASKS = to_checksum_address(f"0x{0x7A5C:040x}")
STAKING = to_checksum_address(f"0x{0x57A4:040x}")
HOSPITALS = [to_checksum_address(f"0x{0x10001 + i:040x}") for i in range(3)]
VOTER = to_checksum_address(f"0x{0x20001:040x}")
TASK, ROUND = 1, 0
WEIGHTS = [1, 3, 250]
TICKET_DST = b"CONSILIUM-V1-TICKET_BLS12381G1_XMD:SHA-256_SSWU_RO_"
POSSESSION_DST = b"CONSILIUM-V1-POP_BLS12381G1_XMD:SHA-256_SSWU_RO_"
SCALARS_PER_BLOB = 4096


def hexed(raw: bytes) -> str:
    return "0x" + raw.hex()


def g1_bytes(point: Any) -> bytes:
    if is_inf(point):
        return bytes(128)
    return b"".join(int(coordinate).to_bytes(64, "big") for coordinate in normalize(point))


def g2_bytes(point: Any) -> bytes:
    x, y = normalize(point)
    return b"".join(int(coordinate).to_bytes(64, "big") for coordinate in (*x.coeffs, *y.coeffs))


def compressed_bytes(point: Any) -> bytes:
    if is_inf(point):
        return b"\xc0" + bytes(47)
    x, y = (int(coordinate) for coordinate in normalize(point))
    flags = 0x80 | (0x20 if y > (field_modulus - 1) // 2 else 0)
    raw = bytearray(x.to_bytes(48, "big"))
    raw[0] |= flags
    return bytes(raw)


def point_of(commitment: bytes) -> Any:
    return decompress_G1(int.from_bytes(commitment, "big"))


def blob_of(scalars: list[int]) -> bytes:
    return b"".join(scalar.to_bytes(32, "big") for scalar in scalars)


def versioned_hash(commitment: bytes) -> bytes:
    return b"\x01" + hashlib.sha256(commitment).digest()[1:]


def point_hashes(hospital: str, commitments: list[bytes]) -> list[bytes]:
    """The hashes by which a hospital commits to its points, one per blob."""
    types = ["bytes32", "uint256", "address", "uint256", "uint256"]
    context = keccak(encode(types, [keccak(b"CONSILIUM-V1-POINT"), CHAIN_ID, TASKS, TASK, ROUND]))
    packed = ["bytes32", "address", "uint256", "bytes"]
    return [keccak(encode_packed(packed, [context, hospital, blob, point])) for blob, point in enumerate(commitments)]


def committed(setup: Any, hospital: str, blobs: list[list[int]]) -> dict[str, Any]:
    """Commitments to a hospital's blobs, and their hashes."""
    commitments = [ckzg.blob_to_kzg_commitment(blob_of(scalars), setup) for scalars in blobs]
    return {
        "hospital": hospital,
        "commitments": hexed(b"".join(commitments)),
        "points": hexed(b"".join(g1_bytes(point_of(commitment)) for commitment in commitments)),
        "point_hashes": [hexed(one) for one in point_hashes(hospital, commitments)],
    }


def weighted_sum(setup: Any, blobs: list[list[int]], weights: list[int]) -> dict[str, Any]:
    columns = zip(*blobs, strict=True)
    total = [sum(w * s for w, s in zip(weights, column, strict=True)) % curve_order for column in columns]
    commitment = ckzg.blob_to_kzg_commitment(blob_of(total), setup)
    return {
        "weights": weights,
        "commitment": hexed(commitment),
        "versioned_hash": hexed(versioned_hash(commitment)),
    }


def setup_tau(setup: Any) -> dict[str, Any]:
    """The commitment to the polynomial X: its blob holds the domain in bit-reversed order."""
    generator = pow(7, (curve_order - 1) // SCALARS_PER_BLOB, curve_order)
    domain = [pow(generator, int(f"{i:012b}"[::-1], 2), curve_order) for i in range(SCALARS_PER_BLOB)]
    commitment = ckzg.blob_to_kzg_commitment(blob_of(domain), setup)
    return {"compressed": hexed(commitment), "point": hexed(g1_bytes(point_of(commitment)))}


def outside_g1() -> dict[str, Any]:
    """The curve's point of the smallest x that is outside the subgroup."""
    for x in range(1, 100):
        square = (x**3 + 4) % field_modulus
        y = pow(square, (field_modulus + 1) // 4, field_modulus)
        point = (FQ(x), FQ(y), FQ(1))
        if y * y % field_modulus == square and not is_inf(multiply(point, curve_order)):
            if not is_on_curve(point, b):
                raise ValueError("the point must be on the curve")
            return {"point": hexed(g1_bytes(point)), "compressed": hexed(compressed_bytes(point))}
    raise ValueError("no point outside the subgroup")


def outside_g2() -> str:
    for x in range(1, 100):
        square = FQ2([x, 0]) ** 3 + b2
        root = fq2_root(square)
        if root is None:
            continue
        point = (FQ2([x, 0]), root, FQ2.one())
        if is_on_curve(point, b2) and not is_inf(multiply(point, curve_order)):
            return hexed(g2_bytes(point))
    raise ValueError("no point outside the subgroup")


def fq2_root(square: Any) -> Any:
    """A root in Fq2, where there is one (q = p^2 is 9 mod 16: a candidate times an eighth root of unity)."""
    candidate = square ** ((field_modulus**2 + 7) // 16)
    unity = FQ2([1, 1]) ** ((field_modulus**2 - 1) // 8)
    for power in range(8):
        root = candidate * unity**power
        if root * root == square:
            return root
    return None


def signatures() -> dict[str, Any]:
    secret = int.from_bytes(hashlib.sha256(b"consilium voter").digest(), "big") % curve_order
    public = g2_bytes(multiply(G2, secret))
    seed = keccak(b"a seat's seed")
    types = ["uint256", "address", "uint256", "uint256", "bytes32"]
    message = encode(types, [CHAIN_ID, TASKS, TASK, 1, seed])
    possession = encode(["uint256", "address", "address", "bytes"], [CHAIN_ID, STAKING, VOTER, public])
    ticket = multiply(hash_to_G1(message, TICKET_DST, hashlib.sha256), secret)
    proof = multiply(hash_to_G1(possession, POSSESSION_DST, hashlib.sha256), secret)
    return {
        "voter": VOTER,
        "public_key": hexed(public),
        "possession_message": hexed(possession),
        "proof_of_possession": hexed(g1_bytes(proof)),
        "seed": hexed(seed),
        "ticket_message": hexed(message),
        "ticket": hexed(g1_bytes(ticket)),
        "draw": hexed(keccak(g1_bytes(ticket))),
    }


def compressions() -> list[dict[str, Any]]:
    points = [G1, neg(G1), multiply(G1, 2), multiply(G1, 5), multiply(G1, curve_order), multiply(G1, 123456789)]
    return [{"point": hexed(g1_bytes(point)), "compressed": hexed(compressed_bytes(point))} for point in points]


def main() -> None:
    setup = ckzg.load_trusted_setup(sys.argv[1], 0)
    source = random.Random(2024)
    blobs = [[source.randrange(curve_order) for _ in range(SCALARS_PER_BLOB)] for _ in HOSPITALS]
    vectors = {
        "source": "tests/vectors/generate.py, by py_ecc and ckzg",
        "chain_id": CHAIN_ID,
        "tasks": TASKS,
        "staking": STAKING,
        "task": TASK,
        "round": ROUND,
        "tau": setup_tau(setup),
        "committed": [committed(setup, hospital, [blob]) for hospital, blob in zip(HOSPITALS, blobs, strict=True)],
        "committed_three": committed(setup, HOSPITALS[0], blobs),
        "unweighted_sum": weighted_sum(setup, blobs, [1, 1, 1]),
        "weighted_sum": weighted_sum(setup, blobs, WEIGHTS),
        "signatures": signatures(),
        "compressions": compressions(),
        "outside_g1": outside_g1(),
        "outside_g2": outside_g2(),
    }
    text = json.dumps(vectors, indent=1) + "\n"
    (Path(__file__).parent / "protocol.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
