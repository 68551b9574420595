"""Those who follow a task are told which deadline was missed, by whom and by how much."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chain_driver import SHARED_WINDOWS, LocalChain, TaskDriver
from consilium_core.live import sentence
from consilium_lab.up.run import WORDS, News
from consilium_operators.event_words import EVENTS
from consilium_operators.watching import watch
from rich.text import Text


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{k: v for k, v in line.items() if k != "at"} for line in lines if line["event"] == "deadline-missed"]


def test_watch_and_up_name_the_aggregator_that_published_too_late(
    local_chain: LocalChain, capsys: pytest.CaptureFixture[str]
) -> None:
    with local_chain.undone():
        task = TaskDriver(local_chain, terms=SHARED_WINDOWS).join().commit_all()
        task.pass_deadline()
        task.tick()
        events = watch(local_chain.treasury, task.task)
        (by_watch,) = [event.values for event in events if event.name == "deadline-missed"]
        News(local_chain.treasury, {task.aggregator.address: "the aggregator"}).log_new()
        (by_up,) = [line for line in told(capsys) if line["task"] == task.task]
    assert (by_watch["round"], by_watch["phase"], by_watch["missing"]) == (0, "UPLOADING", [task.aggregator.address])
    assert by_up == {**by_up, "missing": ["the aggregator"], "window_s": SHARED_WINDOWS["upload_window"] * 3 // 2}
    words = Text.from_markup(sentence("deadline-missed", by_watch, EVENTS)).plain
    assert words.startswith(f"late: round 0, uploading: {task.aggregator.address} did not act within ")
    words = Text.from_markup(sentence("deadline-missed", by_up, WORDS)).plain
    assert words.startswith(f"task {task.task}: late: round 0, uploading: the aggregator did not act within ")
