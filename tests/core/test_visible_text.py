"""Names that strangers write, and their texts on a screen."""

from __future__ import annotations

import unicodedata

import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.visible_text import INVISIBLE, MOST_OF_A_NAME, parse_name, shown, shown_lines
from hypothesis import given
from hypothesis import strategies as st
from task_files import DATA

NAMES = [
    "heart failure", "a", "Größe", "Đái tháo đường", "मधुमेह", "ज़ीं", "โรคเบาหวาน", "当たり", "السُّكَّري", "סוכרת",
    "β-2 (α ≥ 3)", "🫀 2026", "l'été", "n\u0303" * 80, "x" * MOST_OF_A_NAME,
]  # fmt: skip
BAD = {
    "empty": ("", "it is empty: write 1 to 80 characters"),
    "too long": ("x" * 81, "it has 81 characters: shorten it to 80"),
    "as long as a book": ("x" * 10_000, "it has 10000 characters"),
    "a control": ("a\x1b[31mb", r"character 2 \(U\+001B\) is invisible"),
    "a line end": ("a\nb", r"character 2 \(U\+000A\) is invisible"),
    "turned round": ("a\u202eb", r"character 2 \(U\+202E\) is invisible"),
    "an isolate": ("a\u2067b", r"\(U\+2067\)"),
    "a mark of direction": ("\u200fa", r"\(U\+200F\)"),
    "no width": ("a\u200bb", r"\(U\+200B\)"),
    "a tag": ("a\U000e0041", r"\(U\+E0041\)"),
    "a variation": ("a\ufe0f", r"\(U\+FE0F\)"),
    "a filler": ("\u3164", r"\(U\+3164\)"),
    "blank braille": ("\u2800", r"\(U\+2800\)"),
    "private use": ("\ue000", r"\(U\+E000\)"),
    "not assigned": ("\u0378", r"\(U\+0378\)"),
    "a separator of lines": ("a\u2028b", r"\(U\+2028\)"),
    "another blank": ("a\u00a0b", r"character 2 \(U\+00A0\) is an unusual space: write the ordinary one"),
    "a blank before": (" a", "begins or ends with a space"),
    "a blank behind": ("a ", "begins or ends with a space"),
    "two blanks": ("a  b", "two in a row"),
    "blanks alone": ("   ", "begins or ends with a space"),
    "points alone": ("...", "no letter, number or symbol: add one"),
    "a tower": ("a" + "\u0301\u0302\u0303\u0304", r"is one mark more than the 2 that a letter may have"),
    "a mark alone": ("\u0301a", "is a mark without a letter before it"),
    "a mark on a blank": ("a \u0301b", "is a mark without a letter before it"),
    "enclosed": ("a\u20dd", "encloses the character before it"),
}


@pytest.mark.parametrize("text", NAMES)
def test_parse_name_takes_words_of_any_language(text: str) -> None:
    assert parse_name(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_parse_name_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_name(text)


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_task_file_with_such_a_name_is_refused_in_visible_words(text: str, why: str) -> None:
    quoted = "".join(f"\\U{ord(character):08x}" for character in text)
    with pytest.raises(SpecInvalid, match=f"the task file is invalid: name: .*{why}") as caught:
        parse_task_spec(f'name = "{quoted}"\n{DATA}\n[model]\nname = "logistic"\n'.encode())
    assert is_visible(str(caught.value))


def test_task_file_has_its_name_in_one_form() -> None:
    spec = parse_task_spec(f'name = "e\u0301te\u0301"\n{DATA}\n[model]\nname = "logistic"\n'.encode())
    assert spec.name == "été"


def test_faults_of_a_task_file_are_told_in_visible_words() -> None:
    with pytest.raises(SpecInvalid) as caught:
        parse_task_spec(f'name = "a"\n"\\u202e[red]" = 1\n{DATA}\n[model]\nname = "logistic"\n'.encode())
    assert "U+202E[red]: Extra inputs are not permitted" in str(caught.value)
    assert is_visible(str(caught.value))


def is_visible(text: str) -> bool:
    return all(unicodedata.category(character) not in INVISIBLE for character in text)


@given(st.text())
def test_shown_is_one_line_that_is_all_visible(text: str) -> None:
    found = shown(text)
    assert is_visible(found)
    assert found == shown(found)
    assert len(shown(text.replace("\u0000", ""), 20).split("\n")) == 1


@given(st.text())
def test_shown_leaves_names_as_they_are(text: str) -> None:
    try:
        name = parse_name(text)
    except ValueError:
        return
    assert shown(name) == name == parse_name(name)


def test_shown_cuts_what_is_long() -> None:
    assert shown("x" * 100, 10) == "x" * 9 + "…"
    assert shown("x" * 10, 10) == "x" * 10


def test_shown_lines_keeps_lines() -> None:
    assert shown_lines("a\n  b\x1b[2J\u202e") == "a\n  bU+001B[2JU+202E"
