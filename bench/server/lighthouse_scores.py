"""Scores of a page by Lighthouse, installed once as `lighthouse/package-lock.json` pins it, into `.consilium`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final

from browser_driver import CHROMIUM

from bench.children import ROOT

PINNED: Final = Path(__file__).with_name("lighthouse")
INSTALLED: Final = ROOT / ".consilium" / "lighthouse"
FIELDS: Final = {
    "performance": "performance", "accessibility": "accessibility", "best-practices": "best_practices", "seo": "seo",
}  # fmt: skip
PATIENCE: Final = 180.0  # seconds for a page
TRIES: Final = 3  # of a page: Chromium sometimes ends under Lighthouse
PHONE_INDEX: Final = 1_000  # Chrome DevTools' own calibration of a mid-tier phone, in Lighthouse's BenchmarkIndex
RUNS: Final = 3  # of a page: one run differs from the next by up to 6 points


class Lighthouse:
    """Raises CalledProcessError if npm fails, RuntimeError if Lighthouse does, and FileNotFoundError without npm."""

    VERSION: ClassVar[str] = (
        "Lighthouse " + json.loads((PINNED / "package.json").read_text())["dependencies"]["lighthouse"]
    )

    def __init__(self) -> None:
        self.slowdown = 4.0  # of a phone's processor against this one
        INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(PINNED / name, INSTALLED / name)
        command = ["npm", "install", "--no-save", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=INSTALLED, check=True, stdin=subprocess.DEVNULL)

    def calibrate(self, url: str) -> None:
        """Sets the phone's slowdown by this processor. By default it is 4: a slow machine's phone would be slower."""
        indices = [self._report(url, False)["environment"]["benchmarkIndex"] for _ in range(RUNS)]
        self.slowdown = round(max(1.0, median(indices) / PHONE_INDEX), 2)

    def of(self, url: str, is_phone: bool) -> dict[str, Any]:
        """Medians of `RUNS` runs by `FIELDS`, each of 100; the least performance of the runs; the names of the audits
        that were not full in any run, but for performance; Lighthouse's index of this processor; and how many times
        slower the phone's is.
        """
        runs = [self._report(url, is_phone) for _ in range(RUNS)]
        scores = {
            field: [round(100 * one["categories"][name]["score"]) for one in runs] for name, field in FIELDS.items()
        }
        return {
            **{field: median(values) for field, values in scores.items()},
            "least_performance": min(scores["performance"]),
            "lost": sorted({name for one in runs for name in _lost(one)}),
            "processor_index": round(median(one["environment"]["benchmarkIndex"] for one in runs)),
            "slowdown": self.slowdown if is_phone else 1,
        }

    def _report(self, url: str, is_phone: bool) -> dict[str, Any]:
        script = INSTALLED / "node_modules" / "lighthouse" / "cli" / "index.js"
        kind = [f"--throttling.cpuSlowdownMultiplier={self.slowdown}"] if is_phone else ["--preset=desktop"]
        command = [
            "node", f"{script}", url, "--output=json", "--quiet",
            f"--only-categories={','.join(FIELDS)}", f"--chrome-path={CHROMIUM}", "--no-enable-error-reporting",
            "--chrome-flags=--headless=new --no-sandbox", *kind,
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.json"  # a pipe gets its first 64 KiB alone
            command.append(f"--output-path={file}")
            _run(command)
            report: dict[str, Any] = json.loads(file.read_text())
        return report


def _lost(report: dict[str, Any]) -> list[str]:
    weighed = [
        one["id"] for name in list(FIELDS)[1:] for one in report["categories"][name]["auditRefs"] if one["weight"]
    ]
    return [one for one in weighed if report["audits"][one]["score"] not in (None, 1)]


def _run(command: list[str]) -> None:
    """Raises RuntimeError with Lighthouse's last words if every try fails, and TimeoutExpired."""
    said = ""
    for _ in range(TRIES):
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        if ended.returncode == 0:
            return
        said = ended.stderr[-1_000:]
    raise RuntimeError(f"Lighthouse failed {TRIES} times on {command[2]}: {said}")
