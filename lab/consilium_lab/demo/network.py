"""Prepares the demo before its first round: chain, contracts, accounts, files, task, processes."""

from __future__ import annotations

import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment, deploy
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode, free_ports
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.voter.registration import register
from consilium_core.private_files import write_private_file
from consilium_server.certificates import ensure_certificates
from eth_account import Account
from eth_account.signers.local import LocalAccount

from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.homes import NetworkSettings, approve, make_hospital, make_voter, write_key
from consilium_lab.demo.options import Cheat, DemoOptions, Stranger
from consilium_lab.demo.processes import Processes
from consilium_lab.seeds import seed_of

GAS_MONEY = 10**18
SPENDING_MONEY = 5_000 * TOKEN  # of a party, before it stakes its bond


class Role(StrEnum):
    OPERATOR = "operator"
    AGGREGATOR = "aggregator"
    HOSPITAL = "hospital"
    VOTER = "voter"
    SPONSOR = "sponsor"
    STRANGER = "stranger"


REFERENCES = "references"  # the process of the reference trainings
SOLD = "sold-model"  # the folder of the model whose predictions are sold


@dataclass
class Party:
    """A participant. `attack`: its misbehaviour, if it has one. `before`: its tokens before the task."""

    name: str
    role: Role
    account: LocalAccount
    home: Path
    attack: str | None = None
    before: int = 0

    @property
    def address(self) -> str:
        return str(self.account.address)


@dataclass
class Network:
    """A local chain with everything deployed, and the demo's parties on it."""

    options: DemoOptions
    data: DemoData
    node: LocalNode
    deployment: Deployment
    treasury: Ledger
    store: ArtifactStore
    parties: list[Party]
    spec: TaskSpec
    task_file: bytes
    sponsor: Party
    task: int = 0
    # Below the ports that systems hand out to connections: the SuperLink starts later, and may find them in use.
    superlink_port: int = field(default_factory=lambda: free_ports(2))

    @property
    def sponsor_port(self) -> int:
        return self.superlink_port + 1

    def of(self, role: Role) -> list[Party]:
        return [party for party in self.parties if party.role is role]

    def party(self, address: str) -> Party | None:
        return next((party for party in self.parties if party.address == address), None)

    @property
    def settings(self) -> NetworkSettings:
        output, (operator,) = self.options.output, self.of(Role.OPERATOR)
        return NetworkSettings(self.node.url, output / "deployment.json", output / "artifacts", operator.address)

    def ledger_of(self, party: Party) -> Ledger:
        return Ledger(Connection(self.node.url, party.account), self.deployment)


def prepare_output(folder: Path) -> None:
    """Removes only an earlier demo's files from the output folder."""
    for name in ("nodes", "logs", "artifacts", "data", SOLD):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def build(options: DemoOptions, data: DemoData, task_file: bytes, node: LocalNode) -> Network:
    """Deploys the contracts, makes and funds the accounts, writes all files, proposes the task."""
    treasury_account = Account.from_key(FAUCET_KEY)
    deployment = deploy(Connection(node.url, treasury_account))
    deployment.write(options.output / "deployment.json")
    treasury = Ledger(Connection(node.url, treasury_account), deployment)
    store = ArtifactStore(options.output / "artifacts")
    home = options.output / "nodes" / "sponsor"
    sponsor = Party(home.name, Role.SPONSOR, Account.from_key(secrets.token_bytes(32)), home)
    network = Network(
        options, data, node, deployment, treasury, store, _parties(options, data), parse_task_spec(task_file),
        task_file, sponsor,
    )  # fmt: skip
    treasury.connection.transactions.send_ether(sponsor.address, GAS_MONEY)
    for party in network.parties:
        if party.role is not Role.HOSPITAL:  # the sponsor pays for these
            treasury.connection.transactions.send_ether(party.address, GAS_MONEY)
        pool = network.spec.money.pool * TOKEN if party.role is Role.OPERATOR else 0
        treasury.token.transfer(party.address, SPENDING_MONEY + pool)
        party.before = treasury.token.balance(party.address)
    operator, (aggregator,) = network.of(Role.OPERATOR)[0], network.of(Role.AGGREGATOR)
    digest = store.put_file(task_file)
    network.task = network.ledger_of(operator).operator.propose(task_params(network.spec, digest, aggregator.address))
    authorities = [ensure_certificates(party.home / "tls").authority for party in (sponsor, aggregator)]
    for party in (sponsor, *network.parties):
        if party.role is Role.HOSPITAL:
            _write_hospital(network, party, digest, *authorities)
        elif party.role is Role.VOTER:
            _write_voter(network, party)
        elif party.role is not Role.OPERATOR:
            _write_node(network, party)
    with ThreadPoolExecutor() as several:
        list(several.map(lambda party: _register(network, party), network.of(Role.VOTER)))
    return network


