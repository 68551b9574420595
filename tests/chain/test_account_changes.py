"""An account that is to be another: its stake moves in time, and what a task holds of it only with the task's end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chain_driver import BOND, LocalChain, TaskDriver, refused
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.errors import Refused
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.transport_keys import TransportKey

pytestmark = pytest.mark.deep
STAKED = 3 * BOND


def staked(chain: LocalChain, role: Role, tokens: int = STAKED) -> Ledger:
    """An account that no other test has."""
    ledger = chain.funded(tokens)
    ledger.staking.stake(role, tokens)
    if role is Role.VOTER:
        ledger.voter.register_key(voter_key(ledger.connection.signer))
    return ledger


def task_with(chain: LocalChain, role: Role, account: Ledger) -> TaskDriver:
    """Of one round, in which the account has the role."""
    driver = TaskDriver(chain, hospitals=1, terms={"rounds": 1})
    match role:
        case Role.HOSPITAL:
            driver.nodes = [account]
        case Role.VOTER:
            driver.judges = [account]
        case Role.AGGREGATOR:
            driver.aggregator = account
            driver.params = replace(driver.params, aggregator=account.address)
            driver.task = driver.operator.operator.propose(driver.params)
    return driver


def join(ledger: Ledger, role: Role, task: int) -> None:
    match role:
        case Role.HOSPITAL:
            ledger.hospital.join(task, 10, TransportKey.generate())
        case Role.VOTER:
            ledger.voter.join(task)
        case Role.AGGREGATOR:
            ledger.aggregator.join(task)


@pytest.mark.parametrize("role", list(Role))
def test_stake_moves_to_another_account_and_a_bond_after_its_task(local_chain: LocalChain, role: Role) -> None:
    old = staked(local_chain, role)
    driver = task_with(local_chain, role, old).join()
    other = driver.nodes[0] if role is not Role.HOSPITAL else driver.judges[0]
    assert other.address != old.address

    old.staking.unstake(role, 2 * BOND)  # what is free; what remains backs the bond
    old.staking.unstake(role, BOND)
    with refused("StillUnbonding"):
        old.staking.withdraw([0])
    local_chain.pass_time(LOCAL_UNBONDING)
    old.staking.withdraw([0])
    with refused("StillBacking", node=old.address, locked=BOND):
        old.staking.withdraw([1])
    moved = old.token.balance(old.address)
    assert moved == 2 * BOND
    new = local_chain.funded(0)
    old.token.transfer(new.address, moved)
    new.staking.stake(role, moved)
    if role is Role.VOTER:
        new.voter.register_key(voter_key(new.connection.signer))
    with pytest.raises(Refused):  # nobody takes another's place in a task
        join(new, role, driver.task)
    following = task_with(local_chain, role, new)
    join(new, role, following.task)
    assert new.staking.stake_of(new.address, role).locked == BOND

    # The old account goes on in its task: the bond answers for it to the end, and rewards are its own.
    driver.first_round().form().commit_all().publish()
    driver.draw().judge([[500]])
    assert driver.phase is Phase.ENDED
    old.staking.release_bond(driver.task, old.address)
    old.staking.withdraw([1])
    assert old.token.balance(old.address) == BOND
    assert old.staking.stake_of(old.address, role).active == 0
    assert local_chain.unaccounted() == 0
