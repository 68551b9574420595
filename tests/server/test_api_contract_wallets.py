"""Sign-in of contract wallets (EIP-1271), on a real chain whose contracts are a wallet and hostile ones."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_wallet import Wallet
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.local_node import LocalNode
from contract_wallets import HOSTILE, YES, wallet_of
from eth_utils.address import to_checksum_address
from fastapi.testclient import TestClient
from indexed_network import IndexedNetwork, app_of


@pytest.fixture(scope="module")
def chain() -> Iterator[Endpoint]:
    with LocalNode() as node:
        yield Endpoint(node.url)


@pytest.fixture
def client(tmp_path: Path, chain: Endpoint) -> TestClient:
    """Without the server's poller, which wants the contracts."""
    return TestClient(app_of(IndexedNetwork(tmp_path), limits={"sign_ins_per_minute": 1000}, chain_url=chain.url))


def contract(chain: Endpoint, code: str) -> str:
    address = Wallet().address
    chain.ask("anvil_setCode", address, f"0x{code}")
    return address


def told(client: TestClient, address: str, signer: Wallet, junk: str | None = None) -> tuple[int, str]:
    """The status of a sign-in, and the account or the part that is refused."""
    text = signer.message(client, address=address)
    answer = client.post("/v1/session", json={"message": text, "signature": junk or signer.sign(text)})
    found = answer.json()
    return answer.status_code, found["account"] if "account" in found else found["faults"][0]["where"]


def test_a_contract_wallet_signs_in_by_its_owners_key_and_once(client: TestClient, chain: Endpoint) -> None:
    owner = Wallet()
    address = contract(chain, wallet_of(owner.address))
    assert told(client, address, Wallet()) == (403, "signature")
    assert told(client, address, owner, "0x") == (403, "signature")
    text = owner.message(client, address=address)
    sent = {"message": text, "signature": owner.sign(text)}
    first, again = (client.post("/v1/session", json=sent) for _ in range(2))
    assert (first.status_code, first.json()["account"]) == (200, address)
    assert (again.status_code, again.json()["faults"][0]["where"]) == (403, "nonce")


def test_a_contract_that_accepts_anything_is_only_itself(client: TestClient, chain: Endpoint) -> None:
    address = contract(chain, YES)
    assert told(client, address, Wallet(), "0x" + "ab" * 4096) == (200, address)
    assert told(client, Wallet().address, Wallet()) == (403, "signature")


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_contract_is_refused_at_once(client: TestClient, chain: Endpoint, code: str) -> None:
    """And spends no nonce of the message."""
    address, begun = contract(chain, code), time.monotonic()
    signer = Wallet()
    text = signer.message(client, address=address)
    sent = {"message": text, "signature": signer.sign(text)}
    refused = client.post("/v1/session", json=sent)
    assert (refused.status_code, refused.json()["faults"][0]["where"]) == (403, "signature")
    assert time.monotonic() - begun < 10
    chain.ask("anvil_setCode", address, f"0x{YES}")
    assert client.post("/v1/session", json=sent).status_code == 200


@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_a_precompiled_contract_is_no_account(client: TestClient, number: int) -> None:
    """The fourth answers with its input, which begins with the magic value."""
    assert told(client, to_checksum_address(f"0x{number:040x}"), Wallet()) == (403, "signature")


def test_a_delegated_account_signs_with_its_own_key(client: TestClient, chain: Endpoint) -> None:
    """EIP-7702: also if the contract that it delegates to knows no signatures."""
    wallet = Wallet()
    chain.ask("anvil_setCode", wallet.address, "0xef0100" + contract(chain, "5f5ffd")[2:].lower())
    assert told(client, wallet.address, wallet) == (200, wallet.address)


def test_a_node_that_does_not_answer_stalls_nobody_with_a_key(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = TestClient(app_of(IndexedNetwork(tmp_path), chain_url=url))
        wallet, begun = Wallet(), time.monotonic()
        assert told(client, wallet.address, wallet) == (200, wallet.address)
        assert told(client, Wallet().address, wallet) == (403, "signature")
        assert time.monotonic() - begun < 20
