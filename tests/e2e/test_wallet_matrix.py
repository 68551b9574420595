"""Every action of the dashboard that a wallet confirms, with every conduct of a wallet, in Chromium.

Money is read from the chain. Widths and themes rotate over the cases, so that each flow has each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from browser_driver import Wallet, Watched, context_of, hold, let_go, wait_held
from chain_driver import BOND, TaskDriver
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.ledger.roles import NO_KEY
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from dashboard_driver import (
    HELD,
    NEEDED,
    POOL,
    Network,
    Testbed,
    idle_aggregator,
    open_page,
    propose,
    reach,
    task_file,
    violations,
    wallet_of,
)
from playwright.sync_api import Locator, Page, expect
from worker_driver import until

pytestmark = NEEDED
SIGN, TYPED, SEND = "personal_sign", "eth_signTypedData_v4", "eth_sendTransaction"
LOOKS = ((1440, "light"), (390, "dark"), (1440, "dark"), (390, "light"))
VERIFIED = 120_000  # milliseconds
Facts = dict[str, int]


class Hand:
    """Uses a page, by the mouse or by the keyboard alone. After each of its deeds something has the focus."""

    def __init__(self, page: Page, is_keyboard: bool) -> None:
        self.page, self._is_keyboard = page, is_keyboard

    def press(self, button: Locator) -> None:
        expect(button).to_be_enabled(timeout=30_000)
        if self._is_keyboard:
            reach(self.page, button)
            self.page.keyboard.press("Enter")
        else:
            button.click()
        self.keeps_focus()

    def press_button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def type(self, field: Locator, text: str) -> None:
        if self._is_keyboard:
            reach(self.page, field)
            self.page.keyboard.press("ControlOrMeta+A")
            self.page.keyboard.type(text)
        else:
            field.fill(text)
        expect(field).to_have_value(text)

    def choose(self, radio: Locator) -> None:
        """Tab goes to the checked one of its group, or to the first, and arrows to the others."""
        if not self._is_keyboard:
            radio.check()
        elif not radio.is_checked():
            group = self.page.locator(f"input[name='{radio.get_attribute('name')}']")
            checked = group.and_(self.page.locator(":checked"))
            reach(self.page, checked if checked.count() else group.first)
            reach(self.page, radio, "ArrowDown")
            self.page.keyboard.press("Space")
        expect(radio).to_be_checked()

    def select(self, field: Locator, value: str) -> None:
        if self._is_keyboard:
            reach(self.page, field)
            for _ in range(60):
                if field.input_value() == value:
                    break
                self.page.keyboard.press("ArrowDown")
        else:
            field.select_option(value)
        expect(field).to_have_value(value)

    def keeps_focus(self) -> None:
        self.page.wait_for_function("() => document.activeElement !== document.body", timeout=2_000)

    def region(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


@dataclass
class Flow:
    """`open`: up to the choice of a wallet. `fill`: up to the last button. `go`: the last button, or the one that opens
    a dialog, and the dialog. `again`: the same after the act of this number failed, with what was entered before.

    `acts`: what the wallet is asked, in order; `as_contract`: if its account is one, None for an action that is not
    offered. `change`: of the chain's facts, by the whole flow. `halfway`: by its first act that the chain carries out,
    where others follow, and what the page says of it. `said`: what the page says at the end. `is_hidden_from_others`:
    it is a node's alone. `is_for_any_chain`: no part of it needs a chain.
    """

    name: str
    acts: tuple[str, ...]
    wallet: Callable[[Testbed], Wallet]
    open: Callable[[Testbed, Hand, Wallet], None]
    go: Callable[[Testbed, Hand], None]
    facts: Callable[[Testbed, Wallet, str], Facts]
    change: Facts
    fill: Callable[[Testbed, Hand], None] = lambda testbed, hand: None
    again: Callable[[Testbed, Hand, int], None] | None = None
    as_contract: tuple[str, ...] | None = ()
    said: str = ""
    halfway: tuple[Facts, str] = ({}, "")
    is_hidden_from_others: bool = False
    is_for_any_chain: bool = False

    def once_more(self, testbed: Testbed, hand: Hand, act: int) -> None:
        if self.again:
            self.again(testbed, hand, act)
        else:
            self.go(testbed, hand)

    def expect_done(self, page: Page) -> None:
        confirmed = page.locator("[data-sending=confirmed]")
        expect(page.get_by_text(self.said).first if self.said else confirmed).to_be_visible()


# Facts of the chain


def paid(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
    """The tokens that an account lacks of `HELD`, and those that contracts may still take from it."""
    token = testbed.treasury.contracts.token.contract.functions
    book = testbed.deployment
    approved = (testbed.treasury.connection.call(token.allowance(account, one)) for one in (book.staking, book.tasks))
    return {"paid": HELD - testbed.treasury.token.balance(account), "approved": sum(map(int, approved))}


def staked(role: Role) -> Callable[[Testbed, Wallet, str], Facts]:
    def facts(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
        staking = testbed.treasury.staking
        found = {"node": 0, "stake": 0}
        if staking.is_registered(account, role):
            found = {"node": 1, "stake": staking.stake_of(account, role).active}
        return found | paid(testbed, wallet, account)

    return facts


def moved(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
    """Without amounts, which grow by the second."""
    logs, staking = testbed.treasury.logs, testbed.treasury.contracts.staking.contract.functions
    return {
        "claims": len(list(logs.of_staking("Claimed", delegator=account))),
        "delegations": len(list(logs.of_staking("Delegated", delegator=account))),
        "requests": int(testbed.treasury.connection.call(staking.requestCount(account))),
        "home": round(testbed.treasury.token.balance(account) / TOKEN) if not place_earns(wallet) else 0,
        "approved": paid(testbed, wallet, account)["approved"],
    }


def place_earns(wallet: Wallet) -> bool:
    return getattr(wallet, "earns", False)


def of_task(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
    number = vars(wallet)["task"]
    state = testbed.treasury.tasks.state(number)
    operated = paid(testbed, wallet, account)
    return operated | {"ended": int(state.phase is Phase.ENDED), "pool": testbed.treasury.tasks.params(number).pool}


def bond(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
    return {"bond": testbed.treasury.tasks.hospitals(vars(wallet)["task"])[0].bond}


def profile(testbed: Testbed, wallet: Wallet, account: str) -> Facts:
    stored = testbed.running.get(f"/v1/profiles?account={account}")["items"]
    return {"profiles": len(stored)} | paid(testbed, wallet, account)


# What stands before a flow begins


def delegator(testbed: Testbed, earns: bool = False) -> Wallet:
    wallet = testbed.wallet()
    mine = testbed.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    calls = [staking.delegate(testbed.node(), Role.HOSPITAL, 100 * TOKEN), token.approve(mine.deployment.staking, 0)]
    mine.connection.transactions.send_all([token.approve(mine.deployment.staking, HELD), *calls])
    if earns:
        testbed.reward(testbed.node(), 600 * TOKEN)
        vars(wallet)["earns"] = True
    return wallet


def matured(testbed: Testbed) -> Wallet:
    """Half of its stake is at the end of unbonding, in a request."""
    wallet = delegator(testbed)
    mine, account = testbed.ledger(wallet.account), wallet.account.address
    staking = mine.contracts.staking.contract.functions
    shares = testbed.shares(account, testbed.node())
    mine.connection.transactions.send(staking.startUnbonding(testbed.node(), Role.HOSPITAL, shares // 2))
    testbed.rpc("evm_increaseTime", LOCAL_UNBONDING)
    testbed.rpc("evm_mine")
    return wallet


def node(testbed: Testbed) -> Wallet:
    wallet = testbed.wallet()
    account = wallet.account.address
    testbed.ledger(wallet.account).staking.register(Role.HOSPITAL, 0, 0)
    until(lambda: testbed.running.get(f"/v1/nodes?account={account}")["items"], 30)
    return wallet


@cache
def aggregator(testbed: Testbed) -> str:
    return idle_aggregator(testbed)


def operator(testbed: Testbed, is_stopped: bool = False) -> Wallet:
    wallet = testbed.wallet()
    number = propose(testbed, wallet, aggregator(testbed), task_file(testbed, "to be operated", aggregator_bond="300"))
    vars(wallet)["task"] = number
    if is_stopped:
        testbed.ledger(wallet.account).operator.stop(number)
        wait_ended(testbed, number)
    return wallet


def bonded(testbed: Testbed) -> Wallet:
    task = TaskDriver(Network(testbed), terms={"pool": 400 * TOKEN})
    task.nodes[0].hospital.join(task.task, 10, TransportKey.generate(), NO_KEY)
    task.operator.operator.stop(task.task)
    wallet = wallet_of(testbed, task.nodes[0])
    vars(wallet)["task"] = task.task
    wait_ended(testbed, task.task)
    return wallet


def wait_ended(testbed: Testbed, task: int) -> None:
    """In the API, which may not know the task yet."""
    tasks = "/v1/tasks?phase=ended&sort=-task"
    until(lambda: any(one["task"] == task for one in testbed.running.get(tasks)["items"]), 30)


# What is done


def at(path: str, *buttons: str) -> Callable[[Testbed, Hand, Wallet], None]:
    """`path` may name the testbed's `node` and the wallet's `task`."""

    def open_it(testbed: Testbed, hand: Hand, wallet: Wallet) -> None:
        if "unbonding" in path:
            hand.page.clock.install(time=testbed.treasury.connection.blocks.now() + 60)
            hand.page.clock.resume()
        named = path.removesuffix("?unbonding").format(node=testbed.node(), task=vars(wallet).get("task"))
        open_page(testbed, hand.page, named)
        for button in buttons:
            hand.press_button(button)

    return open_it


def pressing(*names: str) -> Callable[[Testbed, Hand], None]:
    def go(testbed: Testbed, hand: Hand) -> None:
        for name in names:
            hand.press_button(name)

    return go


def amount(how: str) -> Callable[[Testbed, Hand], None]:
    def fill(testbed: Testbed, hand: Hand) -> None:
        hand.type(hand.page.get_by_label("Amount"), "5")
        choice = hand.page.get_by_label(how)
        contract = hand.page.get_by_text("This account is a contract")
        expect(choice.or_(contract)).to_be_visible()
        if choice.is_visible():
            hand.choose(choice)

    return fill


def again_with(label: str, value: str, button: str) -> Callable[[Testbed, Hand, int], None]:
    def again(testbed: Testbed, hand: Hand, act: int) -> None:
        expect(hand.page.get_by_label(label)).to_have_value(value)
        hand.press_button(button)

    return again


def undelegate(testbed: Testbed, hand: Hand, is_again: bool = False) -> None:
    hand.press_button("Undelegate")
    field = hand.dialog().get_by_label("Amount")
    if is_again:
        expect(field).to_have_value("40")
    else:
        hand.type(field, "40")
    hand.press(hand.dialog().get_by_role("button", name="Undelegate"))


def redelegate(testbed: Testbed, hand: Hand, is_again: bool = False) -> None:
    hand.press_button("Redelegate")
    other = testbed.node("voter")
    if is_again:
        expect(hand.dialog().get_by_label("Node")).to_have_value(other)
    else:
        hand.select(hand.dialog().get_by_label("Role"), "voter")
        expect(hand.dialog().get_by_label("Node").locator(f"option[value='{other}']")).to_be_attached()
        hand.select(hand.dialog().get_by_label("Node"), other)
    hand.press(hand.dialog().get_by_role("button", name="Redelegate"))


def restake(testbed: Testbed, hand: Hand) -> None:
    hand.press_button("Claim and restake")
    hand.press(hand.dialog().get_by_role("button", name="Claim and restake"))


def restake_again(testbed: Testbed, hand: Hand, act: int) -> None:
    if act == 1:
        restake(testbed, hand)
    else:
        hand.press_button("Delegate them now")


def register(testbed: Testbed, hand: Hand) -> None:
    hand.choose(hand.region("Become a node").get_by_label("Voter", exact=True))
    hand.type(hand.page.get_by_label("Commission, in per cent").last, "7.5")
    hand.type(hand.page.get_by_label("Stake, in tokens"), "200")


def fill_profile(testbed: Testbed, hand: Hand) -> None:
    hand.press_button("Set the public profile…")
    hand.type(hand.region("Profile").get_by_label("Name"), "Klinik Nord")
    hand.type(hand.region("Profile").get_by_label("Country"), "de")


def open_proposal(testbed: Testbed, hand: Hand, wallet: Wallet) -> None:
    chosen = aggregator(testbed)
    testbed.serve_config(hand.page, example=False)
    open_page(testbed, hand.page, "/propose")
    expect(hand.page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    form = hand.page.get_by_role("form", name="The task, as a form")
    hand.type(form.get_by_role("textbox", name="Name", exact=True).first, "of the matrix")
    money = form.get_by_role("group", name="Money", exact=True)
    hand.type(money.get_by_role("textbox", name="Pool", exact=True), str(POOL))
    expect(hand.page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    hand.choose(hand.page.get_by_label(f"Choose {chosen}"))


def store(testbed: Testbed, hand: Hand) -> None:
    hand.press_button("Sign in and store the file")
    expect(hand.page.get_by_text("The server has the file.")).to_be_visible()


def open_audit(testbed: Testbed, hand: Hand, wallet: Wallet) -> None:
    at("/tasks/1/audit", "Verify all rounds")(testbed, hand, wallet)
    expect(hand.page.get_by_text("All checks of all 3 rounds hold.")).to_be_visible(timeout=VERIFIED)
    hand.press_button("Sign it…")


AMOUNT = {"paid": 5 * TOKEN}


def approved(tokens: int) -> tuple[Facts, str]:
    return {"approved": tokens * TOKEN}, "An approval stands"


NODE = {"paid": 200 * TOKEN, "node": 1, "stake": 200 * TOKEN}
FLOWS = [
    Flow(
        "delegate-by-signature", (TYPED, SEND), Testbed.wallet, at("/nodes/{node}/hospital", "Delegate…"),
        pressing("Delegate"), paid, AMOUNT, amount("By a signature"), again_with("Amount", "5", "Delegate"),
        as_contract=(SEND, SEND),
    ),
    Flow(
        "delegate-by-approval", (SEND, SEND), Testbed.wallet, at("/nodes/{node}/hospital", "Delegate…"),
        pressing("Delegate"), paid, AMOUNT, amount("By an approval"), again_with("Amount", "5", "Delegate"),
        halfway=approved(5),
    ),
    Flow(
        "undelegate", (SEND,), delegator, at("/portfolio"), undelegate, moved, {"requests": 1},
        again=lambda testbed, hand, act: undelegate(testbed, hand, is_again=True),
    ),
    Flow(
        "claim", (SEND,), lambda testbed: delegator(testbed, earns=True), at("/portfolio"), pressing("Claim"), moved,
        {"claims": 1},
    ),
    Flow(
        "claim-and-restake", (SEND, TYPED, SEND), lambda testbed: delegator(testbed, earns=True), at("/portfolio"),
        restake, moved, {"claims": 1, "delegations": 1}, again=restake_again, as_contract=None,
        halfway=({"claims": 1}, "Step 1 is done"),
    ),
    Flow(
        "become-a-voter", (SEND, SEND), Testbed.wallet, at("/desk"), pressing("Register"), staked(Role.VOTER), NODE,
        register, again_with("Stake, in tokens", "200", "Register"), halfway=approved(200),
    ),
    Flow(
        "add-stake", (SEND, SEND), node, at("/desk"), pressing("Add stake"), staked(Role.HOSPITAL),
        {"paid": 50 * TOKEN, "stake": 50 * TOKEN},
        lambda testbed, hand: hand.type(hand.page.get_by_label("Add to the stake"), "50"),
        again_with("Add to the stake", "50", "Add stake"), halfway=approved(50),
    ),
    Flow(
        "set-a-profile", (TYPED,), node, at("/desk"), pressing("Sign and publish"), profile, {"profiles": 1},
        fill_profile, again_with("Name", "Klinik Nord", "Sign and publish"), as_contract=None,
        said="The profile is published.", is_hidden_from_others=True,
    ),
    Flow(
        "store-a-task-file", (SIGN,), Testbed.wallet, open_proposal, pressing("Sign in and store the file"), paid, {},
        said="The server has the file.",
    ),
    Flow(
        "propose", (SEND, SEND), Testbed.wallet, open_proposal, pressing("Approve and propose"), paid,
        {"paid": POOL * TOKEN}, store, said="is proposed", halfway=approved(POOL),
    ),
    Flow(
        "fund", (SEND, SEND), operator, at("/tasks/{task}", "Operate this task…"), pressing("Approve and add"), of_task,
        {"paid": 50 * TOKEN, "pool": 50 * TOKEN},
        lambda testbed, hand: hand.type(hand.page.get_by_label("Amount"), "50"),
        again_with("Amount", "50", "Approve and add"), halfway=approved(50),
    ),
    Flow(
        "stop", (SEND,), operator, at("/tasks/{task}", "Operate this task…"), pressing("Stop…", "Stop the task"),
        of_task, {"ended": 1},
    ),
    Flow(
        "withdraw-the-refund", (SEND,), lambda testbed: operator(testbed, is_stopped=True),
        at("/tasks/{task}", "Operate this task…"), pressing("Withdraw"), of_task, {"paid": -POOL * TOKEN},
    ),
    Flow(
        "release-a-bond", (SEND,), bonded, at("/desk"),
        lambda testbed, hand: hand.press(hand.page.get_by_title("Release the bond")), bond, {"bond": -BOND},
    ),
    Flow(
        "sign-an-audit-report", (SIGN,), Testbed.wallet, open_audit, pressing("Sign the report"), paid, {},
        said="Signed by", is_for_any_chain=True,
    ),
    # These move the chain's time, so that no window of a task of those above is open any more.
    Flow(
        "redelegate", (SEND,), matured, at("/portfolio?unbonding"), redelegate, moved, {"delegations": 1},
        again=lambda testbed, hand, act: redelegate(testbed, hand, is_again=True),
    ),
    Flow(
        "withdraw-matured-stake", (SEND,), matured, at("/portfolio?unbonding"), pressing("Withdraw"), moved,
        {"home": 50},
    ),
]  # fmt: skip

AT_EACH_ACT = ("declined", "account", "chain")
# Signatures differ for a busy wallet and a contract's account. Flows that only send do it by the same code
# (`wallet/sending.tsx`): one of them is enough.
OF_SIGNATURES = ("busy", "contract")
REFUSED = {
    "declined": "You declined this",
    "busy": "waits for your answer to an earlier request",
    "locked": "does not let this page use the account",
    "chain": "on another chain",
    "account": "another account selected by now",
}
# One of each kind of trouble: the others are left to `make test-deep`.
IN_A_MINUTE = {
    "delegate-by-signature-slow",
    "claim-and-restake-declined-3",
    "fund-account-1",
    "add-stake-locked",
    "undelegate-chain-1",
}


def cases() -> Iterator[Any]:
    for flow in FLOWS:
        conducts = [("slow", 1), ("locked", len(flow.acts))]
        if flow.name == "undelegate" or set(flow.acts) != {SEND}:
            conducts += [(one, 1) for one in OF_SIGNATURES]
        conducts += [(one, act) for act in range(1, len(flow.acts) + 1) for one in AT_EACH_ACT]
        for index, (conduct, act) in enumerate(conducts):
            name = f"{flow.name}-{conduct}" + (f"-{act}" if conduct in AT_EACH_ACT else "")
            marks = [] if name in IN_A_MINUTE else [pytest.mark.deep]
            yield pytest.param(flow, conduct, act, *LOOKS[index % len(LOOKS)], id=name, marks=marks)


@contextmanager
def browsing(testbed: Testbed, wallet: Wallet, width: int = 1440, theme: str = "light") -> Iterator[Page]:
    """A page with the wallet, whose console stays empty of errors, and which asks nothing elsewhere."""
    context = context_of(testbed.browser, theme, width)
    watched = Watched(
        context.new_page(), {f"127.0.0.1:{testbed.running.port}", f"127.0.0.1:{testbed.running.chain_port}"}
    )
    wallet.install(watched.page)
    try:
        yield watched.page
    finally:
        context.close()
    assert (watched.elsewhere, watched.errors) == ([], [])


def begin(testbed: Testbed, flow: Flow, hand: Hand, wallet: Wallet) -> None:
    flow.open(testbed, hand, wallet)
    hand.press_button("Test Wallet")
    expect(hand.page.get_by_role("button", name="Disconnect")).to_be_visible()
    hand.keeps_focus()


def click_twice(page: Page) -> None:
    """Whatever is locked meanwhile."""
    for selector, event in (("main form:has([type=submit]:disabled)", "submit"), ("main button:disabled", "click")):
        for one in page.locator(selector).all():
            one.dispatch_event(event)


def trouble(conduct: str, page: Page, wallet: Wallet, other: Wallet) -> None:
    """While the wallet asks its owner."""
    match conduct:
        case "slow":
            click_twice(page)
        case "busy":
            wallet.is_busy = True
        case "locked":
            wallet.lock(page)
        case "declined":
            wallet.declines = True
        case "account":
            wallet.switch(page, other.account)
        case "chain":
            wallet.switch_chain(page, 1)


def mend(conduct: str, hand: Hand, wallet: Wallet) -> None:
    match conduct:
        case "busy" | "declined":
            wallet.is_busy = wallet.declines = False
        case "locked":
            wallet.unlock(hand.page)
            expect(hand.page.get_by_role("button", name="Disconnect")).to_be_visible()
        case "account":
            wallet.switch(hand.page, wallet.former[-1])
        case "chain":
            hand.press_button("Switch the chain")


def summed(before: Facts, change: Facts) -> Facts:
    return {name: value + change.get(name, 0) for name, value in before.items()}


@pytest.mark.parametrize(("flow", "conduct", "act", "width", "theme"), list(cases()))
def test_money_moves_once_or_not_at_all(
    testbed: Testbed, flow: Flow, conduct: str, act: int, width: int, theme: str
) -> None:
    wallet, other = flow.wallet(testbed), testbed.wallet()
    first, acts = wallet.account.address, flow.acts
    if conduct == "contract":
        wallet.become_contract()
        if flow.as_contract is None:
            not_offered(testbed, flow, wallet, width, theme)
            return
        acts = flow.as_contract or acts
    with browsing(testbed, wallet, width, theme) as page:
        hand = Hand(page, is_keyboard=False)
        begin(testbed, flow, hand, wallet)
        flow.fill(testbed, hand)
        before = flow.facts(testbed, wallet, first)
        asked_before, sent_before = len(wallet.asked), len(wallet.sent)
        hold(page, SIGN, TYPED, SEND)
        flow.go(testbed, hand)
        is_refused = False
        for number, method in enumerate(acts, 1):
            wait_held(page)
            is_here = number == act or conduct == "slow"
            if is_here:
                trouble(conduct, page, wallet, other)
            # A text is signed for no chain. The account that a request names signs it, whichever is selected by now.
            refusing = conduct in ("busy", "locked", "declined") or (conduct == "chain" and method != SIGN)
            is_refused = number == act and refusing
            goes_on = number < len(acts) and not is_refused
            assert let_go(page, holds_on=goes_on and not (conduct == "account" and is_here)) == 1
            if is_refused:
                break
            if conduct == "account" and is_here and number < len(acts):
                is_refused = True  # the next one is not asked
                break
        if conduct == "chain" and act == len(acts) and not is_refused and not flow.is_for_any_chain:
            mend(conduct, hand, wallet)
        if is_refused:
            if conduct == "locked":
                expect(page.get_by_role("button", name="Test Wallet")).to_be_visible()
            elif conduct == "chain":
                expect(page.get_by_text("The wallet is on another chain. These")).to_be_visible()
            told = page.get_by_role("alert").filter(has_text=REFUSED[conduct]).last
            if conduct in ("declined", "busy", "account"):
                expect(told).to_be_visible()
            hand.keeps_focus()
            sent = SEND in acts[: act - 1 + (conduct == "account")]
            half, half_said = flow.halfway
            assert flow.facts(testbed, wallet, first) == summed(before, half if sent else {})
            mend(conduct, hand, wallet)
            if conduct in ("locked", "chain"):
                expect(told).to_be_visible()
            if half_said:
                expect(page.get_by_text(half_said)).to_have_count(int(sent))
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            flow.once_more(testbed, hand, act + (conduct == "account"))
        if conduct == "account" and flow.is_hidden_from_others:
            mend(conduct, hand, wallet)
        flow.expect_done(page)
        hand.keeps_focus()
        if flow.halfway[1]:
            expect(page.get_by_text(flow.halfway[1])).to_have_count(0)
        assert flow.facts(testbed, wallet, first) == summed(before, flow.change)
        assert paid(testbed, wallet, other.account.address) == {"paid": 0, "approved": 0}
        assert len(wallet.sent) - sent_before == acts.count(SEND)
        assert wallet.asked[asked_before:].count(SIGN) == acts.count(SIGN) * (2 if is_refused else 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def not_offered(testbed: Testbed, flow: Flow, wallet: Wallet, width: int, theme: str) -> None:
    """No key signs for a contract, so that no such signature is asked for."""
    with browsing(testbed, wallet, width, theme) as page:
        hand = Hand(page, is_keyboard=False)
        begin(testbed, flow, hand, wallet)
        if flow.name == "set-a-profile":
            hand.press_button("Set the public profile…")
            expect(hand.region("Profile")).to_contain_text("This account is a contract")
            expect(page.get_by_role("button", name="Sign and publish")).to_have_count(0)
        else:
            expect(page.get_by_role("button", name="Claim", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name="Claim and restake")).to_have_count(0)
        assert TYPED not in wallet.asked


@pytest.mark.parametrize(
    "flow",
    [
        pytest.param(one, id=one.name, marks=[] if one.name == "undelegate" else [pytest.mark.deep])
        for one in FLOWS
    ],
)  # fmt: skip
def test_the_keyboard_alone_is_enough(testbed: Testbed, flow: Flow) -> None:
    """Something has the focus at every step, and axe has nothing to say of any page or dialog."""
    wallet = flow.wallet(testbed)
    with browsing(testbed, wallet) as page:
        hand = Hand(page, is_keyboard=True)
        begin(testbed, flow, hand, wallet)
        flow.fill(testbed, hand)
        assert violations(page) == []
        before = flow.facts(testbed, wallet, wallet.account.address)
        page.on("dialog", lambda dialog: dialog.dismiss())
        flow.go(testbed, hand)
        flow.expect_done(page)
        hand.keeps_focus()
        assert violations(page) == []
        assert flow.facts(testbed, wallet, wallet.account.address) == summed(before, flow.change)


@pytest.mark.parametrize("path", ["/portfolio", pytest.param("/propose", marks=pytest.mark.deep)])
def test_a_phone_without_a_wallet_is_led_into_one(testbed: Testbed, path: str) -> None:
    """Over HTTPS, which the browser is told that this server has."""
    context = testbed.browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    context.set_default_timeout(20_000)
    context.route(
        "https://consilium.example/**",
        lambda route: route.fulfill(
            response=route.fetch(url=route.request.url.replace("https://consilium.example", testbed.url))
        ),
    )
    context.route("**/v1/events", lambda route: route.abort())  # a stream, which a copy would never have whole
    page = context.new_page()
    page.goto(f"https://consilium.example/#{path}")
    if path == "/propose":
        expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
        page.get_by_role("radio").first.check()
    links = page.get_by_role("region", name="If you have one of these wallets").get_by_role("link")
    expect(links).to_have_text(["Open in MetaMask", "Open in Coinbase Wallet", "Open in Trust Wallet"])
    targets = [str(one.get_attribute("href")) for one in links.all()]
    assert targets[0] == f"https://link.metamask.io/dapp/consilium.example{path}"
    assert httpx.get(f"{testbed.url}{path}", timeout=20).headers["location"] == f"./#{path}"
    assert parse_qs(urlsplit(targets[1]).query)["cb_url"] == [f"https://consilium.example/#{path}"]
    assert parse_qs(urlsplit(targets[2]).query)["url"] == [f"https://consilium.example/#{path}"]
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.unroute_all(behavior="ignoreErrors")
    context.close()


def test_a_desk_without_a_wallet_has_no_links_for_phones(testbed: Testbed) -> None:
    context = context_of(testbed.browser, width=390)  # narrow, and without touch
    page = context.new_page()
    open_page(testbed, page, "/portfolio")
    expect(page.get_by_text("This browser has no wallet")).to_be_visible()
    expect(page.get_by_text("Open in MetaMask")).to_have_count(0)
    context.close()
