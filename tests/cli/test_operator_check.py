"""`consilium operator check`: what a task file would cost a hospital, and its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.errors import BudgetError
from consilium_client.privacy.dp_sgd import plan
from consilium_client.privacy.membership import in_words
from raised_faults import raises_fault
from task_files import DATA, SALE
from typer.testing import CliRunner

PLAIN = f"""
name = "checked"
{DATA}
[model]
name = "logistic"
[rounds]
rounds = 4
[money]
pool = 100
"""


def said(folder: Path, text: str) -> str:
    (folder / "task.toml").write_text(text)
    result = CliRunner().invoke(app, ["operator", "check", str(folder / "task.toml")], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_check_says_that_a_task_is_not_private(tmp_path: Path) -> None:
    assert "not private" in said(tmp_path, PLAIN)


def test_check_says_what_the_task_costs_on_each_network(tmp_path: Path) -> None:
    output = said(tmp_path, PLAIN)
    rows = [line.split() for line in output.splitlines() if line.lstrip().startswith(("Ethereum", "Base", "Arbitrum"))]
    assert [row[0] for row in rows] == ["Ethereum", "Base", "Arbitrum"]
    cheapest = [float(row[-4].split("/")[0].replace(",", "")) for row in rows]
    assert cheapest[1] < cheapest[0]
    assert re.search(r"assumed on \d+ \w+ \d{4}: ether at \$[\d,]+", output)


@pytest.mark.parametrize("more", ["", "[privacy]\nepsilon = 8\nmax_grad_norm = 1.0\n"])
def test_check_says_what_hospitals_are_shown_of_members_found(more: str, tmp_path: Path) -> None:
    text = PLAIN + more
    assert f"hospitals are shown: {in_words(parse_task_spec(text.encode()), 30)}" in said(tmp_path, text)


def test_check_says_what_a_private_task_costs_a_row_and_with_how_much_noise(tmp_path: Path) -> None:
    text = PLAIN + "[privacy]\nepsilon = 8\nmax_grad_norm = 0.5\n"
    spec = parse_task_spec(text.encode())
    assert spec.privacy is not None
    noise = plan(spec, spec.privacy, 100).noise_multiplier
    told = said(tmp_path, text)
    assert "epsilon 8 at delta 1e-05 over all 4 rounds" in told
    assert f"with 100 rows: 7 steps a round, each of 16.0% of them, noise {noise:.2f} times the norm 0.5" in told


def test_check_says_by_which_terms_the_model_may_be_sold(tmp_path: Path) -> None:
    assert "sold" not in said(tmp_path, PLAIN)
    told = said(tmp_path, PLAIN + SALE)
    assert "may be sold: of each payment the server gets 20 %, the operator 10 %, trainers 55 %, voters 15 %\n" in told


def test_check_names_an_epsilon_that_no_noise_reaches(tmp_path: Path) -> None:
    with raises_fault(BudgetError, "EpsilonUnreachable"):
        said(tmp_path, PLAIN + "[privacy]\nepsilon = 0.001\nmax_grad_norm = 1\n")
