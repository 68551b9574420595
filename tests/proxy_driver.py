"""The operator's proxy as it is shipped, on free ports, with certificates of an authority of the tests' own."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SHIPPED = Path(__file__).parents[1] / "deploy" / "proxy"
START = 20.0  # seconds
DAY = datetime.timedelta(days=1)


class Authority:
    """Its files are in `folder`: `ca.crt`, and for each certificate a `.pem` and a `.key`."""

    def __init__(self, folder: Path, days: float = 30) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = (
            _builder(self._name, self._name, self._key.public_key(), days, 0)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def sign(self, *names: str, days: float = 30, starts_in: float = 0) -> tuple[Path, Path]:
        """A certificate and its key, good for so many days from `starts_in` days on."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = (
            _builder(subject, self._name, key.public_key(), days, starts_in)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = f"{names[0]}-{made.serial_number:x}"
        certificate, private = self.folder / f"{stem}.pem", self.folder / f"{stem}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        private.touch(0o600)
        private.write_bytes(text)
        return certificate, private


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float, starts_in: float
) -> x509.CertificateBuilder:
    starts = datetime.datetime.now(datetime.UTC) + starts_in * DAY - DAY / 24
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        .serial_number(x509.random_serial_number()).not_valid_before(min(starts, starts + days * DAY - DAY / 24))
        .not_valid_after(starts + days * DAY + DAY / 24)
    )  # fmt: skip


class Proxy:
    """nginx in a folder of its own, with the shipped files; `values` are those of proxy.env, `names` its templates."""

    def __init__(self, folder: Path, names: list[str], **values: str) -> None:
        self.folder, self.port = folder, free_port()
        for name in ("conf.d", "log", "lib", "run"):
            (folder / name).mkdir(parents=True)
        text = (SHIPPED / "nginx.conf").read_text()
        # Nothing of the machine's own is touched; workers read what pytest lets nobody else read.
        for shipped, own in (
            ("user www-data;", "user root;" if os.geteuid() == 0 else ""),
            ("worker_processes auto;", "worker_processes 1;"),
            ("/run/", f"{folder}/run/"),
            ("/var/log/nginx/", f"{folder}/log/"),
            ("/var/lib/nginx/", f"{folder}/lib/"),
            ("/etc/nginx/", f"{folder}/"),
        ):
            assert shipped in text
            text = text.replace(shipped, own)
        (folder / "nginx.conf").write_text(text)
        given = {"LISTEN": f"127.0.0.1:{self.port}"} | values
        (folder / "proxy.env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        subprocess.run([SHIPPED / "render", folder / "proxy.env", folder / "conf.d", *names], check=True)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = self.folder / "log" / "error.log"
        command = [
            "nginx",
            "-p",
            str(self.folder),
            "-c",
            str(self.folder / "nginx.conf"),
            "-e",
            str(log),
            "-g",
            "daemon off;",
        ]
        subprocess.run([*command, "-t", "-q"], check=True)
        self._process = subprocess.Popen(command, start_new_session=True)
        end = time.monotonic() + START
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, log.read_text()
                assert time.monotonic() < end
                time.sleep(0.02)

    def reload(self) -> None:
        """As `systemctl reload nginx` does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)


@contextmanager
def running_proxy(folder: Path, names: list[str], **values: str) -> Iterator[Proxy]:
    """Skips the test where none is installed."""
    if shutil.which("nginx") is None or shutil.which("envsubst") is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light gettext-base")
    proxy = Proxy(folder, names, **values)
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.stop()


def connected(port: int, name: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname=name)


def said(port: int, name: str, context: ssl.SSLContext, request: bytes) -> bytes:
    """All that comes back for these very bytes."""
    with connected(port, name, context) as link:
        link.sendall(request)
        found = b""
        while part := link.recv(1 << 16):
            found += part
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])
