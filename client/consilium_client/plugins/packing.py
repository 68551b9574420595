"""A reader's result between its process and the node: arrays of fixed types. The node trusts none of it.

Images are the arrays `images` and `labels`. Other data are columns, each as `numbers:NAME`, float64 (n,), or as
`letters:NAME`, all texts' UTF-8, uint8 (bytes,), with `lengths:NAME`, each one's bytes, int64 (n,).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from consilium_client.programs.frames import TYPES, Arrays, Shapes

READING: Final = "reading its data"
MOST_BYTES: Final = 1 << 32  # of a result
FORMS: Final = {"numbers": "float64", "letters": "uint8", "lengths": "int64"}
NO_MAPPING: Final = "it gives no mapping of names to columns"
NO_COLUMN: Final = "a column is neither an array of numbers nor a list of texts"
NO_IMAGES: Final = "it does not give images, uint8, and labels, whole numbers, alone"
UNEQUAL: Final = "its columns have different lengths"
UNASKED: Final = "it gives a column that was not asked for"
TOO_LARGE: Final = f"it gives more than {MOST_BYTES >> 30} GiB"
BROKEN: Final = "its answer cannot be read"
RAISED: Final = "it raised an error of its own"
_REASONS: Final = frozenset({NO_MAPPING, NO_COLUMN, NO_IMAGES})
Column = NDArray[np.float64] | list[str]


class Unpackable(Exception):
    """A reader's result is none, and the text says why, in words of this module."""


def packed(found: object, facts: Mapping[str, Any]) -> Arrays:
    """A reader's result as arrays to send. Raises Unpackable."""
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise Unpackable(NO_MAPPING)
    if facts["kind"] == "images":
        return _packed_images(found)
    arrays: dict[str, NDArray[Any]] = {}
    for name, column in found.items():
        arrays |= _packed_column(name, column)
    return arrays


def _packed_images(found: Mapping[str, Any]) -> Arrays:
    images, labels = (found.get(name) for name in ("images", "labels"))
    if not (isinstance(images, np.ndarray) and isinstance(labels, np.ndarray)) or len(found) > 2:
        raise Unpackable(NO_IMAGES)
    if images.dtype != np.uint8 or labels.dtype.kind not in "iu":
        raise Unpackable(NO_IMAGES)
    return {"images": images, "labels": labels.astype(np.int64)}


def _packed_column(name: str, column: object) -> Arrays:
    if isinstance(column, np.ndarray) and column.ndim == 1:
        if column.dtype.kind in "biuf":
            return {f"numbers:{name}": column.astype(np.float64)}
        if column.dtype.kind == "U":
            column = column.tolist()
    if not isinstance(column, list | tuple) or not all(one is None or isinstance(one, str) for one in column):
        raise Unpackable(NO_COLUMN)
    try:
        raw = [(one or "").encode() for one in column]
    except UnicodeEncodeError:  # half of a surrogate pair
        raise Unpackable(NO_COLUMN) from None
    lengths = np.array([len(one) for one in raw], np.int64)
    return {f"letters:{name}": np.frombuffer(b"".join(raw), np.uint8), f"lengths:{name}": lengths}


def stated_shapes(stated: object) -> dict[str, tuple[tuple[int, ...], str]]:
    """The shapes that an answer states. Raises Unpackable unless these are shapes, and MOST_BYTES at most."""
    if not isinstance(stated, dict):
        raise Unpackable(BROKEN)
    found = {}
    for name, value in stated.items():
        shape, type_ = value if isinstance(value, list) and len(value) == 2 else (None, None)
        if type_ not in TYPES or not isinstance(shape, list) or len(shape) > 4:
            raise Unpackable(BROKEN)
        if not all(type(one) is int and 0 <= one <= MOST_BYTES for one in shape):
            raise Unpackable(BROKEN)
        found[name] = tuple(shape), type_
    if sum(math.prod(shape) * np.dtype(type_).itemsize for shape, type_ in found.values()) > MOST_BYTES:
        raise Unpackable(TOO_LARGE)
    return found


def rows_of_columns(shapes: Shapes, names: Collection[str]) -> int:
    """The number of rows. `names`: of the columns that were asked for. Raises Unpackable."""
    by_form: dict[str, set[str]] = {form: set() for form in FORMS}
    rows = set()
    for key, (shape, type_) in shapes.items():
        form, _, name = key.partition(":")
        if FORMS.get(form) != type_ or len(shape) != 1:
            raise Unpackable(BROKEN)
        if name not in names:
            raise Unpackable(UNASKED)
        by_form[form].add(name)
        if form != "letters":
            rows.add(shape[0])
    if by_form["letters"] != by_form["lengths"] or by_form["letters"] & by_form["numbers"]:
        raise Unpackable(BROKEN)
    if len(rows) > 1:
        raise Unpackable(UNEQUAL)
    return next(iter(rows), 0)


def unpacked_columns(arrays: Arrays) -> dict[str, Column]:
    """By name. Raises Unpackable."""
    found: dict[str, Column] = {}
    for key, values in arrays.items():
        form, _, name = key.partition(":")
        if form == "numbers":
            found[name] = values
        elif form == "lengths":
            found[name] = _texts(arrays[f"letters:{name}"], values)
    return found


def _texts(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> list[str]:
    within = bool(((lengths >= 0) & (lengths <= len(letters))).all())
    if not within or int(lengths.sum(dtype=object) or 0) != len(letters):
        raise Unpackable(BROKEN)
    whole, ends = letters.tobytes(), np.cumsum(lengths)
    try:
        return [whole[end - size : end].decode() for end, size in zip(ends, lengths, strict=True)]
    except UnicodeDecodeError:
        raise Unpackable(BROKEN) from None


def reason(told: object) -> str:
    """The reason of a failure that a reader's process tells: in words of this module, or the kind of a usual error. So
    no text of its own, which may be of a row, comes further.
    """
    if not isinstance(told, str) or told in _REASONS:
        return f"{told}" if told in _REASONS else RAISED
    name = told.partition(":")[0]
    kind = getattr(builtins, name, None)
    return name if isinstance(kind, type) and issubclass(kind, BaseException) else RAISED
