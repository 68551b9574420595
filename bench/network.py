"""A network of the size that FLock reports (176 training nodes, 236 validators, 1,178 delegators) through one round.

Real: the contracts on a local chain (anvil) and every transaction of every party, with its checks; hospitals', voters'
and aggregators' own classes with homes, keys and approvals as their owners make them; what crosses the network between
hospitals and aggregators, byte for byte (`HospitalNode.answer` behind the relay's own Flower app: training, quantising,
masks, dealings, KZG commitments and openings, signatures, audit logs); the aggregators (`Aggregator.conduct`), their
sums, checks, blobs and cell proofs; tickets, evaluations, commitments and reveals of the voters (`VoterNode.turn`).

Simulated: Flower's transport, which is its simulation engine (`flwr.simulation`, ray) in place of SuperLink and
SuperNodes, so that no node is authenticated by its transport key. Two actors, one for each core, play all hospitals:
one trains when it is asked to, and not as soon as the chain lets it, and whatever a real one does between requests
(returning, claiming, its own commitment where nobody relays it) does not happen. All aggregators are threads of one
process, all voters two processes. Rows are drawn with replacement from 569 real ones (Wisconsin breast cancer): what is
learnt means nothing.

Ether falls from the sky; tokens, stakes, delegations, and everybody's release of bonds and claims in the end are
transactions as any, but not signed (anvil's impersonation). The chain mines every other transaction at once, and a
block every second besides. Its clock is put forward once, by the vesting period before the claims; every phase ends by
what its parties do, and none by its deadline.

A task takes no more parties than one transaction can settle (`MAX_SETTLE_GAS`): 412 are two tasks at the same time.
Gas is counted from the receipts of all blocks, memory as proportional set size (PSS) of all processes every three
seconds.
"""

from __future__ import annotations

import datetime
import json
import secrets
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import network_parts
import numpy as np
import psutil
import tomli_w
from children import Child
from consilium_chain.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.connection import TRANSACTION_GAS_LIMIT, Connection
from consilium_chain.deployment import LOCAL_VESTING, deploy
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore, write_private_file
from consilium_chain.ledger import Ledger
from consilium_chain.localnode import FAUCET_KEY, LocalNode
from consilium_chain.proposal import task_params
from consilium_chain.task_spec import TOKEN, TaskSpec
from consilium_chain.views import Outcome, Phase, Role, TaskState
from consilium_cli.demo.datasets import DemoData, deal_wdbc, write_rows
from consilium_cli.demo.task_file import TaskSettings, task_spec
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.transport_key import make_transport_key
from consilium_server.certificates import ensure_certificates
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.abi import function_abi_to_4byte_selector
from matplotlib.axes import Axes
from network_parts import Plan, TaskPlan
from results_store import COLOURS, figure, say, write_figure

SEED = 0
WEALTH = 5_000 * TOKEN
ETHER = hex(10**20)
DELEGATED = 10 * TOKEN
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 7_200)  # no deadline is measured
TRAINING_ROWS, HELD_OUT_ROWS = 40, 40
WORKERS = 2  # processes that join hospitals; and those of the voters
REQUESTS = 250  # of one batch to the chain
GAS = hex(200_000)  # of an unsigned transaction
TICK = 1.0  # seconds
MEMORY_LOOK = 3.0
PATIENCE = 3 * 3600.0
MIB = 2**20
ROUND = 1  # the training round; before it the statistics
PHASES = {
    Phase.JOINING: "joining", Phase.FORMING: "forming", Phase.COMMITTING: "committing", Phase.UPLOADING: "uploading",
    Phase.PUBLISHING: "publishing", Phase.DRAWING: "drawing", Phase.SCORING: "scoring", Phase.REVEALING: "revealing",
    Phase.OPENING: "opening",
}  # fmt: skip
SHADES = {
    "homes and tokens": "#eeeeee",
    **COLOURS,
    "staking": "#c3c9d4",
    "delegating": "#b9c7a0",
    "opening": "#7a4b8c",
    "leaving": "#a3a3a3",
    "claiming": "#6d8f4e",
    "proposing": "#8a8f98",
}
STAGES = {
    "homes, tokens and tasks": "homes and tokens",
    "staking": "staking",
    "hospitals join": "joining",
    "voters join": "joining",
    "delegating": "delegating",
    "leaving": "leaving",
    "claiming": "claiming",
}
# What a transaction is for, by the calls in it, the first that fits.
KINDS = {
    "forming": ("formCohorts",),
    "committing": ("commitUpdates", "commitUpdate"),
    "uploading": ("fixSurvivors",),
    "opening": ("openCanaries", "settle"),
    "publishing": ("publish", "sumCommitments", "setCanaries"),
    "drawing": ("drawSeats",),
    "scoring": ("commitScores", "standDown"),
    "revealing": ("revealScores",),
    "staking": ("register",),
    "joining": ("registerVoterKey", "commitHeldOut", "joinAsHospital", "joinAsVoter", "joinAsAggregator"),
    "delegating": ("delegate",),
    "leaving": ("releaseBond",),
    "claiming": ("claim",),
    "proposing": ("propose",),
}


