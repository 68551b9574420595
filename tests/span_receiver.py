"""A collector of spans on loopback, which takes a request only if it is OTLP to the letter."""

from __future__ import annotations

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


@dataclass(frozen=True)
class Span:
    """`facts`: its attributes; `of`: those of its process."""

    name: str
    trace: str
    id: str
    parent: str
    seconds: float
    is_error: bool
    facts: dict[str, str | int]
    of: dict[str, str | int]


@dataclass
class Receiver:
    """`status`: of its answers."""

    port: int = 0
    status: int = 200
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def named(self, name: str) -> Span:
        (found,) = [one for one in self.spans if one.name == name]
        return found

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.raw.append(repr((path, headers)).encode() + body)
        self.headers.append(headers)
        if (path, headers["content-type"]) != ("/v1/traces", "application/json"):
            self.faults.append(f"{path} {headers}")
            return
        try:
            self.spans += parsed(json.loads(body))
        except Exception as error:
            self.faults.append(repr(error))


def parsed(content: Any) -> Iterator[Span]:
    """By OpenTelemetry's own definition; its JSON has ids in hexadecimal, and protobuf's in base64."""
    for resource in content["resourceSpans"]:
        for scoped in resource["scopeSpans"]:
            for one in scoped["spans"]:
                one |= {name: b64encode(bytes.fromhex(one[name])).decode() for name in IDS}
    request = ParseDict(content, ExportTraceServiceRequest())
    for resource in request.resource_spans:
        of = values(resource.resource.attributes)
        for scoped in resource.scope_spans:
            for one in scoped.spans:
                assert (len(one.trace_id), len(one.span_id)) == (16, 8)
                assert one.start_time_unix_nano <= one.end_time_unix_nano
                seconds = (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9
                yield Span(
                    one.name, one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex(), seconds,
                    one.status.code == 2, values(one.attributes), of,
                )  # fmt: skip


def values(attributes: Any) -> dict[str, str | int]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def receiving(certificate: Path | None = None, port: int = 0) -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            said = b"{}"
            self.send_response(found.status)
            self.send_header("Location", f"{found.endpoint}/elsewhere")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        found.port = server.server_address[1]
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert found.faults == []
