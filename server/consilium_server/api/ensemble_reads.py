"""Reads ensembles of models from the tables: their members, weights, offers and sales."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from consilium_chain.ledger.ensembles import ENSEMBLES
from consilium_chain.tasks.limits import MICRO
from consilium_core.units import exact_tokens
from fastapi import Query
from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.orm import aliased

from consilium_server.api import sale_schemas, schemas
from consilium_server.api.asked import asked_view
from consilium_server.api.money_reads import csv_text
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At
from consilium_server.api.routing import LIST, ONE, Paged, read_route
from consilium_server.api.sale_reads import Searched, days_of, money_of, offering, offers_of, sales
from consilium_server.api.task_reads import spec_of
from consilium_server.database.sale_tables import MemberRow, SaleRow
from consilium_server.database.tables import Block, Spec, TaskRow

COLUMNS = (
    "number", "members", "gains", "weights", "offers", "lowest_price", "sold", "sales", "predictions", "buyers",
)  # fmt: skip


@read_route(sales, "/ensembles", "listEnsembles", "Ensembles of models, the latest first", LIST)
def list_ensembles(
    at: At,
    request: Paged,
    q: Searched = None,
    member: Annotated[schemas.TaskNumber | None, Query(description="only ensembles with this task")] = None,
) -> schemas.Page[sale_schemas.Ensemble]:
    """A page of ensembles that this search finds, by their members' files too; None for all."""
    cut = request.read(at.db, _found(q, member), [MemberRow.ensemble], descending=True)
    return schemas.Page(items=_ensembles(at, cut.rows), next=cut.next)


@read_route(sales, "/ensembles/{number}", "getEnsemble", "An ensemble: its members, offers and sales", ONE)
def one_ensemble(at: At, number: schemas.TaskNumber) -> sale_schemas.EnsembleSales:
    """Raises Problem if there is no such ensemble."""
    rows = at.db.execute(_found(None).where(MemberRow.ensemble == number)).all()
    if not rows:
        raise Problem("not-found", f"the index has no ensemble {number}: /v1/ensembles lists all ensembles")
    (found,) = _ensembles(at, rows)
    days = [
        sale_schemas.SoldDay(day=one.day, sold=one.sold, predictions=one.predictions) for one in days_of(at, number)
    ]
    return sale_schemas.EnsembleSales(**dict(found), days=days)


def ensembles_csv(at: At, q: str | None) -> str:
    """All ensembles that a search finds (RFC 4180). Lists are by member, with spaces between. Amounts are in tokens."""
    rows = at.db.execute(_found(q).order_by(MemberRow.ensemble.desc())).all()
    return csv_text([COLUMNS, *map(_cells, _ensembles(at, rows))])


def _cells(one: sale_schemas.Ensemble) -> list[object]:
    lowest = one.offers[0].price if one.offers else None
    lists = [
        " ".join(str(getattr(member, name)) for member in one.members) for name in ("task", "gain", "weight")
    ]  # fmt: skip
    price = None if lowest is None else exact_tokens(int(lowest))
    money = [exact_tokens(int(one.sold)), one.sales, one.predictions, one.buyers]
    return [one.number, *lists, one.offers_in_all, price, *money]


def _found(q: str | None, task: int | None = None) -> Any:
    """One row of each: of its first member. `task`: only ensembles with it."""
    query = select(MemberRow.ensemble, Block.time).join(Block, Block.number == MemberRow.block)
    query = query.where(MemberRow.item == 0)
    if task is not None:
        own = aliased(MemberRow)
        query = query.where(MemberRow.ensemble.in_(select(own.ensemble).where(own.task == task)))
    if q is None:
        return query
    words = q.strip() or q
    number = words.removeprefix("#")
    by_member = (
        select(MemberRow.ensemble)
        .join(TaskRow, TaskRow.task == MemberRow.task)
        .outerjoin(Spec, Spec.hash == TaskRow.spec_hash)
        .where(or_(Spec.text.icontains(words, autoescape=True), cast(MemberRow.task, String) == number))
    )
    numbers = (MemberRow.ensemble, MemberRow.ensemble - ENSEMBLES)  # the chain's, and that for people
    is_its_own = or_(*(cast(one, String) == number for one in numbers))
    return query.where(or_(is_its_own, MemberRow.ensemble.in_(offering(words)), MemberRow.ensemble.in_(by_member)))


def _ensembles(at: At, rows: Sequence[Any]) -> list[sale_schemas.Ensemble]:
    """`rows`: of `_found`."""
    numbers = [row.ensemble for row in rows]
    members, money, offers = _members(at, numbers), money_of(at, numbers), offers_of(at, numbers)
    buyers = _buyers(at, numbers)
    found = []
    for row in rows:
        number, split = row.ensemble, money.get((row.ensemble, "split"))
        own, total = members[number], sum(one.gain for one in members[number])
        specs = [spec_of(one.text)[0] if one.text is not None else None for one in own]
        found.append(sale_schemas.Ensemble.model_validate({
            "number": number, "formed_at": row.time, "asked": asked_view(specs[0].data) if specs[0] else None,
            "members": [
                {
                    "task": one.task, "name": spec.name if spec else None, "gain": one.gain,
                    "weight": one.gain * MICRO // total,
                }
                for one, spec in zip(own, specs, strict=True)
            ],
            "offers": offers[number][: sale_schemas.MOST_OFFERS], "offers_in_all": len(offers[number]),
            "sold": split.total if split else 0, "sales": split.number if split else 0,
            "predictions": split.predictions if split else 0, "buyers": buyers.get(number, 0),
        }))  # fmt: skip
    return found


def _members(at: At, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """Members with their task files' texts, by ensemble and task."""
    query = (
        select(MemberRow.ensemble, MemberRow.task, MemberRow.gain, Spec.text)
        .outerjoin(TaskRow, TaskRow.task == MemberRow.task)
        .outerjoin(Spec, Spec.hash == TaskRow.spec_hash)
        .where(MemberRow.ensemble.in_(numbers))
    )
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in at.db.execute(query.order_by(MemberRow.ensemble, MemberRow.task)):
        found[row.ensemble].append(row)
    return found


def _buyers(at: At, numbers: Sequence[int]) -> dict[int, int]:
    """The number of accounts that made a deposit, by ensemble."""
    deposited = (SaleRow.task.in_(numbers), SaleRow.kind == "deposited")
    counts = select(SaleRow.task, func.count(func.distinct(SaleRow.account))).where(*deposited)
    return {number: count for number, count in at.db.execute(counts.group_by(SaleRow.task))}
