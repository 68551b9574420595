"""The statistics of all hospitals' rows over HTTP, from the published sum of round 0, and in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_driver import chromium, context_of
from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import Phase
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec, parse_task_spec
from consilium_client.data.standardise import round_0_values
from consilium_client.data.table.reader import Table
from consilium_server.api.dashboard import built
from consilium_server.api.statistics import MOST_COLUMNS
from consilium_zk.blobs import Blob
from consilium_zk.kzg import commit
from consilium_zk.packing import LaneLayout, pack
from consilium_zk.quantise import Quantiser
from dashboard_driver import NEEDED, violations
from fastapi.testclient import TestClient
from indexed_network import HOSPITALS, IndexedNetwork, app_of, served
from numpy.typing import NDArray
from playwright.sync_api import expect

ROWS, BINS = 50, 10
HOSTILE = "<img src=x onerror=alert(1)>\\u202e"
TASK = f"""
name = "counted"
[data]
label = "sick"
classes = ["no", "yes"]
[[data.features]]
name = "age"
min = 0
max = 120
[[data.features]]
kind = "category"
name = "{HOSTILE}"
values = ["f", "m"]
[model]
name = "logistic"
[rounds]
max_hospitals = 6
min_hospitals = 6
min_cohort_size = 3
"""
EXACT, NOISY = f"[summary]\nbins = {BINS}\n", f"[summary]\nbins = {BINS}\nepsilon = 1.0\n"


def rows_of(hospital: int, spec: TaskSpec) -> Table:
    random = np.random.default_rng(hospital)
    features = random.random((ROWS, spec.data.statistics_values // 3))
    features[:, 1:] = features[:, 1:].round()
    features[random.random(features.shape) < 0.1] = np.nan
    return Table(features, random.integers(0, 2, ROWS))


def summed(spec: TaskSpec) -> NDArray[np.uint64]:
    """The lanes of all hospitals' round 0."""
    step = Quantiser(STATISTICS_BITS, STATISTICS_RANGE)
    lanes = [step.quantise(round_0_values(rows_of(at, spec), spec), None) for at in range(len(HOSPITALS))]
    total: NDArray[np.uint64] = np.sum(lanes, axis=0, dtype=np.uint64)
    return total


def counted(network: IndexedNetwork, task: int, text: str, blob: Blob | None = None) -> None:
    """A task whose round 0 is settled. `blob`: of the sum, instead of the hospitals'."""
    spec = parse_task_spec(text.encode())
    if blob is None:
        (blob,) = pack(summed(spec), spec.statistics_layout, total_weight=len(HOSPITALS))
    hash_ = network.store.put_blob(blob, commit(blob))
    with network.mined():
        network.propose(task, text)
    network.play_statistics(task, hash_)


@pytest.fixture
def network(tmp_path: Path) -> IndexedNetwork:
    return IndexedNetwork(tmp_path)


@pytest.fixture
def client(network: IndexedNetwork) -> Iterator[TestClient]:
    with TestClient(app_of(network)) as client:
        yield client


def read(client: TestClient, task: int) -> Any:
    answer = client.get(f"/v1/tasks/{task}/statistics")
    assert answer.status_code == 200, answer.json()
    return answer.json()["items"]


def test_counts_are_those_of_numpy_on_all_rows_together(network: IndexedNetwork, client: TestClient) -> None:
    counted(network, 1, TASK + EXACT)
    (found,) = read(client, 1)
    tables = [rows_of(at, parse_task_spec((TASK + EXACT).encode())) for at in range(len(HOSPITALS))]
    values, labels = np.concatenate([one.features for one in tables]), np.concatenate([one.labels for one in tables])
    assert (found["hospitals"], found["rows"], found["deviation"], found["epsilon"]) == (6, 300, 0, None)
    age, sex, sick = found["columns"]
    known = 120 * values[~np.isnan(values[:, 0]), 0]
    assert age["counts"] == np.histogram(known, BINS, (0, 120))[0].tolist()
    assert (age["values"], age["missing"]) == (len(known), 300 - len(known))
    np.testing.assert_allclose(age["quartiles"], np.quantile(known, [0.25, 0.5, 0.75]), atol=12)
    assert age["mean"] == pytest.approx(known.mean(), abs=6)
    assert (sex["names"], sex["edges"]) == (["f", "m"], [])
    assert sex["counts"] == [int((values[:, 1] == code).sum()) for code in (0, 1)]
    assert (sick["is_answer"], sick["counts"]) == (True, np.bincount(labels).tolist())
    assert "\u202e" not in sex["name"]


def test_noise_is_told_and_counts_keep_it(network: IndexedNetwork, client: TestClient) -> None:
    counted(network, 1, TASK + NOISY)
    (found,) = read(client, 1)
    assert (found["epsilon"], found["delta"]) == (1.0, 1e-5)
    variance = parse_task_spec((TASK + NOISY).encode()).summary_variance
    assert found["deviation"] == pytest.approx(np.sqrt(6 * variance))
    assert any(count < 0 or found["rows"] != 300 for one in found["columns"] for count in one["counts"])


def test_nothing_is_told_before_round_0_or_without_a_summary(network: IndexedNetwork, client: TestClient) -> None:
    counted(network, 1, TASK)
    with network.mined():
        network.propose(2, TASK + EXACT)
        network.propose(3, "name = 'does not hold'")
        network.propose(4, TASK + EXACT, known=False)
    assert [read(client, task) for task in (1, 2, 3, 4)] == [[]] * 4
    assert client.get("/v1/tasks/9/statistics").status_code == 404


