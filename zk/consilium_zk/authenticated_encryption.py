"""Authenticated encryption between two hospitals, through an aggregator that must not read it.

The key comes from the sender's key of one round and the recipient's key on the chain, for one context. Encryption is
deterministic: the same plaintext twice gives the same bytes, and other plaintexts under one key show only that they
differ. Source: AES-SIV, RFC 5297.
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
    """The plaintext `words` (at least one byte) for the holder of the recipient's key; 16 bytes longer.

    own: the sender's private and public key. context: chain, contract, task, round and purpose. Raises KeyMalformed.
    """
    private, sender = own
    return _cipher(agreed_point(private, recipient), sender, recipient, context).encrypt(words, None)


def unseal(sealed: bytes, own: tuple[bytes, bytes], sender: bytes, context: bytes) -> bytes:
    """The plaintext of the sender. Raises CiphertextInvalid if the sender did not encrypt it for this recipient;
    KeyMalformed.

    own: the recipient's private and public key.
    """
    private, recipient = own
    return unseal_by(agreed_point(private, sender), sealed, sender, recipient, context)


def unseal_by(point: bytes, sealed: bytes, sender: bytes, recipient: bytes, context: bytes) -> bytes:
    """The same for a reader that knows the shared point of the two keys. Raises CiphertextInvalid."""
    try:
        return _cipher(point, sender, recipient, context).decrypt(sealed, None)
    except InvalidTag as error:
        raise SharesInvalid("CiphertextInvalid") from error


def _cipher(point: bytes, sender: bytes, recipient: bytes, context: bytes) -> AESSIV:
    return AESSIV(derived(point, _TAG, sender + recipient + context, _AES_256_SIV))
