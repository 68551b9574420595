"""The demo's tables on a narrow terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from consilium_chain.tasks.money_spec import TOKEN
from consilium_lab.demo.screen import show_tables
from rich.console import Console

LONGEST = "University-Hospital-of-the-Nor"  # 30 characters


def balance(name: str, role: str, gain: int, does: str | None = None, rows: int | None = None) -> dict[str, Any]:
    before, after = 15_000 * TOKEN, (15_000 + gain) * TOKEN
    amounts = {"before": str(before), "after": str(after)}
    return {"name": name, "role": role, "honest": does is None, "does": does, "rows": rows, **amounts}


@pytest.mark.parametrize("has_long_name", [False, True])
def test_show_tables_keeps_names_amounts_and_attacks_whole_in_80_columns(has_long_name: bool) -> None:
    round_ = {
        "kind": "training", "index": 1, "cohorts": [], "committee": ["v"] * 12, "revealed": ["v"] * 10,
        "slashes": [{"who": "hospital-12"}], "base_metric": 0.5, "outcome": "void", "void_reason": "too_few_scores",
    }  # fmt: skip
    parties = [
        balance("operator", "operator", -10_000), balance("hospital-12", "hospital", -200, "false-upload", 123_456),
        *([balance(LONGEST, "hospital", 1)] if has_long_name else []),
    ]  # fmt: skip
    report = {
        "rounds": [round_], "balances": {one["name"]: one for one in parties}, "pay": ["Pay goes by weight."],
        "strangers": [], "conservation": {"minted": "0", "burnt": "0", "difference": "0"}, "broken": [], "missed": [],
        "metric_name": "accuracy",
        "final_metric": 0.9, "pooled_metric": 0.9, "local_only_metric": 0.9, "privacy": "Masked.",
    }  # fmt: skip
    console = Console(file=io.StringIO(), width=80)
    show_tables(console, report)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    slashed, attacker = (line for line in lines if "hospital-12" in line)
    assert "10 of 12" in slashed
    assert "0.500" in slashed
    assert "123456" in attacker
    assert "-200.00" in attacker
    assert "14,800.00" in attacker
    said = " ".join(lines)
    assert "false-upload" in said
    assert "…" not in said
