"""One search: an address or its beginning, a transaction's hash, a task's or an ensemble's number, or a name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Annotated, Literal

from consilium_chain.ledger.ensembles import ENSEMBLES
from eth_utils.address import to_checksum_address
from fastapi import APIRouter, Query, Response
from sqlalchemy import select

from consilium_server.api.context import Service
from consilium_server.api.problems import documented
from consilium_server.api.reading import At, at_head
from consilium_server.api.routing import Shared
from consilium_server.api.schemas import Account, ApiModel, RoleName
from consilium_server.api.task_names import Names, TaskName
from consilium_server.database.tables import EventRow, ProfileRow
from consilium_server.verified_names import names_with

MOST_HITS = 20
MOST_OF_A_KIND = 6  # nodes by name, and ensembles by their members', so that tasks have room
_ENSEMBLE = re.compile("(?:ensemble |conjunto )?#?([0-9]{1,16})")  # as the dashboard's languages call one
_ADDRESS, _HASH = re.compile("0x[0-9a-f]{1,40}"), re.compile("0x[0-9a-f]{64}")


class Hit(ApiModel):
    """`account` of a transaction: the subject of its first event. `name` of an ensemble: of the first member whose name
    has the text, else of the first member.
    """

    kind: Literal["task", "ensemble", "node", "account", "transaction"]
    task: int | None = None
    ensemble: int | None = None
    round: int | None = None
    account: Account | None = None
    role: RoleName | None = None
    name: str | None = None


class Found(ApiModel):
    items: list[Hit]


search = APIRouter(prefix="/v1", tags=["network"])
ROUTERS = (search,)


@search.get(
    "/search", operation_id="search", summary="Finds accounts, nodes, tasks, ensembles and transactions: 20 at most",
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
    names = service.names.at(at)
    first = [*_numbered(names, words), *islice(_profiles(at, words), MOST_OF_A_KIND)]
    last = list(islice(_with_members(names, words), MOST_OF_A_KIND))
    return _once(chain(first, islice(_named(names, words), MOST_HITS - len(first) - len(last)), last))


def _once(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Each hit at its first place: a number may be in a name, too."""
    seen = set()
    for hit in hits:
        key = (hit.kind, hit.task, hit.ensemble, hit.account)
        if key not in seen:
            seen.add(key)
            yield hit


def _numbered(names: Names, words: str) -> Iterator[Hit]:
    number = words.removeprefix("#")
    yield from (_task(one) for one in names.tasks.values() if str(one.task) == number)
    if found := _ENSEMBLE.fullmatch(words):
        for one in (int(found[1]), ENSEMBLES + int(found[1])):
            if one in names.ensembles:
                yield _ensemble(names, one, words)


def _named(names: Names, words: str) -> Iterator[Hit]:
    return (_task(one) for one in names.tasks.values() if words in one.words)


def _with_members(names: Names, words: str) -> Iterator[Hit]:
    named = {one.task for one in names.tasks.values() if words in one.words}
    if named:
        for one, members in names.ensembles.items():
            if not named.isdisjoint(members):
                yield _ensemble(names, one, words)


def _task(of: TaskName) -> Hit:
    return Hit(kind="task", task=of.task, name=of.name)


def _ensemble(names: Names, number: int, words: str) -> Hit:
    members = [names.tasks[one] for one in names.ensembles[number] if one in names.tasks]
    shown = min(members, key=lambda one: words not in one.words, default=None)
    return Hit(kind="ensemble", ensemble=number, name=shown.name if shown else None)


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
