"""A task's report over HTTP and in a browser: shown if all its signatures hold, and not at all otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import consilium
import indexed_network
import numpy as np
import pytest
from browser_driver import chromium, context_of
from consilium_chain.evaluations.measures import Evaluated, Measure
from consilium_chain.evaluations.report import EvaluationReport, NodeEntry
from consilium_chain.evaluations.site_report import SiteContent, SiteReport, Subject, sign
from consilium_client.evaluation.sharing import coarse
from consilium_operators.evaluation_file import add_evaluation
from consilium_operators.model_folder import CARD, INDEX, REPORT, read_model
from consilium_server.api.dashboard import built
from consilium_server.api.models import model_folder
from dashboard_driver import NEEDED, violations
from eth_account import Account
from fastapi.testclient import TestClient
from indexed_network import IndexedNetwork, app_of, populated, served
from model_driver import written
from playwright.sync_api import expect

KEYS = [Account.from_key(bytes([at]) * 32) for at in range(1, 10)]
HOSPITALS, VOTERS = KEYS[:6], KEYS[6:]
KNOWN: list[EvaluationReport] = []
STRANGER = Account.from_key(b"\x77" * 32)
TASK = """
name = "heart failure"
[data]
label = "sick"
classes = ["no", "yes"]
subgroups = ["sex"]
[[data.features]]
name = "<img src=x onerror=alert(1)>"
min = 0
max = 100
[[data.features]]
kind = "category"
name = "sex"
values = ["female", "male"]
[model]
name = "logistic"
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedNetwork]:
    """Its nodes' accounts have keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexed_network, "HOSPITALS", [one.address for one in HOSPITALS])
        patch.setattr(indexed_network, "VOTERS", [one.address for one in VOTERS])
        yield populated(tmp_path_factory.mktemp("network"))


@pytest.fixture
def folder(network: IndexedNetwork, tmp_path: Path) -> Path:
    """A model of the ended task."""
    found = written(tmp_path, TASK).rename(model_folder(tmp_path, 1))
    index = json.loads((found / INDEX).read_text())
    index |= {"chain_id": network.deployment.chain_id, "contract": network.deployment.tasks}
    (found / INDEX).write_text(json.dumps(index))
    return found


@pytest.fixture
def client(network: IndexedNetwork, folder: Path) -> Iterator[TestClient]:
    with TestClient(app_of(network, models=folder.parent)) as client:
        yield client


def evaluated(folder: Path) -> EvaluationReport:
    """All folders have the same model, and so one evaluation is enough."""
    if not KNOWN:
        KNOWN.append(_evaluated(folder))
    return KNOWN[0]


def _evaluated(folder: Path) -> EvaluationReport:
    random, path = np.random.default_rng(4), folder.parent / "rows.csv"
    lines = [f"{random.integers(0, 101)},{('female', 'male')[at % 2]},{at % 3 % 2}" for at in range(240)]
    path.write_text("\n".join(['"<img src=x onerror=alert(1)>",sex,sick', *lines]) + "\n")
    return consilium.Model.read(folder).evaluate(path).report


def shared(folder: Path, account: Any, role: str, **changes: Any) -> SiteReport:
    index, whole = read_model(folder).index, evaluated(folder)
    subject = Subject.model_validate(index.model_dump(include=set(Subject.model_fields)))
    found = Evaluated.model_validate(whole.model_dump(include=set(Evaluated.model_fields)))
    start = {"auc": Measure(value=0.5, low=0.43, high=0.57), "accuracy": Measure(value=0.5, low=0.44, high=0.56)}
    values = {**dict(subject), "role": role, "node": account.address, "start": start}
    return sign(SiteContent(**values | {"found": coarse(found, read_model(folder).spec.data)} | changes), account)


def put(folder: Path) -> EvaluationReport:
    """A report of the operator, of which a hospital and a voter share theirs."""
    by = {HOSPITALS[1].address: shared(folder, HOSPITALS[1], "hospital")}
    by |= {VOTERS[0].address: shared(folder, VOTERS[0], "voter")}
    nodes = [NodeEntry(node=one.address, role="hospital", report=by.get(one.address)) for one in HOSPITALS]
    nodes += [NodeEntry(node=one.address, role="voter", report=by.get(one.address)) for one in VOTERS]
    report = evaluated(folder).model_copy(update={"nodes": tuple(nodes)})
    add_evaluation(folder, report)
    return report


def test_a_report_is_read_as_it_was_written(client: TestClient, folder: Path) -> None:
    assert client.get("/v1/tasks/1/report").json() == {"items": []}
    report = put(folder)
    answer = client.get("/v1/tasks/1/report")
    assert EvaluationReport.model_validate(answer.json()["items"][0]) == report
    again = client.get("/v1/tasks/1/report", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert client.get("/v1/tasks/2/report").json() == {"items": []}
    assert client.get("/v1/tasks/1/model/report.json").content == (folder / REPORT).read_bytes()
    assert "‹img src=x" in (folder / CARD).read_text()


def entry(account: Any, role: str, report: SiteReport | None) -> dict[str, Any]:
    return {"node": account.address, "role": role, "report": report and json.loads(report.written)}


FORGED: dict[str, Callable[[Path, dict[str, Any]], object]] = {
    "an altered metric": lambda f, r: r["nodes"][1]["report"]["found"]["all_rows"]["measures"]["auc"].update(value=1.0),
    "a stranger": lambda f, r: r["nodes"].append(entry(STRANGER, "hospital", shared(f, STRANGER, "hospital"))),
    "a stranger without figures": lambda f, r: r["nodes"].append(entry(STRANGER, "voter", None)),
    "another node's figures": lambda f, r: r["nodes"][0].update(report=r["nodes"][1]["report"]),
    "a hospital as voter": lambda f, r: r["nodes"].append(
        entry(HOSPITALS[0], "voter", shared(f, HOSPITALS[0], "voter"))
    ),
    "a node twice": lambda f, r: r["nodes"].append(r["nodes"][1]),
    "another task's": lambda f, r: r["nodes"][0].update(report=entry(
        HOSPITALS[0], "hospital", shared(f, HOSPITALS[0], "hospital", task=2)
    )["report"]),
    "another model's report": lambda f, r: r.update(sha256="7e" * 32),
    "another task's report": lambda f, r: r.update(task=2),
    "more keys": lambda f, r: r.update(rows=[1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGED.values(), ids=list(FORGED))
def test_a_report_that_does_not_hold_is_not_shown(
    client: TestClient, folder: Path, forge: Callable[[Path, dict[str, Any]], object]
) -> None:
    report = put(folder).model_dump(mode="json")
    forge(folder, report)
    (folder / REPORT).write_text(json.dumps(report))
    assert client.get("/v1/tasks/1/report").json() == {"items": []}


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b" " * ((1 << 23) + 1)], ids=["empty", "torn", "list", "too long"])
def test_another_file_is_no_report(client: TestClient, folder: Path, raw: bytes) -> None:
    (folder / REPORT).write_bytes(raw)
    assert client.get("/v1/tasks/1/report").json() == {"items": []}


@pytest.fixture
def page_of_the_task(network: IndexedNetwork, folder: Path) -> Iterator[Any]:
    put(folder)
    with chromium() as browser, served(app_of(network, models=folder.parent, dashboard=str(built()))) as url:
        context = context_of(browser)
        page, errors = context.new_page(), list[str]()
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.goto(f"{url}/#/tasks/1")
        yield page
        context.close()
    assert errors == []


@pytest.mark.skipif(any(mark.args[0] for mark in NEEDED), reason="needs a browser and the built dashboard")
def test_the_page_shows_the_report(page_of_the_task: Any) -> None:
    page = page_of_the_task
    card = page.get_by_role("region", name="What the model is worth")
    expect(card.get_by_text("On 240 labelled rows")).to_be_visible()
    nodes = card.get_by_role("table", name="The task’s hospitals and voters")
    expect(nodes.get_by_role("row")).to_have_count(1 + len(KEYS))
    expect(nodes.get_by_text("not shared")).to_have_count(len(KEYS) - 2)
    expect(nodes.get_by_text("signed by")).to_have_count(2)
    expect(card.get_by_role("table", name="Importance of columns, rows of the operator")).to_contain_text(
        "<img src=x onerror=alert(1)>"
    )
    expect(card.get_by_role("table", name="Subgroups")).to_contain_text("sex = female, the operator")
    expect(card.locator(".chart path").first).to_be_visible()
    page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 390")  # charts are drawn again
