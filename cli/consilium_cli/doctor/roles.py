"""The checks of each role, by the very configuration that the role itself reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import address_of
from consilium_chain.ledger.structs import Phase
from consilium_chain.settings import read_settings
from consilium_client.config import HomeSettings
from consilium_client.home import SETTINGS_FILE, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import transport_public_key
from consilium_core.artifacts.backends import show_place
from consilium_core.connectivity import host_and_port
from consilium_core.errors import CoreError

from consilium_cli.doctor import findings as facts
from consilium_cli.doctor import probes, reach
from consilium_cli.doctor.asking import Check
from consilium_cli.doctor.findings import MIB, Finding, Findings, Level
from consilium_cli.doctor.role import Role

# Estimates of what each takes at its peak, rounded up (of nodes docs/hospital.md and docs/voter.md).
MEMORY = {
    Role.API: 300 * MIB, Role.INDEX: 200 * MIB, Role.WORKER: 400 * MIB, Role.AGGREGATOR: 800 * MIB,
    Role.SPONSOR: 200 * MIB, Role.HOSPITAL: 600 * MIB, Role.VOTER: 400 * MIB,
}  # fmt: skip
# Gas of some twenty rounds of the demo's size (bench/results/gas.json).
GAS = {
    Role.WORKER: 40_000_000, Role.AGGREGATOR: 40_000_000, Role.SPONSOR: 10_000_000, Role.HOSPITAL: 3_000_000,
    Role.VOTER: 6_000_000,
}  # fmt: skip
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PINNED = {
    Role.WORKER: ("flwr",), Role.AGGREGATOR: ("flwr",), Role.HOSPITAL: ("flwr", "torch"), Role.VOTER: ("torch",),
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """`where`: a configuration file, or of a node its home. `public`: host and port at which others reach the role,
    with a certificate of `authority`, or of one that the system trusts.
    """

    role: Role
    where: Path
    public: tuple[str, int] | None = None
    authority: Path | None = None


def checks_of(asked: Asked) -> list[Check]:
    """Raises ConfigInvalid, HomeMissing, ServerError."""
    return [*_before(asked), *_OF_ROLE[asked.role](asked)]


def checks_without_settings(asked: Asked) -> list[Check]:
    """The checks that are left if the configuration does not hold."""
    return [*_before(asked), _machine(asked, asked.where.parent)]


def _before(asked: Asked) -> Iterator[Check]:
    packages = PINNED.get(asked.role, ())
    yield Check("versions", lambda: facts.of_versions(probes.versions(packages)), "the installed packages")


def _machine(asked: Asked, home: Path) -> Check:
    look = partial(probes.machine, home.absolute(), MEMORY[asked.role])
    return Check("disk", lambda: facts.of_machine(look()), "this machine")


def _files(*looks: Callable[[], facts.File]) -> Check:
    return Check("files", lambda: [found for look in looks for found in facts.of_file(look())], "a file")


def _there(path: Path, what: str) -> list[Callable[[], facts.File]]:
    """A file that a role makes at its first start; nothing before that."""
    return [partial(probes.file, path, what)] if path.exists() else []


# Checks of several roles


def _chain(url: str, book: Path, is_node: bool = False) -> Iterator[Check]:
    """Each check reads the address book anew: it may be wrong, and that is a finding like others."""
    yield Check("chain", lambda: facts.of_chain(probes.chain(url, Deployment.read(book))), "the chain node")
    yield Check(
        "contracts", lambda: facts.of_contracts(probes.contracts(url, Deployment.read(book))), "the chain node", "chain"
    )
    yield Check("links", lambda: reach.of_link("the chain node", url), "a URL")


def _money(asked: Asked, url: str, keystore: Path, sponsored: bool = False) -> Check:
    look = partial(probes.money, url, keystore, GAS[asked.role], sponsored)
    return Check("money", lambda: facts.of_money(look()), "the chain node", "chain")


def _keys(keystore: Path, password_file: Path) -> list[Callable[[], facts.File]]:
    return [
        partial(probes.file, keystore, "the key file", probes.keystore_fault),
        partial(probes.file, password_file, "the password file", probes.password_fault),
    ]


def _artifacts(places: tuple[Any, ...]) -> Iterator[Check]:
    """Each is asked by itself: one that hangs is one finding. The first is where a role writes."""

    def look(index: int) -> Findings:
        seen = probes.place(places[index], is_needed=index == 0)
        found = facts.of_places([seen])
        if index and seen.why is not None:
            return [replace(one, level=Level.WARNING) for one in found]
        return found

    for index, place in enumerate(places):
        worst = Level.WARNING if index else Level.FAULT
        yield Check("artifacts", partial(look, index), f"the artifact store {show_place(place)}", None, worst)


def _database(url: str, book: Path) -> Iterator[Check]:
    def look() -> Findings:
        return facts.of_database(probes.database(url, Deployment.read(book)))

    yield Check("database", look, "the database")
    yield Check("links", lambda: reach.of_link("the database", url, bool(urlsplit(url).password)), "a URL")


def _config_file(asked: Asked, has_password: bool) -> list[Callable[[], facts.File]]:
    return [partial(probes.file, asked.where, "the configuration", lambda _: None, has_password)]


def _has_password(*secrets: Any) -> bool:
    """True if one of these URLs has a password. None: the file names no such URL."""
    return any(one is not None and bool(urlsplit(one.get_secret_value()).password) for one in secrets)


def _public_superlink(host: str, port: int, authority: Path | None, is_own: bool) -> Findings:
    face = probes.face("the SuperLink", host, port, authority)
    found = reach.of_face(face)
    if face.why is None:
        found += reach.of_superlink(probes.superlink(host, port, authority, is_own))
    return found


def _public_https(
    what: str, url: str, authority: Path | None, path: str, method: str, right: tuple[int, ...]
) -> Findings:
    """Findings on an HTTP server behind the proxy."""
    import ssl

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    found: Findings = []
    context = None
    if parts.scheme == "https":
        face = probes.face(what, host, port, authority)
        found = reach.of_face(face)
        if face.why is not None:
            return found
        context = ssl.create_default_context(cafile=authority)
    else:
        found = reach.of_link(what, url)
    outside = probes.Outside(host, port, context)
    status = outside.ask(method, path).status
    exposed = [watch for watch in ("/metrics", "/ready") if method == "GET" and outside.ask("GET", watch).status == 200]
    outside.close()
    return found + reach.of_public(reach.Public(what, url, status, right, () if host in LOOPBACK else exposed))


# Servers


def _api(asked: Asked) -> Iterator[Check]:
    from consilium_server.config import ApiSettings

    own = read_settings(asked.where, ApiSettings)
    yield _machine(asked, own.home)
    secret = _there(own.home / "api.secret", "the secret of sessions")
    yield _files(*_config_file(asked, _has_password(own.database_url)), *secret)
    if own.chain_url is not None:
        yield from _chain(own.chain_url, own.deployment)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)
    near = f"http://{'127.0.0.1' if own.host in ('0.0.0.0', '::') else own.host}:{own.port}"
    is_proxied = own.origin.startswith("https://")
    look = partial(probes.port, "the API", own.host, own.port, partial(probes.answers_as_api, near), is_proxied)
    yield Check("ports", lambda: reach.of_port(look()), f"port {own.port}")
    ask = partial(_public_https, "the API", own.origin, asked.authority, "/health", "GET", (200,))
    yield Check("public", ask, own.origin)
    if is_proxied and not own.proxies:
        yield Check("proxies", _no_proxies, "the configuration")


def _no_proxies() -> Findings:
    told = "origin is https, and `proxies` is empty: all clients count as one, the proxy"
    return [Finding("proxies", Level.WARNING, told, 'write proxies = ["127.0.0.1"], or the address of the proxy')]


def _index(asked: Asked) -> Iterator[Check]:
    from consilium_server.config import IndexerSettings

    own = read_settings(asked.where, IndexerSettings)
    yield _machine(asked, own.home)
    yield _files(*_config_file(asked, _has_password(own.database_url)))
    yield from _chain(own.chain_url, own.deployment)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)


def _worker(asked: Asked) -> Iterator[Check]:
    from consilium_server.config import WITHIN_THE_PROCESS, AggregatorSettings, WorkerSettings
    from consilium_server.jobs.supervisor import SETTINGS, TASKS

    own = read_settings(asked.where, WorkerSettings)
    yield _machine(asked, own.home)
    keys = _keys(*own.key_files) if own.key_files is not None else []
    yield _files(*_config_file(asked, _has_password(own.database_url, own.broker_url)), *keys)
    yield from _chain(own.chain_url, own.deployment)
    if own.key_files is not None:
        yield _money(asked, own.chain_url, own.key_files.keystore)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)
    if own.broker != WITHIN_THE_PROCESS:
        yield Check("redis", lambda: facts.of_redis(probes.redis(own.broker)), "Redis")
        yield Check("links", lambda: reach.of_link("Redis", own.broker, bool(urlsplit(own.broker).password)), "a URL")
    for config in sorted((own.home / TASKS).glob(f"*/{SETTINGS}")):
        task = read_settings(config, AggregatorSettings)
        yield from _superlink_here(task.home, task.superlink_port)


def _superlink_here(home: Path, number: int) -> Iterator[Check]:
    tls = home / "tls"
    look = partial(
        probes.port, "the SuperLink", "127.0.0.1", number, partial(probes.answers_with, tls, number), True
    )  # fmt: skip
    yield Check("ports", lambda: reach.of_port(look()), f"port {number}")
    yield from _certificate_here("the SuperLink's certificate", tls)
    yield _files(*_certificate_keys(tls), *_there(home / "superexec.secret", "the secret"))


def _certificate_keys(tls: Path) -> list[Callable[[], facts.File]]:
    return [
        *_there(tls / "server.key", "the certificate's key"), *_there(tls / "ca.key", "the certificate authority's key")
    ]  # fmt: skip


def _certificate_here(what: str, tls: Path) -> Iterator[Check]:
    if (tls / "server.pem").exists():
        yield Check("tls", lambda: reach.of_certificate_file(probes.certificate(what, tls)), what)


def _aggregator(asked: Asked) -> Iterator[Check]:
    from consilium_server.config import AggregatorSettings

    own = read_settings(asked.where, AggregatorSettings)
    yield _machine(asked, own.home)
    yield _files(*_keys(own.keystore, own.password_file), *_canaries(own.home))
    yield from _chain(own.chain_url, own.deployment)
    yield _money(asked, own.chain_url, own.keystore)
    yield from _artifacts(own.artifacts)
    yield from _superlink_here(own.home, own.superlink_port)
    if asked.public is not None:
        ask = partial(_public_superlink, *asked.public, asked.authority, True)
        yield Check("superlink", ask, ":".join(map(str, asked.public)))


def _canaries(home: Path) -> list[Callable[[], facts.File]]:
    """The file of its rounds' secrets with the most open mode."""
    kept = [path for path in (home / "canaries").rglob("*") if path.is_file()]
    worst = max(kept, key=lambda path: path.stat().st_mode & 0o077, default=None)
    return [] if worst is None else [partial(probes.file, worst, "the secret of a canary round")]


