"""Names of all tasks, and members of all ensembles, cached, for the search."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import NamedTuple

from consilium_chain.errors import SpecInvalid
from consilium_core.typed_toml import parse_toml
from consilium_core.visible_text import Name
from pydantic import BaseModel
from sqlalchemy import func, select

from consilium_server.api.reading import At
from consilium_server.database.sale_tables import MemberRow
from consilium_server.database.tables import Block, Spec, TaskRow

FILES_AT_ONCE = 200


class _Named(BaseModel):
    name: Name


class TaskName(NamedTuple):
    """`words`: the name to search in. None and empty without a valid name."""

    task: int
    name: str | None
    words: str


class Names(NamedTuple):
    """Tasks by number, and the members of ensembles by number. The latest come first."""

    tasks: dict[int, TaskName]
    ensembles: dict[int, list[int]]


class TaskNames:
    """Names of all tasks, and ensembles' members, at the latest state. Each task file is read once. Members are read
    again only if ensembles came or went, because anybody can form many.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._of_file: dict[bytes, str | None] = {}
        self._names = Names({}, {})
        self._formed: tuple[bytes | None, int | None] = (None, 0)

    def at(self, at: At) -> Names:
        with self._lock:  # also while reading, so that a new state is read once
            if self._state != at.head.state:
                self._names, self._state = Names(self._tasks(at), self._ensembles(at)), at.head.state
            return self._names

    def _tasks(self, at: At) -> dict[int, TaskName]:
        rows = at.db.execute(select(TaskRow.task, TaskRow.spec_hash).order_by(TaskRow.task.desc())).all()
        unread = list({row.spec_hash for row in rows} - self._of_file.keys())
        for start in range(0, len(unread), FILES_AT_ONCE):
            files = select(Spec.hash, Spec.text).where(Spec.hash.in_(unread[start : start + FILES_AT_ONCE]))
            self._of_file |= {digest: _name_of(text) for digest, text in at.db.execute(files)}
        named = [(row.task, self._of_file.get(row.spec_hash)) for row in rows]
        return {task: TaskName(task, name, (name or "").casefold()) for task, name in named}

    def _ensembles(self, at: At) -> dict[int, list[int]]:
        latest = select(Block.hash).join(MemberRow, MemberRow.block == Block.number).order_by(MemberRow.block.desc())
        count = at.db.scalar(select(func.count()).select_from(MemberRow))  # reindexing adds earlier ones
        formed = (at.db.scalar(latest.limit(1)), count)
        if formed == self._formed:
            return self._names.ensembles
        found: defaultdict[int, list[int]] = defaultdict(list)
        query = select(MemberRow.ensemble, MemberRow.task).order_by(MemberRow.ensemble.desc(), MemberRow.task)
        for ensemble, task in at.db.execute(query):
            found[ensemble].append(task)
        self._formed = formed
        return dict(found)


def _name_of(text: str) -> str | None:
    try:
        return parse_toml(text.encode(), _Named, "the task file", SpecInvalid).name
    except SpecInvalid:
        return None
