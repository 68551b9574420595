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
