"""The sales of one server and task, in a file that survives a kill at any moment (SQLite).

Before an answer leaves, its sale is on the disk. So a buyer whose connection broke sends the same request again, and
gets the same answer without paying twice. No row and no answer is stored: only their hash, amounts and signatures.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from consilium_chain.ledger.channels import Authorization, Voucher

from consilium_operators.market.errors import SaleError

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS book (identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vouchers (
    buyer TEXT PRIMARY KEY, amount TEXT NOT NULL, expires_at INTEGER NOT NULL, signature BLOB NOT NULL,
    request BLOB NOT NULL, cost TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS transfers (
    payer TEXT NOT NULL, nonce BLOB NOT NULL, request BLOB NOT NULL, block INTEGER NOT NULL, settled INTEGER NOT NULL,
    PRIMARY KEY (payer, nonce)
) STRICT;
CREATE TABLE IF NOT EXISTS totals (predictions INTEGER NOT NULL, amount TEXT NOT NULL) STRICT;
"""


@dataclass(frozen=True)
class Taken:
    """A buyer's last voucher. `request`: SHA-256 of the body that it paid. `cost`: of that body."""

    voucher: Voucher
    request: bytes
    cost: int


@dataclass(frozen=True)
class Transfer:
    """An authorization that was taken. `block`: none of its transactions is before it."""

    request: bytes
    block: int
    is_settled: bool


class SalesBook:
    def __init__(self, path: Path, task: int, server: str, contract: str) -> None:
        """Raises SaleError (BookOfAnother)."""
        self._task, self._server = task, server
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=FULL")
        self._file.executescript(_TABLES)
        identity = f"{task} {server} {contract}"
        found = self._file.execute("SELECT identity FROM book").fetchone()
        if found is None:
            self._file.execute("INSERT INTO book VALUES (?)", (identity,))
            self._file.execute("INSERT INTO totals VALUES (0, '0')")
        elif found[0] != identity:
            raise SaleError("BookOfAnother", path=path)

    def close(self) -> None:
        self._file.close()

    def last(self, buyer: str) -> Taken | None:
        with self._lock:
            row = self._file.execute(
                "SELECT amount, expires_at, signature, request, cost FROM vouchers WHERE buyer = ?", (buyer,)
            ).fetchone()
        return None if row is None else self._taken(buyer, *row)

    def vouchers(self) -> Sequence[Voucher]:
        """The last one of each buyer."""
        with self._lock:
            rows = self._file.execute("SELECT buyer, amount, expires_at, signature, request, cost FROM vouchers")
            return [self._taken(*row).voucher for row in rows.fetchall()]

    def _taken(self, buyer: str, amount: str, expires_at: int, signature: bytes, request: bytes, cost: str) -> Taken:
        voucher = Voucher(self._task, self._server, buyer, int(amount), expires_at, signature)
        return Taken(voucher, request, int(cost))

    def take(self, voucher: Voucher, request: bytes, cost: int, rows: int) -> None:
        """Stores a sale; it is on the disk when this returns."""
        values = (
            voucher.buyer, str(voucher.amount), voucher.expires_at, voucher.signature, request, str(cost),
        )  # fmt: skip
        with self._lock, self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.execute("INSERT OR REPLACE INTO vouchers VALUES (?, ?, ?, ?, ?, ?)", values)
            self._count(rows, cost)

    def transfer(self, payment: Authorization) -> Transfer | None:
        with self._lock:
            row = self._file.execute(
                "SELECT request, block, settled FROM transfers WHERE payer = ? AND nonce = ?",
                (payment.payer, payment.nonce),
            ).fetchone()
        return None if row is None else Transfer(row[0], row[1], bool(row[2]))

    def begin(self, payment: Authorization, request: bytes, block: int) -> None:
        """Stores that a transfer is about to be sent."""
        values = (payment.payer, payment.nonce, request, block)
        with self._lock:
            self._file.execute("INSERT INTO transfers VALUES (?, ?, ?, ?, 0)", values)

    def forget(self, payment: Authorization) -> None:
        """Removes a transfer that the chain refused."""
        with self._lock:
            self._file.execute(
                "DELETE FROM transfers WHERE payer = ? AND nonce = ? AND settled = 0", (payment.payer, payment.nonce)
            )

    def settle(self, payment: Authorization, rows: int) -> None:
        """Stores that a transfer has arrived, once."""
        with self._lock, self._file:
            self._file.execute("BEGIN IMMEDIATE")
            changed = self._file.execute(
                "UPDATE transfers SET settled = 1 WHERE payer = ? AND nonce = ? AND settled = 0",
                (payment.payer, payment.nonce),
            )
            if changed.rowcount:
                self._count(rows, payment.value)

    def _count(self, rows: int, cost: int) -> None:
        predictions, amount = self._file.execute("SELECT predictions, amount FROM totals").fetchone()
        self._file.execute(
            "UPDATE totals SET predictions = ?, amount = ?", (predictions + rows, str(int(amount) + cost))
        )

    def totals(self) -> tuple[int, int]:
        """Predictions sold, and their price, in the token's smallest unit."""
        with self._lock:
            predictions, amount = self._file.execute("SELECT predictions, amount FROM totals").fetchone()
        return int(predictions), int(amount)
