"""An operator's task in the dashboard, from its file to what is left of its pool: checked on the chain."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import numpy as np
from browser_driver import Watched
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Phase
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import room_in_pool, round_pay, task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_core.units import tokens
from consilium_operators.model_folder import read_model
from dashboard_driver import (
    HELD,
    NEEDED,
    POOL,
    Rig,
    connect,
    held_back,
    idle_aggregator,
    open_page,
    propose,
    reach,
    task_file,
    violations,
)
from playwright.sync_api import Locator, Page, expect

pytestmark = NEEDED
EXAMPLE = Path(__file__).parents[2] / "dashboard/src/propose/example.toml"


def the_file(page: Page) -> Locator:
    """The file's text, which is below the form, and closed at first."""
    field = page.get_by_role("textbox", name="Task file (TOML)")
    if not field.is_visible():
        page.get_by_text("The file itself (TOML)").click()
    return field


def write(page: Page, text: str) -> None:
    the_file(page).fill(text)
    page.get_by_role("button", name="Check", exact=True).click()


def test_an_empty_wallet_is_set_up_and_sends_the_proposal_that_is_filled_in(rig: Rig, watched: Watched) -> None:
    """The network's own hospitals and voters join that task, and play it to its end."""
    page, wallet = watched.page, rig.wallet(held=0, ether=0)
    wallet.chain = 1
    wallet.install(page)
    open_page(rig, page, "/wallet")
    expect(page.get_by_role("region", name="The network")).to_contain_text(rig.deployment.token)
    connect(page)
    wallet.declines = True
    page.get_by_role("button", name="Set up my wallet").click()
    expect(page.get_by_role("alert")).to_contain_text("You declined this")
    assert rig.treasury.token.balance(wallet.account.address) == 0
    wallet.declines = False
    page.get_by_role("button", name="Set up my wallet").click()
    expect(page.get_by_text("The account now has 10.000000 ether and 200,000.00 tokens.")).to_be_visible()
    assert violations(page) == []
    assert wallet.chain == wallet.own_chain
    assert [(one["chainId"], one["rpcUrls"]) for one in wallet.networks] == [(hex(wallet.own_chain), [rig.chain_url])]
    assert [(one["address"], one["symbol"], one["decimals"]) for one in wallet.tokens] == [
        (rig.deployment.token, "CSL", 18)
    ]
    assert rig.treasury.token.balance(wallet.account.address) == 200_000 * TOKEN

    page.get_by_role("link", name="Propose a task").click()
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    store = page.get_by_role("button", name="Sign in and store the file")
    expect(store).to_be_enabled()  # the only aggregator is chosen
    expect(page.get_by_text("It cannot join before it has them")).to_have_count(0)
    store.click()
    page.get_by_role("button", name="Approve and propose").click()
    told = page.get_by_text(re.compile(r"Task \d+ is proposed"))
    expect(told).to_be_visible()
    number = int(re.findall(r"\d+", told.inner_text())[0])
    rig.running.wait_for("task-ended", task=number)
    assert rig.running.get_until(f"/v1/tasks/{number}/rounds/2", outcome="settled")["accepted"]


