"""Plays cells of the fault matrix on a small internet, and writes bench/results/faults.json and docs/faults.md.

`python -m bench.e2e.faults [WORD…] [--minutes N] [--again]`, as root. WORDs pick cells: those whose name has them all,
as "kill" or "hospital-1 uploading". What was played before stays in the results; cells that were played, and held, are
left out, unless `--again` is given. `--page` writes the page alone. Results are on disk after each round: each round
once, by a number, and by fault, process and phase the number of the round in which a cell was last played. A round
that did not hold with several cells in it is kept beside them, under "together", also where each cell holds alone,
until the same cells hold in one round: `--together` plays such rounds again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from internet.faults import (
    FAULTS,
    IN_WORDS,
    PHASES,
    PROCESSES,
    Cell,
    Played,
    TaskPlan,
    matrix,
    plan,
    plan_rounds,
    play_cells,
)  # fmt: skip
from internet.hosts import why_not_here
from internet.network import small_internet

from bench.results_store import header, say, write_result

ROOT = Path(__file__).resolve().parents[2]

RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "faults.md"
TASKS = 4  # of a network
BEGIN, END = "<!-- written by bench/e2e/faults.py: from here -->", "<!-- to here -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="no network is begun after so many")
    parser.add_argument("--cells", type=int, default=10_000, help="at most so many")
    parser.add_argument("--again", action="store_true", help="also cells that were played")
    parser.add_argument("--together", action="store_true", help="the rounds that did not hold with several cells")
    parser.add_argument("--page", action="store_true", help="write the page from the results, play nothing")
    parser.add_argument("--keep", type=Path, help="where logs of networks with broken cells go")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that what is broken is kept
    found = read()
    known = found.cells
    if not given.page:
        missing = why_not_here()
        if missing:
            parser.error(missing)
        words = " ".join(given.words).split()
        cells = [cell for cell in matrix() if all(word in str(cell) for word in words)]
        holds = {name for name, row in known.items() if not row["broken"]}
        cells = [cell for cell in cells if given.again or str(cell) not in holds]
        random.Random(0).shuffle(cells)  # whoever plays some has some of everything
        cells.sort(key=lambda cell: str(cell) not in known)
        tasks = plan_rounds(found.rounds_together()) if given.together else plan(cells[: given.cells])
        play(tasks, found, given.minutes, given.keep)
    write_page(found)


@dataclass
class Found:
    """What came of cells, by name, the last time that each was played; and the rounds that did not hold though no one
    cell can be blamed yet: those of several cells, and ends of tasks, which have none.
    """

    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    together: list[dict[str, Any]] = field(default_factory=list)

    def take_in(self, played: Played, when: str) -> None:
        """`when`: ISO 8601."""
        for cell in played.cells:
            others = [str(other) for other in played.cells if other != cell]
            self.cells[str(cell)] = {name: value for name, value in vars(played).items() if name != "cells"}
            self.cells[str(cell)]["with"] = others
        names = [str(cell) for cell in played.cells]
        if names:
            self.together = [one for one in self.together if set(one["cells"]) != set(names)]
        if played.broken and len(names) != 1:
            self.together.append({**vars(played), "cells": names, "when": when})

    def rounds_together(self) -> list[list[Cell]]:
        """Of those that did not hold, the cells."""
        return [[Cell(*name.split(", ")) for name in one["cells"]] for one in self.together if one["cells"]]

    def alone(self, one: dict[str, Any]) -> str:
        """In words: what a round's cells did without each other since, as far as they were played so."""
        if not one["cells"]:
            return "the end of a task: no cell"
        rows = {cell: self.cells[cell] for cell in one["cells"] if not self.cells[cell]["with"]}
        parts = {
            "does not hold": [cell for cell, row in rows.items() if row["broken"]],
            "not played alone": [cell for cell in one["cells"] if cell not in rows],
        }
        return "; ".join(f"{words}: {'; '.join(which)}" for words, which in parts.items() if which) or "each holds"


def written(found: Found) -> dict[str, Any]:
    """As the results' file has it. `read_back` is the inverse, up to the order of cells."""
    rounds: dict[str, dict[str, Any]] = {}  # by number
    numbers: dict[str, str] = {}  # of what is the same of all cells of a round
    cells: dict[str, dict[str, dict[str, int]]] = {}
    for name, row in found.cells.items():
        with_all = sorted([name, *row["with"]])
        one = {key: value for key, value in row.items() if key != "with"}
        number = numbers.setdefault(json.dumps([with_all, one]), str(len(numbers) + 1))
        # Cells that were in it, and were played again since: of these the file has another round.
        rounds.setdefault(number, {**one, "also": with_all})["also"].remove(name)
        process, phase, fault = name.split(", ")
        cells.setdefault(fault, {}).setdefault(process, {})[phase] = int(number)
    for one in rounds.values():
        if not one["also"]:
            del one["also"]
    return {"rounds": rounds, "cells": cells, "together": found.together}


