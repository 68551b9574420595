"""Ensembles on a real chain: formed of tasks with parts, and sold as each of their members."""

from __future__ import annotations

import pytest
from chain_driver import LocalChain, refused
from consilium_chain.ledger.ensembles import ENSEMBLES, Ensemble, Member, is_ensemble
from consilium_chain.settlement.payouts import round_gain
from consilium_chain.tasks.money_spec import TOKEN
from ensemble_driver import minted


@pytest.fixture(scope="module")
def tasks(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, int]:
    folder = tmp_path_factory.mktemp("members")
    return minted(local_chain, folder / "a", 20, 30_000).task, minted(local_chain, folder / "b", 7, 10_000).task


@pytest.fixture(scope="module")
def ensemble(local_chain: LocalChain, tasks: tuple[int, int]) -> Ensemble:
    ensembles = local_chain.treasury.ensembles
    found = ensembles.of(ensembles.form(tuple(reversed(tasks))))
    assert found is not None
    return found


def test_an_ensemble_has_its_members_weights(
    local_chain: LocalChain, ensemble: Ensemble, tasks: tuple[int, int]
) -> None:
    ensembles = local_chain.treasury.ensembles
    assert ensemble.members == (Member(tasks[0], 30_000), Member(tasks[1], 10_000))
    assert ensemble.tasks == tasks
    assert ensemble.weights == (0.75, 0.25)
    assert [ensembles.gain(task) for task in tasks] == [30_000, 10_000]
    for task in tasks:
        state = local_chain.treasury.tasks.round_state(task, 1)
        assert ensembles.gain(task) == round_gain(state.medians, state.accepted_cohorts)
    assert ensemble in ensembles.all()
    assert [is_ensemble(number) for number in (ensemble.number, tasks[0], ENSEMBLES)] == [True, False, False]
    assert ensembles.of(tasks[0]) is ensembles.of(2**200) is None
    assert not local_chain.treasury.shares.terms(ensemble.number)


def test_what_is_no_ensemble_is_refused(local_chain: LocalChain, ensemble: Ensemble, tasks: tuple[int, int]) -> None:
    ledger, first = local_chain.treasury, tasks[0]
    with refused("EnsembleKnown", id=ensemble.number):
        ledger.ensembles.form(tasks)
    with refused("EnsembleInvalid"):
        ledger.ensembles.form([first])
    with refused("EnsembleInvalid"):
        ledger.ensembles.form([first, first])
    with refused("NotMinted", taskId=ensemble.number):
        ledger.ensembles.form([first, ensemble.number])
    with refused("NotMinted", taskId=ensemble.number):
        ledger.shares.pay(ensemble.number, TOKEN)
    with refused("TermsUnknown"):
        ledger.shares.mint(ensemble.number, 1)
    with refused("NotMinted"):
        ledger.channels.offer(ensemble.number + 2**20, 1, "https://example.org")


def test_a_sale_is_one_of_each_member(local_chain: LocalChain, ensemble: Ensemble, tasks: tuple[int, int]) -> None:
    """By vouchers and by a till: three quarters are the first member's, by its own terms."""
    ledger, number = local_chain.treasury, ensemble.number
    server, buyer = local_chain.funded(), local_chain.funded(100 * TOKEN)
    before = [ledger.shares.paid(task) for task in tasks]
    server.channels.offer(number, TOKEN, "https://example.org")
    assert [offer.server for offer in ledger.channels.offers(number)] == [server.address]
    buyer.channels.deposit(number, server.address, 50 * TOKEN)
    expires = ledger.connection.blocks.now() + 10_000
    voucher = buyer.channels.voucher(number, server.address, 40 * TOKEN, expires)
    wanted = 30 * TOKEN * 20 // 100 + 10 * TOKEN * 7 // 100
    assert server.channels.redeem([voucher]) == (40 * TOKEN, wanted)
    paid = [ledger.shares.paid(task) - had for task, had in zip(tasks, before, strict=True)]
    assert paid == [24 * TOKEN, 930 * TOKEN // 100]
    assert sum(paid) + wanted == 40 * TOKEN
    with refused("VoucherSpent"):
        server.channels.redeem([voucher])
    buyer.token.transfer(ledger.shares.till_of(number, server.address), 3)  # 2 and 1 units
    assert ledger.shares.split(number, server.address) == (3, 0)
    assert ledger.shares.paid(tasks[0]) == before[0] + paid[0] + 2
    assert ledger.shares.paid(number) == 0


@pytest.mark.parametrize(
    ("medians", "accepted", "gain"),
    [([5, -2, 8], 0b111, 3), ([5, -2, 8], 0b010, 0), ([5, -9, 1], 0b111, 0), ([7, 2], 0b01, 7), ([7], 0, 0)],
)
def test_a_round_s_gain_is_the_mean_of_accepted_cohorts(medians: list[int], accepted: int, gain: int) -> None:
    assert round_gain(medians, accepted) == gain
