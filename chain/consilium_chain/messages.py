"""The vocabulary of Flower messages between the aggregator and hospitals' relays.

A request is a message of type `train` with a ConfigRecord `request`: {contract: 20 bytes, task, round}. A reply holds a
ConfigRecord `status`: {code}, and an ArrayRecord `blobs`: "0", "1", … each 131,072 raw bytes.
"""

from __future__ import annotations

from enum import IntEnum


class ReplyCode(IntEnum):
    OK = 0
    SAT_OUT = 1  # not a member of the round, or the round moved on without this hospital
    REFUSED = 2  # not a task that this hospital joined
    FAILED = 3  # the reason stands in the hospital's own journal
