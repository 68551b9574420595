"""Spans of a round: one trace of all processes, nothing but the protocol's names and numbers, and no wait of a node."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_core import collector
from consilium_core.collector import BATCH, LAST_WAIT, Collector, TracingSettings
from consilium_core.errors import ConfigInvalid, KeystoreError, NotSent
from consilium_core.logs import log_to
from consilium_core.private_files import write_private_file
from consilium_core.tracing import Party, record, span, traced
from consilium_core.typed_toml import parse_toml
from span_receiver import Receiver, receiving
from told_servers import certificate

HOSPITAL = Party(11_155_111, "0x" + 40 * "A", "hospital", "0x" + 40 * "1", 3)
AGGREGATOR = Party(11_155_111, "0x" + 40 * "a", "aggregator", "0x" + 40 * "2", 3)
SECRET = "Bearer s3cret"
OTHER_PROCESS = """
import sys
from consilium_core.collector import TracingSettings
from consilium_core.tracing import Party, span, traced
with traced(TracingSettings(endpoint=sys.argv[1]), Party(11_155_111, "0x" + 40 * "a", "voter", "0x" + 40 * "3")):
    with span("score", task=3, round=2):
        with span("evaluate", cohort=1):
            pass
"""
OFF = """
import socket, sys, threading
def refused(*_):
    raise SystemExit("a socket was opened")
from consilium_core.tracing import record, span
sys.addaudithook(lambda event, _: refused() if event.startswith("socket.") else None)
with span("score", task=3, round=2) as facts:
    facts["gas"] = 7
record("round 2", 1, is_root=True, task=3, round=2)
assert threading.active_count() == 1
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def to(receiver: Receiver, **changes: Any) -> TracingSettings:
    return TracingSettings(**{"endpoint": receiver.endpoint} | changes)


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_processes_that_pass_each_other_nothing_give_one_trace_of_a_round() -> None:
    with receiving() as receiver:
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, receiver.endpoint], check=True)
        with traced(to(receiver), HOSPITAL), span("train", round=2, blobs=1):
            pass
        with traced(to(receiver), AGGREGATOR):
            record("round 2", time.time_ns() - 10**9, is_root=True, task=3, round=2)
            record("phase committing", time.time_ns() - 10**9, task=3, round=2, phase="COMMITTING")
            with span("tick", task=3, round=1):
                pass
    root, inner, score = receiver.named("round 2"), receiver.named("evaluate"), receiver.named("score")
    assert {one.trace for one in receiver.spans if one.name != "tick"} == {root.trace} != {receiver.named("tick").trace}
    assert {one.of["service.name"] for one in receiver.spans} == {
        "consilium-aggregator", "consilium-hospital", "consilium-voter",
    }  # fmt: skip
    assert root.parent == ""
    assert {receiver.named(name).parent for name in ("score", "train", "phase committing")} == {root.id}
    assert inner.parent == score.id
    assert inner.facts == {"consilium.task": 3, "consilium.round": 2, "consilium.cohort": 1}
    assert root.seconds >= 1
    assert len({one.id for one in receiver.spans}) == len(receiver.spans) == 6


