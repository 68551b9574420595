"""Authenticated encryption between two hospitals, through an aggregator that must not read it.

The key is agreed of the sender's seal key, of one round, and of the recipient's sealing key, which the chain carries,
for one context. Sealing is deterministic and resists misuse: the same words sealed twice are the same bytes, and of
others under one key nobody learns but that they are others.

Source: AES-SIV: RFC 5297.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from .errors import SharesInvalid
from .key_exchange import agreed_point, derived

SEAL_OVERHEAD: Final = 16
_TAG: Final = b"CONSILIUM-V1-SEAL"
_AES_256_SIV: Final = 64


def seal(words: bytes, own: tuple[bytes, bytes], recipient: bytes, context: bytes) -> bytes:
    """`words`, at least one byte, for the holder of the recipient's key; 16 bytes longer.

    own: the sender's private key and its public one. context: tells chain, contract, task and round, and what this is.
    Raises KeyMalformed.
    """
    private, sender = own
    return _cipher(agreed_point(private, recipient), sender, recipient, context).encrypt(words, None)


def unseal(sealed: bytes, own: tuple[bytes, bytes], sender: bytes, context: bytes) -> bytes:
    """The plaintext that the sender encrypted for this recipient. Raises SealInvalid where it did not; KeyMalformed.

    own: the recipient's private key and its public one.
    """
    private, recipient = own
    return unseal_by(agreed_point(private, sender), sealed, sender, recipient, context)


def unseal_by(point: bytes, sealed: bytes, sender: bytes, recipient: bytes, context: bytes) -> bytes:
    """The same for anybody who was shown the point that the two keys agree on. Raises SealInvalid."""
    try:
        return _cipher(point, sender, recipient, context).decrypt(sealed, None)
    except InvalidTag as error:
        raise SharesInvalid("SealInvalid") from error


def _cipher(point: bytes, sender: bytes, recipient: bytes, context: bytes) -> AESSIV:
    return AESSIV(derived(point, _TAG, sender + recipient + context, _AES_256_SIV))
