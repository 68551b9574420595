"""One round, as this process of the aggregator knows it. A new round has a new one."""

from __future__ import annotations

from dataclasses import dataclass, field

from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.signed_updates import SignedUpdate
from consilium_zk.dealing import Dealing
from consilium_zk.secure_aggregation import MaskedCohort

from consilium_server.aggregator.collection import Collection
from consilium_server.aggregator.committer import Committer
from consilium_server.aggregator.disputes import Statements
from consilium_server.aggregator.unmasking import CohortAnswers

KEPT = (
    2  # the present one, and the next, which is asked ahead; or the one before, which a reorganisation may bring back
)


@dataclass
class Known:
    """All that follows from the chain's word on a round's hospitals, read once. Cohorts by their members' bit map.

    `relayable`: signed updates with a sound dealing, which is stored; `unsound`: hospitals without one. `maskings` and
    `uploaders` belong to one state of the commitments, a bit map that stands first. `answers`: by cohort's number, once
    survivors are fixed.
    """

    relayable: dict[int, SignedUpdate] = field(default_factory=dict)
    unsound: set[int] = field(default_factory=set)
    masked: dict[int, MaskedCohort] = field(default_factory=dict)
    maskings: tuple[int, dict[int, dict[int, Dealing]]] | None = None
    uploaders: tuple[int, int] | None = None
    statements: Statements | None = None
    answers: dict[int, CohortAnswers] | None = None


@dataclass
class RoundWork:
    """Hospitals' parts of a round, and the steps that were taken.

    `survivors`: a bit map, where this process fixed them. `refused`: the step that the contract refused for good.
    `are_canaries_lost`: what opens them is not at hand.
    """

    collection: Collection | None = None
    committer: Committer | None = None
    known: Known = field(default_factory=Known)
    survivors: int | None = None
    refused: Step | None = None
    are_canaries_lost: bool = False


class Rounds:
    """The rounds of one task that are worked on, by number."""

    def __init__(self) -> None:
        self._work: dict[int, RoundWork] = {}
        self.asked: int | None = None  # whose hospitals were asked last

    def of(self, number: int) -> RoundWork:
        if number not in self._work:
            self._work[number] = RoundWork()
            for old in sorted(self._work, key=lambda known: abs(known - number))[KEPT:]:
                del self._work[old]
        return self._work[number]

    def ask(self, number: int) -> RoundWork:
        """The round whose hospitals are asked from now on. What a reorganisation may have changed is read anew."""
        work = self.of(number)
        if self.asked != number:
            self.asked, work.known = number, Known()
        return work

    def disconnect(self) -> None:
        """Hospitals have to be asked by another connection, for everything."""
        for work in self._work.values():
            work.collection = None
        self.asked = None

    def forget(self) -> None:
        """Nothing holds any more that goes by hospitals' indices."""
        self._work.clear()
        self.asked = None
