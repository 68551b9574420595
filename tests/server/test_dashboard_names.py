"""Names of strangers in a real browser: signed ones beside their addresses, hostile ones in one line."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from browser_driver import Watched, chromium, context_of
from consilium_chain.ledger.structs import Role
from consilium_chain.profiles import Profile, sign_profile
from consilium_server.api.dashboard import built
from consilium_server.database.engine import writing
from consilium_server.database.tables import VerifiedNameRow
from consilium_server.index import store
from dashboard_driver import NEEDED, go, violations
from eth_account import Account
from fastapi.testclient import TestClient
from indexed_network import HOSPITALS, TASK_FILE, IndexedNetwork, app_of, populated, served
from playwright.sync_api import Browser, Page, Route, expect

pytestmark = NEEDED
NODE = Account.create()
HOSTILE = {
    "long": "x" * 10_000,
    "no width": "a\u200b" * 500 + "b",
    "turned round": "\u202eevil\u2067 name",
    "a tower": "a" + "\u0301" * 2_000,
    "markup": "<img src=x onerror=alert(1)><h1>big</h1>",
    "lines": "a\n\n\n\n\u2028b",
}
PROFILE = Profile(name="Klinikum Größenwahn", institution="Universität", country="DE", site="https://x.example.org/a")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> IndexedNetwork:
    network = populated(tmp_path_factory.mktemp("network"))
    with network.mined():
        network.register(NODE.address, Role.HOSPITAL)
        for number, name in enumerate(HOSTILE.values(), start=5):  # of an index of before names were checked
            network.propose(number, TASK_FILE.replace("heart failure", name.replace("\n", "\\n")))
    signed = sign_profile(
        PROFILE, NODE, network.deployment.chain_id, network.deployment.staking, int(time.time())
    ).model_dump()
    with TestClient(app_of(network)) as client:
        assert client.put(f"/v1/profiles/{NODE.address}", json=signed).status_code == 200
    return network


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def watched(network: IndexedNetwork, browser: Browser) -> Iterator[Watched]:
    settings = {"dashboard": str(built()), "explorer": "https://explorer.example.org/"}
    with served(app_of(network, **settings)) as url:
        context = context_of(browser)
        found = Watched(context.new_page(), {url.removeprefix("http://")})
        found.page.goto(f"{url}/#/tasks")
        yield found
        context.close()
    assert found.elsewhere == []
    assert found.errors == []


def unsigned(account: str, name: str) -> dict[str, object]:
    """A profile as a hostile server sends it."""
    texts = dict.fromkeys(("institution", "country", "site", "contact"), "")
    return {"account": account, "name": name, **texts, "updated_at": 1, "signature": "0x"}


def heights(page: Page, link: str) -> list[float]:
    """Heights of the rows without this link, in pixels."""
    rows = "link => [...document.querySelectorAll('tbody tr')].filter(one => !one.querySelector(`[href*=\"${link}\"]`))"
    return list(page.evaluate(f"{rows}.map(one => one.getBoundingClientRect().height)", link))


def test_hostile_names_leave_all_other_rows_as_they_are(watched: Watched) -> None:
    """Also if a server sends such a name: the first task's, and the first node's. On a telephone and on a desk."""
    page, first = watched.page, HOSPITALS[0]
    texts = iter(["a plain name", *HOSTILE.values()] * 2)
    sent = ""

    def tasks(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        body["items"][0]["name"] = sent
        route.fulfill(response=answer, json=body)

    def profiles(route: Route) -> None:
        verified = {"account": first, "kind": "domain", "name": sent, "verified_at": 1}
        route.fulfill(json={"items": [unsigned(first, sent)], "names": [verified]})

    page.route("**/v1/tasks?**", tasks)
    page.route("**/v1/profiles?**", profiles)
    for path, name, link in (
        ("/tasks", "td .clip", f"tasks/{4 + len(HOSTILE)}"),
        ("/nodes?role=hospital", "td .account .clip", first),
    ):
        found: dict[int, list[list[float]]] = {390: [], 1440: []}
        for _ in range(1 + len(HOSTILE)):
            sent = next(texts)
            go(page, path)
            page.reload()
            expect(page.locator(name).first).to_be_attached()
            assert page.locator("td img, td h1").count() == 0
            for width, of_rows in found.items():
                page.set_viewport_size({"width": width, "height": 900})
                of_rows.append(heights(page, link))
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                row = page.locator("tbody tr").filter(has=page.locator(f"[href*='{link}']")).bounding_box()
                assert row is not None
                assert row["height"] < (350 if width == 390 else 60)
        for of_rows in found.values():
            assert len(of_rows[0]) > 4
            assert all(one == of_rows[0] for one in of_rows)


def test_hostile_names_in_the_index_are_not_shown(watched: Watched) -> None:
    for number, kind in enumerate(HOSTILE, start=5):
        if kind == "markup":  # which is text, and no element
            continue
        expect(watched.page.get_by_role("link", name=f"{number}. Task {number}", exact=True)).to_be_visible()


def test_a_name_stands_beside_its_address_and_comes_in_one_request(watched: Watched) -> None:
    page, asked = watched.page, list[str]()
    page.on("request", lambda request: asked.append(request.url))
    go(page, "/nodes?role=hospital")
    link = page.locator("td .account", has_text=PROFILE.name)
    expect(link).to_contain_text(NODE.address[:6])
    expect(link).to_have_attribute("title", NODE.address)
    (request,) = [url for url in asked if "/v1/profiles" in url and NODE.address.lower() in url]
    assert request.count("account=") == page.locator("td .account").count()
    link.click()
    card = page.get_by_role("region", name="Profile")
    expect(card).to_contain_text("Germany")
    expect(card).not_to_contain_text("Contact")
    expect(page.locator("code.wrap").first).to_have_text(NODE.address)
    expect(page.get_by_role("link", name="Explorer")).to_have_attribute(
        "href", f"https://explorer.example.org/address/{NODE.address}"
    )
    assert violations(page) == []


def test_a_verified_domain_has_a_mark_that_no_name_can_have(network: IndexedNetwork, watched: Watched) -> None:
    page, (imitator, other) = watched.page, HOSPITALS[1:3]
    imitated = f"{PROFILE.name} ✓ x.example.org"

    def profiles(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        body["items"].append(unsigned(imitator, imitated))
        route.fulfill(response=answer, json=body)

    now = int(time.time())
    rows = [
        VerifiedNameRow(NODE.address, "domain", "x.example.org", now, now),
        VerifiedNameRow(other, "ens", "klinikum.eth", now, now),
    ]
    with writing(network.engine) as connection:
        store.add(connection, rows)
    page.route("**/v1/profiles?**", profiles)
    go(page, "/nodes?role=hospital")
    marked = page.locator("td .account").filter(has=page.get_by_role("img", name="verifies"))
    expect(page.locator("td .account", has_text=imitated)).to_be_visible()
    expect(marked).to_have_count(2)
    expect(marked.filter(has=page.get_by_role("img", name="x.example.org verifies this address"))).to_contain_text(
        PROFILE.name
    )
    expect(marked.filter(has=page.get_by_role("img", name="ENS verifies klinikum.eth"))).to_contain_text("klinikum.eth")
    assert violations(page) == []
    marked.filter(has_text=PROFILE.name).click()
    card = page.get_by_role("region", name="Profile")
    expect(card).to_contain_text("Verified domain")
    expect(card).to_contain_text("✓ x.example.org")
    assert violations(page) == []


def test_an_address_is_copied(watched: Watched) -> None:
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go(page, f"/accounts/{NODE.address}")
    page.get_by_role("button", name=f"Copy {NODE.address}").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == NODE.address


def test_the_search_is_used_by_keyboard(watched: Watched) -> None:
    page = watched.page
    page.get_by_role("link", name="Search").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    field = page.get_by_role("searchbox")
    for typed, shown in (("größen", PROFILE.name), (NODE.address[:9], "Hospital"), ("heart", "1. heart failure")):
        field.fill(typed)
        expect(page.locator("main li").first).to_contain_text(shown)
        box = page.locator("main li a").last.bounding_box()
        assert box is not None
        assert box["width"] > 80  # neither clipped nor in a narrow column
        assert violations(page) == []
    field.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("heart failure")
    expect(page.locator(".head")).to_contain_text("Operator")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    field.fill("nothing of this kind")
    expect(page.get_by_text("Nothing was found.")).to_be_visible()
