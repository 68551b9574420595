"""A model in a real browser: it gives what `consilium predict` gives, and asks nothing of anybody meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import onnxruntime
import pytest
from browser_driver import Watched, chromium, context_of
from consilium_operators import onnx_int8
from consilium_operators.model_folder import INDEX, ONNX_INT8
from consilium_operators.onnx_file import add_onnx
from consilium_server.api.dashboard import built
from consilium_server.api.models import model_folder
from dashboard_driver import NEEDED, violations
from indexed_network import IndexedNetwork, app_of, populated, served
from model_driver import TABLE, written
from PIL import Image
from playwright.sync_api import Browser, Page, expect

pytestmark = NEEDED
IMAGES = """
name = "x-rays"
[data]
kind = "images"
classes = ["healthy", "ill"]
height = 24
width = 32
[model]
name = "cnn"
channels = [4, 8]
"""
ROWS = "id;age;sex\n7;61.5;1\n8;;2\n9;119;0\n"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> IndexedNetwork:
    return populated(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def watched(network: IndexedNetwork, browser: Browser, models: Path) -> Iterator[Watched]:
    """The page of a task that has ended."""
    with served(app_of(network, models=models, dashboard=str(built()))) as url:
        context = context_of(browser)
        found = Watched(context.new_page(), {url.removeprefix("http://")})
        found.page.goto(f"{url}/#/tasks/1")
        yield found
        context.close()
    assert found.elsewhere == []
    assert found.errors == []


def put(network: IndexedNetwork, models: Path, text: str) -> Path:
    """A model of random parameters as the task's own."""
    folder = written(models, text).rename(model_folder(models, 1))
    index = json.loads((folder / INDEX).read_text())
    index |= {"chain_id": network.deployment.chain_id, "contract": network.deployment.tasks}
    (folder / INDEX).write_text(json.dumps(index))
    add_onnx(folder)
    return folder


def opened(page: Page) -> list[str]:
    """Opens the model; the list gets the address of each request from then on."""
    page.get_by_role("button", name="Try the model…").click()
    expect(page.get_by_text("Your values stay in this browser")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
    asked: list[str] = []
    # The page asks for the network's present state every while, whatever it shows.
    page.on("request", lambda request: None if request.url.endswith("/v1/network") else asked.append(request.url))
    return asked


def shown(page: Page) -> list[float]:
    found: list[Any] = page.locator(".shares data").evaluate_all("all => all.map(one => Number(one.value))")
    return found


def predicted(folder: Path, data: Path) -> np.ndarray[Any, Any]:
    """By `consilium predict`, (n, classes)."""
    found = consilium.Model.read(folder).predict(data)
    return np.asarray(found.filter(like="probability_"))


def test_a_row_is_predicted_as_by_the_command(
    network: IndexedNetwork, models: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = put(network, models, TABLE)
    page = request.getfixturevalue("watched").page
    asked = opened(page)
    page.get_by_label("age (0 to 120)").fill("61.5")
    page.get_by_label("sex").select_option("1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator(".shares .best")).to_have_count(1)
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS.replace(";", ","))
    expected = predicted(folder, rows)
    np.testing.assert_allclose(shown(page), expected[0], rtol=0, atol=1e-6)
    expect(page.locator(".shares .best")).to_contain_text(["no", "maybe", "yes"][int(expected[0].argmax())])
    assert violations(page) == []

    page.get_by_label("Fill in from a table").set_input_files(
        {"name": "r.csv", "mimeType": "text/csv", "buffer": ROWS.encode()}
    )
    for at in (1, 2):
        page.get_by_label("Row of 3").fill(str(at + 1))
        expect(page.locator(".shares")).to_have_count(0)  # the earlier row's is gone
        page.get_by_role("button", name="Predict").click()
        expect(page.locator(".shares")).to_be_visible()
        np.testing.assert_allclose(shown(page), expected[at], rtol=0, atol=1e-6)
    assert asked == []


def test_a_phone_computes_the_small_file_and_asks_nothing(
    network: IndexedNetwork, models: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = put(network, models, TABLE.replace("hidden = [4]", "hidden = [64, 64]"))
    rows = tmp_path / "labelled.csv"
    rows.write_text("age,sex,sick\n" + "61.5,1,no\n20,0,yes\n99,2,maybe\n" * 20)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onnx_int8, "MOST_WORSE", 1.0)  # the labels are chance
        consilium.export_onnx_int8(folder, rows)
    page = request.getfixturevalue("watched").page
    page.set_viewport_size({"width": 390, "height": 844})
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    asked = opened(page)
    assert {"model.json", "model-int8.onnx"} <= set(loaded)
    assert "model.onnx" not in loaded
    expect(page.get_by_text("the file with 8-bit weights")).to_be_visible()
    page.get_by_label("age (0 to 120)").fill("61.5")
    page.get_by_label("sex").select_option("1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator(".shares .best")).to_have_count(1)
    session = onnxruntime.InferenceSession(folder / ONNX_INT8, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"rows": np.array([[61.5, 1.0]])})[0]
    np.testing.assert_allclose(shown(page), expected, rtol=0, atol=1e-3)  # another machine's sums of integers
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []
    assert asked == []


def test_a_value_that_the_model_does_not_know_is_refused(
    network: IndexedNetwork, models: Path, request: pytest.FixtureRequest
) -> None:
    put(network, models, TABLE)
    page = request.getfixturevalue("watched").page
    opened(page)
    age, go = page.get_by_label("age (0 to 120)"), page.get_by_role("button", name="Predict")
    age.fill("121")
    expect(page.get_by_text("values from 0 to 120")).to_be_visible()
    expect(go).to_be_disabled()
    page.get_by_label("Or paste it").fill("age,sex\n50,9")
    expect(page.get_by_text("The model knows the codes 0, 1, 2.")).to_be_visible()
    page.get_by_label("Or paste it").fill("age,sex\n50,2.0")
    expect(go).to_be_enabled()
    page.get_by_label("Or paste it").fill("weight,height\n50,2.0")
    expect(page.get_by_text("none of the model’s columns")).to_be_visible()


def test_an_image_is_predicted_as_by_the_command(
    network: IndexedNetwork, models: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One of the task's size, and a larger one of other proportions, whose shades may differ by one."""
    folder = put(network, models, IMAGES)
    page = request.getfixturevalue("watched").page
    asked = opened(page)
    given = page.get_by_label("An image: PNG or JPEG")
    for at, (shape, differs) in enumerate([((24, 32, 3), 1e-6), ((61, 50, 3), 1e-3)]):
        images = tmp_path / f"images-{at}"
        images.mkdir()
        pixels = np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(images / "one.png")
        given.set_input_files(images / "one.png")
        expected = predicted(folder, images)[0]
        page.wait_for_function(
            "wanted => document.querySelector('.shares data')?.value?.startsWith(wanted)", arg=f"{expected[0]:.3f}"[:4]
        )
        np.testing.assert_allclose(shown(page), expected, rtol=0, atol=differs)
    expect(page.get_by_text("The image as the model sees it")).to_be_visible()
    assert violations(page) == []
    see_through = images / "two.png"
    Image.fromarray(np.dstack([pixels, pixels[..., 0]])).save(see_through)
    given.set_input_files(see_through)
    expect(page.get_by_role("alert")).to_contain_text("transparent in parts")
    assert asked == []
