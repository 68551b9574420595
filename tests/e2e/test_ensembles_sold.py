"""Two tasks' models of different size sold as one: formed, written, served, bought, redeemed, and checked."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import consilium
import httpx
import pytest
from chain_driver import LocalChain
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ensembles import ENSEMBLES, Member
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_core.private_files import write_private_file
from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.folder import ENSEMBLE, read_ensemble
from consilium_operators.ensembles.opening import opened
from consilium_operators.market import wire
from consilium_operators.market.buyer import Buyer
from consilium_operators.market.desk import answer_of
from consilium_operators.market.errors import SaleError
from consilium_operators.market.receipts import Bought, check_receipt
from consilium_operators.model_folder import ONNX
from ensemble_driver import SALE, minted
from market_driver import Server, buyer_of
from model_driver import written
from raised_faults import raises_fault
from typer.testing import CliRunner
from voter_driver import TASK

MLP = 'name = "mlp"\nhidden = [8, 4]'
PRICE = TOKEN // 100 + 7  # so that neither a weight nor a percent divides it
GAINS = (30_001, 10_000)
SERVERS = (20, 7)  # percent
JSON = "application/json"


class Sold:
    """An ensemble, and a server of it."""

    def __init__(self, chain: LocalChain, folder: Path) -> None:
        self.chain, self.folder, self.book = chain, folder, folder / "book.json"
        chain.deployment.write(self.book)
        texts = [TASK, TASK.replace('name = "logistic"', MLP)]
        self.texts = [
            text + SALE.format(server=percent, voters=35 - percent)
            for text, percent in zip(texts, SERVERS, strict=True)
        ]
        self.tasks = [
            minted(chain, folder, percent, gain, text).task
            for text, percent, gain in zip(texts, SERVERS, GAINS, strict=True)
        ]
        self.models = [folder / "models" / str(task) for task in self.tasks]
        for task, model in zip(self.tasks, self.models, strict=True):
            self.say("operator", "download-model", str(task), "--output", str(model), "--artifacts", self.artifacts)
        self.formed = self.say("ensemble", "form", *map(str, reversed(self.tasks)))
        self.number = int(self.formed.split()[1])
        self.ensemble = folder / "ensemble"
        self.written = self.say(
            "ensemble", "export", str(self.number), *map(str, self.models), "--output", str(self.ensemble)
        )
        price = f"{PRICE / TOKEN:.18f}"
        self.server = Server(
            folder, chain, self.book, self.number, self.ensemble, "--price", price, "--redeem-above", "0.01"
        ).start()
        self.seller = chain.treasury

    @property
    def artifacts(self) -> str:
        return str(self.folder / "artifacts")

    @property
    def chain_options(self) -> list[str]:
        return ["--rpc", self.chain.node.url, "--address-book", str(self.book)]

    def say(self, *arguments: str) -> str:
        ran = CliRunner().invoke(app, [*arguments, *self.chain_options], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output

    def buyer(self, ledger: Ledger) -> list[str]:
        """Options of a command by this account."""
        key, password = self.folder / f"{ledger.address}.json", self.folder / f"{ledger.address}.password"
        write_private_file(password, "secret\n")
        write_keystore(key, ledger.channels.account, "secret", LIGHT_SCRYPT_N)
        return ["--keystore", str(key), "--password-file", str(password)]

    def paid(self) -> list[int]:
        """All that each member's holders ever got."""
        return [self.seller.shares.paid(task) for task in self.tasks]

    def claimable(self) -> list[int]:
        """All that each member's holders can claim."""
        found = [consilium.task_shares(task, rpc=self.chain.node.url, address_book=self.book) for task in self.tasks]
        return [sum(one.claimable for one in shares.holdings) for shares in found]


