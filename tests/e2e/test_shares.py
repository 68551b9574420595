"""Parts of a finished model on a real chain: minted by the commands, paid, claimed, and handed to nodes' pools."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

import consilium
import pytest
from chain_driver import LocalChain
from consilium_chain.errors import Refused
from consilium_chain.ledger.shares import WHOLE
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_operators.errors import OperatorError
from eth_account import Account
from raised_faults import raises_fault
from typer.testing import CliRunner
from voter_driver import TASK, FiledTask

SALE = """
[sale]
server_percent = 20
operator_percent = 10
trainers_percent = 55
voters_percent = 15
"""
FIELDS = [
    {"name": "from", "type": "address"}, {"name": "to", "type": "address"}, {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"}, {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]  # fmt: skip


@dataclass
class Ended:
    chain: LocalChain
    task: FiledTask
    folder: Path

    @property
    def chain_options(self) -> list[str]:
        return ["--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json")]

    @property
    def shares(self) -> consilium.Shares:
        return consilium.Shares(self.chain.node.url, self.folder / "book.json")

    @property
    def artifacts(self) -> str:
        return str(self.folder / "artifacts")

    def say(self, *arguments: str) -> str:
        ran = CliRunner().invoke(app, ["shares", *arguments, *self.chain_options], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output


def ended(chain: LocalChain, folder: Path, text: str) -> Ended:
    chain.deployment.write(folder / "book.json")
    task = FiledTask(chain, folder, text)
    task.judges, task.voters = chain.staked(Role.VOTER, 1), 1
    task.join(rows=[8]).first_round()
    task.form().commit_all().publish()
    task.draw().judge([[40_000]])
    assert task.phase is Phase.ENDED
    return Ended(chain, task, folder)


@pytest.fixture(scope="module")
def sold(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return ended(local_chain, tmp_path_factory.mktemp("sold"), TASK + SALE)


def test_parts_are_minted_paid_and_claimed_by_commands(sold: Ended) -> None:
    task, ledger = sold.task.task, sold.chain.treasury
    of_others = ledger.token.balance(ledger.deployment.model_shares)  # of other files' tasks, on the same chain
    assert "no terms of sale" in sold.say("show", str(task))
    assert "server gets 20 %" in sold.say("mint", str(task), "--artifacts", sold.artifacts)
    found = consilium.task_shares(task, rpc=sold.chain.node.url, address_book=sold.folder / "book.json")
    assert {one.role: round(one.percent, 6) for one in found.holdings} == {
        "operator": 12.5, "hospital": 68.75, "voter": 18.75,
    }  # fmt: skip
    assert sum(one.parts for one in found.holdings) == WHOLE
    with raises_fault(Refused, "AlreadyMinted"):
        ledger.shares.mint(task, 1)
    sold.say("pay", str(task), "80")
    paid = {one.role: one for one in sold.shares.mint(task, artifacts=[sold.artifacts]).holdings}
    assert {role: one.claimable for role, one in paid.items()} == {
        "operator": 10 * TOKEN, "hospital": 55 * TOKEN, "voter": 15 * TOKEN,
    }  # fmt: skip
    node = paid["hospital"].account
    before = ledger.staking.pool(node, Role.HOSPITAL)["unvestedX48"] >> 48
    assert "70.00 tokens now vest" in sold.say("claim", str(task), "--for-nodes")
    vesting = ledger.staking.pool(node, Role.HOSPITAL)["unvestedX48"] >> 48
    assert 0 < vesting - before <= 55 * TOKEN
    held = ledger.token.balance(ledger.address)
    assert "10.00 tokens are paid out" in sold.say("claim", str(task))
    assert ledger.token.balance(ledger.address) == held + 10 * TOKEN
    assert ledger.token.balance(ledger.deployment.model_shares) == of_others
    with raises_fault(Refused, "NothingToClaim"):
        sold.shares.claim(task)


def test_a_buyer_without_ether_pays_a_till_by_signature(sold: Ended) -> None:
    """ERC-3009: the message is made by its text, with another library than the contract's."""
    task, ledger, server = sold.task.task, sold.chain.treasury, Account.create().address
    sold.shares.mint(task, artifacts=[sold.artifacts])
    till = sold.say("till", str(task), server).strip()
    buyer, held = Account.create(), ledger.shares.paid(task)
    ledger.token.transfer(buyer.address, 50 * TOKEN)
    nonce = secrets.token_bytes(32)
    message = {
        "from": buyer.address, "to": till, "value": 50 * TOKEN, "validAfter": 0, "validBefore": 2**40, "nonce": nonce,
    }  # fmt: skip
    domain = {
        "name": "Consilium", "version": "1", "chainId": ledger.deployment.chain_id,
        "verifyingContract": ledger.deployment.token,
    }  # fmt: skip
    signed = buyer.sign_typed_data(domain, {"TransferWithAuthorization": FIELDS}, message)
    r, s = (number.to_bytes(32, "big") for number in (signed.r, signed.s))
    given = (*message.values(), signed.v, r, s)
    ledger.contracts.token.send("transferWithAuthorization", *given)
    with raises_fault(Refused, "ERC3009UsedAuthorization"):
        ledger.contracts.token.send("transferWithAuthorization", *given)
    said = sold.say("till", str(task), server, "--split")
    assert "the till had 50.00 tokens: the server got 10.00, the holders 40.00" in said
    assert ledger.token.balance(server) == 10 * TOKEN
    assert ledger.shares.paid(task) == held + 40 * TOKEN
    with raises_fault(Refused, "AmountIsZero"):
        sold.shares.split(task, server)


def test_a_file_without_terms_is_never_sold(local_chain: LocalChain, tmp_path: Path) -> None:
    unsold = ended(local_chain, tmp_path, TASK)
    task = unsold.task.task
    with raises_fault(OperatorError, "NotForSale"):
        unsold.shares.mint(task, artifacts=[unsold.artifacts])
    with raises_fault(Refused, "NotMinted"):
        unsold.shares.pay(task, TOKEN)
    assert "no terms of sale" in unsold.say("show", str(task))


def test_parts_wait_for_the_end(local_chain: LocalChain, tmp_path: Path) -> None:
    local_chain.deployment.write(tmp_path / "book.json")
    task = FiledTask(local_chain, tmp_path, TASK + SALE)
    running = Ended(local_chain, task, tmp_path)
    with raises_fault(OperatorError, "TaskNotEnded"):
        running.shares.mint(task.task, artifacts=[running.artifacts])
