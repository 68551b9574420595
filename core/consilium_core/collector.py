"""Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON (opentelemetry.io/docs/specs/otlp).

The project's SDK is not used: it would bring packages into each hospital, read OTEL_… variables, name the host and the
command line, follow redirects, and log texts of exceptions. Here only the owner's settings say where spans go.

A collector that is down costs a node nothing: spans wait in a bounded queue of a thread of its own, later ones are
counted and dropped, and the log says it once.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from consilium_core.errors import KeystoreError, NotSent
from consilium_core.logs import emit
from consilium_core.private_files import read_private_file
from consilium_core.typed_toml import Section

PATH = "/v1/traces"
WAITING = 4_096  # spans
BATCH = 512  # spans of a request
EVERY, LONGEST_PAUSE = 2.0, 60.0  # seconds between two requests, and at most while the collector is down
TIMEOUT = 5.0  # seconds of a connection, and of each read
LAST_WAIT = 2.0  # seconds for the last spans when the node ends
MOST_ANSWER = 4_096  # bytes that are read
PASSING = (408, 429)  # statuses below 500 after which the same spans may be taken later
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[a-z0-9._~-]*)*)",
    re.IGNORECASE,
)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HEADER = re.compile(r"(?P<name>[A-Za-z0-9-]{1,64}):[ \t]*(?P<value>[!-~](?:[ -~]*[!-~])?)")

Json = dict[str, Any]


def _endpoint(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if not found or not 0 < int(found["port"] or 1) < 65_536:
        raise ValueError("it is not a collector's address: write https://HOST:PORT, with a key in `headers_file` alone")
    if found["scheme"].lower() == "http" and found["host"].lower() not in _LOOPBACK:
        raise ValueError(
            f"http would show the spans to the network on the way to {found['host']}: write https://, or on this"
            " machine http://127.0.0.1:PORT"
        )
    return text.rstrip("/").removesuffix(PATH)


class TracingSettings(Section):
    """An OpenTelemetry collector of this node's owner."""

    endpoint: Annotated[
        str,
        AfterValidator(_endpoint),
        Field(description=f"https://HOST:PORT, or on this machine http; `{PATH}` is added"),
    ]
    headers_file: Annotated[
        Path | None, Field(description="file with headers such as a key, mode 600: a line `NAME: VALUE` for each")
    ] = None
    ca_certificate: Annotated[
        Path | None, Field(description="certificate that signed the collector's; without, those that the system trusts")
    ] = None

    def written(self) -> dict[str, str]:
        """For the TOML file of a process with another folder."""
        return {name: str(one.absolute() if isinstance(one, Path) else one) for name, one in self if one is not None}


class Collector:
    """`shown`: scheme, host and port, for logs."""

    def __init__(self, settings: TracingSettings) -> None:
        """Raises KeystoreError."""
        found = _ADDRESS.fullmatch(settings.endpoint)
        if found is None:
            raise ValueError("a collector's address was not checked")
        self._is_tls = found["scheme"].lower() == "https"
        self._host, self._port = found["host"].strip("[]"), int(found["port"] or (443 if self._is_tls else 80))
        self._path = found["path"] + PATH
        self._authority = settings.ca_certificate
        self._headers = {} if settings.headers_file is None else _headers(settings.headers_file)
        self.shown = f"{found['scheme']}://{found['host']}:{self._port}".lower()

    def post(self, content: Json) -> None:
        """Raises NotSent, without the collector's words. `is_gone`: these spans would be refused again."""
        own = {"Content-Type": "application/json", "User-Agent": "consilium", "Connection": "close"}
        try:
            with closing(self._connection()) as link:
                link.request("POST", self._path, json.dumps(content).encode(), self._headers | own)
                answer = link.getresponse()
                answer.read(MOST_ANSWER)
        except ssl.SSLCertVerificationError:
            raise NotSent("its certificate is not valid for its name, or not of a trusted authority") from None
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(f"it does not answer ({type(error).__name__})") from None
        if not 200 <= answer.status < 300:
            is_final = 300 <= answer.status < 500 and answer.status not in PASSING
            raise NotSent(f"it answered with status {answer.status}", is_gone=is_final)

    def _connection(self) -> http.client.HTTPConnection:
        """It follows no redirect, and asks no proxy."""
        if not self._is_tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        context = ssl.create_default_context(cafile=self._authority)
        return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)


