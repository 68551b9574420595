"""A whole network on a small internet: what an operator, hospitals and voters run, started by their own commands.

chain      anvil, which is the chain, on loopback; a chain node's port in front of it
operator   PostgreSQL, Redis, nginx, API, worker (with aggregators and their SuperLinks), index, sponsor
machine-N  if there are such: nginx, and a worker with the account, as the operator then has none
hospital-N a node with its SuperNode and relay; a firewall lets nobody in
voter-N    a node
"""

from __future__ import annotations

import datetime
import pwd
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
import tomli_w
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import SUPPLY, Deployment, deploy
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, KEPT_STATES, find_anvil
from consilium_chain.settings import read_settings
from consilium_chain.settlement.accounting import Books, take_stock
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.voter.registration import register
from consilium_core.private_files import write_private_file
from consilium_lab.demo.datasets import DemoData, deal_wdbc, write_rows
from consilium_lab.demo.homes import NetworkSettings, make_hospital, write_key
from consilium_lab.demo.options import Attack
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_server.certificates import ensure_certificates
from consilium_server.config import AggregatorSettings
from consilium_server.jobs.supervisor import SETTINGS, TLS, task_folder
from eth_account import Account
from eth_account.signers.local import LocalAccount
from postgres_driver import SERVER, binaries

from internet.hosts import Disk, Host, Internet
from internet.proxy import API, FLEET, MIRROR, SPONSOR, SPONSOR_PORT, Pki, make_certificates, write_nginx
from internet.services import Service, Services, pause_of

HOSPITALS, VOTERS = 4, 3
CHAIN = "chain.test"
CHAIN_PORT, NODE_PORT = 8546, 8545
BLOCK_SECONDS = 1
# Longer than any pause of a supervisor with what follows it, so that a restart costs nobody a deadline.
WINDOWS = {"join": 240, "commit": 150, "upload": 120, "publish": 75, "score": 90, "reveal": 60}
DISPUTE_STEP = 45  # seconds, three of which `Disputing` lasts: of tasks in which somebody lies
ETHER = 100 * 10**18
SPENDING_MONEY = 1_000_000 * TOKEN
TASKS_OF_A_VOTER = 20
START = 240.0  # seconds for a process to start and do something, on a busy machine
DISK_MIB = {
    "postgres": 192,
    "worker": 96,
    "hospital": 64,
    "voter": 32,
    "proxy": 16,
    "api": 16,
    "index": 16,
}
CONSILIUM = [sys.executable, "-m", "consilium_cli.main"]
FORWARD = str(Path(__file__).with_name("forward.py"))