def test_no_tokens_are_offered_on_a_chain_that_is_not_for_development(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    rig.serve_config(page, chain_id=11_155_111)
    wallet.install(page)
    open_page(rig, page, "/wallet")
    connect(page)
    expect(page.get_by_text("Add the network")).to_be_visible()
    expect(page.get_by_text("Get test ether and tokens")).to_have_count(0)


def test_the_example_holds_and_faults_are_told_one_by_one(rig: Rig, watched: Watched) -> None:
    """The dashboard has an example for a server without one."""
    page = watched.page
    rig.serve_config(page, example=False)
    open_page(rig, page, "/propose")
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()  # by itself, once one pauses
    costs = page.get_by_role("region", name="Size, privacy and costs")
    expect(costs).to_contain_text("36,846")  # lanes
    expect(costs.get_by_role("table", name="Highest pay of a round").get_by_role("row").nth(1)).to_contain_text(
        "7,000.00"
    )
    expect(costs.get_by_role("table", name="Gas").get_by_role("row")).to_have_count(6)
    text = the_file(page).input_value()
    write(page, text.replace("rounds = 10", "rounds = 0").replace("pool = 100_000", "pool = -1"))
    told = page.get_by_role("alert")
    expect(told.get_by_role("listitem")).to_have_count(2)
    expect(told).to_contain_text("rounds.rounds")
    expect(told).to_contain_text("money.pool")
    write(page, text.replace("min_reveals = 3", "min_reveals = 1"))
    expect(costs).to_contain_text("few reveals")


def test_a_task_is_proposed_by_the_form_and_the_keyboard_alone(rig: Rig, watched: Watched) -> None:
    """The stored file is the task that was typed. A reload in the middle loses nothing."""
    page, wallet = watched.page, rig.wallet()
    aggregator = idle_aggregator(rig)
    rig.serve_config(page, example=False)
    wallet.install(page)
    open_page(rig, page, "/propose")
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    form = page.get_by_role("form", name="The task, as a form")

    def fill(group: str | None, name: str, text: str) -> None:
        within = form if group is None else form.get_by_role("group", name=group, exact=True)
        reach(page, within.get_by_role("textbox", name=name, exact=True).first)
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type(text)

    fill(None, "Name", "typed in a form")
    fill("Rounds", "Rounds", "0")
    fill("Money", "Pool", str(POOL))
    page.keyboard.press("Enter")
    rounds = form.get_by_role("textbox", name="Rounds", exact=True)
    expect(rounds).to_be_focused()
    expect(rounds).to_have_accessible_description(re.compile("greater than or equal to 1"))
    assert violations(page) == []
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible(timeout=20_000)
    reach(page, page.get_by_role("radio").first)  # Tab goes to the first of its group, and arrows to the others
    reach(page, page.get_by_label(f"Choose {aggregator}"), "ArrowDown")
    page.keyboard.press("Space")
    reach(page, page.get_by_role("button", name="Test Wallet"))
    page.keyboard.press("Enter")
    store = page.get_by_role("button", name="Sign in and store the file")
    expect(store).to_be_enabled()
    reach(page, store)
    page.keyboard.press("Enter")
    expect(page.get_by_text("The server has the file.")).to_be_visible()

    page.reload()
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible(timeout=20_000)
    connected = page.get_by_role("button", name="Disconnect")
    expect(connected.or_(page.get_by_role("button", name="Test Wallet"))).to_be_visible()
    if not connected.is_visible():
        reach(page, page.get_by_role("button", name="Test Wallet"))
        page.keyboard.press("Enter")
    expect(page.get_by_text("The server has the file.")).to_be_visible()
    pay = page.get_by_role("button", name="Approve and propose")
    reach(page, pay)
    page.keyboard.press("Enter")
    told = page.get_by_text(re.compile(r"Task \d+ is proposed"))
    expect(told).to_be_visible()
    number = int(re.findall(r"\d+", told.inner_text())[0])
    stored = rig.treasury.tasks.params(number).spec_hash
    raw = httpx.get(f"{rig.url}/v1/artifacts/files/0x{stored.hex()}", timeout=20).content
    spec, before = parse_task_spec(raw), parse_task_spec(EXAMPLE.read_bytes())
    wanted = before.model_dump() | {"name": "typed in a form"}
    wanted["rounds"]["rounds"], wanted["money"]["pool"] = 2, POOL
    assert spec.model_dump() == wanted
    assert wallet.asked.count("personal_sign") == 1
    rig.ledger(wallet.account).operator.stop(number)


def test_a_task_is_proposed_in_steps(rig: Rig, watched: Watched) -> None:
    """Every field of what is on the chain is what the command line would have proposed."""
    page, wallet = watched.page, rig.wallet()
    aggregator = idle_aggregator(rig)
    wallet.install(page)
    open_page(rig, page, "/propose")
    page.get_by_label("Start from").select_option(label=f"task 1, {rig.running.get('/v1/tasks/1')['name']}")
    page.get_by_role("button", name="Load").click()
    expect(the_file(page)).to_have_value(re.compile("demo-wdbc"))
    text = task_file(rig, "proposed in a browser")
    write(page, text)
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    page.get_by_label(f"Choose {aggregator}").check()
    connect(page)

    store = page.get_by_role("button", name="Sign in and store the file")
    expect(store).to_be_disabled()
    page.get_by_label("Propose it without privacy").check()
    expect(store).to_be_enabled()
    pay = page.get_by_role("button", name="Approve and propose")
    expect(pay).to_be_disabled()
    wallet.declines = True
    store.click()
    expect(page.get_by_role("alert").filter(has_text="You declined this")).to_be_visible()
    wallet.declines = False
    store.click()
    expect(page.get_by_text("The server has the file.")).to_be_visible()
    raw = text.encode()
    stored = httpx.get(f"{rig.url}/v1/artifacts/files/0x{spec_hash(raw).hex()}", timeout=20)
    assert stored.content == raw

    assert violations(page) == []
    before = rig.treasury.token.balance(wallet.account.address)
    pay.click()
    told = page.get_by_text(re.compile(r"Task \d+ is proposed"))
    expect(told).to_be_visible()
    number = int(re.findall(r"\d+", told.inner_text())[0])
    assert rig.treasury.tasks.params(number) == task_params(parse_task_spec(raw), spec_hash(raw), aggregator)
    assert rig.treasury.tasks.state(number).operator == wallet.account.address
    assert before - rig.treasury.token.balance(wallet.account.address) == POOL * TOKEN
    assert wallet.asked.count("personal_sign") == 2  # one declined

    the_file(page).press("Control+End")
    the_file(page).press("Enter")
    expect(page.get_by_text("The file has changed. It must")).to_be_visible()
    expect(told).to_be_visible()
    expect(pay).to_be_disabled()

    page.get_by_role("link", name="Open the task").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("proposed in a browser")
    rig.ledger(wallet.account).operator.stop(number)


def test_what_cannot_be_paid_is_told_before_anything_is_signed(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    wallet.install(page)
    open_page(rig, page, "/propose")
    # More than the aggregator has staked, and than the wallet holds.
    write(page, task_file(rig, "too dear", pool="3000", aggregator_bond="900_000"))
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    page.get_by_label(f"Choose {rig.node('aggregator')}").check()
    expect(page.get_by_text("It cannot join before it has them")).to_be_visible()
    connect(page)
    expect(page.get_by_role("alert")).to_contain_text("lacks 2,000.00 tokens")
    expect(page.get_by_role("button", name="Sign in and store the file")).to_be_disabled()
    expect(page.get_by_role("button", name="Approve and propose")).to_be_disabled()
    assert "personal_sign" not in wallet.asked


def test_what_is_not_read_yet_is_not_shown_as_zero(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    number = propose(rig, wallet, idle_aggregator(rig), task_file(rig, "not read yet"))
    wallet.install(page)
    open_page(rig, page, f"/tasks/{number}")
    refund, pool = page.get_by_role("region", name="Refund"), page.get_by_role("form", name="Add to the pool")
    with held_back(page, f"{rig.chain_url}/"):
        page.get_by_role("button", name="Operate this task…").click()
        connect(page)
        for one in (refund, pool):
            expect(one.get_by_role("definition")).to_have_text("not known yet")
        expect(refund.get_by_role("button", name="Withdraw")).to_be_disabled()
    expect(refund.get_by_role("definition")).to_contain_text("0.00")
    expect(pool.get_by_role("definition")).to_contain_text(tokens(HELD - POOL * TOKEN))
    rig.ledger(wallet.account).operator.stop(number)


def test_a_pool_grows_a_task_is_stopped_and_what_is_left_comes_home(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    number = propose(rig, wallet, idle_aggregator(rig), task_file(rig, "to be stopped", aggregator_bond="300"))
    params = rig.treasury.tasks.params(number)
    room = room_in_pool(params)
    assert room is not None
    wallet.install(page)
    open_page(rig, page, f"/tasks/{number}")
    page.get_by_role("button", name="Operate this task…").click()
    connect(page)

    amount = page.get_by_label("Amount")
    go = page.get_by_role("button", name="Approve and add")
    amount.fill(str(room // TOKEN + 1))
    expect(page.get_by_text("bond is too small for that")).to_be_visible()
    expect(go).to_be_disabled()
    added = 50 * TOKEN
    amount.fill("50")
    row = page.get_by_role("table", name="A round pays").get_by_role("row").nth(1)
    before, after = round_pay(params, params.pool), round_pay(params, params.pool + added)
    expect(row).to_contain_text(tokens(before.hospitals))
    expect(row).to_contain_text(tokens(after.hospitals))
    assert violations(page) == []
    go.click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.treasury.tasks.params(number).pool == params.pool + added
    expect(page.locator(".figure").filter(has_text="Paid into the pool")).to_contain_text(tokens(params.pool + added))

    page.get_by_role("button", name="Stop…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The task ends at once")
    dialog.get_by_role("button", name="Cancel").click()
    assert rig.treasury.tasks.state(number).phase is Phase.JOINING
    page.get_by_role("button", name="Stop…").click()
    dialog.get_by_role("button", name="Stop the task").click()
    expect(page.get_by_text("It has ended.")).to_be_visible()
    assert rig.treasury.tasks.state(number).phase is Phase.ENDED
    expect(page.get_by_role("form", name="Add to the pool")).to_have_count(0)
    held = rig.treasury.token.balance(wallet.account.address)
    left = page.get_by_role("region", name="Refund")
    expect(left.get_by_role("definition")).to_contain_text(tokens(params.pool + added))
    left.get_by_role("button", name="Withdraw").click()
    expect(left.get_by_role("definition")).to_have_text(re.compile(r"^0\.00\b"))
    expect(left.get_by_role("button", name="Withdraw")).to_be_disabled()
    assert rig.treasury.token.balance(wallet.account.address) == held + params.pool + added


def test_a_model_is_shown_with_its_accuracy_beside_the_start(rig: Rig, watched: Watched) -> None:
    page = watched.page
    open_page(rig, page, "/tasks/1")
    quality = page.get_by_role("region", name="Quality on held-out rows")
    expect(quality).to_contain_text("After round 2 of 2", timeout=60_000)  # derived once the task has ended
    (model,) = rig.running.get("/v1/tasks/1/models")["items"]
    start, _, last = model["measured"]["rounds"]
    assert last["accuracy"] > max(0.9, start["accuracy"])
    figure = quality.locator(".figure").filter(has_text="Accuracy")
    expect(figure).to_contain_text(f"{100 * last['accuracy']:.1f} %")
    expect(figure).to_contain_text(f"at the start {100 * start['accuracy']:.1f} %")
    expect(quality.locator(".chart").first).to_contain_text("Accuracy, %, by round")
    quality.get_by_text("Show as a table").first.click()
    row = quality.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{100 * start['accuracy']:.1f}")
    card = httpx.get(f"{rig.url}/v1/tasks/1/model/model-card.md", timeout=20).text
    assert f"| 0, the start | {start['log_loss']:.4f} | {start['accuracy']:.4f} |" in card
    assert f"| 2 | {last['log_loss']:.4f} | {last['accuracy']:.4f} |" in card
    progress = page.get_by_role("region", name="Improvement by round")
    expect(progress.locator(".chart")).to_contain_text("nats of log loss saved a row, by round")


def test_the_list_of_tasks_opens_by_its_plain_address(rig: Rig, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{rig.url}/tasks")
    expect(page.get_by_role("table", name="Tasks").get_by_role("link", name=re.compile("demo-wdbc"))).to_be_visible()
    assert page.url == f"{rig.url}/#/tasks"


def test_a_model_is_downloaded_and_is_the_one_that_the_record_gives(rig: Rig, watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    open_page(rig, page, "/tasks/1")
    files = page.get_by_role("list", name="Files of the model").get_by_role("link")
    expect(files).to_have_count(5, timeout=90_000)  # it is derived once the task has ended, and model.onnx after it
    folder = tmp_path / "model"
    folder.mkdir()
    for link in files.all():
        with page.expect_download() as download:
            link.click()
        download.value.save_as(folder / link.inner_text())
    saved = read_model(folder)
    ledger, store = rig.treasury, ArtifactStore(rig.running.home / "artifacts")
    joined = load_task(ledger, store, 1)
    derived = PublicRecord(ledger, store, joined).base(joined.params.rounds + 1)
    assert saved.index.verified
    assert "model.onnx" in saved.index.files
    np.testing.assert_array_equal(saved.parameters, derived)


def test_others_are_told_why_not_and_how_to_get_the_model(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    wallet.install(page)
    open_page(rig, page, "/tasks/1")
    model = page.get_by_role("region", name="The model", exact=True)
    expect(model).to_contain_text("consilium operator download-model 1 --output task-1")
    expect(model).to_contain_text(rig.chain_url)
    page.get_by_role("button", name="Operate this task…").click()
    connect(page)
    expect(page.get_by_text("Only the account that proposed this task")).to_be_visible()
    expect(page.get_by_role("button", name="Stop…")).to_have_count(0)
