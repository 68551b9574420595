"""The recipe of docs/models.md, as it is written there, gives a model's answers without Consilium."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_operators.model_folder import read_model
from consilium_operators.prediction import Predictor
from model_driver import written

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
SECTION = "### By hand\n"
TASK = """
name = "recipe"
[data]
label = "sick"
classes = CLASSES
[[data.features]]
name = "age"
min = 0
max = 120
mean = 55
deviation = 15
[[data.features]]
name = "chol"
min = 1
max = 20
missing = "indicator"
[[data.features]]
name = "pain"
kind = "category"
values = [4, 1, 2]
[[data.features]]
name = "sex"
kind = "category"
values = ["female", "male"]
[model]
MODEL
"""
LOGISTIC, MLP, DEEP = 'name = "logistic"', 'name = "mlp"\nhidden = [5]', 'name = "mlp"\nhidden = [5, 3]'
TWO, THREE = '["no", "yes"]', '["no", "maybe", "yes"]'
ROWS: list[dict[str, float | str | None]] = [
    {"age": 61, "chol": None, "pain": 4, "sex": "male"}, {"age": 0, "chol": 20, "pain": 1, "sex": "female"},
    {"age": None, "chol": 1.5, "pain": None, "sex": None}, {"age": 120, "chol": 7.25, "pain": 2, "sex": "male"},
]  # fmt: skip
OUTSIDE: list[dict[str, float | str | None]] = [
    {"age": 121, "chol": 5, "pain": 4, "sex": "male"}, {"age": 50, "chol": 0.5, "pain": 4, "sex": "male"},
    {"age": 50, "chol": 5, "pain": 3, "sex": "male"}, {"age": 50, "chol": 5, "pain": 4, "sex": "divers"},
]  # fmt: skip
AFTER = """
import sys
rows, outside = json.loads(Path("rows.json").read_text())
refused = 0
for row in outside:
    try:
        probabilities(row)
    except AssertionError:
        refused += 1
logits = [network(torch.tensor(inputs(row)).float()).tolist() for row in rows]
ours = sorted(name for name in sys.modules if name.startswith("consilium"))
Path("found.json").write_text(json.dumps([[probabilities(row) for row in rows], logits, refused, ours]))
"""


def recipe() -> str:
    section = GUIDE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    return "\n".join(blocks)


def without_pain(text: str) -> str:
    """The guide's own rows have the columns of docs/operator.md."""
    return re.sub(r"\[\[data\.features\]\]\nname = \"pain\".*?(?=\[model\])", "", text, flags=re.DOTALL)


def ran(folder: Path, task: str, code: str) -> str:
    written(folder, task).rename(folder / "heart")
    (folder / "recipe.py").write_text(code)
    process = subprocess.run(
        [sys.executable, "-I", "-W", "error", "recipe.py"], cwd=folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_recipe_runs_as_it_is_written(tmp_path: Path) -> None:
    said = ran(tmp_path, without_pain(TASK).replace("CLASSES", TWO).replace("MODEL", MLP), recipe())
    first, second = said.splitlines()
    predictor = Predictor(read_model(tmp_path / "heart"))
    answer = predictor.predict(b'{"rows": [{"age": 61, "chol": null}]}')[0].tolist()
    assert re.findall(r"'(\w+)'", first) == ["no", "yes"]
    assert [float(share) for share in re.findall(r": ([^,}]+)", first)] == pytest.approx(answer)
    assert second.startswith("tensor([")


@pytest.mark.parametrize("classes", [TWO, THREE])
@pytest.mark.parametrize("model", [LOGISTIC, MLP, DEEP])
def test_numpy_and_torch_give_the_same_answers_and_refuse_the_same_rows(
    tmp_path: Path, classes: str, model: str
) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([ROWS, OUTSIDE]))
    example = re.compile(r"^print\(.*\n", re.MULTILINE)  # of other columns
    ran(tmp_path, TASK.replace("CLASSES", classes).replace("MODEL", model), example.sub("", recipe()) + AFTER)
    found, logits, refused, ours = json.loads((tmp_path / "found.json").read_text())
    saved = read_model(tmp_path / "heart")
    expected = Predictor(saved).predict(json.dumps({"rows": ROWS}).encode())
    assert (ours, refused) == ([], len(OUTSIDE))
    assert [list(one) for one in found] == [list(saved.spec.data.classes)] * len(ROWS)
    np.testing.assert_allclose([list(one.values()) for one in found], expected, rtol=1e-5)
    np.testing.assert_allclose([softmax(one) for one in logits], expected, rtol=1e-4)


def softmax(logits: list[float]) -> Any:
    whole = np.array([0.0, *logits]) if len(logits) == 1 else np.array(logits)
    return np.exp(whole) / np.exp(whole).sum()
