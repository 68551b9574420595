"""Shared by the tests of the zk room."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_zk import blobs
from consilium_zk.constants import BLS_MODULUS, FIELD_ELEMENTS_PER_BLOB
from consilium_zk.key_exchange import public_key, sign
from consilium_zk.secret_shares import ShareBundle
from consilium_zk.secure_aggregation import MaskingHospital, _answered, masking_digest
from nacl.bindings import crypto_core_ed25519_add

VECTORS = Path(__file__).parents[1] / "vectors"


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20_240_501)


def load_vectors(name: str) -> list[dict[str, Any]]:
    """The cases of `tests/vectors/{name}.json`, of which there must be some."""
    document = json.loads((VECTORS / f"{name}.json").read_text())
    if not document["cases"]:
        raise ValueError(f"{name} has no cases")
    return list(document["cases"])


def field_blob(seed: int) -> blobs.Blob:
    """A blob of scalars all over the field."""
    raw = np.random.default_rng(seed).bytes(FIELD_ELEMENTS_PER_BLOB * 40)
    return blobs.from_scalars(
        [int.from_bytes(raw[start : start + 40], "big") % BLS_MODULUS for start in range(0, len(raw), 40)]
    )


def is_uniform(*samples: blobs.Blob) -> bool:
    """Chi-square over 256 even parts of the field, at a significance of one in 10^6."""
    parts, found = 256, np.zeros(256)
    for blob in samples:
        for scalar in blobs.to_scalars(blob):
            found[scalar * parts // BLS_MODULUS] += 1
    expected = found.sum() / parts
    statistic = float(((found - expected) ** 2 / expected).sum())
    freedom = parts - 1
    # Wilson and Hilferty's normal approximation.
    return bool(((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom)) < 4.75)


def signed_answer(
    hospital: MaskingHospital, share_bundles: Mapping[int, ShareBundle], survivors: Iterable[int], body: bytes
) -> bytes:
    """An answer of these bytes, signed as the hospital does."""
    masking = masking_digest(hospital._cohort, share_bundles)
    return body + sign(hospital._seal_private, _answered(hospital._index, masking, survivors, body))


_P = 2**255 - 19
BAD_KEYS = {
    "zero": bytes(32),
    "identity": (1).to_bytes(32, "little"),
    "order 2": (_P - 1).to_bytes(32, "little"),
    "order 4": (1 << 255).to_bytes(32, "little"),
    "order 8": bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    "order 8, negative": bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    "identity, not canonical": (_P + 1).to_bytes(32, "little"),
    "ones": b"\xff" * 32,
    "no point": (2).to_bytes(32, "little"),
    "outside the subgroup": crypto_core_ed25519_add(public_key(bytes(32)), (_P - 1).to_bytes(32, "little")),
}
"""Of edwards25519, 32 bytes each: of small order, not canonical, or otherwise no key that anybody could have made."""
