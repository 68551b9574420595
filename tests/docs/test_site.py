"""The documentation's site: it has every page, looks as on GitHub, and loads nothing from elsewhere.

`make site` installs MkDocs, apart from the tests' environment. Without it, the tests that build the site are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import consilium
import pytest
from browser_driver import CHROMIUM, WHY_NOT, chromium, context_of
from consilium_operators.task_reference import as_markdown, reference
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "docs" / "site" / "mkdocs.yml"
MKDOCS = ROOT / ".site" / "bin" / "mkdocs"
PAGES = sorted(
    one.relative_to(ROOT).as_posix()
    for one in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "deploy" / "README.md")
)
GENERATED = "docs/task-reference.md"
ROLES = ["Start", "Hospital", "Voter", "Operator", "Delegator", "Auditor", "Contributor"]
COUNTED = {
    "h1", "h2", "h3", "h4", "li", "ol", "ul", "pre", "code", "table", "tr", "th", "td", "img", "strong", "em",
}  # fmt: skip
LOADING = {"src", "srcset", "poster", "data", "background"}  # attributes whose address a browser loads
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
ELSEWHERE = re.compile(r"(https?:)?//", re.IGNORECASE)


class Page(HTMLParser):
    """`counts`: elements by name. `loaded`: addresses that a browser loads. `links`: those that a reader follows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts, self.loaded, self.links, self.ids = Counter[str](), list[str](), list[str](), set[str]()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.counts[tag] += tag in COUNTED
        self.loaded += [value for name, value in given.items() if name in LOADING]
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.ids |= {given[name] for name in ("id", "name") if name in given}

    def handle_data(self, data: str) -> None:
        self.text += data


def place(page: str) -> str:
    """A page's file in the site."""
    folder, _, name = page.rpartition("/")
    return f"{folder}/".lstrip("/") + ("index.html" if name == "README.md" else f"{name[:-3]}.html")


def build(settings: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """As `make site` does it."""
    if not MKDOCS.exists():
        pytest.skip("MkDocs is not installed: run `make site` before")
    command: list[str | Path] = [MKDOCS, "build", "--strict", "--config-file", settings, "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def site(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(checkout / SETTINGS.relative_to(ROOT), folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources of the site, which a test may damage, with the page that make writes."""
    folder = tmp_path_factory.mktemp("checkout") / "copy"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "raw", "out", "cache", "dist")
    shutil.copytree(ROOT, folder, ignore=left_out)
    modules = Path("docs", "site", "node_modules")
    (folder / modules).symlink_to(ROOT / modules)
    page = folder / "docs" / "site" / "pages" / GENERATED
    page.parent.mkdir(exist_ok=True)
    page.write_text(as_markdown())
    return folder


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_navigation_has_each_page_once_by_role() -> None:
    navigation = SETTINGS.read_text().partition("\nnav:\n")[2]
    assert re.findall(r"^  - (\w+):$", navigation, re.MULTILINE) == ROLES
    assert sorted(re.findall(r"^      - (\S+)$", navigation, re.MULTILINE)) == sorted(
        [*PAGES, GENERATED, "api/consilium.md"]
    )


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("docs/demo.md", "[dead](nowhere.md)", "contains a link 'nowhere.md', but the target"),
        ("docs/demo.md", "[dead](up.md#nowhere)", "does not contain an anchor '#nowhere'"),
        ("docs/demo.md", "[dead](../Nofile)", "contains a link '../Nofile.md', but the target"),
        ("docs/demo.md", "![dead](nowhere.png)", "contains a link 'nowhere.png', but the target"),
        ("docs/new.md", "# New", "not included in the"),
    ],
    ids=["page", "anchor", "source", "picture", "page outside the navigation"],
)
def test_a_site_with_a_fault_is_not_built(checkout: Path, tmp_path: Path, page: str, text: str, said: str) -> None:
    path = checkout / page
    before = path.read_text() if path.exists() else None
    path.write_text(f"{before or ''}\n{text}\n")
    try:
        done = build(checkout / "docs" / "site" / "mkdocs.yml", tmp_path / "built")
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert done.returncode == 1
    assert said in done.stderr


def test_make_does_not_silence_warnings() -> None:
    """MkDocs counts no warning that --quiet hides, so --strict would pass."""
    (command,) = re.findall(r"mkdocs build .*", (ROOT / "Makefile").read_text())
    assert "--strict" in command
    assert "--quiet" not in command
    assert " -q" not in command


def test_built_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    strays = {page.name: [one for one in Page(page.read_text()).loaded if ELSEWHERE.match(one)] for page in pages}
    assert {name: found for name, found in strays.items() if found} == {}
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
    for script in (site / "assets" / "javascripts").rglob("*.js"):
        assert not re.search(r"unpkg|jsdelivr|cdnjs|googleapis|gstatic", script.read_text()), script


def test_an_address_elsewhere_is_found() -> None:
    page = Page('<script src="//a.org/x.js"></script><link rel="preconnect" href="https://b.org"><a href="//c.org">')
    assert [one for one in page.loaded if ELSEWHERE.match(one)] == ["//a.org/x.js", "https://b.org"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_on_github(site: Path, name: str) -> None:
    """By CommonMark with tables. Python's Markdown reads some lists, tables and emphases in another way."""
    github = Page(MarkdownIt("commonmark").enable("table").render((ROOT / name).read_text()))
    article = re.search(r"<article.*?>(.*)</article>", (site / place(name)).read_text(), re.DOTALL)
    assert article
    built = Page(article[1])
    assert built.counts == github.counts
    shown = [re.sub(r"[\s¶]|\[ \]", "", page.text) for page in (built, github)]
    assert shown[0] == shown[1]


def test_links_lead_to_files_and_headings_of_the_site(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            heading = unquote(parts.fragment)
            if not target.is_file() or (heading and heading not in pages[target].ids):
                dead.append((path.relative_to(site).as_posix(), link))
    assert sum(len(page.links) for page in pages.values()) > 2000
    assert dead == []


def test_python_reference_has_every_public_name(site: Path) -> None:
    page = Page((site / "api" / "consilium.html").read_text())
    assert {f"consilium.{name}" for name in consilium.__all__ if name != "Fault"} <= page.ids
    assert "Plays all rounds of a task." in page.text


def test_the_task_files_reference_is_a_page_beside_the_operators(site: Path) -> None:
    page = Page((site / place(GENERATED)).read_text())
    keys = [key.name for part in reference() for key in part.keys]
    assert len(keys) > 50
    assert [key for key in keys if key not in page.text] == []
    assert "task-reference.html" in Page((site / place("docs/operator.md")).read_text()).links


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
@pytest.mark.parametrize("opened", ["from a server", "from a folder"])
def test_search_and_diagrams_work_without_a_network(site: Path, opened: str) -> None:
    asked: list[str] = []
    with served(site) as url, chromium() as browser:
        start = url if opened == "from a server" else site.as_uri()
        page = context_of(browser).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{start}/index.html")
        page.wait_for_function("document.querySelector('div.mermaid')?.getBoundingClientRect().height > 100")
        page.goto(f"{start}/docs/hospital.html")
        page.get_by_role("textbox", name="Search").click()
        page.keyboard.type("sponsored account", delay=20)
        page.locator(".md-search-result__link", has_text="Hospitals without ether").first.wait_for()
    assert len(asked) > 10
    assert [one for one in asked if not one.startswith((start, "data:", "blob:"))] == []
