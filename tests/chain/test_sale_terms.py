"""The terms of a sale end a task file in one spelling, so that the chain can prove them by the file's hash."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.sale_spec import MOST_BYTES, SaleSpec, head_of
from consilium_chain.tasks.task_spec import parse_task_spec, section_digests, spec_hash
from hypothesis import given
from hypothesis import strategies as st
from mutations import bytes_like
from task_files import DATA, SALE

HEAD = f'name = "a task"\n{DATA}\n[model]\nname = "logistic"\n'.encode()
LINES = SALE.encode()
RAW = HEAD + LINES
INLINE = b"sale = { server_percent = 20, operator_percent = 10, trainers_percent = 55, voters_percent = 15 }\n"
END = re.compile(
    rb"\n\[sale\]\nserver_percent = \d+\noperator_percent = \d+\ntrainers_percent = \d+\nvoters_percent = \d+\n\Z"
)
# Their lines, but not as a section.
IN_A_COMMENT = HEAD + re.sub(rb"^", b"# ", LINES[:-1], flags=re.MULTILINE) + b"\n"
IN_A_TEXT = (
    b'name = "a task"\n[model]\nname = "logistic"\n[data]\nclasses = ["no", "yes"]\n'
    b'features = [{ name = "age", min = 0, max = 120 }]\nlabel = """\n' + LINES + b'"""\n'
)


@st.composite
def terms(draw: st.DrawFn) -> SaleSpec:
    server = draw(st.integers(0, 99))
    first, second = sorted(draw(st.tuples(st.integers(0, 100 - server), st.integers(0, 100 - server))))
    return SaleSpec(
        server_percent=server, operator_percent=first, trainers_percent=second - first,
        voters_percent=100 - server - second,
    )  # fmt: skip


@given(terms())
def test_any_terms_come_back_with_the_bytes_before_them(sale: SaleSpec) -> None:
    raw = HEAD + sale.lines
    spec = parse_task_spec(raw)
    assert spec.sale == sale
    assert head_of(raw, spec) == HEAD
    assert spec_hash(head_of(raw, spec) + sale.lines) == spec_hash(raw)


def test_terms_are_lines_and_words() -> None:
    spec = parse_task_spec(RAW)
    assert spec.sale is not None
    assert spec.sale.lines == LINES
    assert spec.in_words.sale == "of each payment the server gets 20 %, the operator 10 %, trainers 55 %, voters 15 %"
    private = parse_task_spec(HEAD + b"[privacy]\nepsilon = 2.5\nmax_grad_norm = 1\n" + LINES)
    assert private.in_words.sale == f"{spec.in_words.sale}; buyers see that epsilon was 2.5"
    assert list(type(spec).model_fields)[-1] == "sale"


def test_a_file_without_terms_can_never_be_sold() -> None:
    spec = parse_task_spec(HEAD)
    assert (spec.sale, spec.in_words.sale) == (None, "")
    with pytest.raises(SpecInvalid, match=r"no \[sale\], so its model can never be sold"):
        head_of(HEAD, spec)
    with pytest.raises(SpecInvalid, match="must end with exactly these lines"):  # of another file
        head_of(HEAD, parse_task_spec(RAW))


def test_terms_do_not_decide_how_rounds_end() -> None:
    assert section_digests(parse_task_spec(RAW)) == section_digests(parse_task_spec(HEAD))


def on_lines(change: Callable[[bytes], bytes]) -> bytes:
    changed = change(LINES)
    assert changed != LINES
    return HEAD + changed


SPELLINGS = {
    "a comment after them": RAW + b"# of the model\n",
    "an empty line after them": RAW + b"\n",
    "a section after them": RAW + b"[windows]\ncommit = 60\n",
    "no last line feed": RAW[:-1],
    "a comment on a line": on_lines(lambda lines: lines.replace(b"= 20\n", b"= 20 # %\n")),
    "a comment between": on_lines(lambda lines: lines.replace(b"[sale]\n", b"[sale]\n# in per cent\n")),
    "an empty line between": on_lines(lambda lines: lines.replace(b"= 20\n", b"= 20\n\n")),
    "no spaces": on_lines(lambda lines: lines.replace(b" = ", b"=")),
    "more spaces": on_lines(lambda lines: lines.replace(b"_percent = 20", b"_percent  = 20")),
    "tabs": on_lines(lambda lines: lines.replace(b" = 20", b"\t=\t20")),
    "a space at a line's end": on_lines(lambda lines: lines.replace(b"= 15\n", b"= 15 \n")),
    "a space at a line's start": on_lines(lambda lines: lines.replace(b"voters", b" voters")),
    "a space before the section": on_lines(lambda lines: b" " + lines),
    "spaces in the section's name": on_lines(lambda lines: lines.replace(b"[sale]", b"[ sale ]")),
    "quotation marks": on_lines(lambda lines: lines.replace(b"voters_percent", b'"voters_percent"')),
    "another order": on_lines(lambda lines: re.sub(rb"(operator.*\n)(trainers.*\n)", rb"\2\1", lines)),
    "CRLF": on_lines(lambda lines: lines.replace(b"\n", b"\r\n")),
    "CRLF at the end": on_lines(lambda lines: lines[:-1] + b"\r\n"),
    "a sign": on_lines(lambda lines: lines.replace(b"20", b"+20")),
    "an underscore": on_lines(lambda lines: lines.replace(b"20", b"2_0")),
    "hexadecimal": on_lines(lambda lines: lines.replace(b"20", b"0x14")),
    "a fraction": on_lines(lambda lines: lines.replace(b"20", b"20.0")),
    "a text": on_lines(lambda lines: lines.replace(b"20", b'"20"')),
    "one line at the top": INLINE + HEAD,
    "dotted keys at the top": re.sub(rb"(\w+_percent)", rb"sale.\1", LINES.removeprefix(b"[sale]\n")) + HEAD,
    "the lines in a comment": INLINE + IN_A_COMMENT,
    "the lines in a text": INLINE + IN_A_TEXT,
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_are_refused_with_the_right_one(name: str) -> None:
    with pytest.raises(SpecInvalid) as refused:
        parse_task_spec(SPELLINGS[name])
    assert "must end with exactly these lines" in str(refused.value)
    assert all(f'"{line}"' in str(refused.value) for line in SALE.splitlines())


@pytest.mark.parametrize("raw", [IN_A_COMMENT, IN_A_TEXT], ids=["comment", "text"])
def test_lines_that_are_no_section_are_no_terms(raw: bytes) -> None:
    assert parse_task_spec(raw).sale is None


@given(bytes_like([RAW, HEAD, *SPELLINGS.values()]))
def test_terms_are_there_exactly_if_the_file_ends_with_their_lines(raw: bytes) -> None:
    """Otherwise the chain could take terms that hospitals did not see."""
    try:
        spec = parse_task_spec(raw)
    except SpecInvalid:
        return
    assert (END.search(raw) is None) == (spec.sale is None)
    if spec.sale is not None:
        assert raw == head_of(raw, spec) + spec.sale.lines


def test_windows_line_ends_before_the_lines_do_no_harm() -> None:
    raw = HEAD.replace(b"\n", b"\r\n") + LINES
    assert head_of(raw, parse_task_spec(raw)) == HEAD.replace(b"\n", b"\r\n")


@pytest.mark.parametrize(
    ("percentages", "said"),
    [
        ((20, 10, 55, 14), "add up to 99: they must add up to 100"),
        ((20, 10, 55, 16), "add up to 101: they must add up to 100"),
        ((100, 0, 0, 0), "sale.server_percent: Input should be less than or equal to 99"),
        ((-1, 10, 76, 15), "sale.server_percent: Input should be greater than or equal to 0"),
        ((0, 101, 0, -1), "sale.operator_percent: Input should be less than or equal to 100"),
    ],
)
def test_percentages_are_parts_of_one_payment(percentages: tuple[int, ...], said: str) -> None:
    keys = ("server", "operator", "trainers", "voters")
    lines = "".join(f"{key}_percent = {percent}\n" for key, percent in zip(keys, percentages, strict=True))
    with pytest.raises(SpecInvalid, match=re.escape(said)):
        parse_task_spec(HEAD + f"[sale]\n{lines}".encode())


@pytest.mark.parametrize("key", ["server", "operator", "trainers", "voters"])
def test_each_percentage_must_be_there(key: str) -> None:
    left = re.sub(rf"{key}_percent = \d+\n", "", SALE).encode()
    with pytest.raises(SpecInvalid, match=rf"sale\.{key}_percent: Field required"):
        parse_task_spec(HEAD + left)


def test_a_model_of_several_shards_cannot_be_sold() -> None:
    shards = b"[rounds]\nshards = 2\n"
    assert parse_task_spec(HEAD + shards).rounds.shards == 2
    with pytest.raises(
        SpecInvalid, match=r"a model of 2 shards cannot be sold yet: remove \[sale\], or set shards = 1"
    ):
        parse_task_spec(HEAD + shards + LINES)


def test_a_file_that_the_chain_cannot_read_at_once_cannot_be_sold() -> None:
    longest = b"#" * (MOST_BYTES - len(RAW) - 1) + b"\n" + RAW
    assert len(longest) == MOST_BYTES
    assert parse_task_spec(longest).sale is not None
    with pytest.raises(SpecInvalid, match=r"100,001 bytes, and one with \[sale\] at most 100,000"):
        parse_task_spec(b"#" + longest)
    assert parse_task_spec(b"#" * MOST_BYTES + b"\n" + HEAD).sale is None
