"""Ensembles: finished models that answer together, and are sold at one price (`IEnsembles.sol`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consilium_chain.errors import Refused
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.shares import event_of

ENSEMBLES: Final = 1 << 48  # ensembles' numbers are above it, tasks' are below
FEWEST_MEMBERS, MOST_MEMBERS = 2, 16


def is_ensemble(number: int) -> bool:
    """True for a number in the range of ensembles, whether or not the chain has one there."""
    return number > ENSEMBLES


@dataclass(frozen=True)
class Member:
    """`gain`: the improvement that voters measured over all rounds of the task, in millionths of its metric;
    positive, and final.
    """

    task: int
    gain: int


@dataclass(frozen=True)
class Ensemble:
    """`number`: its id in offers, channels and tills, like a task's. `members`: by task, ascending."""

    number: int
    members: tuple[Member, ...]

    @property
    def tasks(self) -> tuple[int, ...]:
        return tuple(member.task for member in self.members)

    @property
    def weights(self) -> tuple[float, ...]:
        """Each member's gain over the sum of all gains, in the order of `members`."""
        total = sum(member.gain for member in self.members)
        return tuple(member.gain / total for member in self.members)


def ensemble_of(number: int, tasks: Sequence[int], gains: Sequence[int]) -> Ensemble:
    """From the values of the contract's view or event."""
    return Ensemble(number, tuple(Member(int(task), int(gain)) for task, gain in zip(tasks, gains, strict=True)))


class Ensembles:
    """Every method raises ChainUnreachable, DeploymentInvalid and Refused, with the contract's errors."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts, self._shares = contracts, contracts.model_shares

    def gain(self, task: int) -> int:
        """A task's, in millionths of its metric: final once its parts are minted, and 0 before their minting begins."""
        return int(self._shares.read("minting", task)[-1])

    def form(self, tasks: Sequence[int]) -> int:
        """Forms an ensemble of these tasks, in any order. Returns its number.

        Raises Refused (EnsembleInvalid, EnsembleKnown, NotMinted, NoGain).
        """
        receipt = self._shares.send("formEnsemble", sorted(tasks))
        return int(event_of(self._contracts, receipt, "EnsembleFormed").values["id"])

    def of(self, number: int) -> Ensemble | None:
        """None if there is no ensemble of this number."""
        try:
            tasks, gains = self._shares.read("ensemble", number)
        except Refused as error:
            if error.name == "EnsembleUnknown":
                return None
            raise
        return ensemble_of(number, tasks, gains)

    def all(self) -> list[Ensemble]:
        """By number, ascending."""
        connection, first = self._contracts.connection, self._contracts.deployment.first_block
        formed = connection.logs.events(self._shares.contract, first, connection.blocks.number(), "EnsembleFormed")
        return [ensemble_of(int(e.values["id"]), e.values["taskIds"], e.values["gains"]) for e in formed]
