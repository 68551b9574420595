"""The chances that `docs/protocol.md` gives for prevrandao are those that `bench/chain/prevrandao.py` computes."""

from __future__ import annotations

import random
from itertools import groupby
from pathlib import Path

import pytest

from bench.chain import prevrandao

BENCH = Path(__file__).parents[2] / "bench"


def test_table_in_the_docs_is_the_computed_one() -> None:
    shown = prevrandao.DOCS.read_text().split(prevrandao.BEGIN)[1].split(prevrandao.END)[0]
    assert shown == prevrandao.table()


@pytest.mark.parametrize(("share", "length", "slots"), [(0.05, 2, 300), (0.3, 4, 300), (0.5, 3, 3)])
def test_chance_of_run_is_what_drawing_slots_gives(share: float, length: int, slots: int) -> None:
    draws, dice = 4_000, random.Random(0)
    found = 0
    for _ in range(draws):
        own = [dice.random() < share for _ in range(slots)]
        found += any(mine and len(list(run)) >= length for mine, run in groupby(own))
    chance = prevrandao.chance_of_run(share, length, slots)
    assert abs(found / draws - chance) < 4 * (chance * (1 - chance) / draws) ** 0.5


def test_choosing_is_aimed_within_two_epochs_and_chance_beyond() -> None:
    assert prevrandao.chance_to_choose(0.05, 64, 2) == pytest.approx(0.5106, abs=1e-4)
    assert prevrandao.chance_to_choose(0.05, 128, 2) == pytest.approx(0.0025)
