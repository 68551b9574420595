"""A task's cost on each network at assumed fees, before a chain is chosen. `fees.toml` has the assumptions. Pure."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from consilium_core.typed_toml import Section
from consilium_core.units import WEI_PER_GWEI
from pydantic import Field

from consilium_chain.rpc.tip import tip
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.costs import Cost, Party, Prices, byte_price, task_costs
from consilium_chain.tasks.task_spec import TaskSpec

Level = Literal["low", "middle", "high"]
LEVELS: Final[tuple[Level, ...]] = ("low", "middle", "high")
ASSUMED: Final = Path(__file__).with_suffix(".toml")
DRAND: Final = ChainTerms(0, 0, 0, 0, has_drand=True)


class Gwei(Section):
    low: float = Field(gt=0)
    middle: float = Field(gt=0)
    high: float = Field(gt=0)

    def wei(self, level: Level) -> int:
        return round(WEI_PER_GWEI * float(getattr(self, level)))


class Network(Gwei):
    """Base fees of a network. `blobs`: it is Ethereum, which takes blobs; others post their transactions there."""

    name: str
    blobs: bool


class Fees(Section):
    """Assumed fees and prices of a day. `blob_gwei`: for a unit of blob gas on Ethereum. The scalars are the OP stack's
    (`byte_price`), in millionths.
    """

    date: datetime.date
    ether_dollars: int = Field(gt=0)
    gas_scalar: int = Field(ge=0)
    blob_scalar: int = Field(ge=0)
    blob_gwei: Gwei
    network: tuple[Network, ...]

    def prices(self, network: Network, level: Level) -> Prices:
        """A rollup's byte costs what Ethereum's gas and blobs cost at the same level."""
        base, blob = network.wei(level), self.blob_gwei.wei(level)
        (l1,) = (one.wei(level) for one in self.network if one.blobs)
        posted = 0 if network.blobs else byte_price(l1, blob, self.gas_scalar, self.blob_scalar)
        return Prices(base + tip(base), blob, posted, self.ether_dollars * 100)


@cache
def assumed_fees() -> Fees:
    """Those that the package has."""
    return Fees.model_validate(tomllib.loads(ASSUMED.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class NetworkCost:
    """A whole task's cost on a network at a level of fees: of one party of each role, and of all in cents."""

    network: str
    level: Level
    parties: dict[Party, Cost]
    all_cents: int


def network_costs(spec: TaskSpec, fees: Fees | None = None) -> list[NetworkCost]:
    """By network and level. Where a chain takes no blobs, sums are published by digest. All hospitals and voters take
    part, and none commits for itself.
    """
    fees, found = fees or assumed_fees(), []
    counts: dict[Party, int] = {
        "operator": 1, "aggregator": 1, "hospital": spec.rounds.max_hospitals, "seated": spec.judging.seats,
        "standing": spec.judging.max_voters - spec.judging.seats,
    }  # fmt: skip
    for network in fees.network:
        own = spec if network.blobs else _by_digest(spec)
        for level in LEVELS:
            prices = fees.prices(network, level)
            costs = task_costs(own, prices, chain=DRAND)
            wei = sum(count * costs[party].wei for party, count in counts.items())
            found.append(NetworkCost(network.name, level, costs, prices.cents(wei)))
    return found


def _by_digest(spec: TaskSpec) -> TaskSpec:
    values = spec.model_dump(mode="json", exclude_none=True)
    values["update"]["publication"] = "digests"
    return TaskSpec.model_validate(values)
