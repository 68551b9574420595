"""A pool that its operator adds to: what it does to a task, to whom it is refused, and how far it may grow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chain_driver import BOND, SHARED_WINDOWS, LocalChain, TaskDriver, refused, task_params
from consilium_chain.ledger.structs import Phase, TaskParams
from consilium_chain.settlement.payouts import portion, round_part
from consilium_chain.tasks.money_spec import SLASH_PER_FEE, TOKEN
from consilium_chain.tasks.proposal import RoundPay, keeps, room_in_pool, round_pay
from consilium_chain.transport_keys import TransportKey
from hypothesis import given
from hypothesis import strategies as st

POOL = 10_000_001
TERMS = {"pool": POOL, "rounds": 2} | SHARED_WINDOWS


def outweighs(terms: TaskParams, pool: int) -> bool:
    """The contract's rule (`TaskRules.sol`)."""
    fee = portion(round_part(pool, terms.rounds, pool), terms.aggregator_share_bps)
    return portion(terms.aggregator_bond, terms.not_published_slash_bps) >= SLASH_PER_FEE * fee


def test_what_is_added_is_paid_out_by_all_rounds_and_the_rest_comes_home(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms=TERMS)
    operator, held = task.operator, task.operator.token.balance(task.operator.address)
    task.aggregator.aggregator.join(task.task)
    operator.operator.fund(task.task, 600)
    task.nodes[0].hospital.join(task.task, 10, TransportKey.generate())
    operator.operator.fund(task.task, 6)
    assert operator.token.balance(operator.address) == held - 606
    assert operator.tasks.params(task.task) == replace(task.params, pool=POOL + 606)
    assert operator.tasks.state(task.task).pool_left == POOL + 606
    assert [(e["operator"], e["amount"], e["pool"]) for e in task.events("TaskFunded")] == [
        (operator.address, 600, POOL + 600), (operator.address, 6, POOL + 606),
    ]  # fmt: skip
    assert local_chain.unaccounted() == 0

    task.nodes[1].hospital.join(task.task, 10, TransportKey.generate())
    task.judges[0].voter.join(task.task)
    task.first_round().form().commit_all().publish()
    task.draw().judge([[50_000]])
    whole = sum(event["amount"] for event in task.events("Rewarded"))
    assert (POOL + 606) // 2 - 4 <= whole <= (POOL + 606) // 2  # but for what divisions leave
    task.form().pass_deadline()
    task.tick()  # nobody committed: the second round pays nobody
    (ended,) = task.events("TaskEnded")
    unplayed = POOL + 606 - (POOL + 606) // 2
    assert (task.phase, ended["refund"]) == (Phase.ENDED, unplayed)
    assert ended["burnt"] == (POOL + 606) // 2 - whole
    operator.operator.claim_refund()
    assert operator.tasks.refundable(operator.address) == 0
    assert local_chain.unaccounted() == 0


def test_all_comes_home_from_a_task_that_nobody_joined(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms=TERMS)
    operator = task.operator
    operator.operator.claim_refund()  # of other tests' tasks
    held = operator.token.balance(operator.address)
    operator.operator.fund(task.task, 9)
    operator.operator.stop(task.task)
    assert operator.tasks.refundable(operator.address) == POOL + 9
    operator.operator.claim_refund()
    assert operator.token.balance(operator.address) == held + POOL
    assert local_chain.unaccounted() == 0


def test_to_whom_adding_is_refused(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms=TERMS)
    stranger, before = local_chain.funded(), local_chain.treasury.tasks.params(task.task)
    for refuse in (stranger.operator.try_fund, stranger.operator.fund):
        with refused("NotOperator", caller=stranger.address):
            refuse(task.task, 1)
    with refused("AmountIsZero"):
        task.operator.operator.try_fund(task.task, 0)
    with refused("TaskUnknown", taskId=999_999):
        task.operator.operator.try_fund(999_999, 1)
    task.operator.operator.try_fund(task.task, 1)  # what is not allowed to be taken yet is no fault
    assert local_chain.treasury.tasks.params(task.task) == before
    task.join()
    for refuse in (task.operator.operator.try_fund, task.operator.operator.fund):
        with refused("WrongPhase", actual=Phase.COMMITTING, wanted=Phase.JOINING):
            refuse(task.task, 1)
    assert local_chain.unaccounted() == 0


@pytest.mark.parametrize("rounds", [1, 7])
def test_the_bond_allows_what_it_says_and_no_unit_more(local_chain: LocalChain, rounds: int) -> None:
    task = TaskDriver(local_chain, terms=TERMS | {"rounds": rounds, "aggregator_bond": BOND + 12_345})
    room = room_in_pool(task.params)
    assert room is not None
    with refused("ParamsInvalid", field="aggregatorBond"):
        task.operator.operator.try_fund(task.task, room + 1)
    task.operator.operator.fund(task.task, room)
    assert room_in_pool(task.operator.tasks.params(task.task)) == 0
    with refused("ParamsInvalid", field="aggregatorBond"):
        task.operator.operator.try_fund(task.task, 1)


@given(
    pool=st.integers(0, 10**9),
    rounds=st.integers(1, 500),
    bond=st.integers(1, 10**9),
    slash=st.integers(0, 5_000),
    share=st.integers(0, 10_000),
)
def test_room_ends_where_the_contracts_rule_does(pool: int, rounds: int, bond: int, slash: int, share: int) -> None:
    terms = task_params(
        "0x", pool=pool, rounds=rounds, aggregator_bond=bond, not_published_slash_bps=slash, aggregator_share_bps=share
    )
    if not outweighs(terms, pool):
        return  # is never proposed
    room = room_in_pool(terms)
    if room is None:
        assert outweighs(terms, 2**128 - 1)
    else:
        assert room >= 0
        assert outweighs(terms, pool + room)
        assert not outweighs(terms, pool + room + 1)


def test_a_round_pays_an_even_part_of_the_pool_by_shares() -> None:
    terms = task_params("0x", pool=1_000 * TOKEN, rounds=4)
    assert round_pay(terms, terms.pool) == RoundPay(175 * TOKEN, 50 * TOKEN, 25 * TOKEN)
    assert round_pay(terms, 2 * terms.pool) == RoundPay(350 * TOKEN, 100 * TOKEN, 50 * TOKEN)


def test_a_files_terms_are_kept_by_a_larger_pool_and_by_nothing_else() -> None:
    terms = task_params("0x")
    assert keeps(terms, terms)
    assert keeps(replace(terms, pool=terms.pool + 1), terms)
    assert not keeps(replace(terms, pool=terms.pool - 1), terms)
    assert not keeps(replace(terms, pool=terms.pool + 1, hospital_bond=terms.hospital_bond + 1), terms)