def until(look: Callable[[], Any], what: str, patience: float = START) -> Any:
    """What it says once that is something."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, f"{what}: not within {patience:g} s"
        time.sleep(0.1)
    return found


def private_task(data: DemoData, rounds: int, windows: Mapping[str, int]) -> bytes:
    """A task file: masked, private, with decoys, one cohort. What noise alone does to a score costs nobody anything:
    these networks are there to show what faults cost.
    """
    settings = TaskSettings(rounds, 1, VOTERS, windows, epsilon=100.0)
    values = task_spec(data, settings).model_dump(mode="json", exclude_none=True)
    values["judging"] |= {"accept_floor": -10.0, "harmful_below": -20.0, "tolerance": 10.0, "decoy_margin": 0.2}
    return tomli_w.dumps(values).encode()


@dataclass
class Network:
    internet: Internet
    services: Services
    data: DemoData
    operator: Ledger  # as who watches has it: by the chain itself, whatever becomes of the node in front of it
    deployment: Deployment
    pki: Pki
    settings: NetworkSettings
    folder: Path
    accounts: dict[str, LocalAccount]
    api_port: int
    homes: dict[str, HospitalHome] = field(default_factory=dict)
    voter_homes: dict[str, VoterHome] = field(default_factory=dict)
    disks: dict[str, Disk] = field(default_factory=dict)
    machines: list[str] = field(default_factory=list)
    superlink_port: int = 0  # of the last task whose doors were opened

    def host(self, name: str) -> Host:
        return self.internet.hosts[name]

    @property
    def hospitals(self) -> list[str]:
        return _names("hospital", HOSPITALS)

    @property
    def voters(self) -> list[str]:
        return _names("voter", VOTERS)

    @property
    def worker_home(self) -> Path:
        return self.folder / "operator" / "worker"

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.settings.artifacts)

    def name_of(self, address: str) -> str:
        return next((name for name, account in self.accounts.items() if account.address == address), address)

    # Money

    def books(self) -> Books:
        addresses = {self.operator.address, *(account.address for account in self.accounts.values())}
        return take_stock(self.operator, SUPPLY, addresses)

    # A task

    def propose(self, rounds: int) -> tuple[int, TaskSpec]:
        """Proposes a task, and once its aggregator has begun, leads the public port to its SuperLink and has the
        hospitals say yes and start.
        """
        task, spec = self.put(rounds)
        self.open_doors(task)
        self.start_hospitals(task)
        return task, spec

    def put(self, rounds: int, windows: Mapping[str, int] = WINDOWS) -> tuple[int, TaskSpec]:
        raw = private_task(self.data, rounds, windows)
        spec = parse_task_spec(raw)
        digest = self.store.put_file(raw)
        return self.operator.operator.propose(task_params(spec, digest, self.accounts["aggregator"].address)), spec

    def open_doors(self, task: int) -> None:
        """Once the task's aggregator has begun: the proxy leads to its SuperLink, and the sponsor pays for it."""
        homes = [self.home_of(machine) for machine in self.machines or ["operator"]]
        files = [task_folder(home, self.operator, task) / SETTINGS for home in homes]
        file = until(lambda: next((one for one in files if one.exists()), None), f"the aggregator of task {task}")
        self.superlink_port = port = read_settings(file, AggregatorSettings).superlink_port
        sponsor = self.folder / "operator" / "sponsor"
        if self.machines:
            for machine in self.machines:
                self._write_proxy_of(machine, port)
                self.services.restart(f"proxy-{machine}")
        else:
            self._write_proxy((port, self.worker_home / TLS / "ca.crt"))
            self.services.restart("proxy")
        settings = tomllib.loads((sponsor / "sponsor.toml").read_text()) | {"task": task}
        write_private_file(sponsor / "sponsor.toml", tomli_w.dumps(settings))
        self.add("sponsor", "operator", [*CONSILIUM, "server", "sponsor", "--config", str(sponsor / "sponsor.toml")])

    def start_hospitals(self, task: int, liar: str | None = None) -> None:
        """`liar`: uploads something else than it committed to, in every round but that of statistics."""
        params = self.operator.tasks.params(task)
        for name, home in self.homes.items():
            if task not in home.approved_tasks():
                approval = Approval(
                    place=self.operator.folder_name(task),
                    spec_hash=params.spec_hash.hex(),
                    approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
                    superlink=f"{FLEET}:443/{self.superlink_port}" if self.machines else f"{FLEET}:443",
                )
                home.approve(task, approval, self.pki.authority.read_bytes())
            where = ["--home", str(home.folder)]
            run = [*CONSILIUM, "hospital", "run", str(task), *where]
            if name == liar:
                run = [
                    sys.executable,
                    "-m",
                    "consilium_lab.adversaries.nodes",
                    Attack.FALSE_UPLOAD,
                    *where,
                    "--task",
                    str(task),
                ]
            self.add(name, name, run, unit="consilium-hospital@.service", ends=True)

    def phase(self, task: int) -> Phase:
        return self.operator.tasks.state(task).phase

    # Processes

    def add(
        self, name: str, host: str, arguments: list[str], unit: str = "", ends: bool = False, shares_fate: bool = True,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:  # fmt: skip
        trusted = {"SSL_CERT_FILE": str(self.pki.authority)}
        pause = pause_of(unit or f"consilium-{name}.service")
        self.services.add(Service(name, self.host(host), arguments, pause, trusted, shares_fate, ends, stop_signal))

    def processes_of(self, name: str) -> list[psutil.Process]:
        """Of a service, or of what a service starts by itself."""
        inner = {
            "aggregator": ("operator", "-m consilium_cli.aggregator"),
            "superlink": ("operator", "--enable-supernode-auth"),
        }
        if name in inner:
            host, word = inner[name]
            return self.host(host).processes(word)
        role, _, hospital = name.partition("/")
        if role in ("supernode", "relay"):
            found = self.host(hospital).processes("flower_internals relay")
            supernodes = [one for one in found if one.ppid() not in {other.pid for other in found}]
            # The executor is the SuperNode's fork, and has a fork of its own for each message.
            return supernodes if role == "supernode" else [one for parent in supernodes for one in parent.children()]
        return [psutil.Process(self.services[name].pid)]

    def get(self, path: str) -> Any:
        """What the API answers to a stranger, over TLS and through the proxy."""
        trusted = ssl.create_default_context(cafile=self.pki.authority)
        with httpx.Client(verify=trusted, timeout=10) as client:
            request = client.build_request(
                "GET", f"https://127.0.0.1:{self.api_port}{path}", headers={"Host": API},
                extensions={"sni_hostname": API},
            )  # fmt: skip
            return client.send(request).raise_for_status().json()

    def _write_proxy(self, superlink: tuple[int, Path] | None) -> Path:
        operator = self.folder / "operator"
        authority = ensure_certificates(operator / "sponsor" / "tls").authority
        return write_nginx(operator / "proxy", self.pki, self.settings.artifacts, authority, superlink)

    # The account's machines

    def home_of(self, machine: str) -> Path:
        """The home of its worker."""
        return self.folder / machine / "worker"

    def machine_of(self, task: int) -> str | None:
        """The one whose aggregator runs the task; None while none does."""
        where = str(task_folder(Path("."), self.operator, task))
        found = [name for name in self.machines if self.host(name).processes("-m consilium_cli.aggregator", where)]
        return found[0] if len(found) == 1 else None

    def lose(self, machine: str) -> None:
        """At once: its cable, and all that runs there."""
        host = self.host(machine)
        host.cut_off()
        for name in self._services_of(machine):
            self.services[name].wanted = False
        for process in host.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def find(self, machine: str) -> None:
        """It is back, with its disk as it was."""
        self.host(machine).back()
        for name in self._services_of(machine):
            self.services.restart(name)

    def change_machine(self, task: int) -> float:
        """Loses the machine that runs a task, and finds it again once another one runs it. Seconds until then."""
        lost = until(lambda: self.machine_of(task), "the aggregator")
        self.lose(lost)
        began = time.monotonic()
        until(lambda: self.machine_of(task) not in (None, lost), f"another machine than {lost}")
        took = time.monotonic() - began
        self.find(lost)
        return took

    def _services_of(self, machine: str) -> list[str]:
        return [f"worker-{machine}", f"proxy-{machine}"]

    def _write_proxy_of(self, machine: str, port: int) -> Path:
        (other,) = [self.host(name).address for name in self.machines if name != machine]
        superlink = port, self.home_of(machine) / TLS / "ca.crt"
        folder = self.folder / machine / "proxy"
        return write_nginx(folder, self.pki, self.settings.artifacts, self.pki.authority, superlink, f"{other}:443")

    def logs(self) -> Path:
        return self.folder / "logs"


@contextmanager
def small_internet(folder: Path, block_seconds: int = BLOCK_SECONDS, machines: int = 0) -> Iterator[Network]:
    """All but a task, its aggregator and its hospitals. `machines`: those that share the aggregator's account; without
    them it is the operator's. Raises AssertionError where something does not start.
    """
    folder, shared = folder.resolve(), _names("machine", machines)
    hosts: dict[str, list[str]] = {"chain": [CHAIN], "operator": [API, SPONSOR, MIRROR] + ([] if machines else [FLEET])}
    hosts |= {name: [FLEET] for name in shared}
    hosts |= {name: [] for name in (*_names("hospital", HOSPITALS), *_names("voter", VOTERS), "stranger")}
    with ExitStack() as stack:
        # PostgreSQL is another user, and of root alone are the folders that tests have.
        database = Path(stack.enter_context(TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True)))
        database.chmod(0o755)
        internet = stack.enter_context(Internet(folder, database))
        internet.connect(hosts)
        services = Services(folder / "logs")
        stack.callback(services.close)
        yield _build(internet, services, folder, database, block_seconds, shared)


