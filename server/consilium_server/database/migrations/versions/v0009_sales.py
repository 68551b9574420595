"""Tables of model shares. An index of contracts before has no such events: `consilium server reindex` adds them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

ACCOUNT, AMOUNT, X64 = sa.String(42), sa.String(39), sa.String(58)


def upgrade() -> None:
    _facts("sale_terms", *(sa.Column(name, sa.Integer(), nullable=False) for name in _PERCENTAGES))
    _facts("offers", _text("server", ACCOUNT), _text("price", AMOUNT), _text("url", sa.String(256)))
    _facts(
        "model_parts", _text("holder", ACCOUNT), _text("parts", AMOUNT), _text("paid", AMOUNT), _text("earned_x64", X64)
    )
    _facts(
        "sales", _text("kind", sa.String(9)), _text("account", ACCOUNT), sa.Column("server", ACCOUNT, nullable=True),
        *(_text(name, AMOUNT) for name in ("amount", "fee", "total", "predictions")),
        sa.Column("number", sa.BigInteger(), nullable=False),
    )  # fmt: skip
    op.create_index("ix_offers_task", "offers", ["task", "server", "block", "log_index"])
    op.create_index("ix_model_parts_task", "model_parts", ["task", "holder", "block", "log_index"])
    op.create_index("ix_sales_task", "sales", ["task", "kind", "block", "log_index"])


_PERCENTAGES = ("server", "operator", "trainers", "voters")


def _text(name: str, kind: sa.String) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _facts(table: str, *columns: sa.Column[Any]) -> None:
    unique = [sa.UniqueConstraint("task", name=f"uq_{table}_task")] if table == "sale_terms" else []
    op.create_table(
        table,
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name=f"fk_{table}_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name=f"pk_{table}"),
        *unique,
    )
