"""Tables of machines that share one account's tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "aggregators",
        sa.Column("place", sa.String(120), nullable=False),
        sa.Column("superlink_port", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(120), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("leased_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_aggregators"),
    )
    op.create_table(
        "sealed_secrets",
        sa.Column("place", sa.String(120), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("place", "round", name="pk_sealed_secrets"),
    )
