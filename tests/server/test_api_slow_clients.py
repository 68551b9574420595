"""Clients that read their answers slowly, or not at all, and a database that fails for a while."""

from __future__ import annotations

import csv
import http.client
import io
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from consilium_chain.ledger.structs import Role
from consilium_server.api import app as api
from consilium_server.api import money_reads
from consilium_server.api.reading import EXPORTING, at_head
from consilium_server.database.tables import Payment
from consilium_server.errors import AnswerBroken
from fastapi import FastAPI
from indexed_network import HOSPITALS, IndexedNetwork, app_of, served, settings_of
from raised_faults import raises_fault
from sqlalchemy import event, insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionInTime
from test_api_events import listening

STALLED = 1.0  # seconds
SMALL = 4_096  # bytes of a window or buffer
ROWS = 6_000  # whose lines are more than all buffers between the two ends
WHO = HOSPITALS[0]
EXPORT = f"/v1/accounts/{WHO}/history.csv"
FAR = {"requests_per_minute": 10_000}
# How a client that reads nothing is let go has nothing to do with where the rows are.
ONE_DATABASE = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)


def pay_often(network: IndexedNetwork, rows: int) -> None:
    """Adds a block with so many rewards, each of which is a line of the export."""
    with network.mined():
        network.pay(1, 1, WHO, Role.HOSPITAL, "reward", 1)
        first = network.rows[-1]
        about = {"block": network.block, "item": 0, "task": 1, "round": 1, "account": WHO, "role": first.role,
                 "kind": "reward", "reason": None}  # fmt: skip
    with network.engine.begin() as connection:
        connection.execute(
            insert(Payment), [about | {"log_index": 10 + n, "amount": 10**18 + n} for n in range(rows - 1)]
        )


def asking(url: str, path: str) -> socket.socket:
    """A client that requests the path, and reads nothing."""
    parts = urlsplit(url)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    slow.connect((parts.hostname, parts.port))
    slow.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return slow


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.05)
    return False


def in_use(app: FastAPI) -> int:
    return int(app.state.service.engine.pool.checkedout())


def test_export_to_many_who_do_not_read_holds_no_connection(network: IndexedNetwork) -> None:
    pay_often(network, ROWS)
    app = app_of(network, limits=FAR)  # who stalls has 20 s: they are all there while this asks
    with served(app, SMALL) as url:
        slow = [asking(url, EXPORT) for _ in range(12)]
        try:
            metrics = app.state.service.metrics.requests
            assert within(30, lambda: all(one.recv(1, socket.MSG_PEEK) for one in slow))
            most = 0
            for _ in range(100):
                time.sleep(0.01)
                most = max(most, in_use(app))
            assert most <= EXPORTING + 2, "exports leave connections to others"
            assert within(60, lambda: in_use(app) == 0), "an export holds a connection while its client reads nothing"
            assert metrics.labels("/v1/accounts/{account}/history.csv", "GET", "200")._value.get() == 0
            assert httpx.get(f"{url}/v1/payments", timeout=60).status_code == 200
            assert httpx.get(f"{url}/ready", timeout=60).status_code == 200
        finally:
            for one in slow:
                one.close()


@ONE_DATABASE
def test_client_that_takes_nothing_is_let_go(network: IndexedNetwork, capfd: pytest.CaptureFixture[str]) -> None:
    pay_often(network, ROWS)
    with served(app_of(network, limits=FAR, stalled_seconds=STALLED), SMALL) as url:
        slow = asking(url, EXPORT)
        said = ""

        def is_let_go() -> bool:
            nonlocal said
            said += capfd.readouterr().out
            return '"answer-broken-off"' in said and '"error": "ClientStalled"' in said

        assert within(20, is_let_go)
        answer = http.client.HTTPResponse(slow)
        answer.begin()
        with pytest.raises(http.client.IncompleteRead):  # its client sees that the end is missing
            answer.read()
        slow.close()


