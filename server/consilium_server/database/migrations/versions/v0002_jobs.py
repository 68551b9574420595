"""Table of the server's jobs: the last result of each, and when it may begin again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("job", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(40), nullable=False),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("succeeded_at", sa.Double(), nullable=True),
        sa.Column("outcome", sa.String(8), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(80), nullable=True),
        sa.Column("why", sa.String(1000), nullable=True),
        sa.Column("mark", sa.String(200), nullable=True),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("owner", sa.String(120), nullable=False),
        sa.Column("leased_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("job", "subject", name="pk_jobs"),
    )
