"""The dashboard in Chromium, on `consilium up`: what people do there is checked on the chain."""

from __future__ import annotations

import csv
import gzip
import io
import re
from decimal import Decimal

import pytest
from browser_driver import Watched, context_of
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.units import tokens
from dashboard_driver import HELD, LOOKS, NEEDED, Rig, connect, flip_a_bit, open_page, violations
from playwright.sync_api import Locator, Page, Response, expect

pytestmark = NEEDED

FIRST_LOAD = 250_000  # bytes of scripts, compressed


def paths(rig: Rig) -> list[str]:
    hospital, voter = rig.node(), rig.node("voter")
    return [
        "/", "/tasks", "/tasks?phase=ended", "/tasks/1", "/tasks/1/rounds/0", "/tasks/1/rounds/1", "/tasks/1/audit",
        "/tasks/compare?of=1", "/market", "/models/1", "/nodes", f"/nodes/{hospital}/hospital", f"/nodes/{voter}/voter",
        f"/nodes/compare?of={hospital}", f"/accounts/{hospital}", "/portfolio", "/propose", "/desk", "/wallet",
        "/search?q=1", "/told", "/nowhere",
    ]  # fmt: skip


# Looking


def test_pages_say_what_the_api_says(rig: Rig, watched: Watched) -> None:
    page = watched.page
    task = rig.running.get("/v1/tasks/1")
    open_page(rig, page, "/")
    page.get_by_role("region", name="Latest models").get_by_role("link", name=re.compile(task["name"])).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(task["name"])
    expect(page.locator(".lead")).to_have_text("Which of benign, malignant do 30 columns of a table show?")
    members = page.get_by_role("table", name="Contribution")
    for member in task["participants"]:
        row = members.get_by_role("row").filter(has=page.get_by_title(member["account"]))
        expect(row.filter(has_text=member["role"].capitalize())).to_contain_text(tokens(int(member["earned"])))
    expect(page.locator(".course [aria-current=step]")).to_contain_text("End")
    money = page.get_by_role("region", name="Money")
    for field in ("pool", "rewards", "refund", "slashed"):
        expect(money).to_contain_text(tokens(int(task["money"][field])))
    page.get_by_role("region", name="Rounds").get_by_role("link", name="1", exact=True).click()
    round_ = rig.running.get("/v1/tasks/1/rounds/1")
    expect(page.get_by_role("heading", level=1)).to_have_text("Round 1 of task 1")
    paid = tokens(sum(int(one["amount"]) for one in round_["payments"] if one["kind"] == "reward"))
    expect(page.locator(".lead")).to_contain_text("This round is settled: 1 of 1 cohort was accepted, and 3 hospitals")
    expect(page.locator(".lead")).to_contain_text(f"were paid {paid} CSL together")
    for cohort in round_["cohorts"]:
        expect(page.get_by_role("region", name="Cohorts").first).to_contain_text(f"{cohort['median'] / 1e6:+.4f}")
    ballots = page.get_by_role("table", name="Committee")
    expect(ballots.get_by_role("row")).to_have_count(1 + len(round_["committee"]["ballots"]))
    assert page.title() == "Round 1 of task 1 · Consilium"


