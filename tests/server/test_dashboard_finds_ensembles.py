"""Ensembles in the dashboard: in the search, on a member's pages, and their sales by day. Names are hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_driver import Watched, chromium, context_of
from consilium_chain.ledger.ensembles import ENSEMBLES
from consilium_chain.ledger.structs import Phase
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.api.dashboard import built
from dashboard_driver import NEEDED, go, violations
from ensemble_driver import SALE
from ensemble_rows import form, sell
from indexed_network import DAY, TASK_FILE, IndexedNetwork, app_of, served
from playwright.sync_api import Browser, Page, expect

pytestmark = NEEDED
MARKUP = "<img src=x onerror=alert(1)><h1>big</h1>"
LONG = "W" * 60
MANY = 60  # more than two pages
OF_ALL = MANY + 1


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> IndexedNetwork:
    """Task 1 is in all ensembles, the others are in the latest one."""
    network = IndexedNetwork(tmp_path_factory.mktemp("network"))
    names = ["heart failure", MARKUP, LONG, "\u05d0\u05d1\u05d2 1"]
    with network.mined():
        for task, name in enumerate(names, start=1):
            network.propose(task, TASK_FILE.replace("heart failure", name) + SALE.format(server=20, voters=15))
            network.phase(task, 3, Phase.ENDED)
        for order in range(1, MANY + 1):
            form(network, order, {1: 30_000, 1 + order % 3 + 1: 10_000})
        form(network, OF_ALL, {1: 60_000, 2: 20_000, 3: 15_000, 4: 5_000})
    for day, (sales, predictions) in enumerate(((1, 10), (2, 10), (3, 1_200)), start=1):
        with network.mined():
            network.rows[0].time += day * DAY
            sell(network, ENSEMBLES + OF_ALL, predictions * TOKEN // 100, sales, predictions)
    return network


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(params=[390, 1280])
def watched(request: pytest.FixtureRequest, network: IndexedNetwork, browser: Browser) -> Iterator[Watched]:
    with served(app_of(network, dashboard=str(built()))) as url:
        context = context_of(browser, width=request.param)
        found = Watched(context.new_page(), {url.removeprefix("http://")})
        found.page.goto(f"{url}/market")  # as people type it
        yield found
        context.close()
    assert found.elsewhere == []
    assert found.errors == []


def looks_right(page: Page, picture: Path) -> None:
    page.screenshot(path=picture, full_page=True)
    assert page.locator("main img, main h1 h1, td h1, li h1").count() == 0
    assert violations(page) == []
    size = page.viewport_size
    assert size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_the_search_leads_to_an_ensemble(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    go(page, "/search")
    box, results = page.get_by_role("searchbox"), page.locator(".hits li")
    for text, name in (("<IMG", MARKUP), (LONG, LONG)):
        box.fill(text)
        expect(results.nth(1)).to_have_text(f"Ensemble {OF_ALL} with {name}")
        looks_right(page, tmp_path / f"{len(name)}.png")
    box.fill(f"Ensemble {OF_ALL + 1}")
    expect(page.get_by_text("Nothing was found.")).to_be_visible()
    for text in (str(OF_ALL), f"#{OF_ALL}", f"Ensemble {OF_ALL}", str(ENSEMBLES + OF_ALL)):
        box.fill(text)
        expect(results).to_have_text([f"Ensemble {OF_ALL} with heart failure"])
    results.get_by_role("link").click()
    expect(page.get_by_role("heading", name=f"Ensemble {OF_ALL}", exact=True)).to_be_visible()


def test_a_members_pages_have_all_its_ensembles(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    for path in ("/models/1", "/tasks/1"):
        go(page, path)
        table = page.get_by_role("table", name="Ensembles with this model")
        first = table.get_by_role("row").nth(1)
        expect(first).to_contain_text(f"Ensemble {OF_ALL}")
        expect(first.locator("[data-label=Weight]")).to_have_text("60.00 %")
        expect(first.locator("[data-label='Predictions sold']")).to_have_text("1,200")
        expect(table.get_by_role("row").nth(2).locator("[data-label=Weight]")).to_have_text("75.00 %")
        looks_right(page, tmp_path / f"{path[1:6]}.png")
        card = page.locator(".card").filter(has=table)
        links = table.get_by_role("link")
        while (shown := links.count()) < OF_ALL:
            card.get_by_role("button", name="Show more").click()
            expect(links).not_to_have_count(shown)
        assert links.all_text_contents() == [f"Ensemble {order}" for order in range(OF_ALL, 0, -1)]
    go(page, "/models/4")
    expect(first.locator("[data-label=Weight]")).to_have_text("5.00 %")
    table.get_by_role("link", name=f"Ensemble {OF_ALL}", exact=True).click()
    expect(page.get_by_role("heading", name=f"Ensemble {OF_ALL}", exact=True)).to_be_visible()


def test_an_ensembles_page_shows_its_sales_by_day(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    go(page, f"/ensembles/{ENSEMBLES + OF_ALL}")
    chart = page.get_by_role("figure", name="Predictions sold by day")
    chart.get_by_text("Show as a table").click()
    expect(chart.locator("td[data-label='Predictions sold']")).to_have_text(["10", "10", "1,200"])
    looks_right(page, tmp_path / "ensemble.png")
    go(page, f"/ensembles/{ENSEMBLES + 1}")
    expect(page.get_by_role("table", name="Members")).to_be_visible()
    expect(page.get_by_text("Predictions sold by day")).to_have_count(0)
