"""Encrypted shares of a hospital's two roots for its cohort, and their recovery.

A hospital gives each recipient one share of its key root and one of its own root (`masks`), encrypted. It publishes the
digest of each share and of its own root, and its key root's public key. So a recipient sees at once if its share is
right; a wrong share that is given back exposes its sender; and right shares that do not give the root expose the
dealer.

Shares are encrypted with a key of this round alone. A recipient of a bad entry shows the shared point of this key and
its own, with a proof (`key_exchange`): anybody can then decrypt this entry, and nothing else. For that the dealer
proves that it knows the private keys of both of its keys (`is_proven`). Without that proof nothing is shown for its
keys, and the dealer is at fault in every dispute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from eth_utils.crypto import keccak

from .authenticated_encryption import SEAL_OVERHEAD, seal, unseal, unseal_by
from .constants import BLS_MODULUS, BYTES_PER_FIELD_ELEMENT
from .errors import ShapeWrong, SharesInvalid
from .key_exchange import (
    BYTES_PER_SHOWN,
    BYTES_PER_SIGNATURE,
    is_possessed,
    is_usable,
    prove_possession,
    public_key,
    show_agreed,
    shown_point,
)
from .masks import between, mask_key, mask_private
from .shamir import recover, split

SHARES_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-DEALT")
BYTES_PER_SEALED: Final = 2 * BYTES_PER_FIELD_ELEMENT + SEAL_OVERHEAD
_BYTES_PER_DIGEST: Final = 32  # and of a key
BYTES_PER_ENTRY: Final = BYTES_PER_SEALED + 2 * _BYTES_PER_DIGEST
_BYTES_PER_HEAD: Final = 3 * _BYTES_PER_DIGEST + 2 * BYTES_PER_SIGNATURE
_ENTRY_TAG: Final = b"CONSILIUM-V1-ENTRY"


class Kind(IntEnum):
    """The root of a share. A threshold of shares of both kinds of one hospital reveals its update."""

    KEY = 0  # given back for dropped hospitals
    OWN = 1  # given back for survivors


@dataclass(frozen=True)
class Roots:
    """A hospital's secrets of one round: uniform scalars, never used again."""

    key: int
    own: int


@dataclass(frozen=True)
class Entry:
    """A dealer's entry for one recipient: both shares, encrypted (80 bytes), and their digests (32 bytes each)."""

    sealed: bytes
    digests: tuple[bytes, bytes]

    def to_wire(self) -> bytes:
        return self.sealed + b"".join(self.digests)


@dataclass(frozen=True)
class ShareBundle:
    """The secret shares of one dealer.

    key: the public key of its key root. sender_key: encrypts the entries. own_digest: of its own root. possessions:
    proofs that it knows the private keys of `key` and `sender_key`. entries: one for each recipient.
    """

    key: bytes
    sender_key: bytes
    own_digest: bytes
    possessions: tuple[bytes, bytes]
    entries: Mapping[int, Entry]

    def to_wire(self) -> bytes:
        """Keys, digest of the own root, possessions, entries by index. The dealer signs its keccak256."""
        entries = (self.entries[index].to_wire() for index in sorted(self.entries))
        return b"".join([self.key, self.sender_key, self.own_digest, *self.possessions, *entries])

    def to(self, recipient: int) -> ShareBundle:
        """The part for one recipient: all of them would take memory quadratic in the cohort."""
        return replace(self, entries={index: self.entries[index] for index in (recipient,) if index in self.entries})


class _Entries(Mapping[int, Entry]):
    """Entries of the wire form, parsed on access: most readers use one of many."""

    def __init__(self, raw: bytes, recipients: Collection[int]) -> None:
        self._raw, self._positions = raw, {index: position for position, index in enumerate(sorted(recipients))}

    def __getitem__(self, index: int) -> Entry:
        start = share_bundle_bytes(self._positions[index])
        return parse_entry(self._raw[start : start + BYTES_PER_ENTRY])

    def __iter__(self) -> Iterator[int]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


