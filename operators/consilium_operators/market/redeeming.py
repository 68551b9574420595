"""Brings a server's money home: it redeems vouchers together, and empties its till."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from consilium_chain.errors import ChainUnreachable, Refused
from consilium_chain.ledger.channels import Channel, Voucher
from consilium_chain.ledger.ledger import Ledger
from consilium_core.logs import emit

from consilium_operators.market.book import SalesBook

MOST_AT_ONCE: Final = 100  # vouchers of one transaction: 1.7 million gas
URGENT_SECONDS: Final = 86_400  # before a voucher's or channel's end
URGENT_WORTH: Final = 10  # times the money, before such an end


@dataclass(frozen=True)
class Redeemed:
    """`amount`: of all vouchers, and of the till. `fee`: the server's part of it. `transactions`: their number."""

    amount: int
    fee: int
    transactions: int


def due(vouchers: Sequence[tuple[Voucher, Channel]], now: int, least: int) -> list[Voucher]:
    """The vouchers to redeem now: all, if together they bring `least`, or if those whose end is near bring a tenth of
    it; else none. So nobody can make a server pay more gas than it is worth.

    A voucher that would move nothing is left out.
    """
    found, total, urgent = [], 0, 0
    for voucher, channel in vouchers:
        gain = voucher.amount - channel.redeemed
        if gain <= 0 or voucher.amount > channel.deposited or now > voucher.expires_at:
            continue
        found.append(voucher)
        total += gain
        ends = min(voucher.expires_at, channel.closes_at or voucher.expires_at)
        urgent += gain if ends - now < URGENT_SECONDS else 0
    return found if total >= least or (urgent and urgent * URGENT_WORTH >= least) else []


class Redeemer:
    """Redeems one server's vouchers and till. `least`: that a redemption must bring, in the token's smallest unit,
    unless an end is near, or the server stops.
    """

    def __init__(self, ledger: Ledger, book: SalesBook, task: int, least: int) -> None:
        self._ledger, self._book, self._task, self._least = ledger, book, task, least
        self._till = ledger.shares.till_of(task, ledger.address)
        self._redeemed: dict[str, int] = {}  # by buyer; what is redeemed needs no look at the chain

    def redeem(self, now: int, stops: bool = False) -> Redeemed:
        """`now`: unix time. `stops`: redeems all. Raises Refused, ChainUnreachable, DeploymentInvalid."""
        channels, server = self._ledger.channels, self._ledger.address
        waiting = [one for one in self._book.vouchers() if self._redeemed.get(one.buyer) != one.amount]
        seen = [(one, channels.of(self._task, server, one.buyer)) for one in waiting]
        self._redeemed |= {one.buyer: channel.redeemed for one, channel in seen}
        least = 1 if stops else max(1, self._least)
        chosen = due(seen, now, least)
        amount = fee = transactions = 0
        for first in range(0, len(chosen), MOST_AT_ONCE):
            moved, part = channels.redeem(chosen[first : first + MOST_AT_ONCE])
            amount, fee, transactions = amount + moved, fee + part, transactions + 1
        if self._ledger.token.balance(self._till) >= least:
            moved, part = self._ledger.shares.split(self._task, server)
            amount, fee, transactions = amount + moved, fee + part, transactions + 1
        return Redeemed(amount, fee, transactions)


class Redeeming:
    """A thread that redeems every so many seconds, and once more at the end."""

    def __init__(
        self,
        redeem: Callable[[int, bool], Redeemed],
        seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`redeem`: gets the time, and True at the end. It may raise Refused and ChainUnreachable: the next one tries
        again.
        """
        self._redeem, self._seconds, self._clock = redeem, seconds, clock
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redeeming", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
        self._once(stops=True)

    def _run(self) -> None:
        while not self._ends.wait(self._seconds):
            self._once()

    def _once(self, stops: bool = False) -> None:
        try:
            done = self._redeem(int(self._clock()), stops)
        except (Refused, ChainUnreachable) as error:
            emit("redeem_failed", reason=str(error))
            return
        if done.transactions:
            emit("redeemed", amount=str(done.amount), fee=str(done.fee), transactions=done.transactions)
