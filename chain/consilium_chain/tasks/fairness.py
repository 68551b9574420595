"""The chance that a committee rejects or slashes an honest cohort, by metric and by what voters hold out.

Pure. An honest update of a late round changes a metric by about nothing, so chance decides its score: the committee's
rows, and the update's own noise. Deviations here are calibrated by training of logistic models
(`bench/client/fair_judging.py`, bench/results/fair_judging.json), and at least those of a usual task.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from consilium_chain.tasks.judging_spec import JudgingSpec
from consilium_chain.tasks.task_spec import TaskSpec

MOST_REJECTED, MOST_SLASHED = 0.05, 0.01  # of honest cohorts
LEAST_OF_CLASS = 5  # rows of a class without which AUC and F1 are chance, and their tails are unknown
SURELY, HARMFUL = 0.95, 0.05  # of harmful cohorts; of a metric: as much as log_loss's default of harm
MANY_OF_CLASS = 20  # rows of a class, below which operators are warned
LOSSES = ("log_loss", "brier")  # with a bounded sample in each row: default terms are fair
BY_RANK, BY_RAREST = ("auc", "c_index"), ("macro_f1", "pr_auc")
# Of amounts, whose errors have no bound: of a voter with one row and with all, of the update, and the mean of both.
AMOUNTS = {
    "squared_error": (0.19, 0.025, 0.02, -0.02), "r2": (0.19, 0.025, 0.02, -0.02),
    "absolute_error": (0.12, 0.013, 0.011, -0.01),
}  # fmt: skip
ROWS_OF_AMOUNTS = 50  # of a voter, if the task states none
# Of the calibration error, whose chance has no closed form: rows of a voter, and thresholds that were measured as fair.
CALIBRATED_ROWS, CALIBRATED_FLOOR, CALIBRATED_HARM = 200, -0.05, -0.15
STEP = 0.01  # of proposed thresholds
_LOWEST = 100  # steps below zero: metrics but log_loss lie between 0 and 1
_LARGE = 31  # seats: more hardly lower the chance
_SELDOM = 1e-6  # sizes of committees that are left out
_NORMAL = NormalDist()
_GRID = [-4 + k / 5 for k in range(41)]  # of a standard normal variable


@dataclass(frozen=True)
class Chances:
    """An honest cohort's, in a late round."""

    rejected: float
    slashed: float

    @property
    def are_fair(self) -> bool:
        return self.rejected <= MOST_REJECTED and self.slashed <= MOST_SLASHED


@dataclass(frozen=True)
class Noise:
    """Standard deviations of a late honest score, in the metric's unit. `voter`: of one voter's score, by its rows.
    `common`: of the whole committee's scores, by the update. `mean`: of late honest scores.
    """

    voter: float
    common: float
    mean: float = 0.0


def noise(judging: JudgingSpec) -> Noise | None:
    """By the rows that the task asks of voters. None for losses, for metrics that are not reckoned, and without
    least_rows and least_of_class.

    AUC: both classes' ranks vary, by 1/n₁ + 1/n₀ (Hanley and McNeil, 1982), and so do those with and without an event
    in a C-index. Accuracy: the share of rows that two models answer differently. F1, and average precision, which was
    not measured: the rows of the rarest class.
    """
    if judging.metric in AMOUNTS:
        of_row, of_site, common, mean = AMOUNTS[judging.metric]
        rows = judging.least_rows or ROWS_OF_AMOUNTS
        return Noise(math.hypot(of_row / math.sqrt(rows), of_site), common, mean)
    if not _is_reckoned(judging) or judging.least_rows is None or judging.least_of_class is None:
        return None
    rows, of_class = judging.least_rows, judging.least_of_class
    share = min(of_class / rows, 1 / 2)  # a corpus has one class
    if judging.metric in BY_RANK:
        return Noise(0.08 * math.sqrt(1 / of_class + 1 / (rows - of_class)), 0.004 / math.sqrt(share))
    if judging.metric == "accuracy":
        return Noise(0.65 * math.sqrt(share * (1 - share) / rows), 0.004)
    return Noise(0.15 / math.sqrt(of_class), 0.015)


