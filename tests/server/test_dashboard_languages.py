"""The dashboard in the language of its reader's browser, and in another one that the reader chose."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from browser_driver import Watched, chromium
from consilium_chain.ledger.structs import Role
from consilium_server.api.dashboard import built
from dashboard_driver import NEEDED, violations
from indexed_network import DELEGATORS, HOSPITALS, app_of, populated, served
from playwright.sync_api import Page, Request, expect

pytestmark = NEEDED
LANGUAGES = ("en", "de", "es", "fr")
# Programs of the languages that the page is not in.
OTHERS = """[...document.querySelectorAll('template')].flatMap((one) =>
    [...one.content.querySelectorAll('script')].map((script) => script.getAttribute('src')))"""


def reads(page: Page, language: str, *, heading: str) -> None:
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    expect(page.locator("td").get_by_text(re.compile(r"^1\.23\d\.\d{3},00"))).to_be_visible()


def test_a_page_is_in_its_readers_language_until_another_is_chosen(tmp_path: Path) -> None:
    network = populated(tmp_path)
    with network.mined():
        network.delegate(HOSPITALS[0], HOSPITALS[0], Role.HOSPITAL, 1_234_567 * 10**18)
    with served(app_of(network, dashboard=str(built()))) as url, chromium() as browser:
        context = browser.new_context(locale="de-DE", viewport={"width": 390, "height": 900})
        found = Watched(context.new_page(), {url.removeprefix("http://")})
        page, asked = found.page, list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{url}/#/nodes")
        reads(page, "de", heading="Nodes")
        expect(page.get_by_role("link", name="Aufgaben")).to_be_visible()
        assert violations(page) == []
        others = page.evaluate(OTHERS)
        assert len(others) > 1
        assert not [one for one in others if url + one[1:] in asked]
        page.get_by_role("combobox", name="Sprache").select_option("Español")
        for _ in range(2):
            reads(page, "es", heading="Nodos")
            expect(page.get_by_role("link", name="Tareas")).to_be_visible()
            page.reload()
        assert page.url == f"{url}/#/nodes"
        context.close()
    assert found.errors == []


def listened(page: Page) -> list[Request]:
    """The page's requests from now on."""
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))
    return sent


def test_a_page_and_its_first_question_come_beside_the_program(tmp_path: Path) -> None:
    """The page asks for the same as was loaded ahead: a question in other words would come twice."""
    network = populated(tmp_path)
    node = f"/nodes/{HOSPITALS[0]}/hospital"
    with served(app_of(network, dashboard=str(built()))) as url, chromium() as browser:
        for path, questions in {
            "/": ["v1/tasks?sort=-task&limit=25"], "/tasks": ["v1/tasks?limit=25&sort=-task"],
            "/tasks/1": ["v1/tasks/1", "v1/tasks/1/rounds?limit=200"],
            "/tasks/1/rounds/1": ["v1/tasks/1/rounds/1", "v1/tasks/1"],
            "/nodes": ["v1/nodes?limit=50&role=hospital&sort=-yield&days=30"], node: [f"v1{node}"],
            f"/accounts/{DELEGATORS[0]}": [f"v1/delegations?delegator={DELEGATORS[0]}&limit=50"],
            "/propose": ["config.json", "v1/task-schema"], "/wallet": ["config.json"],
        }.items():  # fmt: skip
            page = browser.new_page()
            sent = listened(page)
            page.goto(f"{url}/#{path}")
            expect(page.locator("main h1")).to_be_visible()
            expect(page.locator("main .loading")).to_have_count(0)
            page.wait_for_load_state("load")
            asked = [one.url.removeprefix(url) for one in sent]
            ahead = [f"/{one}" for one in (*questions, "v1/network")]
            assert {one: asked.count(one) for one in ahead} == dict.fromkeys(ahead, 1), path
            entry = next(at for at, one in enumerate(asked) if "/assets/index-" in one and one.endswith(".js"))
            assert all(asked.index(one) < entry for one in ahead), path
            if path != "/":  # whose program is the first one's
                (shared,) = [at for at, one in enumerate(asked) if "/assets/shared-" in one]
                assert shared < entry + 6, path
            page.close()


@pytest.mark.parametrize("wallet", [None, "lone", "announced"])
def test_the_wallets_library_comes_beside_the_program_and_for_wallets_alone(tmp_path: Path, wallet: str | None) -> None:
    given = {
        "lone": "window.ethereum = { request: async () => [], on() {}, removeListener() {} }",
        "announced": """window.addEventListener('eip6963:requestProvider', () =>
            window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({
                info: { uuid: '1', name: 'A wallet', icon: '', rdns: 'example.wallet' },
                provider: { request: async () => [], on() {}, removeListener() {} } }) })))""",
    }
    page_file = (Path(str(built())) / "index.html").read_text()
    own = re.search(r'<template lang="en">(.*?)</template>', page_file, re.DOTALL)
    assert own is not None
    library = re.findall(r'\(.*portfolio.*\)\$" data-wallet .*href="\.(.+)"', own[1])
    assert len(library) > 5
    with served(app_of(populated(tmp_path), dashboard=str(built()))) as url, chromium() as browser:
        page = browser.new_page()
        if wallet is not None:
            page.add_init_script(given[wallet])
        sent = listened(page)
        page.goto(f"{url}/#/portfolio")
        expect(page.get_by_role("heading", name="Connect a wallet")).to_be_visible()
        page.wait_for_load_state("load")
        asked = [one.url.removeprefix(url) for one in sent]
        assert [one for one in library if one in asked] == ([] if wallet is None else library)
        expect(page.locator("head link[data-wallet]")).to_have_count(0 if wallet is None else len(library))
        page.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_programs_of_a_first_load_are_small(language: str) -> None:
    """Compressed: 80 kB in each language."""
    folder = Path(str(built()))
    own = re.search(rf'<template lang="{language}">(.*?)</template>', (folder / "index.html").read_text(), re.DOTALL)
    assert own is not None
    of_pages = [line for line in own[1].splitlines() if "data-for" in line]
    assert len(of_pages) > 10
    programs = set(re.findall(r"assets/[\w-]+\.js", own[1])) - set(re.findall(r"assets/[\w-]+\.js", "".join(of_pages)))
    assert len(programs) > 1
    assert sum(len(gzip.compress((folder / one).read_bytes())) for one in programs) <= 80_000