def _names(role: str, count: int) -> list[str]:
    return [f"{role}-{k + 1}" for k in range(count)]


def _build(
    internet: Internet, services: Services, folder: Path, database: Path, block_seconds: int, machines: list[str]
) -> Network:
    chain = internet.hosts["chain"]
    anvil = [
        find_anvil(), "--host", "127.0.0.1", "--port", str(CHAIN_PORT), "--accounts", "1", "--silent",
        "--block-time", "0.25", "--mixed-mining", "--prune-history", str(KEPT_STATES),
    ]  # fmt: skip
    services.add(Service("chain", chain, anvil))
    node = [sys.executable, FORWARD, "0.0.0.0", str(NODE_PORT), "127.0.0.1", str(CHAIN_PORT)]
    services.add(Service("node", chain, node, pause=2.0))
    url = f"http://127.0.0.1:{internet.reach('chain', '127.0.0.1', CHAIN_PORT)}"
    until(lambda: _answers(url), "the chain", 60)
    faucet = Account.from_key(FAUCET_KEY)
    deployment = deploy(Connection(url, faucet))
    book = folder / "deployment.json"
    deployment.write(book)
    operator = Ledger(Connection(url, faucet), deployment)
    pki = make_certificates(folder / "tls")
    hospitals = _names("hospital", HOSPITALS)
    parties = ("aggregator", "sponsor", *hospitals, *_names("voter", VOTERS))
    accounts = {name: Account.from_key(secrets.token_bytes(32)) for name in parties}
    for name, account in accounts.items():
        if name not in hospitals:  # hospitals have no ether: the sponsor pays
            _rpc(url, "anvil_setBalance", account.address, hex(ETHER))
        if name != "sponsor":
            operator.token.transfer(account.address, SPENDING_MONEY)
    data = deal_wdbc(HOSPITALS, VOTERS, 0)
    artifacts = folder / "operator" / "artifacts"
    artifacts.mkdir(parents=True)
    settings = NetworkSettings(f"http://{CHAIN}:{NODE_PORT}", book, artifacts, operator.address)
    network = Network(
        internet, services, data, operator, deployment, pki, settings, folder, accounts,
        internet.reach("stranger", internet.hosts["operator"].address, 443), machines=machines,
    )  # fmt: skip
    spec = parse_task_spec(private_task(data, 1, WINDOWS))
    _make_hospitals(network, spec)
    _make_voters(network, spec, url)
    _start_operator(network, database)
    _rpc(url, "evm_setIntervalMining", block_seconds)  # from here on a transaction waits for its block
    for name, home in network.voter_homes.items():
        run = [*CONSILIUM, "voter", "run", "--home", str(home.folder)]
        network.add(name, name, run, unit="consilium-voter@.service")
    return network


