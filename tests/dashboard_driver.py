"""The dashboard in Chromium, on `consilium up`, whose network, browser and accounts its tests share."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser_driver import CHROMIUM, WHY_NOT, Wallet, Watched, chromium, context_of, fresh_account
from chain_driver import BOND, LocalChain
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_server.api.dashboard import built
from eth_account import Account
from eth_account.signers.local import LocalAccount
from playwright.sync_api import Browser, Locator, Page, Route, expect
from up_driver import Up, up
from worker_driver import until

NEEDED = [
    pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT),
    pytest.mark.skipif(built() is None, reason="the dashboard is not built: make dashboard"),
]
# Width and theme. Each of both is in `make test`, all four in `make test-deep`.
LOOKS = [
    (390, "light"), (1280, "dark"),
    pytest.param(390, "dark", marks=pytest.mark.deep), pytest.param(1280, "light", marks=pytest.mark.deep),
]  # fmt: skip

AXE = Path(__file__).parents[1] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
HELD = 1_000 * TOKEN
POOL = 600


class Rig:
    """A network that has played a task, a browser, and accounts with tokens."""

    def __init__(self, running: Up, browser: Browser) -> None:
        self.running, self.browser = running, browser
        self.url = f"http://127.0.0.1:{running.port}"
        self.chain_url = f"http://127.0.0.1:{running.chain_port}"
        self.deployment = Deployment.read(running.address_book)
        self.treasury = self.ledger(Account.from_key(FAUCET_KEY))

    def serve_config(self, page: Page, **replaced: Any) -> None:
        """`config.json` of this network, with these values, to each request: also to one that a page leaves behind."""
        found = httpx.get(f"{self.url}/config.json", timeout=20).raise_for_status().json() | replaced
        page.context.route("**/config.json", lambda route: route.fulfill(json=found))

    def ledger(self, account: LocalAccount) -> Ledger:
        return Ledger(Connection(self.chain_url, account), self.deployment)

    def rpc(self, method: str, *params: Any) -> Any:
        return Wallet(self.chain_url, fresh_account()).ask(method, *params)

    def wallet(self, held: int = HELD, ether: int = 10**19) -> Wallet:
        account = fresh_account()
        if ether:
            self.rpc("anvil_setBalance", account.address, hex(ether))
        self.treasury.token.transfer(account.address, held)
        return Wallet(self.chain_url, account)

    def shares(self, account: str, node: str, role: Role = Role.HOSPITAL) -> int:
        staking = self.treasury.contracts.staking.contract.functions
        return int(self.treasury.connection.call(staking.positionOf(account, node, role))[0])

    def reward(self, node: str, amount: int) -> None:
        """As the task contract pays."""
        self.treasury.token.transfer(self.deployment.tasks, amount)
        self._as_tasks(self.treasury.contracts.staking.contract.functions.reward([(node, Role.HOSPITAL, amount)]))

    def slash(self, node: str, role: Role, amount: int) -> None:
        """As the task contract slashes: from a bond."""
        staking = self.treasury.contracts.staking.contract.functions
        self._as_tasks(staking.lock(node, role, amount))
        self._as_tasks(staking.slash(node, role, amount))

    def _as_tasks(self, function: Any) -> None:
        tasks = self.deployment.tasks
        self.rpc("anvil_setBalance", tasks, hex(10**18))
        self.rpc("anvil_impersonateAccount", tasks)
        digest = self.rpc(
            "eth_sendTransaction",
            # An estimate would be of another second: a pool that vests meanwhile takes more.
            {
                "from": tasks,
                "to": self.deployment.staking,
                "data": function._encode_transaction_data(),
                "gas": hex(10**6),
            },
        )
        end = time.monotonic() + 20
        while (receipt := self.rpc("eth_getTransactionReceipt", digest)) is None:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert int(receipt["status"], 16) == 1, receipt

    def node(self, role: str = "hospital") -> str:
        (node, *_) = self.running.get(f"/v1/nodes?role={role}")["items"]
        return str(node["node"])


class Network(LocalChain):
    """The rig's chain, so that a task can be played on it by hand."""

    def __init__(self, rig: Rig) -> None:
        self.url = rig.chain_url
        self.deployment = rig.deployment
        self.treasury = rig.treasury
        self.accounts = {}

    def ledger(self, key: str | bytes) -> Ledger:
        return Ledger(Connection(self.url, Account.from_key(key)), self.deployment)

    def staked(self, role: Role, count: int, bond: int = BOND) -> list[Ledger]:
        """With the bond and no more: `Rig.node`, which is the one with the most stake, stays another."""
        found = [self.funded(bond) for _ in range(count)]
        for ledger in found:
            ledger.staking.stake(role, bond)
            if role is Role.VOTER:
                ledger.voter.register_key(voter_key(ledger.connection.signer))
        return found