def test_off_it_opens_no_socket_starts_no_thread_and_imports_no_sdk() -> None:
    run = subprocess.run([sys.executable, "-c", OFF], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"


def test_a_span_says_names_and_numbers_and_never_a_text_or_a_path() -> None:
    def read() -> None:
        with span("read data") as facts:
            facts["gas"], facts["call"] = 21_000, "commitUpdate"
            facts["step"], facts["phase"] = "/home/ward/patients.csv", "age 41\nage 42"
            facts["transaction"] = 81 * "a"
            raise ValueError("age 41")

    with receiving() as receiver:
        with traced(to(receiver), HOSPITAL), pytest.raises(ValueError, match="age 41"):
            read()
        with traced(to(receiver), HOSPITAL), pytest.raises(KeystoreError), span("join", round=1):
            raise KeystoreError("/home/ward/password")
    first, join = receiver.named("read data"), receiver.named("join")
    assert first.is_error
    assert first.facts == {
        "consilium.task": 3, "consilium.gas": 21_000, "consilium.call": "commitUpdate", "error.type": "ValueError",
    }  # fmt: skip
    assert join.facts["error.type"] == "KeystoreError"
    assert not any(word in raw for raw in receiver.raw for word in (b"ward", b"age 4", b"csv"))
    assert not any(os.uname().nodename.encode() in raw for raw in receiver.raw)


def test_threads_have_spans_of_their_own() -> None:
    def work() -> None:
        with span("of a thread", round=2):
            time.sleep(0.01)

    with receiving() as receiver:
        with traced(to(receiver), HOSPITAL), span("commit", round=2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        outer, inner = receiver.named("commit"), receiver.named("of a thread")
    assert inner.parent == outer.parent != outer.id
    assert outer.seconds >= inner.seconds >= 0.01


def test_work_without_a_task_has_no_span() -> None:
    with receiving() as receiver, traced(to(receiver), Party(1, "0xa", "voter", "0xb")), span("send register"):
        pass
    assert receiver.spans == []


def test_a_forked_child_sends_nothing() -> None:
    with receiving() as receiver, traced(to(receiver), HOSPITAL):
        child = os.fork()
        if not child:
            with span("of the child", round=1):
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert receiver.spans == []


def test_a_key_leaves_for_the_collector_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_private_file(tmp_path / "headers", f"authorization: {SECRET}\n\nX-Scope-OrgID: ward-7\nhost: elsewhere\n")
    pem = certificate(tmp_path, "localhost")
    with receiving(pem) as receiver:
        secure = to(
            receiver, endpoint=f"https://localhost:{receiver.port}/v1/traces", ca_certificate=pem,
            headers_file=tmp_path / "headers",
        )  # fmt: skip
        with traced(secure, HOSPITAL), span("train", round=2):
            pass
        assert receiver.named("train").facts["consilium.round"] == 2
        assert receiver.headers[0]["authorization"] == SECRET
        assert receiver.headers[0]["x-scope-orgid"] == "ward-7"
        with pytest.raises(NotSent, match="certificate is not valid"):
            Collector(secure.model_copy(update={"ca_certificate": None})).post({"resourceSpans": []})
    said = capsys.readouterr()
    assert f'"to": "https://localhost:{receiver.port}"' in said.out
    assert "s3cret" not in said.out + said.err


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("Authorization: a", 0o644, "chmod 600"),
        ("s3cret", 0o600, "line 1 of .* is not a header: write NAME: VALUE"),
        ("a: b\nc: \u00e9s3cret", 0o600, "line 2"),
        (None, 0o600, "does not exist"),
    ],
)
def test_headers_are_refused_without_their_words(tmp_path: Path, content: str | None, mode: int, why: str) -> None:
    path = tmp_path / "headers"
    if content is not None:
        write_private_file(path, content)
        path.chmod(mode)
    with pytest.raises(KeystoreError, match=why) as refused:
        Collector(TracingSettings(endpoint="https://a.org", headers_file=path))
    assert "s3cret" not in str(refused.value)


