"""What one hospital tells another through an aggregator that must not read it.

The key is agreed of both hospitals' sealing keys, which the chain carries, for one context. Sealing is deterministic
and resists misuse: the same words sealed twice are the same bytes, and of others under one key nobody learns but that
they are others.

Source: AES-SIV: RFC 5297.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from .agreement import agreed, public_key
from .errors import SealInvalid

SEAL_OVERHEAD: Final = 16
_TAG: Final = b"CONSILIUM-V1-SEAL"
_AES_256_SIV: Final = 64


def seal(words: bytes, private: bytes, recipient: bytes, context: bytes) -> bytes:
    """`words`, at least one byte, for the holder of the recipient's key (X25519); 16 bytes longer.

    `context` tells chain, contract, task and round, and what this is. Raises KeyMalformed.
    """
    return _cipher(private, recipient, public_key(private), recipient, context).encrypt(words, None)


def unseal(sealed: bytes, private: bytes, sender: bytes, context: bytes) -> bytes:
    """What the holder of the sender's key sealed for this one. Raises SealInvalid where it did not; KeyMalformed."""
    try:
        return _cipher(private, sender, sender, public_key(private), context).decrypt(sealed, None)
    except InvalidTag as error:
        raise SealInvalid from error


def _cipher(private: bytes, other: bytes, sender: bytes, recipient: bytes, context: bytes) -> AESSIV:
    return AESSIV(agreed(private, other, _TAG, sender + recipient + context, _AES_256_SIV))
