"""Limits of clients, headers for browsers, and the log of requests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from api_wallet import Wallet
from consilium_chain.rpc.local_node import free_port
from consilium_chain.settings import read_settings
from consilium_server.api.limits import Buckets, client_of
from consilium_server.api.reading import Answers
from consilium_server.config import ApiSettings
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from indexed_network import ORIGIN, TASK_FILE, IndexedNetwork, app_of, settings_of
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError


@pytest.fixture
def network(tmp_path: Path) -> IndexedNetwork:
    network = IndexedNetwork(tmp_path)
    with network.mined():
        network.propose(1, TASK_FILE)
    return network


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# Rates


@given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 5))
def test_nobody_does_more_than_its_burst_and_its_rate(pauses: list[float], burst: int) -> None:
    clock = Clock()
    buckets = Buckets(0.5, burst, clock)
    taken = 0
    for pause in pauses:
        clock.now += pause
        wait = buckets.take("one")
        taken += wait == 0
        assert taken <= burst + 0.5 * clock.now + 1e-6
        if wait:  # the wait that it is told is long enough
            other = Buckets(0.5, burst, clock)
            other._levels = buckets._levels.copy()
            at, clock.now = clock.now, clock.now + wait
            assert other.take("one") == 0
            clock.now = at


def test_buckets_are_never_more_than_so_many() -> None:
    buckets = Buckets(1, 1, Clock(), most=10)
    for number in range(1000):
        buckets.take(str(number))
    assert len(buckets._levels) == 10


def test_who_asks_too_often_is_told_when_to_come_again(network: IndexedNetwork) -> None:
    with TestClient(app_of(network, limits={"requests_per_minute": 3}, cors_origins=["https://a.example"])) as client:
        answers = [client.get("/v1/tasks", headers={"Origin": "https://a.example"}) for _ in range(5)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429, 429]
        refused = answers[-1]
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:consilium:problem:too-many-requests"
        assert 1 <= int(refused.headers["retry-after"]) <= 20
        assert refused.headers["access-control-allow-origin"] == "https://a.example"  # so that a page can read it
        assert [client.get(path).status_code for path in ("/health", "/ready", "/metrics")] == [200] * 3


def test_an_accounts_files_are_limited_wherever_it_sends_them_from(network: IndexedNetwork) -> None:
    app = app_of(network, limits={"files_per_hour": 2}, proxies=["10.1.0.0/16"])
    with TestClient(app, client=("10.1.2.3", 50_000)) as client:
        headers = {"Authorization": f"Bearer {Wallet().sign_in(client).json()['token']}"}
        statuses = [
            client.put(
                "/v1/artifacts/files", json={"text": TASK_FILE}, headers=headers | {"X-Forwarded-For": f"10.0.0.{n}"}
            ).status_code
            for n in range(3)
        ]
        assert statuses == [200, 200, 429]


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "client"),
    [
        ("10.0.0.1", ["1.2.3.4"], [], "10.0.0.1"),  # nobody's word but a proxy's
        ("10.0.0.1", ["1.2.3.4"], ["10.0.0.1"], "1.2.3.4"),
        ("10.0.0.1", ["6.6.6.6, 1.2.3.4"], ["10.0.0.1"], "1.2.3.4"),  # what a client wrote itself stands left
        ("10.0.0.1", ["6.6.6.6", "1.2.3.4, 10.0.0.2"], ["10.0.0.1", "10.0.0.2"], "1.2.3.4"),
        ("10.0.0.1", [], ["10.0.0.1"], "10.0.0.1"),
        ("10.0.0.1", ["6.6.6.6, 1.2.3.4, 10.7.0.9"], ["10.0.0.0/8"], "1.2.3.4"),
        ("::ffff:10.0.0.1", ["1.2.3.4"], ["10.0.0.0/8"], "1.2.3.4"),
        ("fd00::7", ["2001:db8::1"], ["10.0.0.0/8", "fd00::/8"], "2001:db8::/64"),
        ("11.0.0.1", ["1.2.3.4"], ["10.0.0.0/8"], "11.0.0.1"),
        ("10.0.0.1", ["no address"], ["10.0.0.0/8"], "no address"),
        ("2001:db8:1:2:3:4:5:6", [], [], "2001:db8:1:2::/64"),
        ("::ffff:1.2.3.4", [], [], "1.2.3.4"),
    ],
)
def test_whose_limits_a_request_counts_towards(
    peer: str, forwarded: list[str], proxies: list[str], client: str
) -> None:
    assert client_of(peer, forwarded, [ip_network(proxy) for proxy in proxies]) == client


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_that_is_too_large_is_refused(network: IndexedNetwork, chunked: bool) -> None:
    with TestClient(app_of(network, limits={"largest_body": 2000})) as client:
        body = json.dumps({"text": "#" * 3000}).encode()
        sent = (body[i : i + 100] for i in range(0, len(body), 100)) if chunked else body
        answer = client.post("/v1/tasks/check", content=sent, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["type"]) == (413, "urn:consilium:problem:request-too-large")
        assert client.post("/v1/tasks/check", json={"text": "#" * 1000}).status_code == 200


# What browsers are told


def test_other_sites_pages_read_only_where_they_may(network: IndexedNetwork) -> None:
    with TestClient(app_of(network, cors_origins=["https://a.example"])) as client:
        allowed = client.get("/v1/tasks", headers={"Origin": "https://a.example"})
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        assert "ETag" in allowed.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in allowed.headers  # there are no cookies
        other = client.get("/v1/tasks", headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks/99", "/nowhere", "/health", "/v1/tasks?limit=x"])
def test_every_answer_has_safe_headers_and_an_id(network: IndexedNetwork, path: str) -> None:
    with TestClient(app_of(network)) as client:
        headers = client.get(path, headers={"X-Request-Id": "mine-1"}).headers
        assert headers["x-request-id"] == "mine-1"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        made = client.get(path, headers={"X-Request-Id": "not\tone " + "x" * 100}).headers["x-request-id"]
        assert len(made) == 16


def test_a_dashboard_is_served_beside_the_api(network: IndexedNetwork, tmp_path: Path) -> None:
    folder = tmp_path / "dashboard"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Consilium</title>")
    (folder / "assets").mkdir()
    (folder / "assets" / "worker-1f2e.js").write_text("export {}")
    chain_url = "https://me:hunter2@rpc.example.org:8545/v3"
    with TestClient(app_of(network, dashboard=str(folder), public_chain_url=chain_url)) as client:
        page = client.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'")
        assert "connect-src 'self' https://rpc.example.org:8545;" in policy
        assert "script-src 'self' 'wasm-unsafe-eval';" in policy
        assert "unsafe-eval" not in policy.replace("'wasm-unsafe-eval'", "")
        assert "unsafe-inline" not in policy
        assert page.headers["cache-control"] == "no-cache"
        again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.headers.get("content-security-policy")) == (304, None)  # the page's stays
        script = client.get("/assets/worker-1f2e.js").headers
        assert (script["content-security-policy"], "immutable" in script["cache-control"]) == (policy, True)
        config = client.get("/config.json").json()
        assert (config["chain_id"], config["chain_url"]) == (network.deployment.chain_id, chain_url)
        book = network.deployment
        addresses = {name: getattr(book, name) for name in ("tasks", "staking", "token", "model_shares")}
        assert (config["contracts"], config["blobs"]) == (addresses, book.blobs)
        assert client.get("/v1/tasks").status_code == 200
        assert client.get("/../index.sqlite").status_code == 404
        assert client.get("/nothing").headers["content-type"] == "application/problem+json"
        assert (config["example"], client.get("/example.toml").status_code) == (False, 404)
    servers = ["https://predictions.example:8700", "https:"]
    with TestClient(app_of(network, dashboard=str(folder), prediction_servers=servers)) as client:
        policy = client.get("/").headers["content-security-policy"]
        assert "connect-src 'self' https://predictions.example:8700 https:;" in policy
        assert client.get("/config.json").json()["prediction_servers"] == servers
    with pytest.raises(ValidationError):
        settings_of(network, prediction_servers=["https://x; script-src *"])
    example = tmp_path / "task.toml"
    example.write_text('name = "körper"\n', encoding="utf-8")
    with TestClient(app_of(network, dashboard=str(folder), example_task=str(example))) as client:
        assert "connect-src 'self';" in client.get("/").headers["content-security-policy"]
        assert client.get("/config.json").json()["prediction_servers"] == []
        assert client.get("/config.json").json()["example"]
        assert client.get("/example.toml").content == example.read_bytes()


@pytest.mark.parametrize(
    ("typed", "opened"),
    [
        ("/tasks", "/#/tasks"),
        ("/tasks?phase=ended", "/#/tasks?phase=ended"),
        ("/tasks/3/rounds/1", "/#/tasks/3/rounds/1"),
        ("/tasks/", "/#/tasks/"),
        ("/tasks//example.org/", "/#/tasks//example.org/"),
    ],
)
def test_a_page_opens_by_its_address_without_a_hash(
    network: IndexedNetwork, tmp_path: Path, typed: str, opened: str
) -> None:
    with TestClient(app_of(network, dashboard=str(tmp_path))) as client:
        answer = client.get(typed, follow_redirects=False)
        assert answer.status_code == 307
        assert urljoin(f"https://site.example{typed}", answer.headers["location"]) == f"https://site.example{opened}"


# What is told


def test_metrics_are_prometheus_and_count(network: IndexedNetwork) -> None:
    with TestClient(app_of(network)) as client:
        for path in ("/v1/tasks/1", "/v1/tasks/2", "/v1/tasks/1", "/nowhere", "/elsewhere"):
            client.get(path)
        client.request("BREW", "/v1/tasks")
        text = client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    counted = {
        (s.labels["route"], s.labels["method"], s.labels["status"]): s.value
        for s in families["consilium_requests"].samples
        if s.name.endswith("_total")
    }
    assert counted["/v1/tasks/{task}", "GET", "200"] == 2
    assert counted["/v1/tasks/{task}", "GET", "404"] == 1
    assert counted["unknown", "GET", "404"] == 2
    assert [method for _, method, status in counted if status == "405"] == ["other"]
    assert {"consilium_request_seconds", "consilium_index_head_block", "consilium_event_subscribers"} <= set(families)


def test_a_line_for_each_request_and_none_of_what_was_sent(
    network: IndexedNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    with TestClient(app_of(network)) as client:
        token = Wallet().sign_in(client).json()["token"]
        capsys.readouterr()
        client.get("/v1/tasks/1/rounds/0?secret=1", headers={"X-Request-Id": "abc", "Authorization": f"Bearer {token}"})
        said = capsys.readouterr().out
    (line,) = [json.loads(one) for one in said.splitlines() if '"event": "request"' in one]
    assert line | {"at": 0, "milliseconds": 0} == {
        "at": 0, "event": "request", "request": "abc", "method": "GET", "route": "/v1/tasks/{task}/rounds/{round}",
        "status": 404, "milliseconds": 0, "task": "1", "round": "0",
    }  # fmt: skip
    assert token not in said
    assert "secret" not in said


def test_a_fault_is_a_problem_with_the_requests_id_and_leaks_nothing(
    network: IndexedNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_of(network)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a row of somebody's")

    with TestClient(app) as client:
        answer = client.get("/broken", headers={"X-Request-Id": "abc"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["type"] == "urn:consilium:problem:fault"
    assert "abc" in answer.json()["detail"]
    assert "somebody" not in answer.text
    assert "somebody" not in capsys.readouterr().out


def test_a_server_whose_chain_is_far_ahead_is_not_ready(network: IndexedNetwork) -> None:
    app = app_of(network, chain_url="http://127.0.0.1:1", most_behind=5)
    service = app.state.service
    client = TestClient(app)  # without its start: nobody asks that chain
    assert client.get("/ready").status_code == 503
    service.broadcaster.chain_head = network.block + 5
    assert client.get("/ready").json()["behind"] == 5
    service.broadcaster.chain_head = network.block + 6
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:consilium:problem:not-ready")
    index = client.get("/v1/network").json()["index"]
    assert (index["chain_head"], index["behind"]) == (network.block + 6, 6)
    tag = client.get("/v1/network").headers["etag"]
    service.broadcaster.chain_head = network.block + 7
    assert client.get("/v1/network", headers={"If-None-Match": tag}).status_code == 200


def test_a_server_that_no_longer_follows_the_index_is_not_ready(
    network: IndexedNetwork, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of the program in the poller that serves all streams."""
    app = app_of(network)
    monkeypatch.setattr(app.state.service.broadcaster, "_changes", lambda: 1 / 0)
    with TestClient(app) as client:
        until = time.monotonic() + 10
        while client.get("/ready").status_code == 200:
            assert time.monotonic() < until
        assert "has ended" in client.get("/ready").json()["detail"]
        assert client.get("/v1/tasks").status_code == 200  # what does not need it goes on
    assert "ZeroDivisionError" in caplog.text


