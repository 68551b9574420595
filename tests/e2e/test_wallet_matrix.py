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
    Rig,
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
    wallet: Callable[[Rig], Wallet]
    open: Callable[[Rig, Hand, Wallet], None]
    go: Callable[[Rig, Hand], None]
    facts: Callable[[Rig, Wallet, str], Facts]
    change: Facts
    fill: Callable[[Rig, Hand], None] = lambda rig, hand: None
    again: Callable[[Rig, Hand, int], None] | None = None
    as_contract: tuple[str, ...] | None = ()
    said: str = ""
    halfway: tuple[Facts, str] = ({}, "")
    is_hidden_from_others: bool = False
    is_for_any_chain: bool = False

    def once_more(self, rig: Rig, hand: Hand, act: int) -> None:
        if self.again:
            self.again(rig, hand, act)
        else:
            self.go(rig, hand)

    def expect_done(self, page: Page) -> None:
        confirmed = page.locator("[data-sending=confirmed]")
        expect(page.get_by_text(self.said).first if self.said else confirmed).to_be_visible()


# Facts of the chain


def paid(rig: Rig, wallet: Wallet, account: str) -> Facts:
    """The tokens that an account lacks of `HELD`, and those that contracts may still take from it."""
    token = rig.treasury.contracts.token.contract.functions
    book = rig.deployment
    approved = (rig.treasury.connection.call(token.allowance(account, one)) for one in (book.staking, book.tasks))
    return {"paid": HELD - rig.treasury.token.balance(account), "approved": sum(map(int, approved))}


def staked(role: Role) -> Callable[[Rig, Wallet, str], Facts]:
    def facts(rig: Rig, wallet: Wallet, account: str) -> Facts:
        staking = rig.treasury.staking
        found = {"node": 0, "stake": 0}
        if staking.is_registered(account, role):
            found = {"node": 1, "stake": staking.stake_of(account, role).active}
        return found | paid(rig, wallet, account)

    return facts


def moved(rig: Rig, wallet: Wallet, account: str) -> Facts:
    """Without amounts, which grow by the second."""
    logs, staking = rig.treasury.logs, rig.treasury.contracts.staking.contract.functions
    return {
        "claims": len(list(logs.of_staking("Claimed", delegator=account))),
        "delegations": len(list(logs.of_staking("Delegated", delegator=account))),
        "requests": int(rig.treasury.connection.call(staking.requestCount(account))),
        "home": round(rig.treasury.token.balance(account) / TOKEN) if not place_earns(wallet) else 0,
        "approved": paid(rig, wallet, account)["approved"],
    }


def place_earns(wallet: Wallet) -> bool:
    return getattr(wallet, "earns", False)


def of_task(rig: Rig, wallet: Wallet, account: str) -> Facts:
    number = vars(wallet)["task"]
    state = rig.treasury.tasks.state(number)
    operated = paid(rig, wallet, account)
    return operated | {"ended": int(state.phase is Phase.ENDED), "pool": rig.treasury.tasks.params(number).pool}


def bond(rig: Rig, wallet: Wallet, account: str) -> Facts:
    return {"bond": rig.treasury.tasks.hospitals(vars(wallet)["task"])[0].bond}


def profile(rig: Rig, wallet: Wallet, account: str) -> Facts:
    stored = rig.running.get(f"/v1/profiles?account={account}")["items"]
    return {"profiles": len(stored)} | paid(rig, wallet, account)


# What stands before a flow begins


def delegator(rig: Rig, earns: bool = False) -> Wallet:
    wallet = rig.wallet()
    mine = rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    calls = [staking.delegate(rig.node(), Role.HOSPITAL, 100 * TOKEN), token.approve(mine.deployment.staking, 0)]
    mine.connection.transactions.send_all([token.approve(mine.deployment.staking, HELD), *calls])
    if earns:
        rig.reward(rig.node(), 600 * TOKEN)
        vars(wallet)["earns"] = True
    return wallet


