"""Seeds of a run's parts."""

from __future__ import annotations

import numpy as np


def seed_of(*parts: int) -> int:
    """A seed per hospital, or per hospital and round, from the run's seed."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