@given(st.lists(st.tuples(st.sampled_from("12"), st.sampled_from("abcdef"), st.binary(max_size=40)), max_size=60))
def test_answers_kept_are_the_latest_states_and_never_too_many(put: list[tuple[str, str, bytes]]) -> None:
    answers, latest, state = Answers(most=100), dict[str, bytes](), ""
    for of, tag, answer in put:
        if of != state:
            state, latest = of, {}
        answers.put(of, tag, answer)
        latest[tag] = answer
        assert answers.get(tag) == answer
        assert sum(map(len, answers._kept.values())) == answers._size <= 100
    assert all(answers.get(tag) in (None, latest.get(tag)) for tag in "abcdef")


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path, network: IndexedNetwork) -> None:
    port, path = free_port(), tmp_path / "api.toml"
    path.write_text(
        f"""home = "{tmp_path}/home"
database_url = "{network.url}"
deployment = "{tmp_path}/deployment.json"
artifacts = "{tmp_path}/artifacts"
origin = "{ORIGIN}"
port = {port}
admins = ["{"0x" + "ab" * 20}"]
[limits]
requests_per_minute = 60
"""
    )
    settings = read_settings(path, ApiSettings)
    assert (settings.host, settings.limits.requests_per_minute) == ("127.0.0.1", 60)
    assert settings.admins[0] != settings.admins[0].lower()
    command = [sys.executable, "-m", "consilium_cli.main", "server", "api", "--config", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["event"] == "serving"
            until = time.monotonic() + 60
            while True:
                try:
                    assert httpx.get(f"http://127.0.0.1:{port}/ready").json()["block"] == network.block
                    break
                except httpx.ConnectError:
                    assert time.monotonic() < until
                    time.sleep(0.1)
            second = subprocess.run(command, capture_output=True, text=True)
            assert second.returncode == 1
            assert "LocalNodeError" in second.stderr
            with httpx.stream("GET", f"http://127.0.0.1:{port}/v1/events") as stream:
                assert stream.status_code == 200
                process.terminate()  # with a stream open
                process.wait(30)
        finally:
            process.kill()
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (143, "")
