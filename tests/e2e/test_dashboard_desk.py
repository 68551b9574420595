"""A node's owner in Chromium: registering, stake, commission, what is to be done by when. Checked on the chain."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser_driver import Wallet, Watched, context_of
from chain_driver import BOND, TaskDriver
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.roles import NO_KEY
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_core.units import tokens
from dashboard_driver import HELD, LOOKS, NEEDED, Network, Rig, connect, open_page, violations, wallet_of
from playwright.sync_api import Page, expect
from worker_driver import until

pytestmark = NEEDED


@pytest.fixture(scope="module")
def task(rig: Rig) -> TaskDriver:
    """A task of nobody but this module, whose hospitals have all committed to statistics."""
    driver = TaskDriver(Network(rig), terms={"pool": 400 * TOKEN}).join()
    driver.commit_all([0])
    return driver


def desk(rig: Rig, page: Page, wallet: Wallet) -> None:
    wallet.install(page)
    open_page(rig, page, "/desk")
    connect(page)


def region(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def register(page: Page, role: str, commission: str = "0", stake: str = "") -> None:
    form = region(page, "Become a node")
    form.get_by_label(role, exact=True).check()
    form.get_by_label("Commission, in per cent").fill(commission)
    form.get_by_label("Stake, in tokens").fill(stake)
    form.get_by_role("button", name="Register").click()


def done(page: Page) -> None:
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()


def free(hospital: Ledger) -> int:
    return hospital.staking.stake_of(hospital.address, Role.HOSPITAL).free


@pytest.mark.parametrize("role", [Role.VOTER, Role.HOSPITAL])
def test_an_account_becomes_a_node(rig: Rig, watched: Watched, role: Role) -> None:
    page, wallet = watched.page, rig.wallet()
    mine, title = rig.ledger(wallet.account), role.name.capitalize()
    desk(rig, page, wallet)
    expect(region(page, "To do")).to_have_count(0)
    register(page, title, "7.5", "200")
    done(page)
    assert mine.staking.is_registered(mine.address, role)
    assert (mine.staking.commission(mine.address, role), mine.staking.stake_of(mine.address, role).active) == (
        750,
        200 * TOKEN,
    )
    assert mine.token.balance(mine.address) == HELD - 200 * TOKEN
    assert wallet.asked.count("eth_sendTransaction") == 2
    expect(region(page, "Become a node").get_by_label(title, exact=True)).to_have_count(0)
    expect(region(page, "To do")).to_contain_text("Nothing to do now")

    card = region(page, title)
    card.get_by_label("Add to the stake").fill("50")
    card.get_by_role("button", name="Add stake").click()
    expect(card).to_contain_text(tokens(250 * TOKEN))
    assert mine.staking.stake_of(mine.address, role).free == 250 * TOKEN

    for percent in ("5", "20"):
        card.get_by_label("Commission, in per cent").fill(percent)
        card.get_by_role("button", name="Set commission").click()
        done(page)
    pool = mine.staking.pool(mine.address, role)  # lowered at once, raised after the unbonding period
    assert (pool["commissionBps"], pool["nextCommissionBps"]) == (500, 2_000)
    expect(card).to_contain_text("5 %, 20 % from")


def test_a_withdrawal_address_is_set_by_the_node_and_then_acts_alone(rig: Rig, watched: Watched) -> None:
    page, wallet, cold = watched.page, rig.wallet(), rig.wallet()
    node, owner = rig.ledger(wallet.account), rig.ledger(cold.account)
    desk(rig, page, wallet)
    register(page, "Voter", "0", "100")
    done(page)
    card, dialog = region(page, "Voter"), page.get_by_role("dialog", name="Set withdrawal address")
    expect(card).to_contain_text("the node itself")
    card.get_by_role("button", name="Set withdrawal address").click()
    dialog.get_by_label("Address to pay").fill(owner.address[:-1])
    expect(dialog).to_contain_text("This is not an address")
    expect(dialog.get_by_role("button", name="Set withdrawal address")).to_be_disabled()
    dialog.get_by_label("Address to pay").fill(owner.address)
    assert violations(page) == []
    dialog.get_by_role("button", name="Set withdrawal address").click()
    done(page)
    assert node.withdrawal.payee(node.address, Role.VOTER) == owner.address
    expect(card.get_by_role("button", name="Set withdrawal address")).to_have_count(0)

    path = f"/v1/nodes?account={node.address}"
    until(lambda: [one for one in rig.running.get(path)["items"] if one["withdrawal_address"]])
    other = rig.wallet().account.address
    with context_of(rig.browser) as context:
        page = context.new_page()
        cold.install(page)
        open_page(rig, page, f"/nodes/{node.address}/voter")
        stake = region(page, "Stake")
        stake.get_by_role("button", name="Act as this address…").click()
        connect(page)
        stake.get_by_role("button", name="Undelegate").click()
        done(page)
        assert node.staking.stake_of(node.address, Role.VOTER).unbonding == 100 * TOKEN
        stake.get_by_role("button", name="Set withdrawal address").click()
        dialog = page.get_by_role("dialog", name="Set withdrawal address")
        dialog.get_by_label("Address to pay").fill(other)
        dialog.get_by_role("button", name="Set withdrawal address").click()
        keep = stake.get_by_role("button", name="Take the change back")
        expect(keep).to_be_visible()
        assert node.withdrawal.of(node.address, Role.VOTER).next == other
        assert violations(page) == []
        keep.click()
        expect(keep).to_have_count(0)
    assert node.withdrawal.of(node.address, Role.VOTER).next is None


def test_a_profile_is_signed_by_the_wallet_and_shown_beside_the_address(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    desk(rig, page, wallet)
    register(page, "Hospital", "0", "10")
    done(page)
    account = wallet.account.address
    until(lambda: rig.running.get(f"/v1/nodes?account={account}")["items"])
    page.get_by_role("button", name="Set the public profile…").click()
    form = region(page, "Profile")
    form.get_by_label("Name").fill("Klinik Süd")
    form.get_by_label("Country").fill("de")
    assert violations(page) == []
    form.get_by_role("button", name="Sign and publish").click()
    expect(form).to_contain_text("The profile is published.")
    (stored,) = rig.running.get(f"/v1/profiles?account={account}")["items"]
    assert (stored["name"], stored["country"]) == ("Klinik Süd", "DE")
    expect(page.locator("main .account").first).to_contain_text("Klinik Süd")
    expect(page.locator(".figure").filter(has_text="In your wallet")).to_contain_text("990.00 CSL")


def test_a_voters_key_is_registered_where_its_key_file_is(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    mine = rig.ledger(wallet.account)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk(rig, page, wallet)
    register(page, "Voter")
    done(page)
    card = region(page, "Voter")
    expect(card).to_contain_text("this voter can join no task")
    card.get_by_role("button", name="Copy").click()
    expect(card.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "consilium voter register"
    mine.voter.register_key(voter_key(wallet.account))
    expect(card).not_to_contain_text("this voter can join no task")
    expect(card.get_by_role("button", name="Copy")).to_have_count(0)


def test_what_is_to_be_done_is_said_with_what_it_costs_not_to(rig: Rig, task: TaskDriver) -> None:
    late, early = task.nodes[1], task.nodes[0]
    pages = []
    for ledger in (early, late, task.aggregator):
        page = context_of(rig.browser).new_page()
        desk(rig, page, wallet_of(rig, ledger))
        pages.append(page)
    todo = [region(page, "To do") for page in pages]
    expect(todo[0]).to_contain_text("Nothing to do now")  # it has committed
    expect(todo[1]).to_contain_text("Train and commit to the update")
    expect(todo[1]).to_contain_text(f"Round 0 of task {task.task}")
    expect(todo[1]).to_contain_text(re.compile(r"in \d"))
    expect(todo[2]).to_contain_text("Nothing to do now")
    expect(region(pages[1], "My tasks")).to_contain_text("Committing")
    expect(region(pages[1], "Hospital")).to_contain_text(tokens(BOND))  # is locked

    task.commit(1)  # and everybody's page follows, by itself
    assert task.phase is Phase.UPLOADING
    withheld = 400 * TOKEN // 2 // 10 // 2  # the fee for one of two hospitals, of one of two rounds
    for one in todo[:2]:
        expect(one).to_contain_text("Upload the update")
        expect(one).to_contain_text(f"{tokens(withheld)} tokens, at most 2 % of the bond")
    expect(todo[2]).to_contain_text("Fix the survivors")
    expect(todo[2]).to_contain_text(f"{tokens(BOND // 4)} tokens, at most 25 % of the bond")
    for page in pages:
        page.context.close()


def test_rounds_and_what_they_brought(rig: Rig, watched: Watched) -> None:
    """Of a node of the network's own task, whose key is that node's alone: the wallet only says that it is it."""
    page, wallet = watched.page, rig.wallet()
    node = rig.running.get("/v1/payments?task=1&kind=reward")["items"][0]["account"]
    earned = rig.running.get(f"/v1/payments?account={node}&kind=reward")["items"]
    wallet.account = type("Known", (), {"address": node})()
    desk(rig, page, wallet)
    paid = page.get_by_role("table", name="My rewards and slashes")
    expect(paid.get_by_role("row")).to_have_count(1 + len(rig.running.get(f"/v1/payments?account={node}")["items"]))
    for one in earned:
        expect(paid).to_contain_text(tokens(int(one["amount"])))
    (part,) = [one for one in rig.running.get("/v1/tasks/1")["participants"] if one["account"] == node]
    expect(region(page, "My tasks")).to_contain_text(tokens(int(part["earned"])))


def test_no_pool_grows_once_all_have_joined(rig: Rig, watched: Watched, task: TaskDriver) -> None:
    page = watched.page
    wallet_of(rig, task.operator).install(page)
    open_page(rig, page, f"/tasks/{task.task}")
    page.get_by_role("button", name="Operate this task…").click()
    connect(page)
    expect(page.get_by_role("button", name="Stop…")).to_be_visible()
    expect(region(page, "Add to the pool")).to_contain_text("Everybody has joined, so the pool is fixed.")
    expect(page.get_by_label("Amount")).to_have_count(0)


def test_the_bond_of_a_task_that_has_ended_is_released(rig: Rig, watched: Watched) -> None:
    task = TaskDriver(Network(rig), terms={"pool": 400 * TOKEN})
    page, mine = watched.page, task.nodes[0]
    mine.hospital.join(task.task, 10, TransportKey.generate(), NO_KEY)
    task.operator.operator.stop(task.task)
    assert (task.phase, mine.tasks.hospitals(task.task)[0].bond, free(mine)) == (Phase.ENDED, BOND, 0)
    desk(rig, page, wallet_of(rig, mine))
    row = region(page, "My tasks").get_by_role("row").filter(has_text=f"{task.task}. ")
    row.get_by_title(f"Release the bond of task {task.task}").click()
    done(page)
    assert (mine.tasks.hospitals(task.task)[0].bond, free(mine)) == (0, BOND)
    expect(row.get_by_role("button")).to_have_count(0)
    (part,) = [
        one for one in rig.running.get(f"/v1/tasks/{task.task}")["participants"] if one["account"] == mine.address
    ]
    assert part["bond"] == "0"


# What goes wrong


def test_who_is_a_node_already_is_told(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    page.route("**/v1/events", lambda route: route.fulfill(content_type="text/event-stream", body=""))
    desk(rig, page, wallet)
    expect(region(page, "Become a node")).to_be_visible()
    rig.ledger(wallet.account).staking.register(Role.VOTER, 0, 0)  # in another window, say
    register(page, "Voter")
    expect(page.get_by_role("alert")).to_contain_text("a node of that role already (AlreadyRegistered")


def test_what_cannot_be_is_not_sent(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    desk(rig, page, wallet)
    form = region(page, "Become a node")
    button = form.get_by_role("button", name="Register")
    for label, good, bad in (
        ("Commission, in per cent", "10", {"100.01": "0 to 100", "ten": "0 to 100", "": "0 to 100"}),
        ("Stake, in tokens", "", {"1,5": "This is not an amount", "1000.01": "more than your wallet"}),
    ):
        for text, told in bad.items():
            form.get_by_label(label).fill(text)
            expect(form.get_by_text(told)).to_be_visible()
            expect(button).to_be_disabled()
        form.get_by_label(label).fill(good)
        expect(button).to_be_enabled()


def test_who_declines_is_no_node(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    desk(rig, page, wallet)
    wallet.declines = True
    register(page, "Hospital", stake="10")
    expect(page.get_by_role("alert")).to_contain_text("You declined this")
    assert not rig.treasury.staking.is_registered(wallet.account.address, Role.HOSPITAL)
    assert rig.treasury.token.balance(wallet.account.address) == HELD


def test_without_the_api_stakes_are_there(rig: Rig, task: TaskDriver) -> None:
    context = context_of(rig.browser)
    page = context.new_page()
    context.route("**/v1/**", lambda route: route.abort())
    desk(rig, page, wallet_of(rig, task.judges[0]))
    expect(page.get_by_text("duties, tasks and payments are missing")).to_be_visible()
    stake = task.judges[0].staking.stake_of(task.judges[0].address, Role.VOTER)
    expect(region(page, "Voter")).to_contain_text(tokens(stake.free))
    context.close()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_it_is_in_nobodys_way(rig: Rig, task: TaskDriver, theme: str, width: int) -> None:
    context = context_of(rig.browser, theme, width)
    page = context.new_page()
    wallet_of(rig, task.nodes[1]).install(page)
    open_page(rig, page, "/desk")
    for is_connected in (False, True):
        if is_connected:
            connect(page)
            expect(region(page, "To do").get_by_role("table")).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