def _sponsor(asked: Asked) -> Iterator[Check]:
    from consilium_server.config import SponsorSettings

    own = read_settings(asked.where, SponsorSettings)
    tls = own.home / "tls"
    yield _machine(asked, own.home)
    yield _files(*_keys(own.keystore, own.password_file), *_certificate_keys(tls))
    yield from _chain(own.chain_url, own.deployment)
    yield _money(asked, own.chain_url, own.keystore)
    look = partial(
        probes.port, "the sponsor", "127.0.0.1", own.port, partial(probes.answers_with, tls, own.port), True
    )  # fmt: skip
    yield Check("ports", lambda: reach.of_port(look()), f"port {own.port}")
    yield from _certificate_here("the sponsor's certificate", tls)
    if asked.public is not None:
        url = f"https://{asked.public[0]}:{asked.public[1]}"
        ask = partial(_public_https, "the sponsor", url, asked.authority, "/batches", "POST", (400,))
        yield Check("public", ask, url)


# Nodes


def _node(asked: Asked, settings: HomeSettings, sponsored: bool = False) -> Iterator[Check]:
    yield _machine(asked, settings.home)
    yield from _chain(settings.chain_url, settings.deployment)
    yield _money(asked, settings.chain_url, settings.keystore, sponsored)
    yield from _artifacts(settings.artifacts)


