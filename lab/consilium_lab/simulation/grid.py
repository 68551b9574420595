"""A task in several forms, each simulated on the same rows: what costs less, and what it costs in accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples, joined
from consilium_client.models.objectives import objective_of
from consilium_core.artifacts.backends import Location

from consilium_lab.demo.references import Metrics
from consilium_lab.errors import LabError
from consilium_lab.simulation.forms import Form, forms, taking_part
from consilium_lab.simulation.references import References, references_of
from consilium_lab.simulation.run import Simulation, require_enough, simulate

MOST = 0.5  # of the cohorts, that a proposed form accepts
NEAR = 0.01  # of the best metric: a task that costs less is worth that
GWEI = 10**9
# Mainnet on a quiet day, as docs/testnet.md assumes, with drand's quicknet as `consilium chain deploy` sets it there.
ASSUMED = ChainTerms(
    gas_price=3 * GWEI // 2, blob_gas_price=GWEI // 10, block_seconds=12.0, beacon_seconds=33.0, has_drand=True
)


@dataclass(frozen=True)
class GridRow:
    """`form`: by axis, in words. `bytes_a_round`: the lanes of a hospital's update. `blobs_a_round`: of a hospital.
    `wei`, `seconds`: of all parties and of the whole task, at the grid's prices. `accepted`: share of the cohorts.
    `task_file`: its text. `dropouts`: the chance of a hospital to miss a round.

    With several seeds, `metrics` and `accepted` are means. `errors`: standard errors of the metrics, empty with one
    seed. `is_frontier`: with as many dropouts, no other is as good with fewer bytes.
    """

    form: Mapping[str, str]
    metrics: Metrics
    bytes_a_round: int
    blobs_a_round: int
    chain_blobs: int
    gas: int
    wei: int
    seconds: float
    epsilon: float | None
    accepted: float
    task_file: str
    dropouts: float
    errors: Metrics
    is_frontier: bool = False


@dataclass(frozen=True)
class Grid:
    """`metric`: the one that ranks the rows. `shown`: those of a table. `references`: of the task as given, on all
    rows, by the first seed.
    """

    rows: list[GridRow]
    metric: Metric
    shown: tuple[Metric, ...]
    references: References
    terms: ChainTerms
    seeds: int

    @property
    def proposed(self) -> GridRow:
        return proposed(self.rows, self.metric)


@dataclass(frozen=True)
class Play:
    """The conditions of a grid. `seed` and the next ones, `seeds` in all: of cohorts, training, decoys and absences.
    `dropouts`: where no axis varies them. Raises LabError (SettingOutOfRange).
    """

    seed: int = 0
    seeds: int = 1
    dropouts: float = 0.0
    terms: ChainTerms = ASSUMED
    locations: Sequence[Location] = ()

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise LabError("SettingOutOfRange", setting="the number of seeds", given=self.seeds, needed="1 or more")


def at_prices(gas_price: int | None, blob_gas_price: int | None, block_seconds: float | None) -> ChainTerms:
    """The assumed terms, with these instead. Prices in wei. Raises LabError (SettingOutOfRange)."""
    terms = replace(
        ASSUMED,
        gas_price=ASSUMED.gas_price if gas_price is None else gas_price,
        blob_gas_price=ASSUMED.blob_gas_price if blob_gas_price is None else blob_gas_price,
        block_seconds=ASSUMED.block_seconds if block_seconds is None else block_seconds,
    )
    for setting, value in (
        ("the price of gas", terms.gas_price),
        ("the price of blob gas", terms.blob_gas_price),
        ("the time between blocks", terms.block_seconds),
    ):
        if not 0 <= value < math.inf:
            raise LabError("SettingOutOfRange", setting=setting, given=value, needed="0 or more")
    return terms


def simulate_grid(
    spec: TaskSpec,
    axes: Sequence[str],
    hospitals: Mapping[str, Examples],
    voters: Mapping[str, Examples],
    on_row: Callable[[GridRow, int], None] = lambda row, of: None,
    play: Play | None = None,
) -> Grid:
    """Simulates each form of the task that its schema allows. `on_row` gets each, and the number of all forms.

    Raises LabError (GridUnknown), and as `simulate` does.
    """
    require_enough(spec, len(hospitals), len(voters))
    conditions = play or Play()
    rows: list[GridRow] = []
    wanted = forms(spec, axes, len(hospitals), conditions.dropouts)
    for form in wanted:
        try:
            allowed = parse_task_spec(form.task_file.encode())
        except SpecInvalid:
            continue
        chosen = taking_part({name: part.rows for name, part in hospitals.items()}, form.hospitals)
        row = _row(form, allowed, {name: hospitals[name] for name in chosen}, voters, conditions)
        rows.append(row)
        on_row(row, len(wanted))
    metric = ranked_by(spec)
    references = references_of(spec, hospitals, joined(list(voters.values())), conditions.seed)
    return Grid(frontier(rows, metric), metric, spec.data.asked.shown, references, conditions.terms, conditions.seeds)


def _row(
    form: Form, spec: TaskSpec, hospitals: Mapping[str, Examples], voters: Mapping[str, Examples], play: Play
) -> GridRow:
    raw = form.task_file.encode()
    played = [
        simulate(raw, hospitals, voters, seed, compared=False, locations=play.locations, dropouts=form.dropouts)
        for seed in range(play.seed, play.seed + play.seeds)
    ]
    metrics, errors = averages([one.rounds[-1].metrics if one.rounds else one.start for one in played])
    costs = estimate(spec, play.terms)
    return GridRow(
        form=form.words,
        metrics=metrics,
        bytes_a_round=-(-spec.coordinates * spec.update_layout.lane_bits // 8),
        blobs_a_round=spec.update_blobs,
        chain_blobs=costs.published_blobs,
        gas=costs.all_gas,
        wei=play.terms.wei(costs.all_gas, costs.blob_gas),
        seconds=math.nan if costs.expected is None else costs.expected,
        epsilon=spec.privacy.epsilon if spec.privacy else None,
        accepted=float(np.mean([_accepted(one) for one in played])),
        task_file=form.task_file,
        dropouts=form.dropouts,
        errors=errors,
    )


def _accepted(played: Simulation) -> float:
    """The share of accepted cohorts, of all that were formed."""
    cohorts = sum(len(one.cohorts) for one in played.rounds)
    return sum(one.settlement.accepted.bit_count() for one in played.rounds) / max(cohorts, 1)


def averages(found: Sequence[Metrics]) -> tuple[Metrics, Metrics]:
    """Means, and their standard errors: the sample's deviation over the root of its size. No errors of one sample."""
    values = {name: np.array([one[name] for one in found]) for name in found[0]}
    means = {name: float(np.mean(sample)) for name, sample in values.items()}
    if len(found) == 1:
        return means, {}
    return means, {name: float(np.std(sample, ddof=1)) / math.sqrt(len(found)) for name, sample in values.items()}


