"""A public map from the k numbers that a hospital trains and commits to a model's p parameters.

The map follows from the task file's hash alone, so hospitals, voters and auditors have the same one. Its coefficients
are constants of the task: masks cancel, and a sum of updates maps to the sum of what they do to the model. `spread` is
elementwise IEEE arithmetic in a written order, so it gives the same bits on every machine. `gather`, its adjoint, is
for a hospital's own training and may round as a library likes. `CountSketch` alone is trained outside: its map from
parameters to numbers is linear, and the way back picks the largest.

With random signs the expectation of `spread(gather(g))` is g, so a learning rate keeps its meaning: E[B·Bᵀ] = I.

Sources: hashed weights, Chen et al., Compressing Neural Networks with the Hashing Trick, ICML 2015; training in a fixed
subspace, Li et al., Measuring the Intrinsic Dimension of Objective Landscapes, ICLR 2018; a public low-rank factor,
Sun et al., Improving LoRA in Privacy-preserving Federated Learning (FFA-LoRA), ICLR 2024; cosines of chunks, Peng,
Quesnelle and Kingma, DeMo, arXiv 2411.19870; sketches, Rothchild et al., FetchSGD, ICML 2020. ChaCha20: RFC 8439.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from .errors import ArgumentInvalid, ShapeWrong
from .key_exchange import derived

Coordinates = NDArray[np.float64]
Shapes = Mapping[str, tuple[int, ...]]
"""A model's tensors by name, in the order of its parameters, each row by row."""

BYTES_PER_SEED: Final = 32
MAX_SIZE: Final = 1 << 31  # coordinates
CHUNKS: Final = tuple(1 << power for power in range(1, 11))  # values of a chunk of `Cosines`
_TAG: Final = b"CONSILIUM-V1-BASIS"
_WORDS_PER_BLOCK: Final = 16  # of ChaCha20


class Basis(ABC):
    """`size`: k. `parameters`: p. `seed`: what it is drawn from, 32 bytes; empty if nothing is drawn."""

    size: int
    parameters: int
    seed = b""

    @abstractmethod
    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        """The part that `coordinates`, float64 (k,), add to parameters start … stop - 1: float64 (stop - start,)."""

    @abstractmethod
    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        """The gradient of the coordinates (k,) from that of the parameters (p,)."""


class Dense(Basis):
    """Each parameter is a coordinate."""

    def __init__(self, parameters: int) -> None:
        self.size = self.parameters = parameters

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        return coordinates[start:stop]

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        return gradient


class Shared(Basis):
    """All tensors but the `local` ones are coordinates, in their order; the local ones never move."""

    def __init__(self, shapes: Shapes, local: Collection[str]) -> None:
        """Raises ArgumentInvalid (a name in `local` that is no tensor's, or all names)."""
        if unknown := [name for name in local if name not in shapes]:
            raise ArgumentInvalid("local", unknown[0], f"one of {', '.join(shapes)}")
        if len(set(local)) == len(shapes):
            raise ArgumentInvalid("local", "all tensors", "some of them")
        sizes = [math.prod(shape) for shape in shapes.values()]
        self.is_shared = np.repeat([name not in local for name in shapes], sizes)
        self.parameters, self.size = self.is_shared.size, int(np.count_nonzero(self.is_shared))

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        _require_coordinates(coordinates, self.size)
        part, first = self.is_shared[start:stop], int(np.count_nonzero(self.is_shared[:start]))
        found = np.zeros(stop - start)
        found[part] = coordinates[first : first + int(np.count_nonzero(part))]
        return found

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = gradient[self.is_shared]
        return found


