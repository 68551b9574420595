"""Table of additions to tasks' pools. No contract that was indexed before has such events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "fundings",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.String(39), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_fundings_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_fundings"),
    )
    op.create_index("ix_fundings_task", "fundings", ["task", "block", "log_index"])
