"""A public linear map from the k numbers that a hospital trains and commits to a model's p parameters.

The map follows from the task file's hash alone, so hospitals, voters and auditors have the same one. Its coefficients
are constants of the task: masks cancel, and a sum of updates maps to the sum of what they do to the model. `spread` is
elementwise IEEE arithmetic in a written order, so it gives the same bits on every machine. `gather`, its adjoint, is
for a hospital's own training and may round as a library likes.

With random signs the expectation of `spread(gather(g))` is g, so a learning rate keeps its meaning: E[B·Bᵀ] = I.

Sources: hashed weights, Chen et al., Compressing Neural Networks with the Hashing Trick, ICML 2015; training in a fixed
subspace, Li et al., Measuring the Intrinsic Dimension of Objective Landscapes, ICLR 2018; a public low-rank factor,
Sun et al., Improving LoRA in Privacy-preserving Federated Learning (FFA-LoRA), ICLR 2024. ChaCha20: RFC 8439.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

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
_TAG: Final = b"CONSILIUM-V1-BASIS"
_WORDS_PER_BLOCK: Final = 16  # of ChaCha20


class Basis(ABC):
    """`size`: k. `parameters`: p."""

    size: int
    parameters: int

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


class Hashed(Basis):
    """Each parameter moves with one of k coordinates, or against it: both are drawn from the seed.

    Word i of the key stream, 32 bits little-endian, gives parameter i the sign of its lowest bit (1: against) and the
    coordinate floor((word >> 1) · k / 2^31).
    """

    def __init__(self, seed: bytes, parameters: int, size: int) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (size outside [1, parameters])."""
        if not 1 <= size <= min(parameters, MAX_SIZE):
            raise ArgumentInvalid("size", size, f"in [1, {min(parameters, MAX_SIZE)}]")
        self.size, self.parameters = size, parameters
        self._key = _key(seed)

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        _require_coordinates(coordinates, self.size)
        places, against = self._drawn(start, stop)
        found = coordinates[places]
        np.negative(found, out=found, where=against)
        return found

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        places, against = self._all
        signed = np.where(against, -gradient, gradient)
        return np.bincount(places, weights=signed, minlength=self.size).astype(np.float32)

    @cached_property
    def _all(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Only for training, which needs it in each step: nine bytes a parameter."""
        return self._drawn(0, self.parameters)

    def _drawn(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        words = _words(self._key, 0, start, stop)
        places = ((words >> np.uint32(1)).astype(np.uint64) * np.uint64(self.size)) >> np.uint64(31)
        return places.view(np.int64), (words & np.uint32(1)).astype(np.bool_)


class LowRank(Basis):
    """A matrix moves by B · P / √r: P, of random signs, is public, and B is trained. Other tensors travel as they are.

    A tensor of shape (n, …) counts as a matrix of n rows and m columns, and has n · r coordinates, row by row. It stays
    as it is if it is named in `dense`, or has no more than r columns; a bias has one. Bit c · r + j of a matrix's
    key stream (from the lowest bit of each 32-bit word on) is the sign of column c in row j of P (1: negative). The
    stream's nonce is the tensor's number.
    """

    def __init__(self, seed: bytes, shapes: Shapes, rank: int, dense: Sequence[str] = ()) -> None:
        """seed: 32 bytes. Raises ShapeWrong, ArgumentInvalid (rank below 1; a name in `dense` that is no tensor's)."""
        key, widths = _key(seed), low_rank_widths(shapes, rank, dense)
        self._rank, self._factor = rank, 1 / math.sqrt(rank)
        self._parts: list[_Part] = []
        first = place = 0
        for number, (name, shape) in enumerate(shapes.items()):
            columns = math.prod(shape[1:])
            signs = None if widths[name] == columns else _signs(key, number, columns, rank)
            part = _Part(first, shape[0] * columns, place, shape[0] * widths[name], signs)
            self._parts.append(part)
            first, place = first + part.values, place + part.size
        self.parameters, self.size = first, place

    def spread(self, coordinates: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        _require_coordinates(coordinates, self.size)
        found = np.empty(stop - start)
        for part in self._parts:
            a, b = max(start, part.first), min(stop, part.first + part.values)
            if a < b:
                own = coordinates[part.place : part.place + part.size]
                found[a - start : b - start] = self._moved(part, own, a - part.first, b - part.first)
        return found

    def _moved(self, part: _Part, own: Coordinates, start: int, stop: int) -> NDArray[np.float64]:
        if part.signs is None:
            return own[start:stop]
        columns = part.signs.shape[1]
        above, below = start // columns, -(-stop // columns)
        rows = own.reshape(-1, self._rank)[above:below]
        total = rows[:, 0, None] * part.signs[0]
        for j in range(1, self._rank):
            total += rows[:, j, None] * part.signs[j]
        total *= self._factor
        flat: NDArray[np.float64] = total.reshape(-1)
        return flat[start - above * columns : stop - above * columns]

    def gather(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(self.size, dtype=np.float32)
        for part in self._parts:
            own = gradient[part.first : part.first + part.values]
            if part.signs is not None:
                matrix = own.reshape(-1, part.signs.shape[1])
                own = (matrix @ part.signs.T.astype(np.float32) * np.float32(self._factor)).reshape(-1)
            found[part.place : part.place + part.size] = own
        return found


@dataclass(frozen=True)
class _Part:
    """A tensor's place: `first` of its `values` parameters, and `place`, the first of its `size` coordinates. `signs`:
    its public matrix P, (r, columns); None if it travels as it is.
    """

    first: int
    values: int
    place: int
    size: int
    signs: NDArray[np.float64] | None


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


def _require_coordinates(coordinates: Coordinates, size: int) -> None:
    if coordinates.shape != (size,) or coordinates.dtype != np.float64:
        raise ShapeWrong("coordinates", f"{coordinates.dtype} {coordinates.shape}", f"float64 ({size},)")
