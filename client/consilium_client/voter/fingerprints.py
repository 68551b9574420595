"""A fingerprint of what a model made of a batch of rows, which only who ran the model on these rows can write down.

In the manner of TOPLOC (Ong et al., arXiv 2501.16007): of all activations before the last layer, (rows, width), those
of largest magnitude, by place and value. Who has rows and model computes the activations again, and allows for what
another machine's arithmetic makes different. Which are largest nobody knows without computing all of them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from consilium_client.errors import FingerprintError

MOST_VALUES: Final = 32
"""Values of a fingerprint: fewer where the batch has less than twice as many activations, of which it holds half."""

TOLERANCE: Final = 2.0**-15
"""Of the batch's largest activation: a hundred times what single precision makes different, and a twentieth of what
weights rounded to bfloat16 do (`tests/client/test_fingerprints.py`).
"""

_VALUE: Final = np.dtype([("place", "<u4"), ("value", "<f4")])
_LEAST: Final = float(np.finfo(np.float32).tiny)
_MOST: Final = float(np.finfo(np.float32).max)


def values_of(activations: int) -> int:
    """How many values a fingerprint of so many activations (≥ 1) holds."""
    return min(MOST_VALUES, -(-activations // 2))


def fingerprint(activations: NDArray[np.float64]) -> bytes:
    """Of one batch, (rows, width): eight bytes a value, place (uint32) and value (float32), by ascending place."""
    flat = _flat(activations)
    largest = np.sort(np.argsort(-np.abs(flat), kind="stable")[: values_of(flat.size)])
    shown = np.empty(largest.size, _VALUE)
    shown["place"], shown["value"] = largest, flat[largest]
    return shown.tobytes()


def deviation(shown: bytes, activations: NDArray[np.float64]) -> float:
    """How far a fingerprint is from the activations (rows, width) computed anew, as a part of the largest of these.

    The largest of: what a value is off, and how much smaller an activation that is shown is than one that is not, which
    is nothing where those of largest magnitude are shown. Infinite for NaN, or where nothing but zeros was computed and
    something else is shown. Raises FingerprintMalformed where it is none of a batch of this shape.
    """
    flat = _flat(activations)
    values = _parsed(shown, flat.size)
    place = values["place"]
    scale = float(np.abs(flat).max())
    off = float(np.abs(values["value"].astype(np.float64) - flat[place]).max())
    least = float(np.partition(np.abs(flat), flat.size - place.size)[flat.size - place.size])
    passed_over = max(0.0, least - float(np.abs(flat[place]).min()))
    worst = max(off, passed_over) if np.isfinite(off) else np.inf
    if scale < _LEAST:
        return 0.0 if worst < _LEAST else np.inf
    return worst / scale


def worst_deviation(shown: bytes, made: Sequence[NDArray[np.float64]]) -> float:
    """Of a batch's fingerprints by several models, one after the other. Raises FingerprintMalformed."""
    size, left = divmod(len(shown), len(made))
    if left:
        raise FingerprintError("FingerprintMalformed", why=f"its {len(shown)} bytes are not of {len(made)} models")
    parts = (shown[number * size : (number + 1) * size] for number in range(len(made)))
    return max(deviation(part, activations) for part, activations in zip(parts, made, strict=True))


def _flat(activations: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows · width,), within what a value can hold."""
    return np.clip(activations.ravel(), -_MOST, _MOST)


def _parsed(shown: bytes, activations: int) -> NDArray[np.void]:
    count = values_of(activations)
    if len(shown) != count * _VALUE.itemsize:
        raise FingerprintError(
            "FingerprintMalformed", why=f"it has {len(shown)} bytes; of {activations} activations it has {count * 8}"
        )
    values = np.frombuffer(shown, _VALUE)
    places = values["place"].astype(np.int64)
    if places[-1] >= activations or np.any(np.diff(places) <= 0):
        raise FingerprintError("FingerprintMalformed", why=f"its places are not ascending and below {activations}")
    return values
