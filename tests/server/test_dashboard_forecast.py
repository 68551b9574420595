"""A result of `consilium simulate` in the form of Propose: shown for its own task, and kept in the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from browser_driver import Watched, chromium, context_of
from consilium_chain.tasks.task_spec import parse_task_spec, section_digests
from consilium_server.api.dashboard import built
from dashboard_driver import NEEDED, violations
from indexed_network import app_of, populated, served
from playwright.sync_api import expect

pytestmark = NEEDED
ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "dashboard/src/propose/example.toml").read_bytes()
FILE = json.loads((ROOT / "tests/vectors/simulation.json").read_text())


def test_the_form_has_what_decides_before_its_columns_and_few_of_these(tmp_path: Path) -> None:
    column = '[[data.features]]\nname = "more{}"\nmin = 0\nmax = 1\n'
    text = EXAMPLE.decode().replace("[model]", "".join(column.format(one) for one in range(8)) + "[model]", 1)
    with served(app_of(populated(tmp_path), dashboard=str(built()))) as url, chromium() as browser:
        page = context_of(browser).new_page()
        page.goto(f"{url}/#/propose")
        page.locator("summary", has_text="The file itself").click()
        page.get_by_label("Task file (TOML)").fill(text)
        form = page.get_by_role("form", name="The task, as a form")
        whole = form.get_by_role("button", name="Show all 10")
        expect(whole).to_be_visible()
        legends = [one for one in form.locator("legend:visible").all_inner_texts() if one not in ("Question", "Values")]
        first, shown = legends[: legends.index("Features")], legends[legends.index("Features") + 1 :]
        assert first == ["Data", "Model", "Privacy", "Rounds", "Money"]
        assert shown == ["1: age", "2: chol", "3: more0"]
        page.get_by_label("Task file (TOML)").fill(text.replace('name = "more7"\nmin = 0', 'name = "more7"\nmin = 5'))
        form.get_by_role("button", name="Check").click()
        expect(form.locator("legend", has_text="10: more7")).to_be_visible()  # its fault is in sight
        expect(whole).to_have_count(0)


def test_a_simulation_is_shown_for_its_own_task_and_stays_in_the_browser(tmp_path: Path) -> None:
    own = FILE | {"sections": section_digests(parse_task_spec(EXAMPLE))}
    harmless = own["rounds"][0]
    files: dict[str, Any] = {
        "own": own,
        "rejected": own | {"rounds": [harmless | {"judged": [True], "accepted": [False], "slashed": ["a", "b"]}]},
        "other": own | {"sections": own["sections"] | {"money": "0" * 64}},
        "hostile": own | {"metric": "<img src=x onerror=alert(1)>" * 1_000},
    }
    with served(app_of(populated(tmp_path), dashboard=str(built()))) as url, chromium() as browser:
        watched = Watched(context_of(browser, width=390).new_page(), {url.removeprefix("http://")})
        page, sent = watched.page, []
        page.on("request", lambda request: sent.append(request.post_data or ""))
        page.goto(f"{url}/#/propose")
        forecast = page.get_by_role("region", name="Forecast from your own rows")

        def give(name: str) -> None:
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(files[name]))
            forecast.get_by_label("Result of the simulation (JSON)").set_input_files(path)

        give("own")
        expect(forecast.get_by_text("0 of 4")).to_be_visible()
        expect(forecast.get_by_role("figure", name="Accuracy")).to_be_visible()
        assert violations(page) == []
        give("rejected")
        expect(forecast.get_by_text("1 of 1")).to_be_visible()
        expect(forecast.get_by_text("All hospitals of a simulation are honest")).to_be_visible()
        give("other")
        expect(forecast.get_by_text("These parts differ: money.")).to_be_visible()
        expect(forecast.get_by_text("of 4")).to_have_count(0)
        give("hostile")
        expect(forecast.get_by_text("The file is damaged: metric is missing or invalid.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
        assert not any("hospital-0" in body for body in sent)
        assert (watched.elsewhere, watched.errors) == ([], [])