@dataclass(frozen=True)
class Size:
    """Of a network; `cohorts` and `seats` are of one task. Parties are dealt evenly to tasks."""

    tasks: int
    hospitals: int
    voters: int
    delegators: int
    cohorts: int
    seats: int


# Two tasks of 88 hospitals and 118 voters are as few as can be settled: 14.2 of 15 million gas.
FLOCK = Size(tasks=2, hospitals=176, voters=236, delegators=1_178, cohorts=2, seats=15)
QUICK = Size(tasks=2, hospitals=6, voters=4, delegators=10, cohorts=1, seats=2)  # all are seated


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
                {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
                for place, (method, params) in enumerate(part)
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


class Memory(threading.Thread):
    """PSS of this process and of all that come from it, in MiB: each kind's peak, and that of their sum."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, float] = defaultdict(float)
        self._over = threading.Event()

    def run(self) -> None:
        this = psutil.Process()
        while not self._over.wait(MEMORY_LOOK):
            found: dict[str, float] = defaultdict(float)
            for process in (this, *this.children(recursive=True)):
                try:
                    found[_kind_of(process, this.pid)] += process.memory_full_info().pss / MIB
                except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                    continue
            found["all"] = sum(found.values())
            for kind, mib in found.items():
                self.peaks[kind] = max(self.peaks[kind], mib)

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def _kind_of(process: psutil.Process, this: int) -> str:
    if process.pid == this:
        return "this benchmark"
    words = process.cmdline()
    named = " ".join(words)
    if "anvil" in process.name():
        return "chain (anvil)"
    if "ClientAppActor" in named:
        return "hospitals (ray's actors)"
    if "network_parts" in named:
        kinds = {"join": "hospitals that join", "judge": "voters", "simulate": "aggregators and Flower's engine"}
        return next(kinds[word] for word in words if word in kinds)
    return "cell proofs" if "cell_proofs" in named else "ray itself"


class Watch(threading.Thread):
    """When each task came to each phase, in seconds since `started`."""

    def __init__(self, ledger: Ledger, tasks: Sequence[int], started: float) -> None:
        super().__init__(daemon=True)
        self._ledger, self._tasks, self._beginning = ledger, tasks, started
        self.seen: dict[int, list[tuple[int, Phase, float]]] = {task: [] for task in tasks}
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(network_parts.LOOK):
            for task in self._tasks:
                self._note(task, self._ledger.state(task))

    def _note(self, task: int, state: TaskState) -> None:
        seen = self.seen[task]
        if seen and seen[-1][:2] == (state.round, state.phase):
            return
        at = time.monotonic() - self._beginning
        seen.append((state.round, state.phase, at))
        say(f"{at:6.0f} s  task {task}, round {state.round}: {state.phase.name.lower()}")

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def spans(self) -> list[dict[str, Any]]:
        """Of rounds alone: joining is the same for all."""
        return [
            {"task": task, "round": round_, "phase": PHASES[phase], "from_s": round(at, 1), "to_s": round(end, 1)}
            for task, seen in self.seen.items()
            for (round_, phase, at), (_, _, end) in pairwise(seen)
            if phase is not Phase.JOINING
        ]


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
            self.tasks.append(self._task(spec, aggregator, hospitals, voters, part, authority))
        self.spec = spec
        self.plan = Plan(str(home), node.url, spec.money.voter_bond, self.tasks)

    def _party(self, role: str, index: int) -> Party:
        return Party(role, Account.from_key(secrets.token_bytes(32)), self.home / "nodes" / f"{role}-{index + 1}")

    @property
    def parties(self) -> list[Party]:
        return [self.operator, *self.aggregators, *self.hospitals, *self.voters, *self.delegators]

    def _fund(self) -> None:
        self.unsigned.ask([("anvil_setBalance", [party.address, ETHER]) for party in self.parties])
        transfer = self.ledger._token.functions.transfer
        pools = self.size.tasks * WEALTH * 4
        self.unsigned.carry_out(
            [
                (self.treasury.address, transfer(one.address, pools if one is self.operator else WEALTH))
                for one in self.parties
            ]
        )

    def _task(
        self,
        spec: TaskSpec,
        aggregator: Party,
        hospitals: Sequence[Party],
        voters: Sequence[Party],
        data: DemoData,
        authority: bytes,
    ) -> TaskPlan:
        """Proposed, with the homes of all its parties, and the hospitals' yes."""
        digest = self.store.put_file(tomli_w.dumps(spec.model_dump(mode="json", exclude_none=True)).encode())
        operator = Ledger(Connection(self.node.url, self.operator.account), self.ledger.deployment)
        number = operator.propose(task_params(spec, digest, aggregator.address))
        settings = {
            "chain_url": self.node.url,
            "deployment": str(self.home / "deployment.json"),
            "artifacts": str(self.home / "artifacts"),
        }
        policy = {"operators": [self.operator.address], "models": [spec.model.name]}
        approval = Approval(
            place=self.ledger.place(number),
            spec_hash=digest.hex(),
            approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            superlink="127.0.0.1:1",  # nobody asks it
        )
        for party, rows in zip(hospitals, data.hospitals, strict=True):
            _write_key(party)
            file = write_rows(rows, data.schema, party.home / "data")
            make_transport_key(party.home / "transport.key")
            own = policy | {"columns": spec.data.used, "masked_only": True}
            HospitalHome.create(party.home, settings | {"data": file.name, "seed": SEED}, own).approve(
                number, approval, authority
            )
        for party, rows in zip(voters, data.held_out, strict=True):
            _write_key(party)
            file = write_rows(rows, data.schema, party.home / "data")
            VoterHome.create(party.home, settings | {"data": file.name}, policy | {"metrics": [spec.judging.metric]})
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
        """Hospitals and voters become nodes, with the bond of a task at stake."""
        staking, token, money = self.ledger._staking, self.ledger._token.functions, self.spec.money
        bonds = [(one, Role.HOSPITAL, money.hospital_bond * TOKEN) for one in self.hospitals]
        bonds += [(one, Role.VOTER, money.voter_bond * TOKEN) for one in self.voters]
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
        return sum(len(self.ledger.hospitals(task)) + len(self.ledger.voters(task)) for task in numbers)

    def delegate(self) -> None:
        """Each delegator to one node, and so that nodes have about as many each."""
        nodes = [(one.address, Role.HOSPITAL) for one in self.hospitals]
        nodes += [(one.address, Role.VOTER) for one in self.voters]
        staking, token = self.ledger._staking, self.ledger._token
        self.delegations = [
            (delegator.address, *nodes[place % len(nodes)]) for place, delegator in enumerate(self.delegators)
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
        release = self.ledger._tasks.functions.releaseBond
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
        staking = self.ledger._staking.functions
        owners = {"hospital": Role.HOSPITAL, "voter": Role.VOTER, "aggregator": Role.AGGREGATOR}
        places = [(one.role, one.address, one.address, owners[one.role]) for one in self.parties if one.role in owners]
        places += [("delegator", *delegation) for delegation in self.delegations]
        positions = [staking.positionOf(*place[1:]) for place in places]
        found = self.unsigned.ask(
            [("eth_call", [{"to": one.address, "data": one._encode_transaction_data()}, "latest"]) for one in positions]
        )
        claiming = [place for place, words in zip(places, found, strict=True) if int(words[-64:], 16)]
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
    """The demo's task, masked and with canaries, of one training round."""
    return task_spec(data, TaskSettings(rounds=1, cohorts=size.cohorts, seats=size.seats, windows=WINDOWS))


def measure_size(size: Size) -> dict[str, Any]:
    """One round of every task, from empty accounts to claimed rewards."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        LocalNode() as node,
        Unsigned(node) as unsigned,
        Memory() as memory,
    ):
        started = time.monotonic()
        spans: dict[str, tuple[float, float]] = {}

        def done(what: str, since: float) -> float:
            now = time.monotonic() - started
            spans[what] = since, now
            say(f"{now:6.0f} s  {what}: {now - since:.1f} s")
            return now

        home = Path(folder)
        network = Network(size, home, node, unsigned)
        plan_file, program = str(network.plan.write()), network_parts.__file__
        at = done("homes, tokens and tasks", 0.0)
        network.stake()
        at = done("staking", at)
        with ExitStack() as stack:
            for kind in ("join", "judge"):
                children = [
                    stack.enter_context(
                        Child([program, kind, plan_file, str(k), str(WORKERS)], home / f"{kind}-{k}.log")
                    )
                    for k in range(WORKERS)
                ]
                if kind == "join":
                    for child in children:
                        child.wait(PATIENCE)
                    at = done("hospitals join", at)
            while network.joined() < size.hospitals + size.voters:
                if dead := [child for child in children if child._process.poll() is not None]:
                    dead[0].wait(0)
                time.sleep(1.0)
            at = done("voters join", at)
            network.delegate()
            at = done("delegating", at)
            with Watch(network.plan.ledger(), [task.number for task in network.tasks], started) as watch:
                with Child([program, "simulate", plan_file], home / "simulation.log") as simulation:
                    simulation.wait(PATIENCE)
                for child in children:
                    child.wait(60)
            done("rounds, with the engine's start and end", at)
        at = time.monotonic() - started
        _require_settled(network)
        network.leave()
        at = done("leaving", at)
        network.unsigned.ask([("evm_increaseTime", [LOCAL_VESTING]), ("evm_mine", [])])
        claims = network.claim()
        done("claiming", at)
        receipts = list(_transactions(network))
        traffic = json.loads((home / "simulation.json").read_text()).values()
        return _told(size, network, receipts, spans, watch.spans(), claims, list(traffic), dict(memory.peaks))


def _require_settled(network: Network) -> None:
    """Raises RuntimeError unless every hospital is in its task's sum, and the round settled."""
    for task in network.tasks:
        found = network.ledger.round_state(task.number, ROUND)
        if found.outcome is not Outcome.SETTLED or found.survivors.bit_count() != len(task.hospitals):
            raise RuntimeError(f"task {task.number} has no whole round: {found}")


@dataclass(frozen=True)
class Transaction:
    """`kind`: what it is for, or "set-up"."""

    role: str
    kind: str
    calls: tuple[str, ...]
    gas: int
    blobs: int


def _transactions(network: Network) -> Iterator[Transaction]:
    """All that are on chain."""
    names = {
        "0x" + function_abi_to_4byte_selector(entry).hex(): entry["name"]
        for contract in CONTRACT_NAMES
        for entry in contract_artifact(contract).abi
        if entry["type"] == "function"
    }
    roles = {party.address.lower(): party.role for party in network.parties}
    blocks = [hex(number) for number in range(network.ledger.connection.block_number() + 1)]
    receipts = network.unsigned.ask([("eth_getBlockReceipts", [number]) for number in blocks])
    full = [number for number, found in zip(blocks, receipts, strict=True) if found]
    sent = {
        one["hash"]: one
        for block in network.unsigned.ask([("eth_getBlockByNumber", [number, True]) for number in full])
        for one in block["transactions"]
    }
    for receipt in (one for found in receipts for one in found):
        data = sent[receipt["transactionHash"]]["input"]
        calls = (names.get(data[:10], "deploy"),)
        if calls == ("multicall",):
            _, given = network.ledger._tasks.decode_function_input(data)
            calls = tuple(dict.fromkeys(names["0x" + one[:4].hex()] for one in given["data"]))
        if receipt["status"] != "0x1":
            raise RuntimeError(f"a transaction of {calls} was refused on chain")
        role = roles.get(receipt["from"].lower(), "set-up")
        kind = "set-up" if role == "set-up" else next((k for k, of in KINDS.items() if set(of) & set(calls)), "staking")
        blobs = int(receipt.get("blobGasUsed") or "0x0", 16) // 2**17
        yield Transaction(role, kind, calls, int(receipt["gasUsed"], 16), blobs)


def _told(
    size: Size,
    network: Network,
    transactions: Sequence[Transaction],
    spans: dict[str, tuple[float, float]],
    rounds: list[dict[str, Any]],
    claims: dict[str, int],
    traffic: list[dict[str, int]],
    peaks: dict[str, float],
) -> dict[str, Any]:
    counted = [one for one in transactions if one.kind != "set-up"]
    largest = max(counted, key=lambda one: one.gas)
    by_role: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in counted:
        by_role[one.role][one.kind] += one.gas
    counts = Counter(one.role for one in network.parties)
    lasted = defaultdict(list)
    for span in rounds:
        lasted[f"round {span['round']}: {span['phase']}"].append(span["to_s"] - span["from_s"])
    first, last = min(span["from_s"] for span in rounds), max(span["to_s"] for span in rounds)
    return {
        "size": asdict(size),
        "cohort_hospitals": size.hospitals // size.tasks // size.cohorts,
        "parameters": network.spec.parameters,
        "seconds": {
            **{name: round(end - begin, 1) for name, (begin, end) in spans.items()},
            "both rounds of all tasks": round(last - first, 1),
        },
        "phase_seconds_slowest_task": {name: round(max(values), 1) for name, values in lasted.items()},
        "stages": [
            {"name": name, "from_s": round(begin, 1), "to_s": round(end, 1)} for name, (begin, end) in spans.items()
        ],
        "phases": rounds,
        "seats": [_seats(network, task) for task in network.tasks],
        "gas_by_role_and_phase": {role: dict(phases) for role, phases in by_role.items()},
        "gas_of_one": {role: round(sum(phases.values()) / counts[role]) for role, phases in by_role.items()},
        "gas_by_call": _by_call(counted),
        "gas_all": sum(one.gas for one in counted),
        "largest_transaction": {"calls": largest.calls, "role": largest.role, "gas": largest.gas},
        "transaction_gas_limit": TRANSACTION_GAS_LIMIT,
        "transactions": len(counted),
        "transactions_of_setting_up": len(transactions) - len(counted),
        "blobs": sum(one.blobs for one in counted),
        "claims": claims,
        "flower": {
            name: max(one[name] for one in traffic) if name == "largest_reply" else sum(one[name] for one in traffic)
            for name in traffic[0]
        },
        "peak_pss_mib": {kind: round(mib) for kind, mib in sorted(peaks.items(), key=lambda item: -item[1])},
    }


def _seats(network: Network, task: TaskPlan) -> dict[str, int]:
    state = network.ledger.round_state(task.number, ROUND)
    counted = {name: getattr(state, name).bit_count() for name in ("seated", "revealed", "survivors", "committed")}
    return {"task": task.number, **counted}


def _by_call(transactions: Sequence[Transaction]) -> dict[str, dict[str, int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for one in transactions:
        found[" + ".join(one.calls)].append(one.gas)
    return {
        name: {"count": len(gas), "mean": round(sum(gas) / len(gas)), "max": max(gas)}
        for name, gas in sorted(found.items(), key=lambda item: -sum(item[1]))
    }


def measure(quick: bool) -> dict[str, Any]:
    return {"what": __doc__.split("\n\n")[0], **measure_size(QUICK if quick else FLOCK)}


def plot(result: dict[str, Any], folder: Path) -> None:
    draw(result, folder, "network")


def draw(result: dict[str, Any], folder: Path, name: str) -> None:
    """Above the tasks' phases by the clock, below gas by party."""
    drawn, (above, below) = figure(11, 7.5, rows=2)
    size = result["size"]
    tasks = sorted({span["task"] for span in result["phases"]})
    shown: dict[str, Any] = {}
    for stage in result["stages"]:
        if stage["name"] in STAGES:  # of all tasks at once
            _bar(above, stage, STAGES[stage["name"]], range(len(tasks)), shown)
    for span in result["phases"]:
        _bar(above, span, span["phase"], [tasks.index(span["task"])], shown)
    for round_, called in ((0, "statistics round"), (ROUND, "training round")):
        spans = [span for span in result["phases"] if span["round"] == round_ and span["task"] == tasks[0]]
        above.text(spans[0]["from_s"], -0.4, called, va="bottom", fontsize=9)
    above.set_yticks(range(len(tasks)), [f"task {task}" for task in tasks])
    above.invert_yaxis()
    above.set_xlabel("seconds; white: the engine starts, and ends")
    above.legend(shown.values(), shown, ncols=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    above.set_title(
        f"{size['hospitals']:,} hospitals, {size['voters']:,} voters, {size['delegators']:,} delegators in"
        f" {size['tasks']} tasks: one full round",
        loc="left",
        pad=14,
    )
    roles = [
        role for role in ("hospital", "voter", "delegator", "aggregator") if role in result["gas_by_role_and_phase"]
    ]
    legend: dict[str, Any] = {}
    for position, role in enumerate(roles):
        left = 0.0
        for kind, gas in result["gas_by_role_and_phase"][role].items():
            bar = below.barh(position, gas / 1e6, left=left, color=SHADES[kind], height=0.6)
            legend.setdefault(kind, bar)
            left += gas / 1e6
        below.text(left, position, f"  {result['gas_of_one'][role]:,} each", va="center", fontsize=9)
    below.set_yticks(range(len(roles)), [f"{role}s" for role in roles])
    below.invert_yaxis()
    below.margins(x=0.12)
    below.set_xlabel("million gas of all of a role")
    below.legend(legend.values(), legend, ncols=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    below.set_title(f"{result['transactions']:,} transactions, {result['gas_all'] / 1e6:,.0f} million gas", loc="left")
    write_figure(folder, name, drawn)


def _bar(axes: Axes, span: dict[str, Any], kind: str, rows: Sequence[int], legend: dict[str, Any]) -> None:
    width = span["to_s"] - span["from_s"]
    bars = axes.barh(rows, width, left=span["from_s"], color=SHADES[kind], height=0.6)
    legend.setdefault(kind, bars)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    size, largest = result["size"], result["largest_transaction"]
    name = f"{size['hospitals']:,} hospitals, {size['voters']:,} voters, {size['delegators']:,} delegators"
    return [
        (f"{name}: rounds", f"{result['seconds']['both rounds of all tasks']:,.0f} s"),
        (f"{name}: gas", f"{result['gas_all']:,} in {result['transactions']:,} transactions"),
        (f"{name}: largest transaction ({' + '.join(largest['calls'])})", f"{largest['gas']:,}"),
        (f"{name}: memory", f"{result['peak_pss_mib']['all']:,} MiB"),
    ]
