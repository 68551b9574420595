"""Arenas: the economics of ranks and of several accounts, and the demo's options and task."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from consilium_chain.ledger.structs import Role
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle
from consilium_chain.tasks.proposal import task_params
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.options import Attack, DataSet, DemoOptions, check, chosen_data
from consilium_lab.demo.task_file import TaskSettings, task_spec, task_toml
from consilium_lab.economics.arena import first_rank_within, shares, sybil_gain
from hypothesis import given
from hypothesis import strategies as st

DECAY = Fraction(85, 100)
POOL = 10**24
DECAYS = st.integers(5_000, 10_000)


def played(medians: list[int], decay_bps: int) -> Settlement:
    """A round in which one voter gives these scores, and hospitals share the whole pool."""
    count = len(medians)
    every = (1 << count) - 1
    terms = Terms(
        pool=POOL, rounds=1, max_hospitals=count, hospital_bond=1, voter_bond=1, aggregator_bond=1, digests=False,
        decoys=False, min_reveals=1, accept_floor=-20_000, harmful_below=-40_000, tolerance_abs=0, tolerance_bps=0,
        decoy_margin=0, hospital_share_bps=10_000, voter_share_bps=0, aggregator_share_bps=0,
        rank_decay_bps=decay_bps, rank_floor=3, harmful_slash_bps=0, withheld_slash_bps=0, not_revealed_slash_bps=0,
        failed_decoy_slash_bps=0, not_published_slash_bps=0,
    )  # fmt: skip
    record = RoundRecord(
        pool_left=POOL, weights=(1,) * count, hospital_bonds=(1,) * count, voter_bonds=(1,), aggregator_bond=1,
        cohorts=tuple(1 << k for k in range(count)), viable=every, committed=every, survivors=every, flipped=None,
        seated=1, scores=(tuple(medians),),
    )  # fmt: skip
    return settle(terms, record)


def test_three_shares_are_those_of_the_formula() -> None:
    assert [round(float(share), 3) for share in shares(3, DECAY)] == [0.389, 0.330, 0.281]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 10), DECAYS)
def test_sybil_gain_is_what_the_settlement_pays(trainers: int, rank: int, accounts: int, decay_bps: int) -> None:
    """One trainer's models differ by a millionth."""
    rank = min(rank, trainers)
    others = [1_000_000 - 1_000 * place for place in range(trainers) if place != rank - 1]
    own = 1_000_000 - 1_000 * (rank - 1)

    def earns(models: int) -> int:
        settled = played([own - extra for extra in range(models)] + others, decay_bps)
        return sum(settled.account(Role.HOSPITAL, index).reward for index in range(models))

    gained = POOL * sybil_gain(trainers, rank, accounts, Fraction(decay_bps, 10_000))
    assert abs(earns(accounts) - earns(1) - gained) <= accounts + 1


@given(st.integers(1, 40), st.integers(2, 10), DECAYS)
def test_a_further_account_always_gains_and_gains_less_at_worse_ranks(trainers: int, accounts: int, bps: int) -> None:
    gains = [sybil_gain(trainers, rank, accounts, Fraction(bps, 10_000)) for rank in range(1, trainers + 1)]
    assert gains == sorted(gains, reverse=True)
    assert trainers == 1 or gains[-1] > 0


def test_the_boundary_is_the_one_that_docs_state() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs" / "arena.md").read_text(encoding="utf-8").split())
    best, worst = (round(float(sybil_gain(8, rank, 2, DECAY)), 3) for rank in (1, 8))
    assert (best, worst) == (0.155, 0.050)
    assert f"{best:.3f} of the pay at rank 1 and {worst:.3f} at rank 8" in text
    assert first_rank_within(Fraction(2, 100), 63, 2, DECAY) == 13
    assert "from rank 13 on" in text


def test_a_copy_of_the_base_is_unpaid_with_and_without_noise() -> None:
    settled = played([0, -3, 5, 2], 8_500)
    assert [settled.account(Role.HOSPITAL, index).reward for index in range(4)] == [0, 0, POOL, 0]


def test_demo_takes_the_x_rays_or_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert chosen_data(None, None, None) == (DataSet.WDBC, None)
    assert chosen_data(DataSet.WDBC, None, 8) == (DataSet.WDBC, None)
    with pytest.raises(ValueError, match="consilium data fetch pneumonia --to shared/data/pneumoniamnist"):
        chosen_data(None, None, 8)
    folder = tmp_path / "shared" / "data" / "pneumoniamnist"
    folder.mkdir(parents=True)
    (folder / "pneumoniamnist_rebuilt.npz").touch()
    assert chosen_data(None, None, 8) == (DataSet.PNEUMONIA, Path("../shared/data/pneumoniamnist"))


def test_demo_arena_fits_the_contract() -> None:
    data = deal_wdbc(5, 3, 0)
    spec = task_spec(data, TaskSettings(masked=False, arena=True))
    params = task_params(spec, bytes(32), "0x" + "11" * 20)
    assert (params.cohorts, params.min_cohort_size, params.max_hospitals, params.max_weight) == (5, 1, 5, 1)
    assert (params.rank_decay_bps, params.rank_floor, params.masked) == (8_500, 10_000, False)
    assert "rank_decay_bps = 8500" in task_toml(data, TaskSettings(masked=False, arena=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arena": 4, "hospitals": 4}, "leave out --hospitals"),
        ({"arena": 4, "cohorts": 2}, "leave out --hospitals"),
        ({"arena": 4, "attacks": (Attack.STRANGER,)}, "leave out --arena"),
        ({"arena": 4, "attacks": (Attack.FALSE_UPLOAD,)}, "needs masked uploads"),
        ({"attacks": (Attack.COPY,)}, "add --arena"),
    ],
)
def test_options_that_rule_an_arena_out_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(DemoOptions(**options))  # type: ignore[arg-type]
    check(DemoOptions(arena=4, attacks=(Attack.COPY, Attack.REPEAT)))
