"""The checks of each role, by the configuration that the role itself reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import DeploymentInvalid
from consilium_chain.keystore import address_of
from consilium_chain.ledger.structs import Phase
from consilium_chain.settings import AccountSettings, ChainUrls, chain_urls, read_settings
from consilium_client.config import HomeSettings, HospitalAccountSettings
from consilium_client.errors import ModelError
from consilium_client.home import SETTINGS_FILE, HospitalHome, VoterHome
from consilium_client.models.training import NUMPY, usable_device, usual_device
from consilium_core.artifacts.backends import Location, show_location
from consilium_core.collector import TracingSettings
from consilium_core.connectivity import FleetAddress, fleet_address
from consilium_core.defaults import Role
from consilium_core.errors import CoreError

from consilium_operators.doctor import probes, servers
from consilium_operators.doctor.checks import Check
from consilium_operators.doctor.connections import chain_checks, collector_checks
from consilium_operators.doctor.findings import MIB, Finding, Findings, Level, fault, ok, warning

if TYPE_CHECKING:
    from consilium_server.config import AggregatorSettings

# Estimates of each role's peak, rounded up (docs/hospital.md and docs/voter.md have those of nodes).
MEMORY = {
    Role.API: 300 * MIB, Role.INDEX: 200 * MIB, Role.WORKER: 400 * MIB, Role.AGGREGATOR: 800 * MIB,
    Role.SPONSOR: 200 * MIB, Role.HOSPITAL: 600 * MIB, Role.VOTER: 400 * MIB,
}  # fmt: skip
WITHOUT_TORCH = 350 * MIB  # of a hospital, its relay included (bench/results/small_machine.json)
# Gas of some twenty rounds of the demo's size (bench/results/gas.json).
GAS = {
    Role.WORKER: 40_000_000, Role.AGGREGATOR: 40_000_000, Role.SPONSOR: 10_000_000, Role.HOSPITAL: 3_000_000,
    Role.VOTER: 6_000_000,
}  # fmt: skip
PINNED = {
    Role.WORKER: ("flwr",), Role.AGGREGATOR: ("flwr",), Role.HOSPITAL: ("flwr", "torch"), Role.VOTER: ("torch",),
}  # fmt: skip
FileProbe = Callable[[], Findings]


@dataclass(frozen=True)
class Machine:
    """A machine in a role. `where`: a configuration file, or a node's home. `public`: the address at which others
    reach the role, with a certificate of `authority`, or of an authority that the system trusts.
    """

    role: Role
    where: Path
    public: FleetAddress | None = None
    authority: Path | None = None


def checks_of(machine: Machine) -> list[Check]:
    """Raises ConfigInvalid, HomeMissing, ServerError."""
    return [_versions(machine), *_OF_ROLE[machine.role](machine)]


def checks_without_settings(machine: Machine) -> list[Check]:
    """The checks that are left if the configuration does not hold."""
    return [_versions(machine), _disk(machine, machine.where.parent)]


def _versions(machine: Machine) -> Check:
    packages = PINNED.get(machine.role, ())
    if machine.role is Role.HOSPITAL and usual_device() == NUMPY:
        packages = tuple(one for one in packages if one != "torch")
    return Check("versions", partial(probes.versions, packages), "the installed packages")


def _disk(machine: Machine, home: Path, memory: int | None = None) -> Check:
    return Check("disk", partial(probes.machine, home.absolute(), memory or MEMORY[machine.role]), "this machine")


def _files(*files: FileProbe) -> Check:
    return Check("files", lambda: [found for probe in files for found in probe()], "a file")


def _existing(path: Path, what: str) -> list[FileProbe]:
    """A file that a role makes at its first start. Nothing is checked before that."""
    return [partial(probes.file, path, what)] if path.exists() else []


# Checks of several roles


def _chain(urls: ChainUrls, book: Path) -> Iterator[Check]:
    """Each check reads the address book itself: a wrong one is a finding like others."""
    yield from chain_checks(urls, book)
    for url in chain_urls(urls):
        yield Check("contracts", partial(probes.contracts, url, book), "the chain node", ("chain",))
        yield Check("links", partial(servers.judge_link, "the chain node", url), "a URL")


def _money(machine: Machine, url: ChainUrls, keystore: Path, is_sponsored: bool = False) -> Check:
    probe = partial(probes.money, url, keystore, GAS[machine.role], is_sponsored)
    return Check("money", probe, "the chain node", ("chain",))


def _keys(keystore: Path, password_file: Path) -> list[FileProbe]:
    return [
        partial(probes.file, keystore, "the key file", probes.keystore_fault),
        partial(probes.file, password_file, "the password file", probes.password_fault),
    ]


def _artifacts(locations: tuple[Location, ...]) -> Iterator[Check]:
    """Each back end by itself, so that one that hangs is one finding. A role writes to the first."""
    for index, location in enumerate(locations):
        worst = Level.WARNING if index else Level.FAULT
        probe = partial(probes.store, location, index == 0)
        yield Check("artifacts", probe, f"the artifact store {show_location(location)}", worst=worst)


def _database(url: str, book: Path) -> Iterator[Check]:
    yield Check("database", partial(probes.database, url, book), "the database")
    yield Check("links", partial(servers.judge_link, "the database", url, bool(urlsplit(url).password)), "a URL")


def _account(machine: Machine, own: AccountSettings, *files: FileProbe, is_sponsored: bool = False) -> Iterator[Check]:
    """Checks of a role that acts on chain."""
    by_numpy = isinstance(own, HospitalAccountSettings) and (own.device or usual_device()) == NUMPY
    yield _disk(machine, own.home, WITHOUT_TORCH if by_numpy else None)
    yield _files(*_keys(own.keystore, own.password_file), *_collector_files(own.tracing), *files)
    yield from _chain(own.chain_url, own.deployment)
    yield _money(machine, own.chain_url, own.keystore, is_sponsored)
    yield from collector_checks(own.tracing)


def _collector_files(tracing: TracingSettings | None) -> list[FileProbe]:
    if tracing is None or tracing.headers_file is None:
        return []
    return [partial(probes.file, tracing.headers_file, "the headers of the collector")]


def _config_file(machine: Machine, *urls: Any) -> FileProbe:
    """`urls`: secrets of the file, or None. The file is secret if one has a password."""
    has_password = any(url is not None and bool(urlsplit(url.get_secret_value()).password) for url in urls)
    return partial(probes.file, machine.where, "the configuration", is_secret=has_password)


def _tls_server(what: str, tls: Path, number: int) -> Iterator[Check]:
    """A server of this machine, on loopback, with a certificate in `tls`."""
    probe = partial(probes.port, what, "127.0.0.1", number, partial(probes.answers_with, tls, number), True)
    yield Check("ports", probe, f"port {number}")
    if (tls / "server.pem").exists():
        whose = f"the certificate of {what}"
        yield Check("tls", partial(probes.certificate, whose, tls), whose)


def _certificate_keys(tls: Path) -> list[FileProbe]:
    return [
        *_existing(tls / "server.key", "the certificate's key"),
        *_existing(tls / "ca.key", "the certificate authority's key"),
    ]


# Servers


def _api(machine: Machine) -> Iterator[Check]:
    from consilium_server.config import ApiSettings

    own = read_settings(machine.where, ApiSettings)
    yield _disk(machine, own.home)
    yield _files(_config_file(machine, own.database_url), *_existing(own.home / "api.secret", "the secret of sessions"))
    if own.chain_url is not None:
        yield from _chain(own.chain_url, own.deployment)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)
    near = f"http://{'127.0.0.1' if own.host in ('0.0.0.0', '::') else own.host}:{own.port}"
    is_proxied = own.origin.startswith("https://")
    probe = partial(probes.port, "the API", own.host, own.port, partial(probes.answers_as_api, near), is_proxied)
    yield Check("ports", probe, f"port {own.port}")
    public = partial(probes.https_server, "the API", own.origin, machine.authority, "/health", "GET", (200,))
    yield Check("public", public, own.origin)
    if is_proxied and not own.proxies:
        yield Check("proxies", _no_proxies, "the configuration")


def _no_proxies() -> Findings:
    says = "origin is https, but `proxies` is empty: the API takes all clients for one, the proxy"
    return warning("proxies", says, 'write proxies = ["127.0.0.1"], or the address of the proxy', {})


def _index(machine: Machine) -> Iterator[Check]:
    from consilium_server.config import IndexerSettings

    own = read_settings(machine.where, IndexerSettings)
    yield _disk(machine, own.home)
    yield _files(_config_file(machine, own.database_url))
    yield from _chain(own.chain_url, own.deployment)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)


def _worker(machine: Machine) -> Iterator[Check]:
    from consilium_server.config import WITHIN_THE_PROCESS, AggregatorSettings, WorkerSettings
    from consilium_server.jobs.supervisor import SETTINGS, TASKS

    own = read_settings(machine.where, WorkerSettings)
    yield _disk(machine, own.home)
    keys = _keys(*own.key_files) if own.key_files is not None else []
    yield _files(_config_file(machine, own.database_url, own.broker_url), *keys, *_collector_files(own.tracing))
    yield from collector_checks(own.tracing)
    yield from _chain(own.chain_url, own.deployment)
    if own.key_files is not None:
        yield _money(machine, own.chain_url, own.key_files.keystore)
    yield from _database(own.url, own.deployment)
    yield from _artifacts(own.artifacts)
    if own.broker != WITHIN_THE_PROCESS:
        yield Check("redis", partial(probes.redis, own.broker), "Redis")
        has_password = bool(urlsplit(own.broker).password)
        yield Check("links", partial(servers.judge_link, "Redis", own.broker, has_password), "a URL")
    for config in sorted((own.home / TASKS).glob(f"*/{SETTINGS}")):
        task = read_settings(config, AggregatorSettings)
        yield from _superlink(task)


def _superlink(own: AggregatorSettings) -> Iterator[Check]:
    """The SuperLink of an aggregator on this machine."""
    yield from _tls_server("the SuperLink", own.tls_folder, own.superlink_port)
    yield _files(*_certificate_keys(own.tls_folder), *_existing(own.home / "superexec.secret", "the secret"))


def _aggregator(machine: Machine) -> Iterator[Check]:
    from consilium_server.config import AggregatorSettings

    own = read_settings(machine.where, AggregatorSettings)
    yield from _account(machine, own, *_decoys(own.home))
    yield from _artifacts(own.artifacts)
    yield from _superlink(own)
    if machine.public is not None:
        probe = partial(_public_superlink, machine.public, machine.authority, own)
        yield Check("superlink", probe, str(machine.public))


def _public_superlink(at: FleetAddress, authority: Path | None, own: AggregatorSettings) -> Findings:
    try:
        task = Deployment.read(own.deployment).folder_name(own.task)
    except DeploymentInvalid:
        task = None  # the address book has a finding of its own
    return probes.superlink(at, authority, True, task)


def _decoys(home: Path) -> list[FileProbe]:
    """The file of its rounds' secrets with the most open mode."""
    kept = [path for path in (home / "decoys").rglob("*") if path.is_file()]
    worst = max(kept, key=lambda path: path.stat().st_mode & 0o077, default=None)
    return [] if worst is None else [partial(probes.file, worst, "the secret of a decoy round")]


