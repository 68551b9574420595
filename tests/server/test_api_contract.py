"""The API follows its OpenAPI document for every request, and its permissions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from api_wallet import Wallet
from consilium_cli.main import app as command_line
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx2 import Response
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from indexed_network import DELEGATORS, HOSPITALS, TASK_FILE, IndexedNetwork, app_of, populated
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from typer.testing import CliRunner

UNLIMITED = {
    "requests_per_minute": 10**9, "checks_per_minute": 10**9, "sign_ins_per_minute": 10**9, "files_per_hour": 10**9,
    "largest_body": 2**22,  # what is too long for its field is refused for that
}  # fmt: skip
# Left out: one that wants every cursor accepted, since they are text and not any text will do.
KEPT = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> IndexedNetwork:
    return populated(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def wallets() -> dict[str, Wallet]:
    return {"signed-in": Wallet(), "admin": Wallet()}


@pytest.fixture(scope="module")
def app(network: IndexedNetwork, wallets: dict[str, Wallet]) -> FastAPI:
    return app_of(network, limits=UNLIMITED, admins=[wallets["admin"].address], operators=[])


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture(scope="module")
def tokens(client: TestClient, wallets: dict[str, Wallet]) -> dict[str, str]:
    return {role: wallet.sign_in(client).json()["token"] for role, wallet in wallets.items()}


def test_operations_have_names_that_a_client_can_use_and_all_problems_are_documented(app: FastAPI) -> None:
    document = app.openapi()
    operations = [one for path in document["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    for one in operations:
        for status, answer in one["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (one["operationId"], status)
        assert one["summary"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


# Who may do what


@dataclass(frozen=True)
class Row:
    """A route with a valid request, and its status without session, for a signed-in account, and for an admin."""

    method: str
    route: str
    nobody: int
    signed_in: int
    admin: int
    asked: str = ""
    body: Callable[[], Any] | None = None


NODE = HOSPITALS[0]
UNSIGNED = {"name": "a", "updated_at": 1, "signature": "0x" + "00" * 65}
# `operators` is empty here, so that only an admin may store files.
MATRIX = [
    Row("GET", "/v1/network", 200, 200, 200),
    Row("GET", "/v1/tasks", 200, 200, 200),
    Row("GET", "/v1/tasks/{task}", 200, 200, 200, "/v1/tasks/1"),
    Row("GET", "/v1/tasks/{task}/rounds", 200, 200, 200, "/v1/tasks/1/rounds"),
    Row("GET", "/v1/tasks/{task}/standings", 404, 404, 404, "/v1/tasks/1/standings"),
    Row("GET", "/v1/tasks/{task}/rounds/{round}", 200, 200, 200, "/v1/tasks/1/rounds/1"),
    Row("GET", "/v1/tasks/{task}/rounds/{round}/proof", 200, 200, 200, "/v1/tasks/1/rounds/1/proof"),
    Row("GET", "/v1/tasks/{task}/models", 200, 200, 200, "/v1/tasks/1/models"),
    Row("GET", "/v1/tasks/{task}/report", 200, 200, 200, "/v1/tasks/1/report"),
    Row("GET", "/v1/tasks/{task}/statistics", 200, 200, 200, "/v1/tasks/1/statistics"),
    Row("POST", "/v1/tasks/{task}/site-reports", 422, 422, 422, "/v1/tasks/1/site-reports", body=dict),
    Row("GET", "/v1/tasks/{task}/model/{file}", 404, 404, 404, "/v1/tasks/1/model/model.json"),
    Row("GET", "/v1/task-schema", 200, 200, 200),
    Row("POST", "/v1/tasks/check", 200, 200, 200, body=lambda: {"text": TASK_FILE}),
    Row("GET", "/v1/models", 200, 200, 200),
    Row("GET", "/v1/models.csv", 200, 200, 200),
    Row("GET", "/v1/models/{task}", 200, 200, 200, "/v1/models/1"),
    Row("GET", "/v1/models/{task}/earnings.csv", 200, 200, 200, "/v1/models/1/earnings.csv"),
    Row("GET", "/v1/ensembles", 200, 200, 200),
    Row("GET", "/v1/ensembles.csv", 200, 200, 200),
    Row("GET", "/v1/ensembles/{number}", 200, 200, 200, f"/v1/ensembles/{2**48 + 1}"),
    Row("GET", "/v1/nodes", 200, 200, 200),
    Row("GET", "/v1/nodes/{node}/{role}", 200, 200, 200, f"/v1/nodes/{NODE}/hospital"),
    Row("GET", "/v1/nodes/{node}/{role}/history", 200, 200, 200, f"/v1/nodes/{NODE}/hospital/history"),
    Row("GET", "/v1/nodes/{node}/{role}/record", 200, 200, 200, f"/v1/nodes/{NODE}/hospital/record"),
    Row("GET", "/v1/delegations", 200, 200, 200),
    Row("GET", "/v1/payments", 200, 200, 200),
    Row("GET", "/v1/accounts/{account}/unbondings", 200, 200, 200, f"/v1/accounts/{DELEGATORS[0]}/unbondings"),
    Row("GET", "/v1/accounts/{account}/history", 200, 200, 200, f"/v1/accounts/{NODE}/history"),
    Row("GET", "/v1/accounts/{account}/history.csv", 200, 200, 200, f"/v1/accounts/{NODE}/history.csv"),
    Row("GET", "/v1/profiles", 200, 200, 200, f"/v1/profiles?account={NODE}"),
    Row("PUT", "/v1/profiles/{account}", 403, 403, 403, f"/v1/profiles/{NODE}", body=lambda: UNSIGNED),
    Row("GET", "/v1/search", 200, 200, 200, "/v1/search?q=heart"),
    Row("GET", "/v1/artifacts/files/{hash}", 404, 404, 404, f"/v1/artifacts/files/0x{'00' * 32}"),
    Row("GET", "/v1/artifacts/blobs/{hash}", 404, 404, 404, f"/v1/artifacts/blobs/0x{'00' * 32}"),
    Row("PUT", "/v1/artifacts/files", 401, 403, 200, body=lambda: {"text": TASK_FILE}),
    Row("GET", "/v1/session/nonce", 200, 200, 200),
    Row("GET", "/v1/session", 401, 200, 200),
    Row("POST", "/v1/session", 400, 400, 400, body=lambda: {"message": "x", "signature": "0x" + "00" * 65}),
    Row("GET", "/v1/watch", 401, 200, 200),
    Row("PUT", "/v1/watch", 401, 200, 200, body=lambda: {"tasks": [1], "nodes": [NODE]}),
    # No worker tells here.
    Row("PUT", "/v1/watch/channels", 401, 403, 403, body=lambda: {"address": "mailto:a@example.org"}),
    Row("DELETE", "/v1/watch/channels/{kind}", 401, 200, 200, "/v1/watch/channels/mailto"),
    Row("POST", "/v1/watch/confirm", 404, 404, 404, body=lambda: {"token": "0" * 64}),
    Row("POST", "/v1/watch/stop", 404, 404, 404, f"/v1/watch/stop?token={NODE}-{'0' * 32}"),
    # A stream would not end: one that begins nowhere is refused, of everybody.
    Row("GET", "/v1/events", 422, 422, 422),
    Row("GET", "/v1/jobs", 401, 403, 200),
    Row("GET", "/health", 200, 200, 200),
    Row("GET", "/ready", 200, 200, 200),
    Row("GET", "/metrics", 200, 200, 200),
]


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}


def test_every_route_has_a_row(app: FastAPI) -> None:
    assert routes_of(app) == {(row.method, row.route) for row in MATRIX}
    assert all(not isinstance(route, APIRoute) or route.include_in_schema for route in app.routes)


def test_the_document_for_generated_clients_is_the_one_that_is_served(client: TestClient) -> None:
    printed = CliRunner().invoke(command_line, ["server", "openapi"])
    assert json.loads(printed.output) == client.get("/v1/openapi.json").json()


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: f"{row.method} {row.route}")
def test_who_may_do_what(client: TestClient, tokens: dict[str, str], row: Row) -> None:
    def ask(token: str | None) -> Response:
        headers = {"Last-Event-ID": "nowhere"} if row.route == "/v1/events" else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        body = row.body() if row.body else None
        return client.request(row.method, row.asked or row.route, headers=headers, json=body)

    found = [ask(token).status_code for token in (None, tokens["signed-in"], tokens["admin"])]
    assert found == [row.nobody, row.signed_in, row.admin]
    if row.nobody == 401:  # a token that is altered, or another server's, is none
        token = tokens["admin"]
        altered = ("A" if token[0] != "A" else "B") + token[1:]  # the last character has spare bits
        for forged in (altered, token[:43], "", "x.y", "é"):  # the tag without its content, too
            answer = client.request(
                row.method,
                row.route,
                headers=[(b"Authorization", b"Bearer " + forged.encode())],
                json=row.body and row.body(),
            )
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


def test_what_an_admin_stores_can_be_read_by_its_hash(client: TestClient, tokens: dict[str, str]) -> None:
    text = TASK_FILE.replace("heart failure", "hörbar")
    answer = client.put(
        "/v1/artifacts/files", json={"text": text}, headers={"Authorization": f"Bearer {tokens['admin']}"}
    ).json()
    read = client.get(f"/v1/artifacts/files/{answer['hash']}")
    assert read.content.decode() == text
    assert read.headers["cache-control"] == "public, max-age=31536000, immutable"
    known = client.get(f"/v1/artifacts/files/{answer['hash']}", headers={"If-None-Match": read.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize("text", ["name = 1", "\x00", TASK_FILE.replace("rounds = 3", "rounds = 0")])
def test_a_file_that_does_not_hold_is_not_stored(
    client: TestClient, tokens: dict[str, str], network: IndexedNetwork, text: str
) -> None:
    before = sorted(path.name for path in (network.folder / "artifacts").iterdir())
    answer = client.put(
        "/v1/artifacts/files", json={"text": text}, headers={"Authorization": f"Bearer {tokens['admin']}"}
    )
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:consilium:problem:task-file-invalid"
    assert sorted(path.name for path in (network.folder / "artifacts").iterdir()) == before


def test_a_store_that_is_not_there_is_told_from_an_artifact_that_is_not(
    network: IndexedNetwork, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with TestClient(app_of(network, artifacts=tmp_path / "file")) as client:
        headers = {"Authorization": f"Bearer {Wallet().sign_in(client).json()['token']}"}
        answers = [
            client.get(f"/v1/artifacts/files/0x{'00' * 32}"),
            client.put("/v1/artifacts/files", json={"text": TASK_FILE}, headers=headers),
        ]
    assert [(one.status_code, one.json()["type"]) for one in answers] == [(503, "urn:consilium:problem:not-ready")] * 2


def test_an_artifact_that_is_not_what_its_name_says_is_not_sent(client: TestClient, network: IndexedNetwork) -> None:
    digest = network.store.put_file(b"to be changed")
    path = Path(network.folder / "artifacts" / f"file-{digest.hex()}")
    path.write_bytes(b"changed")
    answer = client.get(f"/v1/artifacts/files/0x{digest.hex()}")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:consilium:problem:artifact-missing")


# Whatever it is asked


@pytest.fixture(scope="module")
def documented(app: FastAPI) -> Any:
    return schemathesis.openapi.from_asgi("/v1/openapi.json", app)


# Streams end when their readers do: they have tests of their own (test_api_events.py).
ENDING = [row for row in MATRIX if row.route != "/v1/events"]


def ask_anything(documented: Any, row: Row, token: str, examples: int) -> None:
    """Requests that the schema allows, and others; as an admin, and without session."""
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        ask(documented[row.route][row.method], mode, {}, examples)
        if row.nobody == 401:
            ask(documented[row.route][row.method], mode, {"Authorization": f"Bearer {token}"}, examples)


def ask(operation: Any, mode: GenerationMode, headers: dict[str, str], examples: int) -> None:
    @settings(
        max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None,
        derandomize=True,
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def keeps_its_word(case: Any) -> None:
        case.headers.update(headers)
        case.call_and_validate(checks=CHECKS.get_by_names(KEPT))

    try:
        keeps_its_word()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing of it can be wrong: it takes nothing


@pytest.mark.parametrize("row", ENDING, ids=lambda row: f"{row.method} {row.route}")
def test_answers_are_as_documented(documented: Any, tokens: dict[str, str], row: Row) -> None:
    ask_anything(documented, row, tokens["admin"], 10)


@pytest.mark.deep
@pytest.mark.parametrize("row", ENDING, ids=lambda row: f"{row.method} {row.route}")
def test_answers_are_as_documented_deep(documented: Any, tokens: dict[str, str], row: Row) -> None:
    ask_anything(documented, row, tokens["admin"], 300)
