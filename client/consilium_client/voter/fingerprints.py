"""A fingerprint of a model's activations on a batch of rows: only running the model on these rows yields it.

In the manner of TOPLOC (Ong et al., arXiv 2501.16007): of all activations before the last layer, (rows, width), those
of largest magnitude, by index and value. An auditor with rows and model computes the activations again, and allows for
the differences of another machine's arithmetic. Nobody knows which are largest without computing all of them. Pure.
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
"""A part of the batch's largest activation: a hundred times the error of single precision, and a twentieth of that of
weights rounded to bfloat16 (`tests/client/test_fingerprints.py`).
"""

_VALUE: Final = np.dtype([("index", "<u4"), ("value", "<f4")])
_LEAST: Final = float(np.finfo(np.float32).tiny)
_MOST: Final = float(np.finfo(np.float32).max)


def values_of(activations: int) -> int:
    """The number of values in a fingerprint of so many activations (≥ 1)."""
    return min(MOST_VALUES, -(-activations // 2))


def fingerprint(activations: NDArray[np.float64]) -> bytes:
    """The fingerprint of a batch, (rows, width): eight bytes a value, index (uint32) and value (float32), ascending."""
    flat = _flat(activations)
    largest = np.sort(np.argsort(-np.abs(flat), kind="stable")[: values_of(flat.size)])
    shown = np.empty(largest.size, _VALUE)
    shown["index"], shown["value"] = largest, flat[largest]
    return shown.tobytes()


def deviation(shown: bytes, activations: NDArray[np.float64]) -> float:
    """The distance of a fingerprint from activations (rows, width) computed anew, as a part of the largest of these.

    The largest of: what a value is off, and how much smaller an activation that is shown is than one that is not, which
    is nothing where those of largest magnitude are shown. Infinite for NaN, or where nothing but zeros was computed and
    something else is shown. Raises FingerprintMalformed where it is none of a batch of this shape.
    """
    flat = _flat(activations)
    values = _parsed(shown, flat.size)
    index = values["index"]
    scale = float(np.abs(flat).max())
    off = float(np.abs(values["value"].astype(np.float64) - flat[index]).max())
    least = float(np.partition(np.abs(flat), flat.size - index.size)[flat.size - index.size])
    passed_over = max(0.0, least - float(np.abs(flat[index]).min()))
    worst = max(off, passed_over) if np.isfinite(off) else np.inf
    if scale < _LEAST:
        return 0.0 if worst < _LEAST else np.inf
    return worst / scale


def worst_deviation(shown: bytes, made: Sequence[NDArray[np.float64]]) -> float:
    """The largest deviation of a batch's fingerprints by several models, in order. Raises FingerprintMalformed."""
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
    indices = values["index"].astype(np.int64)
    if indices[-1] >= activations or np.any(np.diff(indices) <= 0):
        raise FingerprintError("FingerprintMalformed", why=f"its indices are not ascending and below {activations}")
    return values
