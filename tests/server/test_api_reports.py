"""A task's report over HTTP and in a browser: shown if all its signatures hold, and not at all otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import consilium
import indexed_network
import numpy as np
import pytest
from browser_driver import chromium, context_of
from consilium_chain.evaluations.measures import Evaluated, Group, Importance, Measure
from consilium_chain.evaluations.report import EvaluationReport, NodeEntry
from consilium_chain.evaluations.site_report import MOST_BYTES, SiteContent, SiteReport, Subject, sign
from consilium_chain.tasks.task_spec import spec_hash
from consilium_client.evaluation.sharing import coarse
from consilium_operators.evaluation_file import add_evaluation
from consilium_operators.model_folder import CARD, INDEX, REPORT, REPORT_PAGE, read_model
from consilium_server.api.dashboard import built
from consilium_server.api.models import model_folder
from dashboard_driver import NEEDED, violations
from eth_account import Account
from fastapi.testclient import TestClient
from indexed_network import IndexedNetwork, app_of, populated, served
from model_driver import written
from playwright.sync_api import expect
from pydantic import ValidationError

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
    alone = {"accuracy": Measure(value=0.61, low=0.55, high=0.67)}
    by = {HOSPITALS[1].address: shared(folder, HOSPITALS[1], "hospital", alone=alone)}
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
    page = (folder / REPORT_PAGE).read_text()
    assert set(re.findall("<([a-z0-9]+)", page)) <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "p", "code", "bdi", "div", "table", "thead",
        "tbody", "tr", "th", "td", "img",
    }  # fmt: skip
    assert re.findall(r" (?:on\w+|href|src|style)=[^ ]{,30}", page.replace("‹img src=x onerror=alert(1)&gt;", "")) == [
        ' src="data:image/svg+xml;base64,PD9'
    ]
    for words in ("On 240 labelled rows", "before training", "not shared", "sex = female", "Importance", "[0."):
        assert words in page, words


def entry(account: Any, role: str, report: SiteReport | None) -> dict[str, Any]:
    return {"node": account.address, "role": role, "report": report and json.loads(report.written)}


FORGED: dict[str, Callable[[Path, dict[str, Any]], object]] = {
    "an altered metric": lambda f, r: r["nodes"][1]["report"]["found"]["all_rows"]["measures"]["auc"].update(value=1.0),
    "an altered figure alone": lambda f, r: r["nodes"][1]["report"]["alone"]["accuracy"].update(value=0.1),
    "a removed figure alone": lambda f, r: r["nodes"][1]["report"].pop("alone"),
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


def test_a_report_without_a_figure_alone_is_as_before_that_field(folder: Path) -> None:
    report = shared(folder, HOSPITALS[1], "hospital")
    assert b"alone" not in report.written
    assert "alone" not in report.model_dump(exclude={"signature"})
    with pytest.raises(ValidationError, match="more than 2 decimals"):
        shared(folder, HOSPITALS[1], "hospital", alone={"auc": Measure(value=0.612, low=None, high=None)})


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b" " * ((1 << 23) + 1)], ids=["empty", "torn", "list", "too long"])
def test_another_file_is_no_report(client: TestClient, folder: Path, raw: bytes) -> None:
    (folder / REPORT).write_bytes(raw)
    assert client.get("/v1/tasks/1/report").json() == {"items": []}


# Handed in by the nodes themselves

MODEL = "3c" * 32
AUC = Measure(value=0.81, low=0.7, high=0.9)


@pytest.fixture
def taking(network: IndexedNetwork, tmp_path: Path) -> Iterator[TestClient]:
    """The API of a server that has no models yet."""
    app = app_of(network, home=tmp_path / "home", models=tmp_path, limits={"checks_per_minute": 200})
    with TestClient(app) as client:
        yield client


def derive(folder: Path, network: IndexedNetwork) -> None:
    """The operator puts the final model, whose digest is MODEL, into the server's folder."""
    found = written(folder, indexed_network.TASK_FILE).rename(model_folder(folder, 1))
    index = json.loads((found / INDEX).read_text())
    book = network.deployment
    index |= {"chain_id": book.chain_id, "contract": book.tasks, "round": 3, "rounds": 3, "sha256": MODEL}
    (found / INDEX).write_text(json.dumps(index))


