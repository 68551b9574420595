"""Random traffic of stake on a local chain, for tests of whoever reads it: any account acts, and nobody signs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc import local_node
from consilium_chain.tasks.money_spec import TOKEN

NODES, DELEGATORS = 3, 4
GAS = hex(1_000_000)
MANY_TOKENS = 1_000 * TOKEN


@contextmanager
def changeable_chain(by_hand: bool = True) -> Iterator[LocalChain]:
    """A chain of one's own, to take back as often as one likes. anvil (1.7.1) needs the state before what it takes
    back, of which it keeps so many, those of blocks that were taken back counted; and a reorganisation that it then
    refuses leaves it with blocks and a state that do not fit each other. Blocks come with transactions alone, so that
    none is mined while others are taken back; or from the time on that the test chooses, if not `by_hand`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_node, "KEPT_STATES", 1_500)
        chain = LocalChain()
    with chain:
        if by_hand:
            mine_with_transactions(chain)
        yield chain


def mine_with_transactions(chain: LocalChain) -> None:
    """From now on a block comes with each transaction, and none by itself."""
    chain.rpc("evm_setIntervalMining", 0)
    chain.rpc("evm_setAutomine", True)


class Traffic:
    """Nodes in every role, and delegators; `steps` makes them act. The task contract slashes and rewards as it likes.

    What the contract refuses changes nothing, and is not looked after. No block is under way between two calls: anvil
    answers a transaction before it mines it, so that by itself it would mine while a test reads.
    """

    def __init__(self, chain: LocalChain, seed: int) -> None:
        self.chain, self.source = chain, random.Random(seed)
        self._staking, self._token = (
            chain.treasury.contracts.staking.contract.functions,
            chain.treasury.contracts.token.contract.functions,
        )
        chain.rpc("anvil_autoImpersonateAccount", True)
        self.tasks = chain.deployment.tasks
        self.nodes = [(self._account(), role) for role in Role for _ in range(NODES)]
        self.actors = [self._account() for _ in range(DELEGATORS)] + [node for node, _ in self.nodes]
        chain.rpc("anvil_setBalance", self.tasks, hex(10**20))
        for account in [*self.actors, self.tasks]:
            chain.treasury.token.transfer(account, MANY_TOKENS)
        with self._mined_by_hand() as mine:
            for account in [*self.actors, self.tasks]:
                self.send(account, self._token.approve(chain.deployment.staking, 2**90))
            mine()
            for node, role in self.nodes:
                self.send(node, self._staking.register(role, self.source.randrange(10_001), TOKEN))

    def _account(self) -> str:
        account = self.chain.ledger(self.source.randbytes(32)).address
        self.chain.rpc("anvil_setBalance", account, hex(10**20))
        return account

    @contextmanager
    def _mined_by_hand(self) -> Iterator[Callable[[], None]]:
        """Within the block, transactions wait for what it yields, which mines them all; the end of it does, too."""

        def mine() -> None:
            self.chain.rpc("evm_mine")

        self.chain.rpc("evm_setAutomine", False)
        try:
            yield mine
            mine()
        finally:
            self.chain.rpc("evm_setAutomine", True)

    def send(self, sender: str, function: Any) -> None:
        data = function._encode_transaction_data()
        self.chain.rpc("eth_sendTransaction", {"from": sender, "to": function.address, "data": data, "gas": GAS})

    def reorganise(self, depth: int) -> None:
        """Empty blocks take the place of the last `depth`, once none is under way: anvil would lose blocks over it."""
        self.chain.await_pool()
        self.chain.rpc("anvil_reorg", depth, [])

    def steps(self, count: int, has_addresses: bool = True) -> Traffic:
        """`has_addresses`: with withdrawal addresses, which earlier contracts had not."""
        acts: list[Callable[[], None]] = [
            self._delegate, self._delegate, self._unbond, self._withdraw, self._redelegate, self._lock, self._lock,
            self._unlock, self._slash, self._reward, self._reward, self._claim, self._commission, self._wait,
            self._ruin, *([self._address] if has_addresses else []),
        ]  # fmt: skip
        with self._mined_by_hand() as mine:
            for _ in range(count):
                self.source.choice(acts)()
                if self.source.random() < 0.7:  # some blocks hold what several did
                    mine()
        return self

    def touch(self) -> Traffic:
        """Somebody delegates to every node, so that what has vested is shared out."""
        with self._mined_by_hand():
            for node, role in self.nodes:
                self.send(self.actors[0], self._staking.delegate(node, role, 1_000))
        return self

    @property
    def _node(self) -> tuple[str, Role]:
        return self.source.choice(self.nodes)

    @property
    def _actor(self) -> str:
        return self.source.choice(self.actors)

    def _delegate(self) -> None:
        amount = self.source.randint(1, TOKEN >> self.source.randrange(60))
        self.send(self._actor, self._staking.delegate(*self._node, amount))

    def _held(self) -> tuple[str, tuple[str, Role], int]:
        actor, node = self._actor, self._node
        if self.source.random() < 0.5:
            actor = node[0]
        shares, _, _ = self.chain.treasury.connection.call(self._staking.positionOf(actor, *node))
        return actor, node, int(shares)

    def _unbond(self) -> None:
        actor, node, shares = self._held()
        if shares:
            part = shares if self.source.random() < 0.3 else self.source.randint(1, shares)
            self.send(actor, self._staking.startUnbonding(*node, part))

    def _request(self) -> tuple[str, int]:
        actor = self._actor
        count = self.chain.treasury.connection.call(self._staking.requestCount(actor))
        return actor, self.source.randrange(count) if count else 0

    def _withdraw(self) -> None:
        actor, request = self._request()
        self.send(actor, self._staking.withdraw(request))

    def _redelegate(self) -> None:
        actor, request = self._request()
        self.send(actor, self._staking.redelegate(request, *self._node))

    def _lock(self) -> None:
        node, role = self._node
        free = self.chain.treasury.staking.stake_of(node, role).free
        self.send(self.tasks, self._staking.lock(node, role, free if self.source.random() < 0.5 else free // 2))

    def _unlock(self) -> None:
        node, role = self._node
        self.send(
            self.tasks, self._staking.unlock(node, role, self.chain.treasury.staking.stake_of(node, role).locked // 2)
        )

    def _slash(self) -> None:
        node, role = self._node
        self.send(self.tasks, self._staking.slash(node, role, self.source.choice([1, TOKEN // 3, 2**90])))

    def _ruin(self) -> None:
        """All that does not unbond is locked, and slashed: where nothing unbonds, the pool starts anew."""
        node, role = self._node
        self.send(self.tasks, self._staking.lock(node, role, self.chain.treasury.staking.stake_of(node, role).free))
        self.send(self.tasks, self._staking.slash(node, role, 2**90))

    def _reward(self) -> None:
        rewards = [(*self._node, self.source.randint(0, TOKEN)) for _ in range(2)]
        self.send(self.tasks, self._staking.reward(rewards))

    def _claim(self) -> None:
        node = self._node
        self.send(self.source.choice([self._actor, node[0]]), self._staking.claim(*node))

    def _commission(self) -> None:
        node, role = self._node
        self.send(node, self._staking.setCommission(role, self.source.randrange(10_001)))

    def _address(self) -> None:
        node, role = self._node
        payee = self.chain.treasury.withdrawal.payee(node, role)
        self.send(payee, self._staking.setWithdrawalAddress(node, role, self.source.choice(self.actors[:DELEGATORS])))

    def _wait(self) -> None:
        self.chain.pass_time(self.source.choice([1, 30, 2_000, 4_000]))
