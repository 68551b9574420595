"""The first tables: facts that hang on blocks, and the indexer's own bookkeeping."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blocks",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.String(66), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_blocks"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.String(66), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_checkpoints"),
    )
    op.create_table(
        "sources",
        sa.Column("chain_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tasks", sa.String(42), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "tasks", name="pk_sources"),
    )
    op.create_table(
        "specs",
        sa.Column("hash", sa.String(66), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_specs"),
    )
    op.create_table(
        "cohorts",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("members", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_cohorts_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_cohorts"),
    )
    op.create_index("ix_cohorts_task", "cohorts", ["task", "round"])
    op.create_table(
        "events",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("contract", sa.String(16), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("transaction", sa.String(66), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("account", sa.String(42), nullable=True),
        sa.Column("role", sa.Integer(), nullable=True),
        sa.Column("other", sa.String(42), nullable=True),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_events_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_events"),
    )
    op.create_index("ix_events_account", "events", ["account", "block", "log_index"])
    op.create_index("ix_events_name", "events", ["name", "block", "log_index"])
    op.create_index("ix_events_other", "events", ["other", "block", "log_index"])
    op.create_index("ix_events_task", "events", ["task", "round", "block", "log_index"])
    op.create_table(
        "outcomes",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=False),
        sa.Column("medians", sa.JSON(), nullable=False),
        sa.Column("accepted", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_outcomes_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_outcomes"),
    )
    op.create_index("ix_outcomes_task", "outcomes", ["task", "round"])
    op.create_table(
        "participants",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.String(42), nullable=False),
        sa.Column("role", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_participants_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_participants"),
    )
    op.create_index("ix_participants_account", "participants", ["account"])
    op.create_index("ix_participants_task", "participants", ["task", "role", "position"])
    op.create_table(
        "payments",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("account", sa.String(42), nullable=False),
        sa.Column("role", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("amount", sa.String(39), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_payments_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_payments"),
    )
    op.create_index("ix_payments_account", "payments", ["account", "kind"])
    op.create_index("ix_payments_task", "payments", ["task", "round"])
    op.create_table(
        "phases",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_phases_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_phases"),
    )
    op.create_index("ix_phases_task", "phases", ["task", "block", "log_index"])
    op.create_table(
        "pools",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(42), nullable=False),
        sa.Column("role", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("assets", sa.String(39), nullable=False),
        sa.Column("shares", sa.String(39), nullable=False),
        sa.Column("unbonding_shares", sa.String(39), nullable=False),
        sa.Column("locked", sa.String(39), nullable=False),
        sa.Column("commission_bps", sa.Integer(), nullable=False),
        sa.Column("next_commission_bps", sa.Integer(), nullable=True),
        sa.Column("next_commission_at", sa.BigInteger(), nullable=True),
        sa.Column("index_x48", sa.String(44), nullable=False),
        sa.Column("rewarded", sa.String(39), nullable=False),
        sa.Column("burnt", sa.String(39), nullable=False),
        sa.Column("forfeited", sa.String(39), nullable=False),
        sa.Column("voter_key", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_pools_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_pools"),
    )
    op.create_index("ix_pools_node", "pools", ["node", "role", "block", "log_index"])
    op.create_table(
        "positions",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("delegator", sa.String(42), nullable=False),
        sa.Column("node", sa.String(42), nullable=False),
        sa.Column("role", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("shares", sa.String(39), nullable=False),
        sa.Column("delegated", sa.String(39), nullable=False),
        sa.Column("withdrawn", sa.String(39), nullable=False),
        sa.Column("claimed", sa.String(39), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_positions_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_positions"),
    )
    op.create_index("ix_positions_delegator", "positions", ["delegator", "node", "role", "block", "log_index"])
    op.create_index("ix_positions_node", "positions", ["node", "role", "delegator", "block", "log_index"])
    op.create_table(
        "tasks",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("operator", sa.String(42), nullable=False),
        sa.Column("aggregator", sa.String(42), nullable=False),
        sa.Column("spec_hash", sa.String(66), nullable=False),
        sa.Column("pool", sa.String(39), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_tasks_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_tasks"),
        sa.UniqueConstraint("task", name="uq_tasks_task"),
    )
    op.create_index("ix_tasks_aggregator", "tasks", ["aggregator"])
    op.create_index("ix_tasks_operator", "tasks", ["operator"])
    op.create_table(
        "unbondings",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("delegator", sa.String(42), nullable=False),
        sa.Column("request", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.String(42), nullable=False),
        sa.Column("role", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("shares", sa.String(39), nullable=False),
        sa.Column("matures_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_unbondings_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_unbondings"),
    )
    op.create_index("ix_unbondings_delegator", "unbondings", ["delegator", "request", "block", "log_index"])
