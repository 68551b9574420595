"""Errors of the simulation.

EconomicsError
├── RulesInvalid       a task's terms do not fit together, or not the measured cohorts
└── MoneyLost          a settled round paid more or less than it took from the pool
"""

from __future__ import annotations


class EconomicsError(Exception):
    """Root of the simulation's errors."""


class RulesInvalid(EconomicsError):
    def __init__(self, field: str, value: object, why: str) -> None:
        self.field, self.value = field, value
        super().__init__(f"{field} {value}: {why}")


class MoneyLost(EconomicsError):
    def __init__(self, round_: int, amount: int) -> None:
        self.round, self.amount = round_, amount
        super().__init__(
            f"round {round_}: {amount} millionths of a token are neither paid nor left; settlement is at fault"
        )
