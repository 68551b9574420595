"""A hospital's Flower node key, ECDSA P-384: what a SuperLink knows it by. It signs requests, and no money."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.keystore import write_private_file
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from consilium_client.errors import TransportKeyInvalid


def make_transport_key(path: Path) -> None:
    """Writes a new key as Flower reads it (OpenSSH), readable by its owner alone, and its public half beside it."""
    key = ec.generate_private_key(ec.SECP384R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_private_file(path, text)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_name(path.name + ".pub").write_bytes(public)


def transport_public_key(private_key: Path) -> bytes:
    """A node key's public half as the SuperLink registers it: PEM, SubjectPublicKeyInfo. Raises TransportKeyInvalid."""
    try:
        key = serialization.load_ssh_private_key(private_key.read_bytes(), None)
    except (OSError, ValueError) as error:
        raise TransportKeyInvalid(str(private_key)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TransportKeyInvalid(str(private_key))
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
