"""Deployments to a real local chain: whole, cut off at every point, and onto what does not fit."""

from __future__ import annotations

import http.server
import json
import re
import secrets
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from address_books import made_up_book
from chain_driver import GAS_MONEY, refused, task_params
from consilium_chain.deploying import node as node_module
from consilium_chain.deploying import plan
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.journal import journal_path, locked
from consilium_chain.deploying.networks import Network, PrevrandaoTerms, TokenTerms, read_networks
from consilium_chain.deploying.node import DeployNode
from consilium_chain.deploying.plan import INIT_LIMIT, RUNTIME_LIMIT, creation_gas
from consilium_chain.deploying.run import Deploying, created_address
from consilium_chain.deploying.verify import PRECOMPILES, require_precompiles, same_but
from consilium_chain.errors import ChainUnreachable, DeployFailed, NotPossible
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc import abi, local_node, outgoing, transactions
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID, FAUCET_KEY, LocalNode, find_anvil
from consilium_chain.rpc.outgoing import Own
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.errors import ConfigInvalid
from consilium_core.units import ether
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault
from web3.types import RPCEndpoint

STEPS = 9
SOURCES = Path(__file__).parents[2] / "chain" / "contracts" / "src"
LOCAL = read_networks(None).networks["local"]
QUICKNET_TERMS = read_networks(None).networks["sepolia"].beacon


class Cut(BaseException):
    """Stands for the end of the process."""


class CutNode(DeployNode):
    """Ends the process at one of its transactions, before or after that is sent."""

    cut_at: int | None = None
    after_sending = False
    broadcasts = 0

    def broadcast(self, own: Own, call: str) -> None:
        cut = self.broadcasts == self.cut_at
        if cut and not self.after_sending:
            raise Cut
        super().broadcast(own, call)
        self.broadcasts += 1
        if cut:
            raise Cut


@dataclass
class Site:
    """A chain, an account on it that deployed nothing yet, and a folder."""

    url: str
    key: bytes
    folder: Path
    network: Network = LOCAL

    @property
    def book(self) -> Path:
        return self.folder / "book.json"

    @property
    def journal(self) -> Path:
        return journal_path(self.book)

    def node(self, cut_at: int | None = None, after_sending: bool = False) -> CutNode:
        node = CutNode(self.url, Account.from_key(self.key))
        node.cut_at, node.after_sending = cut_at, after_sending
        return node

    def begin(self, node: DeployNode | None = None) -> Deploying:
        return Deploying.begin(node or self.node(), "local", self.network, self.book)

    def deploy(self) -> Deployment:
        return self.begin().carry_out(lambda _: None)

    def cut(self, at: int, after_sending: bool = True) -> None:
        with pytest.raises(Cut):
            self.begin(self.node(at, after_sending)).carry_out(lambda _: None)

    def nonce(self) -> int:
        return self.node().nonce(with_pending=True)

    def rpc(self, method: str, *arguments: Any) -> Any:
        answer = self.node().web3.provider.make_request(RPCEndpoint(method), list(arguments))
        assert "error" not in answer, answer
        return answer.get("result")

    def steps(self) -> dict[str, Any]:
        steps: dict[str, Any] = json.loads(self.journal.read_text())["steps"]
        return steps


@pytest.fixture(scope="module")
def shared_chain() -> Iterator[LocalNode]:
    with LocalNode() as node:
        yield node


@pytest.fixture
def site(shared_chain: LocalNode, tmp_path: Path) -> Site:
    return new_site(shared_chain.url, tmp_path)


@pytest.fixture
def own_chain(tmp_path: Path) -> Iterator[Site]:
    """A chain of its own, for tests that stop its mining."""
    with LocalNode() as node:
        yield new_site(node.url, tmp_path)


def new_site(url: str, folder: Path) -> Site:
    key = secrets.token_bytes(32)
    Connection(url, Account.from_key(FAUCET_KEY)).transactions.send_ether(Account.from_key(key).address, GAS_MONEY)
    return Site(url, key, folder)


@pytest.mark.parametrize("beacon", [LOCAL.beacon, QUICKNET_TERMS], ids=lambda terms: terms.kind)
def test_deployment_serves_a_ledger(site: Site, beacon: Any) -> None:
    site.network = LOCAL.model_copy(update={"beacon": beacon})
    deployment = site.deploy()
    assert Deployment.read(site.book) == deployment
    assert deployment.beacon_kind == beacon.contract
    ledger = Ledger(site.node(), Deployment.read(site.book))
    terms = task_params(ledger.address)
    task = ledger.operator.propose(terms)
    assert ledger.tasks.params(task) == terms
    assert ledger.token.balance(ledger.address) == (LOCAL.token.supply or 0) * TOKEN - terms.pool
    assert site.node().read("Staking", deployment.staking, "vestingPeriod") == LOCAL.vesting


