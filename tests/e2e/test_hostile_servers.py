"""A buyer at servers that lie. Each is a stranger's, so it answers as it likes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.channels import SaleReceipt, digest_of
from consilium_chain.ledger.ledger import Ledger
from consilium_cli.main import app as commands
from consilium_operators.market import wire
from consilium_operators.market.buyer import Buyer
from consilium_operators.market.errors import SaleError
from consilium_operators.market.receipts import Bought
from eth_account import Account
from fastapi import FastAPI, Request, Response
from market_driver import buyer_of
from raised_faults import raises_fault
from served_app import served
from typer.testing import CliRunner

SERVER = Account.from_key(b"\7" * 32)
MODEL = "ab" * 32
BODY, ANSWER = b'{"rows": [{"age": 50}]}', b'{"predictions": [{"answers": {"x": 1.0}}]}'
Alter = Callable[[dict[str, Any]], dict[str, Any]]


def same(content: dict[str, Any]) -> dict[str, Any]:
    return content


@contextmanager
def lying(
    chain: LocalChain,
    description: Alter = same,
    channel: Alter = same,
    receipt: Callable[[SaleReceipt], SaleReceipt] = lambda one: one,
    header: Callable[[str], str] = lambda one: one,
    status: int = 200,
) -> Iterator[str]:
    """A server that answers as an honest one, but for what a test alters."""
    deployment, service = chain.deployment, FastAPI()
    messages = chain.treasury.channels.messages
    described = {
        "sha256": MODEL, "columns": ["age"], "predict": {"most_rows": 10},
        "sale": {
            "chainId": deployment.chain_id, "taskId": "1", "modelShares": deployment.model_shares,
            "server": SERVER.address, "price": "10", "expiresAfter": 100, "leastDeposit": "1",
        },
    }  # fmt: skip

    @service.get("/")
    def describe() -> dict[str, Any]:
        return description(json.loads(json.dumps(described)))

    @service.get("/channels/{address}")
    def last(address: str) -> dict[str, Any]:
        return channel({"sold": "0", "expiresAt": None, "signature": None})

    @service.post("/predict")
    async def predict(request: Request) -> Response:
        signed = wire.decoded(request.headers[wire.SIGNATURE])
        assert isinstance(signed, dict)
        voucher = wire.parse_payment(request.headers[wire.SIGNATURE], deployment.chain_id)
        mark = digest_of(messages.of_voucher(voucher))  # type: ignore[arg-type]
        honest = SaleReceipt(
            1, SERVER.address, str(signed["payload"]["buyer"]), 10, mark, bytes.fromhex(MODEL),
            hashlib.sha256(await request.body()).digest(), hashlib.sha256(ANSWER).digest(),
        )  # fmt: skip
        given = receipt(honest)
        signature = bytes(SERVER.sign_message(messages.receipt(given)).signature)
        shown = header(wire.encoded(wire.shown_receipt(given, signature)))
        return Response(ANSWER, status, {wire.RECEIPT: shown}, "application/json")

    with served(service) as url:
        yield url


@pytest.fixture
def ledger(local_chain: LocalChain) -> Ledger:
    return buyer_of(local_chain, 0)


def test_an_honest_answer_is_taken(local_chain: LocalChain, ledger: Ledger) -> None:
    with lying(local_chain) as url, Buyer(ledger, url) as buyer:
        assert buyer.predict(BODY, 1).predictions == [{"answers": {"x": 1.0}}]


@pytest.mark.parametrize(
    "change",
    [
        {"task": 2}, {"server": "0x" + "11" * 20}, {"buyer": "0x" + "11" * 20}, {"amount": 11},
        {"payment": b"\1" * 32}, {"model": b"\1" * 32}, {"request": b"\1" * 32}, {"response": b"\1" * 32},
    ],
)  # fmt: skip
def test_a_receipt_of_something_else_is_wrong_and_kept(
    local_chain: LocalChain, ledger: Ledger, change: dict[str, Any]
) -> None:
    kept: list[Bought] = []
    with lying(local_chain, receipt=lambda one: replace(one, **change)) as url, Buyer(ledger, url) as buyer:
        with raises_fault(SaleError, "ReceiptWrong"):
            buyer.predict(BODY, 1, kept.append)
        assert len(kept) == 1


@pytest.mark.parametrize("header", ["", "e30=", "!", "A" * 9_000])
def test_a_receipt_that_cannot_be_read_is_wrong(local_chain: LocalChain, ledger: Ledger, header: str) -> None:
    with (
        lying(local_chain, header=lambda _: header) as url,
        Buyer(ledger, url) as buyer,
        raises_fault(SaleError, "ReceiptWrong"),
    ):
        buyer.predict(BODY, 1)


def test_a_debt_without_a_voucher_is_a_lie(local_chain: LocalChain, ledger: Ledger) -> None:
    """No signature, another's, and this account's for a smaller sum."""
    own = ledger.channels.voucher(1, SERVER.address, 5, 2**33)
    lies = [
        {"sold": "9"},
        {"sold": "9", "expiresAt": str(2**33), "signature": "0x" + "11" * 65},
        {"sold": "9", "expiresAt": str(2**33), "signature": "0x" + own.signature.hex()},
    ]
    for lie in lies:
        with (
            lying(local_chain, channel=lambda one, lie=lie: one | lie) as url,  # type: ignore[misc]
            raises_fault(SaleError, "BookLies"),
        ):
            Buyer(ledger, url)
    true = {"sold": "5", "expiresAt": str(2**33), "signature": "0x" + own.signature.hex()}
    with lying(local_chain, channel=lambda one: one | true) as url, Buyer(ledger, url) as buyer:
        assert buyer.account.sold == 5


@pytest.mark.parametrize(
    "change",
    [
        {"price": "-1"}, {"price": "1e3"}, {"price": str(2**96)}, {"server": "0x11"}, {"chainId": 1}, {"taskId": None},
        {"modelShares": "0x" + "11" * 20}, {"expiresAfter": 2**60},
    ],
)  # fmt: skip
def test_malformed_terms_are_refused(local_chain: LocalChain, ledger: Ledger, change: dict[str, Any]) -> None:
    def altered(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"sale": content["sale"] | change}

    with lying(local_chain, description=altered) as url, raises_fault(SaleError, "ServerMalformed"):
        Buyer(ledger, url)


def test_a_price_beyond_all_amounts_is_refused(local_chain: LocalChain, ledger: Ledger) -> None:
    def dear(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"sale": content["sale"] | {"price": str(2**96 - 1)}}

    with (
        lying(local_chain, description=dear) as url,
        Buyer(ledger, url) as buyer,
        raises_fault(SaleError, "ServerMalformed"),
    ):
        buyer.predict(BODY, 2)


def test_a_silent_server_is_said_to_be_silent(local_chain: LocalChain, ledger: Ledger) -> None:
    with raises_fault(SaleError, "ServerUnreachable"):
        Buyer(ledger, "http://127.0.0.1:9", retry_seconds=0.3)
    with (
        lying(local_chain, status=503) as url,
        Buyer(ledger, url, retry_seconds=0.5) as buyer,
        raises_fault(SaleError, "ServerUnreachable"),
    ):
        buyer.predict(BODY, 1)


def test_nothing_is_bought_without_a_yes(local_chain: LocalChain, tmp_path: Path) -> None:
    local_chain.deployment.write(tmp_path / "book.json")
    (tmp_path / "rows.csv").write_text("age\n50\n")
    chain = ["--rpc", local_chain.node.url, "--address-book", str(tmp_path / "book.json")]

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(commands, [*arguments, *chain])
        assert result.exit_code != 0
        return f"{type(result.exception).__name__} {getattr(result.exception, 'name', '')}"

    with ExitStack() as stack:
        url = stack.enter_context(lying(local_chain))
        buy = ["buy", url, str(tmp_path / "rows.csv"), "--output", str(tmp_path / "out.csv")]
        assert said(*buy) == "SaleError NotBought"
        assert said(*buy, "--deposit", "much", "--yes") == "SaleError AmountMalformed"
        assert not (tmp_path / "out.csv").exists()
    serve = ["serve", "1", str(tmp_path), "--price"]
    assert said(*serve, "0") == "SaleError PriceIsZero"
    assert said(*serve, "1", "--host", "0.0.0.0") == "SaleError CertificateMissing"
