"""The vouchers that a server redeems, and when."""

from __future__ import annotations

import pytest
from consilium_chain.ledger.channels import Channel, Voucher
from consilium_operators.market.redeeming import URGENT_SECONDS, due
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_000_000
LATER = NOW + 30 * URGENT_SECONDS


def voucher(amount: int, expires_at: int = LATER) -> Voucher:
    return Voucher(1, "0xserver", "0xbuyer", amount, expires_at, b"")


@given(
    amounts=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)), max_size=8),
    least=st.integers(1, 200),
)
def test_all_are_redeemed_once_they_bring_enough(amounts: list[tuple[int, int, int]], least: int) -> None:
    seen = [
        (voucher(amount), Channel(deposited, min(redeemed, deposited), 0)) for amount, deposited, redeemed in amounts
    ]
    good = [
        (one, one.amount - channel.redeemed)
        for one, channel in seen
        if channel.redeemed < one.amount <= channel.deposited
    ]
    total = sum(gain for _, gain in good)
    assert due(seen, NOW, least) == ([one for one, _ in good] if total >= least else [])


@pytest.mark.parametrize(
    ("expires_at", "closes_at", "is_due"),
    [
        (LATER, 0, False),
        (NOW + URGENT_SECONDS, 0, False),
        (NOW + URGENT_SECONDS - 1, 0, True),
        (NOW, 0, True),
        (NOW - 1, 0, False),  # the contract refuses it
        (LATER, NOW + URGENT_SECONDS - 1, True),
        (LATER, NOW - 1, True),  # the buyer has not yet withdrawn
    ],
)
def test_an_end_makes_a_voucher_urgent(expires_at: int, closes_at: int, is_due: bool) -> None:
    found = due([(voucher(100, expires_at), Channel(100, 0, closes_at))], NOW, 1_000)
    assert bool(found) is is_due


def test_a_trifle_is_not_worth_its_gas() -> None:
    """Else a stranger with many accounts could make a server burn its ether."""
    seen = [(voucher(99, NOW + 1), Channel(100, 0, 0)), (voucher(500), Channel(500, 0, 0))]
    assert due(seen, NOW, 1_000) == []
    assert due(seen, NOW, 990) == [one for one, _ in seen]
