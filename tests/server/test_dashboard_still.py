"""Pages stand still while their parts come: nothing moves away under a finger, in whatever order answers come."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from browser_driver import chromium
from consilium_server.api.dashboard import built
from dashboard_driver import NEEDED
from indexed_network import DELEGATORS, HOSPITALS, OPERATOR, app_of, populated, served
from playwright.sync_api import Browser, expect

pytestmark = NEEDED
PATHS = (
    "/", "/tasks", "/tasks/1", "/tasks/1/rounds/1", "/nodes", f"/nodes/{HOSPITALS[0]}/hospital",
    f"/accounts/{DELEGATORS[0]}", f"/accounts/{OPERATOR}", "/portfolio", "/desk", "/wallet", "/propose", "/search",
    "/told",
)  # fmt: skip
MOST = 0.05  # cumulative layout shift (web.dev/articles/cls); above 0.1 a page is rated as moving
SLOWEST = 0.6  # seconds of an answer
WATCH = """
window.moved = []
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput)
      window.moved.push([entry.value, ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? '')])
}).observe({ type: 'layout-shift', buffered: true })
"""
# Each answer comes after a time of its own (minimal standard generator, Park and Miller 1988).
LATE = """
const real = window.fetch
let state = SEED
window.fetch = async (...asked) => {
  const answer = await real(...asked)
  state = (state * 48271) % 2147483647
  await new Promise((go) => setTimeout(go, (state / 2147483647) * SLOWEST))
  return answer
}
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(app_of(populated(tmp_path_factory.mktemp("network")), dashboard=str(built()))) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.deep)])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_moves_while_a_page_loads(url: str, browser: Browser, path: str, width: int) -> None:
    seed = Random(path).randrange(1, 2**31 - 1)
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.add_init_script(LATE.replace("SEED", str(seed)).replace("SLOWEST", str(1_000 * SLOWEST)))
    page.goto(f"{url}/#{path}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0)
    page.wait_for_timeout(1_000 * 3 * SLOWEST)
    expect(page.locator("main .loading")).to_have_count(0)
    moved = page.evaluate("window.moved")
    context.close()
    assert sum(value for value, *_ in moved) < MOST, moved