def test_chain_without_blobs_takes_tasks_that_publish_by_digest(site: Site) -> None:
    site.network = LOCAL.model_copy(update={"blobs": False})
    site.deploy()
    ledger = Ledger(site.node(), Deployment.read(site.book))
    terms = task_params(ledger.address)
    with raises_fault(NotPossible, "BlobsUnavailable", match=r'chain 31337 .* publication = "digests"'):
        ledger.operator.propose(terms)
    assert ledger.tasks.params(ledger.operator.propose(replace(terms, digests=True))).digests


def test_deployment_onto_existing_token(site: Site, tmp_path: Path) -> None:
    token = site.deploy().token
    other = replace(site, folder=tmp_path / "other")
    other.folder.mkdir()
    other.network = LOCAL.model_copy(update={"token": TokenTerms(address=token)})
    assert other.deploy().token == token
    assert site.nonce() == STEPS + STEPS - 1


def test_token_that_is_no_contract_is_refused(site: Site) -> None:
    nothing = created_address("0x" + "11" * 20, 3)
    site.network = LOCAL.model_copy(update={"token": TokenTerms(address=nothing)})
    with pytest.raises(ConfigInvalid, match="has no contract on chain 31337; correct it"):
        site.begin()
    assert site.nonce() == 0


@pytest.mark.parametrize("after_sending", [False, True], ids=["before sending", "after sending"])
@pytest.mark.parametrize("at", range(STEPS))
def test_cut_deployment_goes_on_and_deploys_nothing_twice(site: Site, at: int, after_sending: bool) -> None:
    site.cut(at, after_sending)
    assert not site.book.exists()
    before = site.steps()
    deployment = site.deploy()
    assert site.nonce() == STEPS
    assert [step["nonce"] for step in site.steps().values()] == list(range(STEPS))
    assert {name: step["address"] for name, step in before.items()} == {
        name: step["address"] for name, step in site.steps().items() if name in before
    }
    read = site.node().read
    assert str(read("Staking", deployment.staking, "tasks")) == deployment.tasks
    assert str(read("Staking", deployment.staking, "modelShares")) == deployment.model_shares


@pytest.mark.parametrize("blocks", [1, 3])
def test_deployment_whose_last_blocks_are_gone_goes_on(own_chain: Site, blocks: int) -> None:
    site = own_chain
    site.rpc("anvil_setIntervalMining", 0)
    site.rpc("evm_setAutomine", True)
    before = site.deploy()
    site.rpc("anvil_reorg", blocks, [])
    assert site.nonce() < STEPS
    assert site.deploy() == before
    assert site.nonce() == STEPS


def test_deployment_outlasts_blocks_taken_back_before_they_are_confirmed(own_chain: Site) -> None:
    site = own_chain
    site.rpc("anvil_setIntervalMining", 0)
    site.rpc("evm_setAutomine", True)
    told: list[str] = []

    def tell(said: str) -> None:
        told.append(said)
        if said == "Staking answers to Tasks and ModelShares" and told.count(said) == 1:
            site.rpc("anvil_reorg", 4, [])

    deployment = site.begin().carry_out(tell)
    assert [said for said in told if "disappeared" in said] == [
        "Tasks disappeared with its block, and is sent again",
        "ModelShares disappeared with its block, and is sent again",
        "SponsoredAccount disappeared with its block, and is sent again",
    ]
    assert Deployment.read(site.book) == deployment
    assert site.nonce() == STEPS


