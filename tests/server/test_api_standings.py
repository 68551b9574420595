"""An arena's ranks over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from browser_driver import chromium, context_of
from consilium_chain.ledger.structs import Outcome, Phase, Role, VoidReason
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.api.dashboard import built
from consilium_server.database.tables import Cohort, OutcomeRow
from dashboard_driver import NEEDED, violations
from fastapi.testclient import TestClient
from indexed_network import HOSPITALS, TASK_FILE, IndexedNetwork, app_of, populated, served
from playwright.sync_api import expect

ORDER = (3, 0, 5, 1, 4, 2)  # hospitals by cohort
ARENA = 5


def form(network: IndexedNetwork, round_: int) -> None:
    network.phase(ARENA, round_, Phase.FORMING)
    place = network.task_told("CohortsFormed", ARENA, round_)
    for item, hospital in enumerate(ORDER):
        network.rows.append(Cohort(**(place | {"item": item}), task=ARENA, round=round_, members=1 << hospital))


def settle(network: IndexedNetwork, round_: int, medians: Sequence[int], rewards: dict[int, int]) -> None:
    network.task_told("SurvivorsFixed", ARENA, round_, survivors=str(0b011111))
    place = network.task_told("RoundSettled", ARENA, round_, medians=[str(m) for m in medians], acceptedCohorts="1")
    network.rows.append(
        OutcomeRow(**place, task=ARENA, round=round_, outcome=Outcome.SETTLED, reason=VoidReason.NONE,
                   medians=list(medians), accepted=1)
    )  # fmt: skip
    for hospital, amount in rewards.items():
        network.pay(ARENA, round_, HOSPITALS[hospital], Role.HOSPITAL, "reward", amount * TOKEN)


@pytest.fixture
def network(tmp_path: Path) -> IndexedNetwork:
    """An arena whose second round is judged."""
    network = populated(tmp_path)
    with network.mined():
        network.propose(ARENA, TASK_FILE.replace("heart failure", "arena"), rank_decay_bps=8_500, rank_floor=300)
    with network.mined():
        network.join(ARENA)
    with network.mined():
        form(network, 1)
    with network.mined():  # hospital 5 has no sum
        settle(network, 1, [9_000, 400, 0, 9_000, -5, 300], {3: 40, 1: 34, 0: 29, 2: 25})
    with network.mined():
        form(network, 2)
        network.phase(ARENA, 2, Phase.SCORING, 2_000_000_000)
    return network


@pytest.fixture
def client(network: IndexedNetwork) -> TestClient:
    return TestClient(app_of(network))


def test_standings_rank_settled_rounds_and_list_the_trainers_of_one_that_is_judged(client: TestClient) -> None:
    now, before = client.get(f"/v1/tasks/{ARENA}/standings").json()["items"]
    assert (now["round"], now["phase"], now["outcome"]) == (2, "scoring", "pending")
    assert [(one["position"], one["median"], one["rank"]) for one in now["standings"]] == [
        (position, None, None) for position in range(6)
    ]
    assert (before["round"], before["phase"], before["outcome"]) == (1, None, "settled")
    # Of equal medians the lower cohort is first.
    assert [(one["position"], one["median"], one["rank"], one["reward"]) for one in before["standings"]] == [
        (3, 9_000, 1, str(40 * TOKEN)), (1, 9_000, 2, str(34 * TOKEN)), (0, 400, 3, str(29 * TOKEN)),
        (2, 300, 4, str(25 * TOKEN)), (5, None, None, "0"), (4, -5, None, "0"),
    ]  # fmt: skip
    assert before["standings"][0]["hospital"] == HOSPITALS[3]


def test_a_node_s_page_has_its_ranks_and_its_pay_by_task(client: TestClient) -> None:
    first, below = (client.get(f"/v1/nodes/{HOSPITALS[one]}/hospital").json()["task_history"] for one in (3, 4))
    tasks = {one["task"]: one for one in first}
    assert tasks[ARENA]["ranks"] == {"rounds": 1, "ranked": 1, "firsts": 1, "best": 1}
    assert tasks[ARENA]["earned"] == str(40 * TOKEN)
    assert all(one["ranks"] is None for task, one in tasks.items() if task != ARENA)
    (own,) = (one for one in below if one["task"] == ARENA)
    assert own["ranks"] == {"rounds": 1, "ranked": 0, "firsts": 0, "best": None}


def test_standings_of_another_task_say_how_it_pays(client: TestClient) -> None:
    refused = client.get("/v1/tasks/1/standings")
    assert refused.status_code == 404
    assert "task 1 is no arena" in refused.text


@pytest.mark.skipif(any(mark.args[0] for mark in NEEDED), reason="needs a browser and the built dashboard")
@pytest.mark.parametrize("width", [1_280, 390])
def test_the_page_shows_the_leaderboard_while_a_round_is_judged(network: IndexedNetwork, width: int) -> None:
    with chromium() as browser, served(app_of(network, dashboard=str(built()))) as url:
        page = context_of(browser).new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{url}/tasks/{ARENA}")
        card = page.locator("section", has=page.get_by_role("heading", name="Arena", exact=True))
        expect(card.get_by_role("status")).to_contain_text("Round 2 with 6 trainers is not over")
        expect(card.get_by_text("update is public").first).to_be_visible()
        board = card.get_by_role("table", name="Arena", exact=True)
        expect(board.get_by_role("row")).to_have_count(1 + len(HOSPITALS))
        first = board.get_by_role("row").nth(1)
        expect(first).to_contain_text("40")
        expect(first.get_by_role("link")).to_have_attribute("href", f"#/nodes/{HOSPITALS[3]}/hospital")
        card.get_by_label("Hospital").select_option(HOSPITALS[1])
        expect(card.get_by_text("One training round has been settled")).to_be_visible()
        expect(page.get_by_text("This is an arena").first).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(f"{url}/#/nodes/{HOSPITALS[3]}/hospital")
        tasks = page.get_by_role("table", name="Tasks", exact=True)
        expect(tasks.get_by_text("best rank 1; first in 1 of 1 rounds")).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
