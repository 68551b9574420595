"""The vocabulary of Flower messages between the aggregator and hospitals' relays.

A request is a message of type `train` with a ConfigRecord `request`: {contract: 20 bytes, task, round, part}. A
hospital is asked for one part after the other, each before its time: SIGNED, then UPLOAD, which it answers once
commitments are closed, and in masked tasks then ANSWER, which it answers with what unmasks the survivors' sum once they
are fixed. A reply holds a ConfigRecord `status`: {code}, and

- with code `SIGNED` nothing else, but in `status` also `body`: the bytes of `relaying.SignedUpdate.to_wire`, and in
  masked tasks behind them the dealing's, whose digest it holds,
- with code `ANSWERED` likewise: the bytes of `secure_aggregation.Hospital.answer`,
- with any other an ArrayRecord `blobs`: "0", "1", … each 131,072 raw bytes; none unless the code is `OK`. With that in
  masked tasks `status` has a `body`: the bytes of `statements.SignedStatement`, on these blobs.
"""

from __future__ import annotations

from enum import IntEnum


class Part(IntEnum):
    SIGNED = 1
    UPLOAD = 2
    ANSWER = 3


class ReplyCode(IntEnum):
    OK = 0
    SAT_OUT = 1  # not a member of the round, or the round moved on without this hospital
    REFUSED = 2  # not a task that this hospital joined
    FAILED = 3  # the reason stands in the hospital's own journal
    SIGNED = 4  # a signed update, which anybody may commit
    ANSWERED = 5  # shares of what masks the survivors' sum


def signed_update_bytes(blobs: int) -> int:
    """Length on its way: signature (64), value (32), proof (48), digest of secret shares (32), points (48 a blob)."""
    return 64 + 32 + 48 + 32 + 48 * blobs
