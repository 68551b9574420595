"""Hospitals that miss a round's commits, by the contract's rules: `Training.sol`, `Concluding.sol`, `Joining.sol`.

An absent hospital commits nothing in that round. Its node is back before the round's sums are published, and resumes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from consilium_chain.ledger.structs import Role, VoidReason
from consilium_chain.settlement.settlement import Account, Reason, Settlement
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_lab.errors import LabError

STREAM = 0xAB5E  # own random numbers: with the same seed, forms of a task lose the same hospitals in the same rounds


class Attendance:
    """`chance`: of each hospital to miss a round, 0 to 1. Raises LabError (SettingOutOfRange)."""

    def __init__(self, hospitals: int, chance: float, seed: int) -> None:
        if not 0 <= chance <= 1:
            raise LabError("SettingOutOfRange", setting="the chance of dropouts", given=chance, needed="0 to 1")
        self._chance, self._random = chance, np.random.default_rng([seed, STREAM])
        self._everybody = frozenset(range(hospitals))
        self._active = self._everybody

    def draw(self) -> frozenset[int]:
        """The hospitals that miss the next round. Those that miss it at a small chance miss it at a greater one too."""
        drawn = self._random.random(len(self._everybody))
        return frozenset(np.flatnonzero(drawn < self._chance).tolist())

    def is_active(self, hospital: int) -> bool:
        """True unless it sits out the next round."""
        return hospital in self._active

    def close(self, absent: frozenset[int], *, had_uploads: bool) -> None:
        """Ends a round. A hospital can resume until the sums are published. After a round that ended with its commits,
        those that missed it sit out the next one.
        """
        self._active = self._everybody if had_uploads else self._everybody - absent


def least_present(size: int, spec: TaskSpec) -> int:
    """The least number of commits for a sum in a cohort of `size`. Masks need two thirds of the cohort."""
    least = spec.rounds.min_cohort_size
    return max(least, -(-2 * size // 3)) if spec.update.masked else least


def viable(cohorts: Sequence[Sequence[int]], absent: Collection[int], spec: TaskSpec) -> list[int]:
    """Cohorts with enough commits, by number."""
    return [
        number
        for number, cohort in enumerate(cohorts)
        if sum(index not in absent for index in cohort) >= least_present(len(cohort), spec)
    ]


def void_settlement(hospitals: int, voters: int, pool_left: int, forfeited: int) -> Settlement:
    """A round that ends with its commits. It pays nobody, and its part of the pool is not burnt."""
    accounts = [Account(Role.HOSPITAL, index, 0, Reason.VOID) for index in range(hospitals)]
    accounts += [Account(Role.VOTER, index, 0, Reason.VOID) for index in range(voters)]
    accounts.append(Account(Role.AGGREGATOR, 0, 0, Reason.VOID))
    return Settlement(
        VoidReason.TOO_FEW_HOSPITALS, (), (), 0, 0, 0, 0, tuple(accounts), pool_left=pool_left, forfeited=forfeited
    )
