"""The summary of series and masks: counts beside those of pandas, what one more example changes, and two summaries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import series_files
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.summary_counts import columns_of
from consilium_chain.tasks.summary_spec import SHARES
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples, joined
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import summary_of
from consilium_client.data.summary import counts_of
from consilium_client.errors import ClientError
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

Make = Callable[[np.random.Generator, int], Examples]
BINS, SIDE, STEPS = 8, 10, 6
SERIES = """
kind = "series"
label = "died"
classes = ["no", "yes"]
steps = 6
step = 2.0
features = [{ name = "heart_rate", min = 0, max = 250 }, { name = "lactate", min = 0, max = 30 }]
[model]
name = "tcn"
"""
MASKS = f"""
kind = "images"
height = {SIDE}
width = {SIDE}
question = {{ kind = "segmentation", classes = ["background", "organ", "tumour"] }}
[model]
name = "unet"
widths = [4, 8]
"""


def spec_of(data: str, more: str = "") -> TaskSpec:
    return parse_task_spec(f'name = "t"\n[data]\n{data}[summary]\nbins = {BINS}\n{more}'.encode())


def test_a_stay_counts_once_in_each_variable_however_often_it_was_measured(tmp_path: Path) -> None:
    measured = series_files.drawn(3, stays=60, each=15)
    read = series_files.stays_of(series_files.write(tmp_path / "d", measured, series_files.answers(60)))
    spec = spec_of(SERIES)
    rows, *columns, steps, died = columns_of(counts_of(read, spec), spec)
    within = measured[(measured["time"] >= 0) & (measured["time"] < 12)].sort_values("time")
    within = within.assign(step=within["time"] // 2)
    last = within.groupby(["stay", "step"])[[*series_files.VARIABLES]].last()
    for column, (name, (low, high)) in zip(columns, series_files.VARIABLES.items(), strict=True):
        means = last[name].groupby("stay").mean().dropna()
        counts, edges = np.histogram(means, BINS, (low, high))
        assert column.part.column == f"mean of {name}"
        assert column.counts.tolist() == [*counts, 60 - len(means)]
        np.testing.assert_allclose(column.part.edges, edges)
    found = last.dropna(how="all").groupby("stay").size().reindex(range(1, 61), fill_value=0)
    assert steps.counts.tolist() == np.histogram(found, STEPS, (0, STEPS))[0].tolist()
    assert (rows.counts.tolist(), died.counts.tolist()) == ([60], [30, 30])


def test_masks_are_counted_by_the_share_of_an_image_that_each_class_has() -> None:
    marked = [0, 1, 2, 5, 10, 50, 99, 100]  # pixels of 100
    masks = np.zeros((len(marked), SIDE, SIDE), np.uint8)
    for mask, pixels in zip(masks, marked, strict=True):
        mask.flat[:pixels] = 2
    spec = spec_of(MASKS)
    images = ImageSet(np.zeros((len(marked), 1, SIDE, SIDE), np.uint8), masks)
    _, _, organ, tumour = columns_of(counts_of(images, spec), spec)
    assert organ.counts.tolist() == [len(marked)] + [0] * (len(SHARES) - 2)
    some = pd.Series([one for one in marked if one])
    *expected, last = pd.cut(some, SHARES[1:], right=False).value_counts(sort=False).tolist()
    assert tumour.counts.tolist() == [1, *expected, last + 1]  # the last range has its end, and 100 is in it
    assert tumour.mean == pytest.approx(np.mean(marked), abs=25)
    assert tumour.quantile(0.05) == 0


def test_masks_give_no_counted_start() -> None:
    with pytest.raises(SpecInvalid, match="a counted start needs counts of the answers"):
        spec_of(MASKS, '[start]\nname = "seed"\ncounted = true\n')


def stays(random: np.random.Generator, count: int) -> Stays:
    values = random.random((count, 2, STEPS)).astype(np.float32)
    values[random.random(values.shape) < 0.5] = np.nan
    return Stays(values, random.integers(0, 2, count))


def masked(random: np.random.Generator, count: int) -> ImageSet:
    pixels = random.integers(0, 256, (count, 1, SIDE, SIDE), np.uint8)
    return ImageSet(pixels, random.integers(0, random.integers(1, 4), (count, SIDE, SIDE), np.uint8))


KINDS = pytest.mark.parametrize(("data", "make"), [(SERIES, stays), (MASKS, masked)], ids=["series", "masks"])


@KINDS
@given(seed=st.integers(0, 2**32 - 1))
def test_one_example_more_is_in_no_more_counts_than_its_noise_is_for(data: str, make: Make, seed: int) -> None:
    random, spec = np.random.default_rng(seed), spec_of(data)
    some, one = make(random, int(random.integers(1, 6))), make(random, 1)
    change = counts_of(joined([some, one]), spec) - counts_of(some, spec)
    assert change.min() >= 0
    for column in columns_of(change, spec):
        assert column.counts.sum() == 1 == column.part.changed
    assert np.square(change).sum() == spec.summary_changed


@KINDS
def test_two_summaries_whose_difference_is_a_stay_or_a_mask_are_refused(data: str, make: Make, tmp_path: Path) -> None:
    random, spec = np.random.default_rng(5), spec_of(data)
    before = make(random, 20)
    after = joined([before, make(random, 1)])
    (difference,) = (counts_of(after, spec) - counts_of(before, spec)).nonzero()
    assert len(difference) == spec.summary_changed  # it would show the example's place in each column
    record = ExactStatisticsRecord(tmp_path / "statistics.jsonl")
    record.give("first", before, spec.data, True, BINS)
    record.require_givable("same", before, spec.data, True, BINS)
    relabelled = before.relabelled(np.roll(before.labels, 1, axis=0))
    for examples, bins, why in (
        (after, BINS, "1 row.s. are in only one set"),
        (before, BINS + 1, f"its histograms have {BINS} parts"),
        (relabelled, BINS, "the answers of some rows differ"),
    ):
        with raises_fault(ClientError, "StatisticsOverlap", match=why):
            record.require_givable("second", examples, spec.data, True, bins)


@KINDS
def test_noise_covers_all_counts_of_one_example(data: str, make: Make) -> None:
    noisy = spec_of(data, "epsilon = 1.0\n")
    assert noisy.summary is not None
    # Rows, and each column once: variables, steps and label; a channel and two marked classes.
    assert noisy.summary_changed == {SERIES: 5, MASKS: 4}[data]
    assert noisy.summary_variance == noisy.summary.variance(noisy.summary_changed)
    examples = make(np.random.default_rng(1), 300)
    added = np.stack([summary_of(examples, noisy) - counts_of(examples, noisy) for _ in range(40)])
    assert added.std() == pytest.approx(np.sqrt(noisy.summary_variance), rel=0.15)
