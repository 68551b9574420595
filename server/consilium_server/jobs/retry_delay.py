"""How long a job that failed is left alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DOUBLINGS = 64  # beyond which numbers only grow


@dataclass(frozen=True)
class RetryPolicy:
    """After the first failure in a row `first` seconds, twice as long after each further one, never above `most`."""

    first: float
    most: float

    def seconds(self, failures: int, draw: float) -> float:
        """After so many failures in a row. `draw`, from 0 to 1, takes off up to half, so that what failed together
        does not come back together.
        """
        if failures < 1:
            return 0.0
        whole = min(self.most, self.first * 2.0 ** min(failures - 1, MOST_DOUBLINGS))
        return whole * (1 - draw / 2)