def test_deployment_outlasts_a_pool_that_forgets(own_chain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site = own_chain
    monkeypatch.setattr(transactions, "LOOK_AGAIN", 0.1)
    broadcast, forgotten = CutNode.broadcast, list[str]()

    def forgetful(node: CutNode, own: Own, call: str) -> None:
        if call not in forgotten:
            forgotten.append(call)
        else:
            broadcast(node, own, call)

    monkeypatch.setattr(CutNode, "broadcast", forgetful)
    site.deploy()
    assert (len(forgotten), site.nonce()) == (STEPS, STEPS)


def test_finished_deployment_sends_nothing_again(site: Site) -> None:
    deployment = site.deploy()
    again = site.begin()
    assert again.survey().gas == 0
    assert again.carry_out(lambda _: None) == deployment
    assert site.nonce() == STEPS


def test_step_whose_nonce_was_spent_elsewhere_is_sent_anew(site: Site) -> None:
    site.cut(2, after_sending=False)
    site.node().transactions.send_ether(Account.create().address, 1)
    site.deploy()
    assert [step["nonce"] for step in site.steps().values()] == [0, 1, 3, 4, 5, 6, 7, 8, 9]


def test_step_that_nobody_mines_is_waited_for(own_chain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site = own_chain
    stop_mining(site)
    with monkeypatch.context() as patch:
        patch.setattr(transactions, "RECEIPT_TIMEOUT", 0.2)
        for _ in range(2):
            with raises_fault(
                DeployFailed, "DeploymentPending", match=r"deploy ConsiliumToken .* run the same command again"
            ) as caught:
                site.deploy()
            assert caught.value.values["transaction"] == site.steps()["ConsiliumToken"]["transaction"]
    mine_again(site)
    site.deploy()
    assert site.nonce() == STEPS


def stop_mining(site: Site) -> None:
    site.rpc("evm_setAutomine", False)
    site.rpc("anvil_setIntervalMining", 0)


def mine_again(site: Site) -> None:
    """Mines the transactions that wait, and from then on each one as it comes."""
    site.rpc("evm_setAutomine", True)
    site.rpc("evm_mine")


def test_step_that_nodes_forgot_is_sent_again_under_its_nonce(own_chain: Site) -> None:
    site = own_chain
    site.cut(0)
    stop_mining(site)
    site.cut(0)
    site.rpc("anvil_dropTransaction", site.steps()["Staking"]["transaction"])
    mine_again(site)
    site.deploy()
    assert site.nonce() == STEPS


def test_step_that_arrives_under_another_hash_is_not_sent_again(own_chain: Site) -> None:
    """As when a first transaction of a nonce is mined after all, and the journal names the second."""
    site = own_chain
    stop_mining(site)
    site.cut(0)
    record = json.loads(site.journal.read_text())
    record["steps"]["ConsiliumToken"]["transaction"] = "0x" + "ab" * 32
    site.journal.write_text(json.dumps(record))
    deploying = site.begin()
    assert deploying.addresses == {}
    site.rpc("anvil_mine", "0x1")
    mine_again(site)
    deploying.carry_out(lambda _: None)
    assert site.nonce() == STEPS


def test_step_that_failed_on_the_chain_is_sent_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(outgoing, "TRANSACTION_GAS_LIMIT", 250_000)
        with raises_fault(DeployFailed, "DeploymentReverted", match="deploy ConsiliumToken failed on the chain"):
            site.deploy()
    site.deploy()
    assert site.nonce() == STEPS + 1


def test_constructor_refusal_is_named(site: Site) -> None:
    site.network = LOCAL.model_copy(update={"unbonding": 10, "vesting": 11})  # past the file's own check
    with refused("PeriodsInvalid", unbondingPeriod=10, vestingPeriod=11):
        site.deploy()
    assert site.nonce() == 1


def test_resuming_with_other_terms_is_refused(site: Site) -> None:
    site.cut(3)
    site.network = LOCAL.model_copy(update={"beacon": PrevrandaoTerms(kind="prevrandao", lookahead=7)})
    with raises_fault(DeployFailed, "JournalStale", match="has PrevrandaoBeacon with other code or terms"):
        site.deploy()
    assert site.nonce() == 4


@pytest.mark.parametrize("field", ["chain_id", "genesis", "deployer"])
def test_journal_of_another_chain_or_account_is_refused(site: Site, field: str) -> None:
    site.cut(1)
    record = json.loads(site.journal.read_text())
    record[field] = 5 if field == "chain_id" else "0x" + "ab" * 20
    site.journal.write_text(json.dumps(record))
    with raises_fault(DeployFailed, "JournalStale", match=r"is of another .* pass another --address-book"):
        site.begin()


@pytest.mark.parametrize("text", ["", "[]", '{"chain_id": 31337}', "\x00"])
def test_malformed_journal_is_refused(site: Site, text: str) -> None:
    site.journal.write_text(text)
    with raises_fault(DeployFailed, "JournalInvalid", match=r"malformed .* restore it, or move it away"):
        site.begin()
    assert site.nonce() == 0


def test_code_that_is_not_the_compiled_one_is_refused(site: Site) -> None:
    site.cut(3)
    address = site.steps()["Staking"]["address"]
    code = bytearray(site.node().code(address))
    places = contract_artifact("Staking").immutables
    inside = next(start + length - 1 for start, length in places)
    outside = next(i for i in range(len(code)) if not any(start <= i < start + length for start, length in places))
    for at, why in ((inside, "its constructor had other arguments"), (outside, "its code is not the compiled code")):
        changed = bytes(byte ^ (i == at) for i, byte in enumerate(code))
        site.rpc("anvil_setCode", address, "0x" + changed.hex())
        with raises_fault(DeployFailed, "CodeMismatch", match=why):
            site.begin()
    site.rpc("anvil_setCode", address, "0x" + code.hex())
    site.deploy()


@pytest.mark.parametrize("field", ["Staking.tasks", "Staking.modelShares"])
def test_staking_that_answers_to_another_contract_is_refused(site: Site, field: str) -> None:
    site.cut(4)
    node = site.node()
    staking = node.contract("Staking", site.steps()["Staking"]["address"])
    later = created_address(node.address, site.nonce() + 1)  # of Tasks, after this call
    tasks = later if field == "Staking.modelShares" else node.address
    node.transactions.send(staking.functions.connect(tasks, node.address))
    with raises_fault(DeployFailed, "WiringWrong") as caught:
        site.deploy()
    assert (caught.value.values["field"], caught.value.values["found"]) == (field, node.address)
    assert not site.book.exists()


def test_address_book_of_another_deployment_is_kept(site: Site) -> None:
    for chain_id, why in ((5, "of chain 5 instead of 31337"), (31_337, "without the journal book.journal.json")):
        other = made_up_book(chain_id)
        other.write(site.book)
        with raises_fault(DeployFailed, "BookTaken", match=why):
            site.begin()
        assert Deployment.read(site.book) == other
    site.book.write_text("no book")
    with raises_fault(DeployFailed, "BookTaken", match="malformed"):
        site.begin()
    assert site.nonce() == 0


@pytest.fixture
def chain_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], LocalNode]:
    """Starts anvil with the rules of a hard fork that is older than its default."""

    def start(fork: str) -> LocalNode:
        older = tmp_path / "anvil"
        older.write_text(f'#!/bin/sh\nexec {shlex.quote(find_anvil())} --hardfork {fork} "$@"\n')
        older.chmod(0o700)
        with monkeypatch.context() as patch:
            patch.setattr(local_node, "find_anvil", lambda: str(older))
            return LocalNode()

    return start