def chances(judging: JudgingSpec) -> Chances | None:
    """None where `noise` is."""
    found = noise(judging)
    if found is None:
        return None
    rejected, slashed = (_below(limit, found, judging) for limit in (judging.accept_floor, judging.harmful_below))
    return Chances(rejected, slashed)


def fair_thresholds(judging: JudgingSpec) -> tuple[float, float] | None:
    """The highest fair `accept_floor` and `harmful_below` for such voters, to a hundredth, and at most the task's own.
    None where `noise` is.
    """
    found = noise(judging)
    if found is None:
        return None
    floor, harmful = (_highest(most, found, judging) for most in (MOST_REJECTED, MOST_SLASHED))
    floor = min(floor, judging.accept_floor)
    return floor, min(harmful, round(2 * floor, 2), judging.harmful_below)


def noticed_harm(judging: JudgingSpec) -> float | None:
    """The least mean harm, to a hundredth of the metric, that a committee rejects `SURELY`. None where `noise` is."""
    found = noise(judging)
    if found is None:
        return None
    steps = bisect_left(
        range(_LOWEST), True, key=lambda k: _below(judging.accept_floor + k * STEP, found, judging) >= SURELY
    )
    return round(steps * STEP, 2)


def unfairness(spec: TaskSpec) -> str:
    """Why a task's thresholds are not fair to honest cohorts, with the way out; "" if they are."""
    judging = spec.judging
    if judging.metric == "calibration_error":
        return _uncalibrated(judging)
    if not _is_reckoned(judging):
        return ""
    rows, of_class = judging.least_rows, judging.least_of_class
    found, fair = chances(judging), fair_thresholds(judging)
    is_amount = judging.metric in AMOUNTS
    if found is None or fair is None or (not is_amount and (rows is None or of_class is None)):
        return (
            f"{judging.metric} depends on a voter's rows of each class, and the task does not say how many a voter must"
            " hold out: set least_rows and least_of_class in [judging], or judge by log_loss"
        )
    if judging.metric in (*BY_RANK, *BY_RAREST) and of_class is not None and of_class < LEAST_OF_CLASS:
        return (
            f"with {of_class} rows of a class a voter's {judging.metric} is chance: set least_of_class to"
            f" {LEAST_OF_CLASS} or more, or judge by log_loss"
        )
    if found.are_fair:
        return ""
    of_voters = f"{rows or ROWS_OF_AMOUNTS:,} rows" + ("" if is_amount else f", {of_class:,} of a class")
    more = "" if is_amount else ", or ask voters for more rows, or set more seats, or judge by log_loss"
    return (
        f"of honest cohorts about {found.rejected:.0%} would be rejected and {found.slashed:.1%} slashed by chance,"
        f" with voters of {of_voters}: set accept_floor = {fair[0]:g} and harmful_below ="
        f" {fair[1]:g}{_price(judging, fair)}{more}"
    )


def _uncalibrated(judging: JudgingSpec) -> str:
    is_fair = judging.accept_floor <= CALIBRATED_FLOOR and judging.harmful_below <= CALIBRATED_HARM
    if is_fair and (judging.least_rows or 0) >= CALIBRATED_ROWS:
        return ""
    return (
        "by calibration_error chance rejects and slashes many honest cohorts: set least_rows to"
        f" {CALIBRATED_ROWS} or more, accept_floor to {CALIBRATED_FLOOR:g} or less and harmful_below to"
        f" {CALIBRATED_HARM:g} or less, or judge by log_loss"
    )


