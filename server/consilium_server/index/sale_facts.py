"""Rows of the contract ModelShares. Pure.

Anybody can make this contract emit some events with numbers and texts of its own choice. Numbers out of range belong to
no task, and an address that is not a plain URL is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from consilium_chain.ledger.ensembles import is_ensemble
from consilium_chain.rpc.event_logs import Event

from consilium_server.database.sale_tables import MOST_URL, MemberRow, OfferRow, PartsRow, SaleRow, SaleTermsRow
from consilium_server.database.tables import Fact
from consilium_server.index.staking_facts import Known, position_of

LARGEST_TASK = 2**53 - 1
MOST_PRICE = 2**96 - 1  # of a voucher's amount
NOBODY = "0x" + "00" * 20
ABOUT = ("buyer", "holder", "server", "payer")  # the account that an event is about, by the first of these fields
# Kind of each event with an amount, and the field of its account.
MONEY = {
    "Paid": ("paid", "payer"),
    "Split": ("split", "server"),
    "Claimed": ("claimed", "holder"),
    "Deposited": ("deposited", "buyer"),
    "Redeemed": ("redeemed", "buyer"),
    "Withdrawn": ("withdrawn", "buyer"),
}


def task_of(values: dict[str, Any]) -> int | None:
    """The task or ensemble of an event of ModelShares; None if it has several, or none that the tables can hold."""
    task = values.get("taskId", values.get("id"))
    return int(task) if task is not None and 0 < task <= LARGEST_TASK else None


def account_of(values: dict[str, Any]) -> str | None:
    """The account that an event of ModelShares is about."""
    return next((values[name] for name in ABOUT if name in values), None)


def sale_facts(event: Event, known: Known) -> list[Fact]:
    """Rows of an event of ModelShares; none for an event that only `EventRow` has."""
    values, at = event.values, position_of(event)
    if event.name == "TransferBatch":
        return list(_moved(event, known, list(zip(values["ids"], values["values"], strict=True))))
    task = task_of(values)
    if task is None:
        return []
    if event.name == "TransferSingle":
        return list(_moved(event, known, [(task, values["value"])]))
    if event.name == "TermsShown":
        return [SaleTermsRow(**at, task=task, **{name: values[name] for name in _PERCENTAGES})]
    if event.name == "EnsembleFormed":
        members = enumerate(zip(values["taskIds"], values["gains"], strict=True))
        return [
            MemberRow(**position_of(event, item), ensemble=task, task=member, gain=gain)
            for item, (member, gain) in members
        ]
    if event.name == "Offered":
        price = values["price"] if values["price"] <= MOST_PRICE else 0
        known.prices[task, values["server"]] = price
        return [OfferRow(**at, task=task, server=values["server"], price=price, url=plain_url(values["url"]))]
    if event.name in MONEY:
        return [_money(event, known, task)]
    return []


_PERCENTAGES = ("server", "operator", "trainers", "voters")


def _money(event: Event, known: Known, task: int) -> SaleRow:
    values = event.values
    kind, account = MONEY[event.name]
    before = known.sales.find((task, kind))
    predictions = _predictions(values, known, task) if kind == "split" else 0
    row = SaleRow(
        **position_of(event), task=task, kind=kind, account=values[account], server=values.get("server"),
        amount=values["amount"], fee=values.get("fee", 0), total=values["amount"], number=1, predictions=predictions,
    )  # fmt: skip
    if before is not None:
        row.total, row.number = row.total + before.total, row.number + before.number
        row.predictions += before.predictions
    known.sales[task, kind] = row
    return row


def _predictions(values: dict[str, Any], known: Known, task: int) -> int:
    """The predictions of a sale, by its server's price. The contract tells of an ensemble's sale first, and then of the
    parts of its members, which add up to it: they are no predictions of their own.
    """
    amount = int(values["amount"])
    if known.undivided:
        known.undivided -= amount
        return 0
    if is_ensemble(task):
        known.undivided = amount
    price = known.prices.find((task, values["server"]))
    return amount // price if price else 0


def _moved(event: Event, known: Known, moves: list[tuple[int, int]]) -> Iterator[PartsRow]:
    """The holders' rows after a transfer, each settled by all payments until then, as the contract settles them."""
    item = 0
    for task, parts in moves:
        if not parts or not 0 < task <= LARGEST_TASK:
            continue
        for holder, change in ((event.values["from"], -parts), (event.values["to"], parts)):
            if holder == NOBODY:
                continue
            before, sale = known.parts.find((task, holder)), known.sales.find((task, "paid"))
            paid = 0 if sale is None else sale.total
            held, earned = (0, 0) if before is None else (before.parts, earned_x64(before, paid))
            at = position_of(event, item)
            row = PartsRow(**at, task=task, holder=holder, parts=held + change, paid=paid, earned_x64=earned)
            known.parts[task, holder] = row
            yield row
            item += 1


def earned_x64(row: Any, paid: int) -> int:
    """A holder's money until `paid` was paid for the task, claimed or not, with a fraction of 64 bits."""
    return int(row.earned_x64 + row.parts * (paid - row.paid))


def plain_url(text: str) -> str:
    """The URL if it is an http or https address in visible ASCII, without user and fragment; else empty."""
    if len(text) > MOST_URL or not all("!" <= one <= "~" for one in text):
        return ""
    try:
        parts = urlsplit(text)
        is_plain = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return text if is_plain and "@" not in parts.netloc and "\\" not in text and not parts.fragment else ""
