"""Runs a job once, if no other worker holds it and it is due, and records the result."""

from __future__ import annotations

import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from consilium_chain.errors import name_of
from consilium_core.errors import CoreError
from consilium_core.logs import about, emit
from consilium_zk.errors import ZkError
from sqlalchemy import Engine

from consilium_server.database.tables import JobRow
from consilium_server.errors import DatabaseUnfit, ServerError, Unavailable
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.jobs.store import Ended, end, new_owner, take

MOST_TRACED = 12  # calls of an unexpected error


@dataclass(frozen=True)
class Job:
    """A kind of job. `lease`: seconds after which its worker counts as gone."""

    name: str
    lease: float
    retry: RetryPolicy


@dataclass
class _Away:
    """Failures that only this process remembers: the database does not answer, or has a later version."""

    failures: int = 0
    not_before: float = 0.0  # by the process's own clock


class Runner:
    """Runs the jobs of one process. An error ends its job, and not the worker."""

    def __init__(self, database: Engine) -> None:
        self._database = database
        self._away: dict[tuple[str, str], _Away] = {}
        self._lock = threading.Lock()

    def run(self, job: Job, subject: str, work: Callable[[JobRow], Ended]) -> None:
        """Runs the job unless another worker holds it. `work` gets the job's previous row."""
        owner = new_owner()
        key = (job.name, subject)
        with about(job=job.name, **_named(subject)):
            with self._lock:
                away = self._away.get(key, _Away())
            if time.monotonic() < away.not_before:
                return
            try:
                row = take(self._database, job.name, subject, owner, time.time(), job.lease)
                if row is not None:
                    ended = self._ended(job, row, work)
                    end(self._database, row, owner, time.time(), ended)
                with self._lock:
                    self._away.pop(key, None)
            except (Unavailable, DatabaseUnfit) as error:
                failures = away.failures + 1
                wait = job.retry.seconds(failures, random.random())
                with self._lock:
                    self._away[key] = _Away(failures, time.monotonic() + wait)
                emit("job-failed", error=name_of(error), why=str(error), failures=failures, wait=round(wait, 1))

    def _ended(self, job: Job, row: JobRow, work: Callable[[JobRow], Ended]) -> Ended:
        began, failures = time.monotonic(), row.failures + 1
        try:
            ended = work(row)
        except (CoreError, ServerError, ZkError) as error:
            failure, trace = (name_of(error), str(error)), None
        except Exception as error:  # its text may contain secrets; its class and its line in the code do not
            trace = traced(error)
            failure = (name_of(error), f"unexpected error at {trace[-1]}: report it to the authors of this program")
        else:
            if row.failures and ended.lasts:
                emit("job-recovered", failures=row.failures, seconds=round(time.monotonic() - began, 3))
            return ended
        wait = job.retry.seconds(failures, random.random())
        extra: dict[str, object] = {} if trace is None else {"trace": trace}
        emit("job-failed", error=failure[0], why=failure[1], failures=failures, wait=round(wait, 1), **extra)
        return Ended(failure=failure, wait=wait)


def traced(error: Exception) -> list[str]:
    """The call stack of an unexpected error, the innermost call last."""
    calls = traceback.extract_tb(error.__traceback__)[-MOST_TRACED:]
    return [f"{_module(call.filename)}:{call.lineno} {call.name}" for call in calls]


def _named(subject: str) -> dict[str, int]:
    return dict(zip(("task", "round"), map(int, subject.split("/")), strict=False)) if subject else {}


def _module(path: str) -> str:
    return "/".join(path.split(os.sep)[-2:])
