"""Models that a process of their own computes: `programs.confined` starts it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from consilium_client.models import Model
from consilium_client.programs.confined import Progress, Work


class Computed(Model):
    """`elsewhere.trained` asks for its training by these."""

    @abstractmethod
    def memory(self, rows: int, *arrays: NDArray[Any]) -> int:
        """Bytes that the process may take for steps of `rows` rows, with the arrays that it is given."""

    @abstractmethod
    def elsewhere(self, work: Work, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
        """As `programs.confined.computed`."""
