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


def product(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Of two directions: angles add."""
    return a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]


def cosine_table(chunk: int) -> list[list[float]]:
    """Row f: the scale of f times cos(π·(2i + 1)·f / 2n), by halves of a right angle alone."""
    halves = [(0.0, 1.0)]
    for _ in range(chunk.bit_length() - 1):
        cosine = math.sqrt((1 + halves[-1][0]) / 2)
        halves.append((cosine, halves[-1][1] / (2 * cosine)))

    def of(step: int) -> float:
        step %= 4 * chunk  # a full turn
        step = min(step, 4 * chunk - step)
        if step > chunk:
            return -of(2 * chunk - step)
        angle = (1.0, 0.0)
        for power in reversed(range(len(halves))):
            if step >> power & 1:
                angle = product(angle, halves[len(halves) - 1 - power])
        return angle[0]

    scales = [math.sqrt((2 if f else 1) / chunk) for f in range(chunk)]
    return [[scales[f] * of((2 * i + 1) * f) for i in range(chunk)] for f in range(chunk)]


def cosines(seed: bytes, shapes: dict[str, list[int]], chunk: int, kept: int) -> list[float]:
    parts = [divmod(math.prod(shape), chunk) for shape in shapes.values()]
    values = iter(coordinates(sum(chunks * kept + rest for chunks, rest in parts)))
    table, found = cosine_table(chunk), list[float]()
    for number, (chunks, rest) in enumerate(parts):
        order = list(range(chunk))
        if chunks:
            for j, word in enumerate(words(seed, number, kept)):
                other = j + (word * (chunk - j) >> 32)
                order[j], order[other] = order[other], order[j]
        for _ in range(chunks):
            own = [next(values) for _ in range(kept)]
            for place in range(chunk):
                total = own[0] * table[sorted(order[:kept])[0]][place]
                for value, f in zip(own[1:], sorted(order[:kept])[1:], strict=True):
                    total += value * table[f][place]
                found.append(total * math.sqrt(chunk / kept))
        found += [next(values) for _ in range(rest)]
    return found


def sketched(seed: bytes, values: list[float], rows: int, columns: int) -> list[float]:
    found = [0.0] * (rows * columns)
    for row in range(rows):
        for value, word in zip(values, words(seed, row, len(values)), strict=True):
            found[row * columns + ((word >> 1) * columns >> 31)] += -value if word & 1 else value
    return found


def decoded(seed: bytes, sketch: list[float], size: int, rows: int, columns: int, kept: int) -> list[float]:
    """The largest medians, and behind them the rest of the sketch."""
    streams = [words(seed, row, size) for row in range(rows)]
    medians = []
    for place in range(size):
        own = sorted(
            (-1 if stream[place] & 1 else 1) * sketch[row * columns + ((stream[place] >> 1) * columns >> 31)]
            for row, stream in enumerate(streams)
        )
        medians.append(own[rows // 2])
    chosen = set(sorted(range(size), key=lambda place: (-abs(medians[place]), place))[:kept])
    values = [medians[place] if place in chosen else 0.0 for place in range(size)]
    taken = sketched(seed, values, rows, columns)
    return values + [one - other for one, other in zip(sketch, taken, strict=True)]


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
    cases += [
        {"codec": {"name": "dct", "chunk": chunk, "kept": kept}, "shapes": shapes, "seed": seed.hex(),
         **summary(cosines(seed, shapes, chunk, kept))}
        for chunk, kept in ((8, 1), (32, 5), (64, 63))
    ]  # fmt: skip
    cases += [
        {"codec": {"name": "sketch", "rows": rows, "columns": columns, "kept": kept}, "shapes": {"only": [size]},
         "seed": seed.hex(), **summary(decoded(seed, coordinates(rows * columns), size, rows, columns, kept))}
        for size, rows, columns, kept in ((40, 1, 7, 3), (1_000, 3, 101, 47), (5_001, 5, 64, 64))
    ]  # fmt: skip
    (Path(__file__).parent / "basis.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