def _headers(path: Path) -> dict[str, str]:
    """Raises KeystoreError, which repeats no line."""
    headers = {}
    for number, line in enumerate(read_private_file(path).splitlines(), 1):
        if line.strip():
            found = _HEADER.fullmatch(line.strip())
            if not found:
                raise KeystoreError(f"line {number} of {path} is not a header: write NAME: VALUE")
            headers[found["name"]] = found["value"]
    return headers


def request_of(resource: Mapping[str, str | int], spans: Sequence[Json]) -> Json:
    """An ExportTraceServiceRequest. `resource`: attributes of the process."""
    if not spans:
        return {"resourceSpans": []}
    scoped = {"scope": {"name": "consilium"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [scoped]}]}


def attributes(values: Mapping[str, str | int]) -> list[Json]:
    return [
        {"key": key, "value": {"stringValue": one} if isinstance(one, str) else {"intValue": str(one)}}
        for key, one in values.items()
    ]


class Sender:
    """A queue of spans, and the thread that sends them. `resource`: attributes of this process."""

    def __init__(self, settings: TracingSettings, resource: Mapping[str, str | int]) -> None:
        """Raises KeystoreError."""
        self._collector, self._resource = Collector(settings), resource
        self._waiting: deque[Json] = deque()
        self._changed = threading.Condition()
        self._dropped, self._is_down, self._has_ended = 0, False, False
        self._thread = threading.Thread(target=self._send_all, name="spans", daemon=True)
        self._thread.start()
        emit("tracing", to=self._collector.shown)

    def take(self, span: Json) -> None:
        """Returns at once."""
        with self._changed:
            if len(self._waiting) >= WAITING:
                self._dropped += 1
                return
            self._waiting.append(span)
            if len(self._waiting) >= BATCH:
                self._changed.notify()

    def close(self) -> None:
        """Returns once the last spans are sent, at the latest after `LAST_WAIT`."""
        with self._changed:
            self._has_ended = True
            self._changed.notify()
        self._thread.join(LAST_WAIT)
        if lost := self._dropped + len(self._waiting):
            emit("spans-lost", to=self._collector.shown, spans=lost)

    def _send_all(self) -> None:
        pause = EVERY
        while True:
            end = time.monotonic() + pause
            with self._changed:
                while not self._is_due(end):
                    self._changed.wait(end - time.monotonic())
                batch = [self._waiting[index] for index in range(min(BATCH, len(self._waiting)))]
            if batch:
                pause = self._sent(batch, pause)
            if self._has_ended and (self._is_down or not self._waiting):
                return

    def _is_due(self, end: float) -> bool:
        is_full = len(self._waiting) >= BATCH and not self._is_down
        return self._has_ended or is_full or time.monotonic() >= end

    def _sent(self, batch: Sequence[Json], pause: float) -> float:
        """Tries once. Returns the seconds to wait."""
        try:
            self._collector.post(request_of(self._resource, batch))
        except NotSent as error:
            if error.is_gone:
                self._forget(batch, is_lost=True)
            if not self._is_down:
                self._is_down = True
                emit("spans-not-sent", to=self._collector.shown, why=error.why)
            return min(2 * pause, LONGEST_PAUSE)
        self._forget(batch, is_lost=False)
        if self._is_down:
            self._is_down = False
            emit("spans-sent-again", to=self._collector.shown, spans=self._dropped)
            self._dropped = 0
        return EVERY

    def _forget(self, batch: Sequence[Json], is_lost: bool) -> None:
        with self._changed:
            for _ in batch:
                self._waiting.popleft()
            self._dropped += len(batch) * is_lost