def _hospital(asked: Asked) -> Iterator[Check]:
    home = HospitalHome.open(asked.where)
    own = home.settings
    yield from _node(asked, own, own.sponsor is not None)
    key = partial(probes.file, own.transport_key, "the node key", _transport_fault)
    data = partial(probes.file, own.data, "data", lambda _: None, False)
    yield _files(*_home_files(home.folder), *_keys(own.keystore, own.password_file), key, data)
    yield Check("policy", lambda: _policy(home), "the policy")
    if own.sponsor is not None:
        parts = urlsplit(own.sponsor.url)
        ask = partial(probes.face, "the sponsor", parts.hostname or "", parts.port or 443, own.sponsor.ca_certificate)
        yield Check("sponsor", lambda: reach.of_face(ask()), own.sponsor.url)
    for task in home.approved_tasks():
        yield Check("superlink", partial(_superlink_of, home, task), f"the SuperLink of task {task}")
        yield Check("node-key", partial(_node_key_of, home, task), "the chain node", "chain", Level.WARNING)


def _transport_fault(path: Path) -> str | None:
    from consilium_client.errors import TransportKeyError

    try:
        transport_public_key(path)
    except TransportKeyError as error:
        return str(error)
    return None


def _superlink_of(home: HospitalHome, task: int) -> Findings:
    """Nothing of a task that is over. Before it begins its aggregator need not run yet."""
    own = home.settings
    flower = home.node_settings(task, home.approval(task).place).flower
    try:
        phase = probes.reader(own.chain_url, Deployment.read(own.deployment)).tasks.state(task).phase
    except CoreError:
        phase = None  # the chain has a finding of its own
    if phase is Phase.ENDED:
        return []
    host, port = host_and_port(flower.superlink)
    found = _public_superlink(host, port, flower.ca_certificate, False)
    if host in LOOPBACK:  # where a SuperLink may show all that it has
        found = [one for one in found if one.check != "control"]
    if phase is Phase.JOINING:
        return [replace(one, level=Level.WARNING) if one.level is Level.FAULT else one for one in found]
    return found


