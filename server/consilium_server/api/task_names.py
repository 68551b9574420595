"""Names of all tasks, cached, for the search."""

from __future__ import annotations

import threading
from typing import NamedTuple

from consilium_chain.errors import SpecInvalid
from consilium_core.typed_toml import parse_toml
from consilium_core.visible_text import Name
from pydantic import BaseModel
from sqlalchemy import select

from consilium_server.api.reading import At
from consilium_server.database.tables import Spec, TaskRow

FILES_AT_ONCE = 200


class _Named(BaseModel):
    name: Name


class TaskName(NamedTuple):
    """`words`: the name to search in. None and empty without a valid name."""

    task: int
    name: str | None
    words: str


class TaskNames:
    """Names of all tasks at the latest state, the latest task first. Each task file is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._of_file: dict[bytes, str | None] = {}
        self._names: list[TaskName] = []

    def at(self, at: At) -> list[TaskName]:
        with self._lock:  # also while reading, so that a new state is read once
            if self._state != at.head.state:
                self._names, self._state = self._read(at), at.head.state
            return self._names

    def _read(self, at: At) -> list[TaskName]:
        rows = at.db.execute(select(TaskRow.task, TaskRow.spec_hash).order_by(TaskRow.task.desc())).all()
        unread = list({row.spec_hash for row in rows} - self._of_file.keys())
        for start in range(0, len(unread), FILES_AT_ONCE):
            files = select(Spec.hash, Spec.text).where(Spec.hash.in_(unread[start : start + FILES_AT_ONCE]))
            self._of_file |= {digest: _name_of(text) for digest, text in at.db.execute(files)}
        named = [(row.task, self._of_file.get(row.spec_hash)) for row in rows]
        return [TaskName(task, name, (name or "").casefold()) for task, name in named]


def _name_of(text: str) -> str | None:
    try:
        return parse_toml(text.encode(), _Named, "the task file", SpecInvalid).name
    except SpecInvalid:
        return None
