"""A node's evaluation of a model, and the part of it that its policy lets go."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from consilium_chain.evaluations.measures import Evaluated, Measure
from consilium_chain.evaluations.site_report import LEAST_ROWS, SiteReport, Subject, parse_site_report
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.consent import NEW_HOSPITAL, NEW_VOTER, TaskPolicy, VoterPolicy
from consilium_client.data.kinds import read_examples
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError, OwnersRefusal
from consilium_client.evaluation.measuring import Rows
from consilium_client.evaluation.own import OwnEvaluation
from consilium_client.evaluation.sharing import share
from consilium_client.models import Evaluation
from consilium_core.kinds import of_kind
from eth_account import Account
from raised_faults import raises_fault

TASK = """
name = "shared"
[data]
label = "sick"
classes = ["no", "yes"]
subgroups = ["sex", "ward"]
[[data.features]]
name = "age"
min = 0
max = 100
[[data.features]]
kind = "category"
name = "sex"
values = ["female", "male"]
[[data.features]]
kind = "category"
name = "ward"
values = ["a", "b"]
[model]
name = "logistic"
"""
PRIVATE = "[privacy]\nepsilon = 8\nmax_grad_norm = 1.0\n"
ACCOUNT = Account.from_key(b"\1" * 32)


def spec_of(more: str = "") -> TaskSpec:
    return parse_task_spec((TASK + more).encode())


def table_of(path: Path, rows: int, ill: float = 0.5, of_b: int = 7) -> Table:
    """`ill`: the share of sick rows. `of_b`: the number of rows of ward b."""
    random, lines = np.random.default_rng(3), ["age,sex,ward,sick"]
    for at in range(rows):
        sick = int(at < ill * rows)
        age = random.normal(60 if sick else 45, 12)
        lines.append(f"{np.clip(age, 1, 99):.1f},{('female', 'male')[at % 2]},{'b' if at < of_b else 'a'},{sick}")
    path.write_text("\n".join(lines) + "\n")
    return of_kind(Table, read_examples(path, spec_of().data))


def judged(table: Table) -> Evaluation:
    """By age alone, and quite sure of it."""
    likely = 1 / (1 + np.exp(-(table.features[:, 0] * 100 - 52) / 6))
    return Evaluation(np.stack([1 - likely, likely], axis=1), np.zeros((table.rows, 1)))


def own(table: Table, more: str = "") -> OwnEvaluation:
    spec = spec_of(more)
    subject = Subject(
        chain_id=31337, contract="0x" + "ab" * 20, task=3, spec_hash="5e" * 32, round=2, sha256="1f" * 32
    )  # fmt: skip
    rows = Rows(spec.data, table.labels, judged(table), seed=0, resamples=200)
    found = rows.evaluated((table, judged))
    return OwnEvaluation(subject, spec, True, found, dict(found.all_rows.measures))


def policy(share_evaluation: str | None = "always") -> TaskPolicy:
    rules: dict[str, Any] = {"operators": "any", "models": "any", "metrics": "any"}
    more = {} if share_evaluation is None else {"share_evaluation": share_evaluation}
    return VoterPolicy.model_validate(rules | more)


def test_intervals_are_those_of_a_reference(tmp_path: Path) -> None:
    """scipy's percentile bootstrap, of the same rows."""
    table = table_of(tmp_path / "rows.csv", 160)
    rows = Rows(spec_of().data, table.labels, judged(table), seed=0)
    whole = rows.group(0, None, np.ones(160, np.bool_)).measures
    likely = np.clip(rows.found.predictions[:, 1], 1e-15, 1 - 1e-15)
    right = ((likely >= 0.5) == (table.labels == 1)).astype(float)
    loss = -np.log(np.where(table.labels == 1, likely, 1 - likely))
    for name, each in (("accuracy", right), ("log_loss", loss)):
        expected = scipy.stats.bootstrap(
            (each,), np.mean, method="percentile", n_resamples=4_000, rng=np.random.default_rng(1)
        ).confidence_interval
        found = whole[name]  # type: ignore[index]
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.012)


REFUSED: dict[str, tuple[str | None, str, bool]] = {
    "the default": (None, "", True), "never": ("never", "", True), "a private task": ("unless_private", PRIVATE, True),
    "an open task": ("unless_private", "", False), "a private task, always": ("always", PRIVATE, False),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "more", "is_refused"), REFUSED.values(), ids=list(REFUSED))
