"""Updates that a hospital signs and another account commits: the hospital needs no ether.

The signature is on EIP-712 typed data with chain, contract, task, round, hashes of points, and the digests of secret
shares and of the base. It has no nonce, for a hospital commits once a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eth_account.signers.local import LocalAccount

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import signed_update_bytes
from consilium_chain.typed_data import typed_data

DOMAIN = "Consilium"  # of all that hospitals sign for a task
_WORD = 32
NO_SHARE_BUNDLE = bytes(32)  # of a hospital that deals nothing
NO_BASE = bytes(32)  # of a hospital that states none
# Upper bounds of the gas in a batch (snapshots/relaying.json), so that it fits a transaction (EIP-7825). A cohort's
# first commitment to a blob takes a new slot.
_GAS_TO_RELAY = 200_000
_GAS_PER_UPDATE = 20_000
_GAS_PER_BLOB = 2_500
_GAS_PER_SLOT = 25_000
_GAS_PER_BATCH = 16_000_000
# Nodes take no transaction above 128 KiB. An update's arguments have ten words besides its hashes.
_BYTES_PER_BATCH = 120_000
_WORDS_PER_UPDATE = 10


@dataclass(frozen=True)
class SignedUpdate:
    """The hashes of a hospital's points (`Messages.point_hashes`, 32 bytes per blob), the digest of its secret shares
    (32 bytes, `NO_SHARE_BUNDLE` in an unmasked task), the digest of the base that it trained from (32 bytes), and its
    signature (EIP-2098).
    """

    hospital: str
    point_hashes: tuple[bytes, ...]
    share_bundle: bytes
    base: bytes
    r: bytes
    vs: bytes

    def to_chain(self, cohort: int) -> tuple[str, int, tuple[bytes, ...], bytes, bytes, bytes, bytes]:
        """The argument of `commitUpdates`. `cohort`: the number of the hospital's, which it does not sign."""
        return (self.hospital, cohort, self.point_hashes, self.share_bundle, self.base, self.r, self.vs)

    def to_wire(self) -> bytes:
        """r, vs, digests of secret shares and base, hashes of points; without the hospital, which the channel names."""
        return b"".join((self.r, self.vs, self.share_bundle, self.base, *self.point_hashes))


def parse_signed_update(raw: bytes, hospital: str, blobs: int) -> SignedUpdate:
    """A signed update of `blobs` blobs from its wire form. The signature is not checked.

    `hospital`: the known sender. Raises SignedUpdateMalformed.
    """
    if len(raw) != signed_update_bytes(blobs):
        raise SignedUpdateMalformed(f"{len(raw)} bytes instead of {signed_update_bytes(blobs)} for {blobs} blobs")
    r, vs, share_bundle, base, *hashes = (raw[i : i + _WORD] for i in range(0, len(raw), _WORD))
    return SignedUpdate(hospital, tuple(hashes), share_bundle, base, r, vs)


def sign_update(
    account: LocalAccount,
    chain_id: int,
    contract: str,
    task: int,
    round_: int,
    point_hashes: Sequence[bytes],
    share_bundle: bytes = NO_SHARE_BUNDLE,
    base: bytes = NO_BASE,
) -> SignedUpdate:
    """Signs with the hospital's own account, at most one update per round: a holder of two could choose."""
    message = commitment_message(chain_id, contract, task, round_, point_hashes, share_bundle, base)
    signed = account.sign_typed_data(full_message=message)
    r, vs = (number.to_bytes(_WORD, "big") for number in (signed.r, (signed.v - 27) << 255 | signed.s))
    return SignedUpdate(account.address, tuple(point_hashes), share_bundle, base, r, vs)


def commitment_message(
    chain_id: int,
    contract: str,
    task: int,
    round_: int,
    point_hashes: Sequence[bytes],
    share_bundle: bytes = NO_SHARE_BUNDLE,
    base: bytes = NO_BASE,
) -> dict[str, Any]:
    """The EIP-712 message whose digest is `ITasks.commitmentDigest` of the hashes of points and the digests of secret
    shares and of the base.
    """
    fields = {
        "taskId": "uint256", "round": "uint256", "pointHashes": "bytes32[]", "dealing": "bytes32", "base": "bytes32"
    }  # fmt: skip
    values = {
        "taskId": task, "round": round_, "pointHashes": list(point_hashes), "dealing": share_bundle, "base": base
    }  # fmt: skip
    return typed_data(DOMAIN, chain_id, contract, {"UpdateCommitment": fields}, values)


def agreed_base(stated: Iterable[bytes], hospitals: int) -> bytes | None:
    """The digest of the base that more than half of a round's hospitals state; None without one."""
    known = Counter(base for base in stated if base != NO_BASE)
    base, count = max(known.items(), key=lambda item: item[1], default=(NO_BASE, 0))
    return base if 2 * count > hospitals else None


def update_batches(updates: Sequence[tuple[int, SignedUpdate]]) -> Iterator[list[tuple[int, SignedUpdate]]]:
    """Updates with the numbers of their cohorts, in order, in batches that each fit into one transaction."""
    batch: list[tuple[int, SignedUpdate]] = []
    for update in updates:
        longer = [*batch, update]
        if batch and (relayed_gas(longer) > _GAS_PER_BATCH or _relayed_bytes(longer) > _BYTES_PER_BATCH):
            yield batch
            longer = [update]
        batch = longer
    if batch:
        yield batch


def relayed_gas(updates: Sequence[tuple[int, SignedUpdate]]) -> int:
    """An upper bound of the gas of committing them in one transaction, without the end of the phase."""
    slots = {cohort: len(update.point_hashes) for cohort, update in updates}
    gas = _GAS_PER_UPDATE * len(updates) + _GAS_PER_BLOB * _hashes(updates)
    return _GAS_TO_RELAY + gas + _GAS_PER_SLOT * sum(slots.values())


def _relayed_bytes(updates: Sequence[tuple[int, SignedUpdate]]) -> int:
    return _WORD * (_WORDS_PER_UPDATE * len(updates) + _hashes(updates))


def _hashes(updates: Sequence[tuple[int, SignedUpdate]]) -> int:
    return sum(len(update.point_hashes) for _, update in updates)
