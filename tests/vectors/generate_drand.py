"""Writes drand_quicknet.json: published rounds of drand's quicknet, and proofs that prove nothing.

Run with py_ecc, py-arkworks-bls12381, eth_abi and eth_utils installed: `python tests/vectors/generate_drand.py`. The
rounds were published by the League of Entropy and are copied from the sources named beside them; each is verified here
by two independent implementations of the pairing, and nothing is written where one of them refuses.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak
from generate import compressed_bytes, g1_bytes, g2_bytes, hexed, outside_g1
from py_arkworks_bls12381 import GT, G1Point, G2Point
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.bls.point_compression import decompress_G1, decompress_G2
from py_ecc.optimized_bls12_381 import (
    FQ,
    G1,
    G2,
    Z1,
    add,
    curve_order,
    field_modulus,
    is_inf,
    multiply,
    neg,
    pairing,
)

# https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/info, as pinned by
# drand/drand common/chain/info_test.go.
CHAIN_HASH = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
PUBLIC_KEY = bytes.fromhex(
    "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
    "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
)
GENESIS, PERIOD = 1_692_803_367, 3
SCHEME = "bls-unchained-g1-rfc9380"
DST = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"

IDN = "ideal-lab5/idn-sdk primitives/crypto/src/test_utils.rs"
BLS_SOLIDITY = "randa-mu/bls-solidity test/data/testcases.json"
PUBLISHED = [
    (42, "drand/drand-docs docs/developer/06-HTTP-API.md",
     "95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a"),
    (123, "noislabs/drand-verify src/verify.rs",
     "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92"),
    (1000, IDN, "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"),
    (1001, IDN, "b33bf3667cbd5a82de3a24b4e0e9fe5513cc1a0e840368c6e31f5fcfa79bea03f73896b25883abf2853d10337fb8fa41"),
    (1002, IDN, "ab066f9c12dd6de1336fca0f925192fb0c72a771c3e4c82ede1fd362c1a770f9eb05843c6308ce2530b53a99c0281a6e"),
    (1003, IDN, "b104c82771698f45fd8dcfead083d482694c31ab519bcef077f126f3736fe98c8392fd5d45d88aeb76b56ccfcb0296d7"),
    (657413, "mcdcam/python-drand-verify README.md",
     "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b"),
    (20791007, BLS_SOLIDITY,
     "8d2c8bbc37170dbacc5e280a21d4e195cff5f32a19fd6a58633fa4e4670478b5fb39bc13dd8f8c4372c5a76191198ac5"),
    (20905307, BLS_SOLIDITY,
     "8a60486975062d9f06633c284cf1a7b46fb343f56f329f180530ca40a9e86320244f4fbfc37ae866cf25ef499665a31f"),
]  # fmt: skip
# What a relay, or who copied from one, said that the randomness is: the only value not computed here.
PUBLISHED_RANDOMNESS = {
    1000: "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd",
    657413: "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587",
}


def message_of(round_: int) -> bytes:
    return hashlib.sha256(round_.to_bytes(8, "big")).digest()


def point_of(signature: bytes) -> Any:
    return decompress_G1(int.from_bytes(signature, "big"))


def quicknet_key() -> Any:
    half = len(PUBLIC_KEY) // 2
    return decompress_G2((int.from_bytes(PUBLIC_KEY[:half], "big"), int.from_bytes(PUBLIC_KEY[half:], "big")))


def pairings_agree(round_: int, point: Any) -> bool:
    """By py_ecc, which does not look whether the point is in the subgroup."""
    hashed = hash_to_G1(message_of(round_), DST, hashlib.sha256)
    return bool(pairing(G2, point) == pairing(quicknet_key(), hashed))


def verify(round_: int, signature: bytes) -> None:
    """By py_ecc and by arkworks. Raises ValueError."""
    by_py_ecc = pairings_agree(round_, point_of(signature))
    points = [G1Point.from_compressed_bytes(signature), -G1Point.hash_to_curve(message_of(round_), DST)]
    by_arkworks = GT.pairing_check(points, [G2Point(), G2Point.from_compressed_bytes(PUBLIC_KEY)])
    if not (by_py_ecc and by_arkworks):
        raise ValueError(f"round {round_}: py_ecc says {by_py_ecc}, arkworks says {by_arkworks}")


def published_round(round_: int, source: str, signature: bytes) -> dict[str, Any]:
    verify(round_, signature)
    randomness = hashlib.sha256(signature).digest()
    if PUBLISHED_RANDOMNESS.get(round_, randomness.hex()) != randomness.hex():
        raise ValueError(f"round {round_}: the published randomness is another")
    return {
        "round": round_,
        "time": GENESIS + (round_ - 1) * PERIOD,
        "signature": hexed(signature),
        "point": hexed(g1_bytes(point_of(signature))),
        "randomness": hexed(randomness),
        "seed": hexed(keccak(encode(["bytes32", "uint256"], [randomness, round_]))),
        "source": source,
    }


def invalid_proofs() -> list[dict[str, Any]]:
    """Proofs for round 1000, by what is wrong with them; `compressed` where a relay could say the same in 48 bytes."""
    signatures = {round_: point_of(bytes.fromhex(signature)) for round_, _, signature in PUBLISHED}
    true, other = signatures[1000], signatures[1001]
    raw = g1_bytes(true)
    secret = int.from_bytes(hashlib.sha256(b"another drand chain's key").digest(), "big") % curve_order
    order_three = (FQ(0), FQ(2), FQ(1))
    if not is_inf(multiply(order_three, 3)) or not pairings_agree(1000, add(true, order_three)):
        raise ValueError("the point must have order 3, and be lost in the pairing")
    x, y = int.from_bytes(raw[:64], "big"), int.from_bytes(raw[64:], "big")
    points = {
        "signature of another round": other,
        "signature by another key": multiply(hash_to_G1(message_of(1000), DST, hashlib.sha256), secret),
        "negated signature": neg(true),
        "generator": G1,
        "identity": Z1,
        # Their pairing is the signature's own: without a check of the subgroup one round would have three seeds.
        "signature plus a point of order 3": add(true, order_three),
        "signature minus a point of order 3": add(true, neg(order_three)),
    }
    proofs = [
        {"name": name, "proof": hexed(g1_bytes(point)), "compressed": hexed(compressed_bytes(point))}
        for name, point in points.items()
    ]
    outside = outside_g1()
    proofs.append({"name": "outside the subgroup", "proof": outside["point"], "compressed": outside["compressed"]})
    others = {
        "x with its lowest bit flipped": bytes([*raw[:63], raw[63] ^ 1, *raw[64:]]),
        "y with its lowest bit flipped": bytes([*raw[:127], raw[127] ^ 1]),
        "x not reduced": (x + field_modulus).to_bytes(64, "big") + raw[64:],
        "y not reduced": raw[:64] + (y + field_modulus).to_bytes(64, "big"),
        "x padded with a one": b"\x01" + raw[1:],
        "y padded with a one": raw[:64] + b"\x01" + raw[65:],
        "all ones": b"\xff" * 128,
        "empty": b"",
        "one byte short": raw[:-1],
        "one byte long": raw + b"\0",
        "twice": raw + raw,
        "compressed": compressed_bytes(true),
    }
    return proofs + [{"name": name, "proof": hexed(proof)} for name, proof in others.items()]


def main() -> None:
    vectors = {
        "source": "tests/vectors/generate_drand.py: rounds as published, verified by py_ecc and arkworks",
        "chain_hash": CHAIN_HASH,
        "scheme": SCHEME,
        "genesis": GENESIS,
        "period": PERIOD,
        "public_key": hexed(PUBLIC_KEY),
        "public_key_point": hexed(g2_bytes(quicknet_key())),
        "rounds": [published_round(round_, source, bytes.fromhex(text)) for round_, source, text in PUBLISHED],
        "invalid_round": 1000,
        "invalid": invalid_proofs(),
    }
    text = json.dumps(vectors, indent=1) + "\n"
    (Path(__file__).parent / "drand_quicknet.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