def read_back(known: Mapping[str, Any]) -> Found:
    """Of cells that the matrix has still."""
    names = set(map(str, matrix()))
    members: dict[str, list[str]] = {number: list(one.get("also", [])) for number, one in known["rounds"].items()}
    numbers = {
        f"{process}, {phase}, {fault}": str(number)
        for fault, processes in known["cells"].items()
        for process, phases in processes.items()
        for phase, number in phases.items()
    }
    for name, number in numbers.items():
        members[number].append(name)
    cells = {
        name: {key: value for key, value in known["rounds"][number].items() if key != "also"}
        | {"with": [other for other in members[number] if other != name]}
        for name, number in numbers.items()
        if name in names
    }
    return Found(cells, [one for one in known["together"] if names.issuperset(one["cells"])])


def read() -> Found:
    path = RESULTS / "faults.json"
    return read_back(json.loads(path.read_text())) if path.exists() else Found()


def play(tasks: list[TaskPlan], found: Found, minutes: float, keep: Path | None) -> None:
    before, began = header("python -m bench.e2e.faults"), time.monotonic()
    for first in range(0, len(tasks), TASKS):
        if time.monotonic() - began > 60 * minutes:
            return
        folder = Path(tempfile.mkdtemp(prefix="net-"))
        broken = False
        try:
            with small_internet(folder) as network:
                say(f"{time.monotonic() - began:.0f} s: tasks {first + 1} to {first + TASKS} of {len(tasks)}")
                for played in play_cells(network, tasks[first : first + TASKS]):
                    say(f"{time.monotonic() - began:.0f} s: {in_words(played)}")
                    broken = broken or bool(played.broken)
                    found.take_in(played, datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
                    write_result(RESULTS, "faults", {**before, **written(found)})
                    if time.monotonic() - began > 60 * minutes:
                        break
        except AssertionError as error:
            broken = True
            say(f"a network failed: {error}")
        finally:
            if broken and keep is not None:
                shutil.copytree(folder / "logs", keep / folder.name, dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)


def in_words(played: Played) -> str:
    cells = "; ".join(map(str, played.cells)) or "no fault"
    lost = f", without {', '.join(played.absent)}" if played.absent else ""
    broken = f" BROKEN: {'; '.join(played.broken)}" if played.broken else ""
    return f"task {played.task}, round {played.round}, {played.outcome} after {played.seconds} s{lost}: {cells}{broken}"


def longest(process_cells: list[Cell], known: dict[str, dict[str, Any]]) -> str:
    """Seconds of the longest round with a fault in a phase, over all processes."""
    rows = [known[str(cell)] for cell in process_cells if str(cell) in known]
    return f"{max(row['seconds'] for row in rows):.0f}" if rows else "·"


def page_lines(found: Found) -> list[str]:
    known = found.cells
    played = [cell for cell in matrix() if str(cell) in known]
    broken = [cell for cell in played if known[str(cell)]["broken"]]
    left = len(matrix()) - len(played)
    rounds = {(tuple(sorted([str(cell), *known[str(cell)]["with"]]))): known[str(cell)] for cell in played}
    seconds = sorted(one["seconds"] for one in rounds.values())
    lines = [
        f"Played: {len(played)} of {len(matrix())} cells; in {len(broken)} something did not hold."
        + (f" {left} have not been played yet." if left else ""),
        *([f"They were in {len(rounds)} rounds, of {seconds[0]:.0f} to {seconds[-1]:.0f} s, half of them at most"
           f" {seconds[len(seconds) // 2]:.0f} s."] if seconds else []),
    ]  # fmt: skip
    lines += ["", f"| fault | processes | {' | '.join(PHASES)} |", f"|---|---|{'---|' * len(PHASES)}"]
    before: list[str] = []
    for fault in FAULTS:
        cells = [cell for cell in matrix() if cell.fault == fault]
        processes = [process for process in PROCESSES if any(cell.process == process for cell in cells)]
        seconds_of = [longest([cell for cell in cells if cell.phase == phase], known) for phase in PHASES]
        words = f"**{fault}**: {IN_WORDS[fault]}"
        which = f"{len(processes)}: {', '.join(processes)}" if processes != before else "the same"
        lines.append(f"| {words} | {which} | {' | '.join(seconds_of)} |")
        before = processes
    absent = sum(bool(known[str(cell)]["absent"]) for cell in played)
    void = sum(known[str(cell)]["outcome"] != "settled" for cell in played)
    lines += ["", f"In {absent} cells a party was absent from the round, and in {void} the round was not settled."]
    if broken:
        lines += ["", "### What did not hold", "", "| cell | what |", "|---|---|"]
        lines += [f"| {cell} | {'; '.join(known[str(cell)]['broken'])} |" for cell in broken]
    if found.together:
        lines += [
            "", "### Rounds that did not hold with several cells in them", "",
            "Its cells were played again, each in a round without the others. Ends of tasks are here too.", "",
            "| when | cells | what did not hold | each alone |", "|---|---|---|---|",
        ]  # fmt: skip
        lines += [
            f"| {one['when']} | {'; '.join(one['cells'])} | {'; '.join(one['broken'])} | {found.alone(one)} |"
            for one in found.together
        ]
    return lines


def write_page(found: Found) -> None:
    """What stands between two marks of the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(page_lines(found))}\n{END}{after}")


if __name__ == "__main__":
    main()
