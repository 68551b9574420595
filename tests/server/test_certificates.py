"""A start renews certificates, without effect on holders of their authority."""

from __future__ import annotations

import datetime
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_core.logs import log_to
from consilium_core.private_files import write_private_file
from consilium_server import certificates
from consilium_server.certificates import LONGEST_RUN, NOTICE, Certificates, ensure_certificates
from consilium_server.errors import ServerError
from consilium_server.flower.internals import SuperLink
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from proxy_driver import Authority
from raised_faults import raises_fault

DAY = datetime.timedelta(days=1)
ENDED = datetime.timedelta(minutes=-1)


def aged(folder: Path, server: datetime.timedelta, authority: datetime.timedelta = 3_000 * DAY) -> Certificates:
    """The files of `ensure_certificates` with so much time left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "LIFETIME", server)
        patch.setattr(certificates, "AUTHORITY_LIFETIME", authority)
        return ensure_certificates(folder)


def renewed(folder: Path) -> tuple[Certificates, list[str]]:
    """The files after another start, and its log."""
    told: list[str] = []
    with log_to(lambda event, _: told.append(event)):
        return ensure_certificates(folder), told


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def left(path: Path) -> datetime.timedelta:
    return read(path).not_valid_after_utc - datetime.datetime.now(datetime.UTC)


@contextmanager
def serving(certificate: Path, key: Path) -> Iterator[int]:
    """A port that presents this certificate to three clients."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def serve() -> None:
        for _ in range(3):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def trusts(authority: Path, port: int, name: str = "localhost") -> bool:
    context = ssl.create_default_context(cafile=str(authority))
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        try:
            context.wrap_socket(plain, server_hostname=name).close()
        except ssl.SSLCertVerificationError:
            return False
    return True


@pytest.mark.parametrize(("days", "is_renewed"), [(LONGEST_RUN / DAY - 1, True), (LONGEST_RUN / DAY + 1, False)])
def test_a_certificate_lasts_as_long_as_any_process(tmp_path: Path, days: float, is_renewed: bool) -> None:
    before = aged(tmp_path, days * DAY)
    given, serial = before.authority.read_bytes(), read(before.certificate).serial_number
    made, told = renewed(tmp_path)
    assert (read(made.certificate).serial_number != serial) == is_renewed
    assert told == ["certificate-renewed"] * is_renewed
    assert left(made.certificate) > LONGEST_RUN
    assert made.authority.read_bytes() == given  # what hospitals and proxies were given is not touched


@pytest.mark.parametrize("days", [10.0, ENDED / DAY])
def test_whoever_was_given_the_authority_notices_nothing(tmp_path: Path, days: float) -> None:
    given = tmp_path / "given.crt"
    shutil.copy(aged(tmp_path / "tls", days * DAY).authority, given)
    made, _ = renewed(tmp_path / "tls")
    assert made.key.stat().st_mode & 0o777 == 0o600
    with serving(made.certificate, made.key) as port:
        assert trusts(given, port)
        assert trusts(given, port, "127.0.0.1")


def test_an_authority_near_its_end_is_renewed_with_time_to_hand_it_out(tmp_path: Path) -> None:
    """Under its own key: holders of the old and of the new authority trust certificates from before and after."""
    before = aged(tmp_path / "tls", 364 * DAY, NOTICE - DAY)
    for name in ("ca.crt", "server.pem", "server.key"):
        shutil.copy(tmp_path / "tls" / name, tmp_path / name)
    given = tmp_path / "ca.crt"
    made, told = renewed(tmp_path / "tls")
    assert told == ["authority-renewed"]
    assert made == before
    assert left(made.authority) > 5 * NOTICE
    assert left(given) < NOTICE
    with serving(tmp_path / "server.pem", tmp_path / "server.key") as port:
        assert trusts(made.authority, port)
    made.certificate.unlink()
    renewed(tmp_path / "tls")
    with serving(made.certificate, made.key) as port:
        assert trusts(given, port)
        assert trusts(made.authority, port)
    assert renewed(tmp_path / "tls")[1] == []


