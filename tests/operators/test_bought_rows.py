"""Rows that a buyer sends: the model's columns alone, in requests that a server takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from consilium_core.units import WEI_PER_ETHER, exact_tokens, parse_tokens
from consilium_operators.market.errors import SaleError
from consilium_operators.market.rows import MOST_BODY, read_rows, requests_of
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault


def test_other_columns_stay_here(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("name,age,sex\nMary Smith,40,1\n", encoding="utf-8-sig")
    (tmp_path / "rows.json").write_text('{"rows": [{"age": 40, "sex": 1, "name": "Mary Smith"}]}')
    assert read_rows(tmp_path / "rows.csv", ["age", "sex"]) == [{"age": "40", "sex": "1"}]
    assert read_rows(tmp_path / "rows.json", ["age", "sex"]) == [{"age": 40, "sex": 1}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "age\n40\n"), ("a.csv", ""), ("a.csv", "age,sex\n"), ("a.json", "{"), ("a.json", "[]"),
        ("a.json", '{"rows": [1]}'), ("a.json", '{"rows": []}'), ("a.json", '{"rows": [{"age": 1}]}'),
    ],
)  # fmt: skip
def test_unreadable_rows_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with raises_fault(SaleError, "RowsUnreadable"):
        read_rows(tmp_path / name, ["age", "sex"])
    with raises_fault(SaleError, "RowsUnreadable"):
        read_rows(tmp_path / "absent.csv", ["age"])


@given(count=st.integers(1, 50), most=st.integers(1, 20))
def test_requests_have_all_rows_in_order(count: int, most: int) -> None:
    rows = [{"age": index} for index in range(count)]
    found = list(requests_of(rows, most))
    assert all(1 <= rows_of <= most for _, rows_of in found)
    assert [row for body, _ in found for row in json.loads(body)["rows"]] == rows


def test_large_rows_go_in_requests_of_fewer() -> None:
    rows = [{"image": "A" * (MOST_BODY // 3)} for _ in range(7)]
    found = list(requests_of(rows, 7))
    assert [count for _, count in found] == [1] * 7 or max(len(body) for body, _ in found) <= MOST_BODY
    assert sum(count for _, count in found) == 7


@given(st.integers(0, 10**30 - 1))
def test_amounts_are_read_as_they_are_shown(amount: int) -> None:
    assert parse_tokens(exact_tokens(amount)) == amount


@pytest.mark.parametrize("text", ["", ".5", "1.", "-1", "+1", "1e3", "0.1234567890123456789", "1,0", "٣", " 1", "1_0"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="digits"):
        parse_tokens(text)


def test_one_token_is_ten_to_the_eighteen() -> None:
    assert parse_tokens("1") == WEI_PER_ETHER
    assert parse_tokens("0.01") == WEI_PER_ETHER // 100
