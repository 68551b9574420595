"""Reading the index: every answer is of one head, says which, and is not sent again to who has it.

All that is answered is a function of the index's head and the question. So the head's hash and the question make a
strong validator (RFC 9110, 8.8.3), known before anything is read.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import Engine, and_, func, select
from sqlalchemy.orm import Session

from consilium_server.api import paging
from consilium_server.api.context import Service, service_of
from consilium_server.api.paging import LARGEST_PAGE
from consilium_server.database.engine import open_database
from consilium_server.database.tables import Block, Checkpoint, Spec

THREADS = 40  # that answer requests side by side, and so connections
MOST_KEPT = 32 << 20  # bytes of answers
BLOCK_HEADER = "X-Consilium-Block"


class Answers:
    """The latest answers by their validators: what many ask at one head is read and put into words once."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self._size = most, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tag: str) -> bytes | None:
        with self._lock:
            if tag in self._kept:
                self._kept.move_to_end(tag)
            return self._kept.get(tag)

    def put(self, tag: str, answer: bytes) -> None:
        with self._lock:
            self._size += len(answer) - len(self._kept.pop(tag, b""))
            self._kept[tag] = answer
            while self._size > self._most:
                _, oldest = self._kept.popitem(last=False)
                self._size -= len(oldest)


@dataclass(frozen=True)
class Head:
    """Up to which block all is in the tables; None before the first. `specs`: how many task files are known, which
    come by themselves. `time`: of the latest block with anything in it, 0 before the first.
    """

    number: int | None
    hash: bytes
    specs: int
    time: int


@dataclass(frozen=True)
class At:
    """The tables at one head."""

    db: Session
    head: Head
    service: Service


def open_engine(url: str) -> Engine:
    """For readers: each transaction sees one moment. Raises as `open_database`."""
    engine = open_database(url, THREADS)
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ")


@contextmanager
def at_head(service: Service) -> Iterator[At]:
    with Session(service.engine) as db, db.begin():
        yield At(db, head_of(db), service)


def head_of(db: Session) -> Head:
    latest = db.execute(select(Checkpoint.number, Checkpoint.hash).order_by(Checkpoint.number.desc()).limit(1)).first()
    specs = db.scalar(select(func.count()).select_from(Spec)) or 0
    time = db.scalar(select(Block.time).order_by(Block.number.desc()).limit(1)) or 0
    return Head(latest[0], latest[1], specs, time) if latest else Head(None, b"", specs, time)


def latest(model: Any, keys: Sequence[Any], *where: Any, first: bool = False) -> Any:
    """A subquery of the latest row for each of the keys, by block and log; or of the latest in its `first` block.

    The block is found in the index alone, for a table has many rows for each key; then of those in it the row.
    """
    chosen = (func.min if first else func.max)(model.block).label("chosen")
    named = [key.label(f"key_{n}") for n, key in enumerate(keys)]
    blocks = select(*named, chosen).where(*where).group_by(*keys).subquery()
    same = [key == blocks.c[f"key_{n}"] for n, key in enumerate(keys)]
    order = (model.log_index.desc(), model.item.desc())
    rank = func.row_number().over(partition_by=list(keys), order_by=order).label("place")
    ranked = select(model, rank).join(blocks, and_(*same, model.block == blocks.c.chosen)).where(*where).subquery()
    return select(ranked).where(ranked.c.place == 1).subquery()


class Reader:
    """One request's way to the tables, and what its answer's headers say."""

    def __init__(self, request: Request) -> None:
        self._request, self._service = request, service_of(request)

    def answer(self, read: Callable[[At], BaseModel], *, depends_on: str = "") -> Response:
        """What `read` says at the head, or that the client has it. `depends_on`: what else it is a function of."""
        with at_head(self._service) as at:
            headers = self.headers(at.head, depends_on)
            if self.is_known(headers):
                return Response(status_code=304, headers=headers)
            found = self._service.answers.get(headers["ETag"])
            if found is None:
                found = read(at).model_dump_json().encode()
                self._service.answers.put(headers["ETag"], found)
        return Response(found, headers=headers, media_type="application/json")

    def is_known(self, headers: dict[str, str]) -> bool:
        """Whether the client has the answer that these are of."""
        return headers["ETag"] in _known(self._request)

    def headers(self, head: Head, depends_on: str = "") -> dict[str, str]:
        question = f"{self._request.url.path}?{_sorted_query(self._request, ())}"
        content = "\0".join((question, depends_on, head.hash.hex(), str(head.specs)))
        tag = hashlib.sha256(content.encode()).hexdigest()[:32]
        told = {"ETag": f'"{tag}"', "Cache-Control": "public, no-cache"}
        return told if head.number is None else told | {BLOCK_HEADER: str(head.number)}


def _known(request: Request) -> list[str]:
    """Validators that If-None-Match names; by the weak comparison that it calls for."""
    given = ",".join(request.headers.getlist("if-none-match"))
    return [one.strip().removeprefix("W/") for one in given.split(",")]


def _sorted_query(request: Request, without: tuple[str, ...]) -> str:
    return "&".join(sorted(f"{k}={v}" for k, v in request.query_params.multi_items() if k not in without))


async def reader(request: Request) -> Reader:
    return Reader(request)


async def asked(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="rows of a page, at most")] = 50,
    cursor: Annotated[
        str | None, Query(max_length=512, description="`next` of the page before; without it, the first page")
    ] = None,
) -> paging.Asked:
    scope = f"{request.url.path}?{_sorted_query(request, ('limit', 'cursor'))}"
    return paging.Asked(scope, limit, cursor, service_of(request).seal)


FromReader = Annotated[Reader, Depends(reader)]
Paged = Annotated[paging.Asked, Depends(asked)]
