"""Rows of ensembles and of their sales, for an index without a chain."""

from __future__ import annotations

from collections.abc import Mapping

from consilium_chain.ledger.ensembles import ENSEMBLES
from consilium_server.database.sale_tables import MemberRow, SaleRow
from indexed_network import IndexedNetwork, account

SERVER = account("server")


def form(network: IndexedNetwork, order: int, gains: Mapping[int, int]) -> int:
    """An ensemble of these tasks; returns its number."""
    number = ENSEMBLES + order
    place = network.told("model_shares", "EnsembleFormed", {"id": str(number)}, task=number)
    for item, (task, gain) in enumerate(gains.items()):
        network.rows.append(MemberRow(**place | {"item": item}, ensemble=number, task=task, gain=gain))
    return number


def sell(network: IndexedNetwork, number: int, total: int, sales: int, predictions: int) -> None:
    """A sale; `total`, `sales` and `predictions`: with it."""
    place = network.told("model_shares", "Split", {"taskId": str(number)}, task=number, account=SERVER)
    network.rows.append(
        SaleRow(**place, task=number, kind="split", account=SERVER, server=SERVER, amount=1, fee=0, total=total,
                number=sales, predictions=predictions)
    )  # fmt: skip
