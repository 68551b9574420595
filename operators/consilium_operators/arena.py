"""An arena's ranks and pay, as the chain has them."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, RoundState, members
from consilium_chain.settlement.payouts import BASIS_POINTS, ranking
from consilium_chain.tasks.limits import MICRO

from consilium_operators.errors import OperatorError


@dataclass(frozen=True)
class Standing:
    """A trainer's result of a round. `median`: in millionths of the metric. `rank`: from 1; None below the floor.
    `reward`: in the token's smallest unit.
    """

    trainer: str
    median: int
    rank: int | None
    reward: int

    @property
    def improvement(self) -> float:
        """The median in the metric's own unit."""
        return self.median / MICRO


@dataclass(frozen=True)
class Trainer:
    """A trainer's results of all settled rounds. `results`: by round, None where it sent no update. `earned`: in the
    token's smallest unit.
    """

    address: str
    results: tuple[Standing | None, ...]
    earned: int

    @property
    def wins(self) -> int:
        return sum(one is not None and one.rank == 1 for one in self.results)


@dataclass(frozen=True)
class Arena:
    """`decay`: the pay of a rank, as a part of the pay of the one before. `floor`: the least median that has a rank, in
    millionths. `settled`: the numbers of the settled rounds. `trainers`: the one that earned most comes first.
    """

    task: int
    decay: float
    floor: int
    phase: Phase
    round: int
    rounds: int
    settled: tuple[int, ...]
    trainers: tuple[Trainer, ...]

    @property
    def least_improvement(self) -> float:
        """The floor in the metric's own unit."""
        return self.floor / MICRO


def arena_of(ledger: Ledger, task: int) -> Arena:
    """Raises OperatorError (NotAnArena), Refused (TaskUnknown), ChainUnreachable."""
    params, state = ledger.tasks.params(task), ledger.tasks.state(task)
    if not params.rank_decay_bps:
        raise OperatorError("NotAnArena", task=task)
    nodes = [one.node for one in ledger.tasks.hospitals(task)]
    found = {number: ledger.tasks.round_state(task, number) for number in range(1, state.round + 1)}
    settled = {number: one for number, one in found.items() if one.outcome is Outcome.SETTLED}
    results = [
        {one.trainer: one for one in standings_of(ledger, task, number, one, nodes, params.rank_floor)}
        for number, one in settled.items()
    ]
    trainers = [
        Trainer(node, tuple(one.get(node) for one in results), sum(one[node].reward for one in results if node in one))
        for node in nodes
    ]
    return Arena(
        task, params.rank_decay_bps / BASIS_POINTS, params.rank_floor, state.phase, state.round, params.rounds,
        tuple(settled), tuple(sorted(trainers, key=lambda one: (-one.earned, -one.wins, nodes.index(one.address)))),
    )  # fmt: skip


def standings_of(
    ledger: Ledger, task: int, number: int, state: RoundState, nodes: list[str], floor: int
) -> list[Standing]:
    """A settled round's trainers whose updates are in it, the best median first."""
    ranks = {cohort: rank for rank, cohort in enumerate(ranking(state.medians, floor), 1)}
    found = []
    for cohort in members(state.viable_cohorts):
        (index,) = members(ledger.tasks.cohort_members(task, number, cohort))
        rank = ranks.get(cohort)
        reward = 0 if rank is None else ledger.tasks.explain(task, number, nodes[index]).reward
        found.append((cohort, Standing(nodes[index], state.medians[cohort], rank, reward)))
    return [one for _, one in sorted(found, key=lambda each: (-each[1].median, each[0]))]