def deal(
    dealer: int,
    roots: Roots,
    coefficients: tuple[Sequence[int], Sequence[int]],
    private: bytes,
    recipients: Mapping[int, bytes],
    context: bytes,
) -> ShareBundle:
    """The shares for the cohort.

    dealer: its index. coefficients: of both polynomials, see `shamir.split`. private: of the round's encryption key.
    recipients: encryption keys by hospital index, without the dealer. context: chain, contract, task, round. Raises
    ArgumentInvalid, KeyMalformed.
    """
    coordinates = [_coordinate(index) for index in recipients]
    by_kind = [split(root, own, coordinates) for root, own in zip((roots.key, roots.own), coefficients, strict=True)]
    entries = {}
    sender_key = public_key(private)
    for index, key in recipients.items():
        shares = [_scalar(shared[_coordinate(index)]) for shared in by_kind]
        digests = (_share_digest(shares[0]), _share_digest(shares[1]))
        entries[index] = Entry(
            seal(b"".join(shares), (private, sender_key), key, context + between(dealer, index)), digests
        )
    owned = _possession_context(dealer, context)
    possessions = prove_possession(mask_private(roots.key), owned), prove_possession(private, owned)
    digest = root_digest(roots.own, context)
    return ShareBundle(mask_key(roots.key), sender_key, digest, possessions, entries)


def share_bundle_bytes(recipients: int) -> int:
    """Length of a share bundle's wire form."""
    return _BYTES_PER_HEAD + BYTES_PER_ENTRY * recipients


def parse_share_bundle(raw: bytes, recipients: Collection[int]) -> ShareBundle:
    """A share bundle to these recipients, from its wire form. Raises ShareBundleInvalid."""
    size = share_bundle_bytes(len(recipients))
    if len(raw) != size:
        raise SharesInvalid(
            "ShareBundleInvalid", reason=f"{len(raw)} bytes instead of {size} for {len(recipients)} recipients"
        )
    key, sender_key, own_digest = (raw[start : start + _BYTES_PER_DIGEST] for start in (0, 32, 64))
    proofs = raw[3 * _BYTES_PER_DIGEST : _BYTES_PER_HEAD]
    possessions = proofs[:BYTES_PER_SIGNATURE], proofs[BYTES_PER_SIGNATURE:]
    if not (is_usable(key) and is_usable(sender_key)):
        raise SharesInvalid("ShareBundleInvalid", reason="one of its keys is not a point of the prime-order group")
    return ShareBundle(key, sender_key, own_digest, possessions, _Entries(raw, recipients))


def parse_entry(raw: bytes) -> Entry:
    """Raises ShapeWrong."""
    if len(raw) != BYTES_PER_ENTRY:
        raise ShapeWrong("entry", f"{len(raw)} bytes", f"{BYTES_PER_ENTRY} bytes")
    sealed, digests = raw[:BYTES_PER_SEALED], raw[BYTES_PER_SEALED:]
    return Entry(sealed, (digests[:32], digests[32:]))


def open_entry(
    entry: Entry, own: tuple[bytes, bytes], dealer: int, key: bytes, recipient: int, context: bytes
) -> dict[Kind, int]:
    """The two shares from hospital `dealer`, encrypted with its key `key`, for this recipient.

    own: the recipient's private and public key. Both indices are in the context: otherwise a hospital that copies
    another's shares would get back shares of that one's roots. Raises CiphertextInvalid; ShareBundleInvalid if the
    shares do not match their digests; KeyMalformed.
    """
    return _shares(entry, unseal(entry.sealed, own, key, context + between(dealer, recipient)))


def is_proven(share_bundle: ShareBundle, dealer: int, context: bytes) -> bool:
    """True if the dealer proved that it knows the private keys of both of its keys. Only disputes need it."""
    owned = _possession_context(dealer, context)
    keys = share_bundle.key, share_bundle.sender_key
    return all(is_possessed(key, proof, owned) for key, proof in zip(keys, share_bundle.possessions, strict=True))


