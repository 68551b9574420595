"""Reads sales of models from the tables: offers, payments, and what each party's parts earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from consilium_chain.ledger.shares import WHOLE, pool_holder
from consilium_chain.ledger.structs import Outcome, Role
from consilium_chain.settlement.payouts import round_gain
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.sale_spec import SaleSpec
from consilium_core.units import exact_tokens
from fastapi import APIRouter, Query
from sqlalchemy import String, cast, func, or_, select

from consilium_server.api import sale_schemas, schemas
from consilium_server.api.asked import asked_view
from consilium_server.api.money_reads import csv_text
from consilium_server.api.reading import At
from consilium_server.api.routing import LIST, ONE, Paged, read_route
from consilium_server.api.task_reads import participants, spec_of, task_query, task_row
from consilium_server.database.sale_tables import OfferRow, PartsRow, SaleRow, SaleTermsRow
from consilium_server.database.tables import Block, EventRow, OutcomeRow, Participant, Spec, TaskRow
from consilium_server.index.sale_facts import earned_x64
from consilium_server.index.store import latest

DAY = 86_400  # seconds
MOST_DAYS = 1_000
SALES_COLUMNS = (
    "task", "operator", "phase", "is_minted", "server_percent", "operator_percent", "trainers_percent",
    "voters_percent", "hospitals", "gain", "epsilon", "offers", "lowest_price", "sold", "paid", "sales", "predictions",
)  # fmt: skip
HOLDING_COLUMNS = tuple(sale_schemas.Holding.model_fields)

sales = APIRouter(prefix="/v1", tags=["models"])

Searched = Annotated[
    str | None,
    Query(
        min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$",
        description="text in the task file or in an offer's address, a number, or a server's account",
    ),
]  # fmt: skip


@read_route(sales, "/models", "listSoldModels", "Models whose terms of sale the contract knows, the latest first", LIST)
def list_models(at: At, request: Paged, q: Searched = None) -> schemas.Page[sale_schemas.SoldModel]:
    """A page of models that this search finds; None for all."""
    cut = request.read(at.db, _found(q), [TaskRow.task], descending=True)
    return schemas.Page(items=_models(at, cut.rows), next=cut.next)


def _found(q: str | None) -> Any:
    query = task_query().join(SaleTermsRow, SaleTermsRow.task == TaskRow.task)
    if q is None:
        return query
    words = q.strip() or q
    number = cast(TaskRow.task, String) == words.removeprefix("#")
    return query.where(or_(Spec.text.icontains(words, autoescape=True), TaskRow.task.in_(offering(words)), number))


def offering(words: str) -> Any:
    """Tasks and ensembles with an offer whose address or server has this text."""
    return select(OfferRow.task).where(
        or_(OfferRow.url.icontains(words, autoescape=True), OfferRow.server.icontains(words, autoescape=True))
    )


def models_csv(at: At, q: str | None) -> str:
    """All models that a search finds (RFC 4180). No cell has text of strangers. Amounts are in tokens."""
    rows = at.db.execute(_found(q).order_by(TaskRow.task.desc())).all()
    return csv_text([SALES_COLUMNS, *map(_cells, _models(at, rows))])


def _cells(model: sale_schemas.SoldModel) -> list[object]:
    shown = model.model_dump() | (model.terms.model_dump() if model.terms else {})
    lowest = model.offers[0].price if model.offers else None
    shown |= {"offers": model.offers_in_all, "lowest_price": None if lowest is None else exact_tokens(int(lowest))}
    shown |= {name: exact_tokens(int(shown[name])) for name in ("sold", "paid")}
    return [shown.get(column) for column in SALES_COLUMNS]


@read_route(sales, "/models/{task}", "getSoldModel", "A task's model: its sales, and what each party earned", ONE)
def one_model(at: At, task: schemas.TaskNumber) -> sale_schemas.ModelSales:
    """The sales of a task's model. Raises Problem if there is no such task."""
    row = task_row(at, task)
    (model,) = _models(at, [row])
    deposited = (SaleRow.task == task, SaleRow.kind == "deposited")
    buyers = at.db.scalar(select(func.count(func.distinct(SaleRow.account))).where(*deposited)) or 0
    return sale_schemas.ModelSales(
        **dict(model), buyers=buyers, holdings=_holdings(at, task, row.TaskRow.operator, int(model.paid)),
        days=days_of(at, task),
    )  # fmt: skip


def earnings_csv(at: At, task: int) -> str:
    """Each holder's parts and earnings (RFC 4180). Amounts are in tokens. Raises Problem without such a task."""
    row = task_row(at, task)
    (model,) = _models(at, [row])
    rows = []
    for one in _holdings(at, task, row.TaskRow.operator, int(model.paid)):
        amounts = {name: exact_tokens(int(getattr(one, name))) for name in ("earned", "claimed", "claimable")}
        rows.append(list((one.model_dump() | amounts).values()))
    return csv_text([HOLDING_COLUMNS, *rows])