class Hashed(Basis):
    """Each parameter moves with one of k coordinates, or against it: both are drawn from the seed.

    Word i of the key stream, 32 bits little-endian, gives parameter i the sign of its lowest bit (1: against) and the
    coordinate floor((word >> 1) · k / 2^31). The stream's nonce is `stream`.
    """

    def __init__(self, seed: bytes, parameters: int, size: int, stream: int = 0) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (size outside [1, parameters])."""
        if not 1 <= size <= min(parameters, MAX_SIZE):
            raise ArgumentInvalid("size", size, f"in [1, {min(parameters, MAX_SIZE)}]")
        self.size, self.parameters = size, parameters
        self.seed, self._key, self._stream = seed, _key(seed), stream

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        _require_coordinates(coordinates, self.size)
        indices, against = self._part(start, stop)
        found = coordinates[indices]
        np.negative(found, out=found, where=against)
        return found

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.gathered(gradient).astype(np.float32)

    def gathered(self, values: NDArray[np.floating[Any]]) -> Coordinates:
        """As `gather`, but float64 (k,), of values float32 or float64 (p,), added in their order."""
        indices, against = self.drawn
        signed = np.where(against, -values, values).astype(np.float64, copy=False)
        found: Coordinates = np.bincount(indices, signed, self.size).astype(np.float64, copy=False)
        return found

    @cached_property
    def drawn(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Each parameter's coordinate, and True if it moves against it. Only for training, which needs it in each step:
        nine bytes a parameter.
        """
        return self._drawn(0, self.parameters)

    def _part(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if "drawn" not in self.__dict__:
            return self._drawn(start, stop)
        indices, against = self.drawn  # it trains: then all are drawn already
        return indices[start:stop], against[start:stop]

    def _drawn(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        words = _words(self._key, self._stream, start, stop)
        indices = ((words >> np.uint32(1)).astype(np.uint64) * np.uint64(self.size)) >> np.uint64(31)
        return indices.view(np.int64), (words & np.uint32(1)).astype(np.bool_)


class Blockwise(Basis):
    """Tensors in parts: as rows of one length that move by B · P · factor, where P is public and B has the coordinates,
    row by row; or as they are.
    """

    def __init__(self, parts: Sequence[Part], factor: float) -> None:
        self.parts, self.factor = parts, factor
        self.parameters, self.size = sum(part.values for part in parts), sum(part.size for part in parts)

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        _require_coordinates(coordinates, self.size)
        found = np.empty(stop - start)
        for part in self.parts:
            a, b = max(start, part.first), min(stop, part.first + part.values)
            if a < b:
                own = coordinates[part.offset : part.offset + part.size]
                found[a - start : b - start] = self._moved(part, own, a - part.first, b - part.first)
        return found

    def _moved(self, part: Part, own: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        if part.matrix is None:
            return own[start:stop]
        rank, columns = part.matrix.shape
        above, below = start // columns, -(-stop // columns)
        rows = own.reshape(-1, rank)[above:below]
        total = rows[:, 0, None] * part.matrix[0]
        for j in range(1, rank):
            total += rows[:, j, None] * part.matrix[j]
        total *= self.factor
        flat: NDArray[np.float64] = total.reshape(-1)
        return flat[start - above * columns : stop - above * columns]

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(self.size, dtype=np.float32)
        for part in self.parts:
            own = gradient[part.first : part.first + part.values]
            if part.matrix is not None:
                rows = own.reshape(-1, part.matrix.shape[1])
                own = (rows @ part.matrix.T.astype(np.float32) * np.float32(self.factor)).reshape(-1)
            found[part.offset : part.offset + part.size] = own
        return found


class LowRank(Blockwise):
    """A matrix moves by B · P / √r: P, of random signs, is public, and B is trained. Other tensors travel as they are.

    A tensor of shape (n, …) counts as a matrix of n rows and m columns, and has n · r coordinates, row by row. It stays
    as it is if it is named in `dense`, or has no more than r columns; a bias has one. Bit c · r + j of a matrix's
    key stream (from the lowest bit of each 32-bit word on) is the sign of column c in row j of P (1: negative). The
    stream's nonce is the tensor's number.
    """

    def __init__(self, seed: bytes, shapes: Shapes, rank: int, dense: Sequence[str] = ()) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (rank below 1; a name in `dense` that is no tensor's)."""
        key, widths = _key(seed), low_rank_widths(shapes, rank, dense)
        parts: list[Part] = []
        for number, (name, shape) in enumerate(shapes.items()):
            columns = math.prod(shape[1:])
            signs = None if widths[name] == columns else _signs(key, number, columns, rank)
            parts.append(Part.after(parts, shape[0] * columns, shape[0] * widths[name], signs))
        super().__init__(parts, 1 / math.sqrt(rank))
        self.seed = seed


class Cosines(Blockwise):
    """Each tensor, in chunks of n values, moves by `kept` of its n cosines (DCT-II), which are drawn for each tensor.

    A tensor counts as one row of values, and its rest of less than a chunk travels as it is. The first `kept` steps of
    Fisher and Yates' shuffle of 0 … n - 1 draw the frequencies: step j swaps positions j and
    j + floor(word j · (n - j) / 2^32) of the tensor's key stream, whose nonce is the tensor's number. Coordinates of a
    chunk are in the order of the frequencies.
    """

    def __init__(self, seed: bytes, shapes: Shapes, chunk: int, kept: int) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (chunk: not one of CHUNKS; kept: not below it)."""
        if chunk not in CHUNKS:
            raise ArgumentInvalid("chunk", chunk, f"a power of two from {CHUNKS[0]} to {CHUNKS[-1]}")
        if not 1 <= kept < chunk:
            raise ArgumentInvalid("kept", kept, f"in [1, {chunk - 1}]")
        key, table, parts = _key(seed), _cosines(chunk), list[Part]()
        for number, shape in enumerate(shapes.values()):
            chunks, rest = divmod(math.prod(shape), chunk)
            if chunks:
                matrix = table[_frequencies(key, number, chunk, kept)]
                parts.append(Part.after(parts, chunks * chunk, chunks * kept, matrix))
            if rest:
                parts.append(Part.after(parts, rest, rest, None))
        super().__init__(parts, math.sqrt(chunk / kept))
        self.seed = seed


class CountSketch(Basis):
    """Each parameter is added, with a sign, to one number of each row of k = rows · columns numbers.

    Row j is `Hashed` of the key stream with nonce j. A parameter's estimate is the median of its numbers, so large
    values outlast their collisions. `kept` of them are read from a sketch (`decoded`).
    """

    def __init__(self, seed: bytes, parameters: int, rows: int, columns: int, kept: int) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (an even number of rows; kept outside [1, p])."""
        if rows < 1 or rows % 2 == 0:
            raise ArgumentInvalid("rows", rows, "odd")
        if not 1 <= kept <= parameters:
            raise ArgumentInvalid("kept", kept, f"in [1, {parameters}]")
        self._rows = [Hashed(seed, parameters, columns, stream) for stream in range(rows)]
        self.seed, self._columns, self._kept = seed, columns, kept
        self.parameters, self.size = parameters, rows * columns

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        """Estimates of the parameters' values. Unlike other bases' they are not linear in the coordinates."""
        _require_coordinates(coordinates, self.size)
        parts = coordinates.reshape(len(self._rows), self._columns)
        found = np.stack([row.spread(own, start, stop) for row, own in zip(self._rows, parts, strict=True)])
        found.sort(axis=0)
        middle: NDArray[np.float64] = found[len(found) // 2]
        return middle

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.sketched(gradient).astype(np.float32)

    def sketched(self, values: NDArray[np.floating[Any]]) -> Coordinates:
        """The sketch float64 (k,) of values float32 or float64 (p,)."""
        return np.concatenate([row.gathered(values) for row in self._rows])

    def decoded(self, sketch: Coordinates) -> tuple[NDArray[np.float64], Coordinates]:
        """Estimates float64 (p,) of the `kept` largest values, by magnitude, the first of equal ones; all others are
        zero. And the rest of the sketch without them, float64 (k,).
        """
        found = self.spread(sketch, 0, self.parameters)
        sizes = np.abs(found)
        least = np.partition(sizes, -self._kept)[-self._kept]
        chosen = sizes > least
        equal = np.flatnonzero(sizes == least)[: self._kept - int(chosen.sum())]
        chosen[equal] = True
        found[~chosen] = 0.0
        return found, sketch - self.sketched(found)


@dataclass(frozen=True)
class Part:
    """A part of a tensor: `first` of its `values` parameters, and `offset`, the first of its `size` coordinates.
    `matrix`: its public one, P, (r, columns); None if it travels as it is.
    """

    first: int
    values: int
    offset: int
    size: int
    matrix: NDArray[np.float64] | None

    @classmethod
    def after(cls, parts: Sequence[Part], values: int, size: int, matrix: NDArray[np.float64] | None) -> Part:
        """The next one of a list."""
        if not parts:
            return cls(0, values, 0, size, matrix)
        last = parts[-1]
        return cls(last.first + last.values, values, last.offset + last.size, size, matrix)


def low_rank_widths(shapes: Shapes, rank: int, dense: Sequence[str]) -> dict[str, int]:
    """Coordinates of `LowRank` for each row of each tensor. Raises ArgumentInvalid as that does."""
    if rank < 1:
        raise ArgumentInvalid("rank", rank, "at least 1")
    for name in dense:
        if name not in shapes:
            raise ArgumentInvalid("dense", name, f"one of {', '.join(shapes)}")
    columns = {name: math.prod(shape[1:]) for name, shape in shapes.items()}
    return {name: many if name in dense else min(many, rank) for name, many in columns.items()}


def _key(seed: bytes) -> bytes:
    if len(seed) != BYTES_PER_SEED:
        raise ShapeWrong("seed", f"{len(seed)} bytes", f"{BYTES_PER_SEED} bytes")
    return derived(seed, _TAG, b"", BYTES_PER_SEED)


def _words(key: bytes, stream: int, start: int, stop: int) -> NDArray[np.uint32]:
    """Words start … stop - 1 of a key stream, whose nonce is its number."""
    block, skipped = divmod(start, _WORDS_PER_BLOCK)
    nonce = block.to_bytes(4, "little") + stream.to_bytes(12, "little")  # the block counter, and RFC 8439's nonce
    cipher = Cipher(ChaCha20(key, nonce), mode=None).encryptor()
    found = np.frombuffer(cipher.update(bytes(4 * (stop - start + skipped))), dtype="<u4")
    return found[skipped:].astype(np.uint32, copy=False)


def _signs(key: bytes, stream: int, columns: int, rank: int) -> NDArray[np.float64]:
    """P, float64 (r, columns), of +1 and -1."""
    count = columns * rank
    words = _words(key, stream, 0, -(-count // 32))
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), count=count, bitorder="little").reshape(columns, rank)
    return np.where(bits.T, -1.0, 1.0)


def _frequencies(key: bytes, stream: int, chunk: int, kept: int) -> list[int]:
    order = list(range(chunk))
    for j, word in enumerate(_words(key, stream, 0, kept).tolist()):
        other = j + (word * (chunk - j) >> 32)
        order[j], order[other] = order[other], order[j]
    return sorted(order[:kept])


@cache
def _cosines(chunk: int) -> NDArray[np.float64]:
    """The orthonormal DCT-II, (n, n), a frequency each row: √(2/n) · cos(π · (2i + 1) · f / 2n), and √(1/n) for f = 0.

    Each cosine is a product of halved right angles, which only need IEEE's exactly rounded operations: a library's
    cosine differs from machine to machine.
    """
    turns = [(0.0, 1.0)]  # cosine and sine of a right angle, of its half, and so on
    while len(turns) < chunk.bit_length():
        cosine, sine = turns[-1]
        half = math.sqrt((1 + cosine) / 2)
        turns.append((half, sine / (2 * half)))
    scale = [math.sqrt(1 / chunk), *[math.sqrt(2 / chunk)] * (chunk - 1)]
    quarter = [_cosine(turns, step) for step in range(chunk + 1)]  # of π / 2n · step
    found = np.empty((chunk, chunk))
    for f in range(chunk):
        for i in range(chunk):
            step = (2 * i + 1) * f % (4 * chunk)
            step = min(step, 4 * chunk - step)
            found[f, i] = scale[f] * (quarter[step] if step <= chunk else -quarter[2 * chunk - step])
    return found


def _cosine(turns: Sequence[tuple[float, float]], step: int) -> float:
    """Of step / 2^(len(turns) - 1) right angles: the angles of its bits, added from the largest on."""
    cosine, sine = 1.0, 0.0
    for bit, (c, s) in enumerate(turns):
        if step >> (len(turns) - 1 - bit) & 1:
            cosine, sine = cosine * c - sine * s, sine * c + cosine * s
    return cosine


def _require_coordinates(coordinates: Coordinates, size: int) -> None:
    if coordinates.shape != (size,) or coordinates.dtype != np.float64:
        raise ShapeWrong("coordinates", f"{coordinates.dtype} {coordinates.shape}", f"float64 ({size},)")
