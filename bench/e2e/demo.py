"""The whole demo by the clock: `consilium demo` with its defaults, after installation, from command to exit."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean, median
from threading import Event, Thread
from typing import Any

import psutil

from bench.children import Child
from bench.results_store import COLOURS, figure, say, spread, write_figure

AIM = 60.0  # seconds, on two cores
MOST_MEMORY = 2.0  # GB
SAMPLED = 2.0  # seconds between two looks at all processes, which take a tenth of a second
PATIENCE = 300.0
RUNS = 2


def one_run(arguments: list[str]) -> dict[str, Any]:
    say("consilium demo")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        started = time.monotonic()
        command = ["consilium_cli.main", "demo", "--output", str(home / "demo"), *arguments]
        with Child(command, home / "demo.log") as child, sampled(child.pid) as peak:
            child.wait(PATIENCE)
        wall = time.monotonic() - started
        report = json.loads((home / "demo" / "report.json").read_text())
    gas: dict[str, list[int]] = defaultdict(list)
    for round_ in report["rounds"]:
        for call, used in round_["gas"].items():
            gas[call].append(used)
    return {
        "wall_s": round(wall, 2),
        "peak_memory_gb": round(max(peak) / 1e9, 2),
        "joining_s": report["setup_s"],
        "rounds": [{"kind": r["kind"], "outcome": r["outcome"], "seconds": r["seconds"]} for r in report["rounds"]],
        "gas_mean": {call: round(mean(used)) for call, used in gas.items()},
        "final_accuracy": report["final_metric"],
        "difference": report["conservation"]["difference"],
    }


@contextmanager
def sampled(root: int) -> Iterator[list[int]]:
    """Bytes of memory of a process and all processes below it, shared pages by their parts (PSS), at each look."""
    found, ended = [0], Event()

    def look() -> None:
        while not ended.wait(SAMPLED):
            found.append(sum(map(_share, _all_of(root))))

    thread = Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _all_of(root: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(root)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:  # the demo has ended
        return []


def _share(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_full_info().pss)
    return 0


def measure(quick: bool) -> dict[str, Any]:
    arguments = ["--rounds", "1"] if quick else []
    runs = [one_run(arguments) for _ in range(1 if quick else RUNS)]
    return {
        "what": "seconds from the command to its end, Python's start and the report included",
        "aim_wall_s": AIM,
        "wall_s": median([run["wall_s"] for run in runs]),
        "aim_memory_gb": MOST_MEMORY,
        "peak_memory_gb": max(run["peak_memory_gb"] for run in runs),
        "wall_spread": spread([run["wall_s"] for run in runs], 2),
        "gas_mean": runs[-1]["gas_mean"],
        "runs": runs,
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    run = result["runs"][-1]
    drawn, (axes,) = figure(8, 3.4)
    rounds = run["rounds"]
    for position, round_ in enumerate(rounds):
        left = 0.0
        for name, seconds in round_["seconds"].items():
            if name in COLOURS:
                axes.barh(position, seconds, left=left, color=COLOURS[name], height=0.7)
                left += seconds
        axes.text(left, position, f"  {left:.1f} s", va="center", fontsize=9)
    axes.set_yticks(range(len(rounds)), ["statistics" if p == 0 else f"round {p}" for p in range(len(rounds))])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(
        "seconds; uploading includes the sums' publication, joining and the first committing Flower's start"
    )
    axes.set_title(f"The demo's rounds, of {run['wall_s']:.0f} s from command to end", loc="left")
    names = [name for name in COLOURS if sum(round_["seconds"].get(name, 0) for round_ in rounds) > 0]
    handles = [axes.barh(0, 0, color=COLOURS[name]) for name in names]
    axes.legend(handles, names, frameon=False, ncols=7, fontsize=8, loc="upper center", bbox_to_anchor=(0.45, -0.16))
    write_figure(folder, "demo", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    memory = f"{result['peak_memory_gb']:.2f} GB, of at most {MOST_MEMORY:.0f} GB"
    return [("whole demo", f"{result['wall_s']:.1f} s, of at most {AIM:.0f} s; memory {memory}")]
