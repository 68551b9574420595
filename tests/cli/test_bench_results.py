"""Results of measurements: files that people can read, from which the pictures can be drawn again."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from consilium_lab.result_files import LONGEST_LINE, columns_of, laid_out, rows_again
from hypothesis import given
from hypothesis import strategies as st

from bench import results_store
from bench.__main__ import PARTS
from bench.e2e import round as round_bench

BENCH = Path(__file__).parents[2] / "bench"

RESULTS = sorted((BENCH / "results").glob("*.json"))
MOST_LINES, MOST_BYTES = 300, 45_000
WORDS = st.text('abc"\n', max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(WORDS, inner, max_size=12),
    max_leaves=120,
)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_are_short_enough_to_read(path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= LONGEST_LINE
    assert len(text.encode()) <= MOST_BYTES
    json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("part", ["costs", "decoys", "hundred", "learning", "load", "round", "soak"])
def test_pictures_can_be_drawn_from_committed_results(part: str, tmp_path: Path) -> None:
    module, result = import_module(PARTS[part]), json.loads((BENCH / "results" / f"{part}.json").read_text())
    module.plot(result, tmp_path)
    assert (tmp_path / f"{part}.svg").stat().st_size > 10_000
    assert module.table(result)


def test_a_years_costs_are_calculated_again_and_documented() -> None:
    """They follow from the estimate: new gas figures need `python -m bench costs`, and new figures on the page."""
    committed = json.loads((BENCH / "results" / "costs.json").read_text())
    found = import_module(PARTS["costs"]).measure(quick=True)
    assert {name: committed[name] for name in ("assumed", "rows")} == {
        name: found[name] for name in ("assumed", "rows")
    }
    page = (BENCH.parent / "docs" / "deploying.md").read_text(encoding="utf-8")
    for row in committed["rows"]:
        assert f"{row['all']:,.0f}" in page


@given(VALUES)
def test_laid_out_is_the_same_json_in_lines_that_fit(value: Any) -> None:
    text = laid_out(value)
    assert json.loads(text) == value
    assert max(map(len, text.splitlines())) <= LONGEST_LINE


def test_laid_out_has_a_line_for_each_row_and_fills_lines_with_numbers() -> None:
    rows = [{"name": "a", "value": number} for number in range(20)]
    assert len(laid_out({"rows": rows}).splitlines()) == len(rows) + 4
    numbers = laid_out({"numbers": list(range(1_000))}).splitlines()
    assert len(numbers) < 1_000 * len("000, ") / LONGEST_LINE + 5


def test_rows_are_put_together_by_columns_and_come_back() -> None:
    rows = [{"kind": kind, "seed": seed, "value": seed / 2} for kind in "ab" for seed in range(3)]
    rows += [{"kind": "c", "seed": 0, "value": None, "more": "x"}]
    columns = columns_of(rows, ("kind",))
    assert columns[0] == {"kind": "a", "seed": [0, 1, 2], "value": [0.0, 0.5, 1.0]}
    assert columns[-1] == rows[-1]
    assert rows_again(columns) == rows
    with pytest.raises(ValueError, match="the same in every field"):
        columns_of([rows[0], rows[0]], ("kind",))


def test_a_series_is_thinned_to_means_and_keeps_its_gaps() -> None:
    assert results_store.thinned([1.0, 2.0, 3.0], 3, 1) == [1.0, 2.0, 3.0]
    assert results_store.thinned([1.0, 2.0, None, 3.0, 5.0], 3, 1) == [1.5, None, 5.0]
    assert results_store.thinned([], 3, 1) == []
    assert len(results_store.thinned([1.0] * 657, 80, 1)) <= 80


def test_a_result_is_written_with_its_words_in_lines(tmp_path: Path) -> None:
    results_store.write_result(tmp_path, "some", {"what": "word " * 100, "rows": [1]})
    told = json.loads((tmp_path / "some.json").read_text())
    assert " ".join(told["what"]) == ("word " * 100).strip()
    assert told["rows"] == [1]


def test_rounds_measured_before_stay_beside_new_ones() -> None:
    """Committed rows are brief, new ones are not: `bench/e2e/round.py` writes them into one file."""
    parts = {f"part {number}": number / 10 for number in range(20)}
    new = {"name": "private", "stages": {"upload": {"server_s": 2.0, "up_mb": 1.0, "server_parts_s": parts}}}
    once = round_bench.brief({"rows": [new]})
    assert round_bench.brief(once) == once
    (row,) = once["rows"]
    assert row["stages"] == [{"stage": "upload", "server_s": 2.0, "up_mb": 1.0}]
    assert len(row["longest_s"]["server"]) == round_bench.MOST_PARTS
    assert row["longest_s"]["server"]["upload: part 19"] == 1.9
