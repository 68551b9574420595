"""Writes basis.json: what a codec's coordinates add to parameters, from RFC 8439 and RFC 5869 alone, in plain Python.

Run without anything installed: `python tests/vectors/generate_basis.py`. The output does not change from run to run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import struct
from pathlib import Path

TAG = b"CONSILIUM-V1-BASIS"


def hkdf(secret: bytes, salt: bytes) -> bytes:
    """RFC 5869, SHA-256, 32 bytes, no info."""
    key = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(key, b"\x01", hashlib.sha256).digest()


def chacha_block(key: bytes, counter: int, nonce: bytes) -> list[int]:
    """RFC 8439, section 2.3: 16 words."""

    def turned(word: int, by: int) -> int:
        return (word << by | word >> 32 - by) & 0xFFFFFFFF

    def quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
        for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[first] = s[first] + s[second] & 0xFFFFFFFF
            s[third] = turned(s[third] ^ s[first], by)

    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter,
             *struct.unpack("<3I", nonce)]  # fmt: skip
    state = start.copy()
    for _ in range(10):
        for one in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
            quarter(state, *one)
        for one in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(state, *one)
    return [one + other & 0xFFFFFFFF for one, other in zip(state, start, strict=True)]


def words(seed: bytes, stream: int, count: int) -> list[int]:
    key, found = hkdf(seed, TAG), list[int]()
    while len(found) < count:
        found += chacha_block(key, len(found) // 16, stream.to_bytes(12, "little"))
    return found[:count]


def coordinates(size: int) -> list[float]:
    return [(place * 7919 % 2_001 - 1_000) / 512 for place in range(size)]


def hashed(seed: bytes, parameters: int, size: int) -> list[float]:
    values = coordinates(size)
    return [(-1 if word & 1 else 1) * values[(word >> 1) * size >> 31] for word in words(seed, 0, parameters)]


def low_rank(seed: bytes, shapes: dict[str, list[int]], rank: int, dense: list[str]) -> list[float]:
    found: list[float] = []
    columns = {name: math.prod(shape[1:]) for name, shape in shapes.items()}
    low = {name: count > rank and name not in dense for name, count in columns.items()}
    values = iter(coordinates(sum(shape[0] * (rank if low[n] else columns[n]) for n, shape in shapes.items())))
    for number, (name, (rows, *_)) in enumerate(shapes.items()):
        if not low[name]:
            found += [next(values) for _ in range(rows * columns[name])]
            continue
        stream = words(seed, number, -(-columns[name] * rank // 32))
        for _ in range(rows):
            own = [next(values) for _ in range(rank)]
            for column in range(columns[name]):
                total = 0.0
                for j in range(rank):
                    at = column * rank + j
                    total += own[j] * (1 - 2 * (stream[at // 32] >> at % 32 & 1))
                found.append(total * (1 / math.sqrt(rank)))
    return found


def summary(values: list[float]) -> dict[str, object]:
    raw = struct.pack(f"<{len(values)}d", *(value + 0.0 for value in values))  # no negative zero
    places = [0, 1, len(values) // 2, len(values) - 1]
    return {"values": {str(at): (values[at] + 0.0).hex() for at in places}, "sha256": hashlib.sha256(raw).hexdigest()}


def main() -> None:
    seed = hashlib.sha256(b"a task file").digest()
    cases: list[dict[str, object]] = [
        {"codec": {"name": "hash", "buckets": size}, "shapes": {"only": [count]}, "seed": seed.hex(),
         **summary(hashed(seed, count, size))}
        for count, size in ((40, 3), (1_000, 47), (70_001, 467))
    ]  # fmt: skip
    shapes = {"first.weight": [5, 40], "first.bias": [5], "conv.weight": [4, 3, 3, 3], "last.weight": [2, 4]}
    cases += [
        {"codec": {"name": "lowrank", "rank": rank, "dense": dense}, "shapes": shapes, "seed": seed.hex(),
         **summary(low_rank(seed, shapes, rank, dense))}
        for rank, dense in ((1, []), (3, []), (4, ["conv.weight"]))
    ]  # fmt: skip
    (Path(__file__).parent / "basis.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