def of_node(network: IndexedNetwork, account: Any = HOSPITALS[0], **changes: Any) -> SiteReport:
    measured = Evaluated(
        all_rows=Group(name=None, rows=120, classes={"no": 70, "yes": 50}, measures={"auc": AUC}),
        importance_by="auc", importance=(Importance(column="age", mean=0.2, low=0.1, high=0.3),),
    )  # fmt: skip
    values = {
        "chain_id": network.deployment.chain_id, "contract": network.deployment.tasks, "task": 1, "round": 3,
        "spec_hash": spec_hash(indexed_network.TASK_FILE.encode()).hex(), "sha256": MODEL, "role": "hospital",
        "node": account.address, "found": measured, "start": {"auc": AUC},
    }  # fmt: skip
    return sign(SiteContent.model_validate(values | changes), account)


def hand_in(client: TestClient, raw: SiteReport | bytes, task: int = 1) -> tuple[int, str]:
    content = raw if isinstance(raw, bytes) else raw.written
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/v1/tasks/{task}/site-reports", content=content, headers=headers)
    assert answer.status_code == 204 or answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.text and answer.json()["detail"]


def shown_nodes(client: TestClient) -> list[str]:
    (report,) = client.get("/v1/tasks/1/report").json()["items"]
    return [one["node"] for one in report["nodes"] if one["report"] is not None]


def test_reports_that_nodes_hand_in_are_shown_without_a_restart(
    taking: TestClient, network: IndexedNetwork, tmp_path: Path
) -> None:
    assert hand_in(taking, of_node(network)) == (204, "")
    assert taking.get("/v1/tasks/1/report").json() == {"items": []}  # nothing says which model is the task's
    derive(tmp_path, network)
    first = taking.get("/v1/tasks/1/report")
    (report,) = first.json()["items"]
    assert EvaluationReport.model_validate(report).shared == [of_node(network)]
    assert (report["all_rows"], len(report["nodes"])) == (None, len(KEYS))
    assert hand_in(taking, of_node(network, VOTERS[1], role="voter")) == (204, "")
    assert hand_in(taking, of_node(network)) == (204, "")  # the same one again
    later = taking.get("/v1/tasks/1/report", headers={"If-None-Match": first.headers["etag"]})
    assert later.status_code == 200
    assert shown_nodes(taking) == [HOSPITALS[0].address, VOTERS[1].address]


def test_the_operators_own_report_and_handed_in_ones_are_one(client: TestClient, folder: Path, tmp_path: Path) -> None:
    """The operator has one of two, and the server's folder the other."""
    whole = put(folder)
    kept = indexed_network_home(client) / "site-reports" / "task-1"
    kept.mkdir(parents=True, exist_ok=True)
    late = shared(folder, HOSPITALS[2], "hospital")
    (kept / "hospital-2.json").write_bytes(late.written)
    (kept / "torn.json").write_bytes(late.written[:100])
    (kept / "forged.json").write_bytes(late.written.replace(b'"rows": 240', b'"rows": 250'))
    (report,) = client.get("/v1/tasks/1/report").json()["items"]
    found = EvaluationReport.model_validate(report)
    assert found.all_rows == whole.all_rows
    assert {one.node for one in found.shared} == {one.address for one in (HOSPITALS[1], HOSPITALS[2], VOTERS[0])}
    for one in kept.iterdir():
        one.unlink()


def indexed_network_home(client: TestClient) -> Path:
    return Path(client.app.state.service.settings.home)  # type: ignore[attr-defined]


Given = Callable[[IndexedNetwork], SiteReport | bytes]
WRONG: dict[str, tuple[int, Given, int, str]] = {
    "a stranger's": (1, lambda n: of_node(n, STRANGER), 422, "is no hospital of task 1"),
    "a hospital's, as a voter": (1, lambda n: of_node(n, role="voter"), 422, "is no voter of task 1"),
    "another task's, replayed": (1, lambda n: of_node(n, task=2), 422, "its task is 2"),
    "an earlier round's": (1, lambda n: of_node(n, round=2), 422, "its round is 2"),
    "another chain's": (1, lambda n: of_node(n, chain_id=1), 422, "its chain_id is 1"),
    "another contract's": (1, lambda n: of_node(n, contract="0x" + "ab" * 20), 422, "its contract"),
    "another file's": (1, lambda n: of_node(n, spec_hash="5e" * 32), 422, "its spec_hash"),
    "in another's name": (1, lambda n: of_node(n).model_copy(
        update={"node": HOSPITALS[1].address}
    ), 422, "its signature is not by"),
    "altered": (1, lambda n: of_node(n).written.replace(b"0.81", b"0.99"), 422, "its signature is not by"),
    "of a running task": (2, lambda n: of_node(n, task=2), 503, "no end of task 2"),
    "of a task that there is not": (9, lambda n: of_node(n, task=9), 404, "no task 9"),
    "not a number": (1, lambda n: of_node(n).written.replace(b"0.81", b"NaN"), 422, "finite"),
    "infinite": (1, lambda n: of_node(n).written.replace(b"0.81", b"1e999"), 422, "finite"),
    "finer than allowed": (1, lambda n: of_node(n).written.replace(b"0.81", b"0.8123"), 422, "decimals"),
    "of few rows": (1, lambda n: of_node(n).written.replace(b'"rows": 120', b'"rows": 40'), 422, "fewer than 50 rows"),
    "with a longer number": (1, lambda n: of_node(n, round=10**400), 422, "its round is 1000"),
    "nested deeply": (1, lambda n: b"[" * 100_000, 422, "cannot be read"),
    "empty": (1, lambda n: b"", 422, "Field required"),
    "too large": (1, lambda n: of_node(n).written + b" " * MOST_BYTES, 413, "at most"),
    "of too many bins": (1, lambda n: of_node(n, found=many(of_node(n).found)), 422, "bytes"),
}  # fmt: skip


