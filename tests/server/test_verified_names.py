"""Names that another side verifies, with hosts and contracts that lie, are silent, or are not theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.ens import UNIVERSAL_RESOLVER, EnsNames
from consilium_chain.ledger.structs import Role
from consilium_chain.profiles import WELL_KNOWN, Profile, sign_profile
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.local_node import LocalNode
from consilium_core.notify import STRANGERS
from consilium_server.config import NameSettings
from consilium_server.database.engine import open_database
from consilium_server.verified_names import (
    AT_ONCE,
    HELD,
    KEPT,
    NOT_VERIFIED,
    VERIFIED,
    NameChecks,
    checks_of,
)
from ens.abis import UNIVERSAL_RESOLVER as RESOLVER_ABI  # type: ignore[import-untyped]
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak
from fastapi.testclient import TestClient
from indexed_network import CHAIN_ID, OPERATOR, TASK_FILE, IndexedNetwork, app_of
from told_servers import HOOK, OTHER, Hooks, hooks
from web3 import Web3

NODE, TWIN = Account.create(), Account.create()
SITE = f"https://{HOOK}/about"


class World:
    """Two nodes, their API, a host, and a worker that asks it. `at`: the worker's clock."""

    def __init__(self, folder: Path, url: str, servers: ExitStack) -> None:
        self.network = IndexedNetwork(folder, url)
        servers.callback(self.network.engine.dispose)
        with self.network.mined():
            self.network.propose(1, TASK_FILE)
        with self.network.mined():
            for account in (NODE, TWIN):
                self.network.register(account.address, Role.HOSPITAL)
        self.host: Hooks = servers.enter_context(hooks(folder))
        self.engine = open_database(self.network.url)
        servers.callback(self.engine.dispose)
        self.checks = NameChecks(self.engine, self.host.reach(), None, self.host.port)
        limits = {"files_per_hour": 10_000}
        self.client = servers.enter_context(TestClient(app_of(self.network, limits=limits)))
        self.at, self.signed_at = time.time(), int(time.time()) - 1_000

    def publish(self, account: Any = NODE, site: str = SITE, name: str = "Klinikum") -> None:
        self.signed_at += 1
        staking = self.network.deployment.staking
        profile = sign_profile(Profile(name=name, site=site), account, CHAIN_ID, staking, self.signed_at)
        answer = self.client.put(f"/v1/profiles/{account.address}", json=profile.model_dump())
        assert answer.status_code == 200, answer.text

    def serve(self, file: str) -> None:
        self.host.pages[WELL_KNOWN] = file.encode()

    def turn(self, seconds: float = 0.0) -> None:
        self.at += seconds
        self.checks.run(self.at)

    def names(self, *accounts: Any) -> list[tuple[str, str, str]]:
        given = [account.address for account in accounts or (NODE, TWIN)]
        found = self.client.get("/v1/profiles", params={"account": given}).json()["names"]
        return [(one["account"], one["kind"], one["name"]) for one in found]


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[World]:
    with ExitStack() as servers:
        yield World(tmp_path, database_url, servers)


NODES_NAME = [(NODE.address, "domain", HOOK)]


# Domains


def test_a_host_confirms_the_accounts_of_its_file_and_no_other(world: World) -> None:
    world.publish()
    world.publish(TWIN)
    world.serve(f"# our nodes\r\n{NODE.address.upper().replace('0X', '0x')}\r\n")
    world.turn()
    assert world.names() == NODES_NAME
    assert {path for _, path in world.host.asked} == {WELL_KNOWN}
    found = world.client.get("/v1/search", params={"q": HOOK[:8]}).json()["items"]
    assert [(one["account"], one["name"]) for one in found] == [(NODE.address, HOOK)]


@pytest.mark.parametrize(
    "file",
    [
        "", "0x", NODE.address + "0", "0" + NODE.address, f" {NODE.address}", NODE.address[:-1] + "g",
        "<html>" + NODE.address + "</html>", "#\n" * 32_768 + NODE.address,
    ],
    ids=["empty", "short", "longer", "before", "indented", "no hexadecimal", "a page", "beyond the limit"],
)  # fmt: skip
def test_a_file_without_the_address_on_a_line_confirms_nothing(world: World, file: str) -> None:
    world.publish()
    world.serve(file)
    world.turn()
    assert world.names() == []


