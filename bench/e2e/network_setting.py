"""The setting of bench/e2e/network.py: accounts, homes, tokens and tasks on a chain of its own."""

from __future__ import annotations

import datetime
import secrets
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import tomli_w
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import deploy
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, spec_hash
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_core.private_files import write_private_file
from consilium_lab.demo.datasets import DemoData, deal_wdbc
from consilium_lab.demo.homes import data_settings
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_server.certificates import ensure_certificates
from eth_account import Account
from eth_account.signers.local import LocalAccount

from bench.e2e.network_parts import Plan, TaskPlan

SEED = 0
WEALTH = 5_000 * TOKEN
ETHER = hex(10**20)
DELEGATED = 10 * TOKEN
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 7_200)  # no deadline is measured
TRAINING_ROWS, HELD_OUT_ROWS = 40, 40
REQUESTS = 250  # of one batch to the chain
GAS = hex(300_000)  # of an unsigned transaction
TICK = 1.0  # seconds


@dataclass(frozen=True)
class Size:
    """A network's size; `cohorts` and `seats` are of one task. Parties are dealt evenly to tasks.

    `is_one_model`: the tasks are shards of one model, and have one aggregator.
    """

    tasks: int
    hospitals: int
    voters: int
    delegators: int
    cohorts: int
    seats: int
    is_one_model: bool = False

    @property
    def models(self) -> int:
        return 1 if self.is_one_model else self.tasks


@dataclass(frozen=True)
class Party:
    role: str
    account: LocalAccount
    home: Path

    @property
    def address(self) -> str:
        return str(self.account.address)


