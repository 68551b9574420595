"""Hospitals' Flower node keys, ECDSA on P-256. A SuperLink knows a hospital by its key. The contract takes a key with a
proof that the account holds it.

On chain a key is its point's coordinates (64 bytes), and a signature is r and s (64 bytes), as P256VERIFY (EIP-7951)
takes them. Flower registers a key as PEM.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from consilium_core.private_files import write_private_file
from consilium_zk.encoding import address, uint256
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from eth_utils.crypto import keccak

from consilium_chain.errors import TransportKeyMalformed

BYTES_PER_KEY: Final = 64
_DOMAIN: Final = keccak(b"CONSILIUM-V1-TRANSPORT-KEY")
_HALF: Final = BYTES_PER_KEY // 2
_UNCOMPRESSED: Final = b"\x04"  # SEC 1, 2.3.3


class TransportKey:
    """A private key. Its `repr` hides it."""

    __slots__ = ("_key",)

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        """Raises TransportKeyMalformed for a key of another curve."""
        if not isinstance(key.curve, ec.SECP256R1):
            raise TransportKeyMalformed(f"its curve is {key.curve.name}")
        self._key = key

    @classmethod
    def generate(cls) -> TransportKey:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def read(cls, path: Path) -> TransportKey:
        """From a file in Flower's format (OpenSSH). Raises OSError, TransportKeyMalformed."""
        try:
            key = serialization.load_ssh_private_key(path.read_bytes(), None)
        except ValueError as error:
            raise TransportKeyMalformed("it is not a private key in OpenSSH format") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TransportKeyMalformed("it is not on an elliptic curve")
        return cls(key)

    def __repr__(self) -> str:
        return "TransportKey(hidden)"

    def write(self, path: Path) -> None:
        """In Flower's format, readable by its owner alone, with its public half beside it."""
        encoding, private = serialization.Encoding, serialization.PrivateFormat.OpenSSH
        write_private_file(path, self._key.private_bytes(encoding.PEM, private, serialization.NoEncryption()))
        public = self._key.public_key().public_bytes(encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        path.with_name(path.name + ".pub").write_bytes(public)

    @property
    def public(self) -> bytes:
        """Its point's coordinates, 64 bytes."""
        point = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        return self._key.public_key().public_bytes(*point)[1:]

    def sign(self, message: bytes) -> bytes:
        """ECDSA with SHA-256: r and s, 64 bytes."""
        r, s = decode_dss_signature(self._key.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")


def transport_message(chain_id: int, contract: bytes, task: int, hospital: bytes, key: bytes) -> bytes:
    """The message by which a key joins for an account: ITaskRegistry.transportMessage, 192 bytes.

    contract, hospital: 20 bytes; key: 64 bytes. Raises ArgumentInvalid, ShapeWrong.
    """
    words = [uint256("chain_id", chain_id), address("contract", contract), uint256("task", task)]
    return b"".join([_DOMAIN, *words, address("hospital", hospital), keccak(key)])


def pem_of(key: bytes) -> bytes:
    """A public key in Flower's format: PEM, SubjectPublicKeyInfo. Raises TransportKeyMalformed."""
    if len(key) != BYTES_PER_KEY:
        raise TransportKeyMalformed(f"it has {len(key)} bytes instead of {BYTES_PER_KEY}")
    try:
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _UNCOMPRESSED + key)
    except ValueError as error:
        raise TransportKeyMalformed("its point is not on the curve") from error
    return point.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
