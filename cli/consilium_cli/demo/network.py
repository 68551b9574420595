"""Everything the demo's task needs before its first round: chain, contracts, accounts, files, task, processes."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.connection import Connection
from consilium_chain.deployment import Deployment, deploy
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore, write_private_file
from consilium_chain.ledger import Ledger
from consilium_chain.localnode import FAUCET_KEY, LocalNode, free_port
from consilium_chain.proposal import task_params
from consilium_chain.task_spec import TOKEN, TaskSpec, parse_task_spec
from consilium_server.certificates import ensure_certificates
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eth_account import Account
from eth_account.signers.local import LocalAccount

from consilium_cli.demo.datasets import DemoData, write_csv
from consilium_cli.demo.options import Cheat, DemoOptions
from consilium_cli.demo.processes import Processes

GAS_MONEY = 10**18
SPENDING_MONEY = 5_000 * TOKEN  # what a party has before it stakes its bond


class Role(StrEnum):
    OPERATOR = "operator"
    AGGREGATOR = "aggregator"
    HOSPITAL = "hospital"
    VOTER = "voter"
    SPONSOR = "sponsor"


@dataclass
class Party:
    """One participant; `attack` is what it does instead of its duty, if anything."""

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
    superlink_port: int = field(default_factory=free_port)
    sponsor_port: int = field(default_factory=free_port)

    def of(self, role: Role) -> list[Party]:
        return [party for party in self.parties if party.role is role]

    def party(self, address: str) -> Party | None:
        return next((party for party in self.parties if party.address == address), None)

    def ledger_of(self, party: Party) -> Ledger:
        return Ledger(Connection(self.node.url, party.account), self.deployment)


def prepare_output(folder: Path) -> None:
    """Empties the output folder of what an earlier demo left there, and of nothing else."""
    for name in ("nodes", "logs", "artifacts", "data"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def build(options: DemoOptions, data: DemoData, task_file: bytes, node: LocalNode) -> Network:
    """Deploys, makes and funds the accounts, writes every file, proposes the task."""
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
    treasury.connection.send_ether(sponsor.address, GAS_MONEY)
    for party in network.parties:
        if party.role is not Role.HOSPITAL:  # the sponsor pays for these
            treasury.connection.send_ether(party.address, GAS_MONEY)
        pool = network.spec.money.pool * TOKEN if party.role is Role.OPERATOR else 0
        treasury.transfer(party.address, SPENDING_MONEY + pool)
        party.before = treasury.balance(party.address)
    operator, (aggregator,) = network.of(Role.OPERATOR)[0], network.of(Role.AGGREGATOR)
    digest = store.put_file(task_file)
    network.task = network.ledger_of(operator).propose(task_params(network.spec, digest, aggregator.address))
    for party in (sponsor, *network.parties):
        if party.role is not Role.OPERATOR:
            _write_node(network, party)
    ensure_certificates(sponsor.home / "tls")  # hospitals may ask for its authority before it has started
    return network


def _parties(options: DemoOptions, data: DemoData) -> list[Party]:
    nodes = options.output / "nodes"
    hospital_attacks = [attack for attack in options.attacks if not attack.by_voter]
    voter_attacks = [attack for attack in options.attacks if attack.by_voter]

    def party(name: str, role: Role, attack: str | None = None) -> Party:
        return Party(name, role, Account.from_key(secrets.token_bytes(32)), nodes / name, attack)

    parties = [party("operator", Role.OPERATOR), party("aggregator", Role.AGGREGATOR)]
    if options.cheat in (Cheat.CHANGE_BLOB, Cheat.DROP_HOSPITAL, Cheat.IGNORE_COMMITMENTS):
        parties[-1].attack = options.cheat
    # Attackers are the last ones: the dealing gives the first hospitals the most rows.
    names = data.hospital_names
    for index, name in enumerate(names):
        behind = len(names) - 1 - index
        attack: str | None = hospital_attacks[behind] if behind < len(hospital_attacks) else None
        if options.cheat is Cheat.ROGUE_COMMITMENT and behind == len(hospital_attacks):
            attack = "colluder"
        parties.append(party(name, Role.HOSPITAL, attack))
    for index in range(options.voters):
        behind = options.voters - 1 - index
        attack = voter_attacks[behind] if behind < len(voter_attacks) else None
        parties.append(party(f"voter-{index + 1}", Role.VOTER, attack))
    return parties


def _write_node(network: Network, party: Party) -> None:
    """A node's folder as a real one would have it: encrypted key, password file, data, configuration."""
    home = party.home
    home.mkdir(parents=True, mode=0o700)
    password = secrets.token_urlsafe(16)
    write_private_file(home / "password", password + "\n")
    write_keystore(home / "key.json", party.account, password, scrypt_n=LIGHT_SCRYPT_N)
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
    if party.role in (Role.HOSPITAL, Role.VOTER):
        frames = network.data.hospitals if party.role is Role.HOSPITAL else network.data.held_out
        write_csv(frames[network.of(party.role).index(party)], home / "data.csv")
        config["data"] = str(home / "data.csv")
    if party.role is Role.HOSPITAL:
        _write_transport_key(home / "transport.key")
        config["seed"] = network.options.seed
        if network.options.kill_in_round is not None and party is network.of(Role.HOSPITAL)[0]:
            config["commits"] = "own"  # a relayed commitment is the round's last: it would be killed too late
        config["sponsor"] = {
            "url": f"https://127.0.0.1:{network.sponsor_port}",
            "ca_certificate": str(network.sponsor.home / "tls" / "ca.crt"),
        }
        config["flower"] = {
            "superlink": f"127.0.0.1:{network.superlink_port}",
            "ca_certificate": str(network.options.output / "nodes" / "aggregator" / "tls" / "ca.crt"),
            "transport_key": str(home / "transport.key"),
        }
    write_private_file(home / "node.toml", tomli_w.dumps(config))


def _write_transport_key(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_private_file(path, text.decode())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".key.pub").write_bytes(public)


def start(network: Network, processes: Processes) -> None:
    """Starts every party as a process of its own."""
    commands = {Role.AGGREGATOR: "server", Role.HOSPITAL: "hospital", Role.VOTER: "voter"}
    config = ["--config", os.fspath(network.sponsor.home / "node.toml")]
    processes.serve(network.sponsor.name, "consilium_cli.main", "server", "sponsor", *config)
    for party in network.parties:
        config = ["--config", os.fspath(party.home / "node.toml")]
        if party.attack is not None:
            round_ = ["--round", str(network.options.cheat_round)]
            processes.start(party.name, "consilium_cli.demo.adversaries", party.attack, *config, *round_)
        elif party.role in commands:
            processes.start(party.name, "consilium_cli.main", commands[party.role], "run", *config)