def ranked_by(spec: TaskSpec) -> Metric:
    """The metric by which forms are compared, more being better: the task's own, or the first that is shown instead
    of an error or a plug-in.
    """
    chosen = spec.judging.metric
    if chosen == "plugin" or not objective_of(spec.data).measures[chosen].more_is_better:
        return spec.data.asked.shown[0]
    return chosen


def frontier(rows: Sequence[GridRow], metric: str) -> list[GridRow]:
    """The same rows. Those with no other that is better with as few bytes, or as good with fewer, are marked. Rows are
    compared at equal dropouts, which no task file chooses.
    """

    def is_behind(one: GridRow, other: GridRow) -> bool:
        mine, theirs = _value(one, metric), _value(other, metric)
        return (
            other.dropouts == one.dropouts
            and theirs >= mine
            and other.bytes_a_round <= one.bytes_a_round
            and (theirs > mine or other.bytes_a_round < one.bytes_a_round)
        )

    return [replace(row, is_frontier=not any(is_behind(row, other) for other in rows)) for row in rows]


def proposed(rows: Sequence[GridRow], metric: str) -> GridRow:
    """The row of the fewest bytes whose metric is within NEAR of the best one, and that accepts most cohorts; of the
    rows with the most dropouts, which a task must endure.
    """
    hardest = max(row.dropouts for row in rows)
    compared = [row for row in rows if row.dropouts == hardest]
    sound = [row for row in compared if row.accepted >= MOST] or compared
    best = max(_value(row, metric) for row in sound)
    near = [row for row in sound if _value(row, metric) >= best - NEAR]
    return min(near, key=lambda row: (row.bytes_a_round, -_value(row, metric)))


def _value(row: GridRow, metric: str) -> float:
    value = row.metrics[metric]
    return -math.inf if math.isnan(value) else value
