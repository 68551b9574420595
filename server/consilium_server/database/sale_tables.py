"""Tables of the events of `ModelShares`: terms, parts of models, offers, and money of buyers and holders."""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from consilium_server.database.tables import ACCOUNT, Amount, Fact

MOST_URL = 256  # bytes, as in `Channels.sol`
X64 = Amount(192)  # units of the token with a fraction of 64 bits


class SaleTermsRow(Fact):
    """TermsShown: whole percentages of each payment, once for each task."""

    __tablename__ = "sale_terms"

    task: Mapped[int] = mapped_column(BigInteger, unique=True)
    server: Mapped[int]
    operator: Mapped[int]
    trainers: Mapped[int]
    voters: Mapped[int]


class OfferRow(Fact):
    """Offered. A server's latest row of a task or ensemble is in effect. `price`: of one prediction; 0 withdraws it.

    `url`: empty if it is not a plain http or https address.
    """

    __tablename__ = "offers"
    __table_args__ = (Index("ix_offers_task", "task", "server", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    server: Mapped[str] = mapped_column(ACCOUNT)
    price: Mapped[int] = mapped_column(Amount)
    url: Mapped[str] = mapped_column(String(MOST_URL))


class PartsRow(Fact):
    """A holder's parts of a task's model after a transfer.

    `paid`: all that was paid for the task until then. `earned_x64`: the holder's money until then, claimed or not.
    """

    __tablename__ = "model_parts"
    __table_args__ = (Index("ix_model_parts_task", "task", "holder", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(ACCOUNT)
    parts: Mapped[int] = mapped_column(Amount)
    paid: Mapped[int] = mapped_column(Amount)
    earned_x64: Mapped[int] = mapped_column(X64)


class MemberRow(Fact):
    """EnsembleFormed: one of its members, a task. `gain`: its measured improvement, in millionths; the weight is its
    part of all. The members of an ensemble are items of one event, by task.
    """

    __tablename__ = "ensemble_members"
    __table_args__ = (Index("ix_ensemble_members_ensemble", "ensemble"), Index("ix_ensemble_members_task", "task"))

    ensemble: Mapped[int] = mapped_column(BigInteger)
    task: Mapped[int] = mapped_column(BigInteger)
    gain: Mapped[int] = mapped_column(Amount)


class SaleRow(Fact):
    """Money of a task's model, or of an ensemble by its number. `kind`: paid (to the holders), split (a sale, with the
    server's fee), redeemed, deposited, withdrawn, claimed.

    `account`: the payer, server, buyer or holder. `server`: of a split or a channel. `total`, `number`, `predictions`:
    sums of the task's rows of this kind with this one. `predictions`: of splits, by the price that the server offered;
    none for a member's part of an ensemble's sale, which counts for the ensemble.
    """

    __tablename__ = "sales"
    __table_args__ = (Index("ix_sales_task", "task", "kind", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(String(9))
    account: Mapped[str] = mapped_column(ACCOUNT)
    server: Mapped[str | None] = mapped_column(ACCOUNT)
    amount: Mapped[int] = mapped_column(Amount)
    fee: Mapped[int] = mapped_column(Amount)
    total: Mapped[int] = mapped_column(Amount)
    number: Mapped[int] = mapped_column(BigInteger)
    predictions: Mapped[int] = mapped_column(Amount)
