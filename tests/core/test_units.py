"""Amounts as people read them, by vectors that the dashboard's tests read, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from consilium_core.units import ether, exact_tokens, tokens

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "amounts.json").read_text())


@pytest.mark.parametrize(("amount", "shown", "exact"), VECTORS["tokens"])
def test_tokens_are_shown_to_the_hundredth_or_exactly(amount: str, shown: str, exact: str) -> None:
    assert tokens(int(amount)) == shown
    assert exact_tokens(int(amount)) == exact.replace(",", "")


@pytest.mark.parametrize(
    ("wei", "shown"), [(0, "0.000000"), (1, "0.000001"), (10**12, "0.000001"), (10**12 + 1, "0.000002")]
)
def test_what_is_to_be_paid_is_never_shown_below_what_it_is(wei: int, shown: str) -> None:
    assert ether(wei) == shown