def matured(rig: Rig) -> Wallet:
    """Half of its stake is at the end of unbonding, in a request."""
    wallet = delegator(rig)
    mine, account = rig.ledger(wallet.account), wallet.account.address
    staking = mine.contracts.staking.contract.functions
    shares = rig.shares(account, rig.node())
    mine.connection.transactions.send(staking.startUnbonding(rig.node(), Role.HOSPITAL, shares // 2))
    rig.rpc("evm_increaseTime", LOCAL_UNBONDING)
    rig.rpc("evm_mine")
    return wallet


def node(rig: Rig) -> Wallet:
    wallet = rig.wallet()
    account = wallet.account.address
    rig.ledger(wallet.account).staking.register(Role.HOSPITAL, 0, 0)
    until(lambda: rig.running.get(f"/v1/nodes?account={account}")["items"], 30)
    return wallet


@cache
def aggregator(rig: Rig) -> str:
    return idle_aggregator(rig)


def operator(rig: Rig, is_stopped: bool = False) -> Wallet:
    wallet = rig.wallet()
    number = propose(rig, wallet, aggregator(rig), task_file(rig, "to be operated", aggregator_bond="300"))
    vars(wallet)["task"] = number
    if is_stopped:
        rig.ledger(wallet.account).operator.stop(number)
        wait_ended(rig, number)
    return wallet


def bonded(rig: Rig) -> Wallet:
    task = TaskDriver(Network(rig), terms={"pool": 400 * TOKEN})
    task.nodes[0].hospital.join(task.task, 10, TransportKey.generate(), NO_KEY)
    task.operator.operator.stop(task.task)
    wallet = wallet_of(rig, task.nodes[0])
    vars(wallet)["task"] = task.task
    wait_ended(rig, task.task)
    return wallet


def wait_ended(rig: Rig, task: int) -> None:
    """In the API, which may not know the task yet."""
    tasks = "/v1/tasks?phase=ended&sort=-task"
    until(lambda: any(one["task"] == task for one in rig.running.get(tasks)["items"]), 30)


# What is done


def at(path: str, *buttons: str) -> Callable[[Rig, Hand, Wallet], None]:
    """`path` may name the rig's `node` and the wallet's `task`."""

    def open_it(rig: Rig, hand: Hand, wallet: Wallet) -> None:
        if "unbonding" in path:
            hand.page.clock.install(time=rig.treasury.connection.blocks.now() + 60)
            hand.page.clock.resume()
        named = path.removesuffix("?unbonding").format(node=rig.node(), task=vars(wallet).get("task"))
        open_page(rig, hand.page, named)
        for button in buttons:
            hand.press_button(button)

    return open_it


def pressing(*names: str) -> Callable[[Rig, Hand], None]:
    def go(rig: Rig, hand: Hand) -> None:
        for name in names:
            hand.press_button(name)

    return go


def amount(how: str) -> Callable[[Rig, Hand], None]:
    def fill(rig: Rig, hand: Hand) -> None:
        hand.type(hand.page.get_by_label("Amount"), "5")
        choice = hand.page.get_by_label(how)
        contract = hand.page.get_by_text("This account is a contract")
        expect(choice.or_(contract)).to_be_visible()
        if choice.is_visible():
            hand.choose(choice)

    return fill


def again_with(label: str, value: str, button: str) -> Callable[[Rig, Hand, int], None]:
    def again(rig: Rig, hand: Hand, act: int) -> None:
        expect(hand.page.get_by_label(label)).to_have_value(value)
        hand.press_button(button)

    return again


def undelegate(rig: Rig, hand: Hand, is_again: bool = False) -> None:
    hand.press_button("Undelegate")
    field = hand.dialog().get_by_label("Amount")
    if is_again:
        expect(field).to_have_value("40")
    else:
        hand.type(field, "40")
    hand.press(hand.dialog().get_by_role("button", name="Undelegate"))


def redelegate(rig: Rig, hand: Hand, is_again: bool = False) -> None:
    hand.press_button("Redelegate")
    other = rig.node("voter")
    if is_again:
        expect(hand.dialog().get_by_label("Node")).to_have_value(other)
    else:
        hand.select(hand.dialog().get_by_label("Role"), "voter")
        expect(hand.dialog().get_by_label("Node").locator(f"option[value='{other}']")).to_be_attached()
        hand.select(hand.dialog().get_by_label("Node"), other)
    hand.press(hand.dialog().get_by_role("button", name="Redelegate"))


def restake(rig: Rig, hand: Hand) -> None:
    hand.press_button("Claim and restake")
    hand.press(hand.dialog().get_by_role("button", name="Claim and restake"))


def restake_again(rig: Rig, hand: Hand, act: int) -> None:
    if act == 1:
        restake(rig, hand)
    else:
        hand.press_button("Delegate them now")


def register(rig: Rig, hand: Hand) -> None:
    hand.choose(hand.region("Become a node").get_by_label("Voter", exact=True))
    hand.type(hand.page.get_by_label("Commission, in per cent").last, "7.5")
    hand.type(hand.page.get_by_label("Stake, in tokens"), "200")


def fill_profile(rig: Rig, hand: Hand) -> None:
    hand.press_button("Set the public profile…")
    hand.type(hand.region("Profile").get_by_label("Name"), "Klinik Nord")
    hand.type(hand.region("Profile").get_by_label("Country"), "de")


def open_proposal(rig: Rig, hand: Hand, wallet: Wallet) -> None:
    chosen = aggregator(rig)
    rig.serve_config(hand.page, example=False)
    open_page(rig, hand.page, "/propose")
    expect(hand.page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    form = hand.page.get_by_role("form", name="The task, as a form")
    hand.type(form.get_by_role("textbox", name="Name", exact=True).first, "of the matrix")
    money = form.get_by_role("group", name="Money", exact=True)
    hand.type(money.get_by_role("textbox", name="Pool", exact=True), str(POOL))
    expect(hand.page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    hand.choose(hand.page.get_by_label(f"Choose {chosen}"))


def store(rig: Rig, hand: Hand) -> None:
    hand.press_button("Sign in and store the file")
    expect(hand.page.get_by_text("The server has the file.")).to_be_visible()


def open_audit(rig: Rig, hand: Hand, wallet: Wallet) -> None:
    at("/tasks/1/audit", "Verify all rounds")(rig, hand, wallet)
    expect(hand.page.get_by_text("All checks of all 3 rounds hold.")).to_be_visible(timeout=VERIFIED)
    hand.press_button("Sign it…")


AMOUNT = {"paid": 5 * TOKEN}


def approved(tokens: int) -> tuple[Facts, str]:
    return {"approved": tokens * TOKEN}, "An approval stands"


NODE = {"paid": 200 * TOKEN, "node": 1, "stake": 200 * TOKEN}
FLOWS = [
    Flow(
        "delegate-by-signature", (TYPED, SEND), Rig.wallet, at("/nodes/{node}/hospital", "Delegate…"),
        pressing("Delegate"), paid, AMOUNT, amount("By a signature"), again_with("Amount", "5", "Delegate"),
        as_contract=(SEND, SEND),
    ),
    Flow(
        "delegate-by-approval", (SEND, SEND), Rig.wallet, at("/nodes/{node}/hospital", "Delegate…"),
        pressing("Delegate"), paid, AMOUNT, amount("By an approval"), again_with("Amount", "5", "Delegate"),
        halfway=approved(5),
    ),
    Flow(
        "undelegate", (SEND,), delegator, at("/portfolio"), undelegate, moved, {"requests": 1},
        again=lambda rig, hand, act: undelegate(rig, hand, is_again=True),
    ),
    Flow(
        "claim", (SEND,), lambda rig: delegator(rig, earns=True), at("/portfolio"), pressing("Claim"), moved,
        {"claims": 1},
    ),
    Flow(
        "claim-and-restake", (SEND, TYPED, SEND), lambda rig: delegator(rig, earns=True), at("/portfolio"),
        restake, moved, {"claims": 1, "delegations": 1}, again=restake_again, as_contract=None,
        halfway=({"claims": 1}, "Step 1 is done"),
    ),
    Flow(
        "become-a-voter", (SEND, SEND), Rig.wallet, at("/desk"), pressing("Register"), staked(Role.VOTER), NODE,
        register, again_with("Stake, in tokens", "200", "Register"), halfway=approved(200),
    ),
    Flow(
        "add-stake", (SEND, SEND), node, at("/desk"), pressing("Add stake"), staked(Role.HOSPITAL),
        {"paid": 50 * TOKEN, "stake": 50 * TOKEN},
        lambda rig, hand: hand.type(hand.page.get_by_label("Add to the stake"), "50"),
        again_with("Add to the stake", "50", "Add stake"), halfway=approved(50),
    ),
    Flow(
        "set-a-profile", (TYPED,), node, at("/desk"), pressing("Sign and publish"), profile, {"profiles": 1},
        fill_profile, again_with("Name", "Klinik Nord", "Sign and publish"), as_contract=None,
        said="The profile is published.", is_hidden_from_others=True,
    ),
    Flow(
        "store-a-task-file", (SIGN,), Rig.wallet, open_proposal, pressing("Sign in and store the file"), paid, {},
        said="The server has the file.",
    ),
    Flow(
        "propose", (SEND, SEND), Rig.wallet, open_proposal, pressing("Approve and propose"), paid,
        {"paid": POOL * TOKEN}, store, said="is proposed", halfway=approved(POOL),
    ),
    Flow(
        "fund", (SEND, SEND), operator, at("/tasks/{task}", "Operate this task…"), pressing("Approve and add"), of_task,
        {"paid": 50 * TOKEN, "pool": 50 * TOKEN},
        lambda rig, hand: hand.type(hand.page.get_by_label("Amount"), "50"),
        again_with("Amount", "50", "Approve and add"), halfway=approved(50),
    ),
    Flow(
        "stop", (SEND,), operator, at("/tasks/{task}", "Operate this task…"), pressing("Stop…", "Stop the task"),
        of_task, {"ended": 1},
    ),
    Flow(
        "withdraw-the-refund", (SEND,), lambda rig: operator(rig, is_stopped=True),
        at("/tasks/{task}", "Operate this task…"), pressing("Withdraw"), of_task, {"paid": -POOL * TOKEN},
    ),
    Flow(
        "release-a-bond", (SEND,), bonded, at("/desk"),
        lambda rig, hand: hand.press(hand.page.get_by_title("Release the bond")), bond, {"bond": -BOND},
    ),
    Flow(
        "sign-an-audit-report", (SIGN,), Rig.wallet, open_audit, pressing("Sign the report"), paid, {},
        said="Signed by", is_for_any_chain=True,
    ),
    # These move the chain's time, so that no window of a task of those above is open any more.
    Flow(
        "redelegate", (SEND,), matured, at("/portfolio?unbonding"), redelegate, moved, {"delegations": 1},
        again=lambda rig, hand, act: redelegate(rig, hand, is_again=True),
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
def browsing(rig: Rig, wallet: Wallet, width: int = 1440, theme: str = "light") -> Iterator[Page]:
    """A page with the wallet, whose console stays empty of errors, and which asks nothing elsewhere."""
    context = context_of(rig.browser, theme, width)
    watched = Watched(context.new_page(), {f"127.0.0.1:{rig.running.port}", f"127.0.0.1:{rig.running.chain_port}"})
    wallet.install(watched.page)
    try:
        yield watched.page
    finally:
        context.close()
    assert (watched.elsewhere, watched.errors) == ([], [])


def begin(rig: Rig, flow: Flow, hand: Hand, wallet: Wallet) -> None:
    flow.open(rig, hand, wallet)
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
def test_money_moves_once_or_not_at_all(rig: Rig, flow: Flow, conduct: str, act: int, width: int, theme: str) -> None:
    wallet, other = flow.wallet(rig), rig.wallet()
    first, acts = wallet.account.address, flow.acts
    if conduct == "contract":
        wallet.become_contract()
        if flow.as_contract is None:
            not_offered(rig, flow, wallet, width, theme)
            return
        acts = flow.as_contract or acts
    with browsing(rig, wallet, width, theme) as page:
        hand = Hand(page, is_keyboard=False)
        begin(rig, flow, hand, wallet)
        flow.fill(rig, hand)
        before = flow.facts(rig, wallet, first)
        asked_before, sent_before = len(wallet.asked), len(wallet.sent)
        hold(page, SIGN, TYPED, SEND)
        flow.go(rig, hand)
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
            assert flow.facts(rig, wallet, first) == summed(before, half if sent else {})
            mend(conduct, hand, wallet)
            if conduct in ("locked", "chain"):
                expect(told).to_be_visible()
            if half_said:
                expect(page.get_by_text(half_said)).to_have_count(int(sent))
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            flow.once_more(rig, hand, act + (conduct == "account"))
        if conduct == "account" and flow.is_hidden_from_others:
            mend(conduct, hand, wallet)
        flow.expect_done(page)
        hand.keeps_focus()
        if flow.halfway[1]:
            expect(page.get_by_text(flow.halfway[1])).to_have_count(0)
        assert flow.facts(rig, wallet, first) == summed(before, flow.change)
        assert paid(rig, wallet, other.account.address) == {"paid": 0, "approved": 0}
        assert len(wallet.sent) - sent_before == acts.count(SEND)
        assert wallet.asked[asked_before:].count(SIGN) == acts.count(SIGN) * (2 if is_refused else 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def not_offered(rig: Rig, flow: Flow, wallet: Wallet, width: int, theme: str) -> None:
    """No key signs for a contract, so that no such signature is asked for."""
    with browsing(rig, wallet, width, theme) as page:
        hand = Hand(page, is_keyboard=False)
        begin(rig, flow, hand, wallet)
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
def test_the_keyboard_alone_is_enough(rig: Rig, flow: Flow) -> None:
    """Something has the focus at every step, and axe has nothing to say of any page or dialog."""
    wallet = flow.wallet(rig)
    with browsing(rig, wallet) as page:
        hand = Hand(page, is_keyboard=True)
        begin(rig, flow, hand, wallet)
        flow.fill(rig, hand)
        assert violations(page) == []
        before = flow.facts(rig, wallet, wallet.account.address)
        page.on("dialog", lambda dialog: dialog.dismiss())
        flow.go(rig, hand)
        flow.expect_done(page)
        hand.keeps_focus()
        assert violations(page) == []
        assert flow.facts(rig, wallet, wallet.account.address) == summed(before, flow.change)


@pytest.mark.parametrize("path", ["/portfolio", pytest.param("/propose", marks=pytest.mark.deep)])
def test_a_phone_without_a_wallet_is_led_into_one(rig: Rig, path: str) -> None:
    """Over HTTPS, which the browser is told that this server has."""
    context = rig.browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    context.set_default_timeout(20_000)
    context.route(
        "https://consilium.example/**",
        lambda route: route.fulfill(
            response=route.fetch(url=route.request.url.replace("https://consilium.example", rig.url))
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
    assert httpx.get(f"{rig.url}{path}", timeout=20).headers["location"] == f"./#{path}"
    assert parse_qs(urlsplit(targets[1]).query)["cb_url"] == [f"https://consilium.example/#{path}"]
    assert parse_qs(urlsplit(targets[2]).query)["url"] == [f"https://consilium.example/#{path}"]
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.unroute_all(behavior="ignoreErrors")
    context.close()


def test_a_desk_without_a_wallet_has_no_links_for_phones(rig: Rig) -> None:
    context = context_of(rig.browser, width=390)  # narrow, and without touch
    page = context.new_page()
    open_page(rig, page, "/portfolio")
    expect(page.get_by_text("This browser has no wallet")).to_be_visible()
    expect(page.get_by_text("Open in MetaMask")).to_have_count(0)
    context.close()
