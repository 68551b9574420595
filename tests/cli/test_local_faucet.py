"""`consilium chain local fund`: gives tokens and ether on a local chain, and on no other."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from chain_driver import LocalChain
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.faucet import faucet_ledger, fund
from consilium_chain.errors import DeploymentInvalid, NotPossible
from consilium_chain.rpc.local_node import find_anvil, free_port
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_core.children import child_environment
from eth_account import Account
from raised_faults import raises_fault
from typer.testing import CliRunner


@pytest.fixture
def book(local_chain: LocalChain, tmp_path: Path) -> Path:
    local_chain.deployment.write(tmp_path / "book.json")
    return tmp_path / "book.json"


def say(chain: LocalChain, book: Path, *arguments: str) -> tuple[int, str]:
    given = ["chain", "local", "fund", *arguments, "--rpc", chain.node.url, "--address-book", str(book)]
    ran = CliRunner().invoke(app, given)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.output


def test_an_account_gets_tokens_and_ether_and_their_sum_is_shown(local_chain: LocalChain, book: Path) -> None:
    account = Account.create()
    address = account.address
    local_chain.accounts[address] = local_chain.ledger(account.key)  # so that the tokens are accounted for
    code, said = say(local_chain, book, address, "--tokens", "1500", "--ether", "3")
    assert code == 0, said
    assert f"account {address}" in said
    assert "holds   1,500.00 tokens, 3.000000 ether" in said
    assert "Next: consilium operator propose" in said
    treasury = local_chain.treasury
    assert (treasury.token.balance(address), treasury.connection.ether_of(address)) == (1_500 * TOKEN, 3 * 10**18)
    code, said = say(local_chain, book, address.lower(), "--tokens", "1", "--ether", "0")
    assert "holds   1,501.00 tokens, 3.000000 ether" in said
    assert local_chain.unaccounted() == 0


def test_a_mistyped_address_gets_nothing(local_chain: LocalChain, book: Path) -> None:
    code, said = say(local_chain, book, "0x12", "--tokens", "1")
    assert (code, "this is not an address" in said) == (2, True)
    code, said = say(local_chain, book, Account.create().address)
    assert (code, "--tokens" in said) == (2, True)


def test_more_than_the_faucet_has_is_refused_before_anything_is_sent(local_chain: LocalChain, book: Path) -> None:
    faucet, address = faucet_ledger(local_chain.node.url, Deployment.read(book)), Account.create().address
    with raises_fault(NotPossible, "FaucetShort"):
        fund(faucet, address, 1, 10**30)
    with raises_fault(NotPossible, "FaucetShort"):
        fund(faucet, address, 10**40, 1)
    assert (faucet.token.balance(address), faucet.connection.ether_of(address)) == (0, 0)


def test_another_chain_is_refused_by_name_though_its_address_book_says_local(
    local_chain: LocalChain, book: Path
) -> None:
    """The node's own chain id decides."""
    port = free_port()
    command = [find_anvil(), "--chain-id", "1", "--port", str(port), "--accounts", "1", "--silent"]
    with subprocess.Popen(command, env=child_environment(), start_new_session=True) as other:
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    httpx.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
                    break
                except httpx.HTTPError:
                    time.sleep(0.05)
            with raises_fault(NotPossible, "ChainNotLocal") as caught:
                faucet_ledger(url, Deployment.read(book))
            assert caught.value.values == {"chain_id": 1, "local": 31_337}
        finally:
            other.terminate()


def test_an_address_book_of_another_chain_is_refused(local_chain: LocalChain, book: Path) -> None:
    book.write_text(json.dumps(json.loads(book.read_text()) | {"chain_id": 5}))
    with pytest.raises(DeploymentInvalid, match="chain 5"):
        faucet_ledger(local_chain.node.url, Deployment.read(book))
