"""Reads facts of files, ports, servers, chain and database, and returns the findings on them. Changes nothing.

A function raises its room's errors, and repeats no secret.
"""

from __future__ import annotations

import http.client
import os
import platform
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.node import DeployNode
from consilium_chain.deploying.verify import Code, codes_at, strangers_of
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import ChainUrls
from consilium_client.errors import TransportKeyError
from consilium_client.hospital.transport_key import transport_public_key
from consilium_core.artifacts.backends import Location, show_location
from consilium_core.collector import Collector, TracingSettings, request_of
from consilium_core.connectivity import (
    FLEET_CALL,
    FLEET_HEADERS,
    FleetAddress,
    FleetAnswer,
    fleet_answer,
    why_unreachable,
)
from consilium_core.errors import KeystoreError, NotSent
from consilium_core.private_files import exposing, read_private_file
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from consilium_operators.doctor import findings, servers
from consilium_operators.doctor.findings import Findings
from consilium_operators.doctor.servers import Held, TlsServer

PATIENCE = 3.0  # seconds for a connection, and for an answer
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONTROL = "control/list-nodes"  # the only call that changes nothing
# Spellings of a path that two programs may read differently.
SPELLINGS = (
    f"/v1/{CONTROL}", f"//v1/{CONTROL}", f"/v1//{CONTROL}", f"/v1/fleet/../{CONTROL}", f"/v1/fleet/%2e%2e/{CONTROL}",
    f"/v1/fleet/..%2f{CONTROL}", f"/v1/fleet/%252e%252e/{CONTROL}", "/v1/%63ontrol/list-nodes",
    "/V1/Control/list-nodes",
)  # fmt: skip
# OpenSSL's X509_V_ERR_…
_WHY = {
    9: "its certificate is not valid yet: check the clocks of both sides",
    10: "its certificate has ended: ask its operator to renew it, and to reload the proxy",
    62: "its certificate is for another name: ask its operator for the right name, or for another certificate",
}


# This machine


def versions(packages: Sequence[str]) -> Findings:
    """The versions of those packages that are pinned to one version."""
    pins: dict[str, str] = {}
    for line in metadata.requires("consilium") or []:
        name, found, version = line.partition(";")[0].strip().partition("==")
        if found and name in packages:
            pins[name] = version
    installed = {name: _installed(name) for name in pins}
    return findings.judge_versions(platform.python_version(), metadata.version("consilium"), installed, pins)


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def machine(home: Path, memory_needed: int) -> Findings:
    folder = next(one for one in (home, *home.parents) if one.is_dir())
    disk = shutil.disk_usage(folder)
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kib = next(int(words[1]) for words in lines if words[0] == "MemAvailable:")
    return findings.judge_machine(folder, disk.free, disk.total, kib << 10, memory_needed)


def file(
    path: Path, what: str, why: Callable[[Path], str | None] = lambda path: None, is_secret: bool = True
) -> Findings:
    """`why`: returns the fault of its content. It is called only if the file can be read."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return findings.judge_file(path, what, None)
    is_open = is_secret and mode & exposing(path)
    return findings.judge_file(path, what, mode, None if is_open else why(path), is_secret)


def keystore_fault(path: Path) -> str | None:
    """The fault of a key file, as far as it shows without its password."""
    try:
        address_of(path)
    except KeystoreError as error:
        return str(error)
    return None


def password_fault(path: Path) -> str | None:
    try:
        return None if read_private_file(path).strip() else "it is empty"
    except KeystoreError as error:
        return str(error)


def transport_key_fault(path: Path) -> str | None:
    try:
        transport_public_key(path)
    except TransportKeyError as error:
        return str(error)
    return None


def certificate(what: str, folder: Path) -> Findings:
    """Reads a folder that `ensure_certificates` has made. Raises OSError, ValueError."""
    own, authority = (x509.load_pem_x509_certificate((folder / n).read_bytes()) for n in ("server.pem", "ca.crt"))
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), None)
    try:
        own.verify_directly_issued_by(authority)
        is_signed = True
    except (InvalidSignature, ValueError, TypeError):
        is_signed = False
    return servers.judge_certificate(
        what,
        folder / "server.pem",
        max(one.not_valid_before_utc.timestamp() for one in (own, authority)),
        min(one.not_valid_after_utc.timestamp() for one in (own, authority)),
        time.time(),
        is_of_authority=is_signed,
        fits_key=own.public_key() == key.public_key(),
        can_be_renewed=(folder / "ca.key").exists(),
    )


# Ports and servers


def port(what: str, host: str, number: int, is_ours: Callable[[], bool], loopback_only: bool) -> Findings:
    beyond = None
    if loopback_only and (outward := _outward_address()) is not None and _listens(outward, number):
        beyond = f"{outward}:{number}"
    return servers.judge_port(what, f"{host}:{number}", _held(host, number, is_ours), beyond)


def _held(host: str, number: int, is_ours: Callable[[], bool]) -> Held:
    reached = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    if _listens(reached, number):
        return Held.OURS if is_ours() else Held.FOREIGN
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, number))
        except PermissionError:
            return Held.FORBIDDEN
        except OSError:
            return Held.FOREIGN
    return Held.FREE


def _listens(host: str, number: int) -> bool:
    try:
        socket.create_connection((host, number), PATIENCE).close()
    except OSError:
        return False
    return True


def _outward_address() -> str | None:
    """This machine's address as others see it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.connect(("192.0.2.1", 9))  # an address that no machine has (RFC 5737)
        except OSError:
            return None
        found = str(tried.getsockname()[0])
    return None if found.startswith("127.") else found


