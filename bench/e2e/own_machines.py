"""What a round would take if every hospital had a machine of its own: one definition, for every side of a comparison.

A round is cut into stages. In a stage the server asks all hospitals at once, and goes on when the last one has
answered; so a stage lasts as long as the server's own work in it and the slowest hospital's:

    round_s = Σ over stages of (server_s + max over hospitals of cpu_s)

- `server_s`: wall seconds of whoever there is one of (the aggregator, and the chain where there is one), without those
  spent waiting for hospitals or moving bytes to and from them. As it is: one at a time, on this machine.
- `cpu_s`: CPU seconds, user and system, of all threads of one hospital's process, for this stage alone. However many
  hospitals share this machine's cores, and whoever else does, each is counted as if nobody else ran: on one core.
- The network takes no time, on no side. What crossed it is told beside, in bytes.

The maximum is taken stage by stage, not over a hospital's whole round: the slowest of one stage need not be the
slowest of the next, and everybody waits for both. Overlap is not guessed at: a server that reads answers while others
still work is counted as if it had waited for the last one. A side without stages is one stage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Stage:
    """Seconds of one stage: the server's wall and CPU time outside waiting, and each hospital's CPU time."""

    name: str
    server_s: float = 0.0
    server_cpu_s: float = 0.0
    cpu_s: list[float] = field(default_factory=list)

    @property
    def slowest_cpu_s(self) -> float:
        """0 where no hospital had anything to do."""
        return max(self.cpu_s, default=0.0)


def server_seconds(stages: Sequence[Stage]) -> float:
    return sum(stage.server_s for stage in stages)


def hospital_seconds(stages: Sequence[Stage]) -> float:
    """CPU seconds of hospitals that the round has to wait for: of each stage's slowest one."""
    return sum(stage.slowest_cpu_s for stage in stages)


def round_seconds(stages: Sequence[Stage]) -> float:
    return server_seconds(stages) + hospital_seconds(stages)


class ServerClock:
    """Tells a server's own seconds from those in which it waited."""

    def __init__(
        self, wall: Callable[[], float] = time.perf_counter, cpu: Callable[[], float] = time.process_time
    ) -> None:
        self._wall, self._cpu = wall, cpu
        self.skip()

    def skip(self) -> None:
        """What passed since the last call is nobody's."""
        self._since = self._wall(), self._cpu()

    def credit(self, stage: Stage) -> None:
        """What passed since the last call was the server's own work, in `stage`."""
        wall, cpu = self._wall(), self._cpu()
        stage.server_s += wall - self._since[0]
        stage.server_cpu_s += cpu - self._since[1]
        self._since = wall, cpu
