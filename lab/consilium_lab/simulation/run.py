"""Plays a task's rounds in this process, by the nodes' own code: training, sums, judging, pay.

Left out are the parts that change no model and no pay: chain, Flower, masks (they cancel in the sums) and signatures.
Every voter has a seat. All follows `seed` but the noise of private tasks. While every cohort is accepted and all take
part, each base has the bits of the demo's with the same seed, rows and task.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.structs import STATISTICS_ROUND, Role, VoidReason
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.start_specs import TaskStart
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples, joined
from consilium_client.hospital.learning import Updates
from consilium_client.hospital.memory import InProcess
from consilium_client.hospital.training import LEAST_SALT, RoundSeeds, split, statistics_blobs
from consilium_client.models import Vector, model_of
from consilium_client.models.training import in_round
from consilium_client.models.worth import require_metric_installed
from consilium_client.programs.confined import without_windows
from consilium_client.programs.library import offer
from consilium_client.voter.evaluating import Judge
from consilium_core.artifacts.backends import Location
from consilium_verify.report import derived
from consilium_zk.blobs import Blob
from numpy.typing import NDArray

from consilium_lab.demo.references import Metrics, evaluated, row_weight
from consilium_lab.errors import LabError
from consilium_lab.seeds import seed_of
from consilium_lab.simulation.attendance import Attendance, viable, void_settlement
from consilium_lab.simulation.record import SimulatedRecord, assigned
from consilium_lab.simulation.references import NO_REFERENCES, References, references_of

HELD_OUT = 0.1  # of each hospital's rows, in a task with patience


@dataclass(frozen=True)
class PlayedRound:
    """`cohorts`: hospitals by cohort, by index. `absent`: those of them that committed nothing. `viable`: the cohorts
    that have a sum, by number. `model`, `metrics`: after the round, on all voters' rows.
    """

    number: int
    cohorts: list[list[int]]
    settlement: Settlement
    model: Vector = field(repr=False)
    metrics: Metrics
    absent: frozenset[int]
    viable: list[int]


@dataclass(frozen=True)
class Simulation:
    """`first`, `model`: before and after all rounds. `references`: empty if they were not wanted.

    Metrics are on all voters' rows. `rows`: of each hospital and voter, by name. Money in the token's smallest unit.
    A void statistics round ends the task: no round is played, and without statistics `start` is NaN.
    """

    spec: TaskSpec
    hospitals: tuple[str, ...]
    voters: tuple[str, ...]
    rows: Mapping[str, int]
    rounds: list[PlayedRound]
    first: Vector
    model: Vector
    start: Metrics
    references: References
    paid: Mapping[str, int]
    slashed: Mapping[str, int]

    @property
    def metric(self) -> Metric:
        """The one that pictures and sentences show; more is better."""
        return self.spec.data.asked.shown[0]

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
    locations: Sequence[Location] = (),
    dropouts: float = 0.0,
) -> Simulation:
    """Plays all rounds of the task file `raw` on these examples by name. `on_round` sees each one. `compared`: with the
    reference trainings. `locations`: of the artifact store, for the weights that a task starts from. `dropouts`: the
    chance (0 to 1) of each hospital to miss a round, also the statistics round.

    Raises SpecInvalid, LabError (SimulationInvalid, StartNotSimulated, SettingOutOfRange) and the errors of training
    and models.
    """
    spec = parse_task_spec(raw)
    if isinstance(spec.start, TaskStart):
        raise LabError("StartNotSimulated", task=spec.start.task)
    require_enough(spec, len(hospitals), len(voters))
    with tempfile.TemporaryDirectory(prefix="consilium-simulation-") as folder:
        store = ArtifactStore([Path(folder), *locations])
        offer(store, spec)
        model_of(spec).require_installed()
        require_metric_installed(spec)
        attendance = Attendance(len(hospitals), dropouts, seed)
        return _Game(raw, spec, hospitals, voters, seed, store, attendance).play(on_round, compared)


def require_enough(spec: TaskSpec, hospitals: int, voters: int) -> None:
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


def _kept_out(
    hospitals: Mapping[str, Examples], spec: TaskSpec, seed: int
) -> tuple[dict[str, Examples], list[Examples | None]]:
    """The rows to train on, by hospital, and those kept out: a tenth where the task's patience needs some."""
    if spec.training.patience is None:
        return dict(hospitals), [None] * len(hospitals)
    pairs = {
        name: split(part, HELD_OUT, seed_of(seed, index).to_bytes(LEAST_SALT, "big"))
        for index, (name, part) in enumerate(hospitals.items())
    }
    trained = {name: kept if kept.rows else hospitals[name] for name, (kept, _) in pairs.items()}
    return trained, [out if out.rows and kept.rows else None for kept, out in pairs.values()]


