"""Reads payments, stake and claims of accounts from the tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from typing import Annotated, Any, Literal

from consilium_chain.ledger.structs import Role
from consilium_core.units import exact_tokens
from fastapi import APIRouter, Query
from sqlalchemy import FromClause, func, select

from consilium_server.api import schemas
from consilium_server.api.paging import RowPosition, behind
from consilium_server.api.reading import At, position_of, with_log
from consilium_server.api.routing import LIST, Paged, read_route
from consilium_server.api.schemas import GivenAccount
from consilium_server.database.tables import Block, EventRow, Payment, PoolRow, Position, UnbondingRow
from consilium_server.errors import AnswerBroken
from consilium_server.index.store import latest

MOVEMENTS = {
    "Delegated": "delegated",
    "UnbondingStarted": "unbonding_started",
    "Unbonded": "unbonded",
    "Claimed": "claimed",
}
CSV_COLUMNS = tuple(schemas.Entry.model_fields)
CSV_PAGE = 500  # rows read at once

money = APIRouter(prefix="/v1", tags=["money"])


def _payment_views(rows: Iterable[Any]) -> list[schemas.Payment]:
    return [schemas.Payment(**row._mapping) for row in rows]


def payments_of_round(at: At, task: int, round_: int) -> list[schemas.Payment]:
    """A round's payments, in the chain's order."""
    query = with_log(Payment.__table__).where(Payment.task == task, Payment.round == round_)
    return _payment_views(at.db.execute(query.order_by(*position_of(Payment))))


@read_route(money, "/payments", "listPayments", "Rewards, slashes, bounties, refunds", LIST)
def list_payments(
    at: At,
    request: Paged,
    account: GivenAccount | None = None,
    kind: Literal["reward", "slash", "bounty", "refund"] | None = None,
    task: Annotated[schemas.TaskNumber | None, Query()] = None,
) -> schemas.Page[schemas.Payment]:
    """Payments of this account, kind and task, the latest first; None for any."""
    wanted = ((Payment.account, account), (Payment.kind, kind), (Payment.task, task))
    query = with_log(Payment.__table__).where(*(column == value for column, value in wanted if value is not None))
    cut = request.read(at.db, query, position_of(Payment), descending=True)
    return schemas.Page(items=_payment_views(cut.rows), next=cut.next)


def slashes(at: At, node: str, role: int, most: int) -> list[schemas.Payment]:
    """Latest slashes of a node, `most` at most."""
    own = (Payment.account == node, Payment.role == role, Payment.kind == "slash")
    query = with_log(Payment.__table__).where(*own).order_by(*(column.desc() for column in position_of(Payment)))
    return _payment_views(at.db.execute(query.limit(most)))


# An account's history


@read_route(
    money, "/accounts/{account}/history", "listHistory",
    "An account's payments, slashes, stake and withdrawals, the latest first", LIST,
)  # fmt: skip
def list_history(
    at: At, request: Paged, account: GivenAccount, kind: schemas.Movement | None = None
) -> schemas.Page[schemas.Entry]:
    """An account's history, or its entries of one kind, the latest first."""
    cut = request.cut(_entries(at, account, request.start(), request.limit + 1, kind), lambda pair: pair[0])
    return schemas.Page(items=[entry for _, entry in cut.rows], next=cut.next)


@dataclass(frozen=True)
class CsvPage:
    """Lines of the export, and the position after which the next page begins; None after the last.

    `anchor`: hash of that position's block. While the block stands, so do all entries after the position.
    """

    text: str
    position: RowPosition | None
    anchor: bytes | None


def csv_name(at: At, account: str) -> str:
    """A file name for the export, with the UTC dates of the first entry and of the latest block."""
    paid = select(Payment.block).where(Payment.account == account)
    entries = paid.union_all(_moves_of(account).with_only_columns(EventRow.block)).subquery()
    first = at.db.scalar(select(Block.time).where(Block.number == select(func.min(entries.c.block)).scalar_subquery()))
    days = (_iso(at.head.time if time is None else time)[:10] for time in (first, at.head.time))
    return f"consilium-{account}-{'-to-'.join(days)}.csv"


def first_csv_page(at: At, account: str) -> CsvPage:
    """The first page, with a header (RFC 4180). Amounts are in tokens, times in ISO 8601 and UTC."""
    page = _csv_page(at, account, None)
    return replace(page, text=csv_text([CSV_COLUMNS]) + page.text)


def next_csv_page(at: At, account: str, before: CsvPage) -> CsvPage:
    """The page after `before`. Raises AnswerBroken (ExportReorganised) if the chain took back part of that page."""
    if before.position is None or _hash_of_block(at, int(before.position[0])) != before.anchor:
        raise AnswerBroken("ExportReorganised", account=account)
    return _csv_page(at, account, before.position)


def _csv_page(at: At, account: str, position: RowPosition | None) -> CsvPage:
    rows = _entries(at, account, position, CSV_PAGE)
    text = csv_text([_cells(entry) for _, entry in rows])
    if len(rows) < CSV_PAGE:
        return CsvPage(text, None, None)
    end = rows[-1][0]
    return CsvPage(text, end, _hash_of_block(at, int(end[0])))


def _hash_of_block(at: At, number: int) -> bytes | None:
    return at.db.scalar(select(Block.hash).where(Block.number == number))


