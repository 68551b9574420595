"""Table of names that another side verifies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "verified_names",
        sa.Column("account", sa.String(42), nullable=False),
        sa.Column("kind", sa.String(6), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("verified_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("account", "kind", name="pk_verified_names"),
    )
