"""The rows of the result: players, their moves and terms, their income, and their income if they were honest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from consilium_chain.settlement.payouts import portion
from consilium_chain.tasks.limits import MICRO

from consilium_lab.economics.bank import Bank, Conduct
from consilium_lab.economics.closed_form import aggregator_pay
from consilium_lab.economics.operators import REJECTIONS, Operator, Trick, When
from consilium_lab.economics.options import Scenario
from consilium_lab.economics.players import Cast, Played, Vote, holds_median, play
from consilium_lab.economics.rules import DEMO, PLAIN, RECOMMENDED, Rules, Unpaid
from consilium_lab.economics.world import Flags, Reals, World, draw

SHARES = (0.1, 0.2, 0.3, 0.4, 0.45)
FINE_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
COMMITTEES = (3, 5, 9, 15, 25)
LAZY_SHARES = (0.55, 0.65, 0.75, 0.85)  # more than half: do they hold the median?
RATES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7)  # and 1, of the terms themselves
HOSPITAL_SHARES = (0.05, 0.1, 0.2, 0.3, 0.45)
COHORT_SIZES = (1, 2, 4)
SPLITS = (1, 2, 4, 8, 16)
SYBIL_STAKE = 4  # bonds, a tenth of all
OPERATOR_SHARES = (0.05, 0.15, 0.3, 0.45)
TERMS = {"demo": DEMO, "recommended": RECOMMENDED}
VOTERS_TERMS = {"without decoys": PLAIN, **TERMS}
MONEY: dict[str, dict[str, Any]] = {
    "refunded": {"unpaid": Unpaid.REFUNDED},
    "carried": {"unpaid": Unpaid.CARRIED},
    "burnt": {"unpaid": Unpaid.BURNT},
    "burnt, rejected cohorts' part too": {"unpaid": Unpaid.BURNT, "forfeits": True},
}
PARTIES = {  # the operator owns the same share of hospitals, and the aggregator, beside its voters
    "voters": (False, False),
    "voters, aggregator": (False, True),
    "voters, hospitals": (True, False),
    "voters, hospitals, aggregator": (True, True),
}

# Scenarios by their deviating players. Those of voters are named as their `Vote` is.
VOTES = (
    Scenario.LAZY, Scenario.FORECAST, Scenario.COPYING, Scenario.COIN, Scenario.DODGING, Scenario.COMPARING,
    Scenario.SILENT,
)  # fmt: skip
CURVES = (Scenario.LAZY, Scenario.FORECAST, Scenario.COIN, Scenario.DODGING, Scenario.COMPARING)  # by rate
CLIQUES = (Scenario.COLLUDING, Scenario.OPPORTUNIST, Scenario.SHADING)
HOSPITALS = {
    Scenario.FREE_RIDER: Conduct.ZERO,
    Scenario.FREE_RIDER_NOISE: Conduct.NOISE,
    Scenario.POISON_SIGN: Conduct.SIGN_FLIP,
    Scenario.POISON_LABELS: Conduct.LABEL_FLIP,
}


@dataclass(frozen=True)
class Row:
    """Means in tokens per round and `unit`. `if_honest`: the deviants' income in the same rounds if they are honest.
    `gain`: the difference; honesty pays if it is negative. `gain_se`: its standard error over the rounds.
    """

    scenario: str
    share: float  # of stake, or of hospitals, or of the aggregator's rounds
    honest_mean: float
    deviant_mean: float
    decoy_rate: float
    if_honest: float
    gain: float
    gain_se: float
    unit: str
    terms: str
    late: bool
    seats: int
    min_reveals: int
    cohort_size: int
    detail: str = ""
    held: float | None = None  # share of rounds in which a clique held the median
    framed: float | None = None  # share of the others' ballots that failed a decoy

    def as_json(self) -> dict[str, Any]:
        rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items() if v is not None}
        return {**rounded, "scenario": str(self.scenario)}


@dataclass(frozen=True)
class OperatorRow(Row):
    """The operator and its parties, with their best trick. `money`: the destination of unpaid money."""

    money: str = ""
    party: str = ""
    trick: str = ""
    when: str = ""


@dataclass(frozen=True)
class Setting:
    """Inputs that all rows of a run share."""

    bank: Bank
    rounds: int
    seed: int

    def world(self, rules: Rules, **stakes: Any) -> World:
        return draw(rules, self.bank, self.rounds, self.seed, **stakes)


def rows_of(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """Raises LabError (MoneyLost, RulesInvalid)."""
    yield from _SCENARIOS[scenario](scenario, setting)


def first(count: int, share: float) -> Flags:
    """The first `share` of `count`. The order has no meaning, since all else is random."""
    return np.arange(count) < round(count * share)


def _row(
    scenario: str, share: float, rules: Rules, terms: str, unit: str, honest: Reals, deviant: Reals, if_honest: Reals,
    detail: str = "",
) -> Row:  # fmt: skip
    """From payoffs per round (R,), the last two being of the same rounds."""
    difference = deviant - if_honest
    return Row(
        scenario=scenario,
        share=share,
        honest_mean=float(honest.mean()),
        deviant_mean=float(deviant.mean()),
        decoy_rate=rules.decoy_rate,
        if_honest=float(if_honest.mean()),
        gain=float(difference.mean()),
        gain_se=float(difference.std() / np.sqrt(len(difference))),
        unit=unit,
        terms=terms,
        late=rules.late,
        seats=rules.seats,
        min_reveals=rules.min_reveals,
        cohort_size=rules.cohort_size,
        detail=detail,
    )


def everybody_honest(world: World) -> Cast:
    none = np.zeros(world.rules.hospitals, dtype=bool)
    return Cast(Vote.HONEST, np.zeros(world.voters, dtype=bool), Conduct.HONEST, none, none)


# --- all are honest ----------------------------------------------------------------------------------------------


def _all_honest(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    for terms, rules in VOTERS_TERMS.items():
        world = setting.world(rules)
        played = play(world, everybody_honest(world))
        for unit, payoffs in (("voter", played.voters), ("hospital", played.hospitals)):
            mean = payoffs.mean(axis=1)
            yield _row(scenario, 0.0, rules, terms, unit, mean, mean, mean)


# --- voters ------------------------------------------------------------------------------------------------------


def _voters(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """Rows under all terms, in whole tasks and in converged ones; and by the share of rounds with decoys."""
    for terms, rules in VOTERS_TERMS.items():
        for late in (False, True):
            for share in SHARES:
                yield deviant_row(scenario, share, replace(rules, late=late), terms, setting)
    if scenario in CURVES:
        for late in (False, True):
            for rate in RATES:
                rules = replace(DEMO, late=late, decoy_rate=rate)
                yield deviant_row(scenario, 0.1, rules, "demo", setting)
    if scenario is Scenario.FORECAST:
        for share in LAZY_SHARES:
            yield deviant_row(scenario, share, DEMO, "demo", setting)


def deviant_row(scenario: Scenario, share: float, rules: Rules, terms: str, setting: Setting) -> Row:
    """A share of the voters, or of the hospitals, deviates."""
    world = setting.world(rules)
    honest = everybody_honest(world)
    if scenario in VOTES:
        unit, deviants = "voter", first(world.voters, share)
        cast = replace(honest, vote=Vote(scenario), voters=deviants)
        payoffs = [played.voters for played in (play(world, honest), play(world, cast))]
    else:
        unit, deviants = "hospital", first(rules.hospitals, share)
        cast = replace(honest, conduct=HOSPITALS[scenario], hospitals=deviants)
        payoffs = [played.hospitals for played in (play(world, honest), play(world, cast))]
    if_honest, played = payoffs
    means = (one.mean(axis=1) for one in (played[:, ~deviants], played[:, deviants], if_honest[:, deviants]))
    return _row(scenario, share, rules, terms, unit, *means)


# --- cliques of voters and hospitals -------------------------------------------------------------------------------


def _cliques(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """The clique owns the same share of voters and of hospitals, so that the parties of a row are alike."""
    for terms, rules in TERMS.items():
        for share in SHARES:
            yield clique_row(scenario, share, rules, terms, setting)
    for seats in COMMITTEES:
        for min_reveals in (seats // 2 + 1, 1):
            rules = replace(RECOMMENDED, seats=seats, min_reveals=min_reveals)
            for share in FINE_SHARES:
                yield clique_row(scenario, share, rules, "committee", setting)


def _framing(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """An opportunist clique whose hospitals poison, so that its cohorts' decoys are better than their sums: where it
    holds the median it accepts the poison and rates the decoy low, and honest voters fail.
    """
    for terms, rules in TERMS.items():
        for share in SHARES:
            yield clique_row(scenario, share, rules, terms, setting, Conduct.LABEL_FLIP)


def clique_row(
    scenario: Scenario, share: float, rules: Rules, terms: str, setting: Setting, conduct: Conduct = Conduct.HONEST
) -> Row:
    world = setting.world(rules)
    voters, own = first(world.voters, share), first(rules.hospitals, share)
    honest = play(world, everybody_honest(world))
    vote = Vote(scenario) if scenario in CLIQUES else Vote.OPPORTUNIST
    played = play(world, Cast(vote, voters, conduct, hospitals=own & (conduct is not Conduct.HONEST), own=own))
    means = _party(played, ~voters, ~own), _party(played, voters, own), _party(honest, voters, own)
    held = float((holds_median(played.revealed, voters) & ~played.settled.void).mean())
    framed = float(played.settled.failed[:, ~voters].sum() / played.revealed[:, ~voters].sum())
    return replace(_row(scenario, share, rules, terms, "party", *means), held=held, framed=framed)


def _party(played: Played, voters: Flags, hospitals: Flags) -> Reals:
    """Per round, the mean over these voters and hospitals together."""
    total = played.voters[:, voters].sum(axis=1) + played.hospitals[:, hospitals].sum(axis=1)
    return np.asarray(total / (voters.sum() + hospitals.sum()))


# --- the operator --------------------------------------------------------------------------------------------------


def _operators(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """Rows by the destination of unpaid money and the operator's parties, with its best rejection and rating."""
    for (money, fields), (terms, rules), party, share in itertools.product(
        MONEY.items(), TERMS.items(), PARTIES, OPERATOR_SHARES
    ):
        rows = list(operator_rows(share, replace(rules, **fields), terms, party, setting))
        for tricks in (REJECTIONS, (Trick.RATE,)):
            if played := [row for row in rows if row.trick in tricks]:
                yield replace(max(played, key=lambda row: row.gain), money=money)


