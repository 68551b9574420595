"""A hospital may hold out rows for an evaluation of its own: the same patients again after the next export.

Whether a row is held out follows from what it says and from a salt alone: not from its place, the order of columns or
the form of the file. Its label does not count, so that a diagnosis that is corrected moves nobody, and two rows that
the model cannot tell apart fall on the same side. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from consilium_zk.errors import ArgumentInvalid
from numpy.typing import NDArray

from consilium_client.data.examples import Examples, chosen
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet

LEAST_SALT, MOST_SALT = 16, hashlib.blake2b.MAX_KEY_SIZE  # bytes
# Steps of a feature's range that are told apart: coarse against what a form of file rounds, as float32 does, so that
# of a thousand values not one lies so near to a border between two steps that it changes sides.
STEPS = 4096
MISSING = -1


def split(examples: Examples, share: float, salt: bytes) -> tuple[Examples, Examples]:
    """(kept, held out), each in the examples' order; either may be empty. Raises ArgumentInvalid."""
    out = held_out(examples, share, salt)
    return chosen(examples, ~out), chosen(examples, out)


def held_out(examples: Examples, share: float, salt: bytes) -> NDArray[np.bool_]:
    """Which rows are held out, bool (n,): each with probability `share` in [0, 1], drawn by a hash under `salt`.

    Rows of a smaller share are among those of a larger one. `salt`: 16 to 64 random bytes, which the hospital keeps:
    who has them, and a patient's row, knows on which side it is. Raises ArgumentInvalid.
    """
    if not 0 <= share <= 1:
        raise ArgumentInvalid("share", share, "in [0, 1]")
    if not LEAST_SALT <= len(salt) <= MOST_SALT:
        raise ArgumentInvalid("the salt's length", len(salt), f"in [{LEAST_SALT}, {MOST_SALT}]")
    below = int(share * 2**64)
    digests = (hashlib.blake2b(what, key=salt, digest_size=8).digest() for what in contents(examples))
    return np.array([int.from_bytes(digest) < below for digest in digests], dtype=np.bool_)


def contents(examples: Examples) -> Iterator[bytes]:
    """What each example says, without its label."""
    if isinstance(examples, TextSet):
        return (text.encode() for text in examples.texts)
    parts = row_codes(examples) if isinstance(examples, Table) else examples.pixels
    return (part.tobytes() for part in parts)


def row_codes(table: Table) -> NDArray[np.int32]:
    """Features in whole steps of their range, little-endian int32 (n, columns); MISSING where there is no value."""
    steps = np.where(np.isnan(table.features), MISSING, np.rint(table.features * STEPS))
    return np.ascontiguousarray(steps, dtype="<i4")
