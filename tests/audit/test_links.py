"""What documents point to is there: files, folders, and headings by the anchors that GitHub gives them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "site" / "pages" / "docs"  # the site's build checks the links of these
DOCUMENTS = sorted(
    document
    for found in (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md"), (ROOT / "deploy").rglob("*.md"))
    for document in found
    if GENERATED not in document.parents
)
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")
ELSEWHERE = re.compile(r"[a-z]+:", re.IGNORECASE)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def slug(heading: str) -> str:
    """As github-slugger makes it: letters, digits, hyphens and underscores stay, and a space is a hyphen."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


@cache
def anchors(document: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        name, number = slug(heading), 0
        while (made := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(made)
    return found


def test_documents_are_found() -> None:
    assert {"README.md", "SECURITY.md", "proxy.md"} <= {document.name for document in DOCUMENTS}
    assert "what-is-not-protected" in anchors(ROOT / "SECURITY.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    dead = []
    for link in LINK.findall(without_code(document.read_text())):
        if ELSEWHERE.match(link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and (target.suffix != ".md" or anchor not in anchors(target))):
            dead.append(link)
    assert dead == []
