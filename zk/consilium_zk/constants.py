"""Numbers and tags that the contracts, the tests' vectors and this package agree on.

Sources: EIP-4844 (field, blobs), EIP-2537 (point encodings), IETF draft-irtf-cfrg-bls-signature (tag format).
"""

from __future__ import annotations

from typing import Final

from eth_utils.crypto import keccak

BLS_MODULUS: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""Order of BLS12-381's groups; scalars are integers below it."""

FIELD_ELEMENTS_PER_BLOB: Final = 4096
BYTES_PER_FIELD_ELEMENT: Final = 32
BYTES_PER_BLOB: Final = FIELD_ELEMENTS_PER_BLOB * BYTES_PER_FIELD_ELEMENT

BLINDERS_PER_BLOB: Final = 2
"""The last scalars of a blob are random, to hide its commitment: one for it, one for a value that a proof may show."""

USABLE_SCALARS: Final = FIELD_ELEMENTS_PER_BLOB - BLINDERS_PER_BLOB

USABLE_BITS: Final = 252
"""Bits of a scalar that lanes use: their content stays below the modulus, of 255 bits."""

MAX_LANE_BITS: Final = 63
"""A lane's sum fits a signed 64-bit integer, so that NumPy and every other reader hold it exactly."""

MIN_BITS: Final = 2
MAX_BITS: Final = 40
"""Bits of one quantised value; above 40 float64 has too few fraction bits left for unbiased rounding."""

POINT_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-POINT")
"""The first word of the context of a commitment's hash."""

TICKET_DST: Final = b"CONSILIUM-V1-TICKET_BLS12381G1_XMD:SHA-256_SSWU_RO_"
POSSESSION_DST: Final = b"CONSILIUM-V1-POP_BLS12381G1_XMD:SHA-256_SSWU_RO_"
"""Hash-to-curve tags (RFC 9380, section 3.1): a ticket can never pass for a proof of possession, nor the reverse."""

DRAND_DST: Final = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
"""The tag of drand's scheme bls-unchained-g1-rfc9380: nobody here signs under it."""

BYTES_PER_COMPRESSED_G1: Final = 48
BYTES_PER_COMPRESSED_G2: Final = 96
BYTES_PER_EIP2537_G1: Final = 128
BYTES_PER_EIP2537_G2: Final = 256