def answers_as_api(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/health", timeout=PATIENCE, trust_env=False)
        return bool(answer.json() == {"status": "ok"})
    except (httpx.HTTPError, ValueError):
        return False


def answers_with(tls: Path, number: int) -> bool:
    """True if the program on this port shows a certificate of this folder's authority."""
    return (tls / "ca.crt").exists() and why_unreachable("localhost", number, tls / "ca.crt", PATIENCE) is None


def tls_server(host: str, number: int, authority: Path | None) -> TlsServer:
    """Connects by TLS. `authority`: None for those that the system trusts."""
    address = f"{host}:{number}"
    try:
        context = ssl.create_default_context(cafile=authority)
        with (
            socket.create_connection((host, number), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname=host) as link,
        ):
            ends = ssl.cert_time_to_seconds(str((link.getpeercert() or {})["notAfter"]))
            return TlsServer(address, None, str(link.version()), ends, time.time())
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _WHY:
            return TlsServer(address, _WHY[error.verify_code])
    except OSError:
        pass
    why = why_unreachable(host, number, authority, PATIENCE)
    return TlsServer(address, why or "the connection failed once, and worked at the second try: run this again")


class Outside:
    """Asks a server as anybody could, and does not change the spelling of a path. `context` None: without TLS."""

    def __init__(self, host: str, number: int, context: ssl.SSLContext | None) -> None:
        self._link: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, number, timeout=PATIENCE)
            if context is None
            else http.client.HTTPSConnection(host, number, timeout=PATIENCE, context=context)
        )

    def ask(self, method: str, target: str) -> FleetAnswer:
        try:
            self._link.request(method, target, headers=FLEET_HEADERS)
            asked_at = time.time()
            answer = self._link.getresponse()
            answer.read(1 << 20)
        except (OSError, http.client.HTTPException):
            self._link.close()
            return FleetAnswer(None)
        return fleet_answer(answer, asked_at)

    def close(self) -> None:
        self._link.close()


def tls(what: str, url: str, authority: Path | None) -> Findings:
    parts = urlsplit(url)
    return servers.judge_tls(what, tls_server(parts.hostname or "", parts.port or 443, authority))


def superlink(at: FleetAddress, authority: Path | None, is_own: bool, task: str | None) -> Findings:
    """A SuperLink as hospitals reach it. `task`: the one that it should serve, by `folder_name`, if known."""
    seen = tls_server(at.host, at.port, authority)
    found = servers.judge_tls("the SuperLink", seen)
    if seen.why is not None:
        return found
    outside = Outside(at.host, at.port, ssl.create_default_context(cafile=authority))
    fleet = outside.ask("POST", at.path + FLEET_CALL)
    spelt = dict.fromkeys([*SPELLINGS, *(at.path + target for target in SPELLINGS)])
    control = {target: outside.ask("POST", target).status for target in spelt}
    outside.close()
    return found + servers.judge_superlink(str(at), fleet, control, is_own, task)


def https_server(
    what: str, url: str, authority: Path | None, path: str, method: str, right: tuple[int, ...]
) -> Findings:
    """An HTTP server behind the proxy. `right`: the statuses with which it answers `method` and `path`."""
    parts = urlsplit(url)
    host, number = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    context = None
    if parts.scheme == "https":
        seen = tls_server(host, number, authority)
        found = servers.judge_tls(what, seen)
        if seen.why is not None:
            return found
        context = ssl.create_default_context(cafile=authority)
    else:
        found = servers.judge_link(what, url)
    outside = Outside(host, number, context)
    status = outside.ask(method, path).status
    private = () if method != "GET" or host in LOOPBACK else ("/metrics", "/ready")
    exposed = [path for path in private if outside.ask("GET", path).status == 200]
    outside.close()
    return found + servers.judge_public(what, url, status, right, exposed)


# Chain, store, database and Redis


