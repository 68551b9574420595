"""Shared by the tests of the zk room. Its name is its own, since every folder of tests may have a conftest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from consilium_zk import blobs
from consilium_zk.constants import BLS_MODULUS, FIELD_ELEMENTS_PER_BLOB

VECTORS = Path(__file__).parents[1] / "vectors"


def load_vectors(name: str) -> list[dict[str, Any]]:
    """The cases of `tests/vectors/{name}.json`, of which there must be some."""
    document = json.loads((VECTORS / f"{name}.json").read_text())
    if not document["cases"]:
        raise ValueError(f"{name} has no cases")
    return list(document["cases"])


def field_blob(seed: int) -> blobs.Blob:
    """A blob of scalars all over the field."""
    random = np.random.default_rng(seed)
    raw = random.bytes(FIELD_ELEMENTS_PER_BLOB * 40)
    return blobs.from_scalars(
        [int.from_bytes(raw[start : start + 40], "big") % BLS_MODULUS for start in range(0, len(raw), 40)]
    )
