"""A chain's prices and times, and the pay of a task's parties: what both the estimate and its concerns need."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.settlement.payouts import portion, round_part
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.task_spec import TaskSpec


@dataclass(frozen=True)
class ChainTerms:
    """A chain at one moment: wei for a unit of gas and of blob gas (EIP-4844), seconds between blocks, and seconds from
    a request to its random value. `confirmations`: of a block that counts as final, with itself.
    """

    gas_price: int
    blob_gas_price: int
    block_seconds: float
    beacon_seconds: float
    takes_blobs: bool = True
    has_drand: bool = False
    confirmations: int = 1

    def wei(self, gas: int, blob_gas: int = 0) -> int:
        return gas * self.gas_price + blob_gas * self.blob_gas_price


@dataclass(frozen=True)
class Pay:
    """The pay of a training round if all earn alike, in the smallest unit: for the whole role, and for one party."""

    role: int
    one: int


def pay(spec: TaskSpec, share_bps: int, parties: int) -> Pay:
    pool = spec.money.pool * TOKEN
    role = portion(round_part(pool, spec.rounds.rounds, pool), share_bps)
    return Pay(role, role // parties)
