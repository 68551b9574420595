"""Keys that two derive alike, each from its own private key and the other's public one.

Source: X25519: RFC 7748; HKDF with SHA-256: RFC 5869.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .errors import KeyMalformed

BYTES_PER_KEY: Final = 32
_ANY: Final = bytes(range(BYTES_PER_KEY))  # a private key like any other


def public_key(private: bytes) -> bytes:
    """Of 32 uniform bytes. Raises KeyMalformed."""
    return _private_key(private).public_key().public_bytes_raw()


def is_usable(public: bytes) -> bool:
    """False for a key of small order, with which anybody could derive what its holder derives; and for no key."""
    try:
        agreed(_ANY, public, b"", b"", BYTES_PER_KEY)
    except KeyMalformed:
        return False
    return True


def agreed(private: bytes, other: bytes, tag: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes that only the holders of both private keys can derive, for the use that `tag` and `info` name.

    Raises KeyMalformed, also for a key of small order, with which anybody could derive the same.
    """
    if len(other) != BYTES_PER_KEY:
        raise KeyMalformed(f"a public key of {len(other)} bytes instead of {BYTES_PER_KEY}")
    try:
        shared = _private_key(private).exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as error:
        raise KeyMalformed("a public key of small order") from error
    return derived(shared, tag, info, length)


def derived(secret: bytes, tag: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes of a secret of at least 32, for the use that `tag` and `info` name."""
    return HKDF(algorithm=SHA256(), length=length, salt=tag, info=info).derive(secret)


def _private_key(private: bytes) -> X25519PrivateKey:
    if len(private) != BYTES_PER_KEY:
        raise KeyMalformed(f"a private key of {len(private)} bytes instead of {BYTES_PER_KEY}")
    return X25519PrivateKey.from_private_bytes(private)
