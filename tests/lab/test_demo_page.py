"""The report's pictures: every line's name can be read, and stands in the order of the lines."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from consilium_chain.tasks.money_spec import TOKEN
from consilium_lab.demo.page import _metric_picture, _money_picture, _strangers
from consilium_lab.pages import spread
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot

NEAR = 1e-6


@given(
    st.lists(st.floats(-1_000, 1_000), min_size=1, max_size=40).map(sorted),
    st.floats(0.1, 50),
    st.floats(0, 2_000),
)
def test_spread_keeps_order_distance_and_bounds(values: list[float], gap: float, spare: float) -> None:
    low, high = -1_000.0, max(1_000.0, -1_000.0 + gap * len(values) + spare)
    places = spread(values, gap, low, high)
    assert all(after - before >= gap - NEAR for before, after in itertools.pairwise(places))
    assert low - NEAR <= places[0]
    assert places[-1] <= high + NEAR


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20, unique=True).map(sorted))
def test_spread_leaves_alone_what_has_room(values: list[int]) -> None:
    assert spread([float(value) for value in values], 1.0, 0.0, 50.0) == pytest.approx(values)


def test_spread_moves_neighbours_evenly() -> None:
    assert spread([10.0, 10.0, 10.0, 40.0], 4.0, 0.0, 50.0) == [6.0, 10.0, 14.0, 40.0]
    assert spread([0.0, 0.0, 50.0, 50.0], 4.0, 0.0, 50.0) == [0.0, 4.0, 46.0, 50.0]


def balance(name: str) -> dict[str, Any]:
    return {"name": name, "role": "hospital", "honest": True, "does": None}


@pytest.mark.parametrize("accounts", [1, 4, 8, 20, 129])
@pytest.mark.parametrize("step", [0, 1, 100], ids=["equal", "close", "apart"])
def test_money_picture_names_lines_in_order_and_apart(accounts: int, step: int) -> None:
    names = [f"hospital-{index}" for index in range(accounts)]
    # One far ahead, so that the others crowd on the scale.
    gains = [step * index for index in range(accounts - 1)] + [100_000]
    payouts = [{"who": name, "amount": str(gain * TOKEN)} for name, gain in zip(names, gains, strict=True)]
    rounds = [{"kind": "training", "index": 1, "payouts": payouts, "slashes": []}]
    figure = _money_picture({"balances": {name: balance(name) for name in names}, "rounds": rounds})
    try:
        figure.canvas.draw()
        (axes,) = figure.axes
        middles = {text.get_text().strip(): float(axes.transData.transform(text.xyann)[1]) for text in axes.texts}
        assert middles.keys() == set(names)
        upwards = sorted(names, key=lambda name: middles[name])
        assert [gains[names.index(name)] for name in upwards] == sorted(gains)
        tall = 8.5 / 72 * figure.dpi  # a line of the names' type
        assert all(middles[after] - middles[before] >= tall for before, after in itertools.pairwise(upwards))
        assert axes.bbox.y0 <= middles[upwards[0]]
        assert middles[upwards[-1]] <= axes.bbox.y1
    finally:
        pyplot.close(figure)


@pytest.mark.parametrize("statistics", ["settled", "pending"])
def test_metric_picture_shows_every_round_with_the_start_and_names_the_values(statistics: str) -> None:
    rounds = [{"kind": "statistics", "index": 0, "outcome": statistics, "base_metric": None}]
    rounds += [{"kind": "training", "index": i, "outcome": "settled", "base_metric": 0.3 * i} for i in (1, 2, 3)]
    report = {"rounds": rounds, "final_metric": 0.95, "pooled_metric": 0.97, "local_only_metric": 0.96}
    figure = _metric_picture(report | {"metric_name": "accuracy"})
    try:
        figure.canvas.draw()
        (axes,) = figure.axes
        had = [0.3] if statistics == "settled" else []
        assert list(axes.lines[0].get_ydata()) == pytest.approx([*had, 0.3, 0.6, 0.9, 0.95])
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        assert ticks == ["start", *(["statistics"] if had else []), "after 1", "after 2", "after 3"]
        low, high = axes.get_ylim()
        assert low < 0.3
        assert high > 0.97
        assert axes.get_ylabel() == "accuracy, % of held-out rows"
        names = {text.get_text().strip() for text in axes.texts}
        assert names == {"together 95.0%", "all rows in one place 97.0%", "each hospital alone, mean 96.0%"}
    finally:
        pyplot.close(figure)


def test_page_shows_what_strangers_tried_and_what_is_broken() -> None:
    taken = [{"who": "stranger-1", "round": 0, "field": "<a key>"}] * 2
    call = {"call": "joinAsVoter", "tried": 4, "refused": 2, "errors": {"TaskFull": 2}, "taken": taken}
    shown = _strangers({"strangers": [call], "broken": ["stranger-1 is richer"]})
    assert "<td>joinAsVoter<td class=n>4<td class=n>2<td><b>TaskFull</b> 2<td>&lt;a key&gt;<" in shown
    assert "<p class=bad>stranger-1 is richer</p>" in shown
    assert _strangers({"strangers": [], "broken": []}) == ""