def _sponsor(machine: Machine) -> Iterator[Check]:
    from consilium_server.config import SponsorSettings

    own = read_settings(machine.where, SponsorSettings)
    yield from _account(machine, own, *_certificate_keys(own.home / "tls"))
    yield from _tls_server("the sponsor", own.home / "tls", own.port)
    if machine.public is not None:
        url = f"https://{machine.public.server}"
        probe = partial(probes.https_server, "the sponsor", url, machine.authority, "/batches", "POST", (400,))
        yield Check("public", probe, url)


# Nodes


def _node(
    machine: Machine, home: HospitalHome | VoterHome, own: HomeSettings, *files: FileProbe, is_sponsored: bool = False
) -> Iterator[Check]:
    yield from _account(
        machine,
        own,
        partial(probes.file, home.folder, "the home"),
        partial(probes.file, home.folder / SETTINGS_FILE, "the configuration", is_secret=False),
        partial(probes.file, home.settings.data, "data", is_secret=False),
        *files,
        is_sponsored=is_sponsored,
    )
    yield from _artifacts(own.artifacts)
    yield Check("policy", partial(_policy, home), "the policy")


def _policy(home: HospitalHome | VoterHome) -> Findings:
    """Raises PolicyInvalid."""
    allowed = home.policy().operators
    whose = "everybody's tasks" if allowed == "any" else f"tasks of {len(allowed)} account(s)"
    return [Finding("policy", Level.OK, f"{home.settings.policy} allows {whose}")]


