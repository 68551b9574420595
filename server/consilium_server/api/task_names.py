"""Names of all tasks, and members of all ensembles, cached, for the search."""

from __future__ import annotations

import threading
from itertools import groupby
from typing import NamedTuple

from consilium_chain.errors import SpecInvalid
from consilium_core.typed_toml import parse_toml
from consilium_core.visible_text import Name
from pydantic import BaseModel
from sqlalchemy import select

from consilium_server.api.reading import At
from consilium_server.database.sale_tables import MemberRow
from consilium_server.database.tables import Spec, TaskRow

FILES_AT_ONCE = 200


class _Named(BaseModel):
    name: Name


class TaskName(NamedTuple):
    """`words`: the name to search in. None and empty without a valid name."""

    task: int
    name: str | None
    words: str


class MemberNames(NamedTuple):
    """An ensemble's members, by task."""

    ensemble: int
    members: tuple[TaskName, ...]


class Names(NamedTuple):
    """The latest task and the latest ensemble come first."""

    tasks: list[TaskName]
    ensembles: list[MemberNames]


class TaskNames:
    """Names of all tasks and of ensembles' members at the latest state. Each task file is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._of_file: dict[bytes, str | None] = {}
        self._names = Names([], [])

    def at(self, at: At) -> Names:
        with self._lock:  # also while reading, so that a new state is read once
            if self._state != at.head.state:
                tasks = self._read(at)
                self._names, self._state = Names(tasks, _ensembles(at, tasks)), at.head.state
            return self._names

    def _read(self, at: At) -> list[TaskName]:
        rows = at.db.execute(select(TaskRow.task, TaskRow.spec_hash).order_by(TaskRow.task.desc())).all()
        unread = list({row.spec_hash for row in rows} - self._of_file.keys())
        for start in range(0, len(unread), FILES_AT_ONCE):
            files = select(Spec.hash, Spec.text).where(Spec.hash.in_(unread[start : start + FILES_AT_ONCE]))
            self._of_file |= {digest: _name_of(text) for digest, text in at.db.execute(files)}
        named = [(row.task, self._of_file.get(row.spec_hash)) for row in rows]
        return [TaskName(task, name, (name or "").casefold()) for task, name in named]


def _ensembles(at: At, tasks: list[TaskName]) -> list[MemberNames]:
    named = {one.task: one for one in tasks}
    query = select(MemberRow.ensemble, MemberRow.task).order_by(MemberRow.ensemble.desc(), MemberRow.task)
    found = groupby(at.db.execute(query), key=lambda row: int(row.ensemble))
    return [
        MemberNames(ensemble, tuple(named.get(row.task) or TaskName(row.task, None, "") for row in rows))
        for ensemble, rows in found
    ]


def _name_of(text: str) -> str | None:
    try:
        return parse_toml(text.encode(), _Named, "the task file", SpecInvalid).name
    except SpecInvalid:
        return None
