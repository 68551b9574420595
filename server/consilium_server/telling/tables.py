"""Tables of watch lists, addresses and messages. They are no facts: `reindex` leaves them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, Index, String
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from consilium_server.database.tables import ACCOUNT, Base, Hex


class WatchRow(MappedAsDataclass, Base):
    """An account's list. `nodes`: accounts. It is told of itself, too. `changed_at`: Unix seconds."""

    __tablename__ = "watches"

    account: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)
    tasks: Mapped[list[int]] = mapped_column(JSON)
    nodes: Mapped[list[str]] = mapped_column(JSON)
    changed_at: Mapped[float] = mapped_column(Double)


class ChannelRow(MappedAsDataclass, Base):
    """An account's webhook or mail address. `kind`: https or mailto. `state`: asked, confirmed, failed.
    none: it was deleted, and what it got today still counts.

    `secret`: 32 bytes in hexadecimal; signs webhooks, and makes the token that ends mails. `token_hash`: of the mail's
    one-time token, SHA-256, valid until `token_until`. `next_at`: earliest time of the next message. `sent`:
    attempted mails of the day `day`, counted since the epoch. `changed_at`: time of `state`, if it is not confirmed.
    """

    __tablename__ = "channels"
    __table_args__ = (Index("ix_channels_token", "token_hash"),)

    account: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)
    kind: Mapped[str] = mapped_column(String(6), primary_key=True)
    address: Mapped[str] = mapped_column(String(300))
    state: Mapped[str] = mapped_column(String(9))
    secret: Mapped[str] = mapped_column(String(64))
    token_hash: Mapped[bytes | None] = mapped_column(Hex)
    token_until: Mapped[int] = mapped_column(BigInteger)
    next_at: Mapped[float] = mapped_column(Double)
    day: Mapped[int]
    sent: Mapped[int]
    changed_at: Mapped[float] = mapped_column(Double)


class MessageRow(MappedAsDataclass, Base):
    """A message of the outbox. `id`: the same each time that it is sent. `kind`: event, withdrawn or proof.

    `state`: waiting, sent, dropped, proven (a proof that its address gave). `mailbox`: whom a proof asks: a host, or a
    mailbox without what leads to the same one. `block`, `block_hash`: of an event.
    """

    __tablename__ = "messages"
    __table_args__ = (
        Index("ix_messages_state", "state", "made_at"),
        Index("ix_messages_account", "account", "channel", "state"),
        Index("ix_messages_mailbox", "mailbox", "made_at"),
        Index("ix_messages_block", "block"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account: Mapped[str] = mapped_column(ACCOUNT)
    channel: Mapped[str] = mapped_column(String(6))
    kind: Mapped[str] = mapped_column(String(9))
    content: Mapped[dict[str, Any]] = mapped_column(JSON)
    made_at: Mapped[float] = mapped_column(Double)
    state: Mapped[str] = mapped_column(String(7), default="waiting")
    attempts: Mapped[int] = mapped_column(default=0)
    mailbox: Mapped[str | None] = mapped_column(String(300), default=None)
    block: Mapped[int | None] = mapped_column(BigInteger, default=None)
    block_hash: Mapped[bytes | None] = mapped_column(Hex, default=None)


class TellerRow(MappedAsDataclass, Base):
    """How far events are in the outbox, in one row. `hash`: of `block`, if an event there was looked at.

    `matured_until`: seconds up to which matured unbonding is in it. `offers`: kinds of channels, and `seen_at`: when a
    worker last offered them. `mails`, `proofs`: attempted mails of the day `day` to confirmed and to new addresses.
    """

    __tablename__ = "teller"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    block: Mapped[int] = mapped_column(BigInteger)
    log_index: Mapped[int]
    hash: Mapped[bytes | None] = mapped_column(Hex)
    matured_until: Mapped[int] = mapped_column(BigInteger)
    offers: Mapped[str] = mapped_column(String(20))
    seen_at: Mapped[float] = mapped_column(Double)
    day: Mapped[int] = mapped_column(default=0)
    mails: Mapped[int] = mapped_column(default=0)
    proofs: Mapped[int] = mapped_column(default=0)
