"""The economics simulation: settles as the contract does, conserves, repeats itself, agrees with sums by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.ledger.structs import VoidReason
from consilium_chain.settlement.payouts import lower_median
from consilium_chain.settlement.round_record import RoundRecord
from consilium_chain.settlement.settlement import settle
from consilium_chain.tasks.limits import MICRO
from consilium_cli.main import app
from consilium_lab.economics import run
from consilium_lab.economics.bank import Bank, Conduct
from consilium_lab.economics.closed_form import (
    aggregator_pay,
    capture_chance,
    honest_from_rate,
    seats_of,
    split_pay,
)
from consilium_lab.economics.findings import captures, closed_crossing, honest_below, zero_of
from consilium_lab.economics.measure import measure
from consilium_lab.economics.operators import REJECTIONS, Operator, Trick, When
from consilium_lab.economics.options import EconomicsOptions, Scenario
from consilium_lab.economics.payoffs import lower_medians, settle_rounds
from consilium_lab.economics.players import Cast, Played, Vote, ballots_of, holds_median, play
from consilium_lab.economics.rules import DEMO, PLAIN, RECOMMENDED, ROUNDS_PER_TASK, Rules, Unpaid
from consilium_lab.economics.scenarios import (
    MONEY,
    OPERATOR_SHARES,
    SHARES,
    SPLITS,
    SYBIL_STAKE,
    TERMS,
    VOTES,
    OperatorRow,
    Setting,
    clique_row,
    deviant_row,
    everybody_honest,
    first,
    operator_rows,
    rows_of,
    sybil_payoffs,
)
from consilium_lab.economics.world import Ballots, World, draw
from consilium_lab.errors import LabError
from consilium_lab.result_files import rows_again
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def bank() -> Bank:
    return measure(seed=0, tasks=2)


@pytest.fixture(scope="module")
def setting(bank: Bank) -> Setting:
    return Setting(bank, rounds=1_000, seed=1)


def cast(world: World, vote: Vote, conduct: Conduct = Conduct.HONEST, share: float = 0.3) -> Cast:
    hospitals = first(world.rules.hospitals, share)
    return Cast(vote, first(world.voters, share), conduct, hospitals, hospitals)


def record_of(world: World, ballots: Ballots, flipped: Any, revealed: Any, r: int) -> RoundRecord:
    """Sums and decoys in the places that `flipped` (K,) gives them; None for a round without decoys."""
    rules = world.rules
    everybody = (1 << rules.hospitals) - 1

    def ballot(v: int) -> tuple[int, ...]:
        sums, decoys = ballots.sums[r, :, v], ballots.decoys[r, :, v]
        if flipped is None:
            return tuple(map(int, sums))
        return tuple(map(int, [*np.where(flipped, decoys, sums), *np.where(flipped, sums, decoys)]))

    return RoundRecord(
        pool_left=rules.budget,
        weights=(1,) * rules.hospitals,
        hospital_bonds=(rules.hospital_bond,) * rules.hospitals,
        voter_bonds=(rules.voter_bond,) * world.voters,
        aggregator_bond=rules.aggregator_bond,
        cohorts=tuple(sum(1 << int(h) for h in np.flatnonzero(world.cohort_of[r] == k)) for k in range(rules.cohorts)),
        viable=(1 << rules.cohorts) - 1,
        committed=everybody,
        survivors=everybody,
        flipped=None if flipped is None else sum(1 << int(k) for k in np.flatnonzero(flipped)),
        seated=sum(1 << int(v) for v in np.flatnonzero(world.seated[r])),
        scores=tuple(ballot(v) if revealed[r, v] else None for v in range(world.voters)),
    )


@pytest.mark.parametrize("rules", [DEMO, PLAIN, RECOMMENDED, replace(DEMO, seats=3, min_reveals=3, decoy_rate=0.5)])
@pytest.mark.parametrize("conduct", [Conduct.HONEST, Conduct.SIGN_FLIP])
@pytest.mark.parametrize("vote", [Vote.COIN, Vote.OPPORTUNIST])
def test_settle_rounds_agrees_with_the_reference(bank: Bank, rules: Rules, conduct: Conduct, vote: Vote) -> None:
    """Unit for unit, on rounds with poison, guesses, silent voters and too few of them, in places dealt at random."""
    world = draw(rules, bank, 60, seed=3)
    players = cast(world, vote, conduct)
    revealed = world.seated & (np.arange(world.voters) % 5 != 0)
    found = world.evaluations(conduct, players.hospitals)
    theirs = ballots_of(world, players, found, revealed)
    ballots = Ballots(*(np.where(players.voters, *pair) for pair in zip(both(theirs), both(found), strict=True)))
    flipped = np.random.default_rng(0).random((world.rounds, rules.cohorts)) < 0.5
    fast = settle_rounds(rules, ballots, world.tested, world.seated, revealed, world.cohort_of)
    assert fast.void.any() or rules.min_reveals != rules.seats
    assert fast.failed.any() or vote is not Vote.COIN or rules is PLAIN
    for r in range(world.rounds):
        tested = bool(world.tested[r])
        record = record_of(world, ballots, flipped[r] if tested else None, revealed, r)
        plain = settle(rules.terms(tested), record)
        accounts = plain.accounts
        assert fast.void[r] == (plain.void is VoidReason.TOO_FEW_SCORES)
        assert tuple(fast.medians[r]) == (plain.medians or (0,) * rules.cohorts)
        for flags, bit_map in ((fast.accepted[r], plain.accepted), (fast.counted[r], plain.counted)):
            assert sum(1 << k for k in range(rules.cohorts) if flags[k]) == bit_map
        rewards = [*fast.hospital_rewards[r], *fast.voter_rewards[r], fast.aggregator_rewards[r]]
        assert rewards == [account.reward for account in accounts]
        slashes = [*fast.hospital_slashes[r], *fast.voter_slashes[r]]
        assert slashes == [account.slash for account in accounts[:-1]]
        assert fast.left[r] == plain.pool_left


def both(ballots: Ballots) -> tuple[Any, Any]:
    return ballots.sums, ballots.decoys


@pytest.mark.parametrize("vote", Vote)
@pytest.mark.parametrize("conduct", Conduct)
def test_play_conserves_in_every_round(bank: Bank, vote: Vote, conduct: Conduct) -> None:
    world = draw(RECOMMENDED, bank, 200, seed=5)
    played = play(world, cast(world, vote, conduct))
    settled = played.settled
    paid = settled.hospital_rewards.sum(axis=1) + settled.voter_rewards.sum(axis=1) + settled.aggregator_rewards
    assert (paid + settled.left == RECOMMENDED.budget).all()
    assert min(part.min() for part in (settled.hospital_rewards, settled.voter_rewards, settled.left)) >= 0
    # What players have is what was paid, less what they spent and lost: no payoff comes out of nothing.
    slashed = settled.voter_slashes.sum() + settled.hospital_slashes.sum()
    spent = played.voter_costs.sum() * MICRO + _trained(world, played, conduct) * RECOMMENDED.training_cost
    total = (played.voters.sum() + played.hospitals.sum()) * MICRO
    assert total == pytest.approx(paid.sum() - settled.aggregator_rewards.sum() - slashed - spent, rel=1e-9)


def _trained(world: World, played: Played, conduct: Conduct) -> int:
    idle = first(world.rules.hospitals, 0.3).sum() if conduct in (Conduct.ZERO, Conduct.NOISE) else 0
    return int(world.rounds * (world.rules.hospitals - idle))


def test_settle_rounds_pays_nobody_for_a_round_that_the_aggregator_lost(bank: Bank) -> None:
    world = draw(DEMO, bank, 10, seed=5)
    found = world.evaluations(Conduct.HONEST, np.zeros(DEMO.hospitals, dtype=bool))
    blamed, budget = np.arange(10) % 2 == 0, np.full(10, 3 * DEMO.budget)
    settled = settle_rounds(DEMO, found, world.tested, world.seated, world.seated, world.cohort_of, budget, blamed)
    assert (settled.left[blamed] == 3 * DEMO.budget).all()
    assert (settled.aggregator_slashes == blamed * DEMO.aggregator_bond // 2).all()
    assert not settled.voter_slashes.any()
    plain = settle_rounds(DEMO, found, world.tested, world.seated, world.seated, world.cohort_of)
    ratio = settled.hospital_rewards[~blamed].sum() / plain.hospital_rewards[~blamed].sum()
    assert ratio == pytest.approx(3, rel=1e-6)


def test_settle_rounds_names_the_round_that_loses_money() -> None:
    greedy = replace(DEMO, hospital_share_bps=12_000)
    votes = np.full((3, greedy.cohorts, 4), 1_000)
    seated = np.ones((3, 4), dtype=bool)
    with raises_fault(LabError, "MoneyLost", match="round 0"):
        settle_rounds(
            greedy, Ballots(votes, votes - MICRO), ~seated[:, 0], seated, seated, np.tile(np.arange(20) % 5, (3, 1))
        )


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.booleans()), min_size=1, max_size=50))
def test_lower_medians_agrees_with_the_reference(votes: list[tuple[int, bool]]) -> None:
    revealed = [value for value, shown in votes if shown]
    if revealed:
        values, shown = np.array([[[value for value, _ in votes]]]), np.array([[shown for _, shown in votes]])
        assert lower_medians(values, shown)[0, 0] == lower_median(revealed)


# --- what the simulation is for -----------------------------------------------------------------------------------


BLIND = [scenario for scenario in VOTES if scenario is not Scenario.COMPARING]


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("scenario", BLIND)
def test_honesty_beats_every_vote_that_does_not_look(
    setting: Setting, scenario: Scenario, late: bool, terms: str
) -> None:
    for share in SHARES:
        row = deviant_row(scenario, share, replace(TERMS[terms], late=late), terms, setting)
        assert row.gain + 3 * row.gain_se < 0, share
        assert row.deviant_mean < 0, share


def test_laziness_pays_without_decoys(setting: Setting) -> None:
    """In a converged task only decoys find the voters that did not look."""
    row = deviant_row(Scenario.LAZY, 0.1, replace(PLAIN, late=True), "without decoys", setting)
    assert row.gain - 3 * row.gain_se > 0


def test_comparing_candidates_without_data_pays_and_no_decoy_finds_it_out(setting: Setting) -> None:
    """docs/economics.md and docs/decoys.md say so openly."""
    for share in SHARES:
        row = deviant_row(Scenario.COMPARING, share, replace(DEMO, late=True), "demo", setting)
        assert row.gain - 3 * row.gain_se > 0, share


def test_honest_voters_are_never_slashed_over_decoys_of_honest_sums(setting: Setting) -> None:
    for rules in (DEMO, replace(DEMO, late=True), RECOMMENDED):
        settled = play(world := setting.world(rules), everybody_honest(world)).settled
        assert not settled.failed.any()
        assert settled.counted[~settled.void].any(axis=1).mean() > 0.99


def test_lazy_majority_goes_unpaid_and_tests_nobody(setting: Setting) -> None:
    world = setting.world(DEMO)
    everybody = np.ones(world.voters, dtype=bool)
    settled = play(world, replace(everybody_honest(world), vote=Vote.FORECAST, voters=everybody)).settled
    assert not settled.counted.any()
    assert settled.voter_rewards.sum() == settled.voter_slashes.sum() == 0


@pytest.mark.parametrize(
    ("scenario", "late"),
    [
        (Scenario.FORECAST, False), (Scenario.COIN, False), (Scenario.DODGING, True),
        *(
            pytest.param(scenario, late, marks=pytest.mark.deep)
            for scenario, late in ((Scenario.FORECAST, True), (Scenario.COIN, True), (Scenario.DODGING, False))
        ),
    ],
)  # fmt: skip
def test_closed_crossing_is_where_the_simulation_crosses(bank: Bank, scenario: Scenario, late: bool) -> None:
    setting = Setting(bank, rounds=20_000, seed=2)
    by_hand = closed_crossing(scenario, late, setting)
    row = deviant_row(scenario, 0.1, replace(DEMO, late=late, decoy_rate=by_hand), "demo", setting)
    assert 0.03 < by_hand < 0.1
    assert abs(row.gain) < 4 * row.gain_se < 0.5


@pytest.mark.parametrize("scenario", [Scenario.FORECAST, Scenario.DODGING])
def test_more_decoys_never_help_the_lazy(setting: Setting, scenario: Scenario) -> None:
    rates = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
    rows = [deviant_row(scenario, 0.2, replace(DEMO, decoy_rate=q), "demo", setting) for q in rates]
    payoffs = [row.deviant_mean for row in rows]
    assert payoffs == sorted(payoffs, reverse=True)


def test_coin_passes_half_of_the_pairs(setting: Setting) -> None:
    """So that of five pairs a round next to no round is left."""
    world = setting.world(DEMO)
    tossers = first(world.voters, 0.1)
    settled = play(world, replace(everybody_honest(world), vote=Vote.COIN, voters=tossers)).settled
    alone = settled.counted.sum(axis=1) == world.rules.cohorts
    seats = world.seated[alone][:, tossers]
    assert settled.failed[alone][:, tossers].sum() / seats.sum() == pytest.approx(1 - 2**-5, abs=0.02)


def test_keeping_silent_is_cheaper_than_failing_where_its_slash_is_smaller(setting: Setting) -> None:
    """As in the demo's terms; and still dearer than honesty, since who is silent is not paid."""
    fails = deviant_row(Scenario.COIN, 0.1, DEMO, "demo", setting)
    dodges = deviant_row(Scenario.DODGING, 0.1, DEMO, "demo", setting)
    assert fails.deviant_mean < dodges.deviant_mean < 0 < dodges.if_honest
    alike = deviant_row(Scenario.DODGING, 0.1, RECOMMENDED, "recommended", setting)
    assert alike.deviant_mean <= deviant_row(Scenario.COIN, 0.1, RECOMMENDED, "recommended", setting).deviant_mean + 0.5


