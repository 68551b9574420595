"""Task files as documents, which the dashboard's form edits: every file survives the way to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.features import NumericFeature
from consilium_chain.tasks.task_spec import parse_task_spec, section_digests
from consilium_client.data.mapping import Mapping
from consilium_core.typed_toml import read_toml
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.task_file import task_toml
from consilium_operators.drafting import Draft
from consilium_operators.task_reference import EXAMPLES
from consilium_operators.task_text import Terms, task_text
from consilium_server.api.drafts import MOST_NESTED, document_of, text_of
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from indexed_network import TASK_FILE, IndexedNetwork, app_of
from mutations import toml_like
from task_files import SALE


def drafted(schema: TableSchema | TextSchema) -> Draft:
    return Draft(schema, Mapping(), left_out={}, codes={}, counts={}, unlabelled=0)


TABLE = TableSchema(label="ill", classes=["no", "yes"], features=[NumericFeature(name="age", min=0, max=120)])
TEXTS = TextSchema(kind="text", label="topic", classes=["a", "b"])
FILES = [
    TASK_FILE,
    (Path(__file__).parents[2] / "dashboard/src/propose/example.toml").read_text(),
    task_toml(deal_wdbc(4, 5, 0)),
    *EXAMPLES.values(),
    f"{TASK_FILE}\n{SALE}",
    *(task_text(drafted(one), Terms("drafted", epsilon=epsilon)) for one in (TABLE, TEXTS) for epsilon in (None, 8)),
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(app_of(IndexedNetwork(tmp_path), limits={"checks_per_minute": 1000})) as client:
        yield client


def check(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/tasks/check", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("file", FILES, ids=range(len(FILES)))
def test_a_file_from_its_document_is_the_same_task(client: TestClient, file: str) -> None:
    """Also if it goes through a browser's JSON, which has no 2.0."""
    first = check(client, text=file)
    assert (first["holds"], first["text"], first["faults"]) == (True, file, [])
    in_browser = json.loads(json.dumps(first["document"]), parse_float=lambda text: float(text) + 0.0)
    second = check(client, document=in_browser)
    assert (second["holds"], second["document"]) == (True, first["document"])
    assert parse_task_spec(second["text"].encode()) == parse_task_spec(file.encode())
    assert second["task"]["terms"] == first["task"]["terms"]
    assert second["task"]["sections"] == first["task"]["sections"] == section_digests(parse_task_spec(file.encode()))
    assert check(client, text=second["text"])["hash"] == second["hash"]


@given(toml_like([file.encode() for file in FILES]))
def test_every_document_is_written_as_itself(raw: bytes) -> None:
    document = document_of(raw)
    if document is None:
        return
    json.dumps(document, allow_nan=False)
    written = text_of(document)
    assert document_of(written.encode()) == document
    try:
        spec = parse_task_spec(raw)
    except SpecInvalid:
        return
    assert parse_task_spec(written.encode()) == spec


@given(st.permutations(SALE.splitlines()[1:]), st.booleans())
def test_a_form_may_give_the_terms_of_a_sale_in_any_order(lines: list[str], comes_first: bool) -> None:
    """The file has them last and in one spelling, by which the chain proves them."""
    document, sale = document_of(TASK_FILE.encode()), document_of("\n".join(["[sale]", *lines]).encode())
    assert document is not None
    assert sale is not None
    written = text_of(sale | document if comes_first else document | sale)
    assert written.endswith(f"\n{SALE}")
    spec = parse_task_spec(written.encode())
    assert spec.sale is not None
    assert spec.sale.lines == SALE.encode()


def test_a_sale_is_told_and_is_no_section_that_decides_how_rounds_end(client: TestClient) -> None:
    never, sold = check(client, text=TASK_FILE)["task"], check(client, text=f"{TASK_FILE}\n{SALE}")["task"]
    assert never["spec"]["sale"] is None
    assert sold["spec"]["sale"] == {
        "server_percent": 20, "operator_percent": 10, "trainers_percent": 55, "voters_percent": 15
    }  # fmt: skip
    assert (sold["sections"], "sale" in sold["sections"]) == (never["sections"], False)


def test_faults_are_told_at_their_fields(client: TestClient) -> None:
    document = check(client, text=EXAMPLES["a table"])["document"]
    document["data"]["features"][0] |= {"min": "low", "max": None}
    document |= {"rounds": {"rounds": 0}, "privacy": {"max_grad_norm": 1}}
    found = check(client, document=document)
    assert (found["holds"], found["task"]) == (False, None)
    assert {one["where"] for one in found["faults"]} == {
        "data.table.features.0.numeric.min", "data.table.features.0.numeric.max", "rounds.rounds", "privacy.epsilon",
    }  # fmt: skip
    together = check(client, document=document | {"data": {"label": "x", "classes": ["a"], "features": []}})
    assert "data.table.features" in {one["where"] for one in together["faults"]}
    assert [one["where"] for one in check(client, text="name = ")["faults"]] == [""]
    assert check(client, text="name = ")["document"] is None


def test_schema_names_every_section_and_says_what_each_key_means(client: TestClient) -> None:
    schema = client.get("/v1/task-schema").json()
    assert set(schema["properties"]) == set(parse_task_spec(TASK_FILE.encode()).model_dump())
    assert schema["$defs"]["RoundsSpec"]["properties"]["rounds"]["maximum"] == 10_000


def nested(depth: int) -> Any:
    return {} if depth == 0 else {"x": nested(depth - 1)}


@pytest.mark.parametrize(
    "document",
    [{}, {"a": None}, nested(MOST_NESTED + 2), nested(200), {"a": "\ud800"}, {"\udfff": 1}, {"a": "x" * 70_000}],
    ids=["empty", "null", "nested", "deep", "surrogate", "surrogate key", "long"],
)  # fmt: skip
def test_a_document_that_no_file_can_say_is_a_problem(client: TestClient, document: dict[str, Any]) -> None:
    sent = json.dumps({"document": document})  # half a pair as an escape, which is JSON
    answer = client.post("/v1/tasks/check", content=sent, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), answer.text


@pytest.mark.parametrize(
    "text", ["a = nan\nb = -inf", "a = 2026-11-27\nb = 07:32:00", f"a = {'9' * 4000}", f"a = {'[' * 40}{']' * 40}"]
)  # fmt: skip
def test_every_toml_has_an_answer(client: TestClient, text: str) -> None:
    """JSON has no dates and infinities, and this file has no use for them."""
    found = check(client, text=text)
    assert not found["holds"]
    assert (found["document"] is None) == ("[" in text)
    assert read_toml(text.encode(), "it", SpecInvalid)
