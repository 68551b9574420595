"""Masks that hospitals add to their blobs, and the residue in a cohort's sum.

Hospital i of a cohort uploads, scalar by scalar modulo the group order,

    y_i = w_i · x_i + p_i + Σ_{j > i} m_ij − Σ_{j < i} m_ij

over all j that have a mask key in this round. Both ends of a pair derive m_ij from their keys of this round, which the
chain carries; p_i comes from a secret of i alone. In a sum over survivors the masks between two survivors cancel. The
survivors' own masks remain, and those that they share with dropped hospitals. One of each hospital's two roots removes
them: the own root of a survivor, the key root of a dropped hospital. Both roots of a hospital and its upload would
reveal its update.

Source: Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning, CCS 2017, section 4, here
in the field of the commitments. ChaCha20: RFC 8439.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from .blobs import Blob, add
from .constants import BLS_MODULUS, BYTES_PER_BLOB, BYTES_PER_FIELD_ELEMENT, FIELD_ELEMENTS_PER_BLOB
from .errors import ArgumentInvalid, ShapeWrong
from .key_exchange import BYTES_PER_KEY, agreed_point, derived, public_key

BYTES_PER_SEED: Final = 32
MAX_BLOBS: Final = 1 << 32
_BYTES_PER_INDEX: Final = 4

_KEY_TAG: Final = b"CONSILIUM-V1-MASK-KEY"
_PAIR_TAG: Final = b"CONSILIUM-V1-PAIR-MASK"
_OWN_TAG: Final = b"CONSILIUM-V1-OWN-MASK"
# 255 random bits are below the modulus with probability 0.906: of 4,700 a blob's 4,096 are missing once in 2^95 blobs.
_CANDIDATES: Final = 4_700
_NOTHING: Final = Blob(bytes(BYTES_PER_BLOB))
_TOP_WORD: Final = np.uint64(BLS_MODULUS >> 192)


def mask_key(root: int) -> bytes:
    """The public key (32 bytes, see `key_exchange`) of a key root, a scalar. Raises ArgumentInvalid."""
    return public_key(mask_private(root))


def mask_private(root: int) -> bytes:
    """The private key of a key root. Raises ArgumentInvalid."""
    return derived(_scalar_bytes(root), _KEY_TAG, b"", BYTES_PER_KEY)


def pair_seed(point: bytes, ends: tuple[int, int], keys: tuple[bytes, bytes], context: bytes) -> bytes:
    """The 32 bytes from which both ends of a pair expand the masks between them.

    point: shared by their mask keys. ends: their indices, in the order of `keys`; either order gives the same seed. The
    indices keep a hospital from sharing another's masks by showing its key. context: chain, contract, task and round.
    """
    return derived(point, _PAIR_TAG, b"".join(sorted(keys)) + context + between(min(ends), max(ends)), BYTES_PER_SEED)


def pair_seeds(index: int, root: int, keys: Mapping[int, bytes], context: bytes) -> dict[int, bytes]:
    """The seeds of hospital `index`, with this key root, and all others that have keys.

    Raises ArgumentInvalid, KeyMalformed.
    """
    private = mask_private(root)
    own = public_key(private)
    return {
        other: pair_seed(agreed_point(private, key), (index, other), (own, key), context)
        for other, key in keys.items()
        if other != index
    }


def between(one: int, other: int) -> bytes:
    """Bytes for this ordered pair of hospitals alone."""
    return one.to_bytes(_BYTES_PER_INDEX, "big") + other.to_bytes(_BYTES_PER_INDEX, "big")


def own_seed(root: int, context: bytes) -> bytes:
    """The 32 bytes from which a hospital expands its own masks. Raises ArgumentInvalid."""
    return derived(_scalar_bytes(root), _OWN_TAG, context, BYTES_PER_SEED)


def expand(seed: bytes, blob: int) -> Blob:
    """4096 scalars, uniform below the modulus, from ChaCha20's key stream with the key `seed` and the nonce `blob`.

    The stream is read in pieces of 32 bytes, big-endian, without their highest bit; the first 4096 below the modulus
    count. Raises ShapeWrong, ArgumentInvalid.
    """
    if len(seed) != BYTES_PER_SEED:
        raise ShapeWrong("seed", f"{len(seed)} bytes", f"{BYTES_PER_SEED} bytes")
    if not 0 <= blob < MAX_BLOBS:
        raise ArgumentInvalid("blob", blob, f"in [0, {MAX_BLOBS})")
    nonce = bytes(4) + blob.to_bytes(12, "little")  # the block counter, from zero, and RFC 8439's nonce
    stream = Cipher(ChaCha20(seed, nonce), mode=None).encryptor()
    found: list[np.ndarray] = []
    missing = FIELD_ELEMENTS_PER_BLOB
    while missing > 0:
        found.append(_below_modulus(stream.update(bytes(_CANDIDATES * BYTES_PER_FIELD_ELEMENT)))[:missing])
        missing -= len(found[-1])
    return Blob(np.concatenate(found).tobytes())


def mask(index: int, own: bytes, pairs: Mapping[int, bytes], blob: int) -> Blob:
    """The sum of all masks that hospital `index` adds to its blob of this number. own: its seed. pairs: its seeds with
    others.
    """
    return _sum([own, *(seed for other, seed in pairs.items() if index < other)],
                [seed for other, seed in pairs.items() if other < index], blob)  # fmt: skip


def residue(own: Iterable[bytes], dropped: Mapping[int, Mapping[int, bytes]], blob: int) -> Blob:
    """The masks that remain in the sum of the survivors' blobs of this number.

    own: the survivors' own seeds. dropped: the seeds of each dropped hospital with the survivors.
    """
    pairs = [(survivor, gone, seed) for gone, seeds in dropped.items() for survivor, seed in seeds.items()]
    return _sum([*own, *(seed for survivor, gone, seed in pairs if survivor < gone)],
                [seed for survivor, gone, seed in pairs if gone < survivor], blob)  # fmt: skip


def without(total: Blob, left: Blob) -> Blob:
    """The total with the residue taken away."""
    return add([total], [left])


def _sum(plus: Iterable[bytes], minus: Iterable[bytes], blob: int) -> Blob:
    """The sum of masks, in memory of a few blobs."""
    added, taken = ((expand(seed, blob) for seed in seeds) for seeds in (plus, minus))
    return add(chain([_NOTHING], added), taken)


def _below_modulus(stream: bytes) -> np.ndarray:
    """The pieces of a stream that are scalars, in order: (n,) of 32 bytes each."""
    pieces = np.frombuffer(bytearray(stream), dtype=np.uint8).reshape(-1, BYTES_PER_FIELD_ELEMENT)
    pieces[:, 0] &= 0x7F
    tops = pieces.view(">u8")[:, 0].astype(np.uint64)
    fits = tops < _TOP_WORD
    for index in np.flatnonzero(tops == _TOP_WORD):  # once in 2^63 pieces the first word leaves it open
        fits[index] = int.from_bytes(pieces[index].tobytes(), "big") < BLS_MODULUS
    return pieces.view(f"V{BYTES_PER_FIELD_ELEMENT}")[:, 0].take(np.flatnonzero(fits))


def _scalar_bytes(root: int) -> bytes:
    if not 0 <= root < BLS_MODULUS:
        raise ArgumentInvalid("root", "outside the field", "in [0, modulus)")  # the value itself is a secret
    return root.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
