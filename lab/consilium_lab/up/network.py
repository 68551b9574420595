"""Prepares a network before its processes start: chain, contracts, accounts, homes, settings."""

from __future__ import annotations

import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import deploy
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode, free_ports
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.home import HospitalHome
from consilium_client.voter.registration import register
from consilium_core.private_files import write_private_file
from eth_account import Account

from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.homes import NetworkSettings, make_hospital, make_voter, write_key
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.task_file import TaskSettings, task_spec, task_toml
from consilium_lab.up.options import UpOptions

GAS_MONEY = 100 * 10**18
SPENDING_MONEY = 1_000_000 * TOKEN  # of each node, for the bonds of many tasks
SUPERLINKS = 20  # the most tasks of the aggregator's account at once
TASKS_AT_ONCE = 20  # the stakes of voters and of the aggregator suffice for so many
EPSILON = 8.0
PRIVATE_DATA = ("wdbc", "heart")  # data sets whose demo task also learns with noise
EXAMPLE = "example.toml"
OWN_FOLDERS = ("nodes", "logs", "artifacts", "server", "models")


@dataclass
class StandingNetwork:
    options: UpOptions
    data: DemoData
    task_file: Path
    spec: TaskSpec
    operator: Ledger
    store: ArtifactStore
    settings: NetworkSettings
    aggregator: str
    hospitals: dict[str, HospitalHome]
    voters: dict[str, Path]
    held_out: list[Path]  # files of the voters' rows
    names: dict[str, str] = field(default_factory=dict)  # of accounts

    @property
    def server(self) -> Path:
        return self.options.home / "server"

    @property
    def worker(self) -> Path:
        """The worker's home."""
        return self.server / "worker"

    @property
    def models(self) -> Path:
        """A folder for each task that has ended with a model."""
        return self.options.home / "models"

    def propose(self) -> int:
        """Proposes the first task. Returns its number."""
        digest = self.store.put_file(self.task_file.read_bytes())
        return self.operator.operator.propose(task_params(self.spec, digest, self.aggregator))

    def start(self, processes: Processes) -> None:
        """Starts all but the hospitals, which run task by task."""
        for name in ("api", "worker"):
            processes.serve(
                name, "consilium_cli.main", "server", name, "--config", os.fspath(self.server / f"{name}.toml")
            )
        for name, home in self.voters.items():
            processes.serve(name, "consilium_cli.main", "voter", "run", "--home", os.fspath(home))


def prepare(home: Path) -> None:
    """Removes only an earlier network's files from the folder."""
    for name in OWN_FOLDERS:
        shutil.rmtree(home / name, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)


def example_task(data: DemoData, settings: TaskSettings) -> str:
    """A task file for the dashboard's page Propose, which this network's nodes join. Private if the data allow it."""
    epsilon = EPSILON if data.name in PRIVATE_DATA else None
    spec = task_spec(data, replace(settings, epsilon=epsilon))
    named = spec.model_copy(update={"name": f"my first task, {data.name}"})
    return tomli_w.dumps(named.model_dump(mode="json", exclude_none=True))


def build(options: UpOptions, data: DemoData, settings: TaskSettings, node: LocalNode) -> StandingNetwork:
    """Deploys the contracts, makes and funds the accounts, writes all files. The operator's account has all tokens.

    `settings`: of the first task.
    """
    faucet = Account.from_key(FAUCET_KEY)
    deployment = deploy(Connection(node.url, faucet))
    for book in (options.home / "deployment.json", options.address_book):
        book.parent.mkdir(parents=True, exist_ok=True)
        deployment.write(book)
    operator = Ledger(Connection(node.url, faucet), deployment)
    artifacts, nodes = options.home / "artifacts", options.home / "nodes"
    network_settings = NetworkSettings(
        node.url, options.home / "deployment.json", artifacts, faucet.address, is_open=True, report_to=options.origin
    )
    spec, task_file = task_spec(data, settings), options.home / "task.toml"
    task_file.write_text(task_toml(data, settings))
    (options.home / EXAMPLE).write_text(example_task(data, settings))
    hospital_names = [f"hospital-{k + 1}" for k in range(len(data.hospitals))]
    voter_names = [f"voter-{k + 1}" for k in range(len(data.held_out))]
    accounts = {
        name: Account.from_key(secrets.token_bytes(32)) for name in ("aggregator", *hospital_names, *voter_names)
    }
    for account in accounts.values():
        operator.connection.transactions.send_ether(account.address, GAS_MONEY)
        operator.token.transfer(account.address, SPENDING_MONEY)
    hospitals = {
        name: make_hospital(network_settings, nodes / name, accounts[name], (rows, data.schema), spec, {})
        for name, rows in zip(hospital_names, data.hospitals, strict=True)
    }
    voters = {
        name: make_voter(network_settings, nodes / name, accounts[name], (rows, data.schema), spec)
        for name, rows in zip(voter_names, data.held_out, strict=True)
    }
    stake = TASKS_AT_ONCE * spec.money.voter_bond * TOKEN
    ledgers = {name: Ledger(Connection(node.url, account), deployment) for name, account in accounts.items()}
    with ThreadPoolExecutor() as several:
        list(several.map(lambda name: register(ledgers[name], stake, 0), voter_names))
    # Before its first task, so that the dashboard's page Propose can name it.
    ledgers["aggregator"].staking.stake(Role.AGGREGATOR, TASKS_AT_ONCE * spec.money.aggregator_bond * TOKEN)
    names = {account.address: name for name, account in accounts.items()} | {faucet.address: "operator"}
    network = StandingNetwork(
        options, data, task_file, spec, operator, ArtifactStore(artifacts), network_settings,
        accounts["aggregator"].address, hospitals, {name: home.folder for name, home in voters.items()},
        [home.settings.data for home in voters.values()], names,
    )  # fmt: skip
    write_key(nodes / "aggregator", accounts["aggregator"])
    _write_server(network, nodes / "aggregator")
    return network


def _write_server(network: StandingNetwork, aggregator: Path) -> None:
    """Writes the configurations of `consilium server api` and `consilium server worker`."""
    options, home = network.options, network.server
    home.mkdir(mode=0o700)
    common = network.settings.shared
    if options.database_url is None:
        common["database_url"] = f"sqlite:///{home / 'index.sqlite'}"
    else:
        common["database_url"] = options.database_url
    api: dict[str, Any] = common | {
        "home": str(home / "api"),
        "origin": options.origin,
        "port": options.port,
        "admins": [network.settings.operator],
        "public_chain_url": network.settings.chain_url,
        "prediction_servers": ["http://127.0.0.1:8700"],  # `consilium serve` on this machine
        "models": str(network.models),
        "example_task": str((options.home / EXAMPLE).absolute()),
    }
    worker: dict[str, Any] = common | {
        "home": str(network.worker),
        "keystore": str(aggregator / "key.json"),
        "password_file": str(aggregator / "password"),
        "first_superlink_port": free_ports(SUPERLINKS),
    }
    if options.broker_url is not None:
        worker["broker_url"] = options.broker_url
    for name, settings in (("api", api), ("worker", worker)):
        write_private_file(home / f"{name}.toml", tomli_w.dumps(settings))
