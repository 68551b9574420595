"""The vocabulary of Flower messages between the aggregator and hospitals' relays.

A request is a message of type `train` with a ConfigRecord `request`: {contract: 20 bytes, task, round, part}. A
hospital is asked for one part after the other, each before its time: SIGNED; then UPLOAD, answered after commitments
are closed; and in masked tasks ANSWER, answered after the survivors are fixed. A reply has a ConfigRecord `status`:
{code}, and

    SIGNED: in `status` also `body`, the bytes of `SignedUpdate.to_wire`, followed in masked tasks by the secret shares,
        whose digest it has.
    ANSWERED: likewise, the bytes of `secure_aggregation.MaskingHospital.answer`.
    OK: an ArrayRecord `blobs`: "0", "1", … with 131,072 raw bytes each; and in `status` a `body`: the points that the
        hospital committed to, 48 bytes a blob, followed in masked tasks by the bytes of `statements.SignedStatement` on
        these blobs.
    Other codes: an empty ArrayRecord `blobs`.
"""

from __future__ import annotations

from enum import IntEnum


class Part(IntEnum):
    SIGNED = 1
    UPLOAD = 2
    ANSWER = 3


class ReplyCode(IntEnum):
    OK = 0
    SAT_OUT = 1  # not in the round, or the round continued without this hospital
    REFUSED = 2  # not a task that this hospital joined
    FAILED = 3  # the hospital's own log has the reason
    SIGNED = 4  # a signed update, which anybody may commit
    ANSWERED = 5  # shares that unmask the survivors' sum


def signed_update_bytes(blobs: int) -> int:
    """Bytes on the wire: signature (64), digest of secret shares (32), digest of the base (32), hashes of points (32 a
    blob).
    """
    return 64 + 32 + 32 + 32 * blobs
