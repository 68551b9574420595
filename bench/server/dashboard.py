"""The dashboard on a large network: first content, requests, bytes and memory of each page, on a desk and on a phone,
and the scores that Lighthouse gives it.

The index is made up (`seeded_index.py`): 3,000 tasks, 1,000 nodes, 100,000 delegations. API, chain and Chromium share
this machine. Each page is opened in a new context with an empty cache, after one that is not counted.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import tomli_w
from browser_driver import CHROMIUM, WHY_NOT, Wallet
from chain_driver import LocalChain
from consilium_chain.rpc.local_node import free_port
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_server.api.dashboard import built
from eth_account import Account
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.children import Child
from bench.results_store import COLOURS, Skipped, figure, say, write_figure
from bench.server.lighthouse_scores import FIELDS, RUNS, Lighthouse
from bench.server.seeded_index import NAME, Invented, Size, follow, write

QUICK = Size(40, 30, 60, 300, 2, 2, 10, (12, 5, 3))
SIZES = {1440: 900, 390: 844}
PATIENCE = 60.0  # seconds
SETTLED = 2_000  # milliseconds after the first content, in which the rest of the page comes
FOLLOWED = 10  # blocks with events, a second apart, while a page is open
# The moment at which a page shows its heading, and nothing above the fold that still loads.
WATCH = """
(() => {
  const look = () => {
    const main = document.querySelector('main')
    if (main?.querySelector('h1') && !main.querySelector('.loading')) window.firstContent = performance.now()
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})()
"""


@dataclass
class Traffic:
    """Requests of a page, without its stream of events, and the bytes that came, compressed and with headers."""

    requests: int = 0
    to_api: int = 0
    transferred: int = 0
    streams: set[str] = field(default_factory=set)

    def watch(self, page: Page) -> Any:
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._sent)
        session.on("Network.dataReceived", self._received)
        session.send("Network.enable")
        session.send("Performance.enable")
        return session

    def _sent(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if url.endswith("/v1/events"):
            self.streams.add(event["requestId"])
            return
        self.requests += 1
        self.to_api += "/v1/" in url

    def _received(self, event: dict[str, Any]) -> None:
        if event["requestId"] not in self.streams:
            self.transferred += event["encodedDataLength"]


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    if CHROMIUM is None or built() is None:
        raise Skipped(WHY_NOT if CHROMIUM is None else "the dashboard is not built: make dashboard")
    size, rows = QUICK if quick else Size(), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory(prefix="bench-") as name, LocalChain() as chain:
        folder = Path(name)
        database = f"sqlite:///{folder / 'index.sqlite'}"
        text = re.sub(
            r"(?m)^name = .*$", f'name = "{NAME}"', task_toml(deal_wdbc(3, 3, 0), TaskSettings(4, 1)), count=1
        )
        invented = Invented(chain.deployment, text, size)
        events = write(invented, database)
        say(f"{events:,} events are in the index")
        what = (
            f"pages of the dashboard, {size.tasks:,} tasks, {size.nodes:,} nodes, {size.delegations:,} delegations;"
            f" empty cache; requests and bytes until {SETTLED / 1000:.0f} s after the first content; again_requests to"
            f" the API in {FOLLOWED} s with an event of the chain a second; scores of {Lighthouse.VERSION} of 100,"
            f" medians of {RUNS} runs, at 1440 px by its desktop preset, at 390 px as a mid-tier phone by Chrome's"
            " calibration"
        )
        paths = pages(invented)
        with serving(folder, chain, database) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for width, height in SIZES.items():
                for page, path in {"warm": "/", **paths}.items():
                    row = _look(browser, url, path, (width, height), invented, database, chain.node.url)
                    if page != "warm":
                        rows.append({"page": page, "width": width, **row})
                        yield {"what": what, "events": events, "rows": rows}
            browser.close()
            scores = Lighthouse()
            scores.calibrate(url)
            for row in rows:
                row |= scores.of(f"{url}/#{paths[row['page']]}", is_phone=row["width"] == min(SIZES))
                yield {"what": what, "events": events, "rows": rows}


def pages(invented: Invented) -> dict[str, str]:
    size, node = invented.size, next(iter(invented.nodes))
    hospitals = [one for one, role in invented.nodes.items() if role is invented.nodes[node]][:4]
    latest = ",".join(str(size.tasks - one) for one in range(4))
    return {
        "overview": "/", "tasks": "/tasks", "task": f"/tasks/{size.tasks - size.running}",
        "largest task": f"/tasks/{size.tasks}", "round": f"/tasks/{size.tasks}/rounds/1", "nodes": "/nodes",
        "node": f"/nodes/{node}/hospital", "account": f"/accounts/{invented.delegators[0]}",
        "portfolio": "/portfolio", "my node": "/desk", "propose": "/propose", "wallet": "/wallet",
        "compared nodes": f"/nodes/compare?role=hospital&of={','.join(hospitals)}",
        "compared tasks": f"/tasks/compare?of={latest}", "audit": f"/tasks/{size.tasks}/audit",
        "search": "/search?q=study", "told": "/told",
    }  # fmt: skip


@contextmanager
def serving(folder: Path, chain: LocalChain, database: str) -> Iterator[str]:
    port, home = free_port(), folder / "api"
    home.mkdir(mode=0o700)
    book, store = folder / "deployment.json", folder / "artifacts"
    chain.deployment.write(book)
    store.mkdir()
    settings = {
        "home": str(home), "chain_url": chain.node.url, "public_chain_url": chain.node.url, "deployment": str(book),
        "artifacts": str(store), "database_url": database, "origin": f"http://127.0.0.1:{port}", "port": port,
    }  # fmt: skip
    (folder / "api.toml").write_text(tomli_w.dumps(settings))
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    with Child(["consilium_cli.main", "server", "api", "--config", str(folder / "api.toml")], folder / "api.log"):
        while not _answers(url):
            if time.monotonic() > until:
                raise RuntimeError(f"the API was not ready: {(folder / 'api.log').read_text()[-1_000:]}")
            time.sleep(0.2)
        yield url


def _answers(url: str) -> bool:
    """Readiness does not matter: the index has nothing of the chain."""
    try:
        return httpx.get(f"{url}/v1/network", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _look(
    browser: Browser, url: str, path: str, size: tuple[int, int], invented: Invented, database: str, chain_url: str
) -> dict[str, Any]:
    with _opened(browser, size) as context:
        page, traffic = context.new_page(), Traffic()
        session = traffic.watch(page)
        Wallet(chain_url, Account.from_key(b"\1" * 32)).install(page)
        page.add_init_script(WATCH)
        page.goto(f"{url}/#{path}")
        until = time.monotonic() + PATIENCE
        while not (shown := page.evaluate("() => window.firstContent ?? 0")):
            if time.monotonic() > until:
                raise RuntimeError(f"{path} showed nothing within {PATIENCE:.0f} s")
            page.wait_for_timeout(50)
        page.wait_for_timeout(SETTLED)
        first = {
            "requests": traffic.requests, "transferred_bytes": traffic.transferred,
            "first_content_ms": round(shown),
        }  # fmt: skip
        session.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        before = traffic.to_api
        for _ in range(FOLLOWED):
            follow(invented, database)
            page.wait_for_timeout(1_000)
        return {
            **first,
            "heap_mib": round(metrics["JSHeapUsedSize"] / 2**20, 1),
            "elements": round(metrics["Nodes"]),
            "again_requests": traffic.to_api - before,
        }


@contextmanager
def _opened(browser: Browser, size: tuple[int, int]) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    try:
        yield context
    finally:
        context.close()


def plot(result: dict[str, Any], folder: Path) -> None:
    rows = result["rows"]
    names = list(dict.fromkeys(row["page"] for row in rows))
    drawn, axes = figure(9.5, 0.3 * len(names) + 1.2, columns=3)
    measures = {"first_content_ms": "ms to the first content", "requests": "requests", "heap_mib": "heap, MiB"}
    for one, (key, title) in zip(axes, measures.items(), strict=True):
        for shade, shift, width in (("committing", 0.2, 390), ("plain", -0.2, 1440)):
            at = [names.index(row["page"]) + shift for row in rows if row["width"] == width]
            values = [row[key] for row in rows if row["width"] == width]
            one.barh(at, values, height=0.36, color=COLOURS[shade], label=f"{width} px")
        one.set_yticks(range(len(names)), names if one is axes[0] else [""] * len(names))
        one.invert_yaxis()
        one.set_xlabel(title)
    axes[-1].legend(frameon=False, fontsize=8)
    write_figure(folder, "dashboard", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{row['page']}, {row['width']} px",
            f"{row['first_content_ms']} ms, {row['requests']} requests, {row['transferred_bytes'] / 1024:.0f} KiB,"
            f" heap {row['heap_mib']} MiB, {row['elements']} elements, {row['again_requests']} requests again,"
            f" scores {' '.join(str(row.get(one, '–')) for one in FIELDS.values())}",
        )
        for row in result["rows"]
    ]