def _parties(options: DemoOptions, data: DemoData) -> list[Party]:
    nodes = options.output / "nodes"
    hospital_attacks = [attack for attack in options.attacks if attack.by_hospital]
    voter_attacks = [attack for attack in options.attacks if attack.by_voter]

    def party(name: str, role: Role, attack: str | None = None) -> Party:
        return Party(name, role, Account.from_key(secrets.token_bytes(32)), nodes / name, attack)

    parties = [party("operator", Role.OPERATOR), party("aggregator", Role.AGGREGATOR)]
    if options.cheat in (Cheat.CHANGE_BLOB, Cheat.DROP_HOSPITAL, Cheat.IGNORE_COMMITMENTS):
        parties[-1].attack = options.cheat
    # Attackers are the last ones, since the first hospitals have the most rows.
    names = data.hospital_names
    for index, name in enumerate(names):
        behind = len(names) - 1 - index
        attack: str | None = hospital_attacks[behind] if behind < len(hospital_attacks) else None
        if options.cheat is Cheat.COPIED_COMMITMENT and behind == len(hospital_attacks):
            attack = "colluder"
        parties.append(party(name, Role.HOSPITAL, attack))
    for index in range(options.voters):
        behind = options.voters - 1 - index
        attack = voter_attacks[behind] if behind < len(voter_attacks) else None
        parties.append(party(f"voter-{index + 1}", Role.VOTER, attack))
    for index, stranger in enumerate(options.strangers * list(Stranger)):
        parties.append(party(f"stranger-{index + 1}", Role.STRANGER, stranger))
    return parties


def _write_hospital(network: Network, party: Party, digest: bytes, sponsor_ca: Path, aggregator_ca: Path) -> None:
    """A home that has approved the task."""
    hospitals, options = network.of(Role.HOSPITAL), network.options
    rows = network.data.hospitals[hospitals.index(party)], network.data.schema
    settings: dict[str, Any] = {
        "sponsor": {"url": f"https://127.0.0.1:{network.sponsor_port}", "ca_certificate": str(sponsor_ca.absolute())},
        "trial_seed": seed_of(options.seed, hospitals.index(party)),  # a simulation with it has the same bases
    }
    if options.kill_in_round is not None and party is hospitals[0]:
        settings["commits"] = "own"  # a relayed commitment comes last in the round: the kill would be too late
    home = make_hospital(network.settings, party.home, party.account, rows, network.spec, settings)
    approve(home, network.treasury, network.task, digest, network.superlink_port, aggregator_ca)


def _write_voter(network: Network, party: Party) -> None:
    rows = network.data.held_out[network.of(Role.VOTER).index(party)], network.data.schema
    make_voter(network.settings, party.home, party.account, rows, network.spec)


def _register(network: Network, party: Party) -> None:
    """Registers as `consilium voter register` does, and stakes only the task's bond."""
    register(network.ledger_of(party), network.spec.money.voter_bond * TOKEN, 0)


def _write_node(network: Network, party: Party) -> None:
    """Writes a node's folder: encrypted key, password file, configuration."""
    home = party.home
    write_key(home, party.account)
    config: dict[str, Any] = {
        "home": str(home),
        "chain_url": network.node.url,
        "deployment": str(network.options.output / "deployment.json"),
        "keystore": str(home / "key.json"),
        "password_file": str(home / "password"),
        "task": network.task,
    }
    if party.role is Role.SPONSOR:
        config["port"] = network.sponsor_port
    else:
        config["artifacts"] = str(network.options.output / "artifacts")
    if party.role is Role.AGGREGATOR:
        config["superlink_port"] = network.superlink_port
    write_private_file(home / "node.toml", tomli_w.dumps(config))


def start(network: Network, processes: Processes) -> None:
    """Starts every party in its own process, and one for the reference trainings."""
    config = ["--config", os.fspath(network.sponsor.home / "node.toml")]
    processes.serve(network.sponsor.name, "consilium_cli.main", "server", "sponsor", *config)
    for party in network.parties:
        start_party(network, party, processes)
    hospitals, voters = ([str(one.home) for one in network.of(role)] for role in (Role.HOSPITAL, Role.VOTER))
    processes.start(
        REFERENCES, "consilium_lab.demo.compared", "--task", str(network.options.output / "task.toml"),
        "--artifacts", str(network.settings.artifacts), "--seed", str(network.options.seed),
        "--hospitals", *hospitals, "--voters", *voters,
    )  # fmt: skip


def start_party(network: Network, party: Party, processes: Processes) -> None:
    task = str(network.task)
    home = ["--home", os.fspath(party.home)]
    if party.role is Role.STRANGER and party.attack is not None:
        number = str(network.of(Role.STRANGER).index(party) + 1)
        processes.start(party.name, "consilium_lab.adversaries.stranger", party.attack, *home, "--number", number)
    elif party.attack is not None:
        which = ["--task", task, "--round", str(network.options.cheat_round)]
        processes.start(party.name, "consilium_lab.adversaries.nodes", party.attack, *home, *which)
    elif party.role is Role.HOSPITAL:
        processes.start(party.name, "consilium_cli.main", "hospital", "run", task, *home)
    elif party.role is Role.VOTER:
        processes.start(party.name, "consilium_cli.main", "voter", "run", "--task", task, *home)
    elif party.role is Role.AGGREGATOR:
        config = ["--config", os.fspath(party.home / "node.toml")]
        processes.start(party.name, "consilium_cli.main", "server", "run", *config)
