"""Sales in the index while the chain is reorganised: offers, deposits, redemptions, payments and parts that move."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.errors import Refused
from consilium_chain.ledger.channels import Voucher
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.shares import WHOLE
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.database.engine import reading
from consilium_server.database.sale_tables import SaleRow
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from ensemble_driver import minted
from index_driver import changeable_chain, mine_with_transactions
from sqlalchemy import Engine, func, select

FOREVER = 2**40


class Sales:
    """A minted task, and accounts that sell, buy, pay, close and hand parts on. Refused acts change nothing."""

    def __init__(self, chain: LocalChain, folder: Path, seed: int) -> None:
        self.chain, self.source = chain, random.Random(seed)
        self.task = minted(chain, folder, server=20, score=40_000).task
        self.server, *self.buyers = [chain.funded() for _ in range(4)]
        self.operator = chain.treasury

    def steps(self, count: int) -> None:
        acts = [self._offer, self._deposit, self._deposit, self._redeem, self._redeem, self._pay, self._till,
                self._close, self._withdraw, self._claim, self._hand_on]  # fmt: skip
        for _ in range(count):
            with suppress(Refused):
                self.source.choice(acts)()

    @property
    def _buyer(self) -> Ledger:
        return self.source.choice(self.buyers)

    def _offer(self) -> None:
        self.server.channels.offer(self.task, self.source.randrange(TOKEN), "https://predict.example.org")

    def _deposit(self) -> None:
        self._buyer.channels.deposit(self.task, self.server.address, self.source.randint(1, TOKEN))

    def _redeem(self) -> None:
        vouchers = [self._voucher(buyer) for buyer in self.source.sample(self.buyers, 2)]
        self.server.channels.redeem(vouchers)

    def _voucher(self, buyer: Ledger) -> Voucher:
        channel = buyer.channels.of(self.task, self.server.address, buyer.address)
        owed = self.source.randint(channel.redeemed, max(channel.redeemed, channel.deposited))
        return buyer.channels.voucher(self.task, self.server.address, owed, FOREVER)

    def _pay(self) -> None:
        self.operator.shares.pay(self.task, self.source.randint(1, TOKEN))

    def _till(self) -> None:
        self.operator.token.transfer(self.operator.shares.till_of(self.task, self.server.address), TOKEN)
        self.server.shares.split(self.task, self.server.address)

    def _close(self) -> None:
        self._buyer.channels.close(self.task, self.server.address)

    def _withdraw(self) -> None:
        buyer = self._buyer
        buyer.channels.close(self.task, self.server.address)
        self.chain.pass_time(90_000)
        buyer.channels.withdraw(self.task, self.server.address)

    def _claim(self) -> None:
        self.operator.shares.claim(self.task)

    def _hand_on(self) -> None:
        amount = self.source.randrange(WHOLE >> 8)
        self._send("safeTransferFrom", self.operator.address, self._buyer.address, self.task, amount, b"")

    def _send(self, call: str, *arguments: Any) -> None:
        self.operator.contracts.model_shares.send(call, *arguments)


@pytest.mark.parametrize("database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True)
def test_sales_of_a_branch_that_is_gone_are_gone(database: Engine, tmp_path: Path) -> None:
    with changeable_chain(by_hand=False) as chain:
        sales = Sales(chain, tmp_path, seed=3)
        mine_with_transactions(chain)
        ledger = Ledger(chain.treasury.connection, chain.deployment)
        follower = Indexer(ledger, database)
        sales.steps(20)
        follower.catch_up()
        for depth in (3, 12):
            before = counted(database)
            sales.steps(12)
            follower.catch_up()
            assert sum(counted(database).values()) > sum(before.values())
            chain.await_pool()
            chain.rpc("anvil_reorg", depth, [])
            sales.steps(4)
            follower.catch_up()
            assert reindex(ledger, database, None, tmp_path, replace=False)
        assert counted(database).keys() == {"paid", "split", "redeemed", "deposited", "withdrawn", "claimed"}


def counted(database: Engine) -> dict[str, int]:
    """The number of rows of each kind."""
    query = select(SaleRow.kind, func.count()).group_by(SaleRow.kind)
    with reading(database) as connection:
        return {kind: count for kind, count in connection.execute(query)}
