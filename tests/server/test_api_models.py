"""Models in the server's folder: it serves those of its own contracts' tasks byte for byte, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.deploying.address_book import Deployment
from consilium_server.api.models import model_folder, references_file
from fastapi.testclient import TestClient
from indexed_network import IndexedNetwork, app_of, populated

FILES = {
    "model.safetensors": bytes(range(256)) * 9, "model-card.md": "# Ein Körper\n".encode(), "proof.json": b"{}",
    "program.json": b"{}", "program.safetensors": bytes(9), "program-frozen.safetensors": bytes(8),
    "program-tokenizer.json": bytes(7), "model.onnx": bytes(7), "report.html": b"<p>",
}  # fmt: skip
SHA256 = "5e" * 32


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> IndexedNetwork:
    return populated(tmp_path_factory.mktemp("network"))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def client(network: IndexedNetwork, models: Path) -> Iterator[TestClient]:
    with TestClient(app_of(network, models=models)) as client:
        yield client


def put(network: IndexedNetwork, models: Path, task: int = 1, **changes: Any) -> Path:
    book = Deployment.read(network.folder / "deployment.json")
    index = {
        "format": "consilium-model-1", "task": task, "name": "heart", "chain_id": book.chain_id, "contract": book.tasks,
        "round": 3, "rounds": 3, "verified": True, "sha256": SHA256, "files": {},
    }  # fmt: skip
    folder = model_folder(models, task)
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "model.json").write_text(json.dumps(index | changes))
    return folder


def test_a_model_is_listed_and_its_files_are_read_byte_for_byte(
    client: TestClient, network: IndexedNetwork, models: Path
) -> None:
    assert client.get("/v1/tasks/1/models").json() == {"items": []}
    folder = put(network, models)
    (told,) = client.get("/v1/tasks/1/models").json()["items"]
    assert (told["round"], told["rounds"], told["verified"], told["sha256"]) == (3, 3, True, SHA256)
    assert {one["name"]: one["size"] for one in told["files"]} == {
        path.name: path.stat().st_size for path in folder.iterdir()
    }
    for path in folder.iterdir():
        answer = client.get(f"/v1/tasks/1/model/{path.name}")
        assert answer.content == path.read_bytes()
        assert answer.headers["content-disposition"] == f'attachment; filename="task-1-{path.name}"'
        assert "content-encoding" not in answer.headers
        known = client.get(f"/v1/tasks/1/model/{path.name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
    assert client.get("/v1/tasks/2/models").json() == {"items": []}


def test_answers_come_compressed_and_a_part_of_a_file_as_it_is(
    client: TestClient, network: IndexedNetwork, models: Path
) -> None:
    task = client.get("/v1/tasks/1")
    assert (task.headers["content-encoding"], task.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(task.headers["content-length"]) < len(task.content) / 2
    assert client.get("/v1/tasks/1", headers={"If-None-Match": task.headers["etag"]}).status_code == 304
    path = put(network, models) / "model.safetensors"
    path.write_bytes(bytes(100_000))
    part = client.get("/v1/tasks/1/model/model.safetensors", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, bytes(10))


def test_a_demos_references_are_told(client: TestClient, network: IndexedNetwork, models: Path) -> None:
    put(network, models)

    def told() -> object:
        return client.get("/v1/tasks/1/models").json()["items"][0]["references"]

    assert told() is None
    file, known = references_file(models, 1), {"pooled": {"auc": 0.9}, "alone": {"auc": 0.7}}
    for damaged in ("", "{", "[]", '{"pooled": {"auc": 1e999}, "alone": {}}', '{"pooled": {}}', "x" * (1 << 24)):
        file.write_text(damaged)
        assert told() is None
    file.write_text(json.dumps(known | {"pooled": {str(at): 0.5 for at in range(33)}}))
    assert told() is None
    file.write_text(json.dumps(known))
    assert told() == known


def test_another_rounds_model_is_read_anew(client: TestClient, network: IndexedNetwork, models: Path) -> None:
    folder = put(network, models, round=2)
    before = client.get("/v1/tasks/1/model/model.safetensors").headers["etag"]
    folder.rename(models / "earlier")
    put(network, models, sha256="6f" * 32)
    after = client.get("/v1/tasks/1/model/model.safetensors", headers={"If-None-Match": before})
    assert after.status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"task": 2},
        {"chain_id": 5},
        {"contract": "0x" + "11" * 20},
        {"format": "consilium-model-9"},
        {"sha256": "../.."},
    ],
)
def test_what_is_no_model_of_this_task_of_these_contracts_is_not_shown(
    client: TestClient, network: IndexedNetwork, models: Path, changes: dict[str, Any]
) -> None:
    put(network, models, **changes)
    assert client.get("/v1/tasks/1/models").json() == {"items": []}
    answer = client.get("/v1/tasks/1/model/model.safetensors")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:consilium:problem:not-found")
    assert "consilium operator download-model 1" in answer.json()["detail"]


def test_no_other_file_is_read(client: TestClient, network: IndexedNetwork, models: Path) -> None:
    folder = put(network, models)
    (folder / "secret").write_text("secret")
    (folder / "proof.json").unlink()
    for name in ("secret", "..%2F..%2Fdeployment.json", ".", "%2Fetc%2Fpasswd"):
        assert client.get(f"/v1/tasks/1/model/{name}").status_code in (404, 422), name
    assert client.get("/v1/tasks/1/model/proof.json").status_code == 404


def test_a_server_without_a_folder_of_models_has_none(network: IndexedNetwork) -> None:
    with TestClient(app_of(network)) as client:
        assert client.get("/v1/tasks/1/models").json() == {"items": []}
        assert client.get("/v1/tasks/1/model/model.json").status_code == 404
