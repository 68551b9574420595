"""A task asks voters for so many held-out rows, and rows of each class: fewer are refused before anything is sent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_client.data.kinds import read_held_out
from consilium_client.errors import DataError
from raised_faults import raises_fault
from task_files import DATA


def asking(lines: str = "") -> bytes:
    return f'name = "asks"\n{DATA}\n[model]\nname = "logistic"\n[judging]\n{lines}\n'.encode()


def table(folder: Path, spec: TaskSpec, negatives: int, positives: int) -> Path:
    (name,) = [one for one in spec.data.used if one != spec.data.label]
    path = folder / "rows.csv"
    labels = [0] * negatives + [1] * positives
    path.write_text(
        f"{name},{spec.data.label}\n" + "".join(f"{50 + k % 9},{label}\n" for k, label in enumerate(labels))
    )
    return path


def test_as_many_rows_as_asked_are_taken(tmp_path: Path) -> None:
    spec = parse_task_spec(asking("least_rows = 20\nleast_of_class = 4"))
    assert read_held_out(table(tmp_path, spec, 16, 4), spec).rows == 20
    unasked = parse_task_spec(asking())
    assert read_held_out(table(tmp_path, unasked, 1, 1), unasked).rows == 2


@pytest.mark.parametrize(
    ("negatives", "positives", "values"),
    [
        (15, 4, {"found": 19, "what": "rows", "at_least": 20}),
        (17, 3, {"found": 3, "what": "rows of class yes", "at_least": 4}),
        (3, 17, {"found": 3, "what": "rows of class no", "at_least": 4}),
    ],
)
def test_fewer_rows_are_refused_by_name(
    tmp_path: Path, negatives: int, positives: int, values: dict[str, object]
) -> None:
    spec = parse_task_spec(asking("least_rows = 20\nleast_of_class = 4"))
    with raises_fault(DataError, "TooFewHeldOut", match="add rows, or do not judge this task") as caught:
        read_held_out(table(tmp_path, spec, negatives, positives), spec)
    assert {name: caught.value.values[name] for name in values} == values


def test_the_contract_is_not_told() -> None:
    raw = asking("least_rows = 20\nleast_of_class = 4")
    terms = [asdict(task_params(parse_task_spec(one), spec_hash(raw), "")) for one in (raw, asking())]
    assert terms[0] == terms[1]
