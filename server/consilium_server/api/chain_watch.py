"""The API's own look at a chain node: its newest block, and present prices. Asked at the chain's pace."""

from __future__ import annotations

import time

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import ChainUrls
from consilium_chain.tasks.chain_terms import ChainTerms

LEAST_PAUSE = 5.0  # seconds between two questions while blocks come faster, or their time is unknown
TICK = 1.0  # seconds between two looks at the clock while blocks come slower: most of them ask nothing
TERMS_EVERY = 15.0  # seconds between two queries for the price of gas, at least


class ChainWatch:
    """`head`: latest block. `terms`: gas prices and fees. `token_symbol`, and `unbonding` in seconds, are read once.
    All are None before the first look.
    """

    def __init__(self, url: ChainUrls, deployment: Deployment) -> None:
        self._url, self._deployment = url, deployment
        self._connection: Connection | None = None
        self._terms_due = 0.0
        self.head: int | None = None
        self.terms: ChainTerms | None = None
        self.unbonding: int | None = None
        self.token_symbol: str | None = None

    def look(self) -> None:
        """Asks for a block that is due, and with a new one for the rest if that is due. Raises ChainError."""
        if self._connection is None:
            self._connection = Connection(self._url)
        before, ledger = self.head, Ledger(self._connection, self._deployment)
        self.head = self._connection.blocks.wait_after(-1 if before is None else before, 0.0)
        if self.head == before or time.monotonic() < self._terms_due:
            return
        self.terms = ledger.chain_terms()
        if self.unbonding is None:
            self.unbonding = ledger.staking.unbonding_period()
        if self.token_symbol is None:
            self.token_symbol = ledger.token.symbol()
        self._terms_due = time.monotonic() + TERMS_EVERY

    def forget(self) -> None:
        """After an error: the next look begins with a new connection."""
        self._connection, self.head, self.terms, self._terms_due = None, None, None, 0.0

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        pace = None if self._connection is None else self._connection.blocks.heartbeat.pace
        is_slow = pace is not None and pace.block_seconds is not None and pace.block_seconds > LEAST_PAUSE
        return TICK if is_slow else LEAST_PAUSE
