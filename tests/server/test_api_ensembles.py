"""Ensembles in the API's answers: found by number, by a member and by its name, and their sales by day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from consilium_chain.ledger.ensembles import ENSEMBLES
from ensemble_rows import form, sell
from fastapi.testclient import TestClient
from indexed_network import DAY, START, TASK_FILE, IndexedNetwork, app_of

MARKUP = "<img src=x onerror=alert(1)>"
MANY = 205  # more than a page


@pytest.fixture
def client(network: IndexedNetwork) -> Iterator[TestClient]:
    """Four tasks; two ensembles have the first one."""
    with network.mined():
        for task, name in ((2, "stroke"), (3, "lung 1"), (4, MARKUP)):
            network.propose(task, TASK_FILE.replace("heart failure", name))
        form(network, 1, {1: 30_000, 2: 10_000})
        form(network, 2, {1: 1, 3: 1, 4: 1})
    with TestClient(app_of(network)) as client:
        yield client


def hits(client: TestClient, text: str) -> list[Any]:
    """Each hit's kind, number and name, in their order."""
    items = client.get("/v1/search", params={"q": text}).raise_for_status().json()["items"]
    numbers = [one["task"] if one["ensemble"] is None else one["ensemble"] - ENSEMBLES for one in items]
    return [(one["kind"], number, one["name"]) for one, number in zip(items, numbers, strict=True)]


def listed(client: TestClient, **asked: Any) -> list[int]:
    items = client.get("/v1/ensembles", params=asked).raise_for_status().json()["items"]
    return [one["number"] - ENSEMBLES for one in items]


# The search


FIRST, SECOND = ("ensemble", 1, "heart failure"), ("ensemble", 2, "heart failure")


@pytest.mark.parametrize("text", [str(ENSEMBLES + 2), f"#{ENSEMBLES + 2}", "Ensemble 2", "conjunto #2", "ENSEMBLE  2"])
def test_search_finds_an_ensemble_by_its_number(client: TestClient, text: str) -> None:
    assert hits(client, text) == [SECOND]


def test_search_lists_a_number_first_and_each_hit_once(client: TestClient) -> None:
    assert hits(client, "1") == [
        ("task", 1, "heart failure"), FIRST, ("task", 4, MARKUP), ("task", 3, "lung 1"), ("ensemble", 2, "lung 1"),
    ]  # fmt: skip


def test_search_finds_ensembles_by_a_members_name_the_latest_first(client: TestClient) -> None:
    assert hits(client, "Heart") == [("task", 1, "heart failure"), SECOND, FIRST]
    assert hits(client, "stroke") == [("task", 2, "stroke"), ("ensemble", 1, "stroke")]
    assert hits(client, "<IMG") == [("task", 4, MARKUP), ("ensemble", 2, MARKUP)]
    assert hits(client, "failure\nlung") == []  # of two members


@pytest.mark.parametrize("text", [str(ENSEMBLES), str(ENSEMBLES + 3), "ensemble", "ensemble 3", "9" * 17, "²", "-1"])
def test_search_finds_no_ensemble_that_is_none(client: TestClient, text: str) -> None:
    assert [one for one in hits(client, text) if one[0] == "ensemble"] == []


def test_many_ensembles_leave_room_for_tasks_in_the_search(network: IndexedNetwork, client: TestClient) -> None:
    with network.mined():
        for task in range(5, 40):
            network.propose(task, TASK_FILE.replace("heart failure", f"heart {task}"))
        for order in range(3, MANY):
            form(network, order, {1: 1, order + 2: 1})
    found = hits(client, "heart")
    assert len(found) == 20
    assert [task for kind, task, _ in found[:14] if kind == "task"] == [*range(39, 25, -1)]
    assert [order for kind, order, _ in found[14:] if kind == "ensemble"] == [*range(MANY - 1, MANY - 7, -1)]


def test_the_search_forgets_an_ensemble_of_a_block_that_is_gone(network: IndexedNetwork, client: TestClient) -> None:
    with network.mined():
        form(network, 3, {2: 1, 3: 1})
    assert hits(client, "Ensemble 3") == [("ensemble", 3, "stroke")]
    network.reorganise(network.block)
    assert hits(client, "Ensemble 3") == []
    with network.mined():
        form(network, 3, {3: 1, 4: 1})
    assert hits(client, "Ensemble 3") == [("ensemble", 3, "lung 1")]


# Lists


def test_ensembles_are_listed_by_member(client: TestClient) -> None:
    assert [listed(client, member=task) for task in (1, 2, 3, 5)] == [[2, 1], [1], [2], []]
    assert listed(client, member=1, q="stroke") == [1]
    assert listed(client, q="2") == [2, 1]  # its own number, and a member's
    members = client.get("/v1/ensembles", params={"member": 2}).json()["items"][0]["members"]
    assert [(one["task"], one["weight"]) for one in members] == [(1, 750_000), (2, 250_000)]


@pytest.mark.parametrize("member", ["0", "-1", str(2**53), "9" * 40, "one", "1 OR 1=1"])
def test_a_member_out_of_range_is_refused(client: TestClient, member: str) -> None:
    assert client.get("/v1/ensembles", params={"member": member}).status_code == 422


def test_all_ensembles_of_a_task_come_page_by_page(network: IndexedNetwork, client: TestClient) -> None:
    with network.mined():
        for order in range(3, MANY):
            form(network, order, {1 + order % 2: 1, 3: 1})
    asked: dict[str, Any] = {"member": 1, "limit": 50}
    found: list[int] = []
    while True:
        page = client.get("/v1/ensembles", params=asked).raise_for_status().json()
        found += [one["number"] - ENSEMBLES for one in page["items"]]
        if page["next"] is None:
            break
        asked["cursor"] = page["next"]
    assert found == [*range(MANY - 1, 3, -2), 2, 1]
    other = client.get("/v1/ensembles", params=asked | {"member": 2})
    assert other.json()["type"].endswith("cursor-invalid")  # a cursor is of one member's list


# Sales by day


def test_an_ensembles_sales_by_day_are_totals_at_each_days_end(network: IndexedNetwork, client: TestClient) -> None:
    number, other = ENSEMBLES + 1, ENSEMBLES + 2
    first = (START // DAY + 1) * DAY
    for time, sales in (
        (first, [(number, 5, 1, 1), (other, 100, 1, 10)]),
        (first + DAY - 1, [(number, 12, 2, 1), (1, 7, 1, 0)]),  # a member's part is its own model's
        (first + 3 * DAY, [(number, 2**127, 3, 2**60)]),
    ):
        with network.mined():
            network.rows[0].time = time
            for sale in sales:
                sell(network, *sale)
    days = client.get(f"/v1/ensembles/{number}").raise_for_status().json()["days"]
    assert days == [
        {"day": first, "sold": "12", "predictions": 1},
        {"day": first + 3 * DAY, "sold": str(2**127), "predictions": 2**60},
    ]
    assert client.get(f"/v1/ensembles/{other}").json()["days"] == [{"day": first, "sold": "100", "predictions": 10}]
    with network.mined():
        form(network, 3, {2: 1, 3: 1})
    assert client.get(f"/v1/ensembles/{ENSEMBLES + 3}").json()["days"] == []
