"""Tables of watch lists, of addresses to tell, and of messages."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _column(name: str, kind: sa.types.TypeEngine[Any], nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=nullable, autoincrement=False)


def upgrade() -> None:
    account, hashed = sa.String(42), sa.String(66)
    big, whole = sa.BigInteger(), sa.Integer()
    double: sa.Double[float] = sa.Double()
    op.create_table(
        "watches",
        _column("account", account),
        _column("tasks", sa.JSON()),
        _column("nodes", sa.JSON()),
        _column("changed_at", double),
        sa.PrimaryKeyConstraint("account", name="pk_watches"),
    )
    op.create_table(
        "channels",
        _column("account", account),
        _column("kind", sa.String(6)),
        _column("address", sa.String(300)),
        _column("state", sa.String(9)),
        _column("secret", sa.String(64)),
        _column("token_hash", hashed, nullable=True),
        _column("token_until", big),
        _column("next_at", double),
        _column("day", whole),
        _column("sent", whole),
        _column("changed_at", double),
        sa.PrimaryKeyConstraint("account", "kind", name="pk_channels"),
    )
    op.create_index("ix_channels_token", "channels", ["token_hash"])
    op.create_table(
        "messages",
        _column("id", sa.String(32)),
        _column("account", account),
        _column("channel", sa.String(6)),
        _column("kind", sa.String(9)),
        _column("content", sa.JSON()),
        _column("made_at", double),
        _column("state", sa.String(7)),
        _column("attempts", whole),
        _column("mailbox", sa.String(300), nullable=True),
        _column("block", big, nullable=True),
        _column("block_hash", hashed, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index("ix_messages_state", "messages", ["state", "made_at"])
    op.create_index("ix_messages_account", "messages", ["account", "channel", "state"])
    op.create_index("ix_messages_mailbox", "messages", ["mailbox", "made_at"])
    op.create_index("ix_messages_block", "messages", ["block"])
    op.create_table(
        "teller",
        _column("number", whole),
        _column("block", big),
        _column("log_index", whole),
        _column("hash", hashed, nullable=True),
        _column("matured_until", big),
        _column("offers", sa.String(20)),
        _column("seen_at", double),
        _column("day", whole),
        _column("mails", whole),
        _column("proofs", whole),
        sa.PrimaryKeyConstraint("number", name="pk_teller"),
    )
