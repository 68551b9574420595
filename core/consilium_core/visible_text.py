"""Free text of strangers: the names that are allowed, and text made safe to show. Pure.

Sources: Unicode 16, general categories (UAX 44), Default_Ignorable_Code_Point, NFC (UAX 15); Unicode TR 36 on text that
misleads.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

MOST_OF_A_NAME = 80  # characters: one line of a screen
MOST_MARKS = 2  # on one letter, as in Thai, Hindi and pointed Hebrew: more of them leave the line
CUT = "…"
# Controls, formats (also those that reverse the text), surrogates, private use, unassigned, separators of lines and
# paragraphs.
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters, marks and a symbol that are invisible: Default_Ignorable_Code_Point outside INVISIBLE, and Braille's blank.
BLANK_GLYPHS = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10),
              0xFFA0, *range(0xE0100, 0xE01F0)))
)  # fmt: skip
COMMON = "MODIFIER"  # letters of every script, such as the apostrophe U+02BC
EAST_ASIAN = {"CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}
_LIKE_AN_ADDRESS = re.compile(r"(?:^|\W)0[xX\u0445\u0425\u03c7\u03a7\u00d7]")  # also with the letters of others


def parse_name(text: str, most: int = MOST_OF_A_NAME) -> str:
    """The name in NFC: 1 to `most` visible characters, with single spaces between them. Raises ValueError, with the
    first fault and the remedy.
    """
    name = unicodedata.normalize("NFC", text)
    if not name:
        raise ValueError(f"it is empty: write 1 to {most} characters")
    if len(name) > most:
        raise ValueError(f"it has {len(name)} characters: shorten it to {most}")
    for index, character in enumerate(name):
        if why := _fault(character, name[:index]):
            raise ValueError(f"character {index + 1} ({_code(character)}) {why}")
    if name != " ".join(name.split()):
        raise ValueError("it begins or ends with a space, or has two in a row: remove them")
    if not any(unicodedata.category(character)[0] in "LNS" for character in name):
        raise ValueError("it has no letter, number or symbol: add one")
    return name


def parse_own_name(text: str, most: int) -> str:
    """The name of a person or an institution: as `parse_name`, with letters of one script, and not like an address.

    A name all of whose letters look like another script's passes. So an address stands beside each name.
    """
    name = parse_name(text, most)
    if _LIKE_AN_ADDRESS.search(name):
        raise ValueError("it looks like an address: write a name")
    letters = [character for character in name if unicodedata.category(character)[0] == "L"]
    for letter in letters:
        if unicodedata.normalize("NFKC", letter) != letter:
            raise ValueError(f"{_code(letter)} is a letter in another form: write the ordinary one")
    if len(scripts := {_script(letter) for letter in letters} - {COMMON}) > 1:
        raise ValueError(f"its letters are of several scripts ({', '.join(sorted(scripts))}): use one")
    return name


def _script(letter: str) -> str:
    """By the first word of its name in Unicode. Chinese, Japanese and Korean letters count as one script."""
    word = unicodedata.name(letter, COMMON).split()[0]
    return "CJK" if word in EAST_ASIAN else word


def shown(text: str, most: int | None = None) -> str:
    """Any text for one line of a screen, in NFC. Characters that are invisible or leave the line become codes, as in
    U+202E. `most`: the number of characters after which it is cut off.
    """
    return _shown(" ".join(unicodedata.normalize("NFC", text).split()), most)


def shown_lines(text: str) -> str:
    """The same for text with lines and columns."""
    return "\n".join(_shown(unicodedata.normalize("NFC", line), None) for line in text.split("\n"))


def _shown(text: str, most: int | None) -> str:
    text = text if most is None or len(text) <= most else text[: most - 1] + CUT
    return "".join(
        character if _fault(character, text[max(0, index - MOST_MARKS - 1) : index]) is None else _code(character)
        for index, character in enumerate(text)
    )


def _fault(character: str, before: str) -> str | None:
    """The reason why a character is not allowed after those before it, and the remedy."""
    kind = unicodedata.category(character)
    if kind in INVISIBLE or character in BLANK_GLYPHS:
        return "is invisible, or changes how others look: remove it"
    if kind == "Zs" and character != " ":
        return "is an unusual space: write the ordinary one"
    if kind == "Me":
        return "encloses the character before it: remove it"
    if kind == "Mn" and _marks(before) >= MOST_MARKS:
        return f"is one mark more than the {MOST_MARKS} that a letter may have: remove it"
    if kind[0] == "M" and (not before or before[-1] == " "):
        return "is a mark without a letter before it: add the letter, or remove the mark"
    return None


def _marks(before: str) -> int:
    """The number of zero-width marks at its end."""
    return next((n for n, one in enumerate(reversed(before)) if unicodedata.category(one) != "Mn"), len(before))


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def without_secrets(url: str) -> str:
    """Scheme, host and port of a URL: path, query and user hold the keys of RPC providers."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        return "a URL without a host"
    shown = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    return shown if shown == url.rstrip("/") else f"{shown}/…"


Name = Annotated[str, AfterValidator(parse_name)]
