"""Compares the memory that a demo needs with this machine's."""

from __future__ import annotations

import psutil

from consilium_lab.errors import LabError

# Proportional set sizes in MiB, measured with 16 hospitals and 16 voters, rounded up. A hospital is a node with torch,
# Flower's SuperNode, its executor and, during a message, a fork of the executor. A voter loads torch for a seat.
PARTY_MIB = {"hospital": 400, "voter": 200}
ENCODER_MIB = 800  # more for a hospital or a voter of texts (resident size)
OTHERS_MIB = 1_200  # the demo itself, the local chain, the aggregator, Flower's SuperLink


def needed_mib(hospitals: int, voters: int, texts: bool = False) -> int:
    """The peak memory of all processes of a demo together, in MiB."""
    encoders = (hospitals + voters) * ENCODER_MIB if texts else 0
    return OTHERS_MIB + hospitals * PARTY_MIB["hospital"] + voters * PARTY_MIB["voter"] + encoders


def require_memory(hospitals: int, voters: int, texts: bool = False) -> None:
    """Raises LabError (DemoTooLarge). Otherwise the kernel would end one process after another."""
    available = psutil.virtual_memory().available >> 20
    needed = needed_mib(hospitals, voters, texts)
    if needed > available:
        sizes = {"needed": needed / 1024, "available": available / 1024}
        raise LabError("DemoTooLarge", hospitals=hospitals, voters=voters, **sizes)
