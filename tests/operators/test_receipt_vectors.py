"""Receipts that the dashboard checks, too: tests/vectors/receipts.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.ledger.channels import SaleMessages, digest_of
from consilium_operators.market.receipts import check_receipt, read_receipt
from consilium_operators.market.wire import encoded, parse_payment

PATH = Path(__file__).parents[1] / "vectors" / "receipts.json"
VECTORS: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
MESSAGES = SaleMessages(VECTORS["chainId"], VECTORS["modelShares"], "0x" + "33" * 20)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: str(case["name"]))
def test_checks_find_what_they_must(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(case["file"]))
    bought = read_receipt(path)
    found = {one.name: one.holds for one in check_receipt(bought, MESSAGES)}
    found["model"] = bought.receipt.model.hex() == VECTORS["model"]
    assert {name: found[name] for name in case["holds"]} == case["holds"]


def test_a_voucher_is_signed_by_its_buyer_and_has_this_digest() -> None:
    signed = {
        "x402Version": 2,
        "accepted": {"scheme": "consilium-voucher", "network": f"eip155:{VECTORS['chainId']}"},
        "payload": VECTORS["voucher"],
    }
    voucher: Any = parse_payment(encoded(signed), VECTORS["chainId"])
    assert MESSAGES.has_signed(voucher)
    assert "0x" + digest_of(MESSAGES.of_voucher(voucher)).hex() == VECTORS["voucher"]["digest"]
