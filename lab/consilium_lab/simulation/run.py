"""Plays a task's rounds in this process, by the nodes' own code: training, sums, judging, pay.

Left out are the parts that change no model and no pay: chain, Flower, masks (they cancel in the sums) and signatures.
Every voter has a seat. All follows `seed` but the noise of private tasks. While every cohort is accepted, each base has
the bits of the demo's with the same seed, rows and task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import STATISTICS_ROUND, Role
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle
from consilium_chain.tasks.start_specs import TaskStart
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples, joined
from consilium_client.hospital.training import RoundSeeds, statistics_blobs, update_blobs
from consilium_client.models import Vector, model_of
from consilium_client.models.training import in_round, learn
from consilium_client.voter.evaluating import Judge
from consilium_core.artifacts.backends import Place
from consilium_verify.report import derived
from consilium_zk.blobs import Blob

from consilium_lab.demo.references import (
    Metrics,
    evaluated,
    fedavg,
    row_weight,
    trained_alone,
    trained_pooled,
)
from consilium_lab.errors import LabError
from consilium_lab.seeds import seed_of
from consilium_lab.simulation.record import SimulatedRecord, assigned


@dataclass(frozen=True)
class PlayedRound:
    """`cohorts`: hospitals by cohort, by index. `model`, `metrics`: after the round, on all voters' rows."""

    number: int
    cohorts: list[list[int]]
    settlement: Settlement
    model: Vector = field(repr=False)
    metrics: Metrics


@dataclass(frozen=True)
class Simulation:
    """`first`, `model`: before and after all rounds. `averaged`: of plain FedAvg, unrounded. `alone`: by hospital.

    Metrics are on all voters' rows. `rows`: of each hospital and voter, by name. Money in the token's smallest unit.
    """

    spec: TaskSpec
    hospitals: tuple[str, ...]
    voters: tuple[str, ...]
    rows: Mapping[str, int]
    rounds: list[PlayedRound]
    first: Vector
    model: Vector
    start: Metrics
    pooled: Metrics
    averaged: Metrics
    alone: Mapping[str, Metrics]
    paid: Mapping[str, int]
    slashed: Mapping[str, int]

    @property
    def bases(self) -> list[str]:
        """SHA-256 of each round's base, and of the last model, as `consilium verify` shows them."""
        return [derived("model", model).sha256 for model in (self.first, *(one.model for one in self.rounds))]


@dataclass
class _Money:
    """The rest of the pool and of bonds, in the smallest unit."""

    terms: Terms
    pool_left: int
    forfeited: int
    bonds: dict[tuple[Role, int], int]
    paid: dict[tuple[Role, int], int] = field(default_factory=dict)

    def apply(self, result: Settlement) -> None:
        for account in result.accounts:
            who = account.role, account.index
            self.bonds[who] -= account.slash
            self.paid[who] = self.paid.get(who, 0) + account.reward
        self.pool_left, self.forfeited = result.pool_left, result.forfeited


def simulate(
    raw: bytes,
    hospitals: Mapping[str, Examples],
    voters: Mapping[str, Examples],
    seed: int = 0,
    on_round: Callable[[PlayedRound], None] = lambda _: None,
    *,
    compared: bool = True,
    places: Sequence[Place] = (),
) -> Simulation:
    """Plays all rounds of the task file `raw` on these examples by name. `on_round` sees each one. `compared`: with the
    reference trainings. `places`: of the artifact store, for the weights that a task starts from.

    Raises SpecInvalid, LabError (SimulationInvalid, StartNotSimulated) and the errors of training and models.
    """
    spec = parse_task_spec(raw)
    if isinstance(spec.start, TaskStart):
        raise LabError("StartNotSimulated", task=spec.start.task)
    _require_enough(spec, len(hospitals), len(voters))
    model_of(spec).require_installed()
    with tempfile.TemporaryDirectory(prefix="consilium-simulation-") as folder:
        store = ArtifactStore([Path(folder), *places])
        return _Game(raw, spec, hospitals, voters, seed, store).play(on_round, compared)


def _require_enough(spec: TaskSpec, hospitals: int, voters: int) -> None:
    """Raises LabError (SimulationInvalid)."""
    least, most = spec.rounds.min_hospitals, spec.rounds.max_hospitals
    if not least <= hospitals <= most:
        raise LabError(
            "SimulationInvalid", who="hospitals", option="--sites or --site", given=hospitals, least=least, most=most
        )
    least, most = spec.judging.min_reveals, spec.judging.max_voters
    if not least <= voters <= most:
        raise LabError(
            "SimulationInvalid", who="voters", option="--voters or --voter", given=voters, least=least, most=most
        )