def _make_hospitals(network: Network, spec: TaskSpec) -> None:
    for name, rows in zip(network.hospitals, network.data.hospitals, strict=True):
        folder = network.folder / name
        network.disks[name] = Disk(folder, DISK_MIB["hospital"])
        more = {
            "artifacts": f"https://{MIRROR}",
            "sponsor": {"url": f"https://{SPONSOR}", "ca_certificate": str(network.pki.authority)},
        }
        home = make_hospital(
            network.settings, folder / "home", network.accounts[name], (rows, network.data.schema), spec, more
        )
        network.homes[name] = home
        network.host(name).let_nobody_in()


def _make_voters(network: Network, spec: TaskSpec, url: str) -> None:
    for name, rows in zip(network.voters, network.data.held_out, strict=True):
        folder = network.folder / name
        network.disks[name] = Disk(folder, DISK_MIB["voter"])
        home = folder / "home"
        write_key(home, network.accounts[name])
        table = write_rows(rows, network.data.schema, home / "data")
        settings = network.settings.shared | {"artifacts": f"https://{MIRROR}", "data": table.name}
        policy = network.settings.policy(spec) | {"metrics": [spec.judging.metric]}
        network.voter_homes[name] = VoterHome.create(home, settings, policy)
    stake = TASKS_OF_A_VOTER * spec.money.voter_bond * TOKEN
    with ThreadPoolExecutor() as several:
        ledgers = [Ledger(Connection(url, network.accounts[name]), network.deployment) for name in network.voters]
        list(several.map(lambda ledger: register(ledger, stake, 0), ledgers))


