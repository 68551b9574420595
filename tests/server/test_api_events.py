"""Server-sent events of a real server: live, resumed, after a reorganisation, and for slow readers."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from indexed_network import IndexedNetwork, app_of, served

FAR = {"requests_per_minute": 10_000}


class Listener:
    """The events of one stream in their order: name, id and data."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def next(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in self._lines:
            if not line and found:
                return found | {"data": json.loads(found["data"])}
            if line and not line.startswith(":"):
                key, _, value = line.partition(": ")
                found[key] = value
        raise EOFError

    def heartbeat(self) -> str:
        return next(line for line in self._lines if line.startswith(":"))

    def take(self, count: int) -> list[dict[str, Any]]:
        return [self.next() for _ in range(count)]


@contextmanager
def listening(url: str, last_id: str | None = None, **query: Any) -> Iterator[Listener]:
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    with httpx.stream("GET", f"{url}/v1/events", headers=headers, params=query, timeout=20) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Listener(answer.iter_lines())


@pytest.fixture
def app(network: IndexedNetwork) -> FastAPI:
    return app_of(network, limits=FAR, heartbeat_seconds=0.2, stalled_seconds=1.0)


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as url:
        yield url


def wait_for(url: str, name: str, value: float) -> None:
    until = time.monotonic() + 15
    while f"\n{name} {float(value)}" not in (text := httpx.get(f"{url}/metrics").text):
        assert time.monotonic() < until, text
        time.sleep(0.02)


def tell(network: IndexedNetwork, task: int, count: int = 1, size: int = 0) -> None:
    with network.mined():
        for number in range(count):
            network.task_told("HospitalAbsent", task, 1, number=str(number), filler="x" * size)


def test_what_is_indexed_is_told_live_and_in_order(network: IndexedNetwork, url: str) -> None:
    with listening(url) as everything, listening(url, task=7) as one_task:
        wait_for(url, "consilium_event_subscribers", 2)
        tell(network, 1, 3)
        tell(network, 7, 2)
        told = everything.take(5)
        assert [(one["data"]["task"], one["data"]["log_index"]) for one in told] == [
            (1, 0),
            (1, 1),
            (1, 2),
            (7, 0),
            (7, 1),
        ]
        assert {one["event"] for one in told} == {"chain"}
        assert told[0]["data"]["values"] == {"taskId": "1", "number": "0", "filler": ""}
        assert told[0]["id"].startswith(f"{told[0]['data']['block']}-0-")
        assert [one["data"]["task"] for one in one_task.take(2)] == [7, 7]
        assert everything.heartbeat().startswith(":")
    wait_for(url, "consilium_event_subscribers", 0)


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(network: IndexedNetwork, url: str) -> None:
    with listening(url) as first:
        wait_for(url, "consilium_event_subscribers", 1)
        tell(network, 1, 4)
        second_id = first.take(2)[-1]["id"]
    tell(network, 2, 450)  # more than are read at once
    tell(network, 1, 2)
    with listening(url, second_id) as back:
        wait_for(url, "consilium_event_subscribers", 1)
        tell(network, 1, 1)
        told = back.take(2 + 450 + 2 + 1)
        places = [(one["data"]["block"], one["data"]["log_index"]) for one in told]
        assert places == sorted(set(places))
        assert [one["data"]["task"] for one in told] == [1] * 2 + [2] * 450 + [1] * 3
    with listening(url, second_id, task=1) as back:
        assert [one["data"]["task"] for one in back.take(5)] == [1] * 5
    with listening(url, "0-0") as back:  # without a hash, as told in the documentation
        assert back.next()["data"]["name"] == "TaskProposed"


def test_who_listens_is_told_of_what_is_gone(network: IndexedNetwork, url: str) -> None:
    with listening(url) as listener:
        wait_for(url, "consilium_event_subscribers", 1)
        tell(network, 1, 1)
        kept = listener.next()
        tell(network, 2, 1)
        tell(network, 3, 1)
        gone = listener.take(2)
        network.reorganise(gone[0]["data"]["block"])
        reorg = listener.next()
        assert (reorg["event"], reorg["data"]) == ("reorg", {"from_block": gone[0]["data"]["block"]})
        tell(network, 4, 1)
        told = listener.next()
        assert (told["data"]["task"], told["data"]["block"]) == (4, gone[0]["data"]["block"])
        assert told["id"] != gone[0]["id"]
    wait_for(url, "consilium_reorgs_total", 1)
    with listening(url, gone[1]["id"]) as back:  # whose last event is gone: all that may be, is told again
        reorg = back.next()
        assert reorg["event"] == "reorg"
        assert reorg["data"]["from_block"] <= kept["data"]["block"]
        assert [one["data"]["task"] for one in back.take(3 + 1)][-2:] == [1, 4]
    with listening(url, kept["id"]) as back:
        assert back.next()["data"]["task"] == 4


def test_who_does_not_read_is_let_go_and_costs_nothing(network: IndexedNetwork, app: FastAPI, url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(url, "consilium_event_subscribers", 1)
        with listening(url) as quick:
            wait_for(url, "consilium_event_subscribers", 2)
            for _ in range(15):
                tell(network, 1, 100, size=4_000)
                assert len(quick.take(100)) == 100
            # Its queue ran over, or its reader stalled: either way it is gone, and the other is not.
            wait_for(url, "consilium_event_subscribers", 1)
            tell(network, 9, 1)
            assert quick.next()["data"]["task"] == 9
    streams = app.state.service.broadcaster._streams
    assert all(stream.queue.qsize() < 10 for stream in streams)


def test_streams_are_few_for_each_client(network: IndexedNetwork) -> None:
    with served(app_of(network, limits={"streams_per_client": 2})) as url:
        with listening(url), listening(url):
            wait_for(url, "consilium_event_subscribers", 2)
            refused = httpx.get(f"{url}/v1/events")
            assert (refused.status_code, refused.json()["type"]) == (429, "urn:consilium:problem:too-many-requests")
            assert refused.headers["retry-after"] == "30"
        wait_for(url, "consilium_event_subscribers", 0)
        with listening(url):
            pass


@pytest.mark.parametrize("last_id", ["x", "1", "1-", "-1-2", "1-2-zz", "9" * 30 + "-0", "1-2-" + "0" * 17])
def test_an_id_that_is_none_is_refused(url: str, last_id: str) -> None:
    answer = httpx.get(f"{url}/v1/events", headers={"Last-Event-ID": last_id})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:consilium:problem:parameters-invalid")