def _node_key_of(home: HospitalHome, task: int) -> Findings:
    own = home.settings
    ledger = probes.reader(own.chain_url, Deployment.read(own.deployment))
    if ledger.tasks.state(task).phase is Phase.ENDED:
        return []
    return reach.of_node_key(probes.node_key(ledger, task, address_of(own.keystore), own.transport_key))


def _voter(asked: Asked) -> Iterator[Check]:
    home = VoterHome.open(asked.where)
    own = home.settings
    yield from _node(asked, own)
    data = partial(probes.file, own.data, "data", lambda _: None, False)
    yield _files(*_home_files(home.folder), *_keys(own.keystore, own.password_file), data)
    yield Check("policy", lambda: _policy(home), "the policy")


def _home_files(folder: Path) -> list[Callable[[], facts.File]]:
    return [
        partial(probes.file, folder, "the home"),
        partial(probes.file, folder / SETTINGS_FILE, "the configuration", lambda _: None, False),
    ]


def _policy(home: HospitalHome | VoterHome) -> Findings:
    """Raises PolicyInvalid."""
    allowed = home.policy().operators
    whose = "anybody's tasks" if allowed == "any" else f"tasks of {len(allowed)} account(s)"
    return [Finding("policy", Level.OK, f"{home.settings.policy} allows {whose}")]


_OF_ROLE: dict[Role, Callable[[Asked], Iterator[Check]]] = {
    Role.API: _api, Role.INDEX: _index, Role.WORKER: _worker, Role.AGGREGATOR: _aggregator, Role.SPONSOR: _sponsor,
    Role.HOSPITAL: _hospital, Role.VOTER: _voter,
}  # fmt: skip
