"""Asks everybody side by side, each for a bounded time: who does not answer keeps no other finding waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consilium_chain.errors import name_of

from consilium_cli.doctor.findings import Finding, Findings, Level

LIMIT = 5.0  # seconds for all


@dataclass(frozen=True)
class Check:
    """`look` may take its time, and raise, which is a finding of `worst`. Where it fails together with what it `needs`,
    that one's finding says enough.
    """

    name: str
    look: Callable[[], Findings]
    of: str
    needs: str | None = None
    worst: Level = Level.FAULT


def ask(checks: Sequence[Check], limit: float | None = None) -> Findings:
    """In the order of the checks. `limit`: seconds, by default LIMIT."""
    limit = LIMIT if limit is None else limit
    asked = [_Asked(check) for check in checks]
    for one in asked:
        one.start()
    end = time.monotonic() + limit
    for one in asked:
        one.join(max(0.0, end - time.monotonic()))
    failed = {one.check.name for one in asked if one.failure(limit) is not None}
    found: Findings = []
    for one in asked:
        failure = one.failure(limit)
        if failure is None:
            found += one.found
        elif one.check.needs not in failed:
            found.append(failure)
    return found


class _Asked(threading.Thread):
    """A daemon: one that hangs does not outlive the command."""

    def __init__(self, check: Check) -> None:
        super().__init__(daemon=True)
        self.check = check
        self.found: Findings = []
        self._failure: Finding | None = None
        self._is_done = False

    def run(self) -> None:
        try:
            self.found = self.check.look()
        except Exception as error:
            self._failure = _told(self.check, error)
        self._is_done = True

    def failure(self, limit: float) -> Finding | None:
        if self._is_done:
            return self._failure
        told = f"{self.check.of} does not answer within {limit:g} s"
        way_out = "see that it runs, that its address is right, and that no firewall is in between"
        return Finding(self.check.name, self.check.worst, told, way_out, {"of": self.check.of})


def _told(check: Check, error: Exception) -> Finding:
    """This project's errors name the way out; what a library says may hold what nobody should read."""
    name = name_of(error)
    if any(kind.__module__.startswith("consilium_") for kind in type(error).__mro__):
        return Finding(check.name, check.worst, str(error), f"as it says ({name})", {"error": name})
    cause = error.strerror if isinstance(error, OSError) and error.strerror else name
    return Finding(check.name, check.worst, f"{check.of}: {cause}", "see to it, then look again", {"error": name})
