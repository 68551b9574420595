"""A fingerprint of a model's activations on a batch of rows: only running the model on these rows gives it. Pure.

Similar to TOPLOC (Ong et al., arXiv 2501.16007): index and value of the activations of largest magnitude before the
last layer, (rows, width). An auditor with rows and model computes the activations again, and allows for differences of
another machine's arithmetic. One must compute all activations to know the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from consilium_client.errors import FingerprintError

MOST_VALUES: Final = 32
"""Values in a fingerprint. If a batch has less than twice as many activations, the fingerprint has half of them."""

TOLERANCE: Final = 2.0**-15
"""As a part of the batch's largest activation: a hundred times the error of single precision, and a twentieth of the
error of weights rounded to bfloat16 (`tests/client/test_fingerprints.py`).
"""

_VALUE: Final = np.dtype([("index", "<u4"), ("value", "<f4")])
_LEAST: Final = float(np.finfo(np.float32).tiny)
_MOST: Final = float(np.finfo(np.float32).max)


def values_of(activations: int) -> int:
    """The number of values in a fingerprint of this many activations (≥ 1)."""
    return min(MOST_VALUES, -(-activations // 2))


def fingerprint(activations: NDArray[np.float64]) -> bytes:
    """The fingerprint of a batch, (rows, width): eight bytes a value, index (uint32) and value (float32), ascending."""
    flat = _flat(activations)
    largest = np.sort(np.argsort(-np.abs(flat), kind="stable")[: values_of(flat.size)])
    shown = np.empty(largest.size, _VALUE)
    shown["index"], shown["value"] = largest, flat[largest]
    return shown.tobytes()


def deviation(shown: bytes, activations: NDArray[np.float64]) -> float:
    """The distance of a fingerprint from recomputed activations (rows, width), as a part of the largest of these.

    It is the larger of two errors: the error of a value, and the difference by which an activation that is left out
    exceeds one that is shown. The second is 0 if the fingerprint shows the largest ones. Infinite for NaN, or if all
    recomputed activations are zero and a shown value is not. Raises FingerprintMalformed for another shape.
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
    """The largest deviation of a batch's fingerprints by several models, of any width, in order. Raises
    FingerprintMalformed.
    """
    ends = list(accumulate(values_of(one.size) * _VALUE.itemsize for one in made))
    if len(shown) != ends[-1]:
        why = f"it has {len(shown)} bytes, but {len(made)} models need {ends[-1]}"
        raise FingerprintError("FingerprintMalformed", why=why)
    parts = (shown[begin:end] for begin, end in pairwise([0, *ends]))
    return max(deviation(part, activations) for part, activations in zip(parts, made, strict=True))


def _flat(activations: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows · width,), within the range of a value."""
    return np.clip(activations.ravel(), -_MOST, _MOST)


def _parsed(shown: bytes, activations: int) -> NDArray[np.void]:
    count = values_of(activations)
    if len(shown) != count * _VALUE.itemsize:
        raise FingerprintError(
            "FingerprintMalformed", why=f"it has {len(shown)} bytes, but {activations} activations need {count * 8}"
        )
    values = np.frombuffer(shown, _VALUE)
    indices = values["index"].astype(np.int64)
    if indices[-1] >= activations or np.any(np.diff(indices) <= 0):
        raise FingerprintError("FingerprintMalformed", why=f"its indices must ascend and stay below {activations}")
    return values