def many(found: Evaluated) -> Evaluated:
    """Below the limit on requests without spaces, above it as it is kept."""
    return found.model_copy(update={"importance": found.importance * 4_500})


@pytest.mark.parametrize(("task", "given", "status", "why"), WRONG.values(), ids=list(WRONG))
def test_no_other_report_is_taken(
    taking: TestClient, network: IndexedNetwork, tmp_path: Path, task: int, given: Given, status: int, why: str
) -> None:
    raw = given(network)
    if why == "bytes":
        assert isinstance(raw, SiteReport)
        raw = raw.model_dump_json().encode()
        assert len(raw) < MOST_BYTES
    found, said = hand_in(taking, raw, task)
    assert (found, why in said, len(said) < 400) == (status, True, True), said
    assert not list((tmp_path / "home").rglob("*.json"))


def test_the_model_is_the_servers_once_it_has_it(taking: TestClient, network: IndexedNetwork, tmp_path: Path) -> None:
    other = of_node(network, sha256="4d" * 32)
    assert hand_in(taking, other) == (204, "")
    status, said = hand_in(taking, of_node(network))
    assert (status, "of another model" in said) == (422, True), said
    derive(tmp_path, network)
    assert taking.get("/v1/tasks/1/report").json() == {"items": []}
    status, said = hand_in(taking, of_node(network, HOSPITALS[1], sha256="4d" * 32))
    assert (status, "its sha256" in said) == (422, True), said


def test_a_kept_file_that_is_no_report_any_more_keeps_no_later_one_out(
    taking: TestClient, network: IndexedNetwork, tmp_path: Path
) -> None:
    huge = of_node(network, start={"auc": AUC.model_copy(update={"high": 1e15})})
    path = tmp_path / "home" / "site-reports" / "task-1" / f"hospital-{HOSPITALS[0].address.lower()}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(huge.written)  # as earlier versions took it
    assert hand_in(taking, of_node(network)) == (204, "")
    assert path.read_bytes() == of_node(network).written


def test_posts_at_the_same_time_leave_one_whole_report(
    taking: TestClient, network: IndexedNetwork, tmp_path: Path
) -> None:
    both = [of_node(network), of_node(network, start={})]
    with ThreadPoolExecutor(8) as several:
        answers = list(several.map(lambda at: hand_in(taking, both[at % 2])[0], range(40)))
    assert answers == [204] * 40
    (kept,) = (tmp_path / "home" / "site-reports" / "task-1").glob("*.json")
    assert kept.read_bytes() in [one.written for one in both]


def test_of_a_thousand_posts_a_dozen_are_taken(network: IndexedNetwork, tmp_path: Path) -> None:
    report = of_node(network)
    app = app_of(network, home=tmp_path / "home", models=tmp_path, limits={"requests_per_minute": 20_000})
    with TestClient(app) as client:
        statuses = [hand_in(client, report)[0] for _ in range(1_000)]
    assert set(statuses[:12]) == {204}
    assert 0 < statuses.count(204) < 30
    assert statuses.count(204) + statuses.count(429) == 1_000
    assert len(list((tmp_path / "home" / "site-reports").rglob("*.json"))) == 1


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
    expect(nodes.get_by_role("columnheader", name="Trained alone: Accuracy, %")).to_be_visible()
    expect(nodes.get_by_text("61 (55 to 67)")).to_have_count(1)
    expect(card.get_by_role("table", name="Importance of columns, rows of the operator")).to_contain_text(
        "<img src=x onerror=alert(1)>"
    )
    expect(card.get_by_role("table", name="Subgroups")).to_contain_text("sex = female, the operator")
    expect(card.locator(".chart path").first).to_be_visible()
    page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 390")  # charts are drawn again
