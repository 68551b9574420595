"""Sales of models on a real chain, in the index and the API: equal to the contract's state, whatever strangers emit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.shares import WHOLE
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.api.app import build, make_service
from consilium_server.api.reading import open_engine
from consilium_server.config import ApiSettings
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from ensemble_driver import minted
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from test_shares import SALE, Ended, ended
from voter_driver import TASK

PRIVACY = "[privacy]\nepsilon = 6\nmax_grad_norm = 0.5\n"


@dataclass
class Market:
    sold: Ended
    url: str
    engine: Engine

    @property
    def ledger(self) -> Ledger:
        return self.sold.chain.treasury

    @property
    def task(self) -> int:
        return self.sold.task.task

    def call(self, name: str, *arguments: Any, by: Ledger | None = None) -> None:
        (by or self.ledger).contracts.model_shares.send(name, *arguments)

    def indexed(self) -> Indexer:
        reader = Ledger(Connection(self.sold.chain.node.url), self.sold.chain.deployment)
        found = Indexer(reader, self.engine, self.sold.task.store)
        found.catch_up()
        return found


@pytest.fixture
def market(local_chain: LocalChain, tmp_path: Path, database_url: str) -> Iterator[Market]:
    sold = ended(local_chain, tmp_path, TASK + PRIVACY + SALE)
    sold.shares.mint(sold.task.task, artifacts=[sold.artifacts])
    engine = open_engine(database_url)
    yield Market(sold, database_url, engine)
    engine.dispose()


def test_sales_of_the_index_are_the_contracts_own(market: Market, tmp_path: Path) -> None:
    """With a transfer of parts between two payments, offers, a channel, and events with numbers out of range."""
    task, ledger, shares = market.task, market.ledger, market.ledger.shares
    buyer, server = market.sold.chain.funded(), market.sold.chain.funded()
    channels = server.channels
    channels.offer(task, 4, f"https://predictions.example/{task}")
    shares.pay(task, 100 * TOKEN)
    market.call("safeTransferFrom", ledger.address, buyer.address, task, WHOLE // 16, b"")
    market.call("safeTransferFrom", ledger.address, ledger.address, task, 5, b"")
    market.call("safeBatchTransferFrom", ledger.address, buyer.address, [task, 2**255], [7, 0], b"")
    shares.pay(task, 1_000_003)
    shares.claim(task)
    buyer.channels.deposit(task, server.address, 1_000)
    voucher = buyer.channels.voucher(task, server.address, 402, 2**40)
    channels.redeem([voucher])
    _strangers(market)

    indexer = market.indexed()
    assert reindex(indexer._ledger, market.engine, market.sold.task.store, tmp_path, replace=False) > 50
    with asked(market, tmp_path) as client:
        found = client.get(f"/v1/models/{task}").json()
        assert [(one["server"], one["price"], one["url"]) for one in found["offers"]] == [
            (ledger.address, "2", ""), (server.address, "4", f"https://predictions.example/{task}"),
        ]  # fmt: skip
        assert (found["sold"], found["predictions"], found["sales"], found["buyers"]) == ("402", 100, 1, 1)
        assert found["paid"] == str(shares.paid(task))
        assert (found["is_minted"], found["hospitals"], found["epsilon"]) == (True, 1, 6.0)
        held = {one["holder"]: one for one in found["holdings"]}
        assert sum(int(one["parts"]) for one in held.values()) == WHOLE
        assert {one["role"] for one in held.values()} == {"operator", "hospital", "voter", "other"}
        for holder, one in held.items():
            assert int(one["parts"]) == shares.parts(task, holder)
            assert int(one["claimable"]) == shares.claimable(task, holder)
        assert int(held[ledger.address]["claimed"]) > 0
        assert int(held[buyer.address]["earned"]) == shares.claimable(task, buyer.address) > 0
        assert found["days"][-1]["paid"] == found["paid"]

        listed = client.get("/v1/models", params={"q": f"predictions.example/{task}"}).json()["items"]
        assert [one["task"] for one in listed] == [task]
        assert client.get("/v1/models", params={"q": "nowhere.example"}).json()["items"] == []
        assert client.get("/v1/models", params={"q": server.address.lower()}).json()["items"] == listed
        rows = list(csv.DictReader(io.StringIO(client.get("/v1/models.csv").text)))
        assert next(one for one in rows if one["task"] == str(task))["predictions"] == "100"
        reply = client.get(f"/v1/models/{task}/earnings.csv")
        earned = {one["holder"]: one for one in csv.DictReader(io.StringIO(reply.text))}
        assert set(earned) == set(held)
        again = client.get(f"/v1/models/{task}/earnings.csv", headers={"If-None-Match": reply.headers["etag"]})
        assert again.status_code == 304
        assert client.get("/v1/models/999999").status_code == 404


def asked(market: Market, folder: Path) -> TestClient:
    settings = ApiSettings.model_validate(
        {
            "home": folder / "home", "database_url": market.url, "artifacts": market.sold.artifacts,
            "deployment": folder / "book.json", "origin": "https://consilium.example",
        }
    )  # fmt: skip
    return TestClient(build(make_service(settings, market.engine)), base_url="https://consilium.example")


def test_a_sale_of_an_ensemble_counts_once_and_pays_each_member(market: Market, tmp_path: Path) -> None:
    """A sale of a member before it, and one after it, in one block: only those are the member's predictions."""
    chain, ledger, first = market.sold.chain, market.ledger, market.task
    second = minted(chain, tmp_path / "second", 7, 10_000).task  # the first one's gain is 40,000
    number = ledger.ensembles.form([first, second])
    server, buyer = chain.funded(), chain.funded()
    for task in (first, number):
        server.channels.offer(task, 10, f"https://ensembles.example/{task}")
        buyer.channels.deposit(task, server.address, 10_000)
    for task, amount in ((first, 100), (number, 1_003), (first, 150), (number, 1_013)):
        server.channels.redeem([buyer.channels.voucher(task, server.address, amount, 2**40)])
    indexer = market.indexed()
    reindex(indexer._ledger, market.engine, market.sold.task.store, tmp_path, replace=False)
    with asked(market, tmp_path) as client:
        found = client.get(f"/v1/ensembles/{number}").json()
        assert [(one["task"], one["gain"], one["weight"]) for one in found["members"]] == [
            (first, "40000", 800_000), (second, "10000", 200_000),
        ]  # fmt: skip
        assert (found["sold"], found["sales"], found["predictions"], found["buyers"]) == ("1013", 2, 101, 1)
        assert [(one["server"], one["price"]) for one in found["offers"]] == [(server.address, "10")]
        assert [(one["sold"], one["predictions"]) for one in found["days"]][-1] == ("1013", 101)
        for task in (first, second):
            of_member = client.get("/v1/ensembles", params={"member": task}).json()["items"]
            assert [one["number"] for one in of_member] == [number]
        own, other = (client.get(f"/v1/models/{task}").json() for task in (first, second))
        assert (own["sold"], own["predictions"], own["sales"], own["buyers"]) == (str(150 + 802 + 8), 15, 4, 1)
        assert (other["sold"], other["predictions"], other["sales"]) == (str(201 + 2), 0, 2)
        for task, shown in ((first, own), (second, other)):
            assert shown["paid"] == str(ledger.shares.paid(task))
            for one in shown["holdings"]:
                assert int(one["claimable"]) == ledger.shares.claimable(task, one["holder"])
        for q in (str(number), f"#{number}", str(second), f"ensembles.example/{number}", "fall ill"):
            listed = client.get("/v1/ensembles", params={"q": q}).json()["items"]
            assert number in [one["number"] for one in listed], q
        assert client.get("/v1/ensembles", params={"q": "nowhere.example"}).json()["items"] == []
        rows = list(csv.DictReader(io.StringIO(client.get("/v1/ensembles.csv").text)))
        row = next(one for one in rows if one["number"] == str(number))
        assert (row["members"], row["weights"], row["predictions"]) == (f"{first} {second}", "800000 200000", "101")
        assert client.get(f"/v1/ensembles/{number + 2**20}").status_code == 404
        assert client.get(f"/v1/ensembles/{first}").status_code == 404
        assert client.get(f"/v1/models/{number}").status_code == 404


def _strangers(market: Market) -> None:
    """Events that anybody can cause: numbers beyond any column, prices nobody can pay, and addresses that are none."""
    task, stranger = market.task, market.sold.chain.funded()
    market.call("close", 2**255, stranger.address, by=stranger)
    market.call("safeTransferFrom", stranger.address, market.ledger.address, 2**256 - 1, 0, b"", by=stranger)
    market.call("offer", task, 2**256 - 1, "https://dear.example", by=stranger)
    for url in ("javascript:alert(1)", "https://a@b.example", "http://x\0y", "https://example\u202e", "//no.scheme"):
        market.call("offer", task, 2, url)
    # A text that is not UTF-8, which no library writes: the last two bytes of the URL's words are replaced.
    shares = market.ledger.contracts.model_shares
    data = shares.encode("offer", task, 2, "https://ab.example").replace(b"ab".hex(), "fffe")
    sender = {"from": market.ledger.address, "to": str(shares.contract.address), "data": data}
    market.sold.chain.rpc("anvil_impersonateAccount", market.ledger.address)
    market.sold.chain.rpc("eth_sendTransaction", {**sender, "gas": hex(1_000_000)})
    market.sold.chain.mine(1)
