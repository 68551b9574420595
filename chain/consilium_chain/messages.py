"""The vocabulary of Flower messages between the aggregator and hospitals' relays.

A request is a message of type `train` with a ConfigRecord `request`: {contract: 20 bytes, task, round}. A hospital is
asked twice a round, with the same words: it answers first with its signed update and then, once commitments are closed,
with its upload. A reply holds a ConfigRecord `status`: {code}, and

- with code `SIGNED` nothing else, but in `status` also `update`: the bytes of `relaying.SignedUpdate.to_wire`,
- with any other an ArrayRecord `blobs`: "0", "1", … each 131,072 raw bytes; none unless the code is `OK`.
"""

from __future__ import annotations

from enum import IntEnum


class ReplyCode(IntEnum):
    OK = 0
    SAT_OUT = 1  # not a member of the round, or the round moved on without this hospital
    REFUSED = 2  # not a task that this hospital joined
    FAILED = 3  # the reason stands in the hospital's own journal
    SIGNED = 4  # a signed update, which anybody may commit


def signed_update_bytes(blobs: int) -> int:
    """Length of a signed update on its way: signature (64), value (32), proof (48), compressed points (48 a blob)."""
    return 64 + 32 + 48 + 48 * blobs