class _Game:
    def __init__(
        self, raw: bytes, spec: TaskSpec, hospitals: Mapping[str, Examples], voters: Mapping[str, Examples], seed: int,
        store: ArtifactStore, attendance: Attendance,
    ) -> None:  # fmt: skip
        self._spec, self._voters, self._seed = spec, voters, seed
        self._hospitals, self._own_tests = _kept_out(hospitals, spec, seed)
        self._attendance = attendance
        self._random = np.random.default_rng(seed)
        weights = [row_weight(part.rows, spec) for part in self._hospitals.values()]
        self._record = SimulatedRecord(raw, spec, weights, store, self._random.bytes(32))
        self._reader = self._record.reader()
        self._updates = [Updates(spec, self._reader, InProcess()) for _ in hospitals]
        self._held_out = joined(list(voters.values()))
        terms = Terms.of(self._record.params)
        bonds = {(Role.HOSPITAL, index): terms.hospital_bond for index in range(len(hospitals))}
        bonds |= {(Role.VOTER, index): terms.voter_bond for index in range(len(voters))}
        self._money = _Money(terms, terms.pool, 0, bonds | {(Role.AGGREGATOR, 0): terms.aggregator_bond})

    @without_windows()
    def play(self, on_round: Callable[[PlayedRound], None], compared: bool) -> Simulation:
        has_statistics = self._play_statistics()
        start = self._measured(1)
        played: list[PlayedRound] = []
        if has_statistics:
            judges = [Judge(self._record.task, self._reader, part) for part in self._voters.values()]
            for number in range(1, self._spec.rounds.rounds + 1):
                cohorts = assigned(self._active_hospitals(), self._spec, self._random)
                if not cohorts:
                    break  # the contract ends the task
                played.append(self._play_round(number, cohorts, judges))
                on_round(played[-1])
        references = (
            references_of(self._spec, self._hospitals, self._held_out, self._seed) if compared else NO_REFERENCES
        )
        return Simulation(
            self._spec, tuple(self._hospitals), tuple(self._voters),
            {name: part.rows for name, part in (*self._hospitals.items(), *self._voters.items())}, played,
            self._reader.base(1), self._reader.base(len(played) + 1), start, references, *self._results(),
        )  # fmt: skip

    def _measured(self, number: int) -> Metrics:
        """The metrics of a round's base. All are NaN if the task standardises by statistics that it does not have."""
        try:
            sums = self._statistics
        except RecordIncomplete:
            return dict.fromkeys(self._spec.data.asked.metrics, math.nan)
        return evaluated(self._spec, self._reader.base(number), sums, self._held_out)

    @cached_property
    def _statistics(self) -> NDArray[np.float64]:
        return self._reader.statistics()

    def _play_statistics(self) -> bool:
        """False if too few hospitals took part: the contract ends such a task."""
        absent, parts = self._attendance.draw(), list(self._hospitals.values())
        everybody = [list(range(len(parts)))]
        if not viable(everybody, absent, self._spec):
            self._record.void(STATISTICS_ROUND, VoidReason.TOO_FEW_HOSPITALS)
            return False
        if self._spec.statistics == "exact" or self._spec.summary is not None:
            updates = {
                index: statistics_blobs(part, self._spec) for index, part in enumerate(parts) if index not in absent
            }
            self._record.publish(STATISTICS_ROUND, everybody, updates, absent=absent, is_statistics=True)
            self._record.settle(STATISTICS_ROUND, accepted=0)
        self._attendance.close(absent, had_uploads=True)
        return True

    def _with_bond(self, role: Role) -> list[int]:
        """Those that are not out of the task: a slash that takes the rest of a bond ends its owner's part."""
        return [index for (own, index), left in self._money.bonds.items() if own is role and left > 0]

    def _active_hospitals(self) -> list[int]:
        return [index for index in self._with_bond(Role.HOSPITAL) if self._attendance.is_active(index)]

    def _play_round(self, number: int, cohorts: list[list[int]], judges: Sequence[Judge]) -> PlayedRound:
        absent = self._attendance.draw()
        with_sum = viable(cohorts, absent, self._spec)
        self._attendance.close(absent, had_uploads=bool(with_sum))
        if with_sum:
            result = self._settled(number, cohorts, with_sum, absent, judges)
        else:
            money = self._money
            result = void_settlement(len(self._hospitals), len(judges), money.pool_left, money.forfeited)
            self._record.void(number, result.void)
        missing = absent & {index for cohort in cohorts for index in cohort}
        model, metrics = self._reader.base(number + 1), self._measured(number + 1)
        return PlayedRound(number, cohorts, result, model, metrics, missing, with_sum)

    def _settled(
        self, number: int, cohorts: list[list[int]], with_sum: list[int], absent: frozenset[int],
        judges: Sequence[Judge],
    ) -> Settlement:  # fmt: skip
        base, parts = self._reader.base(number), list(self._hospitals.values())
        present = [index for k in with_sum for index in cohorts[k] if index not in absent]
        updates = {index: self._update(number, base, index, parts[index]) for index in present}
        state = self._record.publish(number, cohorts, updates, absent=absent, is_statistics=False)
        money, seated = self._money, self._with_bond(Role.VOTER)
        flipped = sum(self._record.flipped(number, cohort) << cohort for cohort in with_sum)
        record = RoundRecord(
            pool_left=money.pool_left,
            forfeited=money.forfeited,
            weights=tuple(self._record.weights),
            hospital_bonds=tuple(money.bonds[Role.HOSPITAL, index] for index in range(len(parts))),
            voter_bonds=tuple(money.bonds[Role.VOTER, index] for index in range(len(judges))),
            aggregator_bond=money.bonds[Role.AGGREGATOR, 0],
            cohorts=tuple(sum(1 << index for index in cohort) for cohort in cohorts),
            viable=state.viable_cohorts,
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
        inputs = model_of(spec).inputs(part, self._statistics)
        if spec.privacy is None:
            out = self._own_tests[index]
            held_out = (model_of(spec).inputs(out, self._statistics), out.labels) if out else None
            update = self._updates[index].learn(number, base, (inputs, part.labels), held_out, seeds.training)
        else:
            from consilium_client.privacy.dp_sgd import learn_privately, plan  # Opacus: seconds to load

            mechanism = plan(spec, spec.privacy, part.rows)
            update = learn_privately(spec, spec.privacy, mechanism, self._reader.basis, base, inputs, part.labels)
        return self._updates[index].blobs(number, update, seeds.rounding)

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