class _Game:
    def __init__(
        self, raw: bytes, spec: TaskSpec, hospitals: Mapping[str, Examples], voters: Mapping[str, Examples], seed: int,
        store: ArtifactStore,
    ) -> None:  # fmt: skip
        self._spec, self._hospitals, self._voters, self._seed = spec, hospitals, voters, seed
        self._random = np.random.default_rng(seed)
        weights = [row_weight(part.rows, spec) for part in hospitals.values()]
        self._record = SimulatedRecord(raw, spec, weights, store, self._random.bytes(32))
        self._reader = self._record.reader()
        self._held_out = joined(list(voters.values()))
        terms = Terms.of(self._record.params)
        bonds = {(Role.HOSPITAL, index): terms.hospital_bond for index in range(len(hospitals))}
        bonds |= {(Role.VOTER, index): terms.voter_bond for index in range(len(voters))}
        self._money = _Money(terms, terms.pool, 0, bonds | {(Role.AGGREGATOR, 0): terms.aggregator_bond})

    def play(self, on_round: Callable[[PlayedRound], None], compared: bool) -> Simulation:
        if self._spec.statistics == "exact":
            self._play_statistics()
        sums = self._reader.statistics()
        judges = [Judge(self._record.task, self._reader, part) for part in self._voters.values()]
        start = evaluated(self._spec, self._reader.base(1), sums, self._held_out)
        played = []
        for number in range(1, self._spec.rounds.rounds + 1):
            cohorts = assigned(self._with_bond(Role.HOSPITAL), self._spec, self._random)
            if not cohorts:
                break  # the contract ends the task
            result = self._play_round(number, cohorts, judges)
            model = self._reader.base(number + 1)
            metrics = evaluated(self._spec, model, sums, self._held_out)
            played.append(PlayedRound(number, cohorts, result, model, metrics))
            on_round(played[-1])
        model = self._reader.base(len(played) + 1)
        return Simulation(
            self._spec, tuple(self._hospitals), tuple(self._voters),
            {name: part.rows for name, part in (*self._hospitals.items(), *self._voters.items())}, played,
            self._reader.base(1), model, start,
            *(self._references() if compared else ({}, {}, {})), *self._results(),
        )  # fmt: skip

    def _play_statistics(self) -> None:
        updates = {index: statistics_blobs(part, self._spec) for index, part in enumerate(self._hospitals.values())}
        everybody = [list(updates)]
        self._record.publish(STATISTICS_ROUND, everybody, updates, is_statistics=True)
        self._record.settle(STATISTICS_ROUND, accepted=0)

    def _with_bond(self, role: Role) -> list[int]:
        """Those that are not out of the task: a slash that takes the rest of a bond ends its owner's part."""
        return [index for (own, index), left in self._money.bonds.items() if own is role and left > 0]

    def _play_round(self, number: int, cohorts: list[list[int]], judges: Sequence[Judge]) -> Settlement:
        base, parts = self._reader.base(number), list(self._hospitals.values())
        updates = {index: self._update(number, base, index, parts[index]) for cohort in cohorts for index in cohort}
        state = self._record.publish(number, cohorts, updates, is_statistics=False)
        money, seated = self._money, self._with_bond(Role.VOTER)
        flipped = sum(self._record.flipped(number, cohort) << cohort for cohort in range(len(cohorts)))
        record = RoundRecord(
            pool_left=money.pool_left,
            forfeited=money.forfeited,
            weights=tuple(self._record.weights),
            hospital_bonds=tuple(money.bonds[Role.HOSPITAL, index] for index in range(len(parts))),
            voter_bonds=tuple(money.bonds[Role.VOTER, index] for index in range(len(judges))),
            aggregator_bond=money.bonds[Role.AGGREGATOR, 0],
            cohorts=tuple(sum(1 << index for index in cohort) for cohort in cohorts),
            viable=(1 << len(cohorts)) - 1,
            committed=state.committed,
            survivors=state.survivors,
            flipped=flipped if self._spec.judging.decoys else None,
            seated=sum(1 << index for index in seated),
            scores=tuple(
                judge.judged(number, state).scores if index in seated else None for index, judge in enumerate(judges)
            ),
        )
        result = settle(money.terms, record)
        money.apply(result)
        self._record.settle(number, result.accepted)
        return result

    def _update(self, number: int, base: Vector, index: int, part: Examples) -> list[Blob]:
        """A hospital's update of this round's base."""
        spec, seeds = in_round(self._spec, number), RoundSeeds.of(seed_of(self._seed, index), number)
        inputs = model_of(spec).inputs(part, self._reader.statistics())
        if spec.privacy is None:
            update = learn(spec, self._reader.basis, base, inputs, part.labels, seeds.training)
        else:
            from consilium_client.privacy.dp_sgd import learn_privately, plan  # Opacus: seconds to load

            mechanism = plan(spec, spec.privacy, part.rows)
            update = learn_privately(spec, spec.privacy, mechanism, self._reader.basis, base, inputs, part.labels)
        return update_blobs(update, spec, seeds.rounding)

    def _references(self) -> tuple[Metrics, Metrics, dict[str, Metrics]]:
        """Pooled, averaged, alone."""
        parts = list(self._hospitals.values())
        alone = {
            name: trained_alone(self._spec, part, self._held_out, self._seed) for name, part in self._hospitals.items()
        }
        averaged = fedavg(self._spec, parts, self._held_out, self._seed, quantised=False).history[-1]
        return trained_pooled(self._spec, parts, self._held_out, self._seed), averaged, alone

    def _results(self) -> tuple[dict[str, int], dict[str, int]]:
        """Paid and slashed, by name."""
        money = self._money
        names = {(Role.HOSPITAL, index): name for index, name in enumerate(self._hospitals)}
        names |= {(Role.VOTER, index): name for index, name in enumerate(self._voters)}
        names[Role.AGGREGATOR, 0] = "aggregator"
        whole = {
            Role.HOSPITAL: money.terms.hospital_bond, Role.VOTER: money.terms.voter_bond,
            Role.AGGREGATOR: money.terms.aggregator_bond,
        }  # fmt: skip
        paid = {name: money.paid.get(who, 0) for who, name in names.items()}
        return paid, {name: whole[who[0]] - money.bonds[who] for who, name in names.items()}
