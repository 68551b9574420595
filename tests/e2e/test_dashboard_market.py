"""The market and a model's page in Chromium: a real chain, index, API and server of predictions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser_driver import Wallet, Watched, chromium, context_of, fresh_account
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.money_spec import TOKEN
from consilium_operators.onnx_file import add_onnx
from consilium_server.api.app import build, make_service
from consilium_server.api.dashboard import built
from consilium_server.api.models import model_folder
from consilium_server.api.reading import open_engine
from consilium_server.config import ApiSettings
from consilium_server.index.indexer import Indexer
from dashboard_driver import NEEDED, connect, violations
from eth_account.signers.local import LocalAccount
from market_driver import Server
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect
from served_app import served
from test_shares import SALE, Ended, ended
from voter_driver import TASK, FiledTask

pytestmark = NEEDED
PRIVACY = "[privacy]\nepsilon = 6\nmax_grad_norm = 0.5\n"
TEXT = TASK + PRIVACY + SALE
PRICE = TOKEN // 100
LOOKS = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


@dataclass
class Market:
    sold: Ended
    server: Server
    indexer: Indexer
    url: str
    unsold: int

    @property
    def task(self) -> int:
        return self.sold.task.task

    @property
    def chain(self) -> LocalChain:
        return self.sold.chain

    def buyer(self, ether: int = 0) -> Wallet:
        """With tokens, and with this much ether."""
        account: LocalAccount = fresh_account()
        self.chain.treasury.token.transfer(account.address, 10 * TOKEN)
        wallet = Wallet(self.chain.node.url, account)
        if ether:
            wallet.ask("anvil_setBalance", account.address, hex(ether))
        return wallet

    def deposited(self, wallet: Wallet) -> int:
        seller = self.chain.treasury
        return seller.channels.of(self.task, seller.address, wallet.account.address).deposited


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def market(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    folder = tmp_path_factory.mktemp("market")
    sold = ended(local_chain, folder, TEXT)
    task, treasury = sold.task.task, local_chain.treasury
    sold.shares.mint(task, artifacts=[sold.artifacts])
    unsold = FiledTask(local_chain, folder, TASK).task
    server = Server(folder, local_chain, folder / "book.json", task, TEXT).start()
    treasury.channels.offer(task, PRICE, server.url)
    treasury.shares.pay(task, 25 * TOKEN)
    shutil.copytree(server.model, copy := model_folder(folder / "models", task))
    add_onnx(copy)
    engine = open_engine(f"sqlite:///{folder / 'index.sqlite'}")
    indexer = Indexer(Ledger(Connection(local_chain.node.url), local_chain.deployment), engine, sold.task.store)
    indexer.catch_up()
    given: dict[str, Any] = {
        "home": folder / "home", "database_url": f"sqlite:///{folder / 'index.sqlite'}", "artifacts": sold.artifacts,
        "deployment": folder / "book.json", "origin": "https://consilium.example", "models": folder / "models",
        "dashboard": built(), "public_chain_url": local_chain.node.url, "prediction_servers": [server.url],
    }  # fmt: skip
    try:
        with served(build(make_service(ApiSettings.model_validate(given), engine))) as url:
            yield Market(sold, server, indexer, url, unsold)
    finally:
        server.stop()
        engine.dispose()


@pytest.fixture
def watched(market: Market, browser: Browser) -> Iterator[Watched]:
    context = context_of(browser, width=1440)
    found = Watched(context.new_page(), allowed(market))
    yield found
    context.close()
    assert found.elsewhere == []
    assert found.errors == []


def allowed(market: Market) -> set[str]:
    return {url.removeprefix("http://") for url in (market.url, market.server.url, market.chain.node.url)}


def opened(market: Market, page: Page, path: str) -> None:
    page.goto(f"{market.url}/#{path}")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def at_desk(market: Market, page: Page, wallet: Wallet) -> None:
    wallet.install(page)
    opened(market, page, f"/models/{market.task}")
    page.get_by_role("button", name="Buy predictions…").click()
    connect(page)


def deposit(page: Page, tokens: str) -> None:
    page.get_by_label("Amount, in tokens").fill(tokens)
    page.get_by_role("button", name="Deposit", exact=True).click()


def check(page: Page, name: str) -> Locator:
    return page.locator(".steps li").filter(has_text=name)


@pytest.mark.parametrize(("width", "theme"), LOOKS)
@pytest.mark.parametrize("path", ["/market", "/models/{task}", "/models/{unsold}"])
def test_pages_fit_and_axe_finds_nothing(
    market: Market, browser: Browser, path: str, width: int, theme: str, tmp_path: Path
) -> None:
    context = context_of(browser, theme, width)
    found = Watched(context.new_page(), allowed(market))
    opened(market, found.page, path.format(task=market.task, unsold=market.unsold))
    found.page.wait_for_timeout(500)
    assert violations(found.page) == []
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    found.page.screenshot(path=tmp_path / "page.png", full_page=True)
    context.close()
    assert (found.elsewhere, found.errors) == ([], [])


def test_the_market_finds_models_and_shows_what_each_party_earned(market: Market, watched: Watched) -> None:
    page = watched.page
    opened(market, page, "/market")
    expect(page.get_by_role("row").filter(has_text="will fall ill")).to_contain_text("0.01")
    page.get_by_label("Text in a task file").fill("no such model")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No such model is for sale")).to_be_visible()
    page.get_by_label("Text in a task file").fill("fall ill")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=f"{market.task}.").click()
    expect(page.get_by_text("at most ε = 6")).to_be_visible()
    expect(page.get_by_text("20 % to the account that serves")).to_be_visible()
    earnings = page.get_by_role("table", name="Earnings of each party")
    expect(earnings.get_by_role("row").filter(has_text="Hospital")).to_contain_text("68.75 %")
    with page.expect_download() as download:
        page.get_by_role("link", name="Earnings as CSV").click()
    assert "68.75" not in download.value.path().read_text()
    assert download.value.path().read_text().count("\n") == 4
    opened(market, page, f"/models/{market.unsold}")
    expect(page.get_by_text("This model cannot be sold")).to_be_visible()
    expect(page.get_by_role("button", name="Buy predictions…")).to_have_count(0)
    opened(market, page, f"/tasks/{market.task}")
    page.get_by_role("link", name="The model’s page").click()
    expect(page.get_by_role("heading", name="Buy predictions")).to_be_visible()


def test_a_buyer_without_ether_buys_and_checks_a_prediction(market: Market, watched: Watched, tmp_path: Path) -> None:
    page, wallet = watched.page, market.buyer()
    page.set_viewport_size({"width": 390, "height": 844})
    at_desk(market, page, wallet)
    predict = page.get_by_role("button", name="Predict for 0.01")
    expect(predict).to_be_disabled()
    deposit(page, "2")
    expect(page.get_by_text("The deposit is on the chain")).to_be_visible()
    assert market.deposited(wallet) == 2 * TOKEN
    page.get_by_label("age (").fill("61.5")
    predict.click()
    expect(page.locator(".shares .best")).to_have_count(1)
    for name in ("Signed by the server", "this request", "this answer", "my payment", "record has"):
        expect(check(page, name)).to_contain_text("holds")
    page.get_by_role("button", name="Run the model").click()
    expect(check(page, "gives these predictions")).to_contain_text("holds", timeout=60_000)
    expect(page.locator("[data-verdict=holds]")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=tmp_path / "bought.png", full_page=True)

    with page.expect_download() as download:
        page.get_by_role("link", name="Download the receipt").click()
    receipt = json.loads(download.value.path().read_text())
    assert json.loads(receipt["request"]) == {"rows": [{"age": 61.5}]}

    rows: FilePayload = {"name": "r.csv", "mimeType": "text/csv", "buffer": b"age\n20\n\n70\n?\n"}
    page.get_by_label("Fill in from a table").set_input_files(rows)
    page.get_by_role("button", name="Predict all 3 rows for 0.03").click()
    expect(page.get_by_role("table", name="Predictions", exact=True).get_by_role("row")).to_have_count(4)
    expect(check(page, "my payment")).to_contain_text("holds")
    expect(page.get_by_text("1.96")).to_be_visible()  # of two tokens

    page.get_by_role("button", name="Check a receipt…").click()
    for field, name in (("request", "Is for this request"), ("response", "Is for this answer")):
        receipt_file(page, receipt | {field: receipt[field].replace("6", "7")})
        expect(page.locator("[data-verdict=fails]")).to_be_visible()
        failing = check(page, name).filter(has_text="FAILS")
        expect(failing).to_be_visible()
        assert is_red(failing)
    receipt_file(page, receipt | {"receipt": receipt["receipt"] | {"amount": "1"}})
    expect(check(page, "Signed by the server").filter(has_text="FAILS")).to_be_visible()
    receipt_file(page, {"receipt": {}})
    expect(page.get_by_text("not a receipt of predictions")).to_be_visible()


def receipt_file(page: Page, content: dict[str, Any]) -> None:
    page.get_by_label("Receipt, a JSON file").set_input_files(
        {"name": "receipt.json", "mimeType": "application/json", "buffer": json.dumps(content).encode()}
    )


def is_red(item: Locator) -> bool:
    red, green, _ = item.locator(".state").evaluate(
        "one => getComputedStyle(one).color.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    )
    return bool(red > 2 * green)


def test_a_buyer_deposits_by_its_own_transactions(market: Market, watched: Watched) -> None:
    page, wallet = watched.page, market.buyer(ether=10**18)
    at_desk(market, page, wallet)
    page.get_by_label("By two transactions").check()
    deposit(page, "0.05")
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert (market.deposited(wallet), len(wallet.sent)) == (TOKEN // 20, 2)
    page.get_by_label("age (").fill("40")
    page.get_by_role("button", name="Predict for 0.01").click()
    expect(check(page, "my payment")).to_contain_text("holds")


def test_a_server_that_lies_about_a_debt_gets_nothing(market: Market, watched: Watched) -> None:
    page, wallet = watched.page, market.buyer()
    page.context.route(
        "**/channels/*",
        lambda route: route.fulfill(
            json={"sold": str(TOKEN), "expiresAt": "9999999999", "signature": "0x" + "11" * 65},
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    at_desk(market, page, wallet)
    expect(page.get_by_role("alert").filter(has_text="without a voucher of yours")).to_be_visible()
    expect(page.get_by_role("button", name="Predict for 0.01")).to_have_count(0)


def test_a_prediction_that_is_changed_on_its_way_turns_red(market: Market, watched: Watched) -> None:
    page, wallet = watched.page, market.buyer()

    def changed(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("no", "yes", 1))

    page.context.route("**/predict", changed)
    at_desk(market, page, wallet)
    deposit(page, "1")
    expect(page.get_by_text("The deposit is on the chain")).to_be_visible()
    page.get_by_label("age (").fill("50")
    page.get_by_role("button", name="Predict for 0.01").click()
    expect(check(page, "Is for this answer")).to_contain_text("FAILS")
    expect(page.get_by_role("alert").filter(has_text="does not hold")).to_be_visible()


def test_a_server_that_the_operator_does_not_name_is_bought_from_by_command(market: Market, watched: Watched) -> None:
    page, wallet = watched.page, market.buyer()
    wallet.install(page)
    page.route("**/config.json", lambda route: route.fulfill(json=route.fetch().json() | {"prediction_servers": []}))
    opened(market, page, f"/models/{market.task}")
    page.get_by_role("button", name="Buy predictions…").click()
    expect(page.get_by_text("does not let its pages connect to")).to_be_visible()
    expect(page.get_by_text(f"consilium buy {market.server.url}")).to_be_visible()


def test_a_lost_answer_is_not_paid_twice(market: Market, watched: Watched) -> None:
    page, wallet = watched.page, market.buyer()
    lost: list[str] = []

    def lose(route: Any) -> None:
        route.fetch()  # the server takes the voucher
        lost.append(route.request.headers["payment-signature"])
        route.abort()

    at_desk(market, page, wallet)
    deposit(page, "1")
    expect(page.get_by_text("The deposit is on the chain")).to_be_visible()
    page.context.route("**/predict", lose)
    page.get_by_label("age (").fill("50")
    predict = page.get_by_role("button", name="Predict for 0.01")
    predict.click()
    expect(page.get_by_role("alert").filter(has_text="Nothing is paid twice")).to_be_visible()
    expect(page.get_by_text("0.99", exact=True)).to_be_visible()  # left
    page.context.unroute("**/predict")
    asked = wallet.asked.count("eth_signTypedData_v4")
    predict.click()
    expect(check(page, "my payment")).to_contain_text("holds")
    assert (len(set(lost)), len(lost), wallet.asked.count("eth_signTypedData_v4")) == (1, 3, asked)
    expect(page.get_by_text("0.99", exact=True)).to_be_visible()
    watched.errors[:] = [one for one in watched.errors if "ERR_FAILED" not in one]