def test_a_redirect_is_not_followed() -> None:
    with receiving() as receiver:
        receiver.status = 307
        with pytest.raises(NotSent, match="status 307"):
            Collector(to(receiver)).post({"resourceSpans": []})
        assert len(receiver.raw) == 1


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://tempo.example.org", "https://TEMPO:4318/otlp", "https://10.0.0.7:4318", "https://[2001:db8::7]:4318",
        "http://127.0.0.1:4318", "http://localhost:4318/", "http://[::1]:4318",
    ],
)  # fmt: skip
def test_addresses_of_collectors(endpoint: str) -> None:
    parse_toml(f'endpoint = "{endpoint}"'.encode(), TracingSettings, "node.toml", ConfigInvalid)


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://tempo.example.org:4318", "http would show the spans to the network on the way to tempo.example.org"),
        ("http://127.0.0.1.example.org", "write https://, or on this machine"),
        ("https://user:s3cret@tempo.example.org", "with a key in `headers_file` alone"),
        ("https://tempo.example.org?key=s3cret", "with a key in `headers_file` alone"),
        ("https://tempo.example.org:65536", "not a collector's address"),
        ("https://tempo.example.org/\\n", "not a collector's address"),
        ("grpc://127.0.0.1:4317", "not a collector's address"),
        ("127.0.0.1:4318", "not a collector's address"),
        ("", "not a collector's address"),
    ],
)
def test_other_addresses_are_refused(endpoint: str, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"node\.toml is invalid: endpoint: ") as refused:
        parse_toml(f'endpoint = "{endpoint}"'.encode(), TracingSettings, "node.toml", ConfigInvalid)
    assert why in str(refused.value)


# Dead collectors


def heard() -> tuple[list[tuple[str, dict[str, Any]]], Callable[[str, Any], None]]:
    found: list[tuple[str, dict[str, Any]]] = []
    return found, lambda event, fields: found.append((event, dict(fields)))


def test_a_collector_that_is_away_costs_nothing_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "EVERY", 0.02)
    monkeypatch.setattr(collector, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(collector, "WAITING", waiting := 2 * BATCH)
    port, (events, hear) = free_port(), heard()
    with log_to(hear), traced(TracingSettings(endpoint=f"http://127.0.0.1:{port}"), HOSPITAL):
        began = time.monotonic()
        for _ in range(waiting + 10):
            with span("commit", round=1):
                pass
        assert time.monotonic() - began < 5
        wait_until(lambda: len(events) == 2)
        time.sleep(0.2)  # it is tried again, and not told again
        with receiving(port=port) as receiver:
            wait_until(lambda: len(events) == 3)
            wait_until(lambda: len(receiver.spans) >= waiting)
    shown = f"http://127.0.0.1:{port}"
    assert events == [
        ("tracing", {"to": shown}),
        ("spans-not-sent", {"to": shown, "why": "it does not answer (ConnectionRefusedError)"}),
        ("spans-sent-again", {"to": shown, "spans": 10}),
    ]
    assert len(receiver.spans) == waiting
    assert len(receiver.raw) == 2


def test_a_collector_that_hangs_delays_neither_a_step_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    events, hear = heard()
    with socket.create_server(("127.0.0.1", 0)) as silent, log_to(hear):
        port = silent.getsockname()[1]
        began = time.monotonic()
        with traced(TracingSettings(endpoint=f"http://127.0.0.1:{port}"), HOSPITAL):
            for _ in range(2 * BATCH):
                with span("commit", round=1):
                    pass
            assert time.monotonic() - began < 2
        assert time.monotonic() - began < 2 + LAST_WAIT + 1
    assert events[-1] == ("spans-lost", {"to": f"http://127.0.0.1:{port}", "spans": 2 * BATCH})


@pytest.mark.parametrize(("status", "lost"), [(401, True), (400, True), (429, False), (503, False)])
def test_spans_that_would_be_refused_again_are_dropped(
    monkeypatch: pytest.MonkeyPatch, status: int, lost: bool
) -> None:
    monkeypatch.setattr(collector, "EVERY", 0.02)
    events, hear = heard()
    with receiving() as receiver, log_to(hear), traced(to(receiver), HOSPITAL):
        receiver.status = status
        with span("commit", round=1):
            pass
        wait_until(lambda: len(events) == 2)
        receiver.status = 200
        with span("reveal", round=1):
            pass
        wait_until(lambda: len(events) == 3)
    assert events[1][1]["why"] == f"it answered with status {status}"
    assert events[2] == ("spans-sent-again", {"to": receiver.endpoint, "spans": int(lost)})