def test_an_address_that_is_taken_out_loses_the_name_at_the_next_question(world: World) -> None:
    world.publish()
    world.serve(NODE.address)
    world.turn()
    world.serve("# nothing")
    world.turn(VERIFIED - 1)
    assert world.names() == NODES_NAME
    world.turn(2)
    assert world.names() == []
    world.serve(NODE.address)
    world.turn(NOT_VERIFIED + 1)
    assert world.names() == NODES_NAME


def test_a_silent_host_keeps_its_name_for_days_and_not_longer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish()
    world.serve(NODE.address)
    world.turn()
    world.host.status = 503
    world.turn(VERIFIED + 1)
    assert world.names() == NODES_NAME
    monkeypatch.setattr(time, "time", lambda: world.at + KEPT)
    assert world.names() == []


def test_another_site_loses_the_name_at_once_and_is_asked_at_the_next_turn(world: World) -> None:
    world.publish()
    world.serve(NODE.address)
    world.turn()
    world.publish(site=f"https://{OTHER}/")
    assert world.names() == []
    world.turn(1)
    assert world.names() == [(NODE.address, "domain", OTHER)]
    world.publish(site="")
    world.turn(1)
    assert world.names() == []


def test_an_answer_for_the_site_before_does_not_count_for_the_new_one(world: World) -> None:
    """The account changes its site while the worker waits for the first one."""
    world.publish()
    world.serve(NODE.address)

    def resolve(host: str, port: int) -> list[str]:
        if host == HOOK:
            world.publish(site=f"https://{OTHER}/")
            other_worker.run(world.at)  # which takes up the new site
        return ["127.0.0.1"]

    other_worker = world.checks
    replace(world.checks, reach=world.host.reach(resolve=resolve)).run(world.at - 1)
    assert world.names() == [(NODE.address, "domain", OTHER)]
    world.serve("# nothing")
    world.turn(VERIFIED - 2)
    assert world.names() == [(NODE.address, "domain", OTHER)]


def test_two_workers_do_not_ask_for_a_name_at_once(world: World) -> None:
    world.publish()
    world.serve(NODE.address)
    asked_within: list[int] = []

    def resolve(host: str, port: int) -> list[str]:
        world.checks.run(world.at)
        asked_within.append(len(world.host.asked))
        return ["127.0.0.1"]

    replace(world.checks, reach=world.host.reach(resolve=resolve)).run(world.at)
    assert asked_within == [0]
    assert len(world.host.asked) == 1


def test_a_worker_that_died_with_a_name_leaves_it_to_the_next(world: World) -> None:
    world.publish()
    world.serve(NODE.address)

    def dies(host: str, port: int) -> list[str]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        replace(world.checks, reach=world.host.reach(resolve=dies)).run(world.at)
    world.turn(HELD - 1)
    assert world.names() == []
    world.turn(2)
    assert world.names() == NODES_NAME


def test_a_strangers_host_within_the_own_network_is_not_asked(world: World) -> None:
    world.publish()
    world.serve(NODE.address)
    reach = replace(STRANGERS, resolve=lambda host, port: ["127.0.0.1"], ports=None, authority=world.host.authority)
    replace(world.checks, reach=reach).run(world.at)
    assert world.host.asked == []
    assert world.names() == []


def test_a_redirect_is_not_followed_and_a_wrong_certificate_confirms_nothing(world: World) -> None:
    world.host.pages["/elsewhere"] = NODE.address.encode()
    world.publish()
    world.serve(NODE.address)
    world.host.status = 302
    world.publish(TWIN, site="https://not-in-the-certificate.example.org")
    world.turn()
    assert world.names() == []
    assert [path for _, path in world.host.asked] == [WELL_KNOWN]


