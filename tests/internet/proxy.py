"""What stands on the operator's public port: a real nginx, with certificates of an authority that every host trusts."""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FLEET, API, SPONSOR, MIRROR = "fl.operator.test", "operator.test", "sponsor.operator.test", "artifacts.operator.test"
PORT, API_PORT, SPONSOR_PORT = 443, 8080, 9099
DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "proxy"

# Where deploy/proxy is not there.
MAIN = """
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path /var/lib/nginx/body;
  proxy_temp_path /var/lib/nginx/proxy;
  fastcgi_temp_path /var/lib/nginx/fastcgi;
  uwsgi_temp_path /var/lib/nginx/uwsgi;
  scgi_temp_path /var/lib/nginx/scgi;
  client_max_body_size 16m;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header X-Forwarded-For $remote_addr;
  include /etc/nginx/conf.d/*.conf;
}
"""
SERVER = """
server {
  listen %(LISTEN)s ssl;
  server_name %(name)s;
  ssl_certificate %(CERTIFICATE)s;
  ssl_certificate_key %(CERTIFICATE_KEY)s;
  %(locations)s
}
"""
BEHIND_TLS = "proxy_ssl_verify on; proxy_ssl_name localhost; proxy_read_timeout 180s; proxy_ssl_trusted_certificate"
# Of Flower only what SuperNodes use: its control API has no authentication, and shares the port.
LOCATIONS = {
    "superlink": f"location /v1/fleet/ {{ proxy_pass https://%(SUPERLINK)s; {BEHIND_TLS} %(SUPERLINK_CA)s; }}"
    " location / { return 404; }",
    "api": "location / { proxy_pass http://%(API)s; proxy_buffering off; } location = /ready { return 404; }",
    "sponsor": f"location = /batches {{ proxy_pass https://%(SPONSOR)s; {BEHIND_TLS} %(SPONSOR_CA)s; }}"
    " location / { return 404; }",
}
FILES = "location / { root %(folder)s; }"  # a mirror of the artifact store


@dataclass(frozen=True)
class Pki:
    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path) -> Pki:
    """Of the operator's public names, signed by an authority of the test's own."""
    folder.mkdir(parents=True)
    made = Pki(folder / "ca.crt", folder / "server.pem", folder / "server.key")
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a small internet")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
        )

    authority = (
        builder(authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, API)]), key.public_key())
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in (FLEET, API, SPONSOR, MIRROR)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    made.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    made.key.touch(mode=0o600)
    plain = serialization.NoEncryption()
    made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return made


def write_nginx(
    home: Path, pki: Pki, artifacts: Path, sponsor_ca: Path, superlink: tuple[int, Path] | None, peer: str | None = None
) -> Path:
    """`superlink`: its port on loopback, and the certificate of its authority; None before a task has one. `peer`: the
    proxy of the account's other machine, of a machine that serves SuperLinks alone.

    What nginx writes, and its configuration, are in `home` instead of where Debian has them.
    """
    for folder in ("conf.d", "lib", "log"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    variables = {
        "LISTEN": str(PORT), "CERTIFICATE": str(pki.certificate), "CERTIFICATE_KEY": str(pki.key),
        "API_NAME": API, "API": f"127.0.0.1:{API_PORT}",
        "SPONSOR_NAME": SPONSOR, "SPONSOR": f"127.0.0.1:{SPONSOR_PORT}", "SPONSOR_CA": str(sponsor_ca),
    }  # fmt: skip
    served = ["api", "sponsor"] if peer is None else []
    if superlink is not None:
        variables |= {"SUPERLINK_NAME": FLEET, "SUPERLINK": f"127.0.0.1:{superlink[0]}"}
        variables["SUPERLINK_CA"] = str(superlink[1])
        served.append("superlink")
    if peer is not None:
        variables |= {"SUPERLINK_PEER": peer, "SUPERLINK_PEER_CA": str(pki.authority)}
    if DEPLOYED.exists():
        (home / "proxy.env").write_text("".join(f"{name}='{value}'\n" for name, value in variables.items()))
        render = [str(DEPLOYED / "render"), str(home / "proxy.env"), str(home / "conf.d"), *served]
        subprocess.run(render, check=True, capture_output=True)
        main = (DEPLOYED / "nginx.conf").read_text()
    else:
        for name in served:
            known = variables | {"name": variables[f"{name.upper()}_NAME"], "locations": LOCATIONS[name] % variables}
            (home / "conf.d" / f"{name}.conf").write_text(SERVER % known)
        main = MAIN
    mirror = variables | {"name": MIRROR, "locations": FILES % {"folder": artifacts}}
    (home / "conf.d" / "mirror.conf").write_text(SERVER % mirror)
    for usual, here in (
        ("/etc/nginx/", f"{home}/"), ("/var/lib/nginx/", f"{home}/lib/"), ("/var/log/nginx/", f"{home}/log/"),
        ("/run/nginx.pid", f"{home}/pid"), ("user www-data;", "user root;"),
    ):  # fmt: skip
        main = main.replace(usual, here)
    path = home / "nginx.conf"
    path.write_text(main)
    return path
