"""Sells the finished model's predictions to several buyers, kills the server meanwhile, and counts everything.

Each request has one row that no hospital trained on. Buyers ask one after another, so a latency has no queue in it.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.shares import WHOLE
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.money_spec import TOKEN
from consilium_operators.download import download
from consilium_operators.errors import OperatorError
from consilium_operators.market.buyer import Buyer
from consilium_operators.model_folder import SavedModel, read_model
from consilium_operators.onnx_file import onnx_of, session_of
from consilium_operators.prediction import columns
from consilium_operators.selling import mint, shares_of
from eth_account import Account

from consilium_lab.demo.homes import write_key
from consilium_lab.demo.network import SOLD, Network, Party, Role
from consilium_lab.demo.processes import Processes
from consilium_lab.errors import LabError

SALE = {"server_percent": 20, "operator_percent": 10, "trainers_percent": 55, "voters_percent": 15}
PRICE = TOKEN // 100
BUYERS, KILLS = 4, 2
GAS_MONEY = 10**18
PATIENCE = 120.0  # seconds for a server to start, and to redeem at its end
SERVER = "prediction-server"


@dataclass
class _Server:
    network: Network
    processes: Processes
    party: Party
    model: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        network, home = self.network, self.party.home
        self.processes.start(
            SERVER, "consilium_cli.main", "serve", str(network.task), str(self.model), "--price", "0.01",
            "--port", str(self.port), "--book", str(home / "sales.sqlite"), "--rpc", network.node.url,
            "--address-book", str(network.options.output / "deployment.json"), "--keystore", str(home / "key.json"),
            "--password-file", str(home / "password"), "--redeem-above", "1000000",
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                httpx.get(self.url, timeout=5)
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        code = self.processes.ended_badly().get(SERVER, 0)
        error, logs = self.processes.errors_of(SERVER), network.options.output / "logs"
        raise LabError("DemoFailed", process=SERVER, code=code, error=error, logs=logs)

    def restart(self) -> None:
        self.processes.forget(SERVER)
        self.start()


def sell(network: Network, processes: Processes, count: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The report's `sales`, ready for JSON. Amounts are decimal strings of the smallest unit.

    `difference`: between all that buyers paid and all that server and holders got. `lost`: requests without an answer.
    `paid_twice`: the server's book beyond the price of all answers.
    """
    ledger, output = network.treasury, network.options.output
    mint(ledger, network.store, network.task)
    model = output / SOLD
    download(ledger, network.store, network.task, model)
    saved = read_model(model)
    party = Party(SERVER, Role.OPERATOR, Account.from_key(secrets.token_bytes(32)), output / "nodes" / SERVER)
    write_key(party.home, party.account)
    ledger.connection.transactions.send_ether(party.address, GAS_MONEY)
    server = _Server(network, processes, party, model, free_port())
    say(f"  selling {count:,} predictions for {PRICE / TOKEN:g} tokens each; the server is killed {KILLS} times")
    server.start()
    paid_before = ledger.shares.paid(network.task)
    first_block = ledger.connection.blocks.number() + 1
    buyers = [_buyer(network, server.url, PRICE * (count // BUYERS + 1)) for _ in range(BUYERS)]
    bodies = [json.dumps({"rows": [row]}).encode() for row in _rows(network, saved)]
    seconds, answers = _buy(buyers, bodies, count, server)
    book = sum(buyer.account.sold for buyer in buyers)
    accounts = [buyer.address for buyer in buyers]
    for buyer in buyers:
        buyer.__exit__()
    processes.end(SERVER, PATIENCE)
    redeemed = sum(ledger.channels.of(network.task, party.address, one).redeemed for one in accounts)
    holders = ledger.shares.paid(network.task) - paid_before
    fee = ledger.token.balance(party.address)
    shares = shares_of(ledger, network.task)
    gas = _gas(ledger, first_block)
    return {
        "sold": count,
        "paid": str(redeemed),
        "price": str(PRICE),
        "server": str(fee),
        "holders": str(holders),
        "lost": count - answers,
        "paid_twice": str(book - PRICE * answers),
        "unredeemed": str(book - redeemed),
        "difference": str(redeemed - fee - holders),
        "parts_missing": str(WHOLE - sum(one.parts for one in shares.holdings)),
        "kills": KILLS,
        "gas": gas,
        "gas_per_prediction": round(sum(gas.values()) / count, 2),
        "p50_ms": _percentile(seconds, 50),
        "p95_ms": _percentile(seconds, 95),
        "onnxruntime_p95_ms": _plain(saved, bodies),
    }  # fmt: skip


def faults_of_sales(sales: dict[str, Any] | None) -> list[str]:
    """Words for each amount that must be zero, and is not. `sales`: None if nothing was for sale."""
    if sales is None:
        return []
    zero = ("lost", "paid_twice", "unredeemed", "difference", "parts_missing")
    return [f"sales: {name.replace('_', ' ')} is {sales[name]}" for name in zero if int(sales[name]) != 0]


def _buyer(network: Network, url: str, deposit: int) -> Buyer:
    """A fresh account with tokens, and without ether."""
    account = Account.from_key(secrets.token_bytes(32))
    deposit = max(deposit, TOKEN)
    network.treasury.token.transfer(account.address, deposit)
    buyer = Buyer(Ledger(Connection(network.node.url, account), network.deployment), url, retry_seconds=PATIENCE)
    buyer.deposit(deposit)
    return buyer


def _rows(network: Network, saved: SavedModel) -> Iterator[dict[str, Any]]:
    """All held-out rows, as buyers send them."""
    names = columns(saved.spec.data)
    for frame in network.data.held_out:
        for row in frame[names].astype(object).where(frame[names].notna(), None).to_dict("records"):
            yield {name: value if value is None else str(value) for name, value in row.items()}


def _buy(buyers: Sequence[Buyer], bodies: Sequence[bytes], count: int, server: _Server) -> tuple[list[float], int]:
    """Seconds of each request that no kill delayed, and the number of answers. The kills come while requests run."""
    kills = {count * (at + 1) // (KILLS + 1) for at in range(KILLS)}
    seconds, answers = [], 0
    restarting: threading.Thread | None = None
    for index, (buyer, body) in enumerate(islice(zip(cycle(buyers), cycle(bodies), strict=False), count)):
        if index in kills:
            restarting = threading.Thread(target=server.restart)
            restarting.start()
        began = time.perf_counter()
        answers += len(buyer.predict(body, 1).predictions)
        if restarting is None or not restarting.is_alive():
            seconds.append(time.perf_counter() - began)
    if restarting is not None:
        restarting.join()
    return seconds, answers


def _gas(ledger: Ledger, first: int) -> dict[str, int]:
    """Gas of the deposits, and of the redemptions. Parts were minted before."""
    connection, found = ledger.connection, {"Deposited": 0, "Redeemed": 0}
    contract, last = ledger.contracts.model_shares.contract, connection.blocks.number()
    for name in found:
        sent = {event.transaction for event in connection.logs.events(contract, first, last, name)}
        found[name] = sum(connection.transactions.gas_of(transaction) for transaction in sent)
    return {"deposits": found["Deposited"], "redemptions": found["Redeemed"]}


def _percentile(seconds: Sequence[float], percent: int) -> float:
    return round(float(np.percentile(seconds, percent)) * 1_000, 2)


def _plain(saved: SavedModel, bodies: Sequence[bytes]) -> float | None:
    """The p95 of onnxruntime alone on one core, in milliseconds; None without the packages, or for such a model."""
    try:
        raw, _ = onnx_of(saved)
    except OperatorError:
        return None
    session = session_of(raw, threads=1)
    (name,) = (one.name for one in session.get_inputs())
    names = columns(saved.spec.data)
    seconds = []
    for body in bodies:
        (row,) = json.loads(body)["rows"]
        values = np.array([[float("nan") if row[one] is None else float(row[one]) for one in names]])
        began = time.perf_counter()
        session.run(None, {name: values})
        seconds.append(time.perf_counter() - began)
    return _percentile(seconds, 95)