def chain(url: str, book: Path) -> Findings:
    """Raises ChainUnreachable, DeploymentInvalid."""
    connection, deployment = Connection(url), Deployment.read(book)
    block = connection.blocks.number()
    return findings.judge_chain(
        connection.shown_url, connection.chain_id, deployment.chain_id, block, connection.blocks.time_of(block),
        connection.blocks.seconds(), time.time(),
    )  # fmt: skip


def contracts(url: str, book: Path) -> Findings:
    """Raises ChainUnreachable, ContractsNotBuilt, DeploymentInvalid if an address holds something else."""
    node, deployment = DeployNode(url), Deployment.read(book)
    codes = codes_at(node, deployment)
    known = all(codes[name] is Code.SAME for name in ("Tasks", "Staking", "ModelShares"))
    strangers = strangers_of(node, deployment) if known else []
    return findings.judge_contracts({name: code.value for name, code in codes.items()}, Code.SAME.value, strangers)


def money(url: ChainUrls, keystore: Path, gas: int, is_sponsored: bool) -> Findings:
    """Raises ChainUnreachable, KeystoreError."""
    connection, account = Connection(url), address_of(keystore)
    return findings.judge_money(account, connection.ether_of(account), connection.fees.present(), gas, is_sponsored)


def store(location: Location, is_needed: bool) -> Findings:
    """Raises MirrorUnsupported, ConfigInvalid."""
    (why,) = ArtifactStore((location,)).unreachable()
    if why is None and is_needed and isinstance(location, Path) and not os.access(location, os.W_OK | os.X_OK):
        why = "this user may not write to it"
    return findings.judge_store(show_location(location), why, is_needed)


def database(url: str, book: Path) -> Findings:
    """Raises DatabaseUrlInvalid, DatabaseUnreachable, DeploymentInvalid."""
    from consilium_server.database.engine import connect, reading, schema_of, shown
    from consilium_server.database.tables import Source
    from consilium_server.index.store import table_of
    from sqlalchemy import select

    deployment, engine = Deployment.read(book), connect(url)
    try:
        file = engine.url.database
        if engine.dialect.name == "sqlite" and not Path(file or "").exists():
            return findings.judge_database(shown(engine), None, "", True)  # to connect would make the file
        schema = schema_of(engine)
        sources: list[Source] = []
        if schema.found is not None and schema.is_known:
            with reading(engine) as connection:
                sources = [Source(*row) for row in connection.execute(select(table_of(Source)))]
        own = Source(deployment.chain_id, deployment.tasks)
        stranger = next((f"chain {one.chain_id}, Tasks {one.tasks}" for one in sources if one != own), None)
        return findings.judge_database(shown(engine), schema.found, schema.newest, schema.is_known, stranger)
    finally:
        engine.dispose()


def collector(settings: TracingSettings) -> Findings:
    """Sends it a request without spans. Raises KeystoreError."""
    link = Collector(settings)
    values = {"endpoint": link.shown}
    try:
        link.post(request_of({}, []))
    except NotSent as error:
        says = f"the collector {link.shown}: {error.why}; the role runs without it"
        remedy = "start it, or correct endpoint, headers_file or ca_certificate of [tracing] in the configuration"
        return findings.warning("tracing", says, remedy, values | {"why": error.why})
    return findings.ok("tracing", f"the collector {link.shown} takes spans", values)


def redis(url: str) -> Findings:
    """Raises BrokerUnreachable."""
    import redis as client
    from consilium_server.errors import broker_unreachable

    try:
        with client.Redis.from_url(url, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE) as link:
            info: dict[str, Any] = link.info("memory") | link.info("persistence")
            options = link.connection_pool.connection_kwargs
            refuses = None
            try:
                link.setrange("consilium-writes", 0, "")  # a write that changes nothing, since the key does not exist
            except client.ResponseError as error:
                refuses = broker_unreachable(error).values["cause"]
    except (client.RedisError, OSError) as error:
        raise broker_unreachable(error) from None  # a driver may repeat the URL
    return findings.judge_redis(
        f"Redis at {options.get('host', 'localhost')}:{options.get('port', 6379)}", str(info["maxmemory_policy"]),
        int(info["maxmemory"]), int(info["used_memory"]), bool(info["aof_enabled"]), refuses,
    )  # fmt: skip


def node_key(ledger: Ledger, task: int, account: str, path: Path) -> Findings:
    """Raises ChainUnreachable, Refused, TransportKeyInvalid."""
    index = next((i for i, one in enumerate(ledger.tasks.hospitals(task)) if one.node == account), None)
    is_announced = None
    if index is not None:
        is_announced = ledger.record.transport_keys(task)[index] == transport_public_key(path)
    return servers.judge_node_key(task, path, is_announced)
