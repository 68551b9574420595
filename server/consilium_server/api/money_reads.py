"""Reads payments, stake and claims of accounts from the tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

from consilium_chain.ledger.structs import Role, SlashReason
from sqlalchemy import and_, select
from sqlalchemy.orm import aliased

from consilium_server.api import schemas
from consilium_server.api.paging import Asked, Place, behind
from consilium_server.api.reading import At, latest
from consilium_server.api.schemas import name
from consilium_server.database.tables import Block, EventRow, Payment, PoolRow, Position, UnbondingRow
from consilium_server.errors import AnswerBroken

MOVEMENTS = {
    "Delegated": "delegated",
    "UnbondingStarted": "unbonding_started",
    "Unbonded": "unbonded",
    "Claimed": "claimed",
}
CSV_COLUMNS = tuple(schemas.Entry.model_fields)
CSV_PAGE = 500  # rows read at once


@dataclass(frozen=True)
class PaymentFilter:
    """Payments of one account, kind or task; None for any."""

    account: str | None = None
    kind: str | None = None
    task: int | None = None


def _payments(of: Any = Payment) -> Any:
    """Payments with time and transaction. No two logs of a block have one index. `of`: the table, or rows of it."""
    return (
        select(of, Block.time, EventRow.transaction)
        .join(Block, Block.number == of.block)
        .outerjoin(EventRow, and_(EventRow.block == of.block, EventRow.log_index == of.log_index))
    )


def payments_of_round(at: At, task: int, round_: int) -> list[Any]:
    """Rows of a round's payments, in the chain's order."""
    found = _payments().where(Payment.task == task, Payment.round == round_)
    return list(at.db.execute(found.order_by(Payment.block, Payment.log_index, Payment.item)))


def payment_views(rows: Sequence[Any]) -> list[schemas.Payment]:
    """Payments as the API says them."""
    return [
        schemas.Payment(
            kind=row.kind, task=row.task, round=row.round, account=row.account, role=_role(row.role),
            amount=str(row.amount), reason=_reason(row.reason), time=time, block=row.block, log_index=row.log_index,
            transaction=_hash(transaction),
        )
        for row, time, transaction in rows
    ]  # fmt: skip


def list_payments(at: At, wanted: PaymentFilter, asked: Asked) -> schemas.Page[schemas.Payment]:
    """Payments, the latest first."""
    columns = (Payment.block, Payment.log_index, Payment.item)
    found = _payments().where(*behind(columns, asked.start(), descending=True))
    if wanted.account is not None:
        found = found.where(Payment.account == wanted.account)
    if wanted.kind is not None:
        found = found.where(Payment.kind == wanted.kind)
    if wanted.task is not None:
        found = found.where(Payment.task == wanted.task)
    found = found.order_by(*(column.desc() for column in columns)).limit(asked.limit + 1)
    cut = asked.cut(list(at.db.execute(found)), lambda row: [row[0].block, row[0].log_index, row[0].item])
    return schemas.Page(items=payment_views(cut.rows), next=cut.next)


def slashes(at: At, node: str, role: int, most: int) -> list[schemas.Payment]:
    """Latest slashes of a node, `most` at most."""
    found = _payments().where(Payment.account == node, Payment.role == role, Payment.kind == "slash")
    columns = (Payment.block.desc(), Payment.log_index.desc(), Payment.item.desc())
    return payment_views(list(at.db.execute(found.order_by(*columns).limit(most))))


# An account's history


def list_history(at: At, account: str, asked: Asked) -> schemas.Page[schemas.Entry]:
    """An account's history, the latest first."""
    cut = asked.cut(_entries(at, account, asked.start(), asked.limit + 1), lambda pair: pair[0])
    return schemas.Page(items=[entry for _, entry in cut.rows], next=cut.next)


@dataclass(frozen=True)
class CsvPage:
    """Lines of the export, and the place after which the next page begins; None after the last.

    `anchor`: hash of that place's block. While the block stands, so do all entries after the place.
    """

    text: str
    place: Place | None
    anchor: bytes | None


def first_csv_page(at: At, account: str) -> CsvPage:
    """The first page, with a header (RFC 4180). Amounts and times are as in JSON."""
    page = _csv_page(at, account, None)
    return replace(page, text=_csv([CSV_COLUMNS]) + page.text)


def next_csv_page(at: At, account: str, before: CsvPage) -> CsvPage:
    """The page after `before`. Raises AnswerBroken (ExportReorganised) if the chain took back part of that page."""
    if before.place is None or _hash_of_block(at, int(before.place[0])) != before.anchor:
        raise AnswerBroken("ExportReorganised", account=account)
    return _csv_page(at, account, before.place)


def _csv_page(at: At, account: str, place: Place | None) -> CsvPage:
    rows = _entries(at, account, place, CSV_PAGE)
    text = _csv([[getattr(entry, column) for column in CSV_COLUMNS] for _, entry in rows])
    if len(rows) < CSV_PAGE:
        return CsvPage(text, None, None)
    end = rows[-1][0]
    return CsvPage(text, end, _hash_of_block(at, int(end[0])))


def _hash_of_block(at: At, number: int) -> bytes | None:
    return at.db.scalar(select(Block.hash).where(Block.number == number))


