"""Options of `consilium up`. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_core.defaults import LOCAL_ADDRESS_BOOK

from consilium_lab.demo.options import DataSet

HOME = Path(".consilium/up")


@dataclass(frozen=True)
class UpOptions:
    """As `consilium up --help` has them. `task`: proposes a first task. URLs: of Redis and of PostgreSQL."""

    home: Path = HOME
    address_book: Path = LOCAL_ADDRESS_BOOK
    data: DataSet = DataSet.WDBC
    data_dir: Path | None = None
    hospitals: int = 4
    voters: int = 3
    rounds: int = 5
    task: bool = True
    port: int = 8080
    chain_port: int = 8545
    broker_url: str | None = None
    database_url: str | None = None

    @property
    def origin(self) -> str:
        """The address of API and dashboard."""
        return f"http://127.0.0.1:{self.port}"
