"""Plays the steps of docs/testnet.md, each party by its own commands in processes of its own; counts what they paid.

What a public network does to them is done by whoever plays: blocks every twelve seconds, a base fee that moves, blocks
that are taken back in every phase, a provider between everybody and the chain.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import ckzg
import tomli_w
from consilium_chain.deploying.address_book import SUPPLY, Deployment
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, RoundState, TaskState
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, find_anvil, free_port
from consilium_chain.settlement.accounting import take_stock
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.children import child_environment
from consilium_core.errors import CoreError
from consilium_core.private_files import write_private_file
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.homes import NetworkSettings, approve, make_hospital, make_voter
from consilium_lab.demo.processes import Line, Processes
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_server.certificates import ensure_certificates
from consilium_zk.kzg import setup
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_typing import ABIFunction, HexStr
from eth_utils.abi import function_abi_to_4byte_selector

from rehearsal.drand import OwnDrand, own_drand
from rehearsal.provider import Provider, provider, sender_of, sidecars_of
from rehearsal.settings import testnet

NETWORK = "hoodi"
HOSPITALS, VOTERS = 3, 3
PERIODS = {"unbonding": 36, "vesting": 24}  # seconds
BASE_FEE = 10**9  # wei, of the first block
KEPT_STATES = 2_000  # anvil needs the state before what it takes back
CONFIRMATIONS = 3
FUNDED = 500  # whole tokens, added to the pool while others join
DELEGATED = 2_000
COMMISSION = 5  # percent
PATIENCE = 240.0  # seconds for a process to start and do something, besides the blocks that it waits for
GAS_TO_BURN = 16_500_000
BURN = HexStr("0x5b6127105a1160005700")  # JUMPDEST, and back to it while more than 10,000 gas are left
BLOB_GAS = 131_072
# What each account is given, in ether: docs/testnet.md says it.
ETHER = {"deployer": 5.0, "operator": 1.0, "aggregator": 2.0, "sponsor": 1.0, "voter": 0.5, "delegator": 0.2}
COMMAND = [sys.executable, "-m", "consilium_cli.main"]
# Which calls are of which step, the first that fits.
STEPS = {
    "deploy": ("deploy", "connect"),
    "give out tokens": ("transfer",),
    "propose": ("propose",),
    "add to the pool": ("fund",),
    "take back the rest of the pool": ("claim()",),
    "form cohorts": ("formCohorts",),
    "commit": ("commitUpdates", "commitUpdate"),
    "fix survivors": ("fixSurvivors",),
    "open and settle": ("discloseDecoys", "settle"),
    "publish": ("publish", "sumCommitments", "setDecoys"),
    "draw seats": ("drawSeats",),
    "score": ("commitScores",),
    "stand down": ("standDown",),
    "reveal": ("revealScores",),
    "register": ("register", "registerVoterKey"),
    "join": ("commitHeldOut", "joinAsHospital", "joinAsVoter", "joinAsAggregator"),
    "delegate": ("delegate",),
    "leave": ("releaseBond",),
    "take stake home": ("startUnbonding", "withdraw"),
    "claim": ("claim",),
    "approve": ("approve",),
}


@dataclass(frozen=True)
class Upheaval:
    """What happens as a round comes to a phase: so many blocks are taken back, and what was in them returns or not;
    or the base fee leaps.
    """

    round: int
    phase: Phase
    depth: int
    returning: bool
    leap: bool = False


def plan(rounds: int, depths: Sequence[int]) -> list[Upheaval]:
    """While others join, in every phase of the first two rounds, in the last as the fee leaps, and as the task ends."""
    first = [Phase.COMMITTING, Phase.UPLOADING, Phase.PUBLISHING]
    later = [Phase.FORMING, *first, Phase.DRAWING, Phase.SCORING, Phase.REVEALING]
    places = [(0, Phase.JOINING), *((0, phase) for phase in first), *((1, phase) for phase in later)]
    found = [
        Upheaval(number, phase, depths[at % len(depths)], at % 2 == 1) for at, (number, phase) in enumerate(places)
    ]
    if rounds > 1:
        found.append(Upheaval(rounds, Phase.UPLOADING, depths[-1], returning=True, leap=True))
    # Whoever would settle again has left by then, if pools forget.
    return [*found, Upheaval(rounds, Phase.ENDED, 1, returning=True)]


@dataclass
class Counted:
    """Of one transaction on the chain. `who`: whose step it is, also where a sponsor paid."""

    who: str
    step: str
    gas: int
    wei: int
    blob_gas: int
    blob_wei: int
    failed: bool


@dataclass
class Rehearsal:
    folder: Path
    provider: Provider
    drand: OwnDrand
    processes: Processes
    rounds: int
    block_seconds: int
    windows: Mapping[str, int]
    accounts: dict[str, LocalAccount]
    source: random.Random = field(default_factory=lambda: random.Random(0))
    lines: list[Line] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)
    played: list[dict[str, Any]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    fees: list[tuple[float, float]] = field(default_factory=list)  # seconds since the beginning, gwei
    said: dict[str, str] = field(default_factory=dict)  # by command
    began: float = field(default_factory=time.monotonic)
    deploy_runs: int = 0
    task: int = 0

    # Places

    @property
    def book(self) -> Path:
        return self.folder / "hoodi.json"

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def deployment(self) -> Deployment:
        return Deployment.read(self.book)

    def home(self, name: str) -> Path:
        return self.folder / "nodes" / name

    def settings(self, name: str) -> NetworkSettings:
        return NetworkSettings(self.provider.of(name), self.book, self.artifacts, self.accounts["operator"].address)

    def ledger(self, name: str) -> Ledger:
        return Ledger(Connection(self.provider.of(name), self.accounts[name]), self.deployment, [self.drand.relay])

    @property
    def watcher(self) -> Ledger:
        """Straight to the chain's node, as who plays sees it."""
        return Ledger(Connection(self.provider.upstream), self.deployment)

    @property
    def at(self) -> float:
        return round(time.monotonic() - self.began, 1)

    def names(self, role: str) -> list[str]:
        return [name for name in self.accounts if name.startswith(f"{role}-")]

    # Steps

    def run(self, *arguments: str, code: int | None = 0, timeout: float = 1_200.0) -> subprocess.CompletedProcess[str]:
        """A command, as its user types it."""
        environment = child_environment() | {"CONSILIUM_HOODI_URL": self.provider.of("deployer"), "COLUMNS": "160"}
        done = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, env=environment, timeout=timeout, check=False,
        )  # fmt: skip
        words = " ".join(part for part in arguments if not part.startswith("-"))[:40]
        self.said[words] = done.stdout + done.stderr
        assert code is None or done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def keys(self, name: str) -> list[str]:
        home = self.home(name)
        return ["--keystore", str(home / "key.json"), "--password-file", str(home / "password")]

    def where(self, name: str) -> list[str]:
        return ["--rpc", self.provider.of(name), "--address-book", str(self.book)]

    def deploy(self, upheaval: bool) -> None:
        """With blocks taken back under it; the same command goes on where it was cut off."""
        terms = {
            "chain_id": testnet()["chain_id"], "url_env": "CONSILIUM_HOODI_URL", "blobs": True,
            "confirmations": CONFIRMATIONS, **PERIODS,
            "beacon": {
                "kind": "drand", "lookahead": testnet().network.drand_lookahead_s, "genesis": self.drand.chain.genesis,
                "period": self.drand.chain.period, "public_key": self.drand.public_key,
            },
            "token": {"supply": SUPPLY // TOKEN},
        }  # fmt: skip
        networks = self.folder / "networks.toml"
        networks.write_text(tomli_w.dumps({"networks": {NETWORK: terms}}))
        deploy = ["chain", "deploy", "--network", NETWORK, "--networks", str(networks), *self.keys("deployer")]
        self.run(*deploy, "--dry-run")
        deploy += ["--address-book", str(self.book), "--verification-dir", str(self.folder / "sources"), "--yes"]
        flipped = threading.Thread(target=self._turn_back_deployment) if upheaval else None
        if flipped is not None:
            flipped.start()
        while True:
            self.deploy_runs += 1
            done = self.run(*deploy, code=None)
            if flipped is not None:
                flipped.join()
            if done.returncode == 0:
                break
            assert self.deploy_runs < 4, done.stdout + done.stderr
        assert "deployed and verified" in done.stdout

    def _turn_back_deployment(self) -> None:
        """Once three contracts are there."""
        journal = self.folder / "hoodi.journal.json"
        end = time.monotonic() + PATIENCE + 10 * self.block_seconds
        while time.monotonic() < end:
            steps = json.loads(journal.read_text())["steps"] if journal.exists() else {}
            if len(steps) >= 4:
                gone = self.provider.reorganise(2, True, self.block_seconds, self.source)
                self.played.append(
                    {"round": None, "phase": "deploying", "depth": 2, "returning": True, "gone": len(gone)}
                )
                return
            time.sleep(0.1)

    def fund(self) -> None:
        """Tokens, from the deployer, who has all of them. Ether came from a faucet, before anything else."""
        deployer = self.ledger("deployer")
        transfer, send = deployer.contracts.token.contract.functions.transfer, deployer.connection.transactions.submit
        pending = [
            send(transfer(account.address, (20_000 if name == "operator" else 10_000) * TOKEN))
            for name, account in self.accounts.items()
            if name not in ("deployer", "sponsor", "load")
        ]
        for one in pending:
            deployer.connection.transactions.receipt(one)

    def write_homes(self, raw: bytes) -> None:
        data, spec = deal_wdbc(HOSPITALS, VOTERS, 0), parse_task_spec(raw)
        authority = ensure_certificates(self.home("sponsor") / "tls").authority
        for name, rows in zip(self.names("hospital"), data.hospitals, strict=True):
            more = {
                "sponsor": {"url": f"https://127.0.0.1:{self.sponsor_port}", "ca_certificate": str(authority)},
                "drand_relays": [self.drand.relay],
            }
            self._hospital_homes[name] = make_hospital(
                self.settings(name), self.home(name), self.accounts[name], (rows, data.schema), spec, more
            )
        for name, rows in zip(self.names("voter"), data.held_out, strict=True):
            make_voter(self.settings(name), self.home(name), self.accounts[name], (rows, data.schema), spec)

    def __post_init__(self) -> None:
        self.sponsor_port, self.superlink_port = free_port(), free_port()
        self._hospital_homes: dict[str, Any] = {}
        for name in ("deployer", "operator", "aggregator", "sponsor"):
            home = self.home(name)
            home.mkdir(parents=True, mode=0o700)
            write_private_file(home / "password", "secret\n")
            write_keystore(home / "key.json", self.accounts[name], "secret", LIGHT_SCRYPT_N)

    def task_file(self) -> bytes:
        """Masked, private, with decoys, one cohort. What noise alone does to a score costs nobody anything."""
        spec = task_spec(
            deal_wdbc(HOSPITALS, VOTERS, 0), TaskSettings(self.rounds, 1, VOTERS, self.windows, epsilon=8.0)
        )
        values = spec.model_dump(mode="json", exclude_none=True)
        values["judging"] |= {"accept_floor": -10.0, "harmful_below": -20.0, "tolerance": 10.0, "decoy_margin": 0.2}
        values["money"]["aggregator_bond"] *= 2  # so that the pool can be added to
        return tomli_w.dumps(values).encode()

    def propose(self, raw: bytes) -> None:
        path, aggregator = self.folder / "task.toml", self.accounts["aggregator"].address
        path.write_bytes(raw)
        store = ["--artifacts", str(self.artifacts)]
        self.run("operator", "check", str(path))
        self.run("operator", "propose", str(path), *self.where("operator"), *store, "--dry-run")
        self.run(
            "operator", "propose", str(path), "--aggregator", aggregator, *self.keys("operator"), *store,
            *self.where("operator"), "--yes",
        )  # fmt: skip
        self.task = self.watcher.tasks.count()
        self.run(
            "operator", "fund", str(self.task), str(FUNDED), *self.keys("operator"), *self.where("operator"), "--yes"
        )

    def start_servers(self) -> None:
        common = {"chain_url": "", "deployment": str(self.book), "task": self.task}
        for name, more in (
            (
                "aggregator",
                {
                    "artifacts": str(self.artifacts), "superlink_port": self.superlink_port,
                    "drand_relays": [self.drand.relay],
                },
            ),
            ("sponsor", {"port": self.sponsor_port}),
        ):  # fmt: skip
            home = self.home(name)
            own = common | {
                "home": str(home), "chain_url": self.provider.of(name), "keystore": str(home / "key.json"),
                "password_file": str(home / "password"),
            }  # fmt: skip
            write_private_file(home / "node.toml", tomli_w.dumps(own | more))
        self.processes.start(
            "aggregator", "consilium_cli.main", "server", "run", "--config", str(self.home("aggregator") / "node.toml")
        )
        self.processes.serve(
            "sponsor", "consilium_cli.main", "server", "sponsor", "--config", str(self.home("sponsor") / "node.toml")
        )
        index = {
            "home": str(self.home("index")), "chain_url": self.provider.of("index"), "deployment": str(self.book),
            "artifacts": str(self.artifacts),
        }  # fmt: skip
        write_private_file(self.folder / "index.toml", tomli_w.dumps(index))
        self.processes.serve(
            "index", "consilium_cli.main", "server", "index", "--config", str(self.folder / "index.toml")
        )

    def register_voters(self, bond: int) -> None:
        """All at once, as they would; run again, it does what is missing, and nothing twice."""

        def register(name: str) -> None:
            self.run(
                "voter", "register", "--home", str(self.home(name)), "--stake", str(2 * bond), "--commission",
                str(COMMISSION), "--yes",
            )  # fmt: skip

        with ThreadPoolExecutor() as several:
            list(several.map(register, [*self.names("voter")]))
        register("voter-1")
        for name in self.names("voter"):
            self.processes.start(name, "consilium_cli.main", "voter", "run", "--home", str(self.home(name)))

    def delegate(self) -> None:
        delegator, node = self.ledger("delegator"), self.accounts["voter-1"].address
        staking, token = delegator.contracts.staking.contract.functions, delegator.contracts.token.contract.functions
        delegator.connection.transactions.send(token.approve(self.deployment.staking, DELEGATED * TOKEN))
        delegator.connection.transactions.send(staking.delegate(node, Role.VOTER, DELEGATED * TOKEN))

    def start_hospitals(self) -> None:
        """Once the aggregator has its certificates, as `hospital join` takes them."""
        authority = self.home("aggregator") / "tls" / "ca.crt"
        self.until(authority.exists, "the aggregator's certificates")
        spec_hash = self.watcher.tasks.params(self.task).spec_hash
        self._see_the_doctor()
        for name, home in self._hospital_homes.items():
            approve(home, self.ledger(name), self.task, spec_hash, self.superlink_port, authority)
            self.processes.start(
                name, "consilium_cli.main", "hospital", "run", str(self.task), "--home", str(home.folder)
            )

    def _see_the_doctor(self) -> None:
        """Whose copy compiles to what is on the chain."""
        home = self._hospital_homes["hospital-1"].folder
        for _ in range(5):  # who does not answer within five seconds is a finding, on a busy machine, too
            said = self.run("doctor", "hospital", "--home", str(home), "--json", code=None).stdout
            levels = {one["check"]: one["level"] for one in json.loads(said)["findings"]}
            if (levels["chain"], levels["contracts"]) == ("ok", "ok"):
                return
        raise AssertionError(said)

    # Rounds

    def until(self, look: Any, what: str, patience: float | None = None) -> Any:
        end = time.monotonic() + (PATIENCE + 20 * self.block_seconds if patience is None else patience)
        while not (found := look()):
            assert time.monotonic() < end, f"{what}: not within its time; {self.processes.running()} run"
            self.tend()
            time.sleep(0.3)
        return found

    def tend(self) -> None:
        """As a supervisor does: what ended with an error is started again."""
        self.lines += self.processes.lines()
        for name, code in self.processes.lost().items():
            named = re.search(r"error \((\w+)\)", self.processes.errors_of(name))
            self.restarts[f"{name.partition('-')[0]}: {named[1] if named else code}"] += 1
            assert sum(self.restarts.values()) < 20, self.restarts
            time.sleep(1)
            self.processes.again(name)

    def play(self, upheavals: Sequence[Upheaval], patience: float) -> None:
        """Until the task has ended."""
        ledger, end = self.watcher, time.monotonic() + patience
        waiting = {(one.round, one.phase): one for one in upheavals}
        seen: tuple[int, Phase] | None = None
        block = 0
        while True:
            assert time.monotonic() < end, (seen, self.processes.running(), self.restarts)
            self.tend()
            head = ledger.connection.blocks.head()
            if head is None or head.number == block:
                time.sleep(min(0.25, self.block_seconds / 10))
                continue
            block = head.number
            offer = ledger.connection.fees.offer()
            base_fee = (offer["maxFeePerGas"] - offer["maxPriorityFeePerGas"]) / 2
            self.fees.append((self.at, base_fee / 10**9))
            state = ledger.tasks.state(self.task)
            place = state.round, state.phase
            if place != seen:
                seen = place
                self.spans.append({"round": state.round, "phase": state.phase.name.lower(), "at": self.at})
            due = waiting.get(place)
            if due is not None and self._is_time(ledger, state):
                del waiting[place]
                self._upheave(due)
            elif state.phase is Phase.ENDED:
                return

    @staticmethod
    def _is_time(ledger: Ledger, state: TaskState) -> bool:
        """While others join, once some have."""
        return state.phase is not Phase.JOINING or len(ledger.tasks.hospitals(1)) >= 2

    def _upheave(self, due: Upheaval) -> None:
        if due.leap:
            fee = int(self.provider.ask("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
            self.provider.ask("anvil_setNextBlockBaseFeePerGas", hex(4 * fee + 10**9))
        gone = self.provider.reorganise(due.depth, due.returning, self.block_seconds, self.source)
        self.played.append({
            "round": due.round, "phase": due.phase.name.lower(), "depth": due.depth, "returning": due.returning,
            "leap": due.leap, "gone": len(gone), "at": self.at,
        })  # fmt: skip

    # Home

    def collect(self) -> None:
        """Everybody leaves, and takes home what is theirs."""
        self.until(lambda: not set(self.names("hospital")) & set(self.processes.running()), "the hospitals' farewell")
        ledger = self.watcher
        for name in (*self.names("hospital"), *self.names("voter"), "aggregator"):
            with suppress(CoreError):  # what a reorganisation undid after its node had left, anybody may do
                self.ledger("delegator").staking.release_bond(self.task, self.accounts[name].address)
        self.run("operator", "refund", *self.keys("operator"), *self.where("operator"))
        end = ledger.connection.blocks.now() + PERIODS["vesting"]
        self.until(lambda: ledger.connection.blocks.now() > end, "vesting")
        delegator, node = self.ledger("delegator"), self.accounts["voter-1"].address
        staking = delegator.contracts.staking.contract.functions
        if delegator.staking.claimable(delegator.address, node, Role.VOTER):
            delegator.connection.transactions.send(staking.claim(node, Role.VOTER))
        shares, _, _ = delegator.connection.call(staking.positionOf(delegator.address, node, Role.VOTER))
        delegator.connection.transactions.send(staking.startUnbonding(node, Role.VOTER, shares))
        for name in self.names("voter"):
            self.processes.forget(name)  # as by its owner
            home = ["--home", str(self.home(name))]
            self.run("voter", "claim", *home)
            self.run("voter", "unstake", "1000000", *home, "--yes")
        end = ledger.connection.blocks.now() + PERIODS["unbonding"]
        self.until(lambda: ledger.connection.blocks.now() > end, "unbonding")
        delegator.staking.withdraw([one.request for one in delegator.staking.unbondings(delegator.address)])
        for name in self.names("voter"):
            self.run("voter", "unstake", "--home", str(self.home(name)))

    def verify(self) -> None:
        for number in range(self.rounds + 1):
            said = self.run(
                "verify", str(self.task), str(number), "--artifacts", str(self.artifacts), *self.where("anybody"),
                "--json",
            )  # fmt: skip
            assert json.loads(said.stdout)["holds"]
        self.run("server", "reindex", "--config", str(self.folder / "index.toml"))

    # What it came to

    def counted(self) -> Iterator[Counted]:
        """Every transaction on the chain but the faucet's and the load's."""
        names = {
            "0x" + function_abi_to_4byte_selector(cast(ABIFunction, entry)).hex(): (
                "claim()" if (entry["name"], entry["inputs"]) == ("claim", []) else entry["name"]
            )
            for contract in CONTRACT_NAMES
            for entry in contract_artifact(contract).abi
            if entry["type"] == "function"
        }
        whose = {account.address.lower(): name for name, account in self.accounts.items()}
        ledger = self.watcher
        for number in range(1, ledger.connection.blocks.number() + 1):
            sent = {
                one["hash"]: one for one in self.provider.ask("eth_getBlockByNumber", hex(number), True)["transactions"]
            }
            for receipt in self.provider.ask("eth_getBlockReceipts", hex(number)) or []:
                one = sent[receipt["transactionHash"]]
                who = whose.get(one["from"].lower(), "faucet")
                if who in ("faucet", "load"):
                    continue
                if who == "sponsor" and one["to"]:
                    who = whose.get(one["to"].lower(), who)
                calls = self._calls(ledger, names, one)
                step = next((step for step, of in STEPS.items() if set(of) & set(calls)), " + ".join(calls))
                if len(calls) > 1 and "joinAsHospital" in calls:
                    step = "approve, register, stake and join"
                gas, blob_gas = int(receipt["gasUsed"], 16), int(receipt.get("blobGasUsed") or "0x0", 16)
                yield Counted(
                    who, step, gas, gas * int(receipt["effectiveGasPrice"], 16), blob_gas,
                    blob_gas * int(receipt.get("blobGasPrice") or "0x0", 16), receipt["status"] != "0x1",
                )  # fmt: skip

    @staticmethod
    def _calls(ledger: Ledger, names: Mapping[str, str], sent: Mapping[str, Any]) -> list[str]:
        if not sent.get("to"):
            return ["deploy"]
        name = names.get(sent["input"][:10], "?")
        if name == "multicall":
            _, given = ledger.contracts.tasks.contract.decode_function_input(sent["input"])
            return list(dict.fromkeys(names["0x" + bytes(one[:4]).hex()] for one in given["data"]))
        if name == "execute":
            account = ledger.connection.contract("SponsoredAccount", sent["to"])
            _, given = account.decode_function_input(sent["input"])
            return [names["0x" + bytes(call["data"][:4]).hex()] for call in given["calls"]]
        return [name]

    def books(self) -> dict[str, str]:
        found = take_stock(self.watcher, SUPPLY, [account.address for account in self.accounts.values()])
        parts = ("wallets", "staked", "rewards", "rounding", "pools", "refunds", "sales", "burnt", "difference")
        return {name: str(getattr(found, name)) for name in parts}

    def rounds_over(self) -> list[dict[str, Any]]:
        ledger, found = self.watcher, []
        for number in range(self.rounds + 1):
            state: RoundState = ledger.tasks.round_state(self.task, number)
            slashed = [
                e.values["account"] for e in ledger.logs.of_task("Slashed", self.task) if e.values["round"] == number
            ]
            found.append({
                "round": number, "outcome": state.outcome.name.lower(), "void": state.void_reason.name.lower(),
                "survivors": state.survivors.bit_count(), "revealed": state.revealed.bit_count(),
                "slashed": len(slashed),
            })  # fmt: skip
        return found

    def stuck(self) -> list[str]:
        """Whose next number is not the one that the chain waits for."""
        waiting = []
        for name, account in self.accounts.items():
            if name == "load":
                continue
            on_chain, pending = (
                int(self.provider.ask("eth_getTransactionCount", account.address, which), 16)
                for which in ("latest", "pending")
            )
            if on_chain != pending:
                waiting.append(f"{name}: {on_chain} on the chain, {pending} with those that wait")
        return waiting

    def sidecars(self) -> dict[str, int]:
        """Of all blob transactions that were sent: how they look, every proof of one blob of each checked."""
        found = Counter[str]()
        for signed in self.provider.sent.values():
            if signed[0] != 3:
                continue
            version, blobs, commitments, proofs = sidecars_of(signed)
            assert version == 1
            assert len(proofs) == 128 * len(blobs)
            cells, _ = ckzg.compute_cells_and_kzg_proofs(blobs[0], setup())
            assert ckzg.verify_cell_kzg_proof_batch(
                [commitments[0]] * 128, list(range(128)), list(cells), proofs[:128], setup()
            )
            found["transactions"] += 1
            found["blobs"] += len(blobs)
            found["bytes"] += len(signed)
        return dict(found)

    def traffic(self) -> dict[str, Any]:
        """Of who asked: requests in all, in the busiest second, and a second on average over the seconds with any."""
        found = {}
        for who, seconds in self.provider.seconds.items():
            total, lasted = sum(seconds.values()), max(seconds) - min(seconds) + 1
            found[who] = {
                "requests": total, "seconds": lasted, "most_in_a_second": max(seconds.values()),
                "a_second": round(total / lasted, 2),
                "most_asked": dict(self.provider.asked[who].most_common(4)),
            }  # fmt: skip
        return found

    def sendings(self) -> dict[str, int]:
        """How often a transaction was sent again as it was, and a number was used for several."""
        numbers: dict[tuple[str, int], set[str]] = defaultdict(set)
        for digest, signed in self.provider.sent.items():
            numbers[sender_of(signed), _nonce(signed)].add(digest)
        return {
            "sent": len(self.provider.sent),
            "sent again as they were": sum(self.provider.again.values()),
            "numbers with several transactions": sum(len(found) > 1 for found in numbers.values()),
        }


def _nonce(signed: bytes) -> int:
    import rlp

    fields = rlp.decode(signed[1:])
    if signed[0] == 3:
        fields = fields[0]
    return int.from_bytes(fields[1], "big")


class Load(threading.Thread):
    """A stranger that fills blocks for a while, and leaves them for a while: the base fee rises and falls."""

    def __init__(self, provider: Provider, account: LocalAccount, block_seconds: int) -> None:
        super().__init__(daemon=True)
        self._provider, self._block_seconds, self._over = provider, block_seconds, threading.Event()
        self._account = account
        self.blocks = 0

    def run(self) -> None:
        block, turn = 0, 0
        while not self._over.wait(min(0.3, self._block_seconds / 8)):
            with suppress(Exception):  # what it does is nobody's concern
                latest = int(self._provider.ask("eth_blockNumber"), 16)
                if latest == block:
                    continue
                block, turn = latest, turn + 1
                if turn % 14 < 8:
                    self._fill()
                    self.blocks += 1

    def _fill(self) -> None:
        base = int(self._provider.ask("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
        number = int(self._provider.ask("eth_getTransactionCount", self._account.address, "latest"), 16)
        for more in range(3):
            signed = self._account.sign_transaction({
                "chainId": testnet()["chain_id"], "nonce": number + more, "data": BURN, "value": 0, "gas": GAS_TO_BURN,
                "maxFeePerGas": 3 * base + 10**9, "maxPriorityFeePerGas": 10**9, "type": 2,
            })  # fmt: skip
            with suppress(AssertionError):
                self._provider.ask("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())

    def stop(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def rehearsal(
    folder: Path, rounds: int, block_seconds: int, windows: Mapping[str, int], load: bool
) -> Iterator[Rehearsal]:
    """A chain with everybody's ether on it, and nothing else."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "artifacts").mkdir()
    names = ["deployer", "operator", "aggregator", "sponsor", "delegator", "load"]
    names += [f"hospital-{k + 1}" for k in range(HOSPITALS)] + [f"voter-{k + 1}" for k in range(VOTERS)]
    accounts: dict[str, LocalAccount] = {name: Account.from_key(secrets.token_bytes(32)) for name in names}
    with ExitStack() as stack:
        port = free_port()
        anvil = [
            find_anvil(), "--host", "127.0.0.1", "--port", str(port), "--accounts", "1", "--silent",
            "--chain-id", str(testnet()["chain_id"]), "--hardfork", testnet()["hard_fork"],
            "--gas-limit", str(testnet()["gas_limit"]), "--enable-tx-gas-limit",
            "--block-base-fee-per-gas", str(BASE_FEE), "--block-time", "1", "--prune-history", str(KEPT_STATES),
        ]  # fmt: skip
        chain = subprocess.Popen(anvil, env=child_environment(), stdout=subprocess.DEVNULL, start_new_session=True)
        stack.callback(_end, chain)
        front = stack.enter_context(provider(f"http://127.0.0.1:{port}", testnet().network.logs_at_once_here))
        _wait_for(front)
        faucet = Account.from_key(FAUCET_KEY)
        connection = Connection(front.upstream, faucet)
        for name, account in accounts.items():
            if ether := ETHER.get(name.partition("-")[0]):
                connection.transactions.send_ether(account.address, int(ether * 10**18))
        front.ask("anvil_setBalance", accounts["load"].address, hex(10**24))
        front.ask("evm_setIntervalMining", block_seconds)
        drand = stack.enter_context(own_drand(testnet()["drand_period"]))
        processes = stack.enter_context(Processes(folder / "logs"))
        if load:
            stranger = Load(front, accounts["load"], block_seconds)
            stranger.start()
            stack.callback(stranger.stop)
        yield Rehearsal(folder, front, drand, processes, rounds, block_seconds, windows, accounts)


def _wait_for(front: Provider) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            front.ask("eth_chainId")
            return
        except Exception:
            assert time.monotonic() < end, "the chain did not start"
            time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
