"""Voters' ballots, and their commitments to held-out rows, from the chain's events."""

from __future__ import annotations

from consilium_chain.ledger.events import ContractEvents


class Votes:
    """Every method raises ChainUnreachable."""

    def __init__(self, events: ContractEvents) -> None:
        self._events = events

    def committed_ballot(self, task: int, round_: int, voter: str) -> bytes | None:
        """A voter's commitment to its scores, or None."""
        found = self._events.of_tasks("ScoresCommitted", taskId=task, round=round_, voter=voter)
        return next((bytes(event.values["commitment"]) for event in found), None)

    def revealed_scores(self, task: int, round_: int, voter: str) -> tuple[int, ...] | None:
        """None if the voter has revealed none."""
        found = self._events.of_tasks("ScoresRevealed", taskId=task, round=round_, voter=voter)
        return next((tuple(event.values["scores"]) for event in found), None)

    def held_out_root(self, task: int, voter: str) -> bytes | None:
        """A voter's last commitment to held-out rows before it joined the task, or its last one if it has not joined;
        None if there is none.
        """
        joined = [(e.block, e.index) for e in self._events.of_tasks("VoterJoined", taskId=task, voter=voter)]
        committed = self._events.of_staking("HeldOutCommitted", voter=voter)
        roots = [bytes(e.values["root"]) for e in committed if not joined or (e.block, e.index) < joined[0]]
        return roots[-1] if roots else None
