"""`consilium chain deploy` as its user meets it: nothing sent unasked, no secret shown, each refusal with a way out."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from address_books import made_up_book
from chain_driver import GAS_MONEY
from command_line import CommandLine
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.node import DeployNode
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.abi import compiler_input, contract_artifact
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode, free_port
from consilium_core.private_files import write_private_file
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3.types import RPCEndpoint

SECRET = "s3cretKeyOfTheProvider"
PASSWORD = "correct horse"
TEST_CHAIN = 4_242
TASKS_BYTES = len(contract_artifact("Tasks").runtime) // 2 - 1
NETWORKS = f"""
[networks.local]
chain_id = 31337
url_env = "NODE_URL"
blobs = true
confirmations = 2
unbonding = 3600
vesting = 60
beacon = {{ kind = "prevrandao", lookahead = 128 }}
token = {{ supply = 1_000_000_000 }}

[networks.testnet]
chain_id = {TEST_CHAIN}
url_env = "NODE_URL"
blobs = true
confirmations = 1
unbonding = 3600
vesting = 60
beacon = {{ kind = "prevrandao", lookahead = 128 }}
token = {{ supply = 1_000_000_000 }}
"""


@pytest.fixture
def node() -> Iterator[LocalNode]:
    with LocalNode() as node:
        yield node


@pytest.fixture
def account(node: LocalNode) -> LocalAccount:
    created: LocalAccount = Account.create()
    Connection(node.url, Account.from_key(FAUCET_KEY)).transactions.send_ether(created.address, GAS_MONEY)
    return created


class Deploy(Protocol):
    def __call__(self, *arguments: str, network: str = "local", with_key: bool = True) -> tuple[int, str]: ...


@pytest.fixture
def deploy(
    consilium: CommandLine, node: LocalNode, account: LocalAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deploy:
    """Runs the command with a keystore and a URL that holds a key, and looks for secrets in all it says and writes."""
    monkeypatch.setenv("NODE_URL", f"{node.url}/?key={SECRET}")
    (tmp_path / "networks.toml").write_text(NETWORKS)
    write_keystore(tmp_path / "keystore", account, PASSWORD, LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", PASSWORD + "\n")

    def run(*arguments: str, network: str = "local", with_key: bool = True) -> tuple[int, str]:
        key = ["--keystore", "keystore", "--password-file", "password"] if with_key else []
        defaults = ["--network", network, "--networks", "networks.toml", *key]
        code, said = consilium("chain", "deploy", *defaults, *arguments)
        written = "".join(path.read_text() for path in Path(".consilium").glob("**/*") if path.is_file())
        for secret in (SECRET, PASSWORD, account.key.hex()):
            assert secret not in said + written
        return code, said

    return run


def refused(result: tuple[int, str], *words: str) -> None:
    code, said = result
    assert code == 1, said
    assert re.search(r"error \(\w+\): ", said)
    assert [word for word in words if word not in said] == []


def nonce(node: LocalNode, account: LocalAccount) -> int:
    return DeployNode(node.url, account).nonce(with_pending=True)


def test_deploy_writes_book_and_sources_of_a_working_deployment(
    deploy: Deploy, node: LocalNode, account: LocalAccount
) -> None:
    code, said = deploy("--verification-dir", "sources")
    assert code == 0, said
    assert "deployed and verified on chain 31337; address book .consilium/local.json" in said
    deployment = Deployment.read(Path(".consilium/local.json"))
    assert Ledger(Connection(node.url, account), deployment).token.balance(account.address) == 10**27
    index = {entry["name"]: entry for entry in json.loads(Path("sources/contracts.json").read_text())}
    assert list(index) == [
        "ConsiliumToken",
        "Staking",
        "PrevrandaoBeacon",
        "TaskRegistry",
        "TaskSettlement",
        "Tasks",
        "ModelShares",
        "SponsoredAccount",
    ]
    tasks = index["Tasks"]
    assert (tasks["address"], tasks["contractIdentifier"]) == (deployment.tasks, "src/Tasks.sol:Tasks")
    words = [tasks["constructorArguments"][i : i + 64] for i in range(0, 256, 64)]
    parts = (deployment.token, deployment.staking, deployment.beacon, index["TaskRegistry"]["address"])
    assert words == [part[2:].lower().rjust(64, "0") for part in parts]
    assert json.loads(Path("sources/Tasks.input.json").read_text()) == compiler_input("Tasks")
    code, said = deploy()
    assert code == 0
    assert "to do: 0 gas" in said
    assert nonce(node, account) == 9


def test_dry_run_shows_the_plan_and_sends_nothing(deploy: Deploy, node: LocalNode, account: LocalAccount) -> None:
    code, said = deploy("--dry-run")
    assert code == 0, said
    for words in (
        "chain 31337",
        account.address,
        f"{GAS_MONEY / 10**18:.6f} ether",
        "24,576",
        "49,152",
        f"Tasks {TASKS_BYTES:,}",
        "Staking.connect",
    ):
        assert words in said
    assert nonce(node, account) == 0
    assert list(Path(".consilium").iterdir()) == []


def test_local_chain_needs_no_keystore(deploy: Deploy) -> None:
    code, said = deploy(with_key=False)
    assert code == 0, said


def call_it_a_testnet(node: LocalNode, account: LocalAccount) -> None:
    """Returns once the chain says so itself."""
    client, end = DeployNode(node.url, account).web3.provider, time.monotonic() + 30
    assert "error" not in client.make_request(RPCEndpoint("anvil_setChainId"), [TEST_CHAIN])
    while client.make_request(RPCEndpoint("eth_chainId"), []).get("result") != hex(TEST_CHAIN):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_other_chains_are_asked_about_first(deploy: Deploy, node: LocalNode, account: LocalAccount) -> None:
    call_it_a_testnet(node, account)
    refused(deploy(network="testnet"), "nothing was sent", "--yes")
    assert nonce(node, account) == 0
    refused(deploy("--yes", network="testnet", with_key=False), "--keystore and --password-file")
    code, said = deploy("--yes", network="testnet")
    assert code == 0, said
    assert Deployment.read(Path(".consilium/testnet.json")).chain_id == TEST_CHAIN


@pytest.mark.parametrize(("answer", "sent"), [("y\n", 9), ("n\n", 0), ("", 0)])
def test_answer_at_a_terminal_decides(
    deploy: Deploy, node: LocalNode, account: LocalAccount, monkeypatch: pytest.MonkeyPatch, answer: str, sent: int
) -> None:
    call_it_a_testnet(node, account)
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)
    code, said = deploy(network="testnet")
    assert f"Deploy to chain {TEST_CHAIN}?" in said
    assert (code, nonce(node, account)) == (0 if sent else 1, sent)


def test_deploy_refuses_what_does_not_fit(
    deploy: Deploy, node: LocalNode, account: LocalAccount, tmp_path: Path
) -> None:
    refused(
        deploy(network="testnet"), f"testnet is chain {TEST_CHAIN}", "chain 31337", "correct the URL or the chain_id"
    )
    refused(deploy(network="goerli"), "'goerli'", "choose local, testnet", "--networks")
    refused(deploy("--networks", "none.toml"), "none.toml", "cannot be read", "--networks")
    refused(deploy("--password-file", "none"), "none does not exist")
    made_up_book(5).write(tmp_path / "other.json")
    refused(deploy("--address-book", "other.json"), "of chain 5", "pass another --address-book")
    assert nonce(node, account) == 0


def test_shipped_networks_are_the_default(consilium: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEPOLIA", "BASE"):
        variable = f"CONSILIUM_{name}_URL"
        monkeypatch.delenv(variable, raising=False)
        refused(consilium("chain", "deploy", "--network", name.lower()), variable, "set it to the URL")


def test_account_without_ether_sees_the_plan_and_is_refused(
    deploy: Deploy, node: LocalNode, account: LocalAccount
) -> None:
    client = DeployNode(node.url, account).web3.provider
    client.make_request(RPCEndpoint("anvil_setBalance"), [account.address, hex(10**9)])
    result = deploy("--dry-run")
    refused(result, account.address, "lacks 0.", "send it", f"Tasks {TASKS_BYTES:,}")
    refused(deploy(), "lacks 0.")
    assert nonce(node, account) == 0


def test_unreachable_node_is_named_without_its_key(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("NODE_URL", f"http://127.0.0.1:{port}/v3/{SECRET}")
    refused(deploy(), f"http://127.0.0.1:{port}/…", "pass another URL")
    monkeypatch.setenv("NODE_URL", SECRET)
    refused(deploy(), "a URL without a host")
