"""The network's settings in bench/chain/testnet.toml, typed."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).parents[2] / "bench" / "chain" / "testnet.toml"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Setting(_Table):
    """`here`: what the rehearsal has instead, in words."""

    name: str
    what: str
    value: int | str
    source: str
    here: str


class Price(_Table):
    """Gwei for a unit of gas, and of blob gas."""

    name: str
    gwei: float
    blob_gwei: float


class Whose(_Table):
    name: str
    drand_lookahead_s: int
    logs_at_once_here: int


class Testnet(_Table):
    __test__ = False

    network: Whose
    setting: tuple[Setting, ...]
    price: tuple[Price, ...]

    def __getitem__(self, name: str) -> Any:
        return next(one.value for one in self.setting if one.name == name)


@cache
def testnet() -> Testnet:
    return Testnet.model_validate(tomllib.loads(FILE.read_text()))
