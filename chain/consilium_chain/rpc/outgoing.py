"""Transactions on their way to a node: their parts, and their receipts."""

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
    """A transaction as the chain has it: its payer, the account it calls, and its data. `to` is empty if it deploys."""

    sender: str
    to: str
    data: bytes


@dataclass(frozen=True)
class Sending:
    """The terms on which a call is sent.

    gas: what the call takes at most; without it the node estimates, which takes it many runs of the call. sidecars
    travel with it (EIP-4844): no node runs such a call before it is sent, so it needs a bound. With `force`, which
    needs one too, it is sent although it may be refused. name: what errors call it, by default the function's.
    """

    gas: int | None = None
    sidecars: Sequence[Sidecar] = ()
    force: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if self.gas is None and self.untried:
            raise ValueError("a call that no node runs before it is sent needs a bound of its gas")

    @property
    def untried(self) -> bool:
        return self.force or bool(self.sidecars)


BY_ESTIMATE = Sending()


@dataclass(frozen=True)
class Unsent:
    """A transaction to be. `gas` is its limit, by default by an estimate, also if it is `tried` and does not do."""

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
    """A transaction that this account signed: its parts, its fields with number and fees, and its bytes."""

    unsent: Unsent
    fields: Mapping[str, Any]
    signed: SignedTransaction


@dataclass(frozen=True)
class Pending:
    """A transaction that was sent and has no receipt yet. `own`: None if another account sent it."""

    digest: HexBytes
    call: str
    own: Own | None = None


class Witness(Protocol):
    """Records what of this account's is about to leave the process."""

    def leaving(self, kind: str, to: str, content: bytes, **what: str | int) -> None:
        """`content` is what leaves for `to`, byte by byte. If this raises, it does not leave."""


def gas_limit(estimate: int) -> int:
    return min(estimate * 3 // 2 + GAS_MARGIN, TRANSACTION_GAS_LIMIT)
