"""How many events of the chain are indexed in a second, into SQLite and into PostgreSQL, from nothing.

Real logs of a local chain: a network of the size that FLock reports (176 training nodes, 236 validators, 1,178
delegators; here one aggregator besides) whose delegators delegate, unbond and claim at random while rewards come in.
All are asked for by JSON-RPC, decoded, and written with what follows from them, in one process; both databases must
hold the same in the end, row for row. Reading and decoding alone is measured besides.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from consilium_chain.deploying.address_book import deploy
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.logs import log_to
from consilium_server.database.engine import open_database, reading
from consilium_server.database.tables import Base
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import differences
from eth_account import Account
from postgres_driver import binaries, running_postgres
from sqlalchemy import func, select

from bench.results_store import COLOURS, figure, say, write_figure

EVENTS, QUICK_EVENTS = 100_000, 3_000
NODES = {Role.HOSPITAL: 176, Role.VOTER: 236, Role.AGGREGATOR: 1}
DELEGATORS, QUICK_DELEGATORS = 1_178, 40
BATCH = 250  # transactions of one request, and of one block
REWARDED = 20  # nodes of one reward
GAS = hex(5_000_000)
WEALTH = 100_000 * TOKEN
SEED = 0


class Crowd:
    """Accounts that act without signing, a block of transactions at a time."""

    def __init__(self, node: LocalNode, quick: bool) -> None:
        faucet = Connection(node.url, Account.from_key(FAUCET_KEY))
        self.ledger = Ledger(faucet, deploy(faucet))
        self._client, self._url = httpx.Client(timeout=120), node.url
        self._random = random.Random(SEED)
        self._staking, self._token = (
            self.ledger.contracts.staking.contract.functions,
            self.ledger.contracts.token.contract.functions,
        )
        self._waiting: list[dict[str, Any]] = []
        self._nonces: dict[str, int] = {}
        shrunk = 20 if quick else 1
        self.nodes = [(self._account(), role) for role, count in NODES.items() for _ in range(-(-count // shrunk))]
        self.delegators = [self._account() for _ in range(QUICK_DELEGATORS if quick else DELEGATORS)]
        self.tasks = self.ledger.deployment.tasks
        self._batched([("anvil_autoImpersonateAccount", [True]), ("evm_setAutomine", [False])])
        self._batched([("evm_setIntervalMining", [0]), ("evm_setBlockGasLimit", [hex(10**10)])])
        self._start()

    def _account(self) -> str:
        return str(Account.from_key(self._random.randbytes(32)).address)

    def _batched(self, calls: Sequence[tuple[str, list[Any]]]) -> None:
        requests = [
            {"jsonrpc": "2.0", "id": index, "method": method, "params": params}
            for index, (method, params) in enumerate(calls)
        ]
        for answer in self._client.post(self._url, json=requests).raise_for_status().json():
            if "error" in answer:
                raise RuntimeError(f"the local chain refused: {answer['error']}")

    def _send(self, sender: str, function: Any) -> None:
        data = function._encode_transaction_data()
        if sender not in self._nonces:
            self._nonces[sender] = self.ledger.connection.web3.eth.get_transaction_count(sender)  # type: ignore[arg-type]
        # Named, for the chain carries out the calls of a request in any order.
        nonce, self._nonces[sender] = hex(self._nonces[sender]), self._nonces[sender] + 1
        self._waiting.append({"from": sender, "to": function.address, "data": data, "gas": GAS, "nonce": nonce})
        if len(self._waiting) == BATCH:
            self.mine()

    def mine(self) -> None:
        """A block, a second after the last one."""
        sent = [("eth_sendTransaction", [one]) for one in self._waiting]
        if sent:
            self._batched(sent)
        self._batched([("evm_increaseTime", [1])])
        self._batched([("evm_mine", [])])
        self._waiting = []

    def _start(self) -> None:
        holders = [*self.delegators, *(node for node, _ in self.nodes), self.tasks]
        for start in range(0, len(holders), BATCH):
            part = holders[start : start + BATCH]
            self._batched([("anvil_setBalance", [account, hex(10**22)]) for account in part])
        treasury = self.ledger.address
        for account in holders:
            self._send(treasury, self._token.transfer(account, WEALTH))
        self.mine()
        for account in holders:
            self._send(account, self._token.approve(self.ledger.deployment.staking, 2**200))
        self.mine()
        for node, role in self.nodes:
            self._send(node, self._staking.register(role, 500, TOKEN))
        self.mine()
        self.stakes: dict[str, list[tuple[str, Role]]] = {account: [] for account in self.delegators}

    def act(self) -> None:
        """One transaction: two delegations for each claim and each unbonding, and rewards at times."""
        choice, account = self._random.random(), self._random.choice(self.delegators)
        held = self.stakes[account]
        if choice < 0.02:
            nodes = self._random.sample(self.nodes, min(REWARDED, len(self.nodes)))
            self._send(self.tasks, self._staking.reward([(node, role, 10**15) for node, role in nodes]))
        elif choice < 0.5 or not held:
            node = self._random.choice(self.nodes)
            held.append(node)
            self._send(account, self._staking.delegate(*node, self._random.randint(1, TOKEN)))
        elif choice < 0.75:
            self._send(account, self._staking.startUnbonding(*self._random.choice(held), 1))
        else:
            self._send(account, self._staking.claim(*self._random.choice(held)))

    def act_until(self, events: int) -> int:
        """Returns how many events there are."""
        found, first = 0, self.ledger.deployment.first_block
        while found < events:
            for _ in range(BATCH * 8):
                self.act()
            last = self.ledger.connection.blocks.number()
            found += len(list(self.ledger.logs.between(first, last)))
            first = last + 1
        self.mine()
        return len(list(self.ledger.logs.between(first))) + found


def measure(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, LocalNode() as node:
        started = time.monotonic()
        crowd = Crowd(node, quick)
        events = crowd.act_until(QUICK_EVENTS if quick else EVENTS)
        made = time.monotonic() - started
        say(f"{events:,} events made in {made:.0f} s")
        reader = Ledger(Connection(node.url), crowd.ledger.deployment)
        blocks = reader.connection.blocks.number()
        started = time.monotonic()
        for first in range(0, blocks + 1, 100):
            list(reader.logs.between(first, min(first + 99, blocks)))
        rates = {"read and decode alone": events / (time.monotonic() - started)}
        with _databases(Path(folder)) as urls:
            engines = {name: open_database(url) for name, url in urls.items()}
            for name, engine in engines.items():
                say(f"into {name}")
                started = time.monotonic()
                with log_to(lambda event, fields: None):
                    Indexer(reader, engine).catch_up()
                rates[name] = events / (time.monotonic() - started)
            with reading(engines["SQLite"]) as connection:
                rows = {
                    table.name: int(connection.scalar(select(func.count()).select_from(table)) or 0)
                    for table in Base.metadata.sorted_tables
                }
                differing = None
                if "PostgreSQL" in engines:
                    with reading(engines["PostgreSQL"]) as other:
                        differing = sum(1 for _ in differences(connection, other, blocks))
            for engine in engines.values():
                engine.dispose()
        size = (Path(folder) / "index.sqlite").stat().st_size
    return {
        "what": "events of Staking indexed from nothing, one process, chain node and database on the same machine",
        "events": events,
        "blocks": blocks,
        "nodes": len(crowd.nodes),
        "delegators": len(crowd.delegators),
        "events_per_s": {name: round(rate) for name, rate in rates.items()},
        "rows": {name: count for name, count in rows.items() if count},
        "rows_that_differ_between_databases": differing,
        "sqlite_bytes": size,
        "making_the_events_s": round(made, 1),
    }


@contextmanager
def _databases(folder: Path) -> Iterator[dict[str, str]]:
    urls = {"SQLite": f"sqlite:///{folder / 'index.sqlite'}"}
    if binaries() is None:
        say("PostgreSQL is not installed: left out")
        yield urls
        return
    with running_postgres() as server:
        yield urls | {"PostgreSQL": server.database()}


def plot(result: dict[str, Any], folder: Path) -> None:
    rates = result["events_per_s"]
    drawn, (axes,) = figure(8, 0.6 * len(rates) + 1)
    for position, (name, rate) in enumerate(reversed(rates.items())):
        shade = COLOURS["plain"] if name.startswith("read") else COLOURS["committing"]
        axes.barh(position, rate, color=shade, height=0.7)
        axes.text(rate, position, f"  {rate:,}", va="center", fontsize=9)
    axes.set_yticks(range(len(rates)), list(reversed(rates)))
    axes.margins(x=0.1)
    axes.set_xlabel("events a second")
    axes.set_title(f"Indexing {result['events']:,} events of {result['delegators']:,} delegators", loc="left")
    write_figure(folder, "indexing", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f"events a second: {name}", f"{rate:,}") for name, rate in result["events_per_s"].items()]
