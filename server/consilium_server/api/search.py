"""One search: an address or its beginning, a transaction's hash, a task's number, or a name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, Literal

from eth_utils.address import to_checksum_address
from fastapi import APIRouter, Query, Response
from sqlalchemy import select

from consilium_server.api.context import Service
from consilium_server.api.problems import documented
from consilium_server.api.reading import At, at_head
from consilium_server.api.routing import Shared
from consilium_server.api.schemas import Account, ApiModel, RoleName
from consilium_server.api.task_names import TaskName
from consilium_server.database.tables import EventRow, ProfileRow
from consilium_server.verified_names import names_with

MOST_HITS = 20
MOST_OF_A_KIND = 10  # nodes by name, so that tasks have room
_ADDRESS, _HASH = re.compile("0x[0-9a-f]{1,40}"), re.compile("0x[0-9a-f]{64}")


class Hit(ApiModel):
    """`account` of a transaction: the subject of its first event."""

    kind: Literal["task", "node", "account", "transaction"]
    task: int | None = None
    round: int | None = None
    account: Account | None = None
    role: RoleName | None = None
    name: str | None = None


class Found(ApiModel):
    items: list[Hit]


search = APIRouter(prefix="/v1", tags=["network"])
ROUTERS = (search,)


@search.get(
    "/search", operation_id="search", summary="Finds accounts, nodes, tasks and transactions: 20 at most",
    responses=documented(422, 429),
)  # fmt: skip
def find(
    service: Shared,
    response: Response,
    q: Annotated[
        str, Query(min_length=1, max_length=100, description="an address or its beginning, a number, a hash, or a name")
    ],
) -> Found:
    response.headers["Cache-Control"] = "no-cache"
    words = " ".join(q.casefold().split())
    with at_head(service.engine, service.deployment) as at:
        return Found(items=list(islice(_hits(at, service, words), MOST_HITS)))


def _hits(at: At, service: Service, words: str) -> Iterator[Hit]:
    if not words:
        return iter(())
    if _HASH.fullmatch(words):
        return _transactions(at, words)
    if _ADDRESS.fullmatch(words):
        return _accounts(at, service, words)
    return chain(
        _numbered(at, service, words), islice(_profiles(at, words), MOST_OF_A_KIND), _named(at, service, words)
    )


def _numbered(at: At, service: Service, words: str) -> Iterator[Hit]:
    number = words.removeprefix("#")
    return (_task(one) for one in service.names.at(at) if str(one.task) == number)


def _named(at: At, service: Service, words: str) -> Iterator[Hit]:
    return (_task(one) for one in service.names.at(at) if words in one.words)


def _task(of: TaskName) -> Hit:
    return Hit(kind="task", task=of.task, name=of.name)


def _transactions(at: At, words: str) -> Iterator[Hit]:
    query = select(EventRow).where(EventRow.transaction == bytes.fromhex(words[2:])).limit(1)
    for event in at.db.scalars(query):
        yield Hit(kind="transaction", task=event.task, round=event.round, account=event.account)


def _accounts(at: At, service: Service, words: str) -> Iterator[Hit]:
    for node in service.nodes.at(at, 30).nodes:
        if node.node.lower().startswith(words):
            yield Hit(kind="node", account=node.node, role=node.role)
    if len(words) == len("0x") + 40:
        yield Hit(kind="account", account=to_checksum_address(words))


def _profiles(at: At, words: str) -> Iterator[Hit]:
    """By the names of profiles, and by verified names."""
    query = select(ProfileRow).where(ProfileRow.words.contains(words, autoescape=True)).order_by(ProfileRow.account)
    found = {row.account: row.signed["name"] for row in at.db.scalars(query.limit(MOST_OF_A_KIND))}
    for row in names_with(at.db, words, MOST_OF_A_KIND, time.time()):
        found.setdefault(row.account, row.name)
    for account, name in found.items():
        yield Hit(kind="account", account=account, name=name)
