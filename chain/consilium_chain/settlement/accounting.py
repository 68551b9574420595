"""All tokens by the contracts' own accounts: the check that no unit is lost or paid twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role


@dataclass(frozen=True)
class Books:
    """Amounts at one block. `rounding`: Staking's surplus over its debts, less than two units for each node and
    delegation, which is paid out later. `sales`: in ModelShares, as buyers' deposits and holders' unclaimed pay.
    """

    minted: int
    wallets: int
    staked: int
    rewards: int
    rounding: int
    pools: int
    refunds: int
    sales: int
    burnt: int

    @property
    def held(self) -> int:
        return int(sum(astuple(self))) - self.minted

    @property
    def difference(self) -> int:
        """Missing tokens, or surplus ones if negative. Always 0."""
        return self.minted - self.held


def take_stock(ledger: Ledger, minted: int, accounts: Iterable[str]) -> Books:
    """The books as of the latest block. `accounts`: all that may have tokens in their wallets."""
    block = _block_to_read(ledger)
    positions = set()
    burnt = 0
    for event in ledger.logs.of_staking("NodeRegistered", block):
        positions.add((event.values["node"], event.values["node"], Role(event.values["role"])))
    for event in ledger.logs.of_staking("Delegated", block):
        positions.add((event.values["delegator"], event.values["node"], Role(event.values["role"])))
    for event in ledger.logs.of_staking("StakeSlashed", block):
        burnt += event.values["amount"] + event.values["forfeited"]
    tasks = range(1, ledger.tasks.count(block) + 1)
    burnt += sum(event.values["burnt"] for task in tasks for event in ledger.logs.of_task("TaskEnded", task))
    nodes = {(node, role) for _, node, role in positions}
    rewards = sum(ledger.staking.unvested(node, role, block) for node, role in nodes)
    rewards += sum(ledger.staking.claimable(delegator, node, role, block) for delegator, node, role in positions)
    staked = ledger.staking.total(block)
    beyond = ledger.token.balance(ledger.deployment.staking, block) - staked - rewards
    return Books(
        minted=minted,
        wallets=sum(ledger.token.balance(account, block) for account in set(accounts)),
        staked=staked,
        rewards=rewards,
        rounding=beyond if 0 <= beyond <= 2 * (len(nodes) + len(positions)) else 0,
        pools=sum(ledger.tasks.state(task, block).pool_left for task in tasks),
        refunds=ledger.tasks.total_refundable(block),
        sales=ledger.token.balance(ledger.deployment.model_shares, block),
        burnt=burnt,
    )


def worths(ledger: Ledger, accounts: Iterable[str]) -> dict[str, int]:
    """All tokens of each account at one block: wallet, own stake in every role, vested and unvested rewards, and
    refunds. Its delegations to others do not count; a node's unvested rewards count whole, with its delegators' share.
    """
    block = _block_to_read(ledger)
    return {account: _worth(ledger, account, block) for account in accounts}


def _worth(ledger: Ledger, account: str, block: int) -> int:
    total = ledger.token.balance(account, block) + ledger.tasks.refundable(account, block)
    for role in Role:
        stake = ledger.staking.stake_of(account, role, block)
        total += stake.active + stake.unbonding
        total += ledger.staking.claimable(account, account, role, block) + ledger.staking.unvested(account, role, block)
    return total


def _block_to_read(ledger: Ledger) -> int:
    """The latest block's number, after it has a successor: anvil (1.7.1) answers some reads of the latest block with
    the time of the next one, so rewards that vest between the two would count twice or not at all.
    """
    block = ledger.connection.blocks.number()
    ledger.connection.blocks.wait_after(block)
    return block
