"""Text of the model card: Markdown from others' names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from consilium_core.visible_text import shown


def joined(parts: Sequence[str]) -> str:
    """Paragraphs, and the lines of each table or list together."""
    return "\n\n".join(_blocks(parts))


def _blocks(parts: Sequence[str]) -> Iterator[str]:
    block: list[str] = []
    for part in parts:
        if part[:1] in "|-":
            block.append(part)
            continue
        if block:
            yield "\n".join(block)
            block = []
        yield part
    if block:
        yield "\n".join(block)


def line(text: str) -> str:
    """The text on one line, visible and without markup."""
    return shown(text.replace("|", "/").replace("<", "‹").replace("`", "'"))
