"""The first tables: facts that belong to blocks, and the indexer's own records."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Columns = dict[str, sa.types.TypeEngine[Any]]
BIG, INTEGER, JSON = sa.BigInteger(), sa.Integer(), sa.JSON()
ACCOUNT, AMOUNT, BIT_MAP, HASH = sa.String(42), sa.String(39), sa.String(64), sa.String(66)
OWN: dict[str, Columns] = {
    "blocks": {"number": BIG, "hash": HASH, "time": BIG},
    "checkpoints": {"number": BIG, "hash": HASH},
    "sources": {"chain_id": BIG, "tasks": ACCOUNT},
    "specs": {"hash": HASH, "text": sa.String()},
}
KEYS = {"blocks": ["number"], "checkpoints": ["number"], "sources": ["chain_id", "tasks"], "specs": ["hash"]}
FACTS: dict[str, Columns] = {  # after the columns that all of them have
    "cohorts": {"task": BIG, "round": INTEGER, "members": BIT_MAP},
    "events": {
        "contract": sa.String(16), "name": sa.String(40), "transaction": HASH, "task": BIG, "round": INTEGER,
        "account": ACCOUNT, "role": INTEGER, "other": ACCOUNT, "values": JSON,
    },
    "outcomes": {
        "task": BIG, "round": INTEGER, "outcome": INTEGER, "reason": INTEGER, "medians": JSON, "accepted": BIT_MAP,
    },
    "participants": {"task": BIG, "account": ACCOUNT, "role": INTEGER, "position": INTEGER, "weight": BIG},
    "payments": {
        "task": BIG, "round": INTEGER, "account": ACCOUNT, "role": INTEGER, "kind": sa.String(8), "amount": AMOUNT,
        "reason": INTEGER,
    },
    "phases": {"task": BIG, "round": INTEGER, "phase": INTEGER, "deadline": BIG},
    "pools": {
        "node": ACCOUNT, "role": INTEGER, "generation": INTEGER, "assets": AMOUNT, "shares": AMOUNT,
        "unbonding_shares": AMOUNT, "locked": AMOUNT, "commission_bps": INTEGER, "next_commission_bps": INTEGER,
        "next_commission_at": BIG, "index_x48": sa.String(44), "rewarded": AMOUNT, "burnt": AMOUNT,
        "forfeited": AMOUNT, "voter_key": sa.Boolean(),
    },
    "positions": {
        "delegator": ACCOUNT, "node": ACCOUNT, "role": INTEGER, "generation": INTEGER, "shares": AMOUNT,
        "delegated": AMOUNT, "withdrawn": AMOUNT, "claimed": AMOUNT,
    },
    "tasks": {
        "task": BIG, "operator": ACCOUNT, "aggregator": ACCOUNT, "spec_hash": HASH, "pool": AMOUNT, "params": JSON,
    },
    "unbondings": {
        "delegator": ACCOUNT, "request": BIG, "node": ACCOUNT, "role": INTEGER, "generation": INTEGER, "shares": AMOUNT,
        "matures_at": BIG,
    },
}  # fmt: skip
NULLABLE = {
    "events": {"task", "round", "account", "role", "other"},
    "payments": {"round", "role", "reason"},
    "pools": {"next_commission_bps", "next_commission_at"},
}
INDEXES = (
    ("cohorts", "task", ["task", "round"]),
    ("events", "account", ["account", "block", "log_index"]),
    ("events", "name", ["name", "block", "log_index"]),
    ("events", "other", ["other", "block", "log_index"]),
    ("events", "task", ["task", "round", "block", "log_index"]),
    ("outcomes", "task", ["task", "round"]),
    ("participants", "account", ["account"]),
    ("participants", "task", ["task", "role", "position"]),
    ("payments", "account", ["account", "kind"]),
    ("payments", "task", ["task", "round"]),
    ("phases", "task", ["task", "block", "log_index"]),
    ("pools", "node", ["node", "role", "block", "log_index"]),
    ("positions", "delegator", ["delegator", "node", "role", "block", "log_index"]),
    ("positions", "node", ["node", "role", "delegator", "block", "log_index"]),
    ("tasks", "aggregator", ["aggregator"]),
    ("tasks", "operator", ["operator"]),
    ("unbondings", "delegator", ["delegator", "request", "block", "log_index"]),
)


def upgrade() -> None:
    for table, columns in OWN.items():
        op.create_table(
            table,
            *(sa.Column(name, kind, autoincrement=False, nullable=False) for name, kind in columns.items()),
            sa.PrimaryKeyConstraint(*KEYS[table], name=f"pk_{table}"),
        )
    for table, columns in FACTS.items():
        nullable = NULLABLE.get(table, set())
        constraints = [sa.UniqueConstraint("task", name="uq_tasks_task")] if table == "tasks" else []
        op.create_table(
            table,
            sa.Column("block", BIG, nullable=False),
            sa.Column("log_index", INTEGER, nullable=False),
            sa.Column("item", INTEGER, nullable=False),
            *(sa.Column(name, kind, nullable=name in nullable) for name, kind in columns.items()),
            sa.ForeignKeyConstraint(["block"], ["blocks.number"], name=f"fk_{table}_block", ondelete="CASCADE"),
            sa.PrimaryKeyConstraint("block", "log_index", "item", name=f"pk_{table}"),
            *constraints,
        )
    for table, name, indexed in INDEXES:
        op.create_index(f"ix_{table}_{name}", table, indexed)
