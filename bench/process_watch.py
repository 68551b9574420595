"""The cost of processes with all below them, by name: CPU seconds, and memory with shared pages by parts (PSS)."""

from __future__ import annotations

import os
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LOOK = 1.0  # seconds between two looks
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Seen:
    """`at`: by the monotonic clock. `cpu_s`: since each began. `pss_mib`: now."""

    at: float
    cpu_s: Mapping[str, float]
    pss_mib: Mapping[str, float]


class ProcessWatch(threading.Thread):
    """Looks at processes and all below them until the context is left. Short peaks of memory may pass between looks."""

    def __init__(self, roots: Callable[[], Mapping[str, int]]) -> None:
        """`roots`: process numbers by name, asked at each look."""
        super().__init__(daemon=True)
        self._roots, self._over = roots, threading.Event()
        self.seen: list[Seen] = []

    def run(self) -> None:
        while True:
            self._look()
            if self._over.wait(LOOK):
                return

    def _look(self) -> None:
        before = self.seen[-1] if self.seen else Seen(0.0, {}, {})
        cpu_s, pss_mib = dict(before.cpu_s), {}
        for name, root in self._roots().items():
            spent, pss_mib[name] = _cost(root)
            cpu_s[name] = max(spent, cpu_s.get(name, 0.0))  # an ended process counts only once its parent knows
        self.seen.append(Seen(time.monotonic(), cpu_s, pss_mib))

    def __enter__(self) -> ProcessWatch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def cpu_s(self, begin: float, end: float) -> dict[str, float]:
        """Between two moments, to a look, by name."""
        first, last = self._at(begin), self._at(end)
        return {name: spent - first.cpu_s.get(name, 0.0) for name, spent in last.cpu_s.items()}

    def peaks_mib(self) -> dict[str, float]:
        """The most of each, by name, and `all` together."""
        names = {name for one in self.seen for name in one.pss_mib}
        found = {name: max(one.pss_mib.get(name, 0.0) for one in self.seen) for name in sorted(names)}
        return found | {"all": max(sum(one.pss_mib.values()) for one in self.seen)}

    def _at(self, moment: float) -> Seen:
        index = bisect_left(self.seen, moment, key=lambda one: one.at)
        return self.seen[min(index, len(self.seen) - 1)]


def _cost(root: int) -> tuple[float, float]:
    """CPU seconds, those of ended children too, and MiB."""
    cpu_s = memory = 0.0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(root)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied, OSError):
                cpu_s += sum(process.cpu_times()[:4])  # own, and those of children that have ended
                memory += pss_mib(process)
    return cpu_s, memory


def pss_mib(process: psutil.Process) -> float:
    """Memory in MiB, with shared pages by parts; 0 if the process has ended, or is another user's."""
    try:
        found = PSS.search(Path(f"/proc/{process.pid}/smaps_rollup").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def children_by(word_of: Mapping[str, str]) -> dict[str, int]:
    """This process's own children whose command line has the word, by name."""
    found: dict[str, int] = {}
    for child in psutil.Process(os.getpid()).children():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            line = " ".join(child.cmdline())
            found |= {name: child.pid for name, word in word_of.items() if word in line}
    return found