class Unsigned:
    """Many requests to anvil at once, among them transactions of accounts that do not sign, which share blocks.

    Within its context all other transactions are mined one by one, and a block every second besides: anvil keeps about
    as much memory for each block as the whole state takes.
    """

    def __init__(self, node: LocalNode) -> None:
        self._client, self._url = httpx.Client(timeout=300), node.url
        self._mining, self._over = threading.Lock(), threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def ask(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """Results in order. Raises RuntimeError with the chain's words where one is refused."""
        results: list[Any] = []
        for start in range(0, len(calls), REQUESTS):
            part = calls[start : start + REQUESTS]
            requests = [
                {"jsonrpc": "2.0", "id": index, "method": method, "params": params}
                for index, (method, params) in enumerate(part)
            ]
            answers = self._client.post(self._url, json=requests).raise_for_status().json()
            if refused := next((answer["error"] for answer in answers if "error" in answer), None):
                raise RuntimeError(f"the local chain refused: {refused}")
            results += [answer["result"] for answer in sorted(answers, key=lambda answer: int(answer["id"]))]
        return results

    def carry_out(self, transactions: Sequence[tuple[str, Any]]) -> None:
        """Senders and calls; each sender's in this order. Raises RuntimeError where a contract refuses one."""
        senders = list(dict.fromkeys(sender for sender, _ in transactions))
        counts = self.ask([("eth_getTransactionCount", [sender, "pending"]) for sender in senders])
        nonces = {sender: int(count, 16) for sender, count in zip(senders, counts, strict=True)}
        sent = []
        for sender, function in transactions:
            data = function._encode_transaction_data()
            sent.append(
                {"from": sender, "to": function.address, "data": data, "gas": GAS, "nonce": hex(nonces[sender])}
            )
            nonces[sender] += 1
        with self._mining:
            self.ask([("anvil_autoImpersonateAccount", [True]), ("evm_setAutomine", [False])])
            waiting = self.ask([("eth_sendTransaction", [one]) for one in sent])
            while waiting:
                self.ask([("evm_mine", [])])
                receipts = self.ask([("eth_getTransactionReceipt", [digest]) for digest in waiting])
                if any(receipt and receipt["status"] != "0x1" for receipt in receipts):
                    raise RuntimeError("a contract refused a transaction that must go through")
                waiting = [digest for digest, receipt in zip(waiting, receipts, strict=True) if receipt is None]
            self.ask([("anvil_autoImpersonateAccount", [False]), ("evm_setAutomine", [True])])

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            with self._mining:
                self.ask([("evm_mine", [])])

    def __enter__(self) -> Unsigned:
        self.ask([("evm_setAutomine", [True])])
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._clock.join()
        self._client.close()


class Network:
    """Accounts, homes, tokens and tasks, on a chain of its own."""

    def __init__(self, size: Size, home: Path, node: LocalNode, unsigned: Unsigned) -> None:
        self.size, self.home, self.unsigned = size, home, unsigned
        self.treasury = Connection(node.url, Account.from_key(FAUCET_KEY))
        deployment = deploy(self.treasury)
        deployment.write(home / "deployment.json")
        self.ledger = Ledger(self.treasury, deployment)
        self.node, self.store = node, ArtifactStore(home / "artifacts")
        self.operator = self._party("operator", 0)
        self.aggregators = [self._party("aggregator", index) for index in range(size.tasks)]
        if size.is_one_model:  # a home for each shard
            self.aggregators = [replace(one, account=self.aggregators[0].account) for one in self.aggregators]
        self.hospitals = [self._party("hospital", index) for index in range(size.hospitals)]
        self.voters = [self._party("voter", index) for index in range(size.voters)]
        self.delegators = [self._party("delegator", index) for index in range(size.delegators)]
        self._fund()
        authority = ensure_certificates(home / "tls").authority.read_bytes()
        data = deal(size)
        self.tasks: list[TaskPlan] = []
        for index, aggregator in enumerate(self.aggregators):
            hospitals, voters = self.hospitals[index :: size.tasks], self.voters[index :: size.tasks]
            part = replace(
                data,
                hospital_names=data.hospital_names[index :: size.tasks],
                hospitals=data.hospitals[index :: size.tasks],
                held_out=data.held_out[index :: size.tasks],
            )
            spec = spec_of(size, part)
            if index < size.models:
                numbers = self._propose(spec, aggregator)
            number = numbers[index % len(numbers)]
            self.tasks.append(self._task(number, spec, aggregator, hospitals, voters, part, authority))
        self.spec = spec
        self.plan = Plan(str(home), node.url, spec.money.voter_bond, self.tasks)

    def _party(self, role: str, index: int) -> Party:
        return Party(role, Account.from_key(secrets.token_bytes(32)), self.home / "nodes" / f"{role}-{index + 1}")

    @property
    def parties(self) -> list[Party]:
        return [self.operator, *self.aggregators[: self.size.models], *self.hospitals, *self.voters, *self.delegators]

    def _fund(self) -> None:
        self.unsigned.ask([("anvil_setBalance", [party.address, ETHER]) for party in self.parties])
        transfer = self.ledger.contracts.token.contract.functions.transfer
        pools = self.size.tasks * WEALTH * 4
        self.unsigned.carry_out(
            [
                (self.treasury.address, transfer(one.address, WEALTH if one.role in ("hospital", "voter") else pools))
                for one in self.parties
            ]
        )

    def _propose(self, spec: TaskSpec, aggregator: Party) -> range:
        """The numbers of a model's tasks."""
        digest = self.store.put_file(task_text(spec))
        operator = Ledger(Connection(self.node.url, self.operator.account), self.ledger.deployment)
        return operator.tasks.shards(operator.operator.propose(task_params(spec, digest, aggregator.address)))

    def _task(
        self,
        number: int,
        spec: TaskSpec,
        aggregator: Party,
        hospitals: Sequence[Party],
        voters: Sequence[Party],
        data: DemoData,
        authority: bytes,
    ) -> TaskPlan:
        """The homes of all its parties, and the hospitals' yes."""
        settings = {
            "chain_url": self.node.url,
            "deployment": str(self.home / "deployment.json"),
            "artifacts": str(self.home / "artifacts"),
        }
        policy = {"operators": [self.operator.address], "models": [spec.model.name]}
        approval = Approval(
            place=self.ledger.folder_name(number),
            spec_hash=spec_hash(task_text(spec)).hex(),
            approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            superlink="127.0.0.1:1",  # nobody asks it
        )
        for party, rows in zip(hospitals, data.hospitals, strict=True):
            _write_key(party)
            found = data_settings((rows, data.schema), party.home, spec)
            make_transport_key(party.home / "transport.key")
            own = policy | {"columns": spec.data.used, "masked_only": True}
            HospitalHome.create(party.home, settings | found, own).approve(number, approval, authority)
        for party, rows in zip(voters, data.held_out, strict=True):
            _write_key(party)
            found = data_settings((rows, data.schema), party.home, spec)
            VoterHome.create(party.home, settings | found, policy | {"metrics": [spec.judging.metric]})
        _write_key(aggregator)
        config = settings | {
            "home": str(aggregator.home),
            "keystore": str(aggregator.home / "key.json"),
            "password_file": str(aggregator.home / "password"),
            "task": number,
            "superlink_port": 1,  # nobody listens there
        }
        write_private_file(aggregator.home / "node.toml", tomli_w.dumps(config))
        of = {"hospitals": [str(one.home) for one in hospitals], "voters": [str(one.home) for one in voters]}
        return TaskPlan(number, str(aggregator.home / "node.toml"), **of)

    def stake(self) -> None:
        """Hospitals, voters and aggregators become nodes, with the bonds of their tasks at stake."""
        staking, token, money = (
            self.ledger.contracts.staking.contract,
            self.ledger.contracts.token.contract.functions,
            self.spec.money,
        )
        bonds = [(one, Role.HOSPITAL, money.hospital_bond * TOKEN) for one in self.hospitals]
        bonds += [(one, Role.VOTER, money.voter_bond * TOKEN) for one in self.voters]
        bond = self.size.tasks // self.size.models * money.aggregator_bond * TOKEN
        bonds += [(one, Role.AGGREGATOR, bond) for one in self.aggregators[: self.size.models]]
        self.unsigned.carry_out(
            [
                (party.address, call)
                for party, role, bond in bonds
                for call in (token.approve(staking.address, bond), staking.functions.register(role, 0, bond))
            ]
        )

    def joined(self) -> int:
        """How many hospitals and voters have."""
        numbers = [task.number for task in self.tasks]
        return sum(len(self.ledger.tasks.hospitals(task)) + len(self.ledger.tasks.voters(task)) for task in numbers)

    def delegate(self) -> None:
        """Each delegator to one node, and so that nodes have about as many each."""
        nodes = [(one.address, Role.HOSPITAL) for one in self.hospitals]
        nodes += [(one.address, Role.VOTER) for one in self.voters]
        staking, token = self.ledger.contracts.staking.contract, self.ledger.contracts.token.contract
        self.delegations = [
            (delegator.address, *nodes[index % len(nodes)]) for index, delegator in enumerate(self.delegators)
        ]
        self.unsigned.carry_out(
            [
                (delegator, call)
                for delegator, node, role in self.delegations
                for call in (
                    token.functions.approve(staking.address, DELEGATED),
                    staking.functions.delegate(node, role, DELEGATED),
                )
            ]
        )

    def leave(self) -> None:
        """All bonds are released."""
        release = self.ledger.contracts.tasks.contract.functions.releaseBond
        per_task = self.size.tasks
        self.unsigned.carry_out(
            [
                (party.address, release(task.number, party.address))
                for index, task in enumerate(self.tasks)
                for party in (
                    self.aggregators[index],
                    *self.hospitals[index::per_task],
                    *self.voters[index::per_task],
                )
            ]
        )

    def claim(self) -> dict[str, int]:
        """Everybody whom something has vested for claims it; returns how many of each role."""
        staking = self.ledger.contracts.staking.contract.functions
        owners = {"hospital": Role.HOSPITAL, "voter": Role.VOTER, "aggregator": Role.AGGREGATOR}
        holders = [(one.role, one.address, one.address, owners[one.role]) for one in self.parties if one.role in owners]
        holders += [("delegator", *delegation) for delegation in self.delegations]
        positions = [staking.positionOf(*holder[1:]) for holder in holders]
        found = self.unsigned.ask(
            [("eth_call", [{"to": one.address, "data": one._encode_transaction_data()}, "latest"]) for one in positions]
        )
        claiming = [holder for holder, words in zip(holders, found, strict=True) if int(words[-64:], 16)]
        self.unsigned.carry_out([(who, staking.claim(node, role)) for _, who, node, role in claiming])
        return dict(Counter(role for role, *_ in claiming))


def _write_key(party: Party) -> None:
    party.home.mkdir(parents=True, mode=0o700)
    password = secrets.token_urlsafe(16)
    write_private_file(party.home / "password", password + "\n")
    write_keystore(party.home / "key.json", party.account, password, scrypt_n=LIGHT_SCRYPT_N)


def deal(size: Size) -> DemoData:
    """Wisconsin breast cancer, 30 % of it held out: everybody draws rows of its part, with replacement."""
    data = deal_wdbc(1, 1, SEED)
    (training,), (held_out,) = data.hospitals, data.held_out
    generator = np.random.default_rng(SEED)
    return replace(
        data,
        hospital_names=[f"hospital-{index + 1}" for index in range(size.hospitals)],
        hospitals=[
            training.iloc[generator.integers(len(training), size=TRAINING_ROWS)].reset_index(drop=True)
            for _ in range(size.hospitals)
        ],
        held_out=[
            held_out.iloc[generator.integers(len(held_out), size=HELD_OUT_ROWS)].reset_index(drop=True)
            for _ in range(size.voters)
        ],
    )


def spec_of(size: Size, data: DemoData) -> TaskSpec:
    """The demo's task, masked and with decoys, of one training round."""
    spec = task_spec(data, TaskSettings(rounds=1, cohorts=size.cohorts, seats=size.seats, windows=WINDOWS))
    rounds = spec.rounds.model_copy(update={"shards": size.tasks // size.models})
    return spec.model_copy(update={"rounds": rounds})


def task_text(spec: TaskSpec) -> bytes:
    return tomli_w.dumps(spec.model_dump(mode="json", exclude_none=True)).encode()