@pytest.mark.parametrize(
    ("fork", "name", "rule", "address"),
    [("prague", "P256VERIFY", "EIP-7951", 0x100), ("cancun", "BLS12_G1ADD", "EIP-2537", 0x0B)],
)
def test_chain_without_a_precompile_is_refused(
    chain_of: Callable[[str], LocalNode], tmp_path: Path, fork: str, name: str, rule: str, address: int
) -> None:
    with chain_of(fork) as node:
        older = new_site(node.url, tmp_path)
        with raises_fault(
            DeployFailed, "PrecompileMissing", match=rf"chain {CHAIN_ID} \(node .*Osaka upgrade"
        ) as caught:
            older.begin()
        found = caught.value.values
        expected = {"chain_id": CHAIN_ID, "precompile": name, "rule": rule, "address": address}
        assert found == expected | {"url": node.url}
        assert older.nonce() == 0
        assert not older.journal.exists()


def test_every_precompile_that_is_asked_for_answers(site: Site) -> None:
    require_precompiles(site.node())
    code = "".join(path.read_text() for path in SOURCES.rglob("*.sol"))
    called = {int(one, 16) for one in re.findall(r"constant [A-Z0-9_]+ = (?:address\()?(0x[01][0-9a-f]{1,2})\b", code)}
    assert called - {0x05} == {one.address for one in PRECOMPILES}  # 0x05, modexp, is on every chain


@pytest.mark.parametrize("answer", ["0x", "0x" + "00" * 31 + "01"])
def test_precompile_that_answers_something_else_is_refused(site: Site, answer: str) -> None:
    with (
        proxy(site.url, "eth_call", {"result": answer}) as url,
        raises_fault(DeployFailed, "PrecompileMissing", match="0xb,"),
    ):
        site.begin(DeployNode(url, Account.from_key(site.key)))


