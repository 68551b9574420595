"""A hospital may hold out rows for an evaluation of its own: the same patients again after the next export.

Whether a row is held out follows from what it says and from a salt alone: not from its place, the order of columns or
the form of the file. Its label does not count, so that a diagnosis that is corrected moves nobody, and two rows that
the model cannot tell apart fall on the same side. Pure.
"""

from __future__ import annotations

import hashlib

import numpy as np
from consilium_zk.errors import ArgumentInvalid
from numpy.typing import NDArray

from consilium_client.data.examples import Examples

LEAST_SALT, MOST_SALT = 16, hashlib.blake2b.MAX_KEY_SIZE  # bytes


def split(examples: Examples, share: float, salt: bytes) -> tuple[Examples, Examples]:
    """(kept, held out), each in the examples' order; either may be empty. Raises ArgumentInvalid."""
    out = held_out(examples, share, salt)
    return examples.chosen(~out), examples.chosen(out)


def held_out(examples: Examples, share: float, salt: bytes) -> NDArray[np.bool_]:
    """Marks rows that are held out, bool (n,): each with probability `share` in [0, 1], drawn by a hash under `salt`.

    Rows of a smaller share are among those of a larger one. `salt`: 16 to 64 random bytes, which the hospital keeps:
    who has them, and a patient's row, knows on which side it is. Raises ArgumentInvalid.
    """
    if not 0 <= share <= 1:
        raise ArgumentInvalid("share", share, "in [0, 1]")
    if not LEAST_SALT <= len(salt) <= MOST_SALT:
        raise ArgumentInvalid("the salt's length", len(salt), f"in [{LEAST_SALT}, {MOST_SALT}]")
    below = int(share * 2**64)
    digests = (hashlib.blake2b(what, key=salt, digest_size=8).digest() for what in examples.contents())
    return np.array([int.from_bytes(digest) < below for digest in digests], dtype=np.bool_)
