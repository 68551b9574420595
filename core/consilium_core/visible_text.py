"""Free text of strangers: which of it may be a name, and how the rest is shown. Pure.

Sources: Unicode 16, general categories (UAX 44), Default_Ignorable_Code_Point, NFC (UAX 15); Unicode TR 36 on text that
misleads.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

MOST_OF_A_NAME = 80  # characters: one line of a screen
MOST_MARKS = 2  # on one letter: Thai, Hindi and pointed Hebrew have that many; a tower of them leaves its line
CUT = "…"
# Controls, formats (among them those that turn the text round), surrogates, private use, not assigned, separators of
# lines and paragraphs.
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters, marks and a symbol that show nothing: Default_Ignorable_Code_Point outside UNSEEN, and Braille's blank.
BLANK_GLYPHS = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10),
              0xFFA0, *range(0xE0100, 0xE01F0)))
)  # fmt: skip


def parse_name(text: str) -> str:
    """In NFC: 1 to 80 characters that are all seen, blanks one by one between them. Raises ValueError, with the first
    fault and the way out.
    """
    name = unicodedata.normalize("NFC", text)
    if not name:
        raise ValueError("it is empty: write 1 to 80 characters")
    if len(name) > MOST_OF_A_NAME:
        raise ValueError(f"it has {len(name)} characters: make it {MOST_OF_A_NAME} at most")
    for place, character in enumerate(name):
        if why := _fault(character, name[:place]):
            raise ValueError(f"character {place + 1} ({_code(character)}) {why}")
    if name != " ".join(name.split()):
        raise ValueError("it begins or ends with a blank, or has two in a row: leave them out")
    if not any(unicodedata.category(character)[0] in "LNS" for character in name):
        raise ValueError("it has no letter, number or symbol: write one")
    return name


def shown(text: str, most: int | None = None) -> str:
    """Any text for one line of a screen: in NFC, and what is not seen or does not stay in its line by its code, as
    U+202E. `most`: characters of it, the rest cut off.
    """
    return _shown(" ".join(unicodedata.normalize("NFC", text).split()), most)


def shown_lines(text: str) -> str:
    """The same of text that may have lines and columns."""
    return "\n".join(_shown(unicodedata.normalize("NFC", line), None) for line in text.split("\n"))


def _shown(text: str, most: int | None) -> str:
    text = text if most is None or len(text) <= most else text[: most - 1] + CUT
    return "".join(
        character if _fault(character, text[max(0, place - MOST_MARKS - 1) : place]) is None else _code(character)
        for place, character in enumerate(text)
    )


def _fault(character: str, before: str) -> str | None:
    """Why a character may not stand after those before it, and the way out."""
    kind = unicodedata.category(character)
    if kind in UNSEEN or character in BLANK_GLYPHS:
        return "is not seen, or changes how others are: leave it out"
    if kind == "Zs" and character != " ":
        return "is another blank than the ordinary one: write that"
    if kind == "Me":
        return "encloses what stands before it: leave it out"
    if kind == "Mn" and _marks(before) >= MOST_MARKS:
        return f"is one mark more than the {MOST_MARKS} that a letter may have: leave it out"
    if kind[0] == "M" and (not before or before[-1] == " "):
        return "is a mark without a letter before it: write the letter, or leave the mark out"
    return None


def _marks(before: str) -> int:
    """The number of zero-width marks at its end."""
    return next((n for n, one in enumerate(reversed(before)) if unicodedata.category(one) != "Mn"), len(before))


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


Name = Annotated[str, AfterValidator(parse_name)]