def test_contract_above_a_limit_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"runtime": RUNTIME_LIMIT, "bytecode": INIT_LIMIT}
    for field, limit in limits.items():
        for size, fits in ((limit, True), (limit + 1, False)):
            artifact = contract_artifact("PrevrandaoBeacon")
            arguments = 32 if field == "bytecode" else 0
            code: str = getattr(artifact, field)
            code += "00" * (size - arguments - (len(code) // 2 - 1))
            padded = replace(artifact, runtime=code) if field == "runtime" else replace(artifact, bytecode=code)
            with monkeypatch.context() as patch:
                for module in (plan, node_module):
                    patch.setattr(
                        module,
                        "contract_artifact",
                        lambda name, padded=padded: padded if name == "PrevrandaoBeacon" else contract_artifact(name),
                    )
                survey = site.begin().survey()
            if fits:
                survey.check()
                continue
            with raises_fault(DeployFailed, "ContractTooLarge") as caught:
                survey.check()
            assert [caught.value.values[name] for name in ("contract", "size", "limit")] == [
                "PrevrandaoBeacon",
                size,
                limit,
            ]


def test_account_without_ether_is_refused(site: Site) -> None:
    site.key = secrets.token_bytes(32)
    survey = site.begin().survey()
    with raises_fault(DeployFailed, "DeployerUnfunded", match="send it") as caught:
        survey.check()
    assert caught.value.values["missing"] == caught.value.values["needed"] == ether(survey.most)


@pytest.mark.parametrize("beacon", [LOCAL.beacon, QUICKNET_TERMS], ids=lambda terms: terms.kind)
def test_gas_estimates_are_above_what_is_paid_and_near(site: Site, beacon: Any) -> None:
    site.network = LOCAL.model_copy(update={"beacon": beacon})
    survey = site.begin().survey()
    site.deploy()
    for contract in survey.contracts:
        paid = site.node().transactions.gas_of(site.steps()[contract.name]["transaction"])
        assert paid <= contract.gas <= paid * 1.35, (contract.name, paid)
    assert site.node().transactions.gas_of(site.steps()[plan.WIRING]["transaction"]) <= plan.WIRING_GAS


@contextmanager
def proxy(url: str, method: str, answer: dict[str, Any]) -> Iterator[str]:
    """A node that is the one at `url`, but for its answer to one method."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(raw)
            if request["method"] == method:
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"]} | answer).encode()
            else:
                body = httpx.post(url, content=raw, headers={"Content-Type": "application/json"}).content
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


OLD_BLOCK = {"hash": "0x" + "11" * 32, "number": "0x1", "timestamp": "0x1"}


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("eth_getBlockByNumber", {"result": None}, "the node has no block 0"),
        ("eth_getBlockByNumber", {"result": OLD_BLOCK}, r"its blocks have no base fee \(EIP-1559\)"),
        ("eth_getCode", {"error": {"code": -1, "message": "no state"}}, "no state"),
        ("eth_getBalance", {"error": {"code": 3, "message": "no state"}}, "no state"),
        ("eth_getTransactionCount", {"no": "answer"}, "InvalidJSONError"),
    ],
)
def test_node_that_leaves_things_out_is_named(site: Site, method: str, answer: dict[str, Any], words: str) -> None:
    with proxy(site.url, method, answer) as url, pytest.raises(ChainUnreachable, match=words):
        whole_run(site, DeployNode(url, Account.from_key(site.key)))


def whole_run(site: Site, node: DeployNode) -> None:
    deploying = site.begin(node)
    deploying.survey()
    deploying.carry_out(lambda _: None)


def test_artifacts_of_an_older_export_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "_exported", lambda _: '{"abi": [], "bytecode": "0x"}')
    with raises_fault(NotPossible, "ContractsNotBuilt", match="of this version is missing; run `make contracts`"):
        contract_artifact.__wrapped__("Tasks")


def test_creation_gas_counts_words_and_zero_bytes() -> None:
    flat = creation_gas(b"", 0)
    assert creation_gas(b"\0", 0) - flat == 4 + 2
    assert creation_gas(b"\1" * 33, 10) - flat == 33 * 16 + 2 * 2 + 10 * 200


def test_two_deployments_into_one_folder_are_refused(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        raises_fault(DeployFailed, "DeploymentRunning", match="wait until it ends"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("nonce", "address"),
    [(0, "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"), (1, "343c43a37d37dff08ae8c4a11544c718abb4fcf8")],
)
def test_created_address_is_that_of_the_chain(nonce: int, address: str) -> None:
    creator = "0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0"
    assert created_address(creator, nonce).lower() == "0x" + address


@given(st.binary(min_size=40, max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_same_but_sees_every_byte_outside_the_places(code: bytes, at: int, change: int) -> None:
    places = [(4, 8), (20, 1)]
    other = bytearray(code)
    other[at] ^= change
    assert same_but(code, bytes(other), places) == (4 <= at < 12 or at == 20)
    assert not same_but(code, code + b"\0", places)


def test_immutables_lie_inside_the_code_and_are_left_zero() -> None:
    for name in CONTRACT_NAMES:
        artifact = contract_artifact(name)
        runtime = bytes.fromhex(artifact.runtime[2:])
        for start, length in artifact.immutables:
            assert runtime[start : start + length] == bytes(length)
    assert len(contract_artifact("Staking").immutables) > 0