def _csv(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _entries(at: At, account: str, place: Place | None, most: int) -> list[tuple[Place, schemas.Entry]]:
    """Payments to the account and its acts as a delegator, after a place."""
    columns: tuple[Any, ...] = (Payment.block, Payment.log_index, Payment.item)
    page = select(Payment).where(Payment.account == account, *behind(columns, place, True))
    # Cut before it is joined: an account has many more payments than a page.
    cut = aliased(Payment, page.order_by(*(c.desc() for c in columns)).limit(most).subquery())
    paid = _payments(cut).order_by(cut.block.desc(), cut.log_index.desc(), cut.item.desc())
    moved = (
        select(EventRow, Block.time)
        .join(Block, Block.number == EventRow.block)
        .where(EventRow.other == account, EventRow.contract == "staking", EventRow.name.in_(MOVEMENTS))
    )
    columns = (EventRow.block, EventRow.log_index, EventRow.item)
    moved = moved.where(*behind(columns, place, True)).order_by(*(c.desc() for c in columns)).limit(most)
    found = merge(
        map(_paid, at.db.execute(paid)), map(_moved, at.db.execute(moved)), key=lambda pair: pair[0], reverse=True
    )
    return list(islice(found, most))


def _paid(row: Any) -> tuple[Place, schemas.Entry]:
    (view,) = payment_views([row])
    return [view.block, view.log_index, row[0].item], schemas.Entry(
        time=view.time, kind=view.kind, task=view.task, round=view.round, node=view.account if view.role else None,
        role=view.role, amount=view.amount, shares=None, reason=view.reason, block=view.block,
        log_index=view.log_index, transaction=view.transaction,
    )  # fmt: skip


def _moved(row: Any) -> tuple[Place, schemas.Entry]:
    event, time = row
    kind: Any = MOVEMENTS[event.name]
    amount, shares = event.values.get("amount"), event.values.get("shares")
    return [event.block, event.log_index, event.item], schemas.Entry(
        time=time, kind=kind, task=None, round=None, node=event.account, role=_role(event.role),
        amount=None if amount is None else str(amount), shares=None if shares is None else str(shares), reason=None,
        block=event.block, log_index=event.log_index, transaction=_hash(event.transaction),
    )  # fmt: skip


# Delegations


def worth(shares: int, generation: int, pool: Any) -> int:
    """Worth of shares in units of stake, rounded down (`Pools.worth`)."""
    if pool is None or pool.generation != generation or pool.shares == 0:
        return 0
    return int(shares * pool.assets // pool.shares)


def list_delegations(
    at: At, delegator: str | None, node: str | None, role: str | None, asked: Asked
) -> schemas.Page[schemas.Delegation]:
    """A page of delegators' shares."""
    where = []
    if delegator is not None:
        where.append(Position.delegator == delegator)
    if node is not None:
        where.append(Position.node == node)
    if role is not None:
        where.append(Position.role == schemas.named(Role, role))
    found = latest(Position, (Position.delegator, Position.node, Position.role), *where)
    columns = (found.c.delegator, found.c.node, found.c.role)
    query = (
        select(found, Block.time)
        .join(Block, Block.number == found.c.block)
        .where(*behind(columns, asked.start(), descending=False))
        .order_by(*columns)
        .limit(asked.limit + 1)
    )
    cut = asked.cut(list(at.db.execute(query)), lambda row: [row.delegator, row.node, row.role])
    pools = pools_of(at, {row.node for row in cut.rows})
    items = []
    for row in cut.rows:
        pool = pools.get((row.node, row.role))
        items.append(
            schemas.Delegation(
                delegator=row.delegator, node=row.node, role=name(Role(row.role)), shares=str(row.shares),
                worth=str(worth(row.shares, row.generation, pool)),
                is_wiped=pool is not None and pool.generation != row.generation, delegated=str(row.delegated),
                withdrawn=str(row.withdrawn), claimed=str(row.claimed), since=row.time,
            )
        )  # fmt: skip
    return schemas.Page(items=items, next=cut.next)


def list_unbondings(at: At, account: str, asked: Asked) -> schemas.Page[schemas.Unbonding]:
    """Stake that is being withdrawn, in the order of the requests."""
    found = latest(UnbondingRow, (UnbondingRow.delegator, UnbondingRow.request), UnbondingRow.delegator == account)
    query = (
        select(found)
        .where(found.c.shares > 0, *behind([found.c.request], asked.start(), descending=False))
        .order_by(found.c.request)
        .limit(asked.limit + 1)
    )
    cut = asked.cut(list(at.db.execute(query)), lambda row: [row.request])
    pools = pools_of(at, {row.node for row in cut.rows})
    return schemas.Page(
        items=[
            schemas.Unbonding(
                request=row.request, node=row.node, role=name(Role(row.role)), shares=str(row.shares),
                worth=str(worth(row.shares, row.generation, pools.get((row.node, row.role)))),
                matures_at=row.matures_at,
            )
            for row in cut.rows
        ],
        next=cut.next,
    )  # fmt: skip


def pools_of(at: At, nodes: set[str]) -> dict[tuple[str, int], Any]:
    """Latest pools of these nodes, by node and role."""
    found = latest(PoolRow, (PoolRow.node, PoolRow.role), PoolRow.node.in_(nodes))
    return {(row.node, row.role): row for row in at.db.execute(select(found))}


def _role(role: int | None) -> str | None:
    return None if role is None else name(Role(role))


def _reason(reason: int | None) -> str | None:
    return None if reason is None else name(SlashReason(reason))


def _hash(raw: bytes | None) -> str | None:
    return None if raw is None else "0x" + raw.hex()