@ONE_DATABASE
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux gives up what is buffered")
def test_what_is_buffered_for_a_client_that_takes_nothing_is_given_up(network: IndexedNetwork) -> None:
    settings = settings_of(network, host="localhost", stalled_seconds=STALLED).model_copy(update={"port": 0})
    listener, *others = api.listening(settings)
    for other in others:
        other.close()
    with listener, socket.socket(listener.family) as slow:
        listener.listen()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        slow.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            accepted.setblocking(False)
            accepted.send(bytes(1 << 20))
            assert within(20, lambda: accepted.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0)


def test_export_over_several_pages_is_whole(network: IndexedNetwork) -> None:
    pay_often(network, 2 * money_reads.CSV_PAGE)  # a whole number of pages: the last one is empty
    with served(app_of(network, limits=FAR)) as url:
        lines = list(csv.DictReader(io.StringIO(httpx.get(f"{url}{EXPORT}").text)))
    assert len(lines) == 2 * money_reads.CSV_PAGE
    assert len({line["log_index"] for line in lines}) == len(lines)


def test_export_of_what_is_taken_back_meanwhile_breaks_off(network: IndexedNetwork) -> None:
    pay_often(network, 2 * money_reads.CSV_PAGE)
    pay_often(network, money_reads.CSV_PAGE + 1)
    service = app_of(network).state.service
    with at_head(service.engine, service.deployment) as at:
        first = money_reads.first_csv_page(at, WHO)
    network.reorganise(network.block)  # of which the page's last line is
    pay_often(network, 2)
    with (
        at_head(service.engine, service.deployment) as at,
        raises_fault(AnswerBroken, "ExportReorganised", match=f"the history of {WHO} was sent: request it"),
    ):
        money_reads.next_csv_page(at, WHO, first)


def test_export_goes_on_where_only_later_blocks_came(network: IndexedNetwork) -> None:
    pay_often(network, 2 * money_reads.CSV_PAGE)
    service = app_of(network).state.service
    with at_head(service.engine, service.deployment) as at:
        page = money_reads.first_csv_page(at, WHO)
    pay_often(network, 2)
    with at_head(service.engine, service.deployment) as at:
        page = money_reads.next_csv_page(at, WHO, page)
    assert len(page.text.splitlines()) == money_reads.CSV_PAGE


def connection_in_time() -> Exception:
    return NoConnectionInTime("QueuePool limit of size 40 overflow 10 reached, connection timed out")


def driver_fault() -> Exception:
    return OperationalError("SELECT", {}, Exception("the disk is gone"))


def damaged_value() -> Exception:
    return ValueError("non-hexadecimal number found in fromhex()")


@pytest.mark.parametrize("fault", [connection_in_time, driver_fault, damaged_value])
def test_live_events_go_on_after_any_fault_of_the_database(
    network: IndexedNetwork,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[], Exception],
) -> None:
    app = app_of(network, limits=FAR)
    engine, reader = app.state.service.engine, app.state.service.broadcaster
    poller, is_failing, changes = threading.local(), threading.Event(), reader._changes

    def polled() -> Any:
        poller.reads = True
        try:
            return changes()
        finally:
            poller.reads = False

    def fail(*_: Any) -> None:
        if is_failing.is_set() and getattr(poller, "reads", False):
            raise fault()

    monkeypatch.setattr(reader, "_changes", polled)
    event.listen(engine, "begin", fail)

    with served(app) as url, listening(url) as listener:
        assert within(60, lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        is_failing.set()
        assert within(60, lambda: reader.failure == type(fault()).__name__)
        # Only the poller fails, and until this is answered: on a busy machine it retries before the question comes.
        answer = httpx.get(f"{url}/ready", timeout=60)
        is_failing.clear()
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:consilium:problem:not-ready")
        assert answer.json()["detail"] == (
            f"live events wait for the database, whose last error was {type(fault()).__name__}: check that it runs"
        )
        assert within(60, lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        with network.mined():
            network.task_told("HospitalAbsent", 1, 1)
        assert listener.next()["data"]["name"] == "HospitalAbsent"
    said = capfd.readouterr().out
    assert said.count('"index-unreadable"') == said.count('"index-readable"') == 1