def test_framing_hurts_the_honest_and_the_clique_itself(setting: Setting) -> None:
    row = next(row for row in rows_of(Scenario.FRAMING, setting) if (row.terms, row.share) == ("demo", 0.45))
    assert row.gain < -10
    assert row.honest_mean < row.if_honest / 2


# --- the operator -------------------------------------------------------------------------------------------------


LEAST_AND_MOST = [
    share if share in (min(OPERATOR_SHARES), max(OPERATOR_SHARES)) else pytest.param(share, marks=pytest.mark.deep)
    for share in OPERATOR_SHARES
]


def best_rejections(share: float, terms: str, party: str, setting: Setting, **money: Any) -> list[OperatorRow]:
    """By trick, in those rounds of a task in which it pays most."""
    rows = list(operator_rows(share, replace(TERMS[terms], **money), terms, party, setting))
    of = {trick: [row for row in rows if row.trick == trick] for trick in REJECTIONS}
    return [max(played, key=lambda row: row.gain) for played in of.values() if played]


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("share", LEAST_AND_MOST)
@pytest.mark.parametrize("party", ["voters", "voters, aggregator"])
def test_no_rejection_pays_an_operator(setting: Setting, terms: str, share: float, party: str) -> None:
    """By voters and an aggregator of its own; fails where unpaid money is refunded, and where it is carried on."""
    rows = best_rejections(share, terms, party, setting)
    assert len(rows) == 5 + ("aggregator" in party)
    assert [row.trick for row in rows if row.gain > 0] == []


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("unpaid", [Unpaid.REFUNDED, Unpaid.CARRIED])
def test_rejections_pay_where_unpaid_money_is_not_burnt(setting: Setting, terms: str, unpaid: Unpaid) -> None:
    """Refunds pay for every void round; a purse for denying others' pay, of which it gives the operator a share."""
    rows = best_rejections(0.45, terms, "voters, aggregator", setting, unpaid=unpaid)
    paying = {row.trick for row in rows if row.gain > 3 * row.gain_se}
    assert {Trick.REJECT_ALL, Trick.REJECT_BUT_ONE} <= paying
    assert (Trick.NOT_DISCLOSED in paying) == (unpaid is Unpaid.REFUNDED)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("share", LEAST_AND_MOST)
