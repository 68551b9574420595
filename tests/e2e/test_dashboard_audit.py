"""The audit of a whole task in Chromium, on `consilium up`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import consilium
import pytest
from browser_driver import Watched, context_of
from consilium_verify.audit_report import canonical
from dashboard_driver import NEEDED, Rig, connect, flip_a_bit, open_page, violations
from playwright.sync_api import Page, Route, expect

pytestmark = NEEDED

DONE = 120_000  # milliseconds


@pytest.fixture
def page(rig: Rig) -> Iterator[Page]:
    """One that may log errors: mirrors fail in it."""
    context = context_of(rig.browser)
    yield context.new_page()
    context.close()


def report_of(page: Page) -> dict[str, Any]:
    """The downloaded file, whose digest is that of its report."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the report").click()
    found: dict[str, Any] = json.loads(download.value.path().read_text())
    assert found["sha256"] == hashlib.sha256(canonical(found["report"])).hexdigest()
    return found


def blobs_of(rig: Rig, round_: int) -> set[str]:
    cohorts = rig.running.get(f"/v1/tasks/1/rounds/{round_}")["cohorts"]
    return {blob["published"] for cohort in cohorts for blob in cohort["blobs"] if blob["published"]}


def test_a_whole_task_holds_and_its_report_is_signed(rig: Rig, watched: Watched, tmp_path: Path) -> None:
    page, wallet = watched.page, rig.wallet(held=0)
    wallet.install(page)
    open_page(rig, page, "/tasks/1")
    page.get_by_role("link", name="Verify all rounds").click()
    page.get_by_role("button", name="Verify all rounds").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("All checks of all 3 rounds hold.")).to_be_visible(timeout=DONE)
    assert "eth_sendTransaction" not in wallet.asked
    page.get_by_role("button", name="Sign it…").click()
    connect(page)
    page.get_by_role("button", name="Sign the report").click()
    expect(page.get_by_text("Signed by")).to_be_visible()
    page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
    assert violations(page) == []
    downloaded = tmp_path / "report.json"
    downloaded.write_text(json.dumps(found := report_of(page)))
    checked = consilium.verify_report(downloaded, rpc=rig.chain_url, address_book=rig.running.address_book)
    assert (checked.account, checked.is_contract, checked.is_compared) == (wallet.account.address, False, True)
    report = found["report"]
    assert [one["subject"]["round"] for one in report["rounds"]] == [0, 1, 2]
    for one in report["rounds"]:
        assert (one["verdict"], {check["result"] for check in one["checks"]}) == ("holds", {"holds"})
        assert blobs_of(rig, one["subject"]["round"]) <= set(one["inputs"]["blobs"])


def test_a_tampered_mirror_fails_its_round_and_a_silent_one_is_no_verdict(rig: Rig, page: Page) -> None:
    tampered, silent = blobs_of(rig, 1), blobs_of(rig, 0)

    def serve(route: Route) -> None:
        blob = route.request.url.rsplit("/", 1)[1]
        if blob in silent:
            route.fulfill(status=503)
        elif blob in tampered:
            flip_a_bit(route)
        else:
            route.continue_()

    page.context.route("**/v1/artifacts/blobs/*", serve)
    open_page(rig, page, "/tasks/1/audit")
    page.get_by_role("button", name="Verify all rounds").click()
    expect(page.get_by_text("A check FAILS in: round 1")).to_be_visible(timeout=DONE)
    expect(page.get_by_text("not all could be done in: round 0")).to_be_visible()
    rounds = report_of(page)["report"]["rounds"]
    assert [one["verdict"] for one in rounds][:2] == ["could not check", "fails"]
    assert {"name": "blobs", "result": "FAILS"}.items() <= rounds[1]["checks"][-1].items()


def test_it_can_be_stopped(rig: Rig, page: Page) -> None:
    page.context.route("**/v1/artifacts/blobs/*", lambda route: None)  # which never answers
    open_page(rig, page, "/tasks/1/audit")
    plan = page.get_by_text("The audit checks 3 rounds and reads")
    read = [len(blobs_of(rig, round_)) for round_ in (0, 1, 2)]
    if any(cohort["is_flipped"] for cohort in rig.running.get("/v1/tasks/1/rounds/2")["cohorts"]):
        read.append(read[1])  # the round before
    expect(plan).to_contain_text(f"reads {sum(read)} blobs of 128 KiB. That takes about")
    page.get_by_role("button", name="Verify all rounds").click()
    expect(page.get_by_text("0 of 3 rounds verified")).to_be_visible(timeout=DONE)
    expect(page.get_by_text(re.compile(r"^Round 0: .* about \d+ s left$"))).to_be_visible(timeout=DONE)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("You stopped it. 3 rounds were not verified.")).to_be_visible()
    report = report_of(page)["report"]
    assert (report["rounds"], report["left"]) == ([], [0, 1, 2])
    page.context.unroute("**/v1/artifacts/blobs/*")
    page.get_by_role("button", name="Verify all again").click()
    expect(page.get_by_text("All checks of all 3 rounds hold.")).to_be_visible(timeout=DONE)
