"""A task's cost in wei and in cents, of each party, at given prices. Pure.

Gas is the estimate's. Bytes are those of signed transactions, which a rollup posts on Ethereum. Each call counts as a
transaction of its own, so that bytes too are above the real ones (tests/chain/test_costs.py). Without disputes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from consilium_zk.constants import BYTES_PER_EIP2537_G1
from consilium_zk.secret_shares import share_bundle_bytes

from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.task_spec import TaskSpec

Party = Literal["operator", "aggregator", "hospital", "hospital_alone", "seated", "standing"]
WEI = 10**18  # of an ether
MILLION = 10**6
CALLDATA_GAS = 16  # of a byte in calldata of L1, by which rollups count
# Bytes of a transaction (type 2, signed) besides its arguments; a batched call has fewer.
_CALL = 160
_WORD = 32
# Arguments in words: of `approve`, `register`, `releaseBond`, `claim`; and of `propose`, `approve`, `claim`.
_NODE, _OPERATOR = 4 * _CALL + 9 * _WORD, 3 * _CALL + 47 * _WORD
_JOIN_HOSPITAL, _JOIN = _CALL + 11 * _WORD, _CALL + _WORD
_VOTER_KEY, _HELD_OUT = _CALL + 20 * _WORD, _CALL + _WORD
_SCORE, _REVEAL, _STAND_DOWN = _CALL + 20 * _WORD, _CALL + 5 * _WORD, _CALL + 2 * _WORD
_BEACON = _CALL + 8 * _WORD  # `formCohorts`, `drawSeats`, with a drand signature
_UPDATE, _UPDATE_ALONE, _BEGIN = 13 * _WORD, _CALL + 10 * _WORD, _CALL + 3 * _WORD
_DECOYS, _PUBLISH, _SUM, _DISCLOSE, _SETTLE = (_CALL + words * _WORD for words in (4, 7, 13, 22, 2))
_SHOWN = BYTES_PER_EIP2537_G1 + 1  # of a survivor in a sum: its point and its index
_SETTLED_AT_ONCE = 60  # hospitals and voters, at least (`PAGE_GAS` of Settling.sol)


@dataclass(frozen=True)
class Prices:
    """Wei for a unit of gas, for one of blob gas (EIP-4844), and for a byte of a transaction that a rollup posts, 0 on
    Ethereum itself; cents for an ether.
    """

    gas: int
    blob_gas: int
    byte: int
    ether: int

    def wei(self, gas: int, posted: int, blob_gas: int) -> int:
        """`posted`: bytes."""
        return gas * self.gas + posted * self.byte + blob_gas * self.blob_gas

    def cents(self, wei: int) -> int:
        """Rounded up to a cent."""
        return -(-wei * self.ether // WEI)


@dataclass(frozen=True)
class Cost:
    """`gas`, `posted` and `blob_gas` are units; `cents` are rounded up."""

    gas: int
    posted: int
    blob_gas: int
    wei: int
    cents: int


def byte_price(l1_gas_price: int, l1_blob_gas_price: int, gas_scalar: int, blob_scalar: int) -> int:
    """Wei for a byte that a rollup posts, rounded up, by the OP stack's formula since Fjord: L1's price of calldata and
    of blob gas (wei), each times its scalar (millionths). Bytes count as incompressible, which is above the charge.
    """
    return -(-(CALLDATA_GAS * l1_gas_price * gas_scalar + l1_blob_gas_price * blob_scalar) // MILLION)


def task_costs(spec: TaskSpec, prices: Prices, tasks: int = 1, chain: ChainTerms | None = None) -> dict[Party, Cost]:
    """One party's cost of as many equal tasks, by role, as if all staked anew in each. Only the aggregator pays for
    published blobs. `chain` adds the beacon's gas, and its prices play no part.
    """
    found, posted = estimate(spec, chain), posted_bytes(spec)
    gas: dict[Party, int] = {
        "operator": found.operator.total, "aggregator": found.aggregator.total, "hospital": found.hospital.total,
        "hospital_alone": found.hospital_alone.total, "seated": found.seated.total, "standing": found.standing.total,
    }  # fmt: skip
    costs: dict[Party, Cost] = {}
    for party, used in gas.items():
        blob_gas = tasks * found.blob_gas if party == "aggregator" else 0
        wei = prices.wei(tasks * used, tasks * posted[party], blob_gas)
        costs[party] = Cost(tasks * used, tasks * posted[party], blob_gas, wei, prices.cents(wei))
    return costs


def posted_bytes(spec: TaskSpec) -> dict[Party, int]:
    """Bytes of one party's signed transactions in the whole task, by role, at most."""
    rounds, judging = spec.rounds, spec.judging
    training, judges_round_0 = rounds.rounds, spec.update.publication == "digests"
    scores = rounds.cohorts * (1 + judging.decoys)
    hospital, voter = _NODE + _JOIN_HOSPITAL, _NODE + _JOIN + _VOTER_KEY + _HELD_OUT
    judged = training + judges_round_0
    revealed = (training * scores + judges_round_0) * _WORD
    return {
        "operator": _OPERATOR,
        "aggregator": _NODE + _JOIN + _aggregated(spec),
        "hospital": hospital,
        "hospital_alone": hospital + _committed_alone(spec),
        "seated": voter + judged * (_SCORE + _REVEAL) + revealed,
        "standing": voter + judged * _STAND_DOWN,
    }


def _aggregated(spec: TaskSpec) -> int:
    rounds, judging, hospitals = spec.rounds, spec.judging, spec.rounds.max_hospitals
    sums, points = rounds.cohorts * spec.update_blobs, hospitals * spec.update_blobs * _SHOWN
    settled = math.ceil((hospitals + judging.seats) / _SETTLED_AT_ONCE) * _SETTLE
    training = _relayed(hospitals, spec.update_blobs) + 2 * _BEACON + _BEGIN + sums * _PUBLISH + points + settled
    if judging.decoys:
        training += _DECOYS + sums * (_DISCLOSE + spec.update_blobs * BYTES_PER_EIP2537_G1)
    else:
        training += sums * _SUM
    statistics = _relayed(hospitals, spec.statistics_blobs) + _BEGIN + spec.statistics_blobs * (_SUM + _PUBLISH)
    statistics += hospitals * spec.statistics_blobs * _SHOWN + 2 * _BEACON + settled
    return statistics + rounds.rounds * training


def _relayed(hospitals: int, blobs: int) -> int:
    """Each update as if alone in its transaction."""
    return hospitals * (_CALL + _UPDATE + blobs * _WORD)


def _committed_alone(spec: TaskSpec) -> int:
    rounds, shares = spec.rounds, 0
    if spec.update.masked:
        largest = math.ceil(rounds.max_hospitals / rounds.cohorts)
        shares = share_bundle_bytes(rounds.max_hospitals) + rounds.rounds * share_bundle_bytes(largest)
    blobs = spec.statistics_blobs + rounds.rounds * spec.update_blobs
    return shares + (1 + rounds.rounds) * _UPDATE_ALONE + blobs * _WORD