def test_tasks_are_chosen_by_the_keyboard_and_stand_side_by_side(rig: Rig, watched: Watched) -> None:
    page = watched.page
    open_page(rig, page, "/tasks")
    box = page.get_by_role("checkbox", name="Compare task 1")
    box.focus()
    page.keyboard.press("Space")
    expect(box).to_be_checked()
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()  # one task alone
    open_page(rig, page, "/tasks/compare?of=1,1,x")
    row = page.get_by_role("table", name="Figures of each task").get_by_role("row").nth(1)
    money = rig.running.get("/v1/tasks/1")["money"]
    expect(row).to_contain_text("Which of benign, malignant do 30 columns of a table show?")
    expect(row).to_contain_text(tokens(int(money["rewards"]) + int(money["bounties"])))


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_no_page_is_in_the_way_of_anybody(rig: Rig, theme: str, width: int) -> None:
    """axe, by WCAG 2.2 AA; and no page is wider than what it is shown on."""
    context = context_of(rig.browser, theme, width)
    page = context.new_page()
    for path in paths(rig):
        open_page(rig, page, path)
        page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
        assert (path, violations(page)) == (path, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_everything_can_be_reached_by_the_keyboard(rig: Rig, watched: Watched) -> None:
    page = watched.page
    open_page(rig, page, "/")
    expect(page.locator("main a").nth(1)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_the_theme_that_was_chosen_stays(rig: Rig, watched: Watched) -> None:
    page = watched.page
    open_page(rig, page, "/")
    before = page.evaluate("getComputedStyle(document.body).color")
    page.get_by_label("Theme").select_option("dark")
    page.reload()
    expect(page.get_by_label("Theme")).to_have_value("dark")
    assert page.evaluate("getComputedStyle(document.body).color") != before


def test_first_load_is_small_and_has_no_wallet_in_it(rig: Rig, watched: Watched) -> None:
    page = watched.page
    scripts: dict[str, bytes] = {}

    def keep(got: Response) -> None:
        if ".js" in got.url:
            scripts[got.url] = got.body()

    page.on("response", keep)
    open_page(rig, page, "/")
    open_page(rig, page, "/tasks/1")  # with the chart
    expect(page.locator(".chart path").first).to_be_visible()
    assert sum(len(gzip.compress(body)) for body in scripts.values()) <= FIRST_LOAD
    programs = [body for url, body in scripts.items() if not url.endswith("/first.js")]  # which looks for a wallet
    assert not any(b"eip6963:requestProvider" in body or b"eth_sendTransaction" in body for body in programs)


# Verifying


def verdict(page: Page) -> Locator:
    region = page.get_by_role("region", name="Verify this round yourself")
    region.get_by_role("button", name="Verify now").click()
    expect(region.get_by_role("button", name="Verify again")).to_be_visible(timeout=60_000)
    return region


@pytest.mark.parametrize("round_", [0, 1, 2])
def test_a_round_is_verified_in_the_browser(rig: Rig, watched: Watched, round_: int) -> None:
    open_page(rig, watched.page, f"/tasks/1/rounds/{round_}")
    found = verdict(watched.page)
    expect(found.locator(".notice.good")).to_be_visible()
    expect(found.locator("li[data-state=holds]").first).to_be_visible()
    expect(found.locator("li[data-state=fails]")).to_have_count(0)


def test_a_tampered_sum_turns_the_verdict_red(rig: Rig, watched: Watched) -> None:
    page = watched.page
    page.context.route("**/v1/artifacts/blobs/*", flip_a_bit)
    open_page(rig, page, "/tasks/1/rounds/1")
    found = verdict(page)
    expect(found.locator(".notice.bad")).to_be_visible()
    expect(found.locator("li[data-state=fails]").first).to_be_visible()


# Delegating


@pytest.mark.parametrize("how", ["By a signature", "By an approval"])
def test_delegation_is_on_the_chain(rig: Rig, watched: Watched, how: str) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.install(page)
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    page.get_by_label("Amount").fill("12.5")
    facts_are_the_chains(rig, page, node, wallet.account.address)
    page.get_by_label(how).check()
    page.get_by_role("button", name="Delegate", exact=True).click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.treasury.token.balance(wallet.account.address) == HELD - 25 * TOKEN // 2
    assert rig.shares(wallet.account.address, node) > 0
    assert ("eth_signTypedData_v4" in wallet.asked) == (how == "By a signature")
    assert wallet.asked.count("eth_sendTransaction") == (1 if how == "By a signature" else 2)


def facts_are_the_chains(rig: Rig, page: Page, node: str, account: str) -> None:
    """Before anything is signed: the losses, the time to unlock, the commission, and the gas, of 12.5 tokens."""
    staking, amount = rig.treasury.staking, 25 * TOKEN // 2
    pool = staking.pool(node, Role.HOSPITAL)
    estimate = page.get_by_role("region", name="Estimate")
    at_risk = amount * pool["locked"] // (pool["assets"] + amount)
    expect(estimate).to_contain_text(f"all of it; {tokens(at_risk)} if all present bonds")
    assert staking.unbonding_period() == LOCAL_UNBONDING
    notice = f"{LOCAL_UNBONDING // 3600} h"
    expect(estimate).to_contain_text(f"{notice} after you undelegate")
    expect(estimate).to_contain_text(f"{pool['commissionBps'] / 100:g} %, may rise to 100 %, {notice} after a notice")
    expect(estimate).to_contain_text("new: no yearly rate")
    expect(estimate).not_to_contain_text("It would have earned")
    expect(estimate).to_contain_text(re.compile(r"about \d\.\d{6} ether"))
    record = rig.running.get(f"/v1/nodes/{node}/hospital/record")
    due, made = (sum(one[key] for one in record["deadlines"]) for key in ("due", "made"))
    facts = page.get_by_label("Before you delegate")
    expect(facts.locator(".figure").filter(has_text="Yield, 30 days").locator("dd").first).to_have_text("New")
    expect(facts).to_contain_text(f"{made} of {due}")
    owned = rig.treasury.contracts.staking.contract.functions.positionOf(node, node, Role.HOSPITAL)
    expect(facts).to_contain_text(tokens(rig.treasury.connection.call(owned)[1]))


def test_nodes_are_compared_by_the_keyboard(rig: Rig, watched: Watched) -> None:
    page = watched.page
    open_page(rig, page, "/nodes")
    boxes = page.get_by_role("checkbox")
    for which in (0, 1):
        boxes.nth(which).focus()
        page.keyboard.press("Space")
        expect(boxes.nth(which)).to_be_checked()
    page.get_by_role("link", name="Compare 2 nodes").focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Compare nodes")
    expect(table.get_by_role("columnheader")).to_have_count(3)
    for node in rig.running.get("/v1/nodes?role=hospital&sort=-yield")["items"][:2]:
        expect(table).to_contain_text(tokens(int(node["own"])))
        expect(table.locator(f"a[title='{node['node']}']")).to_be_visible()


def test_rewards_are_claimed_and_stake_comes_home(rig: Rig, watched: Watched) -> None:
    page, node = watched.page, rig.node()
    wallet = rig.wallet()
    mine = rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    mine.connection.transactions.send_all(
        [token.approve(mine.deployment.staking, HELD), staking.delegate(node, Role.HOSPITAL, 100 * TOKEN)]
    )
    rig.reward(node, 600 * TOKEN)
    wallet.install(page)
    open_page(rig, page, "/portfolio")
    connect(page)
    row = page.get_by_role("table", name="Delegations").get_by_role("row").nth(1)
    expect(row).to_contain_text("100.00")
    claim = row.get_by_role("button", name="Claim", exact=True)
    expect(claim).to_be_enabled(timeout=30_000)  # vests by the second
    claim.click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.treasury.token.balance(wallet.account.address) > HELD - 100 * TOKEN

    row.get_by_role("button", name="Undelegate").click()
    page.get_by_role("dialog").get_by_label("Amount").fill("40")
    page.get_by_role("dialog").get_by_role("button", name="Undelegate").click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    expect(row).to_contain_text("60.00")
    home = page.get_by_role("table", name="Unbonding").get_by_role("row").nth(1)
    expect(home).to_contain_text("40.00")
    expect(home.get_by_role("button", name="Withdraw")).to_be_disabled()
    assert mine.connection.call(staking.requestCount(wallet.account.address)) == 1
    history = page.get_by_role("table", name="History")
    row.get_by_role("button", name="Watch", exact=True).click()
    expect(row.get_by_role("link", name="Being told")).to_be_visible()
    assert page.evaluate("JSON.parse(localStorage.watch).nodes") == [node.lower()]
    for line in ("Delegated", "Claimed", "Unbonding started"):
        expect(history).to_contain_text(line)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    lines = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [one["kind"] for one in lines] == ["unbonding_started", "claimed", "delegated"]
    assert lines[-1]["amount"] == "100"
    assert wallet.account.address in download.value.suggested_filename


def exactly(text: str) -> int:
    """The amount of a sentence, in the smallest unit."""
    (found,) = re.findall(r"([0-9,]+(?:\.[0-9]+)?) tokens", text)
    return int(Decimal(found.replace(",", "")) * TOKEN)


def test_rewards_are_claimed_and_staked_again(rig: Rig, watched: Watched) -> None:
    page, node, wallet = watched.page, rig.node(), rig.wallet()
    own, mine = wallet.account.address, rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    mine.connection.transactions.send_all(
        [token.approve(mine.deployment.staking, HELD), staking.delegate(node, Role.HOSPITAL, 100 * TOKEN)]
    )
    mine.connection.transactions.send(token.approve(mine.deployment.staking, 0))
    rig.reward(node, 600 * TOKEN)
    wallet.install(page)
    open_page(rig, page, "/portfolio")
    connect(page)
    row = page.get_by_role("table", name="Delegations").get_by_role("row").nth(1)
    restake, dialog = row.get_by_role("button", name="Claim and restake"), page.get_by_role("dialog")
    for declines in (False, True):  # the second step
        held, shares = rig.treasury.token.balance(own), rig.shares(own, node)
        expect(restake).to_be_enabled(timeout=30_000)
        restake.click()
        assert violations(page) == []
        stated = exactly(dialog.get_by_role("listitem").first.inner_text())
        wallet.sends_at_most = len(wallet.sent) + 1 if declines else None
        dialog.get_by_role("button", name="Claim and restake").click()
        if declines:
            stands = page.get_by_role("status").filter(has_text="Step 1 is done")
            assert exactly(stands.inner_text().replace("claimed ", "")) == stated
            expect(page.get_by_role("alert")).to_contain_text("You declined this")
            assert rig.shares(own, node) == shares
            assert rig.treasury.token.balance(own) >= held + stated
            wallet.sends_at_most = None
            stands.get_by_role("button", name="Delegate them now").click()
        expect(page.locator("[data-sending=confirmed]")).to_be_visible()
        expect(page.get_by_text("Step 1 is done")).to_have_count(0)
        assert rig.shares(own, node) >= shares + stated > shares
        claimed = [one.values["amount"] for one in mine.logs.of_staking("Claimed", delegator=own)]
        assert rig.treasury.token.balance(own) == held + claimed[-1] - stated
    earned = page.get_by_role("table", name="Earned")
    expect(earned.get_by_role("row").last).to_contain_text(tokens(sum(claimed)))


def test_matured_stake_is_delegated_anew_or_taken_home(rig: Rig, watched: Watched) -> None:
    page, node, other = watched.page, rig.node(), rig.node("voter")
    wallet = rig.wallet()
    mine = rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    mine.connection.transactions.send_all(
        [token.approve(mine.deployment.staking, HELD), staking.delegate(node, Role.HOSPITAL, 100 * TOKEN)]
    )
    shares = rig.shares(wallet.account.address, node)
    mine.connection.transactions.send_all([staking.startUnbonding(node, Role.HOSPITAL, shares // 2) for _ in range(2)])
    rig.rpc("evm_increaseTime", LOCAL_UNBONDING)
    rig.rpc("evm_mine")
    page.clock.install(time=rig.treasury.connection.blocks.now() + 60)
    page.clock.resume()
    wallet.install(page)
    open_page(rig, page, "/portfolio")
    connect(page)
    home = page.get_by_role("table", name="Unbonding")
    home.get_by_role("button", name="Redelegate").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Role").select_option("Voter")
    dialog.get_by_label("Node").select_option(other)
    dialog.get_by_role("button", name="Redelegate").click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.shares(wallet.account.address, other, Role.VOTER) > 0
    expect(home.get_by_role("row")).to_have_count(2)
    home.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Nothing is unbonding.")).to_be_visible()
    assert rig.treasury.token.balance(wallet.account.address) == pytest.approx(HELD - 50 * TOKEN, abs=3)


# What goes wrong


def test_who_declines_has_changed_nothing(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.install(page)
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    wallet.declines = True
    for how in ("By a signature", "By an approval"):
        page.get_by_label("Amount").fill("5")
        page.get_by_label(how).check()
        page.get_by_role("button", name="Delegate", exact=True).click()
        expect(page.get_by_role("alert").filter(has_text="You declined this")).to_be_visible()
    assert rig.treasury.token.balance(wallet.account.address) == HELD


def test_amounts_that_cannot_be_are_not_sent(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.install(page)
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    button = page.get_by_role("button", name="Delegate", exact=True)
    for text, told in {
        "1,5": "This is not an amount",
        "-1": "This is not an amount",
        "1000.01": "more than your wallet",
    }.items():
        page.get_by_label("Amount").fill(text)
        expect(page.get_by_text(told)).to_be_visible()
        expect(button).to_be_disabled()


def test_without_ether_it_is_said_so(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(ether=0), rig.node()
    wallet.install(page)
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    page.get_by_label("Amount").fill("5")
    page.get_by_role("button", name="Delegate", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("too little ether")


def test_a_transaction_that_runs_out_of_gas_is_told_as_one(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.install(page)
    wallet.gas = 60_000  # its owner has turned the limit down
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    page.get_by_label("Amount").fill("5")
    page.get_by_role("button", name="Delegate", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("ran out of gas")
    assert rig.treasury.token.balance(wallet.account.address) == HELD


@pytest.mark.parametrize(
    ("how", "state", "told"),
    [
        ("repriced", "confirmed", "with a higher fee than first sent"),
        ("cancelled", "failed", "You cancelled this in your wallet"),
        ("replaced", "failed", "Another transaction of yours replaced this one"),
    ],
)
def test_what_its_owner_makes_of_a_waiting_transaction_is_told(
    rig: Rig, watched: Watched, how: str, state: str, told: str
) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.install(page)
    wallet.nonces_ahead = 1  # so that it waits for the one before it
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    page.get_by_label("Amount").fill("5")
    page.get_by_role("button", name="Delegate", exact=True).click()
    expect(page.locator("[data-sending=pending]")).to_be_visible()

    own = wallet.account.address
    waiting = wallet.sent[-1]
    dearer = {key: 2 * waiting[key] for key in ("maxPriorityFeePerGas", "maxFeePerGas")}
    approval = rig.treasury.contracts.token.contract.functions.approve(own, 1)._encode_transaction_data()
    other = {"cancelled": (own, "0x"), "replaced": (rig.deployment.token, approval)}
    to, data = other.get(how, (waiting["to"], waiting["data"]))
    page.wait_for_timeout(1_000)  # until the page has seen what it waits for
    wallet.send(waiting | dearer | {"to": to, "data": data})
    wallet.send(waiting | dearer | {"to": own, "data": "0x", "nonce": waiting["nonce"] - 1})
    shown = page.locator(f"[data-sending={state}]")
    expect(shown).to_contain_text(told, timeout=30_000)
    assert rig.treasury.token.balance(own) == HELD - (5 * TOKEN if how == "repriced" else 0)


def test_a_wallet_on_another_chain_is_asked_to_switch(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    wallet.chain = 1
    wallet.install(page)
    open_page(rig, page, f"/nodes/{node}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    expect(page.get_by_role("alert")).to_contain_text("another chain")
    expect(page.get_by_label("Amount")).to_have_count(0)
    page.get_by_role("button", name="Switch the chain").click()
    page.evaluate("id => window.testWalletEmits('chainChanged', id)", hex(wallet.own_chain))
    expect(page.get_by_label("Amount")).to_be_visible()
    assert wallet.chain == wallet.own_chain


def test_without_the_api_the_chain_alone_says_what_one_has(rig: Rig) -> None:
    wallet, node = rig.wallet(), rig.node()
    mine = rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    mine.connection.transactions.send_all(
        [token.approve(mine.deployment.staking, HELD), staking.delegate(node, Role.HOSPITAL, 70 * TOKEN)]
    )
    context = context_of(rig.browser)
    page = context.new_page()
    wallet.install(page)
    open_page(rig, page, "/portfolio")
    context.route("**/v1/**", lambda route: route.abort())
    connect(page)
    expect(page.get_by_text("read from the chain alone")).to_be_visible()
    row = page.get_by_role("table", name="Delegations").get_by_role("row").nth(1)
    expect(row).to_contain_text("70.00")
    row.get_by_role("button", name="Undelegate").click()
    page.get_by_role("dialog").get_by_role("button", name="Undelegate").click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.shares(wallet.account.address, node) == 0

    page.goto(f"{rig.url}/#/tasks")
    expect(page.get_by_role("alert")).to_contain_text("The API does not answer")
    context.unroute("**/v1/**")
    expect(page.get_by_role("table", name="Tasks")).to_be_visible(timeout=30_000)  # by itself
    context.close()


def test_a_slash_shows_while_one_looks(rig: Rig, watched: Watched) -> None:
    page, node = watched.page, rig.node("voter")
    open_page(rig, page, f"/nodes/{node}/voter")
    expect(page.locator(".live[data-state=live]")).to_be_visible()
    expect(page.get_by_role("region", name="Slashes", exact=True)).to_contain_text("Never slashed.")
    rig.slash(node, Role.VOTER, 3 * TOKEN)
    expect(page.get_by_role("region", name="Stake", exact=True)).to_contain_text("3.00")


def test_what_the_chain_takes_back_leaves_the_page(rig: Rig, watched: Watched) -> None:
    page, wallet, node = watched.page, rig.wallet(), rig.node()
    mine = rig.ledger(wallet.account)
    staking, token = mine.contracts.staking.contract.functions, mine.contracts.token.contract.functions
    mine.connection.transactions.send(token.approve(mine.deployment.staking, HELD))
    open_page(rig, page, f"/nodes/{node}/hospital")
    delegators = page.get_by_role("region", name="Delegators")
    expect(delegators).to_be_visible()
    snapshot = rig.rpc("evm_snapshot")
    mine.connection.transactions.send(staking.delegate(node, Role.HOSPITAL, 33 * TOKEN))
    account = f"{wallet.account.address[:6]}…{wallet.account.address[-4:]}"
    expect(delegators).to_contain_text(account)
    assert rig.rpc("evm_revert", snapshot)
    expect(delegators).not_to_contain_text(account, timeout=30_000)
    expect(delegators).to_be_visible()


def test_without_scripts_it_says_what_it_needs_and_loads_nothing(rig: Rig) -> None:
    context = rig.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(rig.url)
    expect(page.locator("noscript")).to_be_visible()
    assert "needs JavaScript" in page.locator("noscript").inner_text()  # Playwright's own matching leaves it out
    expect(page.locator(".loading")).to_be_hidden()
    context.close()
