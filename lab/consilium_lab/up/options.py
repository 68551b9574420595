"""Options of `consilium up`. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_lab.demo.options import DataSet

HOME = Path(".consilium/up")


@dataclass(frozen=True)
class UpOptions:
    home: Path
    address_book: Path
    data: DataSet
    data_dir: Path | None
    hospitals: int
    voters: int
    rounds: int
    task: bool
    port: int
    chain_port: int
    broker_url: str | None
    database_url: str | None
