"""Writes receipts.json: receipts of predictions as servers sign them, and what each check of them must find.

pytest (tests/operators/test_receipt_vectors.py) and vitest (dashboard/tests/selling.test.ts) read it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from consilium_chain.ledger.channels import SaleMessages, SaleReceipt, Voucher, digest_of
from consilium_operators.market.wire import shown_payment, shown_receipt
from eth_account import Account

CHAIN_ID = 31_337
SHARES, OTHER_SHARES, TOKEN = ("0x" + digits * 20 for digits in ("11", "22", "33"))
SERVER, OTHER, BUYER = (Account.from_key(bytes([number]) * 32) for number in (1, 2, 3))
MODEL = hashlib.sha256(b"model").digest()
REQUEST = '{"rows": [{"größe": 61.5, "sex": null}]}'
RESPONSE = '{"predictions": [{"class": "no", "probabilities": {"no": 0.75, "yes": 0.25}}], "clamp": false}'
CHECKS = ("signature", "request", "response", "model")


def vectors() -> dict[str, Any]:
    messages = SaleMessages(CHAIN_ID, SHARES, TOKEN)
    voucher = Voucher(7, SERVER.address, BUYER.address, 10**18 + 1, 1_800_000_000, b"")
    message = messages.of_voucher(voucher)
    voucher = replace(voucher, signature=bytes(BUYER.sign_message(message).signature))
    receipt = SaleReceipt(
        7, SERVER.address, BUYER.address, 10**16, digest_of(message), MODEL, _hash(REQUEST), _hash(RESPONSE)
    )
    signed = _signed(receipt, messages, SERVER)
    cases = [
        _case("as the server signed it", signed),
        _case("another request", signed, "request", request=REQUEST.replace("61.5", "62.5")),
        _case("a space more in the answer", signed, "response", response=RESPONSE + " "),
        _case("another price", signed | {"amount": "1"}, "signature"),
        _case("another buyer", signed | {"buyer": OTHER.address}, "signature"),
        _case("another model, signed", _signed(replace(receipt, model=_hash("x")), messages, SERVER), "model"),
        _case("signed by another", _signed(receipt, messages, OTHER), "signature"),
        _case(
            "of another contract", _signed(receipt, SaleMessages(CHAIN_ID, OTHER_SHARES, TOKEN), SERVER), "signature"
        ),
        _case("of another chain", _signed(receipt, SaleMessages(1, SHARES, TOKEN), SERVER), "signature"),
        _case("a signature of zeros", signed | {"signature": "0x" + "00" * 65}, "signature"),
    ]
    return {
        "chainId": CHAIN_ID, "modelShares": SHARES, "model": MODEL.hex(),
        "voucher": shown_payment(voucher) | {"digest": "0x" + digest_of(message).hex()}, "cases": cases,
    }  # fmt: skip


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _signed(receipt: SaleReceipt, messages: SaleMessages, by: Any) -> dict[str, str]:
    return shown_receipt(receipt, bytes(by.sign_message(messages.receipt(receipt)).signature))


def _case(
    name: str, receipt: dict[str, str], failing: str = "", request: str = REQUEST, response: str = RESPONSE
) -> dict[str, Any]:
    holds = {check: check != failing for check in CHECKS}
    return {"name": name, "file": {"receipt": receipt, "request": request, "response": response}, "holds": holds}


if __name__ == "__main__":
    path = Path(__file__).with_name("receipts.json")
    path.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