def _start_operator(network: Network, database: Path) -> None:
    folder = network.folder / "operator"
    for name in ("proxy", "api", "worker", "index"):
        network.disks[name] = Disk(folder / name, DISK_MIB[name])
    database_url = _start_postgres(network, database)
    broker_url = _start_redis(network)
    network.add("proxy", "operator", ["nginx", "-c", str(network._write_proxy(None)), "-g", "daemon off;"])
    common = network.settings.shared | {"database_url": database_url}
    write_key(folder / "aggregator", network.accounts["aggregator"])
    write_key(folder / "sponsor", network.accounts["sponsor"])
    worker = common | {"home": str(network.worker_home), "broker_url": broker_url}
    key = {
        "keystore": str(folder / "aggregator" / "key.json"),
        "password_file": str(folder / "aggregator" / "password"),
    }
    settings: dict[str, dict[str, Any]] = {
        "api": common | {"home": str(folder / "api"), "origin": f"https://{API}", "proxies": ["127.0.0.1"]},
        "index": common | {"home": str(folder / "index")},
        "worker": worker if network.machines else worker | key,
        "sponsor": {
            "home": str(folder / "sponsor"),
            "chain_url": network.settings.chain_url,
            "deployment": str(network.settings.deployment),
            "keystore": str(folder / "sponsor" / "key.json"),
            "password_file": str(folder / "sponsor" / "password"),
            "port": SPONSOR_PORT,
        },
    }
    for name, values in settings.items():
        file = folder / "sponsor" / "sponsor.toml" if name == "sponsor" else folder / f"{name}.toml"
        write_private_file(file, tomli_w.dumps(values))
    for name in ("api", "worker", "index"):
        command = [*CONSILIUM, "server", name, "--config", str(folder / f"{name}.toml")]
        network.add(name, "operator", command, shares_fate=name != "worker")
    for machine in network.machines:
        file = network.folder / machine / "worker.toml"
        file.parent.mkdir()
        write_private_file(file, tomli_w.dumps(worker | key | {"home": str(network.home_of(machine))}))
        run = [*CONSILIUM, "server", "worker", "--config", str(file)]
        network.add(f"worker-{machine}", machine, run, unit="consilium-worker.service", shares_fate=False)
    for machine in network.machines:
        until((network.home_of(machine) / TLS / "ca.crt").exists, f"the authority of {machine}")
        conf = network._write_proxy_of(machine, 9_100)
        network.add(f"proxy-{machine}", machine, ["nginx", "-c", str(conf), "-g", "daemon off;"])


def _start_postgres(network: Network, folder: Path) -> str:
    host, where = network.host("operator"), binaries()
    assert where is not None
    pwd.getpwnam(SERVER)
    network.disks["postgres"] = Disk(folder / "disk", DISK_MIB["postgres"])
    data, password, file = folder / "disk" / "data", secrets.token_urlsafe(16), folder / "password"
    file.write_text(password)
    for one in (folder / "disk", file):
        shutil.chown(one, SERVER, SERVER)
    file.chmod(0o600)
    as_server = ["setpriv", f"--reuid={SERVER}", f"--regid={SERVER}", "--clear-groups"]
    made = [
        *as_server, str(where / "initdb"), "-D", str(data), "-U", SERVER, "-A", "scram-sha-256",
        f"--pwfile={file}", "--no-sync", "--locale=C", "-E", "UTF8",
    ]  # fmt: skip
    subprocess.run(made, check=True, capture_output=True, cwd=folder)
    address = host.address if network.machines else "127.0.0.1"
    if network.machines:
        with (data / "pg_hba.conf").open("a") as hba:
            hba.write("host all all samenet scram-sha-256\n")
    options = {
        "listen_addresses": address, "unix_socket_directories": "", "fsync": "off", "max_wal_size": "48MB",
        "min_wal_size": "32MB", "shared_buffers": "32MB",
    }  # fmt: skip
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    # At SIGTERM it would wait until its clients leave by themselves: its unit says SIGINT.
    command = [*as_server, str(where / "postgres"), "-D", str(data), *settings]
    network.add("postgres", "operator", command, stop_signal=signal.SIGINT)
    ready = [str(where / "pg_isready"), "-q", "-h", address, "-U", SERVER]
    until(lambda: host.run(ready).returncode == 0, "PostgreSQL", 60)
    return f"postgresql://{SERVER}:{password}@{address}:5432/postgres"


def _start_redis(network: Network) -> str:
    folder, password = network.folder / "operator" / "redis", secrets.token_urlsafe(16)
    folder.mkdir(parents=True)
    address = network.host("operator").address if network.machines else "127.0.0.1"
    settings = {
        "port": "6379", "bind": address, "dir": str(folder), "requirepass": password, "appendonly": "no",
        "save": "", "maxmemory": "128mb", "maxmemory-policy": "noeviction",
    }  # fmt: skip
    write_private_file(folder / "redis.conf", "".join(f'{name} "{value}"\n' for name, value in settings.items()))
    network.add("redis", "operator", ["redis-server", str(folder / "redis.conf")])
    return f"redis://:{password}@{address}:6379/0"


def _rpc(url: str, method: str, *arguments: object) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(arguments)}
    answer = httpx.post(url, json=request, timeout=10).raise_for_status().json()
    assert "error" not in answer, answer
    return answer.get("result")


def _answers(url: str) -> bool:
    try:
        return bool(_rpc(url, "eth_chainId"))
    except httpx.HTTPError:
        return False
