"""Scores of a page by Lighthouse, installed once as `lighthouse/package-lock.json` pins it, into `.consilium`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
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


class Lighthouse:
    """Raises CalledProcessError if npm fails, RuntimeError if Lighthouse does, and FileNotFoundError without npm."""

    VERSION: ClassVar[str] = (
        "Lighthouse " + json.loads((PINNED / "package.json").read_text())["dependencies"]["lighthouse"]
    )

    def __init__(self) -> None:
        INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(PINNED / name, INSTALLED / name)
        command = ["npm", "install", "--no-save", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=INSTALLED, check=True, stdin=subprocess.DEVNULL)

    def of(self, url: str, is_phone: bool) -> dict[str, Any]:
        """Scores of 100 by `FIELDS`, the names of the audits that are not full, but for performance, and Lighthouse's
        index of this processor: its slow phone is a quarter of it, whatever it is.
        """
        script = INSTALLED / "node_modules" / "lighthouse" / "cli" / "index.js"
        command = [
            "node", f"{script}", url, "--output=json", "--quiet",
            f"--only-categories={','.join(FIELDS)}", f"--chrome-path={CHROMIUM}", "--no-enable-error-reporting",
            "--chrome-flags=--headless=new --no-sandbox", *([] if is_phone else ["--preset=desktop"]),
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.json"  # a pipe gets its first 64 KiB alone
            command.append(f"--output-path={file}")
            _run(command)
            found = json.loads(file.read_text())
        scores = {field: round(100 * found["categories"][name]["score"]) for name, field in FIELDS.items()}
        of_others = [
            one["id"] for name in list(FIELDS)[1:] for one in found["categories"][name]["auditRefs"] if one["weight"]
        ]
        lost = [one for one in of_others if found["audits"][one]["score"] not in (None, 1)]
        return {**scores, "lost": lost, "processor_index": round(found["environment"]["benchmarkIndex"])}


def _run(command: list[str]) -> None:
    """Raises RuntimeError with Lighthouse's last words if every try fails, and TimeoutExpired."""
    said = ""
    for _ in range(TRIES):
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        if ended.returncode == 0:
            return
        said = ended.stderr[-1_000:]
    raise RuntimeError(f"Lighthouse failed {TRIES} times on {command[2]}: {said}")
