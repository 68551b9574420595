"""The summary of rows: counts of every kind of data and question, quantiles, and a start from the base rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.summary_counts import Column, columns_of, summed_counts
from consilium_chain.tasks.summary_spec import parts_of
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec, parse_task_spec
from consilium_client.data.examples import Examples, joined
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import counted_start, round_0_values
from consilium_client.data.summary import counts_of
from consilium_client.data.table.reader import RawTable, Table, encoded
from consilium_client.data.text.reader import TextSet
from consilium_client.models import model_of, start_of
from consilium_lab.simulation.run import simulate
from consilium_zk.quantise import Quantiser
from hypothesis import given
from hypothesis import strategies as st
from lifelines import NelsonAalenFitter
from numpy.typing import NDArray
from task_files import DATA

RANDOM = np.random.default_rng(11)
ROWS, BINS = 400, 8
FEATURES = """
features = [
  { name = "age", min = 20, max = 100, missing = "indicator" },
  { kind = "category", name = "sex", values = ["f", "m"] },
  { kind = "category", name = "stage", values = [1, 2, 3] },
]
"""
QUESTIONS = {
    "classes": 'label = "ill"\nclasses = ["no", "yes", "unknown"]',
    "amount": 'question = { kind = "regression", label = "days", min = 0, max = 30, mean = 8, deviation = 5 }',
    "time": 'question = { kind = "survival", time = "days", event = "death", bounds = [10, 20, 30] }',
    "several": 'question = { kind = "multilabel", labels = ["a", "b", "c"] }',
}


def spec_of(question: str = "classes", summary: str = f"bins = {BINS}", more: str = "") -> TaskSpec:
    text = f'name = "t"\n[data]\n{QUESTIONS[question]}{FEATURES}[model]\nname = "logistic"\n[summary]\n{summary}\n'
    judged = '[judging]\nmetric = "squared_error"\n' if question == "amount" else ""
    return parse_task_spec((text + judged + more).encode())


def labels_of(question: str, rows: int = ROWS) -> np.ndarray:
    return {
        "classes": RANDOM.integers(0, 3, rows),
        "amount": RANDOM.uniform(0, 30, (rows, 1)),
        "time": np.column_stack([RANDOM.integers(0, 40, rows), RANDOM.integers(0, 2, rows)]).astype(float),
        "several": RANDOM.integers(0, 2, (rows, 3)).astype(float),
    }[question]


def frame(rows: int = ROWS) -> pd.DataFrame:
    values = {"age": RANDOM.normal(60, 25, rows).clip(20, 100), "sex": RANDOM.integers(0, 2, rows).astype(float),
              "stage": RANDOM.integers(1, 4, rows).astype(float)}  # fmt: skip
    found = pd.DataFrame(values)
    return found.mask(RANDOM.random(found.shape) < 0.1)


def table_of(values: pd.DataFrame, labels: np.ndarray, spec: TaskSpec) -> Table:
    columns = {name: values[name].to_numpy() for name in values}
    return encoded(RawTable(None, columns, labels), spec.data)  # type: ignore[arg-type]


@pytest.mark.parametrize("question", QUESTIONS)
def test_hospitals_counts_add_up_to_those_of_pandas_on_all_rows(question: str) -> None:
    spec, values, labels = spec_of(question), frame(), labels_of(question)
    whole = table_of(values, labels, spec)
    parts = [whole.chosen(np.arange(ROWS) % 3 == at) for at in range(3)]
    quantiser = Quantiser(STATISTICS_BITS, STATISTICS_RANGE)
    lanes = sum(quantiser.quantise(round_0_values(part, spec)) for part in parts)
    sums = quantiser.dequantise_sum(np.asarray(lanes, np.uint64), len(parts))
    counts = summed_counts(sums, spec)
    np.testing.assert_array_equal(counts, counts_of(joined(parts), spec))
    rows, age, sex, stage, *answers = columns_of(counts, spec)
    assert rows.counts.tolist() == [ROWS]
    ages = np.histogram(values["age"].dropna(), age.part.edges)[0]
    assert age.counts.tolist() == [*ages, values["age"].isna().sum()]
    for column, name, codes in ((sex, "sex", [0, 1]), (stage, "stage", [1, 2, 3])):
        expected = [int((values[name] == code).sum()) for code in codes]
        assert column.counts.tolist() == [*expected, values[name].isna().sum()]
    (answer,) = answers
    if question == "classes":
        assert answer.counts.tolist() == np.bincount(labels).tolist()
    elif question == "several":
        assert answer.counts.tolist() == labels.sum(axis=0).tolist()
    elif question == "amount":
        assert answer.counts.tolist() == np.histogram(labels[:, 0], answer.part.edges)[0].tolist()
    else:
        events = labels[:, 1] == 1
        ends = [(-1, 10), (10, 20), (20, 30)]
        by_interval = [int((events & (labels[:, 0] > low) & (labels[:, 0] <= high)).sum()) for low, high in ends]
        assert answer.counts[:3].tolist() == by_interval
        assert answer.counts.sum() == ROWS


def test_images_are_counted_by_mean_shade_and_texts_by_length() -> None:
    image = 'kind = "images"\nheight = 8\nwidth = 8\nchannels = 3\nclasses = ["no", "yes"]'
    text = 'kind = "text"\nlabel = "found"\nclasses = ["no", "yes"]'
    model = {"images": 'name = "cnn"\nchannels = [4]', "text": 'name = "lora"\nrank = 2'}
    pixels = RANDOM.integers(0, 256, (30, 3, 8, 8), np.uint8)
    pixels[0], pixels[1] = 255, 0
    labels = RANDOM.integers(0, 2, 30)
    texts = tuple("x" * length for length in (1, 2, 3, 4, 131_072, *[100] * 25))
    kinds: list[tuple[str, Examples]] = [(image, ImageSet(pixels, labels)), (text, TextSet(texts, labels))]
    for kind, examples in kinds:
        raw = f'name = "t"\n[data]\n{kind}\n[model]\n{model["images" if "images" in kind else "text"]}\n[summary]\n'
        spec = parse_task_spec((raw + "bins = 4\n").encode())
        columns = columns_of(counts_of(examples, spec), spec)
        assert columns[-1].counts.tolist() == np.bincount(labels, minlength=2).tolist()
        if kind == image:
            means = pixels.mean(axis=(2, 3))
            for column, channel in zip(columns[1:-1], means.T, strict=True):
                assert column.counts.tolist() == np.histogram(channel, 4, (0, 255))[0].tolist()
        else:
            (lengths,) = columns[1:-1]
            assert lengths.counts.sum() == 30
            assert [lengths.counts[at] for at in (0, 1, 2, 6, 17)] == [1, 2, 1, 25, 1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_and_mean_are_within_a_range_of_the_rows(values: list[float], share: float) -> None:
    spec = parse_task_spec(f'name = "t"\n{DATA}[model]\nname = "logistic"\n[summary]\nbins = 16\n'.encode())
    table = Table(np.array(values)[:, None], np.zeros(len(values), np.int64))
    age = columns_of(counts_of(table, spec), spec)[1]
    width, ages = 120 / 16, np.array(values) * 120
    found, mean = age.quantile(share), age.mean
    assert found is not None
    assert mean is not None
    assert abs(mean - ages.mean()) <= width / 2 + 1e-9
    near = np.quantile(ages, share, method="lower"), np.quantile(ages, share, method="higher")
    assert near[0] - width - 1e-9 <= found <= near[1] + width + 1e-9


def test_a_column_without_values_has_no_mean_and_noise_below_zero_counts_as_none() -> None:
    part = parts_of(spec_of().data, 4)[1]
    nothing = Column(part, np.array([-3, 0, -1, 0, 12]))
    assert (nothing.mean, nothing.quantile(0.5)) == (None, None)
    some = Column(part, np.array([-3, 4, -1, 0, 12]))
    assert some.mean == 50
    assert some.quantile(1.0) == 60


def predicted(spec: TaskSpec, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    sums = np.concatenate([np.zeros(spec.data.statistics_values), counts, np.zeros(spec.counted_classes)])
    own = model_of(spec)
    base = start_of(spec, 3, counted_start(sums, spec))
    found: NDArray[np.float64] = own.evaluate(base, np.zeros((1, *own.input_shape), np.float32)).predictions[0]
    return found


COUNTED = '[start]\nname = "seed"\ncounted = true\n'


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_counted_start_predicts_the_rows_base_rate(question: str) -> None:
    spec, labels = spec_of(question, "bins = 256", COUNTED), labels_of(question, 2_000)
    table = table_of(frame(2_000), labels, spec)
    found = predicted(spec, counts_of(table, spec))
    if question == "classes":
        np.testing.assert_allclose(found, np.bincount(labels) / 2_000, atol=1e-6)
    elif question == "several":
        np.testing.assert_allclose(found, labels.mean(axis=0), atol=1e-6)
    elif question == "amount":
        assert abs(float(found[0]) - labels.mean()) < 30 / 256
    else:
        placed = np.ceil(np.where(labels[:, 1] == 1, labels[:, 0], labels[:, 0] // 10 * 10) / 10).clip(0)
        fitted = NelsonAalenFitter(nelson_aalen_smoothing=False)
        happened = (labels[:, 1] == 1) & (labels[:, 0] <= 30)
        intervals = np.where(happened, np.maximum(placed, 1), np.minimum(labels[:, 0] // 10, 3) + 0.5)
        intervals = np.where((labels[:, 1] == 1) & (labels[:, 0] > 30), 3.5, intervals)
        fitted.fit(intervals, happened)
        steps = np.diff([0.0, *fitted.cumulative_hazard_at_times([1, 2, 3]).to_numpy()])
        np.testing.assert_allclose(found, np.cumprod(1 - steps), atol=1e-6)


def test_a_table_with_nine_percent_starts_at_nine_percent_by_counted_classes_too() -> None:
    text = (
        f'name = "t"\nstatistics = "exact"\n{DATA}[model]\nname = "logistic"\n[training]\nclass_weights = "balanced"\n'
    )
    spec = parse_task_spec((text + COUNTED).encode())
    sums = np.concatenate([np.zeros(spec.data.statistics_values), [910 + 1e-7, 90 - 1e-7]])
    base = start_of(spec, 1, counted_start(sums, spec))
    own = model_of(spec)
    inputs = RANDOM.standard_normal((50, 1)).astype(np.float32)
    assert own.evaluate(base, inputs).predictions[:, 1].mean() == pytest.approx(0.09, abs=1e-6)


def test_a_simulation_starts_from_the_noisy_base_rate_and_a_void_round_0_from_even_odds() -> None:
    rounds = "[rounds]\nrounds = 1\nmin_hospitals = 3\nmax_hospitals = 3\n"
    text = f'name = "t"\n{DATA}[model]\nname = "logistic"\n{rounds}[judging]\nmax_voters = 3\nseats = 3\n'
    text += "[money]\npool = 100\n"
    raw = f"{text}[summary]\nbins = 4\nepsilon = 3.0\n{COUNTED}".encode()
    labels = (np.arange(900) % 7 == 0).astype(np.int64)
    rows = Table(RANDOM.random((900, 1)), labels)
    parties = {str(at): rows.chosen(np.arange(900) % 6 == at) for at in range(6)}
    hospitals, voters = ({name: one for name, one in parties.items() if (int(name) < 3) is is_first}
                         for is_first in (True, False))  # fmt: skip
    played = simulate(raw, hospitals, voters, compared=False)
    share = 1 / (1 + np.exp(-float(played.first[-1])))
    exact = np.mean([part.labels.mean() for part in hospitals.values()])
    assert share == pytest.approx(exact, abs=0.06)
    assert share != pytest.approx(0.5, abs=0.2)
    assert not simulate(raw, hospitals, voters, compared=False, dropouts=1.0).first.any()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("fill", [0, -5_000, 65_535])
def test_no_counts_and_counts_below_zero_give_a_finite_start(question: str, fill: int) -> None:
    spec = spec_of(question, more=COUNTED)
    found = predicted(spec, np.full(spec.summary_values, fill))
    assert np.isfinite(found).all()
    if question in ("classes", "several"):
        assert (found > 0).all()
        assert (found < 1).all()


@pytest.mark.parametrize(
    ("summary", "more", "said"),
    [
        ("bins = 1", "", "summary.bins"),
        ("bins = 257", "", "summary.bins"),
        ("epsilon = 0.01", "", "no noise keeps epsilon 0.01 at delta 1e-05"),
        ("bins = 8", "[privacy]\nepsilon = 4\nmax_grad_norm = 1\n", "does not bound a summary without noise"),
        ("epsilon = 4", "[privacy]\nepsilon = 4\nmax_grad_norm = 1\n", "a lower epsilon and the same delta"),
        ("epsilon = 1\ndelta = 1e-6", "[privacy]\nepsilon = 4\nmax_grad_norm = 1\n", "the same delta"),
    ],
)
def test_a_summary_that_cannot_be_is_refused(summary: str, more: str, said: str) -> None:
    with pytest.raises(SpecInvalid, match=said):
        spec_of("classes", summary, more)


def test_more_that_cannot_be_is_refused() -> None:
    def refused(text: str, said: str) -> None:
        with pytest.raises(SpecInvalid, match=said):
            parse_task_spec(f'name = "t"\n{text}'.encode())

    logistic = f'{DATA}[model]\nname = "logistic"\n'
    refused(logistic + COUNTED, "a counted start needs counts of the answers")
    refused(f"{logistic}{COUNTED}prevalence = [0.5, 0.5]\n[summary]\n", "remove one of both")
    refused(f'statistics = "exact"\n{logistic}[summary]\nepsilon = 1.0\n', "hides nothing beside exact statistics")
    wide = "".join(f'[[data.features]]\nname = "x{at}"\nmin = 0\nmax = 1\n' for at in range(11_000))
    refused(
        f"{DATA}{wide}[model]\nname = 'logistic'\n[summary]\nbins = 256\n[rounds]\nmax_hospitals = 256\n",
        "lower bins under",
    )
    refused(f"{DATA}{wide}[model]\nname = 'logistic'\n[summary]\nbins = 2\nepsilon = 0.12\n", "leave out columns")


def test_a_task_without_a_summary_keeps_its_vector() -> None:
    before = parse_task_spec(f'name = "t"\n{DATA}[model]\nname = "logistic"\n'.encode())
    assert (before.summary_values, before.summary_variance, before.counts_exactly) == (0, 0, False)
    assert before.statistics_values == before.data.statistics_values
    features = [NumericFeature(name="x", min=0, max=1), CategoryFeature(kind="category", name="y", values=[1, 2])]
    schema: Any = before.data.model_copy(update={"features": features})
    assert [part.column for part in parts_of(schema, 2)] == ["rows", "x", "y", "sick"]
