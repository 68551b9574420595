"""Runs parts of the tests, each a target of make, even if one fails; ends with one table. Needs Python 3.11 alone.

    run_parts.py [--make MAKE] [--beside N] TARGET... [--then TARGET...]...

Up to N parts run beside each other; those after `--then` start when all before have ended. Each line of output begins
with its part's name, and `.consilium/tests/TARGET.log` keeps it. Exit status: 0 if every part passed, 1 if not, 130
after Ctrl-C and 143 after SIGTERM, which end the running parts. A part's lines that begin with "in the table: " are in
the table, whatever its result.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

LOGS = Path(".consilium/tests")
PATIENCE = (60.0, 10.0)  # seconds that a part has to end after SIGINT, then after SIGTERM
LAST_WORDS = 3.0  # seconds for a part's output after its make has ended
MOST_NAMES = 15  # of failed tests in the table
LAST_LINES = 6
FOR_THE_TABLE = "in the table: "
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# As pytest, vitest and forge name a test that failed.
NAMED = (
    re.compile(r"^(?:FAILED|ERROR) (\S+::[^\s[]+(?:\[.*?\])?)(?: - .*)?$"),
    re.compile(r"^ERROR (\S+\.py)(?: - .*)?$"),
    re.compile(r"^\s*(?:FAIL|×)\s+(\S+\.test\.tsx? > .+)$"),
    re.compile(r"^\[FAIL[^]]*\]\s+(\w+\(.*?\))"),
)
MAKES_OWN = re.compile(r"^make(?:\[\d+\])?: ")


@dataclass
class Part:
    name: str
    result: str = "not run"
    minutes: float = 0.0
    lines: list[str] = field(default_factory=list, repr=False)

    @property
    def notes(self) -> list[str]:
        return [line.removeprefix(FOR_THE_TABLE).rstrip() for line in self.lines if line.startswith(FOR_THE_TABLE)]

    @property
    def why(self) -> list[str]:
        """The failed tests, or else the last lines."""
        lines = [COLOURS.sub("", line).rstrip() for line in self.lines]
        names = dict.fromkeys(found[1] for line in lines for one in NAMED if (found := one.match(line)))
        if names:
            more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
            return [*list(names)[:MOST_NAMES], *more]
        return [line for line in lines if line.strip() and not MAKES_OWN.match(line)][-LAST_LINES:]


def table(parts: Sequence[Part]) -> str:
    width = max(len("part"), *(len(part.name) for part in parts))
    rows = [f"{'part':{width}}  {'result':7}  minutes"]
    for part in parts:
        rows.append(f"{part.name:{width}}  {part.result:7}  {part.minutes:7.1f}")
        rows += [f"{'':{width}}  {line}" for line in part.notes]
        if part.result == "FAILED":
            rows += [f"{'':{width}}  {line}" for line in (*part.why, f"all of it: {LOGS / part.name}.log")]
    return "\n".join(rows)


def environment() -> dict[str, str]:
    """Without make's job server, whose pipes the parts do not inherit. Variables of the command line stay."""
    found = dict(os.environ)
    flags, dashes, variables = found.pop("MAKEFLAGS", "").partition(" -- ")
    kept = [one for one in flags.split() if not re.match(r"-j|--jobserver|-O|--output-sync", one)]
    found["MAKEFLAGS"] = " ".join(kept) + dashes + variables
    found.pop("MAKELEVEL", None)
    return found


class Runner:
    def __init__(self, make: Sequence[str], beside: int, say: Callable[[str], None]) -> None:
        self._make, self._beside, self._say = make, beside, say
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def run(self, parts: Sequence[Part]) -> None:
        with ThreadPoolExecutor(self._beside) as pool:
            list(pool.map(self._play, parts))

    def _play(self, part: Part) -> None:
        with self._lock:
            if self.stopped.is_set():
                return
            process = subprocess.Popen(
                [*self._make, part.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", env=environment(), start_new_session=True,
            )  # fmt: skip
            self._running.add(process)
        started = time.monotonic()
        reader = threading.Thread(target=self._read, args=(part, process))
        reader.start()
        code = process.wait()
        reader.join(LAST_WORDS)
        _signal(process, signal.SIGKILL)  # a process that outlives its part's make
        reader.join()
        with self._lock:
            self._running.discard(process)
        part.minutes = (time.monotonic() - started) / 60
        part.result = "passed" if code == 0 else "stopped" if self.stopped.is_set() else "FAILED"

    def _read(self, part: Part, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout, (LOGS / f"{part.name}.log").open("w") as log:
            for line in process.stdout:
                part.lines.append(line)
                log.write(line)
                self._say(f"{part.name} | {line.rstrip()}")

    def stop(self) -> None:
        """Ends the running parts, with all processes of their own; starts no other."""
        with self._lock:
            self.stopped.set()
            running = list(self._running)
        ending = [threading.Thread(target=end, args=(process,)) for process in running]
        for one in ending:
            one.start()
        for one in ending:
            one.join()


def end(process: subprocess.Popen[str]) -> None:
    """Tests end their servers at SIGINT; a part that does not end by itself is killed."""
    for number, patience in zip((signal.SIGINT, signal.SIGTERM), PATIENCE, strict=True):
        _signal(process, number)
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)  # the session that it leads


def stages(arguments: Sequence[str]) -> list[list[Part]]:
    found: list[list[Part]] = [[]]
    for word in arguments:
        if word == "--then":
            found.append([])
        else:
            found[-1].append(Part(word))
    return found


def main(arguments: Sequence[str]) -> int:
    words, make, beside = list(arguments), ["make"], 1
    while words and words[0] in ("--make", "--beside"):
        option, value, words = words[0], words[1], words[2:]
        if option == "--make":
            make = [value, "--no-print-directory"]
        else:
            beside = int(value)
    LOGS.mkdir(parents=True, exist_ok=True)
    saying = threading.Lock()

    def say(line: str) -> None:
        with saying:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    runner, ended_by = Runner(make, beside, say), 0

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal ended_by
        if not ended_by:
            ended_by = number
            threading.Thread(target=runner.stop).start()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, stop)
    order = stages(words)
    for parts in order:
        runner.run(parts)
    every = [part for parts in order for part in parts]
    say("\n" + table(every))
    if ended_by:
        return 128 + ended_by
    return 0 if all(part.result == "passed" for part in every) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
