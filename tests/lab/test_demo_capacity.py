"""A demo that cannot run is refused before anything is started, and before anything is deleted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from consilium_core.locks import alone
from consilium_lab.demo.capacity import needed_mib, require_memory
from consilium_lab.demo.options import DataSet, DemoOptions
from consilium_lab.demo.run import LOCK_FILE, run_demo
from consilium_lab.errors import LabError
from consilium_lab.up.options import UpOptions
from consilium_lab.up.run import run_up
from raised_faults import raises_fault

GIB = 2**30


def with_free(monkeypatch: pytest.MonkeyPatch, available: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available))


def test_run_demo_refuses_more_parties_than_memory_and_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 23 * GIB)
    said = r"64 hospitals and 64 voters.* 3\d\.\d GiB .* 23\.0 GiB .*lower --hosp"
    with raises_fault(LabError, "DemoTooLarge", said):
        run_demo(DemoOptions(hospitals=64, voters=64))


def test_require_memory_takes_exactly_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = needed_mib(4, 5)
    with_free(monkeypatch, needed << 20)
    require_memory(4, 5)
    with raises_fault(LabError, "DemoTooLarge"):  # each party of texts has an encoder
        require_memory(4, 5, texts=True)
    with_free(monkeypatch, (needed << 20) - 1)
    with raises_fault(LabError, "DemoTooLarge"):
        require_memory(4, 5)


def test_second_run_in_a_folder_is_refused_and_the_first_keeps_its_files(tmp_path: Path) -> None:
    journal = tmp_path / "logs" / "aggregator.jsonl"
    journal.parent.mkdir()
    journal.write_text("the first one's")
    up = UpOptions(tmp_path, tmp_path / "book.json", DataSet.WDBC, None, 3, 1, 1, False, 1, 1, None, None)
    with alone(tmp_path / LOCK_FILE, AssertionError()):
        with raises_fault(LabError, "FolderInUse", r"another run uses .* another folder with --output"):
            run_demo(DemoOptions(output=tmp_path))
        with raises_fault(LabError, "FolderInUse", "with --home"):
            run_up(up)
    assert journal.read_text() == "the first one's"
