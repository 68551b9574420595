"""Reads facts of files, ports, servers, chain and database, and changes nothing. Each function returns facts, or raises
a room's error; none repeats a secret.
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

import httpx
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.node import DeployNode
from consilium_chain.deploying.verify import Code, codes_at, strangers_of
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_client.hospital.transport_key import transport_public_key
from consilium_core.artifacts.backends import Place, show_place
from consilium_core.connectivity import seconds_ahead, why_unreachable
from consilium_core.errors import KeystoreError
from consilium_core.private_files import exposing, read_private_file
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from consilium_cli.doctor import findings as facts
from consilium_cli.doctor import reach

PATIENCE = 3.0  # seconds for a connection, and for an answer
PROTOBUF = "application/protobuf"
FLEET = "/v1/fleet/pull-messages"
CONTROL = "control/list-nodes"  # the one that changes nothing
# Ways to spell a path that one program takes for another than the next one does.
SPELLINGS = (
    f"/v1/{CONTROL}", f"//v1/{CONTROL}", f"/v1//{CONTROL}", f"/v1/fleet/../{CONTROL}", f"/v1/fleet/%2e%2e/{CONTROL}",
    f"/v1/fleet/..%2f{CONTROL}", f"/v1/fleet/%252e%252e/{CONTROL}", "/v1/%63ontrol/list-nodes",
    "/V1/Control/list-nodes",
)  # fmt: skip
# OpenSSL's X509_V_ERR_…
_WHY = {
    9: "its certificate is not valid yet: see to the clocks of both sides",
    10: "its certificate has ended: have it renewed, and the proxy reloaded",
    62: "its certificate is for another name: ask for the name that it is for, or have another made",
}


# This machine


def versions(packages: Sequence[str]) -> facts.Versions:
    """Versions of those packages that are pinned to one version."""
    pins: dict[str, str] = {}
    for line in metadata.requires("consilium") or []:
        name, found, version = line.partition(";")[0].strip().partition("==")
        if found and name in packages:
            pins[name] = version
    return facts.Versions(
        platform.python_version(), metadata.version("consilium"), {name: _installed(name) for name in pins}, pins
    )


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def machine(home: Path, memory_needed: int) -> facts.Machine:
    folder = next(one for one in (home, *home.parents) if one.is_dir())
    disk = shutil.disk_usage(folder)
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kib = next(int(words[1]) for words in lines if words[0] == "MemAvailable:")
    return facts.Machine(folder, disk.free, disk.total, kib << 10, memory_needed)


def file(
    path: Path, what: str, why: Callable[[Path], str | None] = lambda path: None, secret: bool = True
) -> facts.File:
    """`why`: returns the fault of its content, and is called only if the file can be read."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return facts.File(path, what, None)
    seen = facts.File(path, what, mode, is_secret=secret)
    if secret and mode & exposing(path):
        return seen
    return facts.File(path, what, mode, why(path), secret)


def keystore_fault(path: Path) -> str | None:
    """The fault of a key file, seen without its password."""
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


def certificate(what: str, folder: Path) -> reach.CertificateFile:
    """Reads a folder that `ensure_certificates` has made. Raises OSError, ValueError."""
    own, authority = (x509.load_pem_x509_certificate((folder / n).read_bytes()) for n in ("server.pem", "ca.crt"))
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), None)
    try:
        own.verify_directly_issued_by(authority)
        is_signed = True
    except (InvalidSignature, ValueError, TypeError):
        is_signed = False
    return reach.CertificateFile(
        what, folder / "server.pem",
        max(one.not_valid_before_utc.timestamp() for one in (own, authority)),
        min(one.not_valid_after_utc.timestamp() for one in (own, authority)),
        is_signed, own.public_key() == key.public_key(), (folder / "ca.key").exists(), time.time(),
    )  # fmt: skip


# Ports and servers


def port(what: str, host: str, number: int, is_ours: Callable[[], bool], loopback_alone: bool) -> reach.Port:
    beyond = None
    if loopback_alone and (outward := _outward_address()) is not None and _listens(outward, number):
        beyond = f"{outward}:{number}"
    return reach.Port(what, f"{host}:{number}", _held(host, number, is_ours), beyond)


def _held(host: str, number: int, is_ours: Callable[[], bool]) -> reach.Held:
    reached = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    if _listens(reached, number):
        return reach.Held.OURS if is_ours() else reach.Held.FOREIGN
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, number))
        except PermissionError:
            return reach.Held.FORBIDDEN
        except OSError:
            return reach.Held.FOREIGN
    return reach.Held.FREE


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
            tried.connect(("192.0.2.1", 9))  # of no machine (RFC 5737)
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


def face(what: str, host: str, number: int, authority: Path | None) -> reach.Face:
    address = f"{host}:{number}"
    try:
        context = ssl.create_default_context(cafile=authority)
        with (
            socket.create_connection((host, number), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname=host) as link,
        ):
            ends = ssl.cert_time_to_seconds(str((link.getpeercert() or {})["notAfter"]))
            return reach.Face(what, address, None, str(link.version()), ends, time.time())
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _WHY:
            return reach.Face(what, address, _WHY[error.verify_code])
    except OSError:
        pass
    return reach.Face(
        what, address, why_unreachable(host, number, authority, PATIENCE) or "it does not stay: look again"
    )


