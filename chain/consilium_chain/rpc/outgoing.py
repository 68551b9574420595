"""Outgoing transactions: their parts and receipts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eth_account.datastructures import SignedTransaction
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes

from consilium_chain.rpc.cell_proofs import Sidecar

# The last of a phase pays for the phase's end, which an estimate may not have seen and a call's own bound leaves out.
GAS_MARGIN = 600_000
TRANSACTION_GAS_LIMIT = 16_777_216  # EIP-7825
MAX_BLOBS_PER_TRANSACTION = 6
BLOB_GAS = 131_072  # of one blob (EIP-4844)


@dataclass(frozen=True)
class Receipt:
    transaction: str
    gas_used: int
    block: int
    call: str


@dataclass(frozen=True)
class Sent:
    """A transaction on the chain: its payer, the called account, and its data. `to` is empty for a deployment."""

    sender: str
    to: str
    data: bytes


@dataclass(frozen=True)
class Sending:
    """The terms of sending a call.

    gas: an upper bound; without it the node estimates, which runs the call many times. sidecars: travel with it
    (EIP-4844); no node runs such a call before it is sent, so it needs `gas`. force: also needs `gas`; the call is sent
    although it may be refused. name: for errors, by default the function's.
    """

    gas: int | None = None
    sidecars: Sequence[Sidecar] = ()
    force: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if self.gas is None and self.untried:
            raise ValueError("a call that is sent without a trial run needs a gas bound")

    @property
    def untried(self) -> bool:
        return self.force or bool(self.sidecars)


BY_ESTIMATE = Sending()


@dataclass(frozen=True)
class Unsent:
    """A transaction before signing. `gas`: its limit, by default by an estimate, also if it is `tried` and fails."""

    data: HexStr
    to: ChecksumAddress | None
    call: str
    gas: int | None = None
    tried: bool = False
    sidecars: Sequence[Sidecar] = ()
    value: int = 0
    authorizations: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Own:
    """A transaction that this account signed: its parts, its fields with nonce and fees, and its bytes."""

    unsent: Unsent
    fields: Mapping[str, Any]
    signed: SignedTransaction


@dataclass(frozen=True)
class Pending:
    """A sent transaction without a receipt. `own`: None if another account sent it."""

    digest: HexBytes
    call: str
    own: Own | None = None


class Witness(Protocol):
    """Records the data of this account that leaves the process."""

    def leaving(self, kind: str, to: str, content: bytes, **what: str | int) -> None:
        """`content`: the exact bytes for `to`. If this raises, they are not sent."""


def gas_limit(estimate: int, l1_gas: int) -> int:
    """`l1_gas`: the part of the estimate that is no computation, which no transaction's limit counts."""
    return bounded_gas((estimate - l1_gas) * 3 // 2 + GAS_MARGIN, l1_gas)


def bounded_gas(computing: int, l1_gas: int) -> int:
    """The gas of a transaction that computes with so much at most. Half of `l1_gas` comes on top, for L1's price may
    rise until the transaction is taken.
    """
    return min(computing, TRANSACTION_GAS_LIMIT) + l1_gas * 3 // 2