def test_more_names_than_threads_are_all_asked_in_one_turn(world: World) -> None:
    accounts = [Account.create() for _ in range(AT_ONCE + 3)]
    with world.network.mined():
        for account in accounts:
            world.network.register(account.address, Role.VOTER)
    for account in accounts:
        world.publish(account)
    world.serve("\n".join(account.address for account in accounts))
    world.turn()
    assert len(world.names(*accounts)) == len(accounts)


# ENS


@dataclass
class Resolver:
    """The code at the universal resolver's address, on a chain of the tests'."""

    node: Endpoint

    def answers(self, answer: bytes, to: bytes | None = None) -> None:
        """`to`: the only call that it answers; it reverts at others."""
        check = "" if to is None else f"365f5f37365f207f{keccak(to).hex()}14602f575f5ffd5b"
        code = f"{check}61{len(answer):04x}8061{len(check) // 2 + 11:04x}5f395f"  # copies what is behind it
        self.node.ask("anvil_setCode", UNIVERSAL_RESOLVER, f"0x{code}f3{answer.hex()}")

    def names(self, name: str | bytes, to: bytes | None = None) -> None:
        raw = name if isinstance(name, bytes) else name.encode()
        self.answers(encode(["bytes", "address", "address"], [raw, UNIVERSAL_RESOLVER, UNIVERSAL_RESOLVER]), to)


@pytest.fixture(scope="module")
def mainnet() -> Iterator[LocalNode]:
    with LocalNode() as node:
        yield node


@pytest.fixture
def resolver(mainnet: LocalNode) -> Resolver:
    return Resolver(Endpoint(mainnet.url))


def test_ens_is_asked_as_its_universal_resolver_wants_it(mainnet: LocalNode, resolver: Resolver) -> None:
    """The interface is that of web3's own ENS client."""
    contract = Web3().eth.contract(abi=RESOLVER_ABI)
    call = bytes.fromhex(contract.encode_abi("reverse", args=[bytes.fromhex(NODE.address[2:]), 60])[2:])
    resolver.names("klinikum.eth", call)
    names = EnsNames(mainnet.url)
    assert names.name_of(NODE.address) == "klinikum.eth"
    assert names.name_of(TWIN.address) is None  # the contract reverts


@pytest.mark.parametrize(
    "name",
    ["", "klinikum", "Klinikum.eth", "klinikum.eth ", "клиника.eth", "kl\u0456nikum.eth", "a..eth", "-a.eth",
     "xn--bcher-kva.eth", "a" * 97 + ".eth", "a\u200d.eth", b"\xff\xfe.eth", "klinikum.eth\n"],
)  # fmt: skip
def test_a_name_that_could_mislead_is_none(mainnet: LocalNode, resolver: Resolver, name: str | bytes) -> None:
    resolver.names(name)
    assert EnsNames(mainnet.url).name_of(NODE.address) is None


@pytest.mark.parametrize("answer", [b"", b"\1" * 31, b"\xff" * 96, b"\0" * 64], ids=["none", "short", "far", "cut"])
def test_an_answer_that_is_no_name_is_none(mainnet: LocalNode, resolver: Resolver, answer: bytes) -> None:
    resolver.answers(answer)
    assert EnsNames(mainnet.url).name_of(NODE.address) is None


def test_nodes_and_operators_have_their_primary_names(world: World, mainnet: LocalNode, resolver: Resolver) -> None:
    resolver.names("klinikum.eth")
    ens = checks_of(NameSettings(domains=False, ens_url=mainnet.url), world.engine)
    ens.run(world.at)
    operator = world.client.get("/v1/profiles", params={"account": [OPERATOR]}).json()["names"]
    assert [one["name"] for one in operator] == ["klinikum.eth"]
    assert world.names() == sorted((one.address, "ens", "klinikum.eth") for one in (NODE, TWIN))
    assert world.host.asked == []


def test_an_ens_node_that_is_down_takes_no_name_and_stops_no_worker(
    world: World, mainnet: LocalNode, resolver: Resolver
) -> None:
    resolver.names("klinikum.eth")
    checks_of(NameSettings(ens_url=mainnet.url), world.engine).run(world.at)
    checks_of(NameSettings(ens_url="http://127.0.0.1:9"), world.engine).run(world.at + VERIFIED + 1)
    assert len(world.names()) == 2
