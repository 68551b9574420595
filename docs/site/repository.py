"""A MkDocs hook: the site has the repository's folders, so a page's relative links work on GitHub and in the site.

Pages are the repository's Markdown files. Pictures are copied. A linked file of another kind becomes a page with its
text, a linked folder a page with the names of its files. The site loads nothing from other hosts: scripts beside the
theme's come from npm's lock file, and the theme's addresses of scripts elsewhere are taken out.

MkDocs calls the functions `on_…`: https://www.mkdocs.org/dev-guide/plugins/#events
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/*.md", "deploy/README.md")
PICTURES = (".png", ".svg")
MODULES = Path(__file__).with_name("node_modules")
DIAGRAMS = "assets/mermaid.tiny.js"
# From npm's lock file. By the second one a page that is opened from a folder searches (`extra.polyfills`).
SCRIPTS = {
    DIAGRAMS: MODULES / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js",
    "assets/iframe-worker.js": MODULES / "iframe-worker" / "shim" / "index.js",
}
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^()\s#]+)", re.IGNORECASE)
SCRIPT_ELSEWHERE = re.compile(r"https://unpkg\.com/[^\"']*")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".sol": "solidity", ".service": "ini"}


def on_files(files: Files, config: object) -> Files:
    """Adds the repository's pages, and all that they link to."""
    added = {uri: File.generated(config, uri, abs_src_path=str(path)) for uri, path in SCRIPTS.items()}
    for path in (one for pattern in PAGES for one in sorted(ROOT.glob(pattern))):
        uri = path.relative_to(ROOT).as_posix()
        added[uri] = File.generated(config, uri, abs_src_path=str(path))
        # MkDocs itself warns of links to nothing.
        for target in filter(lambda one: (ROOT / one).exists(), linked(path.read_text(encoding="utf-8"), uri)):
            if target.endswith(PICTURES):
                added[target] = File.generated(config, target, abs_src_path=str(ROOT / target))
            elif not target.endswith(".md"):
                text, hidden = source_page(ROOT / target), InclusionLevel.NOT_IN_NAV
                added[target] = File.generated(config, f"{target}.md", content=text, inclusion=hidden)
    for file in added.values():
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: object, config: object, files: Files) -> str:
    """Sends a link to another file or folder to its page."""

    def sent(match: re.Match[str]) -> str:
        target = resolved(match[1], page.file.src_uri)  # type: ignore[attr-defined]
        return match[1] if target.endswith((".md", *PICTURES)) else f"{match[1].rstrip('/')}.md"

    code = list(CODE.finditer(markdown))
    between = zip([0, *(one.end() for one in code)], [*(one.start() for one in code), len(markdown)], strict=True)
    parts = [LINK.sub(sent, markdown[start:end]) for start, end in between]
    return "".join(text + one for text, one in zip(parts, [*(one[0] for one in code), ""], strict=True))


def on_page_content(html: str, page: object, config: object, files: Files) -> str:
    """Gives a page with diagrams their script. The theme asks another host for it otherwise."""
    if '<pre class="mermaid">' not in html:
        return html
    return f'{html}<script src="{get_relative_url(DIAGRAMS, page.url)}"></script>'  # type: ignore[attr-defined]


def on_post_build(config: dict[str, str]) -> None:
    """Takes addresses of other hosts' scripts out of the theme's script. Raises PluginError if there is none."""
    (bundle,) = Path(config["site_dir"]).glob("assets/javascripts/bundle.*.min.js")
    text, count = SCRIPT_ELSEWHERE.subn("about:blank", bundle.read_text(encoding="utf-8"))
    if not count:
        raise PluginError(f"{bundle.name} has no address at unpkg.com: find the hosts of this theme's scripts")
    bundle.write_text(text, encoding="utf-8")


def linked(markdown: str, uri: str) -> Iterator[str]:
    """The files and folders that a page links to, relative to the repository."""
    for link in LINK.findall(CODE.sub("", markdown)):
        yield resolved(link, uri)


def resolved(link: str, uri: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(uri), unquote(link)))


def source_page(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        names = sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())
        shown = "\n".join(one for one in names if "__pycache__" not in one)
        language = "text"
    else:
        shown, language = path.read_text(encoding="utf-8"), LANGUAGES.get(path.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n~~~~{language}\n{shown.rstrip()}\n~~~~\n"
