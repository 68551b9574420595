"""A demo that this machine cannot carry is refused before anything is started."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest
from consilium_cli.demo.capacity import needed_mib, require_memory
from consilium_cli.demo.errors import DemoTooLarge
from consilium_cli.demo.options import DemoOptions
from consilium_cli.demo.run import run_demo

GIB = 2**30


def with_free(monkeypatch: pytest.MonkeyPatch, available: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available))


def test_run_demo_refuses_more_parties_than_memory_and_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 23 * GIB)
    with pytest.raises(DemoTooLarge, match=r"64 hospitals and 64 voters.* 3\d\.\d GiB .* 23\.0 GiB .*lower --hosp"):
        run_demo(DemoOptions(hospitals=64, voters=64))


def test_require_memory_takes_exactly_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = needed_mib(4, 5)
    with_free(monkeypatch, needed << 20)
    require_memory(4, 5)
    with pytest.raises(DemoTooLarge):  # each party of texts has an encoder
        require_memory(4, 5, texts=True)
    with_free(monkeypatch, (needed << 20) - 1)
    with pytest.raises(DemoTooLarge):
        require_memory(4, 5)
