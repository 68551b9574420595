"""Wallets that are slow, busy, late, declined half-way or switched, in Chromium. Money is read from the chain."""

from __future__ import annotations

from browser_driver import PROVIDER, Wallet, Watched, context_of, hold, let_go
from consilium_chain.tasks.money_spec import TOKEN
from dashboard_driver import HELD, NEEDED, Rig, connect, open_page
from playwright.sync_api import Locator, Page, expect

pytestmark = NEEDED
AMOUNT = 5 * TOKEN


def form(rig: Rig, page: Page, wallet: Wallet, how: str = "By a signature") -> Locator:
    """The form of a node's page, filled in; its button."""
    wallet.install(page)
    open_page(rig, page, f"/nodes/{rig.node()}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    page.get_by_label("Amount").fill("5")
    page.get_by_label(how).check()
    return page.get_by_role("button", name="Delegate", exact=True)


def delegated(rig: Rig, wallet: Wallet) -> int:
    return HELD - rig.treasury.token.balance(wallet.account.address)


def approved(rig: Rig, wallet: Wallet) -> int:
    token = rig.treasury.contracts.token.contract.functions
    return int(rig.treasury.connection.call(token.allowance(wallet.account.address, rig.treasury.deployment.staking)))


def test_an_approval_that_stands_is_named_and_used_or_taken_back(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    button = form(rig, page, wallet, "By an approval")
    wallet.sends_at_most = 1
    button.click()
    expect(page.get_by_role("alert").filter(has_text="You declined this")).to_contain_text("It was not sent")
    expect(page.get_by_text("the staking contract may take 5.00")).to_be_visible()
    assert (delegated(rig, wallet), approved(rig, wallet)) == (0, AMOUNT)

    wallet.sends_at_most = None
    page.get_by_role("button", name="Take the approval back").click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    expect(page.get_by_text("An approval stands")).to_have_count(0)
    assert approved(rig, wallet) == 0

    wallet.sends_at_most = len(wallet.sent) + 1
    button.click()
    expect(page.get_by_text("An approval stands")).to_be_visible()
    wallet.sends_at_most = None
    button.click()  # the approval is not asked for again
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert len(wallet.sent) == 4
    assert (delegated(rig, wallet), approved(rig, wallet)) == (AMOUNT, 0)


def test_a_wallet_that_never_answers_is_left(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    button = form(rig, page, wallet)
    hold(page, "eth_signTypedData_v4")
    button.click()
    page.get_by_role("button", name="Stop waiting").click()
    expect(page.locator("[data-sending=left]")).to_contain_text("decline it there")
    assert let_go(page) == 1  # signed after all: the page sends nothing with it
    page.wait_for_timeout(1_000)
    assert ("eth_sendTransaction" in wallet.asked, delegated(rig, wallet)) == (False, 0)
    button.click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert delegated(rig, wallet) == AMOUNT


def test_a_busy_wallet_is_told_from_a_fault(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    wallet.install(page)
    open_page(rig, page, f"/nodes/{rig.node()}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    wallet.is_busy = True
    page.get_by_role("button", name="Test Wallet").click()
    expect(page.get_by_role("alert")).to_contain_text("waits for your answer to an earlier request")
    wallet.is_busy = False
    connect(page)
    expect(page.get_by_text("by Test Wallet")).to_be_visible()


def test_an_account_or_chain_that_is_switched_leaves_the_form_as_it_is(rig: Rig, watched: Watched) -> None:
    page, wallet, other = watched.page, rig.wallet(), rig.wallet()
    first = wallet.account
    button = form(rig, page, wallet)
    wallet.account = other.account
    page.evaluate("account => window.testWalletEmits('accountsChanged', [account])", other.account.address)
    expect(page.get_by_role("alert")).to_contain_text("switched to another account")
    expect(page.get_by_label("Amount")).to_have_value("5")

    page.evaluate("window.testWalletEmits('chainChanged', '0x1')")
    wallet.chain = 1
    expect(page.get_by_text("The wallet is on another chain")).to_be_visible()
    expect(page.get_by_label("Amount")).to_be_hidden()
    page.get_by_role("button", name="Switch the chain").click()
    page.evaluate("id => window.testWalletEmits('chainChanged', id)", hex(wallet.own_chain))
    expect(page.get_by_label("Amount")).to_have_value("5")
    page.get_by_role("button", name="Understood").click()
    button.click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    assert rig.treasury.token.balance(first.address) == HELD
    assert rig.treasury.token.balance(other.account.address) == HELD - AMOUNT


def test_a_contract_wallet_approves_by_a_transaction(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    rig.rpc("anvil_setCode", wallet.account.address, "0x6001")
    wallet.install(page)
    open_page(rig, page, f"/nodes/{rig.node()}/hospital")
    page.get_by_role("button", name="Delegate…").click()
    connect(page)
    expect(page.get_by_text("This account is a contract")).to_be_visible()
    expect(page.get_by_label("By a signature")).to_have_count(0)


def test_a_wallet_that_appears_late_is_found(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    page.expose_function("testWallet", wallet._request)
    open_page(rig, page, "/portfolio")
    expect(page.get_by_text("This browser has no wallet")).to_be_visible()
    page.evaluate(PROVIDER)
    connect(page)


def test_an_unreachable_chain_is_no_failed_check(rig: Rig) -> None:
    context = context_of(rig.browser)
    page = context.new_page()
    context.route(f"{rig.chain_url}/**", lambda route: route.abort())
    open_page(rig, page, "/tasks/1/rounds/1")
    region = page.get_by_role("region", name="Verify this round yourself")
    region.get_by_role("button", name="Verify now").click()
    expect(region.get_by_text("Could not check: this says nothing about the round")).to_be_visible(timeout=60_000)
    expect(region.locator("li[data-state=fails]")).to_have_count(0)
    context.close()


def test_eight_tabs_share_one_stream_of_events(rig: Rig) -> None:
    """Over HTTP/1.1 a browser opens six connections to a server: a stream for each tab would leave none for the API."""
    context = context_of(rig.browser)
    pages = [context.new_page() for _ in range(8)]
    streams: list[str] = []
    for page in pages:
        page.on("request", lambda request: streams.append(request.url) if request.url.endswith("/v1/events") else None)
        open_page(rig, page, "/tasks")
    for page in pages:
        expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    assert len(streams) == 1
    pages[0].close()  # the next one takes over
    expect(pages[1].get_by_role("table", name="Tasks")).to_be_visible()
    pages[1].wait_for_timeout(1_000)
    assert len(streams) == 2
    context.close()


def test_escape_gives_the_focus_back(rig: Rig, watched: Watched) -> None:
    page, wallet = watched.page, rig.wallet()
    form(rig, page, wallet).click()
    expect(page.locator("[data-sending=confirmed]")).to_be_visible()
    open_page(rig, page, "/portfolio")
    button = page.get_by_role("button", name="Undelegate")
    button.click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()


def test_the_focus_outlasts_the_element_that_has_it(rig: Rig, watched: Watched) -> None:
    """It is hidden for a picture, then for good. A click beside it gives the focus up."""
    page = watched.page
    open_page(rig, page, "/portfolio")
    field, main = page.get_by_label("Look up an account"), page.locator("main")
    hide = "(field, hides) => { field.form.hidden = hides; field.form.style.display = hides ? 'none' : '' }"
    field.focus()
    field.evaluate(
        f"""field => {{
            const hide = {hide}
            hide(field, true)
            requestAnimationFrame(() => requestAnimationFrame(() => hide(field, false)))
        }}"""
    )
    page.wait_for_timeout(200)
    expect(main.or_(field).and_(page.locator(":focus"))).to_have_count(1)
    field.focus()
    field.evaluate(hide, True)
    expect(main).to_be_focused()
    page.mouse.click(2, 2)
    main.evaluate("main => main.append('more')")
    page.wait_for_timeout(200)
    expect(page.locator("body")).to_be_focused()


def test_an_account_that_is_switched_while_the_page_is_painted_stays_switched(rig: Rig, watched: Watched) -> None:
    """The wallet's later answers about its account come after the switch."""
    page, wallet, other = watched.page, rig.wallet(), rig.wallet().account
    wallet.install(page)
    open_page(rig, page, "/propose")
    expect(page.get_by_text("The file is valid.", exact=True)).to_be_visible()
    page.get_by_role("radio").first.check()
    connect(page)
    page.evaluate(
        """() => {
            const { request } = window.ethereum
            let asked = 0
            const late = new Promise((resolve) => { window.answerNow = resolve })
            window.ethereum.request = async (call) => {
                const answer = await request(call)
                if (call.method === 'eth_accounts' && ++asked > 1) await late
                return answer
            }
        }"""
    )
    page.get_by_role("form", name="The task, as a form").get_by_role("textbox", name="Name", exact=True).first.fill(
        "new"
    )
    page.wait_for_timeout(500)
    wallet.switch(page, other)
    page.evaluate("window.answerNow()")
    page.wait_for_timeout(300)
    shown = page.locator("p", has_text="Connected as").get_by_role("link").get_attribute("href")
    assert shown == f"#/accounts/{other.address}"  # at once: a later painting may mend it
