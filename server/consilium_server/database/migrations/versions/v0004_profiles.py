"""Table of nodes' profiles, and an index to find a transaction."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "profiles",
        sa.Column("account", sa.String(42), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("words", sa.String(500), nullable=False),
        sa.Column("signed", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("account", name="pk_profiles"),
    )
    op.create_index("ix_events_transaction", "events", ["transaction"])
