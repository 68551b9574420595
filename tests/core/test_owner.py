"""A node's owner is told of faults and losses, once, and without any wait of the node."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consilium_core.logs import emit, heard_by
from consilium_core.notify import MailServer, MailSettings, Reach
from consilium_core.owner import Owner, costs_money, telling_owner
from told_servers import Hooks, Mails, hooks, mails

SETTLED = {"round": 2, "reason": "PAID", "reward": "0", "slash": "0"}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hooks]:
    with hooks(tmp_path) as found:
        yield found


@pytest.fixture
def post_office(tmp_path: Path) -> Iterator[Mails]:
    with mails(tmp_path) as found:
        yield found


def owner_of(hook: Hooks, post_office: Mails, targets: list[str] | None = None, **changes: Any) -> Owner:
    sender = MailServer("localhost", post_office.port, False, "node@hospital.example.org")
    given = targets or [hook.url("/a"), "mailto:ward@hospital.example.org"]
    asked: dict[str, Any] = {"reach": hook.reach(), "pauses": (0.0, 0.0)}
    return Owner(given, sender, "hospital 0xA", **asked | changes)


@pytest.mark.parametrize(
    ("event", "fields", "expected"),
    [
        ("settled", SETTLED, False),
        ("settled", SETTLED | {"slash": "1"}, True),
        ("settled", SETTLED | {"reason": "NOT_REVEALED"}, True),
        ("privacy", {"round": 1, "epsilon": 7.2, "of": 8}, True),
        ("privacy", {"round": 1, "epsilon": 7.1, "of": 8}, False),
        ("round-failed", {}, True),
        ("not-voted", {}, True),
        ("withdrawal-address", {}, True),
        ("set-aside", {"error": "NotAllowed"}, False),  # strangers propose tasks
        ("data-remark", {}, False),
        ("relay-ended", {}, False),
        ("training", {}, False),
    ],
)
def test_costs_money(event: str, fields: dict[str, Any], expected: bool) -> None:
    assert costs_money(event, fields) is expected


def test_owner_is_told_in_the_words_of_the_screen(hook: Hooks, post_office: Mails) -> None:
    owner = owner_of(hook, post_office)
    with heard_by(owner.hear):
        emit("round-failed", round=3, error="DiskFull")
        emit("training", round=3)
    emit("round-failed", round=4, error="DiskReadOnly")  # after the node's end
    owner.wait()
    words = "round 3 failed here: the disk with the home folder is full: free some space"
    (told,), (letter,) = hook.bodies, post_office.got
    assert told == {
        "id": hook.got[0][1]["webhook-id"], "type": "node", "node": "hospital 0xA", "kind": "round-failed",
        "words": words,
    }  # fmt: skip
    assert (letter["To"], post_office.text()) == ("ward@hospital.example.org", f"hospital 0xA: {words}\n")


def test_owner_is_told_once_an_hour_and_so_many_times_a_day(
    hook: Hooks, post_office: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_core.owner.A_DAY", 5)
    now = [0.0]
    owner = owner_of(hook, post_office, [hook.url()], clock=lambda: now[0])

    def fail(task: int) -> int:
        owner.hear("task-failed", {"task": task, "error": "ChainUnreachable"})
        owner.wait()
        return len(hook.got)

    assert [fail(1), fail(1), fail(2)] == [1, 1, 2]
    now[0] = 3_600.0
    assert fail(1) == 3
    assert [fail(task) for task in range(3, 8)][-1] == 5
    now[0] = 86_400.0
    assert fail(50) == 6


def test_a_node_does_not_wait_for_an_address_that_fails(
    hook: Hooks, post_office: Mails, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.status = 500
    owner = owner_of(hook, post_office, pauses=(0.3, 0.0))
    start = time.monotonic()
    owner.hear("ballot-lost", {"round": 1})
    assert time.monotonic() - start < 0.3
    owner.wait()
    assert len(hook.got) == 2
    assert len(post_office.got) == 1
    said = '"event": "owner-not-told", "told": "ballot-lost", "why": "it answered with status 500"'
    assert said in capsys.readouterr().out


def test_a_slash_is_told_after_a_miss_and_beyond_the_days_messages(
    hook: Hooks, post_office: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_core.owner.A_DAY", 1)
    owner = owner_of(hook, post_office, [hook.url()], clock=lambda: 0.0)
    settled = {"task": 1} | SETTLED
    owner.hear(
        "settled", settled | {"reason": "NOT_IN_SUM"}
    )  # an aggregator may cause that, and spends the day's limit
    owner.hear("settled", settled | {"round": 3, "reason": "NOT_IN_SUM"})
    for round_ in (2, 2, 3):
        owner.hear("settled", settled | {"round": round_, "reason": "WITHHELD", "slash": "5"})
    for round_ in (4, 5):
        owner.hear("ballot-lost", {"task": 1, "round": round_})
    owner.wait()
    assert [one["kind"] for one in hook.bodies] == ["settled"] * 3 + ["ballot-lost"] * 2


def test_owner_is_told_of_the_error_that_ends_the_node(post_office: Mails, tmp_path: Path) -> None:
    server = MailSettings(host="localhost", port=post_office.port, tls=False, sender="node@hospital.example.org")
    for _ in range(2):  # a supervisor starts it again
        with (
            pytest.raises(ZeroDivisionError),
            telling_owner(["mailto:ward@hospital.example.org"], server, "voter 0xB", tmp_path),
        ):
            raise ZeroDivisionError
    (letter,) = post_office.got
    assert letter["To"] == "ward@hospital.example.org"
    assert post_office.text() == "voter 0xB: the node, or a start of it, ended with ZeroDivisionError\n"


def test_a_stopped_node_still_sends_what_it_queued(post_office: Mails, tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from consilium_core.logs import emit
from consilium_core.notify import MailSettings
from consilium_core.owner import telling_owner
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
server = MailSettings(host="localhost", port={post_office.port}, tls=False, sender="node@hospital.example.org")
with telling_owner(["mailto:ward@hospital.example.org"], server, "voter 0xB", Path({str(tmp_path)!r})):
    emit("ballot-lost", round=3)
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
"""
    ended = subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, timeout=60)
    assert ended.returncode == 128 + signal.SIGTERM
    assert "round 3" in post_office.text()


