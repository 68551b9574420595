"""Watching in a real browser: its notifications, and an address that the server tells."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_driver import Wallet, Watched, chromium, context_of, fresh_account
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.notify import MailServer, Reach
from consilium_server.api.dashboard import built
from consilium_server.telling.delivery import Teller
from consilium_server.telling.tables import ChannelRow, WatchRow
from dashboard_driver import NEEDED, connect, violations
from indexed_network import HOSPITALS, ORIGIN, IndexedNetwork, app_of, populated, served
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select
from sqlalchemy.orm import Session
from told_servers import mails

pytestmark = NEEDED
SEEN = """
window.shown = []
window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.shown.push([title, options.body]) }
}
"""


@pytest.fixture
def network(tmp_path: Path) -> Iterator[IndexedNetwork]:
    network = populated(tmp_path)
    yield network
    network.engine.dispose()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def watched(network: IndexedNetwork, browser: Browser) -> Iterator[Watched]:
    with served(app_of(network, dashboard=str(built()))) as url:
        context = context_of(browser)
        context.grant_permissions(["notifications"])
        context.add_init_script(SEEN)
        found = Watched(context.new_page(), {url.removeprefix("http://")})
        found.page.goto(f"{url}/#/tasks/2")
        yield found
        context.close()
    assert found.elsewhere == []
    assert found.errors == []


def region(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def slash(network: IndexedNetwork, node: str, task: int) -> None:
    with network.mined():
        network.pay(task, 1, node, Role.HOSPITAL, "slash", TOKEN)


def test_what_is_watched_is_shown_as_a_notification(network: IndexedNetwork, watched: Watched) -> None:
    page, (other, node, *_) = watched.page, HOSPITALS
    watch = page.get_by_role("button", name="Watch", exact=True)
    watch.click()
    page.goto(page.url.partition("#")[0] + f"#/nodes/{node}/hospital")
    watch.click()
    page.get_by_role("link", name="Being told").click()
    listed = region(page, "What you watch")
    expect(listed.get_by_role("listitem")).to_have_count(2)
    slash(network, node, 1)  # before it is asked for
    expect(page.get_by_text(f"Complete up to block {network.block}")).to_be_visible()
    page.get_by_role("button", name="Show notifications").click()
    expect(page.get_by_text("Notifications are shown.")).to_be_visible()
    assert violations(page) == []
    slash(network, other, 1)  # not watched
    slash(network, other, 2)
    slash(network, node, 1)
    page.wait_for_function("() => window.shown.length === 3")
    text = "lost 1.00 tokens: its cohort made the model worse"
    first, *found = page.evaluate("window.shown")
    assert first == ["Being told", "Notifications are shown."]
    assert sorted(title for title, _ in found) == ["Round 1 of task 1", "Round 1 of task 2"]
    assert all(text in body for _, body in found)
    listed.get_by_role("button", name="Remove 2").click()
    page.reload()
    expect(listed.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("status").get_by_text("live")).to_be_visible()
    slash(network, other, 2)
    slash(network, node, 1)
    page.wait_for_function("() => window.shown.length === 1")
    assert page.evaluate("window.shown")[0][0] == "Round 1 of task 1"


def test_an_address_is_set_and_confirmed(
    network: IndexedNetwork, watched: Watched, local_chain: LocalChain, tmp_path: Path
) -> None:
    page, base = watched.page, watched.page.url.partition("#")[0]
    wallet = Wallet(local_chain.node.url, fresh_account())
    wallet.install(page)
    page.get_by_role("button", name="Watch", exact=True).click()
    page.goto(f"{base}#/told")
    page.reload()
    away = region(page, "While you are away")
    away.get_by_role("button", name="Set a webhook").click()
    connect(page)
    away.get_by_role("button", name="Sign in").click()
    expect(away.get_by_text("This server sends nothing")).to_be_visible()
    with mails(tmp_path) as server:
        sender = MailServer("localhost", server.port, False, "told@consilium.example.org")
        teller = Teller(network.engine, ORIGIN, 0, Reach(), sender, 100)
        teller.run(time.time())
        away.get_by_role("button", name="Send this browser’s list").click()
        expect(away.get_by_text("The server has the same list.")).to_be_visible()
        form = away.get_by_role("form", name="E-mail")
        form.get_by_label("E-mail").fill("ward@hospital.example.org")
        form.get_by_role("button", name="Set", exact=True).click()
        expect(form.get_by_text("waits until the link in the mail is opened")).to_be_visible()
        hook = away.get_by_role("form", name="Webhook")
        hook.get_by_label("Webhook").fill("https://127.0.0.1/")
        hook.get_by_role("button", name="Set", exact=True).click()
        expect(away.get_by_role("alert")).to_contain_text("it is not an address")
        watched.errors.clear()  # the browser logs the refusal
        hook.get_by_label("Webhook").fill("https://hook.example.org/")
        hook.get_by_role("button", name="Set", exact=True).click()
        expect(away.get_by_text("shown once")).to_be_visible()
        assert violations(page) == []
        hook.get_by_role("button", name="Forget").click()
        expect(hook.get_by_role("button", name="Forget")).to_have_count(0)
        teller.run(time.time())
        link = re.search(r"/#/told\?confirm=[0-9a-f]{64}", server.text())
    assert link is not None
    page.goto(base + link[0][1:])
    page.get_by_role("button", name="Confirm the e-mail address").click()
    expect(page.get_by_text("The address is confirmed.")).to_be_visible()
    with Session(network.engine) as db:
        (channel,) = db.scalars(select(ChannelRow).where(ChannelRow.state != "none")).all()  # one was forgotten
        (watch,) = db.scalars(select(WatchRow)).all()
    assert (channel.account, channel.address, channel.state) == (
        wallet.account.address, "ward@hospital.example.org", "confirmed",
    )  # fmt: skip
    assert (watch.tasks, watch.nodes) == ([2], [])
