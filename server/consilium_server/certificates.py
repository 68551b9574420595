"""A private certificate authority and the SuperLink's certificate. Each start makes or renews them if needed.

folder/   ca.crt      the authority, for hospitals and proxies   ca.key      its key
          server.pem  for localhost, signed by it                server.key  its key
          lock        held while they are made
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from consilium_core.locks import in_turn
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from consilium_server.errors import ServerError

LIFETIME = datetime.timedelta(days=365)
LONGEST_RUN = datetime.timedelta(days=300)  # of a process; its certificate is valid for as long
AUTHORITY_LIFETIME = datetime.timedelta(days=3_650)
NOTICE = datetime.timedelta(days=365)  # before an authority's end, for the distribution of its successor
NAME = "Consilium local authority"
HOST, ADDRESS = x509.DNSName("localhost"), ipaddress.IPv4Address("127.0.0.1")


@dataclass(frozen=True)
class Certificates:
    """Files of the authority, and of the server's certificate and key."""

    authority: Path
    certificate: Path
    key: Path


def ensure_certificates(folder: Path) -> Certificates:
    """Files of an authority, and of a server certificate for localhost that is valid for `LONGEST_RUN` from now.

    It renews a shorter or half-written server certificate, without effect on holders of the authority. It renews an
    authority within `NOTICE` of its end with the same key and name, so that both verify its certificates, each until
    its own end. Without the authority's key it changes nothing until the end; then it makes an authority with another
    key. Several processes may share the folder. Raises CertificatesUnusable.
    """
    with in_turn(folder / "lock"):
        return _ensure_certificates(folder)


def _ensure_certificates(folder: Path) -> Certificates:
    files = Certificates(folder / "ca.crt", folder / "server.pem", folder / "server.key")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = datetime.datetime.now(datetime.UTC)
    authority, key = _certificate(files.authority), _key(folder / "ca.key")
    server = _sound_certificate(files, authority)
    if authority is not None and key is None and files.certificate.exists() and files.key.exists():
        if server is None:
            raise _unusable(files.certificate, "does not match the key or the authority beside it")
        if now < _end(authority, server):
            return files  # the authority's key is elsewhere: nothing here can renew it
    if authority is None or key is None:
        if authority is not None:
            emit("authority-replaced", path=str(files.authority))
        key = ec.generate_private_key(ec.SECP384R1())
        write_private_file(folder / "ca.key", _pem(key))
        authority, server = _write_authority(files.authority, key, now), None
    elif not isinstance(key, ec.EllipticCurvePrivateKey) or authority.public_key() != key.public_key():
        raise _unusable(folder / "ca.key", "is not the key of the authority beside it")
    elif _end(authority) < now + NOTICE:
        authority = _write_authority(files.authority, key, now)
        emit("authority-renewed", path=str(files.authority), ends=_end(authority).isoformat())
    if server is None or _end(server) < now + LONGEST_RUN:
        existed = files.certificate.exists()
        made = _write_server(files, authority, key, now)
        if existed:
            emit("certificate-renewed", path=str(files.certificate), ends=_end(made).isoformat())
    return files


def _sound_certificate(files: Certificates, authority: x509.Certificate | None) -> x509.Certificate | None:
    """The server's certificate, if its key matches and this authority signed it."""
    certificate, key = _certificate(files.certificate), _key(files.key)
    if certificate is None or key is None or certificate.public_key() != key.public_key() or authority is None:
        return None
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return None
    return certificate


def _write_authority(path: Path, key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.Certificate:
    """It can sign for loopback only, so its stolen key is no worse than the server's."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    only = x509.NameConstraints([HOST, x509.IPAddress(ipaddress.IPv4Network(ADDRESS))], None)
    authority = (
        _builder(name, name, key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(only, critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA384())
    )
    _write_public(path, authority)
    return authority


def _write_server(
    files: Certificates, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.Certificate:
    """Writes the key first. Between the two writes they do not match, and the next start detects that."""
    key = ec.generate_private_key(ec.SECP384R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST.value)])
    server = (
        _builder(subject, authority.subject, key, now, LIFETIME)
        .add_extension(x509.SubjectAlternativeName([HOST, x509.IPAddress(ADDRESS)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    write_private_file(files.key, _pem(key))
    _write_public(files.certificate, server)
    return server


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _certificate(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise _unusable(path, "is not a certificate") from None


def _key(path: Path) -> PrivateKeyTypes | None:
    try:
        return serialization.load_pem_private_key(path.read_bytes(), None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):  # unchained, because the error may quote the file
        raise _unusable(path, "is not a key, or has a password") from None


def _end(*certificates: x509.Certificate) -> datetime.datetime:
    return min(one.not_valid_after_utc for one in certificates)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_public(path: Path, certificate: x509.Certificate) -> None:
    """Writes the whole file or nothing, because another process may read it at this moment."""
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    draft.replace(path)


def _unusable(path: Path, why: str) -> ServerError:
    return ServerError("CertificatesUnusable", path=str(path), why=why)