def wallet_of(rig: Rig, ledger: Ledger) -> Wallet:
    account = ledger.connection.account
    assert account is not None
    return Wallet(rig.chain_url, account)


def task_file(rig: Rig, name: str, **replaced: str) -> str:
    """The first task's, of another name and pool."""
    first = rig.running.get("/v1/tasks/1")["spec_hash"]
    text = httpx.get(f"{rig.url}/v1/artifacts/files/{first}", timeout=20).raise_for_status().text
    for field, value in ({"name": f'"{name}"', "pool": str(POOL)} | replaced).items():
        text, count = re.subn(rf"^{field} = .*$", f"{field} = {value}", text, count=1, flags=re.MULTILINE)
        assert count == 1, field
    return text


def propose(rig: Rig, wallet: Wallet, aggregator: str, text: str) -> int:
    """Not by the page, of an aggregator that does not join: the task stays in Joining."""
    raw = text.encode()
    number = rig.ledger(wallet.account).operator.propose(task_params(parse_task_spec(raw), spec_hash(raw), aggregator))
    until(lambda: bool(rig.running.get("/v1/tasks?sort=-task")["items"][0]["task"] >= number), 30)
    return number


def idle_aggregator(rig: Rig) -> str:
    """One that has staked, and joins nothing."""
    wallet = rig.wallet(held=5_000 * TOKEN)
    rig.ledger(wallet.account).staking.stake(Role.AGGREGATOR, 4_000 * TOKEN)
    until(lambda: wallet.account.address in str(rig.running.get("/v1/nodes?role=aggregator&limit=200")), 30)
    return str(wallet.account.address)


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One for all files that look at it: a network takes a while."""
    with up(tmp_path_factory.mktemp("network"), "--rounds", "2") as running:  # a chart takes two
        running.wait_for("up")
        running.wait_for("task-ended", task=1)
        running.get_until("/v1/tasks/1/rounds/1", outcome="settled")
        with chromium() as browser:
            yield Rig(running, browser)


@pytest.fixture
def watched(rig: Rig) -> Iterator[Watched]:
    """A page from which nothing may be asked elsewhere, and whose console must stay empty of errors."""
    context = context_of(rig.browser)
    allowed = {f"127.0.0.1:{rig.running.port}", f"127.0.0.1:{rig.running.chain_port}"}
    found = Watched(context.new_page(), allowed)
    yield found
    context.close()
    assert found.elsewhere == []
    assert found.errors == []


def open_page(rig: Rig, page: Page, path: str) -> None:
    page.goto(f"{rig.url}/#{path}")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def go(page: Page, path: str) -> None:
    """To a path of the open dashboard."""
    page.evaluate("path => { location.hash = path }", path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def connect(page: Page) -> None:
    page.get_by_role("button", name="Test Wallet").click()
    expect(page.get_by_role("button", name="Disconnect")).to_be_visible()


def violations(page: Page) -> list[Any]:
    """What axe finds, by WCAG 2.2 AA: rules, and some of the places."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("tags => axe.run({ runOnly: tags })", TAGS)
    return [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]]


@contextmanager
def held_back(page: Page, url: str) -> Iterator[None]:
    """Requests to this URL wait until the block ends."""
    held: list[Route] = []
    is_over = False

    def answer(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            held.append(route)

    page.context.route(url, answer)
    yield
    is_over = True
    for route in held:
        route.continue_()


def flip_a_bit(route: Route) -> None:
    answer = route.fetch()
    body = bytearray(answer.body())
    body[31] ^= 1
    route.fulfill(response=answer, body=bytes(body))


def reach(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """By the keyboard alone."""
    for _ in range(150):
        if wanted.evaluate("field => field === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(wanted)
