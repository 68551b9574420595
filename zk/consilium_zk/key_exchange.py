"""Key exchange with a proof of the shared point, a proof of possession of a private key, and signatures.

Keys are Ed25519's (RFC 8032). Points are of its prime-order subgroup, 32 bytes each, which a proof needs: X25519 gives
one coordinate only. The proof is that of Chaum and Pedersen (CRYPTO 1992) for the equality of two discrete logarithms,
made non-interactive by Fiat and Shamir's transform over the whole statement.

To show a shared point is safe only for a key with a proof of possession. Otherwise its holder could have derived it
from a third key, and the shown point would be that key's. Callers check this first.

Source: group operations: libsodium. HKDF with SHA-256: RFC 5869.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_core_ed25519_sub,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.exceptions import CryptoError

from .errors import AgreementUnproven, Malformed

BYTES_PER_KEY: Final = 32
BYTES_PER_SIGNATURE: Final = 64
BYTES_PER_SHOWN: Final = 96
_BYTES_PER_SCALAR: Final = 32
_POSSESSION_TAG: Final = b"CONSILIUM-V1-POSSESSION"
_NONCE_TAG: Final = b"CONSILIUM-V1-AGREEMENT-NONCE"
_CHALLENGE_TAG: Final = b"CONSILIUM-V1-AGREEMENT"


def public_key(private: bytes) -> bytes:
    """The key of 32 uniform bytes. Raises KeyMalformed."""
    return _private_key(private).public_key().public_bytes_raw()


def is_usable(public: bytes) -> bool:
    """False unless this is a canonical point of the prime-order subgroup other than the identity."""
    return len(public) == BYTES_PER_KEY and crypto_core_ed25519_is_valid_point(public)


def agreed_point(private: bytes, other: bytes) -> bytes:
    """The 32 bytes that the holders of both private keys derive. Raises KeyMalformed, as for `is_usable`."""
    if len(other) != BYTES_PER_KEY:
        raise Malformed("KeyMalformed", reason=f"the public key has {len(other)} bytes instead of {BYTES_PER_KEY}")
    try:
        return crypto_scalarmult_ed25519_noclamp(_expanded(private)[0], other)
    except CryptoError as error:
        raise Malformed("KeyMalformed", reason="the public key is not a point of the prime-order group") from error


def agreed(private: bytes, other: bytes, tag: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes that only the holders of both private keys can derive, for the use of `tag` and `info`.

    Raises KeyMalformed.
    """
    return derived(agreed_point(private, other), tag, info, length)


def derived(secret: bytes, tag: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes from a secret of at least 32, for the use of `tag` and `info`."""
    return HKDF(algorithm=SHA256(), length=length, salt=tag, info=info).derive(secret)


def prove_possession(private: bytes, context: bytes) -> bytes:
    """64 bytes that prove, in this context only, knowledge of the private key. Raises KeyMalformed."""
    return sign(private, _POSSESSION_TAG + context)


def is_possessed(public: bytes, possession: bytes, context: bytes) -> bool:
    """True if these bytes prove knowledge of the private key of a usable one."""
    return has_signed(public, possession, _POSSESSION_TAG + context)


def sign(private: bytes, words: bytes) -> bytes:
    """A deterministic Ed25519 signature, 64 bytes. `words` begin with a tag. Raises KeyMalformed."""
    return _private_key(private).sign(words)


def has_signed(public: bytes, signature: bytes, words: bytes) -> bool:
    """True if the holder of the private key to a usable one signed these words."""
    if not is_usable(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, words)
    except InvalidSignature:
        return False
    return True


def show_agreed(private: bytes, other: bytes, context: bytes) -> bytes:
    """The point shared with `other`, and its proof for this context: 96 bytes, deterministic.

    Only for an `other` that `is_possessed`. Raises KeyMalformed.
    """
    scalar, prefix = _expanded(private)
    own, point = public_key(private), agreed_point(private, other)
    nonce = _reduced(_NONCE_TAG, prefix, own, other, point, context)
    bases = crypto_scalarmult_ed25519_base_noclamp(nonce), crypto_scalarmult_ed25519_noclamp(nonce, other)
    challenge = _challenge(own, other, point, bases, context)
    response = crypto_core_ed25519_scalar_add(nonce, crypto_core_ed25519_scalar_mul(challenge, scalar))
    return point + challenge + response


def shown_point(public: bytes, other: bytes, shown: bytes, context: bytes) -> bytes:
    """The shared point of these two keys, as the holder of `public` proved it. Raises AgreementUnproven."""
    if len(shown) != BYTES_PER_SHOWN:
        raise AgreementUnproven(f"{len(shown)} bytes instead of {BYTES_PER_SHOWN}")
    point, challenge, response = (shown[start : start + _BYTES_PER_SCALAR] for start in range(0, BYTES_PER_SHOWN, 32))
    if crypto_core_ed25519_scalar_reduce(response + bytes(_BYTES_PER_SCALAR)) != response:
        raise AgreementUnproven("the response is not a canonical scalar")
    try:
        first = crypto_core_ed25519_sub(
            crypto_scalarmult_ed25519_base_noclamp(response), crypto_scalarmult_ed25519_noclamp(challenge, public)
        )
        second = crypto_core_ed25519_sub(
            crypto_scalarmult_ed25519_noclamp(response, other), crypto_scalarmult_ed25519_noclamp(challenge, point)
        )
    except CryptoError as error:  # a point outside the group, or a scalar that makes it the identity
        raise AgreementUnproven("a point is not in the prime-order group") from error
    if _challenge(public, other, point, (first, second), context) != challenge:
        raise AgreementUnproven("the point is not that of these two keys, or the context is another")
    return point


def _challenge(public: bytes, other: bytes, point: bytes, commitments: tuple[bytes, bytes], context: bytes) -> bytes:
    return _reduced(_CHALLENGE_TAG, public, other, point, *commitments, context)


def _reduced(*words: bytes) -> bytes:
    """A scalar from words of fixed length, except the last."""
    return crypto_core_ed25519_scalar_reduce(hashlib.sha512(b"".join(words)).digest())


def _expanded(private: bytes) -> tuple[bytes, bytes]:
    """The scalar of a private key (RFC 8032), and the rest of its secret."""
    if len(private) != BYTES_PER_KEY:
        raise Malformed("KeyMalformed", reason=f"the private key has {len(private)} bytes instead of {BYTES_PER_KEY}")
    digest = hashlib.sha512(private).digest()
    scalar = int.from_bytes(digest[:_BYTES_PER_SCALAR], "little") & (1 << 254) - 8 | 1 << 254
    return scalar.to_bytes(_BYTES_PER_SCALAR, "little"), digest[_BYTES_PER_SCALAR:]


def _private_key(private: bytes) -> Ed25519PrivateKey:
    if len(private) != BYTES_PER_KEY:
        raise Malformed("KeyMalformed", reason=f"the private key has {len(private)} bytes instead of {BYTES_PER_KEY}")
    return Ed25519PrivateKey.from_private_bytes(private)