def test_a_stopped_node_does_not_wait_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consilium_core.owner.STOPPED_WAIT", 0.3)
    server = MailSettings(host="localhost", port=1, tls=False, sender="node@hospital.example.org")

    def stop() -> None:
        with telling_owner(["mailto:ward@hospital.example.org"], server, "voter 0xB", tmp_path):
            emit("ballot-lost", round=3)
            raise SystemExit(143)

    started = time.monotonic()
    with pytest.raises(SystemExit):
        stop()
    assert 0.3 <= time.monotonic() - started < 10


def test_an_unknown_error_of_one_address_stops_no_message(
    hook: Hooks, post_office: Mails, capsys: pytest.CaptureFixture[str]
) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise RuntimeError

    owner = owner_of(hook, post_office, reach=Reach(ports=None, resolve=resolve))
    for round_ in (1, 2):
        owner.hear("ballot-lost", {"round": round_})
    owner.wait()
    assert len(post_office.got) == 2
    assert capsys.readouterr().out.count('"told": "ballot-lost", "why": "RuntimeError"') == 2


def test_a_dead_address_delays_no_other(hook: Hooks, post_office: Mails) -> None:
    hook.status = 500
    owner = owner_of(hook, post_office, pauses=(0.0, 60.0))
    for round_ in (1, 2):
        owner.hear("ballot-lost", {"round": round_})
    end = time.monotonic() + 30  # the other address waits for a minute
    while len(post_office.got) < 2 and time.monotonic() < end:
        owner.wait(0.1)
    assert len(post_office.got) == 2