def parts_of(amount: int) -> tuple[list[int], list[int]]:
    """A sale's amounts for each member's holders, and the server's fees: by the documents, not by the contract."""
    first = amount * GAINS[0] // sum(GAINS)
    amounts = [first, amount - first]
    fees = [part * percent // 100 for part, percent in zip(amounts, SERVERS, strict=True)]
    return [part - fee for part, fee in zip(amounts, fees, strict=True)], fees


@pytest.fixture(scope="module")
def sold(chain_of_now: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sold]:
    found = Sold(chain_of_now, tmp_path_factory.mktemp("ensemble"))
    yield found
    found.server.stop()


def test_commands_form_show_and_write_an_ensemble(sold: Sold) -> None:
    assert sold.number > ENSEMBLES
    weights = (
        f"task {sold.tasks[0]}: weight 0.7500, gain 0.030001\n  task {sold.tasks[1]}: weight 0.2500, gain 0.010000"
    )
    for said in (sold.formed, sold.say("ensemble", "show", str(sold.number)), sold.say("ensemble", "show")):
        assert f"ensemble {sold.number}\n  {weights}" in said
    saved = read_ensemble(sold.ensemble)
    assert saved.index.ensemble.members == tuple(map(Member, sold.tasks, GAINS))
    assert f"{sold.ensemble}, SHA-256 {saved.index.sha256}" in sold.written
    assert (sold.ensemble / ONNX).stat().st_size > 0
    parameters = [one.spec.parameters for one in saved.models]
    assert parameters[0] < parameters[1]
    said = httpx.get(sold.server.url).json()
    assert (said["task"], said["sha256"]) == (sold.number, saved.index.sha256)
    assert [one["task"] for one in said["members"]] == sold.tasks


def test_predictions_are_bought_by_vouchers_and_each_members_holders_are_paid(sold: Sold, tmp_path: Path) -> None:
    ledger, rows = buyer_of(sold.chain, 5 * TOKEN), tmp_path / "rows.csv"
    rows.write_text("name,age\n" + "".join(f"somebody,{age}\n" for age in range(30, 63)))
    before, owed, held = sold.paid(), sold.claimable(), sold.seller.token.balance(sold.seller.address)
    said = sold.say(
        "buy", sold.server.url, str(rows), "--output", str(tmp_path / "out.csv"), "--receipts", str(tmp_path / "r"),
        "--deposit", "1", "--yes", *sold.buyer(ledger),
    )  # fmt: skip
    assert "33 predictions" in said
    sold.server.stop()  # which redeems
    amounts, fees = parts_of(33 * PRICE)
    assert [now - had for now, had in zip(sold.paid(), before, strict=True)] == amounts
    holders = [
        one for task in sold.tasks
        for one in consilium.task_shares(task, rpc=sold.chain.node.url, address_book=sold.book).holdings
    ]  # fmt: skip
    gained = [now - had for now, had in zip(sold.claimable(), owed, strict=True)]
    for amount, part in zip(amounts, gained, strict=True):
        assert amount - len(holders) < part <= amount  # claims round down
    assert sum(amounts) + sum(fees) == 33 * PRICE
    assert sold.seller.token.balance(sold.seller.address) - held == sum(fees)
    sold.server.start()
    predicted = tmp_path / "predicted.csv"
    ran = CliRunner().invoke(
        app, ["predict", str(sold.ensemble), "--input", str(rows), "--output", str(predicted)], catch_exceptions=False
    )
    assert f"33 predictions of ensemble {sold.number - ENSEMBLES} of 2 models" in ran.output
    bought = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    own = [line.split(",")[1:] for line in predicted.read_text().splitlines()[1:]]
    assert [one[0] for one in bought] == [one[0] for one in own]
    for one, other in zip(bought, own, strict=True):
        assert [float(value) for value in one[1:]] == pytest.approx([float(value) for value in other[1:]], abs=1e-6)
    (receipt,) = (tmp_path / "r").iterdir()
    good = CliRunner().invoke(
        app, ["verify-receipt", str(receipt), "--model", str(sold.ensemble), "--address-book", str(sold.book)]
    )
    assert good.exit_code == 0, good.output
    assert good.output.count("holds") == 6
    for model in sold.models:
        wrong = CliRunner().invoke(
            app, ["verify-receipt", str(receipt), "--model", str(model), "--address-book", str(sold.book)]
        )
        assert wrong.exit_code == 1
        assert "model        FAILS" in wrong.output


def test_the_client_of_x402_pays_for_an_ensemble(sold: Sold) -> None:
    from x402 import x402ClientSync
    from x402.http.x402_http_client import x402HTTPClientSync
    from x402.mechanisms.evm.exact import ExactEvmScheme
    from x402.mechanisms.evm.signers import EthAccountSigner

    count = 101  # worth a transaction
    many = json.dumps({"rows": [{"age": age} for age in range(count)]}).encode()
    ledger, before = buyer_of(sold.chain, 2 * TOKEN), sold.paid()
    held = sold.seller.token.balance(sold.seller.address)
    client = x402ClientSync()
    client.set_spend_controls(False)  # it only knows the usual stablecoins
    client.register("eip155:*", ExactEvmScheme(signer=EthAccountSigner(ledger.channels.account)))
    http = x402HTTPClientSync(client)
    asked = httpx.post(f"{sold.server.url}/predict", content=many, headers={"content-type": JSON})
    headers, _ = http.handle_402_response(dict(asked.headers), asked.content, f"{sold.server.url}/predict")
    answer = httpx.post(
        f"{sold.server.url}/predict", content=many, headers={"content-type": JSON, **headers}, timeout=60
    )
    assert answer.status_code == 200, answer.text
    receipt, signature = wire.parse_receipt(wire.decoded(answer.headers[wire.RECEIPT]))
    findings = check_receipt(
        Bought(receipt, signature, many, answer.content), ledger.channels.messages, opened(sold.ensemble)
    )
    assert [one.holds for one in findings] == [True] * 6
    sold.server.stop()  # which empties the till
    sold.server.start()
    amounts, fees = parts_of(count * PRICE)
    assert ledger.token.balance(ledger.address) == 2 * TOKEN - count * PRICE
    assert sold.seller.token.balance(sold.seller.shares.till_of(sold.number, sold.seller.address)) == 0
    assert [now - had for now, had in zip(sold.paid(), before, strict=True)] == amounts
    assert sold.seller.token.balance(sold.seller.address) - held == sum(fees)


def test_a_server_that_runs_one_member_alone_is_found(sold: Sold) -> None:
    """It signs the ensemble's digest, and answers by member 1."""
    body = b'{"rows": [{"age": 50}, {"age": 80}]}'
    honest, messages = opened(sold.ensemble), sold.seller.channels.messages
    with Buyer(buyer_of(sold.chain, 5 * TOKEN), sold.server.url) as buyer:
        buyer.deposit(2 * TOKEN)
        bought = buyer.predict(body, 2)
    assert [one.holds for one in check_receipt(bought, messages, honest)] == [True] * 6
    for model in sold.models:
        answer = answer_of(opened(model), body)
        false = replace(bought.receipt, response=hashlib.sha256(answer).digest())
        signature = bytes(sold.seller.channels.account.sign_message(messages.receipt(false)).signature)
        findings = check_receipt(Bought(false, signature, body, answer), messages, honest)
        assert {one.name for one in findings if not one.holds} == {"predictions", "fingerprint"}


def test_only_the_chains_ensemble_is_served(sold: Sold, tmp_path: Path) -> None:
    known: dict[str, Any] = json.loads((sold.ensemble / ENSEMBLE).read_text())
    copy = tmp_path / "e"

    def served(number: int, folder: Path) -> None:
        consilium.Seller(sold.chain.node.url, sold.book).serve(number, folder, price=PRICE, book=tmp_path / "sales")

    shutil.copytree(sold.ensemble, copy)
    known["members"][0]["gain"] += 1
    (copy / ENSEMBLE).write_text(json.dumps(known))
    with raises_fault(EnsembleError, "EnsembleDiffers", rf"30002 of task {sold.tasks[0]}.*30001 of task"):
        served(sold.number, copy)
    known["members"][0]["gain"] -= 1
    (copy / ENSEMBLE).write_text(json.dumps(known | {"number": sold.number + 1}))
    with raises_fault(EnsembleError, "EnsembleUnknown"):
        served(sold.number + 1, copy)
    with raises_fault(SaleError, "ModelOfAnotherTask"):
        served(sold.tasks[0], sold.ensemble)
    with raises_fault(SaleError, "ModelOfAnotherTask"):
        served(sold.number, sold.models[0])
    deployment = sold.chain.deployment
    foreign = written(tmp_path / "f", sold.texts[0], task=(sold.tasks[0], deployment.chain_id, sold.seller.address))
    with raises_fault(EnsembleError, "MemberForeign"):
        consilium.export_ensemble(
            sold.number, [foreign], tmp_path / "g", rpc=sold.chain.node.url, address_book=sold.book
        )
    with raises_fault(EnsembleError, "EnsembleUnknown"):
        consilium.ensembles(sold.number + 1, rpc=sold.chain.node.url, address_book=sold.book)
    assert not (tmp_path / "sales").exists()