def _hospital(machine: Machine) -> Iterator[Check]:
    home = HospitalHome.open(machine.where)
    own = home.settings
    key = partial(probes.file, own.transport_key, "the node key", probes.transport_key_fault)
    yield from _node(machine, home, own, key, is_sponsored=own.sponsor is not None)
    yield Check("training", partial(_training, own.device), "this machine")
    if own.sponsor is not None:
        probe = partial(probes.tls, "the sponsor", own.sponsor.url, own.sponsor.ca_certificate)
        yield Check("sponsor", probe, own.sponsor.url)
    for task in home.approved_tasks():
        yield Check("superlink", partial(_superlink_of, home, task), f"the SuperLink of task {task}")
        yield Check("node-key", partial(_node_key_of, home, task), "the chain node", ("chain",), Level.WARNING)


def _training(device: str | None) -> Findings:
    """The library that trains models. `device`: of the home's settings."""
    try:
        found = usable_device(device)
    except ModelError as error:
        return fault("training", str(error), "name another device in node.toml, or remove the line", {})
    way = (
        "NumPy, without torch: logistic and mlp, and no differential privacy"
        if found == NUMPY
        else f"torch, on {found}"
    )
    return ok("training", f"models are trained by {way}", {"device": found})


def _superlink_of(home: HospitalHome, task: int) -> Findings:
    """Nothing for a task that is over. Before it begins, its aggregator need not run yet."""
    own = home.settings
    flower = home.node_settings(task, home.approval(task).task_key).flower
    try:
        phase = own.reader().tasks.state(task).phase
    except CoreError:
        phase = None  # the chain has a finding of its own
    if phase is Phase.ENDED:
        return []
    address = fleet_address(flower.superlink)
    found = probes.superlink(address, flower.ca_certificate, False, home.approval(task).task_key)
    if address.host in probes.LOOPBACK:  # a SuperLink may show all its calls there
        found = [one for one in found if one.check != "control"]
    if phase is Phase.JOINING:
        return [replace(one, level=Level.WARNING) if one.level is Level.FAULT else one for one in found]
    return found


def _node_key_of(home: HospitalHome, task: int) -> Findings:
    own, ledger = home.settings, home.settings.reader()
    if ledger.tasks.state(task).phase is Phase.ENDED:
        return []
    return probes.node_key(ledger, task, address_of(own.keystore), own.transport_key)


def _voter(machine: Machine) -> Iterator[Check]:
    home = VoterHome.open(machine.where)
    yield from _node(machine, home, home.settings)


_OF_ROLE: dict[Role, Callable[[Machine], Iterator[Check]]] = {
    Role.API: _api, Role.INDEX: _index, Role.WORKER: _worker, Role.AGGREGATOR: _aggregator, Role.SPONSOR: _sponsor,
    Role.HOSPITAL: _hospital, Role.VOTER: _voter,
}  # fmt: skip
