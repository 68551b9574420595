"""The demo as its user starts it, every party a process of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

DEMO = [sys.executable, "-m", "consilium_cli.main", "demo"]


@dataclass
class Run:
    """A demo that has ended: its exit code, what it said, and its report."""

    code: int
    said: str
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return loaded

    def parties(self, **wanted: Any) -> list[dict[str, Any]]:
        return [b for b in self.report["balances"].values() if all(b[k] == v for k, v in wanted.items())]

    def refusals(self) -> list[tuple[int, str, str]]:
        return [(r["index"], x["who"], x["error"]) for r in self.report["rounds"] for x in r["refusals"]]


def gain(balance: dict[str, Any]) -> int:
    return int(balance["after"]) - int(balance["before"])


def of_this_run(folder: Path) -> list[psutil.Process]:
    """Processes that know the folder, and what they started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(str(folder) in part for part in process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def assert_nothing_runs(folder: Path, port: int | None = None) -> None:
    end = time.monotonic() + 15
    while (left := of_this_run(folder)) and time.monotonic() < end:
        time.sleep(0.2)
    assert left == []
    if port is not None:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "the local chain still listens"


Demo = Callable[..., Run]


def journal(folder: Path, name: str) -> list[dict[str, Any]]:
    """The lines that a party has written so far."""
    path = folder / "logs" / f"{name}.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


def address_of(folder: Path, name: str) -> str:
    address: str = json.loads((folder / "nodes" / name / "key.json").read_text())["address"]
    return "0x" + address.removeprefix("0x").lower()


def commitments(run: Run, index: int) -> list[str]:
    """By whose transactions a round's commitments came on chain, as the hospitals tell it."""
    names = [b["name"] for b in run.parties(role="hospital")]
    told = [line for name in names for line in journal(run.folder, name) if line["event"] == "committed"]
    return [line["by"] for line in told if line["round"] == index]


ROUND_KEYS = {
    "index",
    "outcome",
    "base_metric",
    "cohorts",
    "committee",
    "refusals",
    "payouts",
    "slashes",
    "gas",
    "seconds",
}
REPORT_KEYS = {
    "data",
    "hospitals",
    "voters",
    "wall_s",
    "final_metric",
    "local_only_metric",
    "pooled_metric",
    "metric_name",
    "conservation",
    "balances",
    "rounds",
}


def assert_sound(run: Run) -> None:
    """All that holds for every demo that ran to its end, also with cheaters."""
    assert run.code == 0, run.said[-3000:]
    report = run.report
    assert report.keys() >= REPORT_KEYS
    money = report["conservation"]
    assert (money["difference"], money["minted"]) == ("0", money["held"])
    for balance in report["balances"].values():
        assert balance.keys() >= {"before", "after", "role", "honest"}
    for round_ in report["rounds"]:
        assert round_.keys() >= ROUND_KEYS
        for cohort in round_["cohorts"]:
            assert cohort.keys() >= {"members", "weight", "sum_verified_on_chain", "median_improvement", "accepted"}
            if round_["outcome"] == "settled":
                assert cohort["sum_verified_on_chain"] != cohort["dropped"]
            else:
                assert not cohort["accepted"]
    assert [r["index"] for r in report["rounds"]] == list(range(len(report["rounds"])))
    page = (run.folder / "report.html").read_text()
    assert not re.search(r"""(src|href|action|srcset)\s*=\s*["']?\s*(https?:)?//""", page)
    assert not re.search(r"@import|url\(\s*['\"]?(?!data:|#)", page)
    assert "<script" not in page
    private_key_names = ("key.json", "password", "transport.key", "executor.secret", "superexec.secret", "server.key")
    files = [path for path in run.folder.rglob("*") if path.name in private_key_names]
    assert files
    assert [path for path in files if path.stat().st_mode & 0o077] == []


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """Runs the demo to its end with these options."""

    def run(*options: str, beside: Callable[[Path], None] | None = None) -> Run:
        output = tmp_path / "out"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [*DEMO, "--output", str(output), "--chain-port", str(port), *options]
        with ThreadPoolExecutor(1) as pool:
            meanwhile = pool.submit(beside, output) if beside else None
            done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=tmp_path, check=False)
            if meanwhile:
                meanwhile.result(20)
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said[-3000:]
        assert_nothing_runs(output, port)
        return Run(done.returncode, said, output)

    return run
