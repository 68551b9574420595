"""Predictions for money on a real chain, by real HTTP: vouchers, kills, transfers by x402's own client, receipts."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import consilium
import httpx
import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.channels import Authorization, Voucher
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_operators.errors import OperatorError
from consilium_operators.market import wire
from consilium_operators.market.book import SalesBook
from consilium_operators.market.buyer import Buyer
from consilium_operators.market.errors import SaleError
from consilium_server.certificates import ensure_certificates
from market_driver import Server, buyer_of
from raised_faults import raises_fault
from typer.testing import CliRunner
from voter_driver import TASK, FiledTask

SALE = "\n[sale]\nserver_percent = 20\noperator_percent = 10\ntrainers_percent = 55\nvoters_percent = 15\n"
PRICE = TOKEN // 100
BODY = b'{"rows": [{"age": 50}]}'
MANY = json.dumps({"rows": [{"age": age} for age in range(100)]}).encode()  # worth a transaction: a token
JSON = "application/json"


class Sold:
    """A task whose parts are minted, and a server of its model."""

    def __init__(self, chain: LocalChain, folder: Path) -> None:
        self.chain, self.folder, self.book = chain, folder, folder / "book.json"
        chain.deployment.write(self.book)
        task = FiledTask(chain, folder, TASK + SALE)
        task.judges, task.voters = chain.staked(Role.VOTER, 1), 1
        task.join(rows=[8]).first_round()
        task.form().commit_all().publish()
        task.draw().judge([[40_000]])
        assert task.phase is Phase.ENDED
        self.task = task.task
        consilium.Shares(chain.node.url, self.book).mint(self.task, artifacts=[str(folder / "artifacts")])
        self.server = Server(folder, chain, self.book, self.task, TASK + SALE, "--redeem-above", "0.01").start()
        self.seller = chain.treasury
        self.buyers: list[Buyer] = []

    def buyer(self, tokens: int = 10 * TOKEN, deposit: int = 2 * TOKEN) -> Buyer:
        buyer = self.again(buyer_of(self.chain, tokens))
        if deposit:
            buyer.deposit(deposit)
        return buyer

    def again(self, ledger: Ledger) -> Buyer:
        """As another process of the account finds it."""
        self.buyers.append(Buyer(ledger, self.server.url))
        return self.buyers[-1]

    def redeemed(self, buyer: Buyer) -> int:
        return self.seller.channels.of(self.task, self.seller.address, address_of(buyer)).redeemed

    def paid(self) -> int:
        """Everything that the holders got."""
        return self.seller.shares.paid(self.task)


def address_of(buyer: Buyer) -> str:
    return ledger_of(buyer).address


def ledger_of(buyer: Buyer) -> Ledger:
    return buyer._ledger


@pytest.fixture(scope="module")
def sold(chain_of_now: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sold]:
    found = Sold(chain_of_now, tmp_path_factory.mktemp("market"))
    yield found
    for buyer in found.buyers:
        buyer.__exit__()
    found.server.stop()


def pay(sold: Sold, payload: dict[str, Any], scheme: str = wire.VOUCHERS, body: bytes = BODY) -> httpx.Response:
    network = wire.network_of(sold.chain.deployment.chain_id)
    signed = {"x402Version": 2, "accepted": {"scheme": scheme, "network": network}, "payload": payload}
    headers = {"content-type": JSON, wire.SIGNATURE: wire.encoded(signed)}
    return httpx.post(f"{sold.server.url}/predict", content=body, headers=headers, timeout=60)


def voucher_of(sold: Sold, buyer: Buyer, amount: int, **other: Any) -> Voucher:
    ledger = ledger_of(buyer)
    found = ledger.channels.voucher(sold.task, sold.seller.address, amount, 2**33)
    return replace(found, **other)


# --- vouchers ------------------------------------------------------------------------------------------------------


def test_predictions_are_paid_by_vouchers_and_redeemed_together(sold: Sold) -> None:
    buyers = [sold.buyer(), sold.buyer()]
    for buyer in buyers:
        for age in (30, 60):
            bought = buyer.predict(json.dumps({"rows": [{"age": age}, {"age": age + 1}]}).encode(), 2)
            assert len(bought.predictions) == 2
            assert bought.receipt.amount == 2 * PRICE
        assert buyer.account.left == 2 * TOKEN - 4 * PRICE
    holders, total = sold.paid(), 8 * PRICE
    sold.server.stop()  # which redeems
    assert [sold.redeemed(buyer) for buyer in buyers] == [4 * PRICE, 4 * PRICE]
    assert sold.paid() - holders == total - total * 20 // 100
    sold.server.start()
    assert sold.again(ledger_of(buyers[0])).account.sold == 4 * PRICE


def test_a_kill_loses_no_prediction_and_charges_none_twice(sold: Sold) -> None:
    buyer, count = sold.buyer(), 60
    kills = {20, 40}

    def restart() -> None:
        sold.server.kill()
        sold.server.start()

    restarts = []
    for index in range(count):
        if index in kills:
            restarts.append(threading.Thread(target=restart))
            restarts[-1].start()
        body = json.dumps({"rows": [{"age": index}]}).encode()
        assert len(buyer.predict(body, 1).predictions) == 1
    for one in restarts:
        one.join()
    assert buyer.account.sold == count * PRICE
    assert sold.again(ledger_of(buyer)).account.sold == count * PRICE


def test_the_same_request_gets_the_same_answer_and_another_none(sold: Sold) -> None:
    buyer = sold.buyer()
    voucher = wire.shown_payment(voucher_of(sold, buyer, PRICE))
    first, again = pay(sold, voucher), pay(sold, voucher)
    assert first.status_code == again.status_code == 200
    assert (first.content, first.headers[wire.RECEIPT]) == (again.content, again.headers[wire.RECEIPT])
    other = pay(sold, voucher, body=b'{"rows": [{"age": 51}]}')
    assert (other.status_code, other.json()["title"]) == (402, "VoucherSpent")
    assert httpx.get(f"{sold.server.url}/channels/{address_of(buyer)}").json()["sold"] == str(PRICE)


def test_bad_vouchers_are_refused_by_name_and_nothing_is_charged(sold: Sold) -> None:
    buyer, stranger = sold.buyer(), sold.buyer(0, 0)
    good = voucher_of(sold, buyer, PRICE)
    ledger, server = ledger_of(buyer), sold.seller.address
    messages = ledger.channels.messages

    def signed(task: int = sold.task, to: str = server, amount: int = PRICE, expires: int = 2**33) -> Voucher:
        message = messages.voucher(task, to, ledger.address, amount, expires)
        return Voucher(
            task, to, ledger.address, amount, expires, bytes(ledger.channels.account.sign_message(message).signature)
        )

    by_another = ledger_of(stranger).channels.voucher(sold.task, server, PRICE, good.expires_at).signature
    cases = {
        "VoucherForged": [
            replace(good, signature=by_another),
            replace(good, amount=PRICE, expires_at=good.expires_at + 1),
            replace(signed(amount=PRICE + 1), amount=PRICE),
            replace(signed(task=sold.task + 1), task=sold.task),
            replace(signed(to=ledger.address), server=server),
            replace(good, signature=b"\0" * 65),
        ],
        "PaymentForeign": [signed(task=sold.task + 1), signed(to=ledger.address)],
        "AmountWrong": [signed(amount=PRICE + 1), signed(amount=PRICE - 1), signed(amount=2**96 - 1)],
        "VoucherSpent": [signed(amount=0)],
        "VoucherExpires": [signed(expires=1)],
        "DepositTooSmall": [voucher_of(sold, stranger, PRICE)],
    }  # fmt: skip
    for name, vouchers in cases.items():
        for voucher in vouchers:
            answer = pay(sold, wire.shown_payment(voucher))
            assert (answer.status_code, answer.json()["title"]) == (402, name), answer.text
            assert wire.decoded(answer.headers[wire.REQUIRED])
    elsewhere = wire.shown_payment(good)
    headers = {
        "content-type": JSON,
        wire.SIGNATURE: wire.encoded(
            {"x402Version": 2, "accepted": {"scheme": wire.VOUCHERS, "network": "eip155:1"}, "payload": elsewhere}
        ),
    }
    foreign = httpx.post(f"{sold.server.url}/predict", content=BODY, headers=headers)
    assert (foreign.status_code, foreign.json()["title"]) == (402, "PaymentForeign")
    assert buyer.account.sold == 0
    assert pay(sold, wire.shown_payment(good)).status_code == 200


@pytest.mark.parametrize(
    "value",
    ["", "!", "e30=", "bnVsbA==", "W10=", "eyJ4NDAyVmVyc2lvbiI6MX0=", "A" * 9_000, "e" * 40, "\xff" * 4],
)
def test_malformed_payments_are_refused(sold: Sold, value: str) -> None:
    headers = [(b"content-type", JSON.encode()), (wire.SIGNATURE.encode(), value.encode("latin-1"))]
    answer = httpx.post(f"{sold.server.url}/predict", content=BODY, headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (402, "PaymentMalformed")


def test_invalid_rows_cost_nothing(sold: Sold) -> None:
    buyer = sold.buyer()
    for body in (b'{"rows": [{"age": "old"}]}', b'{"rows": [{"age": 5000}]}', b'{"rows": []}', b"{"):
        with raises_fault(SaleError, "ServerRefused"):
            buyer.predict(body, 1)
    assert sold.again(ledger_of(buyer)).account.sold == 0
    assert buyer.predict(BODY, 1).receipt.amount == PRICE


def test_a_request_without_payment_says_how_to_pay(sold: Sold) -> None:
    answer = httpx.post(f"{sold.server.url}/predict", content=BODY, headers={"content-type": JSON})
    required = wire.decoded(answer.headers[wire.REQUIRED])
    assert isinstance(required, dict)
    assert answer.status_code == 402
    assert [(one["scheme"], one["amount"]) for one in required["accepts"]] == [(wire.VOUCHERS, str(PRICE))]
    answer = httpx.post(f"{sold.server.url}/predict", content=MANY, headers={"content-type": JSON})
    assert [(one["scheme"], one["amount"]) for one in answer.json()["accepts"]] == [
        (wire.EXACT, str(TOKEN)), (wire.VOUCHERS, str(TOKEN)),
    ]  # fmt: skip


def test_a_closing_channel_buys_nothing_until_it_is_open_again(sold: Sold) -> None:
    buyer = sold.buyer()
    ledger = ledger_of(buyer)
    sold.chain.rpc("anvil_setBalance", ledger.address, hex(TOKEN))
    ledger.channels.close(sold.task, sold.seller.address)
    with raises_fault(SaleError, "ServerRefused") as refused:
        buyer.predict(BODY, 1)
    assert "ChannelClosing" in str(refused.value)
    buyer.deposit(TOKEN)
    buyer.predict(BODY, 1)


def test_many_requests_of_one_buyer_at_once_are_sold_once_each(sold: Sold) -> None:
    """Ten threads send the same voucher with different rows: one of them is answered."""
    buyer = sold.buyer()
    voucher = wire.shown_payment(voucher_of(sold, buyer, PRICE))
    statuses: list[int] = []

    def ask(age: int) -> None:
        statuses.append(pay(sold, voucher, body=json.dumps({"rows": [{"age": age}]}).encode()).status_code)

    threads = [threading.Thread(target=ask, args=(age,)) for age in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [402] * 9


def test_deposits_by_signature_are_bound_and_not_too_small(sold: Sold) -> None:
    buyer = sold.buyer(deposit=0)
    with raises_fault(SaleError, "ServerRefused") as refused:
        buyer.deposit(TOKEN - 1)
    assert "DepositSmall" in str(refused.value)
    with raises_fault(SaleError, "ServerRefused") as refused:
        buyer.deposit(11 * TOKEN)  # more than the account has
    assert "TransferFailed" in str(refused.value)
    buyer.deposit(10 * TOKEN)
    assert buyer.account.deposited == 10 * TOKEN


# --- transfers: x402's own client ----------------------------------------------------------------------------------


def test_the_client_of_x402_pays_for_a_prediction(sold: Sold) -> None:
    """An independent implementation of the protocol, which knows nothing of this project."""
    from x402 import x402ClientSync
    from x402.http.x402_http_client import x402HTTPClientSync
    from x402.mechanisms.evm.exact import ExactEvmScheme
    from x402.mechanisms.evm.signers import EthAccountSigner

    ledger = buyer_of(sold.chain, 2 * TOKEN)
    client = x402ClientSync()
    client.set_spend_controls(False)  # it only knows the usual stablecoins
    client.register("eip155:*", ExactEvmScheme(signer=EthAccountSigner(ledger.channels.account)))
    http = x402HTTPClientSync(client)
    asked = httpx.post(f"{sold.server.url}/predict", content=MANY, headers={"content-type": JSON})
    headers, _ = http.handle_402_response(dict(asked.headers), asked.content, f"{sold.server.url}/predict")
    answers = [
        httpx.post(f"{sold.server.url}/predict", content=MANY, headers={"content-type": JSON, **headers}, timeout=60)
        for _ in range(2)
    ]
    assert [one.status_code for one in answers] == [200, 200], answers[0].text
    assert answers[0].content == answers[1].content
    till = sold.seller.shares.till_of(sold.task, sold.seller.address)
    assert ledger.token.balance(ledger.address) == TOKEN
    assert sold.seller.token.balance(till) in (TOKEN, 0)  # the server may have emptied it
    other = httpx.post(
        f"{sold.server.url}/predict", content=MANY.replace(b"99", b"98"), headers={"content-type": JSON, **headers}
    )
    assert (other.status_code, other.json()["title"]) == (402, "AuthorizationUsed")


def test_bad_transfers_are_refused_by_name_and_move_nothing(sold: Sold) -> None:
    ledger, deployment = buyer_of(sold.chain, 2 * TOKEN), sold.chain.deployment
    till, now = sold.seller.shares.till_of(sold.task, sold.seller.address), int(time.time())
    messages = ledger.channels.messages

    def allowed(**other: Any) -> Authorization:
        plain = Authorization(ledger.address, till, TOKEN, 0, now + 600, secrets.token_bytes(32), b"")
        unsigned = replace(plain, **other)
        return replace(
            unsigned, signature=bytes(ledger.channels.account.sign_message(messages.transfer(unsigned)).signature)
        )

    cases = {
        "AuthorizationWrong": [allowed(to=deployment.model_shares), allowed(value=TOKEN - 1), allowed(value=TOKEN + 1)],
        "AuthorizationExpires": [allowed(valid_before=now - 1), allowed(valid_after=now + 600)],
        "AuthorizationForged": [
            replace(allowed(), nonce=b"\1" * 32),
            replace(allowed(), payer=sold.seller.address),
            replace(allowed(), signature=b"\0" * 65),
        ],
    }
    for name, payments in cases.items():
        for payment in payments:
            answer = pay(sold, wire.shown_payment(payment), wire.EXACT, MANY)
            assert (answer.status_code, answer.json()["title"]) == (402, name), answer.text
    poor = buyer_of(sold.chain, 0)
    unsigned = Authorization(poor.address, till, TOKEN, 0, now + 600, b"\2" * 32, b"")
    signature = bytes(poor.channels.account.sign_message(messages.transfer(unsigned)).signature)
    answer = pay(sold, wire.shown_payment(replace(unsigned, signature=signature)), wire.EXACT, MANY)
    assert (answer.status_code, answer.json()["title"]) == (402, "TransferFailed")
    answer = pay(sold, wire.shown_payment(allowed(value=PRICE)), wire.EXACT)
    assert (answer.status_code, answer.json()["title"]) == (402, "TransferSmall")
    assert ledger.token.balance(ledger.address) == 2 * TOKEN


def test_a_transfer_that_arrived_before_a_kill_is_answered(sold: Sold) -> None:
    """As after a kill between the transaction and the book: the money is there, and the book says only `begun`."""
    ledger, body = buyer_of(sold.chain, 2 * TOKEN), MANY
    till = sold.seller.shares.till_of(sold.task, sold.seller.address)
    plain = Authorization(ledger.address, till, TOKEN, 0, int(time.time()) + 600, secrets.token_bytes(32), b"")
    message = ledger.channels.messages.transfer(plain)
    payment = replace(plain, signature=bytes(ledger.channels.account.sign_message(message).signature))
    book = SalesBook(sold.folder / "sales.sqlite", sold.task, sold.seller.address, sold.chain.deployment.model_shares)
    book.begin(payment, hashlib.sha256(body).digest(), sold.seller.channels.block())
    sold.seller.channels.transfer(payment)
    before = book.totals()
    for _ in range(2):
        assert pay(sold, wire.shown_payment(payment), wire.EXACT, body).status_code == 200
    assert book.totals() == (before[0] + 100, before[1] + TOKEN)
    book.close()
    assert ledger.token.balance(ledger.address) == TOKEN


# --- receipts ------------------------------------------------------------------------------------------------------


def test_commands_sell_buy_and_verify(sold: Sold, tmp_path: Path) -> None:
    buyer = buyer_of(sold.chain, 5 * TOKEN)
    rows = tmp_path / "rows.csv"
    rows.write_text("name,age\nMary Smith,40\nJohn Miller,70\n")
    with consilium.Buyer(sold.server.url, sold.chain.node.url, sold.book) as found:
        assert found.read(rows) == [{"age": "40"}, {"age": "70"}]
    key, password = tmp_path / "key.json", tmp_path / "password"
    from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
    from consilium_core.private_files import write_private_file

    write_private_file(password, "secret\n")
    write_keystore(key, buyer.channels.account, "secret", LIGHT_SCRYPT_N)
    chain = ["--rpc", sold.chain.node.url, "--address-book", str(sold.book)]
    common = [*chain, "--keystore", str(key), "--password-file", str(password)]
    bought = CliRunner().invoke(
        app,
        ["buy", sold.server.url, str(rows), "--output", str(tmp_path / "out.csv"), "--receipts", str(tmp_path / "r"),
         "--deposit", "1", "--yes", *common],
        catch_exceptions=False,
    )  # fmt: skip
    assert bought.exit_code == 0, bought.output
    assert "2 predictions for 0.02 tokens" in bought.output
    assert "0.98 tokens left" in bought.output
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    (receipt,) = (tmp_path / "r").iterdir()
    model = ["--model", str(sold.server.model), "--address-book", str(sold.book)]
    good = CliRunner().invoke(app, ["verify-receipt", str(receipt), *model])
    assert good.exit_code == 0, good.output
    assert good.output.count("holds") == 6
    tampered = json.loads(receipt.read_text())
    tampered["response"] = tampered["response"].replace("0.", "0.1", 1)
    receipt.write_text(json.dumps(tampered))
    bad = CliRunner().invoke(app, ["verify-receipt", str(receipt), *model])
    assert bad.exit_code == 1
    assert "response     FAILS" in bad.output


def test_the_book_has_no_row_and_no_answer(sold: Sold) -> None:
    buyer = sold.buyer()
    buyer.predict(b'{"rows": [{"age": 87.125}]}', 1)
    raw = b"".join(path.read_bytes() for path in sold.folder.glob("sales.sqlite*"))
    assert b"87.125" not in raw
    assert b"probabilities" not in raw
    assert b"87.125" not in sold.server.log.read_bytes()


def test_a_book_of_another_task_is_refused(sold: Sold, tmp_path: Path) -> None:
    SalesBook(tmp_path / "b", 1, sold.seller.address, "0x").close()
    with raises_fault(SaleError, "BookOfAnother"):
        SalesBook(tmp_path / "b", 2, sold.seller.address, "0x")
    with sqlite3.connect(tmp_path / "b") as file:
        assert file.execute("SELECT count(*) FROM vouchers").fetchone() == (0,)


def test_only_a_verified_model_of_a_sold_task_is_served(sold: Sold, tmp_path: Path) -> None:
    from consilium_operators.market.desk import require_sellable
    from consilium_operators.model_folder import read_model
    from consilium_operators.prediction import Predictor
    from model_driver import written

    deployment = sold.chain.deployment
    own = (sold.task, deployment.chain_id, deployment.tasks)
    predictor = Predictor(read_model(written(tmp_path / "a", TASK + SALE, task=own)))
    require_sellable(sold.seller, predictor, sold.task, Path())
    with raises_fault(SaleError, "ModelOfAnotherTask"):
        require_sellable(sold.seller, predictor, sold.task + 1, Path())
    saved = predictor.saved
    doubtful = replace(saved, index=saved.index.model_copy(update={"verified": False}))
    with raises_fault(SaleError, "ModelNotVerified"):
        require_sellable(sold.seller, Predictor(doubtful), sold.task, Path())
    running = FiledTask(sold.chain, tmp_path, TASK + SALE).task
    at = (running, deployment.chain_id, deployment.tasks)
    early = Predictor(read_model(written(tmp_path / "c", TASK + SALE, task=at)))
    with raises_fault(SaleError, "PartsNotMinted"):
        require_sellable(sold.seller, early, running, Path())
    unsold = Predictor(read_model(written(tmp_path / "b", TASK, task=own)))
    with raises_fault(OperatorError, "NotForSale"):
        require_sellable(sold.seller, unsold, sold.task, Path())


def test_a_server_offers_its_price_on_the_chain(sold: Sold) -> None:
    sold.seller.channels.offer(sold.task, PRICE, "https://example.org/heart")
    said = CliRunner().invoke(
        app, ["shares", "offers", str(sold.task), "--rpc", sold.chain.node.url, "--address-book", str(sold.book)]
    )
    assert f"task {sold.task}: 0.01 tokens at https://example.org/heart" in said.output
    sold.seller.channels.offer(sold.task, 0, "")
    assert sold.seller.channels.offers(sold.task) == []


def test_a_certificate_serves_https(sold: Sold, tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "tls")
    options = ["--certificate", str(made.certificate), "--key", str(made.key)]
    server = Server(tmp_path, sold.chain, sold.book, sold.task, TASK + SALE, *options)
    server.authority = made.authority
    try:
        server.start()
        assert server.url.startswith("https://localhost:")
        trusted = ssl.create_default_context(cafile=str(made.authority))
        assert httpx.get(server.url, verify=trusted).json()["sale"]["price"] == str(PRICE)
        with raises_fault(SaleError, "ServerUnreachable"):  # its authority is not this machine's
            Buyer(buyer_of(sold.chain, 0), server.url, retry_seconds=0.2)
    finally:
        server.stop()


def test_a_remote_server_needs_https(sold: Sold) -> None:
    with raises_fault(SaleError, "UrlNotEncrypted"):
        Buyer(buyer_of(sold.chain, 0), "http://example.org")
