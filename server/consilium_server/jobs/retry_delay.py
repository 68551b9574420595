"""The retry policy of a job that failed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DOUBLINGS = 64  # more have no effect on the delay


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential delays: `first` seconds after the first failure in a row, then doubled, never above `most`."""

    first: float
    most: float

    def seconds(self, failures: int, draw: float) -> float:
        """Seconds to wait after so many failures in a row.

        `draw`: random, from 0 to 1. It removes up to half, so that jobs that failed together retry at different times.
        """
        if failures < 1:
            return 0.0
        whole = min(self.most, self.first * 2.0 ** min(failures - 1, MOST_DOUBLINGS))
        return whole * (1 - draw / 2)