def show_bad_entry(share_bundle: ShareBundle, private: bytes, dealer: int, recipient: int, context: bytes) -> bytes:
    """96 bytes by which a recipient proves that its entry cannot be decrypted; zeros if not `is_proven`.

    private: of the recipient's encryption key. The proof decrypts this entry alone, and tells the dealer nothing new.
    """
    if not is_proven(share_bundle, dealer, context):
        return bytes(BYTES_PER_SHOWN)
    return show_agreed(private, share_bundle.sender_key, _ENTRY_TAG + context + between(dealer, recipient))


def is_bad_entry(
    share_bundle: ShareBundle, shown: bytes, dealer: int, recipient: int, encryption_key: bytes, context: bytes
) -> bool:
    """True if a recipient proved, by its encryption key, that its entry cannot be decrypted: the dealer is at fault.

    Raises AgreementUnproven without such a proof.
    """
    if not is_proven(share_bundle, dealer, context):
        return True
    ends, entry, key = between(dealer, recipient), share_bundle.entries[recipient], share_bundle.sender_key
    point = shown_point(encryption_key, key, shown, _ENTRY_TAG + context + ends)
    try:
        _shares(entry, unseal_by(point, entry.sealed, key, encryption_key, context + ends))
    except SharesInvalid:
        return True
    return False


def _shares(entry: Entry, words: bytes) -> dict[Kind, int]:
    """Raises ShareBundleInvalid."""
    shares = {Kind.KEY: words[:BYTES_PER_FIELD_ELEMENT], Kind.OWN: words[BYTES_PER_FIELD_ELEMENT:]}
    for kind, share in shares.items():
        if _share_digest(share) != entry.digests[kind]:
            raise SharesInvalid("ShareBundleInvalid", reason=f"its {kind.name.lower()} share does not match its digest")
        if int.from_bytes(share, "big") >= BLS_MODULUS:
            raise SharesInvalid("ShareBundleInvalid", reason=f"its {kind.name.lower()} share is outside the field")
    return {kind: int.from_bytes(share, "big") for kind, share in shares.items()}


def is_share(share_bundle: ShareBundle, recipient: int, kind: Kind, share: int) -> bool:
    """True if this is the share that the recipient was dealt."""
    entry = share_bundle.entries.get(recipient)
    return entry is not None and 0 <= share < 1 << 256 and _share_digest(_scalar(share)) == entry.digests[kind]


def recover_root(
    share_bundle: ShareBundle, kind: Kind, shares: Mapping[int, int], threshold: int, context: bytes
) -> int:
    """The dealer's root from shares by recipient, each of which `is_share`.

    Raises SharesTooFew; ShareBundleInvalid if they do not match the dealer's digest or key: the dealer is at fault.
    """
    # Any threshold of them do for an honest dealer, and for another it is the first that count, for everybody alike.
    chosen = sorted(shares)[:threshold]
    if any(shares[index] >= BLS_MODULUS for index in chosen):
        raise SharesInvalid("ShareBundleInvalid", reason=f"its {kind.name.lower()} shares are outside the field")
    root = recover({_coordinate(index): shares[index] for index in chosen}, threshold)
    shown = (
        mask_key(root) == share_bundle.key
        if kind is Kind.KEY
        else root_digest(root, context) == share_bundle.own_digest
    )
    if not shown:
        raise SharesInvalid("ShareBundleInvalid", reason=f"its shares do not give its {kind.name.lower()} root")
    return root


def root_digest(root: int, context: bytes) -> bytes:
    """The digest by which everybody recognises the dealer's own root."""
    return keccak(b"".join([SHARES_TAG, _scalar(root), context]))


def _possession_context(dealer: int, context: bytes) -> bytes:
    return context + between(dealer, dealer)


def _coordinate(index: int) -> int:
    """The coordinate of a hospital's share: never zero, where the secret is."""
    return index + 1


def _share_digest(share: bytes) -> bytes:
    """A share is uniform, so its digest hides it."""
    return keccak(SHARES_TAG + share)


def _scalar(value: int) -> bytes:
    return value.to_bytes(BYTES_PER_FIELD_ELEMENT, "big")