def _cells(entry: schemas.Entry) -> list[object]:
    """A line of the export. No cell has text of strangers, and none begins as a formula of a spreadsheet."""
    amounts = {name: None if one is None else exact_tokens(int(one))
               for name, one in (("amount", entry.amount), ("shares", entry.shares))}  # fmt: skip
    shown = entry.model_dump() | amounts | {"time": _iso(entry.time)}
    return [shown[column] for column in CSV_COLUMNS]


def _iso(time: int) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV (RFC 4180)."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _moves_of(account: str) -> Any:
    """The account's acts as a delegator."""
    of_account = (EventRow.other == account, EventRow.contract == "staking", EventRow.name.in_(MOVEMENTS))
    return select(EventRow, Block.time).join(Block, Block.number == EventRow.block).where(*of_account)


def _entries(
    at: At, account: str, position: RowPosition | None, most: int, kind: str | None = None
) -> list[tuple[RowPosition, schemas.Entry]]:
    """Payments to the account and its acts as a delegator after a position, of this kind; None for all."""

    def page(rows: Any, of: Any) -> Any:
        columns = position_of(of)
        ordered = rows.where(*behind(columns, position, descending=True)).order_by(*(c.desc() for c in columns))
        return ordered.limit(most)

    # Cut before it is joined: an account has many more payments than a page.
    of_payments, moved = select(Payment.__table__).where(Payment.account == account), _moves_of(account)
    if kind is not None:
        of_payments = of_payments.where(Payment.kind == kind)
        moved = moved.where(EventRow.name.in_([name for name, one in MOVEMENTS.items() if one == kind]))
    cut: FromClause = page(of_payments, Payment).subquery()
    paid = with_log(cut).order_by(*(column.desc() for column in position_of(cut.c)))
    entries = merge(
        map(_paid, at.db.execute(paid)), map(_moved, at.db.execute(page(moved, EventRow))),
        key=lambda pair: pair[0], reverse=True,
    )  # fmt: skip
    return list(islice(entries, most))


def _paid(row: Any) -> tuple[RowPosition, schemas.Entry]:
    node = None if row.role is None else row.account
    return [row.block, row.log_index, row.item], schemas.Entry(**row._mapping, node=node, shares=None)


def _moved(row: Any) -> tuple[RowPosition, schemas.Entry]:
    event, time = row
    kind: Any = MOVEMENTS[event.name]
    return [event.block, event.log_index, event.item], schemas.Entry(
        time=time, kind=kind, task=None, round=None, node=event.account, role=event.role,
        amount=event.values.get("amount"), shares=event.values.get("shares"), reason=None, block=event.block,
        log_index=event.log_index, transaction=event.transaction,
    )  # fmt: skip


# Delegations


def worth(shares: int, generation: int, pool: Any) -> int:
    """Worth of shares in units of stake, rounded down (`Pools.worth`)."""
    if pool is None or pool.generation != generation or pool.shares == 0:
        return 0
    return int(shares * pool.assets // pool.shares)


@read_route(money, "/delegations", "listDelegations", "Delegators' shares of nodes", LIST)
def list_delegations(
    at: At,
    request: Paged,
    delegator: GivenAccount | None = None,
    node: GivenAccount | None = None,
    role: schemas.RoleName | None = None,
) -> schemas.Page[schemas.Delegation]:
    """A page of delegators' shares."""
    role_number = None if role is None else schemas.named(Role, role)
    wanted = ((Position.delegator, delegator), (Position.node, node), (Position.role, role_number))
    where = [column == value for column, value in wanted if value is not None]
    held = latest(Position, (Position.delegator, Position.node, Position.role), *where)
    query = select(held, Block.time.label("since")).join(Block, Block.number == held.c.block)
    cut = request.read(at.db, query, (held.c.delegator, held.c.node, held.c.role))
    pools = pools_of(at, {row.node for row in cut.rows})
    items = []
    for row in cut.rows:
        pool = pools.get((row.node, row.role))
        is_wiped = pool is not None and pool.generation != row.generation
        held_worth = str(worth(row.shares, row.generation, pool))
        items.append(schemas.Delegation(**row._mapping, worth=held_worth, is_wiped=is_wiped))
    return schemas.Page(items=items, next=cut.next)


@read_route(money, "/accounts/{account}/unbondings", "listUnbondings", "Stake that is being withdrawn", LIST)
def list_unbondings(at: At, request: Paged, account: GivenAccount) -> schemas.Page[schemas.Unbonding]:
    """Stake that is being withdrawn, in the order of the requests."""
    latest_rows = latest(
        UnbondingRow, (UnbondingRow.delegator, UnbondingRow.request), UnbondingRow.delegator == account
    )
    query = select(latest_rows).where(latest_rows.c.shares > 0)
    cut = request.read(at.db, query, [latest_rows.c.request])
    pools = pools_of(at, {row.node for row in cut.rows})
    items = []
    for row in cut.rows:
        left = str(worth(row.shares, row.generation, pools.get((row.node, row.role))))
        items.append(schemas.Unbonding(**row._mapping, worth=left))
    return schemas.Page(items=items, next=cut.next)


def pools_of(at: At, nodes: set[str]) -> dict[tuple[str, int], Any]:
    """Latest pools of these nodes, by node and role."""
    pools = latest(PoolRow, (PoolRow.node, PoolRow.role), PoolRow.node.in_(nodes))
    return {(row.node, row.role): row for row in at.db.execute(select(pools))}
