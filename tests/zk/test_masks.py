"""Masks hide one hospital's blobs and leave a cohort's sum, whoever drops out."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from consilium_zk import blobs
from consilium_zk.blobs import Blob
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.errors import ArgumentInvalid, Malformed, ShapeWrong
from consilium_zk.masks import expand, mask, mask_key, own_seed, pair_seeds, residue, without
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import field_blob

CONTEXT = b"chain, contract, task, round"
ROOTS = st.integers(0, BLS_MODULUS - 1)


@dataclass
class Hospital:
    """One of a cohort, as it sees the round."""

    index: int
    weight: int
    key_root: int
    own_root: int
    update: Blob

    @property
    def key(self) -> bytes:
        return mask_key(self.key_root)

    def upload(self, keys: dict[int, bytes], blob: int = 0) -> Blob:
        pairs = pair_seeds(self.index, self.key_root, keys, CONTEXT)
        own = own_seed(self.own_root, CONTEXT)
        return blobs.add([blobs.scale(self.update, self.weight), mask(self.index, own, pairs, blob)])


def cohort(seed: int, size: int) -> list[Hospital]:
    source = random.Random(seed)
    indices = sorted(source.sample(range(256), size))
    return [
        Hospital(
            index, source.randint(1, 1 << 16), source.randrange(BLS_MODULUS), source.randrange(BLS_MODULUS),
            field_blob(source.randrange(1 << 30)),
        )
        for index in indices
    ]  # fmt: skip


def total_of(uploads: list[Blob], survivors: list[Hospital], dropped: list[Hospital], blob: int = 0) -> Blob:
    """What who learns one root of each, and the survivors' uploads, makes of them."""
    own = [own_seed(hospital.own_root, CONTEXT) for hospital in survivors]
    keys = {hospital.index: hospital.key for hospital in survivors}
    gone = {hospital.index: pair_seeds(hospital.index, hospital.key_root, keys, CONTEXT) for hospital in dropped}
    return without(blobs.add(uploads), residue(own, gone, blob))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 9), st.data())
def test_unmasked_sum_is_the_survivors_sum(seed: int, size: int, data: st.DataObject) -> None:
    hospitals = cohort(seed, size)
    survivors = data.draw(st.lists(st.sampled_from(hospitals), min_size=1, unique_by=lambda h: h.index))
    dropped = [hospital for hospital in hospitals if hospital not in survivors]
    keys = {hospital.index: hospital.key for hospital in hospitals}
    blob = data.draw(st.integers(0, 2**32 - 1))
    uploads = [hospital.upload(keys, blob) for hospital in survivors]
    expected = blobs.add([blobs.scale(hospital.update, hospital.weight) for hospital in survivors])
    assert total_of(uploads, survivors, dropped, blob) == expected


def test_two_of_the_largest_cohort_whose_others_are_gone() -> None:
    hospitals = cohort(1, 256)
    keys = {hospital.index: hospital.key for hospital in hospitals}
    survivors, dropped = hospitals[100:102], hospitals[:100] + hospitals[102:]
    uploads = [hospital.upload(keys) for hospital in survivors]
    expected = blobs.add([blobs.scale(hospital.update, hospital.weight) for hospital in survivors])
    assert total_of(uploads, survivors, dropped) == expected


def test_without_one_root_the_sum_is_not_to_be_had() -> None:
    hospitals = cohort(2, 4)
    keys = {hospital.index: hospital.key for hospital in hospitals}
    survivors, dropped = hospitals[:3], hospitals[3:]
    uploads = [hospital.upload(keys) for hospital in survivors]
    expected = blobs.add([blobs.scale(hospital.update, hospital.weight) for hospital in survivors])
    assert total_of(uploads, survivors, dropped) == expected
    assert total_of(uploads, survivors[:2], dropped) != expected
    assert total_of(uploads, survivors, []) != expected
    alone = total_of(uploads[:1], survivors[:1], dropped)
    assert alone != blobs.scale(survivors[0].update, survivors[0].weight)


@given(ROOTS, ROOTS, st.binary(max_size=64))
def test_both_ends_derive_one_seed_for_one_context(first: int, second: int, context: bytes) -> None:
    keys = {3: mask_key(first), 8: mask_key(second)}
    seed = pair_seeds(3, first, keys, context)[8]
    assert seed == pair_seeds(8, second, keys, context)[3]
    assert seed != pair_seeds(3, first, keys, context + b"\x00")[8]
    assert seed != pair_seeds(4, first, keys, context)[8]
    assert len({seed, own_seed(first, context), own_seed(second, context), mask_key(first)}) >= 3


