"""Withdrawal addresses of nodes. No contract that was indexed before has such events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("pools", sa.Column("withdrawal_address", sa.String(42), nullable=True))
    op.add_column("pools", sa.Column("next_withdrawal_address", sa.String(42), nullable=True))
    op.add_column("pools", sa.Column("next_withdrawal_at", sa.BigInteger(), nullable=True))
