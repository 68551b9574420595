"""Ensembles of models of no training, and a chain that knows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from consilium_chain.ledger.ensembles import ENSEMBLES, Ensemble, Member
from consilium_chain.ledger.ledger import Ledger
from consilium_operators.ensembles.exporting import export_ensemble
from model_driver import written
from task_files import OF_TEXTS

NUMBER = ENSEMBLES + 1
CHAIN, TASKS, SHARES = 1, "0x", "0x" + "11" * 20
TEXTS = [OF_TEXTS, OF_TEXTS.replace('lora"', 'lora"\nrank = 2')]  # which no graph can read


def chain_with(*ensembles: Ensemble) -> Ledger:
    """A chain's client that knows these alone."""
    known = {one.number: one for one in ensembles}
    found: Any = SimpleNamespace(
        deployment=SimpleNamespace(chain_id=CHAIN, tasks=TASKS, model_shares=SHARES),
        ensembles=SimpleNamespace(of=known.get),
    )
    return cast(Ledger, found)


def of_gains(*gains: int) -> Ensemble:
    """An ensemble of the tasks 1, 2 and so on."""
    return Ensemble(NUMBER, tuple(Member(task, gain) for task, gain in enumerate(gains, 1)))


def members(folder: Path, texts: Sequence[str]) -> list[Path]:
    """Models of the tasks 1, 2 and so on."""
    return [written(folder / str(task), text, task=(task, CHAIN, TASKS)) for task, text in enumerate(texts, 1)]


def exported(folder: Path, texts: Sequence[str], gains: Sequence[int], with_onnx: bool = False) -> Path:
    """An ensemble's folder."""
    output = folder / "ensemble"
    export_ensemble(chain_with(of_gains(*gains)), NUMBER, members(folder, texts), output, with_onnx)
    return output