def _price(judging: JudgingSpec, fair: tuple[float, float]) -> str:
    """The harm that fairer thresholds overlook, in words; "" if they overlook no more."""
    now = noticed_harm(judging)
    then = noticed_harm(judging.model_copy(update={"accept_floor": fair[0], "harmful_below": fair[1]}))
    if now is None or then is None or then <= now:
        return ""
    return f" (of harmful cohorts {SURELY:.0%} are then rejected only from a loss of {then:g} on, not {now:g})"


def overlooked_harm(spec: TaskSpec) -> str:
    """A warning of the harm that seems chance to voters by fair thresholds, or ""."""
    judging = spec.judging
    harm = noticed_harm(judging)
    if harm is None or harm < HARMFUL or judging.metric in AMOUNTS or few_of_class(judging) or unfairness(spec):
        return ""
    return (
        f"a cohort that costs {harm:g} of {judging.metric} is rejected in {SURELY:.0%} of rounds, one that costs less"
        " seldomer, since chance moves voters' scores: ask voters for more rows, or judge by log_loss"
    )


def _is_reckoned(judging: JudgingSpec) -> bool:
    return judging.metric in ("accuracy", *BY_RANK, *BY_RAREST, *AMOUNTS)


def few_of_class(judging: JudgingSpec) -> str:
    """A warning of voters with few rows of a class, or of a metric whose chance is not reckoned; or ""."""
    of_class = judging.least_of_class
    if judging.metric in LOSSES:
        return ""
    if not _is_reckoned(judging):
        return (
            f"chance in {judging.in_words} is not reckoned: simulate the task with rows like the voters', and see what"
            " honest cohorts score, or judge by a loss"
        )
    if judging.metric in AMOUNTS or of_class is None or of_class >= MANY_OF_CLASS:
        return ""
    return (
        f"voters may hold out as few as {of_class} rows of a class, by which {judging.metric} tells little: harm above"
        f" accept_floor {judging.accept_floor:g} passes; ask for {MANY_OF_CLASS}, or judge by log_loss"
    )


def _highest(most: float, found: Noise, judging: JudgingSpec) -> float:
    """The highest threshold that honest cohorts miss with a chance of at most `most`; the chance falls with it."""
    steps = bisect_left(range(1, _LOWEST), True, key=lambda k: _below(-k * STEP, found, judging) <= most)
    return round(-STEP * (steps + 1), 2)


def _below(limit: float, found: Noise, judging: JudgingSpec) -> float:
    """The chance that the committee's lower median is below `limit`, for a cohort that changes nothing on average."""
    sizes = _sizes(judging.max_voters, judging.seats, judging.min_reveals)
    total = whole = 0.0
    for z in _GRID:
        density, one = _NORMAL.pdf(z), _NORMAL.cdf((limit - found.mean - z * found.common) / found.voter)
        total += density * sum(part * _median_below(one, size) for size, part in sizes)
        whole += density
    return total / whole


def _median_below(one: float, size: int) -> float:
    """The chance that the lower median of `size` scores is below a limit, if each is with chance `one`."""
    return sum(_binomial(size, count, one) for count in range((size - 1) // 2 + 1, size + 1))


@lru_cache(maxsize=64)
def _sizes(voters: int, seats: int, least: int) -> tuple[tuple[int, float], ...]:
    """The chance of each size of a committee that judges. Each voter draws its seat by itself, with equal bonds. A
    larger committee than `_LARGE` counts as one of that size.
    """
    if seats >= _LARGE:
        return ((_LARGE, 1.0),)
    found = [(size, _binomial(voters, size, seats / voters)) for size in range(least, voters + 1)]
    whole = sum(part for _, part in found)
    return tuple((size, part / whole) for size, part in found if part > _SELDOM * whole)


def _binomial(trials: int, hits: int, chance: float) -> float:
    if chance in (0.0, 1.0):
        return float(hits == trials * chance)
    log = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return math.exp(log + hits * math.log(chance) + (trials - hits) * math.log1p(-chance))