def test_expansion_is_chacha20s_stream_without_what_is_not_below_the_modulus() -> None:
    # RFC 8439, appendix A.1, vectors 1 and 2: the first 128 bytes under a key and nonce of zeros. Of the four pieces
    # the first is above the modulus.
    stream = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    pieces = [int.from_bytes(stream[i : i + 32], "big") % 2**255 for i in range(0, 128, 32)]
    assert pieces[0] >= BLS_MODULUS > max(pieces[1:])
    assert blobs.to_scalars(expand(bytes(32), 0))[:3] == pieces[1:]


def test_expansions_of_other_seeds_and_blobs_share_nothing() -> None:
    seeds = [bytes(32), bytes(31) + b"\x01"]
    found = [blobs.to_scalars(expand(seed, blob)) for seed in seeds for blob in (0, 1, 2**31, 2**32 - 1)]
    assert len({scalar for scalars in found for scalar in scalars}) == 8 * 4096


def test_what_is_out_of_range_is_refused_by_name() -> None:
    with raises_fault(Malformed, "KeyMalformed"):
        pair_seeds(0, 1, {1: bytes(32)}, CONTEXT)
    with pytest.raises(ArgumentInvalid, match="root"):
        mask_key(BLS_MODULUS)
    with pytest.raises(ArgumentInvalid, match="root"):
        own_seed(-1, CONTEXT)
    with pytest.raises(ShapeWrong, match="seed"):
        expand(bytes(31), 0)
    for blob in (-1, 2**32):
        with pytest.raises(ArgumentInvalid, match="blob"):
            expand(bytes(32), blob)


# What somebody sees who gets uploads alone

BINS = 256
# For 255 degrees of freedom chi-square is above 389, or below 157, once in ten million.
LIKELY = (157.0, 389.0)


def chi_square(values: list[int], above: int) -> float:
    """Of values in [0, above) sorted into equal bins."""
    counts = np.bincount([value * BINS // above for value in values], minlength=BINS)
    expected = len(values) / BINS
    return float(((counts - expected) ** 2 / expected).sum())


def uploads_of(updates: list[Blob], context: bytes) -> list[list[int]]:
    """One hospital's masked blobs, in a cohort with one other, under fixed roots."""
    pairs = pair_seeds(3, 5, {3: mask_key(5), 4: mask_key(6)}, context)
    own = own_seed(7, context)
    return [blobs.to_scalars(blobs.add([update, mask(3, own, pairs, k)])) for k, update in enumerate(updates)]


def test_masked_uploads_look_uniform_whatever_is_in_them() -> None:
    for update in (bytes(131_072), b"\x00" * 31 + b"\x01", field_blob(1)):
        blob = Blob(bytes(update) * (131_072 // len(update)))
        values = [scalar for upload in uploads_of([blob] * 8, CONTEXT) for scalar in upload]
        assert LIKELY[0] < chi_square(values, BLS_MODULUS) < LIKELY[1]
        assert LIKELY[0] < chi_square([value % 2**64 for value in values], 2**64) < LIKELY[1]
        steps = [(after - before) % BLS_MODULUS for before, after in zip(values[::2], values[1::2], strict=True)]
        assert LIKELY[0] < chi_square(steps, BLS_MODULUS) < LIKELY[1]
    # What is not masked does not pass.
    assert chi_square(blobs.to_scalars(Blob(bytes(131_072))), BLS_MODULUS) > LIKELY[1]


def test_two_uploads_of_one_update_share_nothing() -> None:
    update = [field_blob(2)] * 8
    first, second = (
        [scalar for upload in uploads_of(update, context) for scalar in upload] for context in (b"round 1", b"round 2")
    )
    assert not set(first) & set(second)
    differences = [(a - b) % BLS_MODULUS for a, b in zip(first, second, strict=True)]
    assert LIKELY[0] < chi_square(differences, BLS_MODULUS) < LIKELY[1]
    bits = np.array([(a ^ b) >> k & 1 for a, b in zip(first, second, strict=True) for k in range(0, 248, 31)])
    assert abs(bits.mean() - 0.5) < 5.4 * 0.5 / len(bits) ** 0.5  # once in ten million
