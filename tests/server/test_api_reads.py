"""The API's answers from an index: pages, validators, and figures computed from the rows."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest
from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, Phase, Role
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.money_spec import TOKEN
from consilium_server.api import schemas
from consilium_server.api.app import make_service
from consilium_server.api.asked import asked_view
from consilium_server.api.nodes import realised_yield
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At, open_engine
from consilium_server.api.round_reads import spread
from consilium_server.api.schemas import Page
from consilium_server.database.tables import Amount, BitMap, PoolRow
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed_network import (
    AGGREGATOR,
    DELEGATORS,
    ENTRY,
    HOSPITALS,
    OPERATOR,
    TASK_FILE,
    VOTERS,
    IndexedNetwork,
    app_of,
    point_of,
    populated,
    settings_of,
)
from pydantic import TypeAdapter
from sqlalchemy import Column, Engine, Integer, MetaData, Table, insert, select

LISTS = [
    "/v1/tasks?sort=task",
    "/v1/tasks?sort=-pool",
    "/v1/tasks/1/rounds",
    "/v1/nodes",
    "/v1/nodes?sort=-yield",
    "/v1/nodes?sort=commission",
    "/v1/nodes?sort=node&role=hospital",
    f"/v1/nodes/{HOSPITALS[0]}/hospital/history",
    "/v1/delegations",
    "/v1/payments",
    f"/v1/payments?account={HOSPITALS[0]}&kind=reward",
    f"/v1/accounts/{DELEGATORS[0]}/history",
    f"/v1/accounts/{HOSPITALS[0]}/history",
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedNetwork]:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres").database()
    network = populated(tmp_path_factory.mktemp("network"), url)
    yield network
    network.engine.dispose()


@pytest.fixture
def own(tmp_path: Path, database_url: str) -> Iterator[IndexedNetwork]:
    """A network that the test changes."""
    network = populated(tmp_path, database_url)
    yield network
    network.engine.dispose()


@pytest.fixture
def empty(tmp_path: Path, database_url: str) -> Iterator[IndexedNetwork]:
    network = IndexedNetwork(tmp_path, database_url)
    yield network
    network.engine.dispose()


@pytest.fixture(scope="module")
def client(network: IndexedNetwork) -> Iterator[TestClient]:
    with TestClient(app_of(network, limits={"requests_per_minute": 10**9})) as client:
        yield client


def read(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(client: TestClient, path: str, sizes: Callable[[], int]) -> list[Any]:
    found, cursor = [], ""
    while True:
        joint = "&" if "?" in path else "?"
        page = read(client, f"{path}{joint}limit={sizes()}{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        assert page["items"]
        cursor = f"&cursor={page['next']}"


# Pages


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data(), path=st.sampled_from(LISTS))
def test_pages_of_any_size_give_each_row_once_and_in_order(client: TestClient, data: Any, path: str) -> None:
    whole = read(client, f"{path}{'&' if '?' in path else '?'}limit=200")
    assert whole["next"] is None
    assert whole["items"]
    assert pages(client, path, lambda: data.draw(st.integers(1, 9))) == whole["items"]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_cursor_that_was_not_given_for_the_question_is_refused(client: TestClient, data: Any) -> None:
    given_one = read(client, "/v1/payments?limit=2")["next"]
    place = data.draw(st.integers(0, len(given_one) - 1))
    other = data.draw(st.sampled_from("abcXYZ019-_").filter(lambda c: c != given_one[place]))
    altered = given_one[:place] + other + given_one[place + 1 :]
    asked = [
        f"/v1/payments?cursor={altered}",
        f"/v1/payments?kind=reward&cursor={given_one}",
        f"/v1/tasks?cursor={given_one}",
    ]
    for question in asked[: 3 if place else 1]:
        answer = client.get(question)
        # Of base64's last character some bits are not used: it may stand for the same cursor.
        if place == len(given_one) - 1 and question == asked[0] and answer.status_code == 200:
            continue
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:consilium:problem:cursor-invalid")


def test_rows_that_come_meanwhile_are_neither_skipped_nor_seen_twice(own: IndexedNetwork) -> None:
    with TestClient(app_of(own)) as client:
        before = read(client, "/v1/payments?limit=200")["items"]
        first = read(client, "/v1/payments?limit=3")
        with own.mined():
            own.pay(2, 1, HOSPITALS[0], Role.HOSPITAL, "reward", TOKEN)
        rest = read(client, f"/v1/payments?limit=200&cursor={first['next']}")
        assert first["items"] + rest["items"] == before
        assert len(read(client, "/v1/payments?limit=200")["items"]) == len(before) + 1


# Validators


def test_an_answer_is_not_sent_again_until_anything_happens(own: IndexedNetwork) -> None:
    with TestClient(app_of(own)) as client:
        for path in (*LISTS, "/v1/network", "/v1/tasks/1", "/v1/tasks/1/rounds/1", "/v1/tasks/1/rounds/1/proof"):
            answer = client.get(path)
            tag = answer.headers["etag"]
            assert tag.startswith('"')
            assert answer.headers["x-consilium-block"] == str(own.block)
            for header in (tag, f"W/{tag}", f'"other", {tag}'):
                known = client.get(path, headers={"If-None-Match": header})
                assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
                assert known.headers["x-consilium-block"] == str(own.block)
            assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
            assert client.get(path, headers={"If-None-Match": tag, "Accept": "*/*"}).status_code == 304
        tags = {client.get(path).headers["etag"] for path in LISTS}
        assert len(tags) == len(LISTS)  # of each question its own
        tag = client.get("/v1/tasks").headers["etag"]
        assert client.get("/v1/tasks?limit=50").headers["etag"] != tag
        with own.mined():
            own.task_told("TaskStopped", 2, 1, OPERATOR)
        assert client.get("/v1/tasks").headers["etag"] != tag
        tag = client.get("/v1/tasks").headers["etag"]
        own.reorganise(own.block)  # to another block of the same number
        with own.mined():
            own.task_told("TaskStopped", 2, 1, OPERATOR)
        assert client.get("/v1/tasks").headers["etag"] != tag


def test_blocks_in_which_nothing_is_change_the_block_alone(own: IndexedNetwork) -> None:
    with TestClient(app_of(own)) as client:
        tags = {path: client.get(path).headers["etag"] for path in (*LISTS, "/v1/tasks/1", "/v1/network")}
        own.pass_block()
        for path, tag in tags.items():
            answer = client.get(path, headers={"If-None-Match": tag})
            assert answer.status_code == (200 if path == "/v1/network" else 304)
            assert answer.headers["x-consilium-block"] == str(own.block)
        assert read(client, "/v1/network")["index"]["block"] == own.block


def test_who_asks_at_once_is_answered_by_one_read(own: IndexedNetwork) -> None:
    service = make_service(settings_of(own), own.engine)
    heads, reads, answers = [], [], []

    def slow(at: At) -> Page[str]:
        reads.append(at.head)
        time.sleep(0.05)
        return Page(items=[str(at.head.number)], next=None)

    async def ask(after: float) -> None:
        await asyncio.sleep(after)
        begun = own.block
        head = await service.reads.head()
        assert head.number is not None
        assert head.number >= begun  # never one from before it was asked for
        heads.append(head)
        answers.append((head, *(await service.reads.answer(f"tag {head.state}", head, slow))))

    async def crowd() -> None:
        await asyncio.gather(*(ask(0) for _ in range(50)))
        assert (len(reads), len(set(heads))) == (1, 1)
        await asyncio.gather(*(ask(0) for _ in range(50)))
        assert len(reads) == 1
        for _ in range(5):
            with own.mined():
                own.task_told("HospitalAbsent", 2, 1, HOSPITALS[0])
            await asyncio.gather(*(ask(place / 1000) for place in range(20)))

    asyncio.run(crowd())
    assert len(reads) == len(set(reads)) == 6
    assert all(json.loads(said)["items"] == [str(of.number)] for _, of, said in answers)


def test_a_read_that_fails_fails_for_all_who_wait_and_is_tried_again(own: IndexedNetwork) -> None:
    service, broken = make_service(settings_of(own), own.engine), [True]

    def read_once(at: At) -> Page[str]:
        time.sleep(0.05)
        if broken:
            raise Problem("not-found", "nothing")
        return Page(items=[], next=None)

    async def ask() -> bytes:
        return (await service.reads.answer("tag", await service.reads.head(), read_once))[1]

    async def crowd() -> list[bytes | BaseException]:
        return await asyncio.gather(*(ask() for _ in range(5)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(crowd())] == [Problem] * 5
    broken.clear()
    assert asyncio.run(crowd()) == [b'{"items":[],"next":null}'] * 5


def test_a_task_file_that_is_found_later_changes_the_answer(empty: IndexedNetwork) -> None:
    from consilium_chain.tasks.task_spec import spec_hash
    from consilium_server.database.tables import Spec
    from sqlalchemy.orm import Session

    with empty.mined():
        empty.propose(1, TASK_FILE, known=False)
    with TestClient(app_of(empty)) as client:
        before = client.get("/v1/tasks/1")
        assert (before.json()["name"], before.json()["spec"]) == (None, None)
        with Session(empty.engine) as db, db.begin():
            db.add(Spec(spec_hash(TASK_FILE.encode()), TASK_FILE))
        after = client.get("/v1/tasks/1", headers={"If-None-Match": before.headers["etag"]})
        assert after.json()["name"] == "heart failure"


def test_an_index_that_is_empty_answers_and_is_not_ready(empty: IndexedNetwork) -> None:
    with TestClient(app_of(empty)) as client:
        answer = client.get("/v1/network")
        assert (answer.status_code, answer.json()["index"]["block"]) == (200, None)
        assert "x-consilium-block" not in answer.headers
        assert read(client, "/v1/tasks")["items"] == []
        assert client.get("/ready").json()["type"] == "urn:consilium:problem:not-ready"
        assert client.get("/health").status_code == 200


# What it says


def test_filters(client: TestClient) -> None:
    def tasks(query: str) -> list[int]:
        return [one["task"] for one in read(client, f"/v1/tasks?{query}")["items"]]

    assert tasks("phase=ended") == [1]
    assert tasks("phase=joining&sort=task") == [3, 4]
    assert tasks(f"operator={OPERATOR.lower()}") == tasks(f"aggregator={AGGREGATOR}") == [4, 3, 2, 1]
    assert tasks(f"operator={AGGREGATOR}") == []
    assert tasks("text=HEART") == [1]
    assert tasks("text=100%25") == [2]
    assert tasks("text=_") == [2, 1]  # as it stands, and not any character
    assert [one["node"] for one in read(client, "/v1/nodes?role=voter&sort=node")["items"]] == sorted(VOTERS)
    assert {one["kind"] for one in read(client, "/v1/payments?kind=slash")["items"]} == {"slash"}
    for wrong in ("phase=NONE2", "operator=0x12", "sort=name", "text=%00", "limit=0", "limit=201"):
        assert client.get(f"/v1/tasks?{wrong}").status_code == 422, wrong


def test_a_tasks_money_adds_up(client: TestClient) -> None:
    task = read(client, "/v1/tasks/1")
    money = {key: int(value) for key, value in task["money"].items()}
    assert money["rewards"] == 2 * (3 * 300 + 40) * TOKEN
    assert (money["bounties"], money["refund"], money["slashed"]) == (2 * TOKEN, 7 * TOKEN, 100 * TOKEN)
    assert money["pool"] == money["rewards"] + money["bounties"] + money["refund"] + money["burnt"]
    assert money["left"] == 0
    assert sum(int(one["earned"]) for one in task["participants"]) == money["rewards"]
    for one in task["participants"]:
        assert int(one["bond"]) == int(task["terms"][f"{one['role']}_bond"]) - int(one["slashed"])
    assert (task["phase"], task["terms"]["pool"], task["spec"]["privacy"]["epsilon"]) == ("ended", task["pool"], 8)
    assert read(client, "/v1/tasks/4")["spec_fault"].startswith("the task file is invalid")


@pytest.mark.parametrize("name", ["x" * 10_000, "\\u202eliaf traeh", "\\u200b", " heart", "\\u001b[2J"])
def test_task_whose_name_is_none_is_served_without_one(empty: IndexedNetwork, name: str) -> None:
    file = TASK_FILE.replace('"heart failure"', f'"{name}"')
    with empty.mined():
        empty.propose(1, file)
    with TestClient(app_of(empty)) as client:
        (task,) = read(client, "/v1/tasks")["items"]
        found = read(client, "/v1/tasks/1")
        checked = client.post("/v1/tasks/check", json={"text": file}).json()
    assert (task["name"], found["name"], found["spec"]) == (None, None, None)
    assert found["spec_fault"].startswith("the task file is invalid: name: ")
    assert (checked["holds"], checked["problem"]) == (False, found["spec_fault"])
    assert len(found["spec_fault"]) < 600
    assert found["spec_fault"].isprintable()


def test_a_hospital_has_as_many_accepted_rounds_as_accepted_sums_have_it(client: TestClient) -> None:
    members = read(client, "/v1/tasks/1")["participants"]
    accepted = {one["account"]: one["accepted"] for one in members if one["accepted"]}
    assert accepted == dict.fromkeys(HOSPITALS[:3], 2)  # round 2 is void, and cohort 1 was never accepted
    assert all(one["accepted"] == 0 for one in read(client, "/v1/tasks/2")["participants"])


NONE: dict[str, Any] = {
    "modality": None,
    "target": "",
    "answers": [],
    "answers_in_all": 0,
    "unit": "",
    "up_to": None,
    "deviation": None,
}
TABLE = {"of": "table", "inputs": 1}
FEATURE = '[[data.features]]\nkind = "numeric"\nname = "age"\nmin = 0.0\nmax = 120.0\n'


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        (
            f"label = 'sick'\nclasses = {[f'class {n}' for n in range(256)]}\n{FEATURE}",
            TABLE
            | {"kind": "classification", "target": "sick", "answers_in_all": 256}
            | {"answers": [f"class {n}" for n in range(8)]},
        ),
        (
            f"{FEATURE}[data.question]\nkind = 'regression'\nlabel = 's\u202ey'\nmin = 0\nmax = 60\nmean = 20\n"
            "deviation = 12\nunit = 'days'\n",
            TABLE | {"kind": "regression", "target": "sU+202Ey", "unit": "days", "deviation": 12.0},
        ),
        (
            f"{FEATURE}[data.question]\nkind = 'survival'\ntime = 'years'\nevent = 'relapse'\nbounds = [1, 5]\n",
            TABLE | {"kind": "survival", "target": "relapse", "up_to": 5.0},
        ),
        (
            f"{FEATURE}[data.question]\nkind = 'multilabel'\nlabels = ['a', 'b']\n",
            TABLE | {"kind": "multilabel", "answers": ["a", "b"], "answers_in_all": 2},
        ),
        (
            "kind = 'images'\nheight = 8\nwidth = 8\nbits = 16\nmodality = 'CT'\nwindow = {center = 40, width = 400}\n"
            "question = {kind = 'segmentation', classes = ['other', 'liver']}\n",
            {"of": "images", "inputs": 1, "modality": "CT", "kind": "segmentation"}
            | {"answers": ["other", "liver"], "answers_in_all": 2},
        ),
        ("kind = 'corpus'\n", {"of": "corpus", "inputs": 1, "kind": "next_token"}),
    ],
)
def test_a_question_is_served_in_parts(data: str, asked: dict[str, Any]) -> None:
    schema = TypeAdapter(DataSchema).validate_python(tomllib.loads(f"[data]\n{data}")["data"])
    assert asked_view(schema).model_dump() == NONE | asked


def test_a_list_of_tasks_says_the_questions(client: TestClient) -> None:
    questions = {one["task"]: one["asked"] for one in read(client, "/v1/tasks")["items"]}
    assert questions[1] == questions[2] == NONE | TABLE | {
        "kind": "classification", "target": "sick", "answers": ["no", "yes"], "answers_in_all": 2,
    }  # fmt: skip
    assert questions[3] is questions[4] is None


def test_class_names_are_served_visibly(empty: IndexedNetwork) -> None:
    with empty.mined():
        empty.propose(1, TASK_FILE.replace('"yes"', '"\\u202esey"'))
    with TestClient(app_of(empty)) as client:
        assert read(client, "/v1/tasks/1")["spec"]["classes"] == ["no", "U+202Esey"]


def test_what_is_added_to_a_pool_counts_wherever_it_is_told(empty: IndexedNetwork) -> None:
    proposed = 10_000 * TOKEN

    def pools(client: TestClient, sort: str) -> list[tuple[int, int]]:
        found = pages(client, f"/v1/tasks?sort={sort}", lambda: 1)
        return [(one["task"], int(one["pool"])) for one in found]

    with TestClient(app_of(empty)) as client:
        with empty.mined():
            for task in (1, 2, 3):
                empty.propose(task, TASK_FILE, known=task == 1)
        with empty.mined():
            empty.fund(2, 5, proposed + 5)
            empty.fund(2, 6, proposed + 11)
            empty.fund(1, 7, proposed + 7)
        with empty.mined():
            empty.fund(1, 1, proposed + 8)
        grown = [(2, proposed + 11), (1, proposed + 8), (3, proposed)]
        assert pools(client, "-pool") == grown
        assert pools(client, "pool") == grown[::-1]
        assert int(read(client, "/v1/network")["pools"]) == 3 * proposed + 19
        found = read(client, "/v1/tasks/2")
        told = (found["pool"], found["terms"]["pool"], found["money"]["pool"], found["money"]["left"])
        assert [int(one) for one in told] == [proposed + 11] * 4
        empty.reorganise(empty.block)
        assert int(read(client, "/v1/tasks/1")["pool"]) == proposed + 7


def test_a_task_says_that_it_is_stopping_and_with_which_round_it_ends(empty: IndexedNetwork) -> None:
    def stop(task: int, round_: int) -> None:
        empty.task_told("TaskStopped", task, round_, OPERATOR)

    with TestClient(app_of(empty)) as client:

        def said(task: int) -> tuple[bool, int, str]:
            found = read(client, f"/v1/tasks/{task}")
            return found["stopping"], found["last_round"], found["phase"]

        with empty.mined():
            for task in (1, 2, 3):
                empty.propose(task, TASK_FILE, known=task == 1)
            for task, round_ in ((1, 0), (2, 2)):
                empty.phase(task, round_, Phase.COMMITTING, 9)
        assert [said(task) for task in (1, 2)] == [(False, 3, "committing")] * 2
        with empty.mined():
            for task, round_ in ((1, 0), (2, 2)):
                stop(task, round_)
            stop(3, 0)
            empty.phase(3, 0, Phase.ENDED)  # nobody had joined yet
        # Statistics alone are not to be had.
        assert [said(task) for task in (1, 2)] == [(True, 1, "committing"), (True, 2, "committing")]
        assert said(3) == (True, 0, "ended")
        with empty.mined():
            empty.phase(2, 2, Phase.ENDED)
        assert said(2) == (True, 2, "ended")


def test_a_round_says_who_did_what(client: TestClient) -> None:
    found = read(client, "/v1/tasks/1/rounds/1")
    first, second = found["cohorts"]
    assert (first["members"], first["survivors"], first["accepted"]) == ([0, 1, 2], [0, 1, 2], True)
    assert (second["members"], second["survivors"], second["is_flipped"]) == ([3, 4, 5], [3, 4], True)
    assert len(found["commitments"]) == 5
    last = found["commitments"][4]
    assert last["points"] == ["0x" + point_of(HOSPITALS[4], 1).hex()]
    assert [len(one) for one in last["point_hashes"]] == [66]
    verdicts = [(one["position"], one["verdict"]) for one in found["committee"]["ballots"]]
    assert verdicts == [(0, "scored"), (1, "does_not_match"), (2, "not_revealed")]
    # Of a sign-flipped cohort the score further on is the sum's.
    assert [(one["cohort"], one["median"]) for one in found["committee"]["spread"]] == [(0, 12_000), (1, 9_000)]
    assert {one["kind"] for one in found["payments"]} == {"reward", "slash", "bounty"}
    assert [one["reason"] for one in found["payments"] if one["kind"] == "slash"] == ["harmful_cohort"]
    assert found["evidence"][-1]["block"] >= found["evidence"][0]["block"]
    voided = read(client, "/v1/tasks/1/rounds/2")
    assert (voided["outcome"], voided["void_reason"], voided["medians"]) == ("void", "too_few_scores", [])
    assert [one["points"] for one in voided["commitments"]] == [None] * 5  # no sum was disclosed
    running = read(client, "/v1/tasks/2/rounds/1")
    assert (running["phase"], running["outcome"], running["ended_at"]) == ("committing", "pending", None)


def test_a_proof_leads_to_blobs_that_can_be_had(client: TestClient) -> None:
    proof = read(client, "/v1/tasks/1/rounds/1/proof")
    blob = proof["cohorts"][0]["blobs"][0]
    assert blob["expected"] == blob["published"]
    answer = client.get(f"/v1/artifacts/blobs/{blob['published']}")
    assert (answer.status_code, len(answer.content)) == (200, 131_072)
    assert [one["weight"] for one in proof["hospitals"]] == [8, 9, 10, 11, 12, 13]
    first, last = proof["hospitals"][0], proof["hospitals"][5]
    assert (last["point_hashes"], last["points"]) == (None, None)  # it did not commit
    assert (len(first["point_hashes"]), first["points"]) == (1, ["0x" + point_of(HOSPITALS[0], 1).hex()])
    voided = read(client, "/v1/tasks/1/rounds/2/proof")["hospitals"][0]
    assert (len(voided["point_hashes"]), voided["points"]) == (1, None)
    statistics = read(client, "/v1/tasks/1/rounds/0/proof")
    assert {one["weight"] for one in statistics["hospitals"]} == {1}
    assert [one["members"] for one in statistics["cohorts"]] == [[0, 1, 2, 3, 4, 5]]  # all are one, without an event
    assert statistics["cohorts"][0]["blobs"][0]["published"] == blob["published"]
    assert client.get("/v1/tasks/3/rounds/0/proof").status_code == 404
    assert client.get("/v1/tasks/3/rounds/0").status_code == 404  # it has not begun while hospitals join


def test_a_node_and_its_delegators(client: TestClient) -> None:
    slashed = read(client, f"/v1/nodes/{HOSPITALS[3]}/hospital")
    assert (slashed["slashes"], slashed["burnt"], slashed["rounds"]) == (2, str(100 * TOKEN), 2)
    assert [one["round"] for one in slashed["slash_history"]] == [3, 1]
    assert slashed["realised_yield"]["lost"] == 100_000  # 100 of 1000
    earning = read(client, f"/v1/nodes/{HOSPITALS[0]}/hospital")
    assert int(earning["active"]) == int(earning["assets"]) - 4 * TOKEN
    assert earning["delegators"] == 3
    delegation = read(client, f"/v1/delegations?delegator={DELEGATORS[0]}")["items"][0]
    assert (delegation["worth"], delegation["delegated"]) == (str(6 * TOKEN), str(10 * TOKEN))
    assert read(client, f"/v1/accounts/{DELEGATORS[0]}/unbondings")["items"][0]["worth"] == str(4 * TOKEN)
    assert client.get(f"/v1/nodes/{HOSPITALS[0]}/voter").status_code == 404
    record = read(client, f"/v1/nodes/{HOSPITALS[3]}/hospital/record")
    assert [(one["reason"], one["count"]) for one in record["slashes"]] == [("harmful_cohort", 2)]
    assert [(one["due"], one["made"]) for one in record["deadlines"]] == [(5, 5), (5, 5)]
    assert (record["rounds"], record["accepted"], record["rejected"], record["cohort_median"]) == (5, 0, 2, -80_000)
    assert read(client, f"/v1/nodes/{VOTERS[0]}/voter/record")["distance"] == 44_500  # 0, and 9,000 from -80,000


def test_the_export_is_the_whole_history(client: TestClient) -> None:
    answer = client.get(f"/v1/accounts/{DELEGATORS[0]}/history.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    items = read(client, f"/v1/accounts/{DELEGATORS[0]}/history?limit=200")["items"]
    assert [{**line, "time": seconds(line["time"]), **smallest(line)} for line in lines] == [
        {k: "" if v is None else str(v) for k, v in one.items()} for one in items
    ]
    assert {one["kind"] for one in items} == {"bounty", "delegated", "unbonding_started"}
    assert not [cell for line in lines for cell in line.values() if cell[:1] in "=+-@\t\r" and cell]
    first = min(line["time"] for line in lines)[:10]
    latest = datetime.fromtimestamp(read(client, "/v1/network")["index"]["latest_event_at"], UTC)
    name = f"consilium-{DELEGATORS[0]}-{first}-to-{latest:%Y-%m-%d}.csv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def seconds(iso: str) -> str:
    assert iso.endswith("Z")
    return str(int(datetime.fromisoformat(iso).timestamp()))


def smallest(line: dict[str, str]) -> dict[str, str]:
    """The amounts of a line in the smallest unit."""
    return {name: line[name] and str(int(Decimal(line[name]) * TOKEN)) for name in ("amount", "shares")}


def test_an_account_without_history_has_an_export(client: TestClient) -> None:
    answer = client.get(f"/v1/accounts/0x{'0' * 39}7/history.csv")
    assert (answer.status_code, answer.text.count("\n")) == (200, 1)


@pytest.mark.parametrize("kind", get_args(schemas.Movement))
def test_history_of_one_kind_is_that_part_of_all(client: TestClient, kind: str) -> None:
    for account in (DELEGATORS[0], HOSPITALS[0]):
        where = f"/v1/accounts/{account}/history"
        wanted = [one for one in pages(client, where, lambda: 50) if one["kind"] == kind]
        assert pages(client, f"{where}?kind={kind}", lambda: 2) == wanted


def test_the_network_adds_up(client: TestClient) -> None:
    network = read(client, "/v1/network")
    assert network["tasks"] == {"joining": 2, "committing": 1, "ended": 1}
    assert network["rounds"] == {"settled": 4, "void": 1}
    nodes = pages(client, "/v1/nodes", lambda: 4)
    for role in ("hospital", "voter", "aggregator"):
        of_role = [one for one in nodes if one["role"] == role]
        assert network["stake"][role]["nodes"] == len(of_role)
        assert int(network["stake"][role]["assets"]) == sum(int(one["assets"]) for one in of_role)
    assert network["delegators"] == len(HOSPITALS) + len(VOTERS) + len(DELEGATORS)


def pool(**changes: int) -> PoolRow:
    given: dict[str, Any] = {
        "block": 1, "log_index": 0, "item": 0, "node": "", "role": 0, "generation": 0, "assets": 1000, "shares": 1000,
        "unbonding_shares": 0, "locked": 0, "commission_bps": 0, "next_commission_bps": None,
        "next_commission_at": None, "index_x48": 1, "rewarded": 0, "burnt": 0, "forfeited": 0, "voter_key": False,
    }  # fmt: skip
    return PoolRow(**(given | changes))


@pytest.mark.parametrize(
    ("start", "end", "earned", "lost"),
    [
        ({}, {}, 0, 0),
        ({}, {"index_x48": 1 + ENTRY // 4}, 250_000, 0),
        ({}, {"assets": 900}, 0, 100_000),
        ({"assets": 500}, {"assets": 500, "index_x48": 1 + ENTRY // 4}, 500_000, 0),  # of a share worth a half
        ({}, {"generation": 1, "assets": 0, "shares": 0, "index_x48": 1 + ENTRY // 8}, 125_000, 1_000_000),
        ({}, {"assets": 0, "shares": 0}, 0, 0),  # all went home
        ({"assets": 0, "shares": 0}, {"assets": 10, "shares": 10, "index_x48": ENTRY}, 0, 0),
    ],
)
def test_realised_yield(start: dict[str, int], end: dict[str, int], earned: int, lost: int) -> None:
    found = realised_yield(pool(**start), pool(**end), 0, 1)
    assert (found.earned, found.lost, found.net) == (earned, lost, earned - lost)


def test_spread_leaves_out_what_is_no_score() -> None:
    ballots = [[1, 10], [3, INVALID_SCORE], [DOES_NOT_MATCH] * 2, [5, 20], [8, INVALID_SCORE], []]
    first, second = spread(ballots, [False, False])
    # The median is the contract's: the lower middle one.
    assert (first.votes, first.lowest, first.median, first.highest) == (4, 1, 3, 8)
    assert (second.votes, second.lowest, second.highest) == (2, 10, 20)
    assert spread([[INVALID_SCORE]], [False]) == []
    assert spread([[1, 2]], [True])[0].median == 2


# Columns


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, Table]:
    engine = open_engine(f"sqlite:///{tmp_path_factory.mktemp('columns') / 'x.sqlite'}")
    metadata = MetaData()
    table = Table("x", metadata, Column("id", Integer, primary_key=True), Column("a", Amount), Column("m", BitMap))
    metadata.create_all(engine)
    return engine, table


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 2**256 - 1)), min_size=1, max_size=8))
def test_amounts_and_bit_maps_come_back_as_they_went_and_sort_as_numbers(
    columns: tuple[Engine, Table], values: list[tuple[int, int]]
) -> None:
    engine, table = columns
    with engine.connect() as connection:
        connection.execute(insert(table), [{"a": amount, "m": bits} for amount, bits in values])
        found = connection.execute(select(table.c.a, table.c.m).order_by(table.c.id)).all()
        assert [tuple(row) for row in found] == values
        assert list(connection.scalars(select(table.c.a).order_by(table.c.a))) == sorted(a for a, _ in values)
        above = select(table.c.a).where(table.c.a > values[0][0])
        assert sorted(connection.scalars(above)) == sorted(a for a, _ in values if a > values[0][0])
        connection.rollback()
    assert int(Phase.ENDED) == 12
