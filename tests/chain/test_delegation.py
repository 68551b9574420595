"""Delegation on a real chain: who backs a node shares in its rewards and its slashes, and no token is lost."""

from __future__ import annotations

import pytest
from chain_driver import BOND, LocalChain, TaskDriver, refused
from consilium_chain.deploying.address_book import LOCAL_UNBONDING, LOCAL_VESTING, SUPPLY
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.settlement.accounting import take_stock, worths
from consilium_chain.tasks.money_spec import TOKEN

BACKING = 3 * BOND
INDEX_BITS = 48  # of a fraction of a unit, by share; what is finer does not divide, and is paid later


def delegate(delegator: Ledger, node: Ledger, role: Role, amount: int) -> None:
    staking = delegator.contracts.staking.contract.functions
    delegator.connection.transactions.send(
        delegator.contracts.token.contract.functions.approve(delegator.deployment.staking, amount)
    )
    delegator.connection.transactions.send(staking.delegate(node.address, role, amount))


def shares_of(delegator: Ledger, node: Ledger, role: Role) -> tuple[int, int]:
    """A delegator's shares and what they are worth."""
    shares, amount, _ = delegator.connection.call(
        delegator.contracts.staking.contract.functions.positionOf(delegator.address, node.address, role)
    )
    return int(shares), int(amount)


def test_delegator_shares_rewards_and_slashes_pro_rata(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, hospitals=2, voters=2, terms={"rounds": 1, "cohorts": 2, "pool": 1_000 * TOKEN})
    backer = local_chain.funded()
    good, bad = task.nodes
    local_chain.pass_time(LOCAL_VESTING)  # what the nodes earned before is theirs
    for node in (good, bad):
        delegate(backer, node, Role.HOSPITAL, BACKING)
    stakes = {node.address: node.staking.stake_of(node.address, Role.HOSPITAL).active for node in (good, bad)}
    task.join(rows=[10, 10])
    task.first_round()
    task.form().commit_all().publish()
    of_good = next(c for c in range(2) if task.cohort(c) == [0])
    scores = [20_000, -90_000] if of_good == 0 else [-90_000, 20_000]
    task.draw().judge([scores, scores])

    paid = {event["account"]: event["amount"] for event in task.events("Rewarded")}
    (slashed,) = task.events("Slashed")
    assert slashed["account"] == bad.address
    local_chain.pass_time(LOCAL_VESTING)
    part = paid[good.address] * BACKING // stakes[good.address]
    claimable = backer.staking.claimable(backer.address, good.address, Role.HOSPITAL)
    shares, _ = shares_of(backer, good, Role.HOSPITAL)  # the more, the more a slash took from the node before
    # What does not divide now is missing, and what did not divide of the node's rewards before is there.
    assert abs(claimable - part) <= 4 * (shares >> INDEX_BITS)
    _, left = shares_of(backer, bad, Role.HOSPITAL)
    expected = BACKING * (stakes[bad.address] - slashed["amount"]) // stakes[bad.address]
    # A unit less for each division: at delegation where a share is worth less than one, and at the slash.
    assert expected - 2 <= left <= expected
    assert local_chain.unaccounted() == 0

    wallet = backer.token.balance(backer.address)
    backer.connection.transactions.send(backer.contracts.staking.contract.functions.claim(good.address, Role.HOSPITAL))
    assert backer.token.balance(backer.address) == wallet + claimable
    assert local_chain.unaccounted() == 0


def test_delegator_leaves_with_its_stake_after_unbonding(local_chain: LocalChain) -> None:
    (node,) = local_chain.staked(Role.VOTER, 1)
    backer = local_chain.funded()
    before = backer.token.balance(backer.address)
    delegate(backer, node, Role.VOTER, BACKING)
    assert worths(backer, [backer.address]) == {backer.address: before - BACKING}  # delegations to others do not count
    shares, amount = shares_of(backer, node, Role.VOTER)
    assert amount == BACKING
    staking = backer.contracts.staking.contract.functions
    with refused("SharesInsufficient", shares=shares, wanted=shares + 1):
        backer.connection.transactions.send(staking.startUnbonding(node.address, Role.VOTER, shares + 1))
    backer.connection.transactions.send(staking.startUnbonding(node.address, Role.VOTER, shares))
    with refused("StillUnbonding"):
        backer.connection.transactions.send(staking.withdraw(0))
    local_chain.pass_time(LOCAL_UNBONDING)
    backer.connection.transactions.send(staking.withdraw(0))
    assert backer.token.balance(backer.address) == before
    assert local_chain.unaccounted() == 0


def test_delegate_refuses_who_is_no_node(local_chain: LocalChain) -> None:
    backer, nobody = local_chain.funded(), local_chain.funded()
    with refused("NodeUnknown", node=nobody.address, role=Role.HOSPITAL):
        delegate(backer, nobody, Role.HOSPITAL, 1)


@pytest.mark.parametrize("role", list(Role))
def test_stake_registers_once_and_tops_up(local_chain: LocalChain, role: Role) -> None:
    node = local_chain.funded()
    for wanted in (0, BOND, BOND, 2 * BOND):
        node.staking.stake(role, wanted)
        assert node.staking.stake_of(node.address, role).free == wanted
    assert local_chain.unaccounted() == 0


def test_take_stock_tells_what_is_missing() -> None:
    with LocalChain() as chain:  # its own: what is given away here would be missing in every other test
        stranger, node = chain.funded(), chain.funded()
        held = stranger.token.balance(stranger.address)
        others = [account for account in chain.accounts if account != stranger.address]
        assert take_stock(chain.treasury, SUPPLY, others).difference == held
        node.staking.stake(Role.VOTER, BOND)
        # Tokens sent by plain transfer are nobody's: they show as a difference, and are not taken for rounding.
        stranger.connection.transactions.send(
            stranger.contracts.token.contract.functions.transfer(stranger.deployment.staking, 10**6)
        )
        assert chain.unaccounted() == 10**6