def test_shards_are_told_and_counted_together(network: IndexedNetwork, client: TestClient) -> None:
    text = TASK.replace("[rounds]", "[rounds]\nshards = 2") + EXACT
    spec = parse_task_spec(text.encode())
    (sound,) = pack(summed(spec), spec.statistics_layout, total_weight=len(HOSPITALS))
    hash_ = network.store.put_blob(sound, commit(sound))
    with network.mined():
        for task in (1, 2, 4, 5):  # two proposals of one block, around another
            if task == 4:
                network.propose(3, TASK)
            network.propose(task, text, known=task == 1, shards=2)
    with network.mined():
        network.propose(6, text, known=False, shards=2)
        network.propose(7, text, known=False, shards=2)
    found = [client.get(f"/v1/tasks/{task}").json()["shards"] for task in range(1, 8)]
    assert found == [[1, 2], [1, 2], [3], [4, 5], [4, 5], [6, 7], [6, 7]]
    network.play_statistics(2, hash_)
    assert [read(client, task)[0]["rows"] for task in (1, 2)] == [300, 300]  # one shard's, so far
    network.play_statistics(1, hash_)
    both, same = (read(client, task)[0] for task in (1, 2))
    assert (both["hospitals"], both["rows"]) == (12, 600)
    assert both == same
    assert read(client, 4) == []


def test_an_answer_is_known_until_the_chain_goes_on(network: IndexedNetwork, client: TestClient) -> None:
    counted(network, 1, TASK + EXACT)
    first = client.get("/v1/tasks/1/statistics")
    known = {"If-None-Match": first.headers["etag"]}
    assert client.get("/v1/tasks/1/statistics", headers=known).status_code == 304
    assert first.headers["x-consilium-block"] == str(network.block)
    counted(network, 2, TASK.replace("counted", "another") + EXACT)
    again = client.get("/v1/tasks/1/statistics", headers=known)
    assert (again.status_code, again.json()) == (200, first.json())


def test_a_lost_blob_is_told_and_read_once_it_is_back(network: IndexedNetwork, client: TestClient) -> None:
    counted(network, 1, TASK + EXACT)
    (blob,) = (network.folder / "artifacts").glob("blob-*")
    raw = blob.read_bytes()
    for broken in (raw[:-1] + bytes([raw[-1] ^ 1]), None):
        blob.write_bytes(broken) if broken else blob.unlink()
        answer = client.get("/v1/tasks/1/statistics")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:consilium:problem:artifact-missing")
    blob.write_bytes(raw)
    assert read(client, 1)[0]["rows"] == 300


def test_a_sum_that_no_counts_add_up_to_is_not_shown(network: IndexedNetwork, client: TestClient) -> None:
    spec = parse_task_spec((TASK + EXACT).encode())
    above = LaneLayout(STATISTICS_BITS, total_weight=len(HOSPITALS) + 1)
    lanes = summed(spec)
    lanes[-1] = above.max_sum(len(HOSPITALS) + 1)
    (blob,) = pack(lanes, above, total_weight=len(HOSPITALS) + 1)
    counted(network, 1, TASK + EXACT, blob)
    many = "".join(f'[[data.features]]\nname = "x{at}"\nmin = 0\nmax = 1\n' for at in range(300))
    counted(network, 2, TASK.replace("[model]", f"{many}[model]") + "[summary]\nbins = 200\n", blob)  # too few blobs
    assert [read(client, task) for task in (1, 2)] == [[], []]


def test_a_file_of_many_columns_and_of_the_widest_gives_a_bounded_answer(
    network: IndexedNetwork, client: TestClient
) -> None:
    wide = "".join(f'[[data.features]]\nname = "x{at}"\nmin = 0\nmax = 1\n' for at in range(MOST_COLUMNS + 10))
    huge = '[[data.features]]\nname = "huge"\nmin = -1e300\nmax = 1e300\n'
    counted(network, 1, TASK.replace("[model]", f"{huge}{wide}[model]") + EXACT)
    (found,) = read(client, 1)
    assert (len(found["columns"]), found["left_out"]) == (MOST_COLUMNS, 14)
    assert abs(found["columns"][2]["mean"]) < 1e300
    with pytest.raises(SpecInvalid, match="a bound is at most 1e\\+300"):
        parse_task_spec((TASK.replace("120", "1e308") + EXACT).encode())


@pytest.mark.skipif(any(mark.args[0] for mark in NEEDED), reason="needs a browser and the built dashboard")
def test_the_page_shows_the_statistics(network: IndexedNetwork) -> None:
    counted(network, 1, TASK + NOISY)
    with network.mined():
        network.phase(1, 1, Phase.COMMITTING)
    errors = list[str]()
    with chromium() as browser, served(app_of(network, dashboard=str(built()))) as url:
        context = context_of(browser)
        page = context.new_page()
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.goto(f"{url}/#/tasks/1")
        card = page.get_by_role("region", name="The rows of all hospitals together")
        expect(card.get_by_text("never of one hospital")).to_be_visible()
        expect(card.locator("svg.histogram")).to_have_count(1)
        expect(card.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
        page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
        expect(card.get_by_role("table", name="age").get_by_role("row")).to_have_count(1 + BINS)
        assert violations(page) == []
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function("document.documentElement.scrollWidth <= 390")
        assert violations(page) == []
        context.close()
    assert errors == []