def _models(at: At, rows: Sequence[Any]) -> list[sale_schemas.SoldModel]:
    """`rows`: of `task_query`."""
    tasks = [row.task for row in rows]
    known, hospitals, money = _known_terms(at, tasks), _hospitals(at, tasks), money_of(at, tasks)
    is_minted = (EventRow.task.in_(tasks), EventRow.name == "Minted", EventRow.contract == "model_shares")
    minted = set(at.db.scalars(select(EventRow.task).where(*is_minted)))
    gains, offers = _gains(at, tasks), offers_of(at, tasks)
    found = []
    for row in rows:
        task, spec = row.task, spec_of(row.text)[0] if row.text is not None else None
        split, paid = money.get((task, "split")), money.get((task, "paid"))
        of_file = {
            "name": spec.name if spec else None, "asked": asked_view(spec.data) if spec else None,
            "epsilon": spec.privacy.epsilon if spec and spec.privacy else None,
            "terms": known.get(task) or (spec.sale if spec else None),
        }  # fmt: skip
        totals = {
            "sold": split.total if split else 0, "paid": paid.total if paid else 0,
            "sales": split.number if split else 0, "predictions": split.predictions if split else 0,
        }  # fmt: skip
        of_chain = {
            "task": task, "operator": row.TaskRow.operator, "phase": row.phase or 0, "is_shown": task in known,
            "is_minted": task in minted, "hospitals": hospitals.get(task, 0), "gain": gains.get(task),
            "offers": offers[task][: sale_schemas.MOST_OFFERS], "offers_in_all": len(offers[task]),
        }  # fmt: skip
        found.append(sale_schemas.SoldModel.model_validate(of_file | of_chain | totals))
    return found


def _known_terms(at: At, tasks: Sequence[int]) -> dict[int, SaleSpec]:
    """By task, as the contract knows them."""
    rows = at.db.scalars(select(SaleTermsRow).where(SaleTermsRow.task.in_(tasks)))
    return {row.task: _terms(row) for row in rows}


def _hospitals(at: At, tasks: Sequence[int]) -> dict[int, int]:
    """The number of those that joined, by task."""
    where = (Participant.task.in_(tasks), Participant.role == Role.HOSPITAL)
    counts = select(Participant.task, func.count()).where(*where).group_by(Participant.task)
    return {task: count for task, count in at.db.execute(counts)}


def money_of(at: At, tasks: Sequence[int]) -> dict[tuple[int, str], Any]:
    """The last sale and the last payment of each task or ensemble, which have the totals."""
    where = (SaleRow.task.in_(tasks), SaleRow.kind.in_(("split", "paid")))
    last = latest(SaleRow, (SaleRow.task, SaleRow.kind), *where)
    return {(row.task, row.kind): row for row in at.db.execute(select(last))}


def _terms(row: SaleTermsRow) -> SaleSpec:
    return SaleSpec(
        server_percent=row.server, operator_percent=row.operator, trainers_percent=row.trainers,
        voters_percent=row.voters,
    )  # fmt: skip


def _gains(at: At, tasks: Sequence[int]) -> dict[int, int]:
    settled = select(OutcomeRow).where(
        OutcomeRow.task.in_(tasks), OutcomeRow.round > 0, OutcomeRow.outcome == Outcome.SETTLED
    )
    found: defaultdict[int, int] = defaultdict(int)
    for one in at.db.scalars(settled):
        found[one.task] += round_gain(one.medians, one.accepted)
    return dict(found)


def offers_of(at: At, tasks: Sequence[int]) -> dict[int, list[sale_schemas.Offer]]:
    """Offers in effect by task or ensemble, the cheapest first."""
    last = latest(OfferRow, (OfferRow.task, OfferRow.server), OfferRow.task.in_(tasks))
    query = select(last, Block.time).join(Block, Block.number == last.c.block).where(last.c.price > 0)
    found: defaultdict[int, list[sale_schemas.Offer]] = defaultdict(list)
    for row in at.db.execute(query.order_by(last.c.price, last.c.server)):
        found[row.task].append(sale_schemas.Offer(server=row.server, price=str(row.price), url=row.url, since=row.time))
    return found


def _holdings(at: At, task: int, operator: str, paid: int) -> list[sale_schemas.Holding]:
    """By earnings, the largest first."""
    named: dict[str, tuple[str, Any]] = {operator: (operator, "operator")}
    for one, _ in participants(at, task):
        if one.role != Role.AGGREGATOR:
            holder = pool_holder(at.deployment.model_shares, one.account, Role(one.role))
            named[holder] = (one.account, schemas.name(Role(one.role)))
    claimed: defaultdict[str, int] = defaultdict(int)
    claims = select(SaleRow.account, SaleRow.amount).where(SaleRow.task == task, SaleRow.kind == "claimed")
    for account, amount in at.db.execute(claims):
        claimed[account] += amount
    found = []
    for row in at.db.execute(select(latest(PartsRow, [PartsRow.holder], PartsRow.task == task))):
        account, role = named.get(row.holder, (row.holder, "other"))
        earned, taken = earned_x64(row, paid) // WHOLE, claimed[row.holder]
        found.append((earned, sale_schemas.Holding(
            holder=row.holder, account=account, role=role, parts=str(row.parts), share=row.parts * MICRO // WHOLE,
            earned=str(earned), claimed=str(taken), claimable=str(earned - taken),
        )))  # fmt: skip
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], -int(pair[1].parts), pair[1].holder))]


def days_of(at: At, task: int) -> list[sale_schemas.SaleDay]:
    """Totals of a task or an ensemble at each day's end; the latest `MOST_DAYS` days with a payment."""
    day = (Block.time - Block.time % DAY).label("day")
    query = (
        select(day, SaleRow.kind, func.max(SaleRow.total), func.max(SaleRow.predictions))
        .join(Block, Block.number == SaleRow.block)
        .where(SaleRow.task == task, SaleRow.kind.in_(("split", "paid")))
        .group_by(day, SaleRow.kind)
        .order_by(day)
    )
    sold, paid, predictions, found = 0, 0, 0, {}
    for since, kind, total, number in at.db.execute(query):
        if kind == "split":
            sold, predictions = total, number
        else:
            paid = total
        found[since] = sale_schemas.SaleDay(day=since, sold=str(sold), paid=str(paid), predictions=predictions)
    return list(found.values())[-MOST_DAYS:]