class Outside:
    """Asks a server as anybody could, with paths as they are written. `context` None: without TLS."""

    def __init__(self, host: str, number: int, context: ssl.SSLContext | None) -> None:
        kind: Any = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
        given = {} if context is None else {"context": context}
        self._link: http.client.HTTPConnection = kind(host, number, timeout=PATIENCE, **given)

    def ask(self, method: str, target: str) -> reach.Answer:
        try:
            self._link.request(method, target, headers={"Content-Type": PROTOBUF, "Content-Length": "0"})
            asked = time.time()
            answer = self._link.getresponse()
            answer.read(1 << 20)
        except (OSError, http.client.HTTPException):
            self._link.close()
            return reach.Answer(None)
        return reach.Answer(answer.status, seconds_ahead(asked, answer.getheader("Date")))

    def close(self) -> None:
        self._link.close()


def superlink(host: str, number: int, authority: Path | None, is_own: bool) -> reach.SuperLinkFace:
    """Facts of a SuperLink whose TLS `face` has found in order."""
    outside = Outside(host, number, ssl.create_default_context(cafile=authority))
    fleet = outside.ask("POST", FLEET)
    control = {target: outside.ask("POST", target).status for target in SPELLINGS}
    outside.close()
    return reach.SuperLinkFace(f"{host}:{number}", fleet, control, is_own)


# Chain, store, database and Redis


def chain(url: str, deployment: Deployment) -> facts.Chain:
    """Raises ChainUnreachable."""
    connection = Connection(url)
    block = connection.blocks.number()
    return facts.Chain(
        connection.shown_url, connection.chain_id, deployment.chain_id, block, connection.blocks.time_of(block),
        connection.blocks.seconds(), time.time(),
    )  # fmt: skip


def contracts(url: str, deployment: Deployment) -> facts.Contracts:
    """Raises ChainUnreachable, ContractsNotBuilt, DeploymentInvalid where something else is at an address."""
    node = DeployNode(url)
    codes = codes_at(node, deployment)
    known = all(codes[name] is Code.SAME for name in ("Tasks", "Staking"))
    strangers = strangers_of(node, deployment) if known else []
    return facts.Contracts({name: code.value for name, code in codes.items()}, Code.SAME.value, strangers)


def money(url: str, keystore: Path, gas: int, sponsored: bool) -> facts.Money:
    """Raises ChainUnreachable, KeystoreError."""
    connection, account = Connection(url), address_of(keystore)
    return facts.Money(account, connection.ether_of(account), connection.fees.present(), gas, sponsored)


def place(where: Place, is_needed: bool) -> facts.Place:
    """Raises MirrorUnsupported, ConfigInvalid."""
    (why,) = ArtifactStore((where,)).unreachable()
    if why is None and is_needed and isinstance(where, Path):
        why = _unwritable(where)
    return facts.Place(show_place(where), why, is_needed)


def _unwritable(folder: Path) -> str | None:
    return None if os.access(folder, os.W_OK | os.X_OK) else "it cannot be written to by this user"


def database(url: str, deployment: Deployment) -> facts.Database:
    """Raises DatabaseUrlInvalid, DatabaseUnreachable."""
    from consilium_server.database.engine import connect, reading, schema_of, shown
    from consilium_server.database.tables import Source
    from consilium_server.index.store import table_of
    from sqlalchemy import select

    engine = connect(url)
    try:
        file = engine.url.database
        if engine.dialect.name == "sqlite" and not Path(file or "").exists():
            return facts.Database(shown(engine), None, "", True)  # looking would make it
        schema = schema_of(engine)
        sources: list[Source] = []
        if schema.found is not None and schema.is_known:
            with reading(engine) as connection:
                sources = [Source(*row) for row in connection.execute(select(table_of(Source)))]
        own = Source(deployment.chain_id, deployment.tasks)
        stranger = next((f"chain {one.chain_id}, Tasks {one.tasks}" for one in sources if one != own), None)
        return facts.Database(shown(engine), schema.found, schema.newest, schema.is_known, stranger)
    finally:
        engine.dispose()


def redis(url: str) -> facts.Redis:
    """Raises BrokerUnreachable."""
    import redis as client
    from consilium_server.errors import broker_unreachable

    try:
        with client.Redis.from_url(url, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE) as link:
            told: dict[str, Any] = link.info("memory") | link.info("persistence")
            options = link.connection_pool.connection_kwargs
            refuses = None
            try:
                link.setrange("consilium-writes", 0, "")  # what writes, and of a key that is not there writes nothing
            except client.ResponseError as error:
                refuses = broker_unreachable(error).values["cause"]
    except (client.RedisError, OSError) as error:
        raise broker_unreachable(error) from None  # a driver may repeat the URL
    where = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return facts.Redis(
        f"Redis at {where}", str(told["maxmemory_policy"]), int(told["maxmemory"]), int(told["used_memory"]),
        bool(told["aof_enabled"]), refuses,
    )  # fmt: skip


def node_key(ledger: Ledger, task: int, account: str, path: Path) -> reach.NodeKey:
    """Raises ChainUnreachable, Refused, TransportKeyInvalid."""
    index = next((i for i, one in enumerate(ledger.tasks.hospitals(task)) if one.node == account), None)
    if index is None:
        return reach.NodeKey(task, path, None)
    return reach.NodeKey(task, path, ledger.record.transport_keys(task)[index] == transport_public_key(path))


def reader(url: str, deployment: Deployment) -> Ledger:
    """Raises ChainUnreachable, DeploymentInvalid."""
    return Ledger(Connection(url), deployment)
