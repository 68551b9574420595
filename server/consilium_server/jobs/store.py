"""The table of jobs: each job's worker, last result, and next time.

A lease only saves work. A worker may also do a job while another one has it, or after that one was killed: it does the
work that is still missing.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass

from sqlalchemy import Engine, insert, select, update

from consilium_server.database.engine import open_database, reading, writing
from consilium_server.database.tables import JobRow
from consilium_server.index.store import table_of

LONGEST_WHY, LONGEST_ERROR = 1_000, 80  # characters
MOST_AHEAD = 60.0  # seconds between the clocks of two workers at most
_JOBS = table_of(JobRow)


@dataclass(frozen=True)
class Ended:
    """The result of a run. `failure`: an error's name, and text without secrets. `wait`: seconds until the next run.

    `lasts`: False if the started process is not yet known to be stable. Then the count of failures in a row stays.
    """

    mark: str | None = None
    lasts: bool = True
    failure: tuple[str, str] | None = None
    wait: float = 0.0


def take(database: Engine, job: str, subject: str, owner: str, now: float, lease: float) -> JobRow | None:
    """The row, held for `lease` seconds; None if it is held or not due. Raises Unavailable, DatabaseUnfit."""
    matching = (_JOBS.c.job == job) & (_JOBS.c.subject == subject)
    with reading(database) as connection:  # most calls are too early, and need no writer's lock
        found = connection.execute(select(_JOBS).where(matching)).first()
    if found is not None and not _is_free(JobRow(**found._mapping), now):
        return None
    with writing(database) as connection:
        found = connection.execute(select(_JOBS).where(matching)).first()
        if found is None:
            row = JobRow(
                job=job, subject=subject, begun_at=now, ended_at=None, succeeded_at=None, outcome=None, failures=0,
                error=None, why=None, mark=None, not_before=now, owner=owner, leased_until=now + lease,
            )  # fmt: skip
            connection.execute(insert(_JOBS), [{column.key: getattr(row, column.key) for column in _JOBS.columns}])
            return row
        row = JobRow(**found._mapping)
        if not _is_free(row, now):
            return None
        values: dict[str, object] = {"begun_at": now, "owner": owner, "leased_until": now + lease}
        if _is_of_another_time(row, now):
            values |= {"ended_at": None, "not_before": now}
        connection.execute(update(_JOBS).where(matching).values(**values))
        return row


def end(database: Engine, row: JobRow, owner: str, now: float, ended: Ended) -> None:
    """Records the result, unless another worker took the job meanwhile. Raises Unavailable, DatabaseUnfit."""
    values: dict[str, object] = {"ended_at": now, "leased_until": now, "not_before": now + ended.wait}
    if ended.failure is not None:
        name, why = ended.failure
        values |= {
            "outcome": "failed",
            "failures": row.failures + 1,
            "error": name[:LONGEST_ERROR],
            "why": why[:LONGEST_WHY],
        }
    elif ended.lasts:
        values |= {"outcome": "done", "failures": 0, "error": None, "why": None, "succeeded_at": now}
        values |= {"mark": ended.mark}
    else:
        values |= {"outcome": "begun"}
    mine = (_JOBS.c.job == row.job) & (_JOBS.c.subject == row.subject) & (_JOBS.c.owner == owner)
    with writing(database) as connection:
        connection.execute(update(_JOBS).where(mine).values(**values))


def all_jobs(database: Engine) -> list[JobRow]:
    """All rows, those without a subject first. Raises Unavailable (DatabaseUnreachable)."""
    with reading(database) as connection:
        found = connection.execute(select(_JOBS).order_by(_JOBS.c.subject != "", _JOBS.c.job, _JOBS.c.subject))
        return [JobRow(**row._mapping) for row in found]


@dataclass(frozen=True)
class LastRun:
    """A job's last run. `state`: as `state_of` has it. Times in whole seconds since the epoch."""

    job: str
    subject: str
    state: str
    failures: int
    begun_at: int
    succeeded_at: int | None
    next_try_at: int | None
    error: str | None
    why: str | None
    worker: str

    @classmethod
    def of(cls, row: JobRow, now: float) -> LastRun:
        succeeded_at = None if row.succeeded_at is None else int(row.succeeded_at)
        next_try_at = int(row.not_before) if row.not_before > now else None
        return cls(
            row.job, row.subject, state_of(row, now), row.failures, int(row.begun_at), succeeded_at, next_try_at,
            row.error, row.why, row.owner,
        )  # fmt: skip


def last_runs(url: str, now: float) -> list[LastRun]:
    """`url`: the database's. Raises Unavailable (DatabaseUnreachable), DatabaseUnfit."""
    database = open_database(url)
    try:
        return [LastRun.of(row, now) for row in all_jobs(database)]
    finally:
        database.dispose()


def state_of(row: JobRow, now: float) -> str:
    """running, done, begun, failed, or lost (its worker did not end it)."""
    if row.ended_at is not None and row.ended_at >= row.begun_at:
        return row.outcome or "lost"
    return "running" if row.leased_until > now else "lost"


def new_owner() -> str:
    """A name for a run: host, process, and a random part."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}:{secrets.token_hex(4)}"


def not_before(row: JobRow, now: float) -> float:
    """The earliest time of the next run. A row from the future comes from a wrong clock, and is ignored."""
    return 0.0 if _is_of_another_time(row, now) else row.not_before


def _is_free(row: JobRow, now: float) -> bool:
    is_held = row.leased_until > now and not _is_gone(row.owner) and not _is_of_another_time(row, now)
    return not_before(row, now) <= now and not is_held


def _is_of_another_time(row: JobRow, now: float) -> bool:
    return max(row.begun_at, row.ended_at or 0.0) > now + MOST_AHEAD


def _is_gone(owner: str) -> bool:
    """True if it was a process of this machine, and has ended. Other processes count until the end of their lease."""
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    if host != socket.gethostname()[:80] or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
