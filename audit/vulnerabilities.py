"""Asks for known vulnerabilities of what is pinned: npm for the lock files, pip-audit for `constraints.txt`.

Exit status: 1 where one is known; else 2 where somebody gave no answer, unless that is allowed; else 0. Also 2 where an
option or `ignored.txt` is malformed: nobody is asked then.

Reports: version 2 of `npm audit --json` (npm's `npm-audit-report`), and pip-audit's `--format json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dependencies import LOCKS, ROOT

IGNORED = Path(__file__).with_name("ignored.txt")
TIMEOUT_S = 180.0
LONGEST = 300  # characters of foreign text on a line

# Told outright, because settings of the machine may have npm ask nobody, or leave packages out.
NPM = ("npm", "audit", "--package-lock-only", "--json", "--offline=false",
       "--include=dev", "--include=optional", "--include=peer")  # fmt: skip
PIP_AUDIT = (str(Path(sys.executable).with_name("pip-audit")), "--strict", "--no-deps", "--disable-pip",
             "--format=json", "--aliases=on", "--desc=off", "--requirement=constraints.txt")  # fmt: skip


class NoAnswer(Exception):
    """Nobody said what is known; with the words that came instead."""


class IgnoredMalformed(ValueError):
    """A line of `ignored.txt` is no id with a reason."""


@dataclass(frozen=True)
class Finding:
    """ids: all by which others call it."""

    ids: frozenset[str]
    words: str


@dataclass(frozen=True)
class Report:
    """packages: how many were looked up."""

    packages: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Question:
    name: str
    command: tuple[str, ...]
    folder: Path
    read: Callable[[Any], Report]


def npm_report(report: Any) -> Report:
    """Of what was parsed. Raises NoAnswer where it tells an error, and ValueError, LookupError, TypeError or
    AttributeError at another shape.

    An advisory stands under the package that has the fault; whatever only depends on that one names it.
    """
    if "error" in report or "message" in report:
        told = [report.get("message"), *(report.get("error") or {}).values()]
        raise NoAnswer(plain("; ".join(str(one) for one in told if one)) or "an error without words")
    if report["auditReportVersion"] != 2:
        raise ValueError(report["auditReportVersion"])
    found: dict[tuple[str, str], Finding] = {}
    for package, entry in report["vulnerabilities"].items():
        for one in entry["via"]:
            if not isinstance(one, str):
                advisory = str(one.get("url") or one["source"]).rpartition("/")[2]
                words = f"{package} {one.get('range')}: {advisory}, {one.get('severity')}: {one.get('title')}"
                found[package, advisory] = Finding(frozenset({advisory}), plain(words))
    if report["vulnerabilities"] and not found:
        raise ValueError("packages without an advisory")
    return Report(report["metadata"]["dependencies"]["total"], tuple(found.values()))


def pip_report(report: Any) -> Report:
    """Of what was parsed. Raises LookupError, TypeError or AttributeError at another shape."""
    found = []
    for package in report["dependencies"]:
        for one in package["vulns"]:
            names = (one["id"], *one["aliases"])
            mended = f"mended in {', '.join(one['fix_versions'])}" if one["fix_versions"] else "not mended"
            words = f"{package['name']} {package['version']}: {', '.join(names)}: {mended}"
            found.append(Finding(frozenset(names), plain(words)))
    return Report(len(report["dependencies"]), tuple(found))


QUESTIONS = (
    *(Question(f"npm audit, {lock.parent.relative_to(ROOT)}", NPM, lock.parent, npm_report) for lock in LOCKS),
    Question("pip-audit, constraints.txt", PIP_AUDIT, ROOT, pip_report),
)


def ask(question: Question, timeout_s: float) -> Report:
    """Raises NoAnswer. Nothing that it starts outlives the time."""
    return answer(question, *_run(question.command, question.folder, timeout_s))


def answer(question: Question, status: int, said: str, errors: str) -> Report:
    """Of what its program said. Raises NoAnswer."""
    try:
        if status not in (0, 1):
            raise ValueError(status)
        report = question.read(json.loads(said))
        if type(report.packages) is not int or report.packages < 1:
            raise ValueError(report.packages)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise NoAnswer(f"no report, but exit status {status}: {_refusal(errors)}") from error
    return report


def _run(command: tuple[str, ...], folder: Path, timeout_s: float) -> tuple[int, str, str]:
    """In a process group of its own, which is ended as a whole: programs start others, and these keep pipes open."""
    try:
        child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise NoAnswer(f"{command[0]} does not start: {error.strerror}") from error
    with child:
        try:
            said, errors = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"nothing within {timeout_s:g} s") from error
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, said, errors


def _refusal(errors: str) -> str:
    """The last of what a program calls errors; of all that it says, if it calls nothing so."""
    lines = [line for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower()]
    return plain("; ".join((named or lines)[-3:])) or "it said nothing"


def plain(text: str) -> str:
    """On one line, without what steers a terminal."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def ignored(path: Path) -> frozenset[str]:
    """Ids. Raises IgnoredMalformed."""
    found = set()
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            match = re.fullmatch(r"(\S+)\s+\S.*", line)
            if match is None:
                raise IgnoredMalformed(f"{path.name}: no id with a reason: {line}")
            found.add(match[1])
    return frozenset(found)


def audit(questions: Iterable[Question], passed_over: frozenset[str], timeout_s: float) -> tuple[bool, bool]:
    """Whether anything is known, and whether somebody did not answer. Says it as it goes, and in the end at once."""
    known = unanswered = False
    summary = []
    for question in questions:
        _say(f"asking {question.name}")
        try:
            report = ask(question, timeout_s)
        except NoAnswer as refusal:
            unanswered = True
            summary.append(f"{question.name}: no answer: {refusal}")
            continue
        counted = [one for one in report.findings if not one.ids & passed_over]
        for one in counted:
            _say(f"  {one.words}")
        known = known or bool(counted)
        said = f"{len(counted)} known" if counted else "nothing known"
        left = len(report.findings) - len(counted)
        summary.append(f"{question.name}: {said}, of {report.packages} packages"
                       + (f"; {left} passed over by {IGNORED.name}" if left else ""))  # fmt: skip
    for line in summary:
        _say(line)
    return known, unanswered


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask for known vulnerabilities of what is pinned.")
    parser.add_argument("--where-answered", action="store_true", help="do not fail where somebody gives no answer")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="SECONDS", help="for each list")
    options = parser.parse_args()
    try:
        passed_over = ignored(IGNORED)
    except IgnoredMalformed as error:
        parser.error(str(error))
    known, unanswered = audit(QUESTIONS, passed_over, options.timeout)
    if known:
        return 1
    return 2 if unanswered and not options.where_answered else 0


if __name__ == "__main__":
    sys.exit(main())
