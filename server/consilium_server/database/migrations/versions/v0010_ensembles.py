"""Table of ensembles' members. `consilium server reindex` adds the events of a contract that was there before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ensemble_members",
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("ensemble", sa.BigInteger(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("gain", sa.String(39), nullable=False),
        sa.ForeignKeyConstraint(["block"], ["blocks.number"], name="fk_ensemble_members_block", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("block", "log_index", "item", name="pk_ensemble_members"),
    )
    op.create_index("ix_ensemble_members_ensemble", "ensemble_members", ["ensemble"])
    op.create_index("ix_ensemble_members_task", "ensemble_members", ["task"])