@pytest.mark.parametrize("party", ["voters, hospitals", "voters, hospitals, aggregator"])
def test_no_rejection_pays_an_operator_with_hospitals_if_rejected_cohorts_forfeit(
    setting: Setting, terms: str, share: float, party: str
) -> None:
    """But for one that knows all medians, which gains less than a half per cent of what honesty earns it."""
    for row in best_rejections(share, terms, party, setting, forfeits=True):
        assert row.gain <= (0.005 * row.if_honest if row.trick == Trick.PICK else 3 * row.gain_se), row.trick


@pytest.mark.parametrize("terms", TERMS)
def test_hospitals_pay_an_operator_that_holds_the_median(setting: Setting, terms: str) -> None:
    """By rejections unless rejected cohorts forfeit, by ratings whatever the rule; docs/economics.md says so openly."""
    for forfeits in (False, True):
        rules = replace(TERMS[terms], forfeits=forfeits)
        rows = list(operator_rows(0.45, rules, terms, "voters, hospitals", setting))
        gains = {row.trick: row.gain / row.if_honest for row in rows if row.when == When.ALL}
        assert gains[Trick.RATE] > 0.2
        assert (gains[Trick.PICK] > 0.2) == (not forfeits)


@pytest.mark.parametrize("money", MONEY)
def test_income_of_an_operator_that_owns_all_is_the_pool_and_its_costs(bank: Bank, money: str) -> None:
    """Nothing comes out of nothing: the pool less what was burnt, whatever the rule."""
    rules = replace(DEMO, evaluation_cost=0, training_cost=0, **MONEY[money])
    world = draw(rules, bank, 100, seed=3)
    everything = Operator(world, first(world.voters, 1), first(rules.hospitals, 1), True)
    incomes = [everything.income(everything.moves(trick, When.ALL)) for trick in Trick]
    assert max(income.max() for income in incomes) <= rules.budget / MICRO
    if rules.unpaid is Unpaid.REFUNDED:
        assert everything.income(everything.honest) == pytest.approx(np.full(100 // ROUNDS_PER_TASK, 2_000.0))


def test_captures_says_what_one_key_for_many_accounts_would_give() -> None:
    """Keys of their own are the binomials; one key makes all accounts win or none."""
    found = {(row["voters"], row["seats"], row["share"]): row for row in captures()}
    recommended = found[40, 15, 0.3]
    assert recommended["more_than_half"] == pytest.approx(0.015, abs=0.0005)
    assert recommended["more_than_half"] < recommended["half"] < 0.035
    assert recommended["more_than_half_by_one_key"] == pytest.approx(0.246, abs=0.0005)
    crowd = found[236, 15, 0.1]
    assert crowd["more_than_half_by_one_key"] > 1_000 * crowd["more_than_half"]


def test_honest_cohorts_are_harmless_at_the_bound_and_not_at_zero(setting: Setting) -> None:
    below = {(row["cohort_size"], row["late"]): row["below"] for row in honest_below(setting)}
    assert below[1, True]["0"] > 0.2
    assert below[2, True]["0"] > 5 * below[2, True]["-0.01"]
    assert below[4, True]["-0.01"] < 0.005
    assert below[4, True]["-0.04"] == 0


def test_split_stake_gains_nothing(setting: Setting) -> None:
    """Below the cap of one seat: 9 seats, a tenth of the stake. Many rounds, since seats differ from split to split."""
    long = replace(setting, rounds=20_000)
    rules = replace(RECOMMENDED, seats=9, min_reveals=1)
    whole, _ = sybil_payoffs(rules, 1, long)
    for parts in SPLITS[1:]:
        split, _ = sybil_payoffs(rules, parts, long)
        error = float(np.hypot(split.std(), whole.std()) / np.sqrt(long.rounds))
        assert split.mean() - whole.mean() < 3 * error, parts


def test_split_pay_falls_with_every_split_and_agrees_with_the_simulation(setting: Setting) -> None:
    by_hand = [split_pay(36, 9, SYBIL_STAKE, parts) for parts in SPLITS]
    assert by_hand == sorted(by_hand, reverse=True)
    rules = replace(
        RECOMMENDED, seats=9, min_reveals=1, decoy_rate=0.0, tolerance_abs=10**9, evaluation_cost=0
    )  # everybody is near
    for parts, expected in zip(SPLITS, by_hand, strict=True):
        simulated = sybil_payoffs(rules, parts, replace(setting, rounds=20_000))[0]
        error = float(simulated.std() / np.sqrt(len(simulated)))
        assert simulated.mean() == pytest.approx(expected * rules.voter_part / MICRO / SYBIL_STAKE, abs=4 * error)


def test_clique_holds_more_rounds_and_gains_more_as_it_grows(setting: Setting) -> None:
    world = setting.world(RECOMMENDED)
    held = [holds_median(world.seated, first(world.voters, share)).mean() for share in SHARES]
    assert held == sorted(held)
    rows = [clique_row(Scenario.OPPORTUNIST, share, RECOMMENDED, "recommended", setting) for share in SHARES]
    gains = [row.gain for row in rows]
    assert gains == sorted(gains)
    assert gains[0] >= 0
    assert gains[-1] > 3 * rows[-1].gain_se  # collusion pays in the end, and docs/economics.md says so


@pytest.mark.parametrize(("seats", "min_reveals"), [(3, 1), (9, 5), (15, 8)])
def test_capture_chance_agrees_with_the_simulation(bank: Bank, seats: int, min_reveals: int) -> None:
    world = draw(replace(RECOMMENDED, seats=seats, min_reveals=min_reveals), bank, 20_000, seed=4)
    held = holds_median(world.seated, first(40, 0.4)) & (world.seated.sum(axis=1) >= min_reveals)
    assert held.mean() == pytest.approx(capture_chance(40, 16, seats, min_reveals), abs=0.012)


def test_free_riding_loses_alone_and_hides_in_large_cohorts(setting: Setting) -> None:
    gains = [
        deviant_row(Scenario.FREE_RIDER, 0.1, replace(RECOMMENDED, cohort_size=size), "recommended", setting).gain
        for size in (1, 2, 4)
    ]
    assert gains == sorted(gains)
    assert gains[0] < -40
    assert gains[2] > -4


@pytest.mark.parametrize("scenario", [Scenario.POISON_SIGN, Scenario.POISON_LABELS])
def test_poison_costs_its_author_more_than_its_neighbours(setting: Setting, scenario: Scenario) -> None:
    row = deviant_row(scenario, 0.1, RECOMMENDED, "recommended", setting)
    assert row.deviant_mean < 0 < row.honest_mean


def test_aggregator_pay_of_the_demo_and_of_the_rule() -> None:
    assert 2 * aggregator_pay(fee=500, slash=250, cheated=0.5) == 250  # the demo's two rounds, one of them cheated
    assert aggregator_pay(fee=500, slash=500, cheated=0.5) == 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(2, 10))
def test_aggregator_never_gains_by_lateness_and_loses_more_by_absence(one: float, other: float, slashes: float) -> None:
    """With a slash of two fees or more, in shares of the rounds."""
    missed, late = sorted((one, other))[0], abs(one - other)
    pay = aggregator_pay(1, slashes, missed, late)
    assert pay <= 1
    assert pay <= aggregator_pay(1, slashes, 0, missed + late) <= aggregator_pay(1, slashes, 0)
    assert pay <= 1 - 3 * missed + 1e-9


def test_honest_from_rate_knows_its_limits() -> None:
    given = {"cost": 5.0, "seat_pay": 25.0, "slash": 100.0, "lazy_passes": 0.0, "honest_fails": 0.0}
    assert honest_from_rate(near_lazy=1.0, near_honest=1.0, **given) == pytest.approx(0.04)
    assert honest_from_rate(near_lazy=1.0, near_honest=1.0, **given | {"lazy_passes": 0.5}) == pytest.approx(0.08)
    assert honest_from_rate(near_lazy=0.1, near_honest=1.0, **given) == 0
    assert honest_from_rate(near_lazy=1.0, near_honest=1.0, **given | {"lazy_passes": 1.0}) == float("inf")
    assert honest_from_rate(near_lazy=1.0, near_honest=1.0, **given | {"honest_fails": 1.0}) == float("inf")


def test_seats_of_is_binomial() -> None:
    assert seats_of(3, 0.5) == pytest.approx([0.125, 0.375, 0.375, 0.125])


@pytest.mark.parametrize(
    ("points", "zero"),
    [([(0, -1), (1, 1)], 0.5), ([(0, 0), (1, 1)], 0), ([(0, 1), (1, 2)], None), ([(0, 1), (1, 0)], 1), ([], None)],
)
def test_zero_of_finds_the_first_crossing(points: list[tuple[float, float]], zero: float | None) -> None:
    assert zero_of(points) == zero


# --- reproducible, and usable -------------------------------------------------------------------------------------


def test_measure_is_deterministic_and_plausible(bank: Bank) -> None:
    again = measure(seed=0, tasks=1)
    for key, scores in again.scores.items():
        assert np.array_equal(scores[0], bank.scores[key][0]), key
        assert np.array_equal(again.decoys[key][0], bank.decoys[key][0]), key
    forecast = bank.forecast(4)
    assert list(forecast) == sorted(forecast, reverse=True)  # a task's first round improves most
    assert forecast[0] > 300_000 > 30_000 > forecast[-1] > 0
    assert (bank.scores[Conduct.ZERO, 4, 4] == 0).all()
    assert bank.scores[Conduct.SIGN_FLIP, 4, 4].mean() < bank.scores[Conduct.SIGN_FLIP, 4, 1].mean() < 0
    sums, decoys = bank.of(Conduct.HONEST, 4, 0)
    assert (sums > decoys).all()


def test_report_is_a_function_of_its_options(bank: Bank) -> None:
    def report(seed: int, *scenarios: Scenario) -> str:
        setting = Setting(bank, rounds=10, seed=seed)
        rows = [row for scenario in scenarios for row in rows_of(scenario, setting)]
        assert {row.scenario for row in rows} == set(scenarios)
        return run.as_text(run.as_report(EconomicsOptions(10, seed, scenarios, Path(), None), setting, rows))

    assert report(1, *Scenario) == report(1, *Scenario)
    for scenario in (Scenario.LAZY, Scenario.SYBIL):
        assert report(1, scenario) != report(2, scenario)


@pytest.fixture
def simulate(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, with the measurement that these tests share."""
    monkeypatch.setattr(run, "measure", lambda seed, progress: bank)
    return lambda *arguments: CliRunner().invoke(app, ["simulate", "economics", *arguments])


def test_simulate_economics_writes_rows_and_pictures(simulate: Callable[..., Any], tmp_path: Path) -> None:
    output, plots = tmp_path / "new" / "economics.json", tmp_path / "plots"
    result = simulate("--rounds", "10", "--output", str(output), "--plots", str(plots))
    assert result.exit_code == 0, result.output
    raw = json.loads((output.parent / "raw" / output.name).read_text(encoding="utf-8"))["rows"]
    assert {"scenario", "share", "honest_mean", "deviant_mean", "decoy_rate"} <= set(raw[0])
    rows = rows_again(json.loads(output.read_text(encoding="utf-8"))["rows"])
    shown = {(row["scenario"], row["terms"], row["share"]): row for row in rows if "decoy_rate" not in row}
    for row in raw:
        if (row["scenario"], row["terms"], row["late"], row["share"]) == ("lazy", "demo", False, 0.2):
            assert shown["lazy", "demo", 0.2]["deviant_mean"] == pytest.approx(row["deviant_mean"], abs=0.006)
    assert {row["scenario"] for row in rows} == {row["scenario"] for row in raw}
    assert sorted(path.name for path in plots.iterdir()) == [
        "economics-collusion.svg", "economics-decoys.svg", "economics-payoffs.svg", "economics-rejections.svg",
    ]  # fmt: skip


def test_simulate_economics_of_one_scenario_draws_no_empty_pictures(
    simulate: Callable[..., Any], tmp_path: Path
) -> None:
    output, plots = tmp_path / "economics.json", tmp_path / "plots"
    result = simulate(
        "--scenario", "sybil", "--scenario", "sybil", "--rounds", "50", "--output", str(output), "--plots", str(plots)
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    report = json.loads(output.read_text(encoding="utf-8"))
    assert [row["scenario"] for row in rows_again(report["rows"])] == ["sybil"] * 2 * len(SPLITS)
    assert list(plots.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--rounds", "0"], "--rounds"),
        (["--seed", "-1"], "--seed"),
        (["--scenario", "greedy"], "greedy"),
        (["--output", "."], "--output"),
    ],
)
def test_simulate_economics_refuses_bad_options(simulate: Callable[..., Any], arguments: list[str], about: str) -> None:
    result = simulate(*arguments)
    assert result.exit_code == 2
    assert about in result.output


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cohort_size": 3}, "cohort_size"),
        ({"seats": 41}, "seats"),
        ({"min_reveals": 10}, "min_reveals"),
        ({"decoy_rate": 1.5}, "decoy_rate"),
    ],
)
def test_rules_refuse_what_does_not_fit(change: dict[str, Any], field: str) -> None:
    with raises_fault(LabError, "RulesInvalid") as caught:
        replace(DEMO, **change)
    assert caught.value.values["field"] == field


def test_bank_refuses_a_cohort_size_that_was_not_measured(bank: Bank) -> None:
    with raises_fault(LabError, "RulesInvalid", match=r"cohort_size 5: was not measured; measured are \[1, 2, 4\]"):
        play(world := draw(replace(DEMO, cohort_size=5), bank, 5, seed=0), cast(world, Vote.HONEST))


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from consilium_cli.main import app;"
        "heavy = {'numpy', 'torch', 'matplotlib', 'web3', 'pandas'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