def test_the_policy_decides(tmp_path: Path, rule: str | None, more: str, is_refused: bool) -> None:
    evaluated, kept = own(table_of(tmp_path / "rows.csv", 120), more), tmp_path / "kept.json"
    if is_refused:
        with raises_fault(OwnersRefusal, "SharingNotAllowed"):
            share(evaluated, "hospital", policy(rule), ACCOUNT, kept)
        assert not kept.exists()
    else:
        share(evaluated, "hospital", policy(rule), ACCOUNT, kept)
    assert NEW_HOSPITAL["share_evaluation"] == NEW_VOTER["share_evaluation"] == "never"


FEW: dict[str, tuple[Callable[[Path], Table], str]] = {
    "few rows": (lambda path: table_of(path, LEAST_ROWS - 1), "49 rows are held out"),
    "few of a class": (lambda path: table_of(path, 120, ill=0.05), "6 rows have another answer"),
}


@pytest.mark.parametrize(("rows", "why"), FEW.values(), ids=list(FEW))
def test_too_few_rows_are_not_shared(tmp_path: Path, rows: Callable[[Path], Table], why: str) -> None:
    with raises_fault(ClientError, "TooFewToShare", why):
        share(own(rows(tmp_path / "rows.csv")), "voter", policy(), ACCOUNT, tmp_path / "kept.json")


def test_a_running_tasks_model_is_not_shared(tmp_path: Path) -> None:
    running = replace(own(table_of(tmp_path / "rows.csv", 120)), has_ended=False)
    with raises_fault(ClientError, "SharingTooEarly"):
        share(running, "voter", policy(), ACCOUNT, tmp_path / "kept.json")


def test_a_second_report_is_the_first_whatever_the_rows_are_then(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    first = share(own(table_of(tmp_path / "rows.csv", 160)), "voter", policy(), ACCOUNT, kept)
    again = share(own(table_of(tmp_path / "more.csv", 161)), "voter", policy(), ACCOUNT, kept)
    assert again == first == parse_site_report(kept.read_bytes())
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_figure_of_this_hospital_alone_is_shared_if_it_was_computed(tmp_path: Path) -> None:
    evaluated = own(table_of(tmp_path / "rows.csv", 160))
    exact = Measure(value=0.6149, low=0.5, high=None)
    known = replace(evaluated, alone={"auc": exact, "log_loss": Measure(value=-3e20, low=1.0, high=1e15)})
    found = share(known, "hospital", policy(), ACCOUNT, tmp_path / "kept.json")
    assert found.alone == {
        "auc": Measure(value=0.61, low=0.5, high=None), "log_loss": Measure(value=None, low=1.0, high=None),
    }  # fmt: skip
    assert parse_site_report(found.written) == found
    assert share(evaluated, "hospital", policy(), ACCOUNT, tmp_path / "without.json").alone is None


def shared(tmp_path: Path, rows: int = 163, of_b: int = 7) -> tuple[Table, Evaluated, SiteReport]:
    table = table_of(tmp_path / "rows.csv", rows, of_b=of_b)
    evaluated = own(table)
    return table, evaluated.found, share(evaluated, "voter", policy(), ACCOUNT, tmp_path / "kept.json")


def test_figures_are_rounded_and_parts_of_few_rows_left_out(tmp_path: Path) -> None:
    _, exact, report = shared(tmp_path)
    coarse = report.found
    assert (exact.all_rows.rows, coarse.all_rows.rows, coarse.all_rows.classes) == (163, 160, {"no": 80, "yes": 80})
    for name, one in exact.all_rows.measures.items():
        assert coarse.all_rows.measures[name].value == pytest.approx(one.value, abs=0.005)
    assert {one.name for one in exact.subgroups} == {"sex = female", "sex = male", "ward = a", "ward = b"}
    # Of ward a, too, nothing: all rows less those of ward a would be those of ward b.
    assert {one.name for one in coarse.subgroups} == {"sex = female", "sex = male"}
    assert [one.column for one in coarse.importance] == [one.column for one in exact.importance]
    (curve,), (whole,) = coarse.calibration, exact.calibration
    assert 0 < len(curve.bins) < len(whole.bins)
    for bin_ in curve.bins:
        assert bin_.rows >= 10
        assert 0 < bin_.observed < 1


def test_a_column_all_of_whose_values_are_frequent_is_shared(tmp_path: Path) -> None:
    _, _, report = shared(tmp_path, 320, of_b=200)
    assert {one.name for one in report.found.subgroups} == {"sex = female", "sex = male", "ward = a", "ward = b"}


def test_a_report_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Nothing of a row is in the file, neither a value nor a prediction: all its numbers are figures of many rows."""
    for rows in (163, 800):
        (tmp_path / str(rows)).mkdir()
        _, _, report = shared(tmp_path / str(rows), rows, of_b=rows // 2)
        numbers = _numbers(json.loads(report.written))
        assert len(numbers) < 300
        assert all(one == round(one, 2) for one in numbers)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [number for part in parts for number in _numbers(part)]
