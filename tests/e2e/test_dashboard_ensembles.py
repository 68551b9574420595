"""Ensembles in Chromium: found in the market, bought from, and checked, on a real chain and by a real server."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser_driver import Wallet, Watched, chromium, context_of, fresh_account
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ensembles import ENSEMBLES
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
from playwright.sync_api import Locator, Page, expect
from served_app import served
from test_ensembles_sold import PRICE, Sold
from voter_driver import TASK

pytestmark = NEEDED
DAY = 86_400  # seconds
NAME = str(tomllib.loads(TASK)["name"])  # of both members


@dataclass
class Shown:
    sold: Sold
    indexer: Indexer
    url: str


@pytest.fixture(scope="module")
def shown(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("shown")
    sold = Sold(local_chain, folder)
    local_chain.treasury.channels.offer(sold.number, PRICE, sold.server.url)
    for task, model in zip(sold.tasks, sold.models, strict=True):
        shutil.copytree(model, copy := model_folder(folder / "kept", task))
        add_onnx(copy)
    database = f"sqlite:///{folder / 'index.sqlite'}"
    engine = open_engine(database)
    reader = Ledger(Connection(local_chain.node.url), local_chain.deployment)
    indexer = Indexer(reader, engine, ArtifactStore(Path(sold.artifacts)))
    indexer.catch_up()
    given: dict[str, Any] = {
        "home": folder / "home", "database_url": database, "artifacts": sold.artifacts, "deployment": sold.book,
        "origin": "https://consilium.example", "models": folder / "kept", "dashboard": built(),
        "public_chain_url": local_chain.node.url, "prediction_servers": [sold.server.url],
    }  # fmt: skip
    try:
        with served(build(make_service(ApiSettings.model_validate(given), engine))) as url:
            yield Shown(sold, indexer, url)
    finally:
        sold.server.stop()
        engine.dispose()


@pytest.fixture
def watched(shown: Shown) -> Iterator[Watched]:
    urls = (shown.url, shown.sold.server.url, shown.sold.chain.node.url)
    with chromium() as browser:
        context = context_of(browser, width=390)
        found = Watched(context.new_page(), {url.removeprefix("http://") for url in urls})
        yield found
        context.close()
    assert found.elsewhere == []
    assert found.errors == []


def opened(shown: Shown, page: Page, path: str) -> None:
    page.goto(f"{shown.url}/#{path}")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def fits(page: Page) -> None:
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def check(page: Page, name: str) -> Locator:
    return page.locator(".steps li").filter(has_text=name)


def test_a_buyer_finds_an_ensemble_buys_and_checks_a_prediction(shown: Shown, watched: Watched, tmp_path: Path) -> None:
    page, sold, wallet = watched.page, shown.sold, Wallet(shown.sold.chain.node.url, fresh_account())
    sold.seller.token.transfer(wallet.account.address, 10 * TOKEN)
    wallet.install(page)
    opened(shown, page, "/market")
    own = sold.number - ENSEMBLES  # other files' ensembles may be on the same chain
    link = page.get_by_role("link", name=f"Ensemble {own}", exact=True)
    row = page.get_by_role("table", name="Ensembles").get_by_role("row").filter(has=link)
    for task, weight in zip(sold.tasks, ("75.00", "25.00"), strict=True):
        expect(row).to_contain_text(f"{task} ({weight}")
    fits(page)
    page.screenshot(path=tmp_path / "market.png", full_page=True)
    link.click()
    expect(page.get_by_role("heading", name=f"Ensemble {own}", exact=True)).to_be_visible()
    members = page.get_by_role("table", name="Members")
    expect(members.get_by_role("row").filter(has_text="75.00 %")).to_contain_text(f"{sold.tasks[0]}.")
    expect(page.get_by_role("table", name="Offers").get_by_role("row")).to_have_count(2)

    page.get_by_role("button", name="Buy predictions…").click()
    connect(page)
    page.get_by_label("Amount, in tokens").fill("2")
    page.get_by_role("button", name="Deposit", exact=True).click()
    expect(page.get_by_text("The deposit is on the chain")).to_be_visible()
    page.get_by_label("age (").fill("61.5")
    page.get_by_role("button", name="Predict for 0.01").click()
    for name in ("Signed by the server", "this request", "this answer", "my payment", "record has"):
        expect(check(page, name)).to_contain_text("holds")
    page.get_by_role("button", name="Run the model").click()
    expect(check(page, "gives these predictions")).to_contain_text("holds", timeout=60_000)
    expect(page.locator("[data-verdict=holds]")).to_be_visible()
    fits(page)
    page.screenshot(path=tmp_path / "ensemble.png", full_page=True)

    sold.server.stop()  # it redeems
    shown.indexer.catch_up()
    opened(shown, page, "/market")
    page.reload()
    sales = page.locator("tr").filter(has=link).locator("[data-label='Predictions sold']")
    expect(sales).to_have_text("1")
    with page.expect_download() as download:
        page.get_by_role("link", name="All ensembles as CSV").click()
    assert f",{sold.tasks[0]} {sold.tasks[1]}," in download.value.path().read_text()


def test_a_members_name_leads_to_sales_by_day_and_back_to_the_member(
    shown: Shown, watched: Watched, tmp_path: Path
) -> None:
    page, sold, (first, _) = watched.page, shown.sold, shown.sold.tasks
    shares, seller = sold.seller.shares, sold.seller
    for _ in range(2):
        sold.chain.pass_time(DAY)
        seller.token.transfer(shares.till_of(sold.number, seller.address), 3 * PRICE)
        shares.split(sold.number, seller.address)
    shown.indexer.catch_up()
    opened(shown, page, "/search")
    link = page.get_by_role("link", name=f"Ensemble {sold.number - ENSEMBLES}", exact=True)
    for text in (str(sold.number), NAME):
        page.get_by_role("searchbox").fill(text)
        expect(page.locator(".hits li").filter(has=link)).to_contain_text(f"with {NAME}")
    fits(page)
    link.click()

    chart = page.get_by_role("figure", name="Predictions sold by day")
    chart.get_by_text("Show as a table").click()
    *_, before, after = chart.locator("td[data-label='Predictions sold']").all_inner_texts()
    assert int(after) - int(before) == 3
    fits(page)
    page.screenshot(path=tmp_path / "sales.png", full_page=True)

    page.get_by_role("table", name="Members").get_by_role("link").first.click()
    own = page.get_by_role("table", name="Ensembles with this model").get_by_role("row").filter(has=link)
    expect(own.locator("[data-label=Weight]")).to_have_text("75.00 %")
    expect(page).to_have_url(f"{shown.url}/#/models/{first}")
    expect(page.locator(".loading")).to_have_count(0)
    expect(page.get_by_text("Predictions sold by day")).to_have_count(0)  # each was the ensemble's
    fits(page)
    page.screenshot(path=tmp_path / "member.png", full_page=True)
    link.click()
    expect(page).to_have_url(f"{shown.url}/#/ensembles/{sold.number}")


def test_an_unknown_ensemble_has_no_page(shown: Shown, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{shown.url}/#/ensembles/{shown.sold.number + 9}")
    expect(page.get_by_role("alert")).to_contain_text("the index has no ensemble")
    watched.errors[:] = [one for one in watched.errors if "404" not in one]
