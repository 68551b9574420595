"""Makes all checks in parallel, each for a bounded time. A check that hangs delays no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consilium_core.faults import printed_name

from consilium_operators.doctor.findings import Finding, Findings, Level

LIMIT = 5.0  # seconds for all


@dataclass(frozen=True)
class Check:
    """`run` may take its time, and may raise, which is a finding of level `worst`. `of`: the part that is checked, in
    words. `needs`: other checks; if one of them fails as well, only its finding is shown.
    """

    name: str
    run: Callable[[], Findings]
    of: str
    needs: tuple[str, ...] = ()
    worst: Level = Level.FAULT


def run_checks(checks: Sequence[Check], limit: float | None = None) -> Findings:
    """Findings in the order of the checks. `limit`: seconds, by default LIMIT."""
    limit = LIMIT if limit is None else limit
    running = [_Running(check) for check in checks]
    for one in running:
        one.start()
    end = time.monotonic() + limit
    for one in running:
        one.join(max(0.0, end - time.monotonic()))
    results = [_timed_out(one.check, limit) if (result := one.result) is None else result for one in running]
    failed = {result.check for result in results if isinstance(result, Finding)}
    found: Findings = []
    for one, result in zip(running, results, strict=True):
        if not isinstance(result, Finding):
            found += result
        elif failed.isdisjoint(one.check.needs):
            found.append(result)
    return found


class _Running(threading.Thread):
    """A daemon, so that a check that hangs does not outlive the command."""

    def __init__(self, check: Check) -> None:
        super().__init__(daemon=True)
        self.check = check
        self.result: Findings | Finding | None = None  # a finding alone is the check's failure

    def run(self) -> None:
        try:
            self.result = self.check.run()
        except Exception as error:
            self.result = _failure(self.check, error)


def _timed_out(check: Check, limit: float) -> Finding:
    says = f"{check.of} does not answer within {limit:g} s"
    remedy = "check that it runs, that its address is right, and that no firewall is in between"
    return Finding(check.name, check.worst, says, remedy, {"of": check.of})


def _failure(check: Check, error: Exception) -> Finding:
    """This project's errors contain the remedy. The text of a library's error may hold secrets, and is not repeated."""
    name = printed_name(error)
    if any(kind.__module__.startswith("consilium_") for kind in type(error).__mro__):
        return Finding(check.name, check.worst, str(error), f"do as it says ({name})", {"error": name})
    cause = error.strerror if isinstance(error, OSError) and error.strerror else name
    return Finding(check.name, check.worst, f"{check.of}: {cause}", "repair it, then try again", {"error": name})