def test_a_renewal_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "tls")
    given = made.authority.read_bytes()
    shutil.copy(ensure_certificates(tmp_path / "other").key, made.key)  # killed between its two writes
    assert renewed(tmp_path / "tls")[1] == ["certificate-renewed"]
    assert made.authority.read_bytes() == given
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(made.certificate, made.key)


def test_an_authority_without_its_key_stays_until_it_has_ended(tmp_path: Path) -> None:
    """Another owner has the authority's key. A replacement before its end would stop all connections."""
    authority = Authority(tmp_path / "theirs", days=400)
    certificate, key = authority.sign("localhost", days=1)
    tls = tmp_path / "tls"
    tls.mkdir()
    for made, name in ((authority.certificate, "ca.crt"), (certificate, "server.pem"), (key, "server.key")):
        shutil.copy2(made, tls / name)
    assert renewed(tls)[1] == []
    assert (tls / "ca.crt").read_bytes() == authority.certificate.read_bytes()
    assert not (tls / "ca.key").exists()
    aged(tmp_path / "ended", ENDED)
    (tmp_path / "ended" / "ca.key").unlink()
    gone = (tmp_path / "ended" / "ca.crt").read_bytes()
    made_anew, told = renewed(tmp_path / "ended")
    assert told == ["authority-replaced", "certificate-renewed"]
    assert made_anew.authority.read_bytes() != gone
    assert left(made_anew.certificate) > LONGEST_RUN


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "server.pem", "server.key"])
def test_what_is_damaged_is_named_and_not_replaced(tmp_path: Path, name: str) -> None:
    ensure_certificates(tmp_path)
    write_private_file(tmp_path / name, "-----BEGIN NOTHING-----\n")
    with raises_fault(
        ServerError, "CertificatesUnusable", match=f"{name} is not a .*restore it, or move its folder away"
    ):
        ensure_certificates(tmp_path)
    assert (tmp_path / name).read_text() == "-----BEGIN NOTHING-----\n"


def test_keys_of_another_folder_sign_nothing(tmp_path: Path) -> None:
    made, other = (ensure_certificates(tmp_path / name) for name in ("tls", "other"))
    shutil.copy(tmp_path / "other" / "ca.key", tmp_path / "tls" / "ca.key")
    with raises_fault(ServerError, "CertificatesUnusable", match="is not the key of the authority beside it"):
        ensure_certificates(tmp_path / "tls")
    (tmp_path / "tls" / "ca.key").unlink()
    shutil.copy(other.certificate, made.certificate)
    with raises_fault(ServerError, "CertificatesUnusable", match="does not match the key or the authority beside it"):
        ensure_certificates(tmp_path / "tls")


@pytest.mark.parametrize(("name", "is_believed"), [("localhost", True), ("fl.example.org", False)])
def test_a_stolen_authority_speaks_for_loopback_alone(tmp_path: Path, name: str, is_believed: bool) -> None:
    made = ensure_certificates(tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    forged, authority = ec.generate_private_key(ec.SECP256R1()), read(made.authority)
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(authority.subject)
        .public_key(forged.public_key()).serial_number(1).not_valid_before(now - DAY).not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )  # fmt: skip
    (tmp_path / "forged.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = forged.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "forged.key").write_bytes(pem)
    with serving(tmp_path / "forged.pem", tmp_path / "forged.key") as port:
        assert trusts(made.authority, port, name) == is_believed


def test_a_superlink_that_is_started_again_has_a_renewed_certificate(tmp_path: Path) -> None:
    given = tmp_path / "given.crt"
    shutil.copy(aged(tmp_path / "home" / "tls", ENDED).authority, given)
    port = free_port()
    with SuperLink(tmp_path / "home", port) as superlink:
        superlink.wait_until_up()
        assert trusts(given, port)