def operator_rows(share: float, rules: Rules, terms: str, party: str, setting: Setting) -> Iterator[OperatorRow]:
    """One for each trick that such a party can play, and each choice of rounds."""
    world = setting.world(rules)
    hospitals, aggregator = PARTIES[party]
    owned = first(world.voters, share), first(rules.hospitals, share if hospitals else 0)
    operator = Operator(world, *owned, aggregator)
    honest = operator.income(operator.honest)
    for trick, when in itertools.product(filter(operator.can, Trick), When):
        tricky = operator.income(operator.moves(trick, when))
        row = _row(Scenario.OPERATOR, share, rules, terms, "operator", honest, tricky, honest)
        yield OperatorRow(**vars(row), party=party, trick=str(trick), when=str(when))


# --- one stake, many names ---------------------------------------------------------------------------------------


def _sybils(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    for seats in (DEMO.seats, RECOMMENDED.seats):
        rules = replace(RECOMMENDED, seats=seats, min_reveals=seats // 2 + 1)
        whole, _ = sybil_payoffs(rules, 1, setting)
        for parts in SPLITS:
            own, others = sybil_payoffs(rules, parts, setting)
            detail = f"{parts} account(s)"  # each of which pays for its evaluation
            row = _row(scenario, 0.1, rules, "recommended", "bond", others, own, whole, detail)
            yield replace(row, gain_se=float(np.hypot(own.std(), whole.std()) / np.sqrt(len(own))))  # other seats


def sybil_payoffs(rules: Rules, parts: int, setting: Setting) -> tuple[Reals, Reals]:
    """Per round and bond: of the split stake, and of the others."""
    others = rules.voters - SYBIL_STAKE
    world = setting.world(rules, stakes=[SYBIL_STAKE / parts] * parts + [1.0] * others, alike=parts)
    played = play(world, everybody_honest(world)).voters
    return played[:, :parts].sum(axis=1) / SYBIL_STAKE, played[:, parts:].sum(axis=1) / others


# --- hospitals ---------------------------------------------------------------------------------------------------


def _hospitals(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    for size in COHORT_SIZES:
        rules = replace(RECOMMENDED, cohort_size=size)
        for share in HOSPITAL_SHARES:
            yield deviant_row(scenario, share, rules, "recommended", setting)


# --- the aggregator ----------------------------------------------------------------------------------------------


def _aggregator(scenario: Scenario, setting: Setting) -> Iterator[Row]:
    """In closed form: it loses the round's fee and the slash. `share` is that of the rounds that it lets go by."""
    for terms, rules in TERMS.items():
        fee = portion(rules.budget, rules.aggregator_share_bps) / MICRO
        slash = portion(rules.aggregator_bond, rules.not_published_slash_bps) / MICRO
        for share in (0.1, 0.25, 0.5, 1.0):
            fees, cheats = np.full(1, fee), np.full(1, aggregator_pay(fee, slash, share))
            detail = f"fee {fee:g} a round, slash {slash:g}, closed form"
            yield _row(scenario, share, rules, terms, "aggregator", fees, cheats, fees, detail)


_SCENARIOS: dict[Scenario, Callable[[Scenario, Setting], Iterator[Row]]] = {
    Scenario.HONEST: _all_honest,
    **dict.fromkeys(VOTES, _voters),
    **dict.fromkeys(CLIQUES, _cliques),
    Scenario.FRAMING: _framing,
    Scenario.OPERATOR: _operators,
    Scenario.SYBIL: _sybils,
    **dict.fromkeys(HOSPITALS, _hospitals),
    Scenario.AGGREGATOR: _aggregator,
}
