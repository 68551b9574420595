"""A newcomer's first result: the wheel into an empty environment, then a simulation of a table of their own.

Packages come from the registry that pip is set to, with an empty cache. `make wheel` comes before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.results_store import Skipped, figure, say, spread, write_figure

ROOT = Path(__file__).resolve().parents[2]
EXTRA = "demo"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
ROWS = 200
STEPS = ("environment", "pip install", "task new", "simulate")


def own_rows(path: Path, rows: int) -> None:
    """Deaths by age and creatinine in four hospitals, made up."""
    random = np.random.default_rng(0)
    lines = ["hospital,age,sex,creatinine,died"]
    for _ in range(rows):
        age, creatinine = int(random.integers(20, 95)), round(float(random.lognormal(0, 0.5)), 2)
        died = (age - 65) / 12 + 1.5 * (creatinine - 1.1) + random.normal(0, 0.8) > 0
        site, sex = random.choice(["north", "south", "east", "west"]), random.choice(["F", "M"])
        lines.append(f"{site},{age},{sex},{creatinine},{'yes' if died else 'no'}")
    path.write_text("\n".join(lines) + "\n")


def one_run(wheel: Path, rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        own_rows(home / "own.csv", rows)
        given = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "TMP"))}
        given |= {"HOME": folder, "PATH": f"{home / 'env' / 'bin'}:/usr/bin:/bin", "PIP_CACHE_DIR": str(home / "cache")}
        install = ["pip", "install", "-q", f"{wheel}[{EXTRA}]", f"--extra-index-url={TORCH_INDEX}", "--retries=1"]
        commands = {
            "environment": [sys.executable, "-m", "venv", "env"],
            "pip install": install,
            "task new": ["consilium", "task", "new", "--from", "own.csv"],
            "simulate": ["consilium", "simulate", "task.toml", "--table", "own.csv", "--sites", "hospital"],
        }
        seconds: dict[str, float] = {}
        for name, command in commands.items():
            say(" ".join(command[:3]))
            started = time.monotonic()
            program = Path(command[0]) if os.sep in command[0] else home / "env" / "bin" / command[0]
            subprocess.run([program, *command[1:]], cwd=home, env=given, check=True, capture_output=True, timeout=1800)
            seconds[name] = round(time.monotonic() - started, 1)
        return {
            "seconds": seconds,
            "cache_mb": _megabytes(home / "cache"),
            "disk_mb": _megabytes(home / "env"),
        }


def _megabytes(folder: Path) -> int:
    return round(sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6)


def measure(quick: bool) -> dict[str, Any]:
    wheels = sorted((ROOT / "dist").glob("consilium-*.whl"))
    if not wheels:
        raise Skipped("there is no wheel in dist: run `make wheel`")
    runs = [one_run(wheels[-1], ROWS) for _ in range(1 if quick else 2)]
    whole = [sum(run["seconds"].values()) for run in runs]
    return {
        "what": f"seconds of each command, from an empty folder to a simulation of {ROWS} own rows",
        "wheel_mb": round(wheels[-1].stat().st_size / 1e6, 1),
        "whole_s": round(min(whole), 1),
        "whole_spread": spread(whole, 1),
        "runs": runs,
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (axes,) = figure(8, 2.2)
    for position, run in enumerate(result["runs"]):
        left = 0.0
        for name, colour in zip(STEPS, ("#9fb3c8", "#2463b0", "#2e8b6f", "#c9782b"), strict=True):
            axes.barh(position, run["seconds"][name], left=left, color=colour, height=0.6,
                      label=name if position == 0 else None)  # fmt: skip
            left += run["seconds"][name]
        axes.text(left, position, f"  {left:.0f} s", va="center", fontsize=9)
    axes.set_yticks(range(len(result["runs"])), [f"run {1 + p}" for p in range(len(result["runs"]))])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("seconds")
    axes.set_title("From an empty folder to a simulation of one's own rows", loc="left")
    axes.legend(frameon=False, ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.45, -0.3))
    write_figure(folder, "first_result", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    run = result["runs"][-1]
    return [
        ("first result", f"{result['whole_s']:.0f} s; pip install {run['seconds']['pip install']:.0f} s"),
        ("megabytes", f"{run['disk_mb']:,} on disk"),
    ]
