"""The shipped proxy before a real SuperLink: what hospitals need gets through, and nothing else does."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import tomli_w
import uvicorn
from consilium_chain.rpc.local_node import free_port, free_ports
from consilium_cli.main import app
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_core.children import child_environment
from consilium_core.connectivity import FleetAddress, why_shut_out
from consilium_operators.doctor.findings import Level
from consilium_operators.doctor.probes import tls_server
from consilium_operators.doctor.servers import judge_tls
from consilium_server.certificates import ensure_certificates
from consilium_server.flower.internals import SuperLink
from flwr.proto.control_pb2 import ListNodesRequest, ListNodesResponse
from proxy_driver import Authority, Proxy, connected, running_proxy, said, status
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from typer.testing import CliRunner

SUPERLINK, API, SPONSOR = "localhost", "api.example.org", "sponsor.example.org"  # the first is known on any machine
PROTOBUF = "application/protobuf"
TASK_KEY = "31337-0x5FbDB2315678afecb367f032d93F642f64180aa3-1"
DAY = 86_400  # seconds
PATIENCE = 90.0  # seconds for a SuperNode to start and to be heard, on a busy machine
LIST = "control/list-nodes"
REFUSED = [
    f"/v1/{LIST}",
    "/v1/control/start-run",
    "/v1/runtime/acquire-task",
    "/v1/runtime/pull-messages",
    "/",
    "/docs",
    "/openapi.json",
    "/health",
    "/v1/fleet",
    "/v1/fleet/",
    f"//v1/{LIST}",
    f"/v1//{LIST}",
    f"/./v1/{LIST}",
    f"/v1/fleet/../{LIST}",
    f"/v1/fleet/./../{LIST}",
    f"/v1/fleet//..//{LIST}",
    f"/v1/fleet/pull-messages/../../{LIST}",
    f"/v1/fleet/%2e%2e/{LIST}",
    f"/v1/fleet/%2E%2E/{LIST}",
    f"/v1/fleet/.%2e/{LIST}",
    f"/v1/fleet/..%2f{LIST}",
    f"/v1/fleet%2f..%2f{LIST}",
    f"/v1/fleet/%252e%252e/{LIST}",
    f"/v1/fleet/..%252f{LIST}",
    f"/v1/fleet/..;/{LIST}",
    f"/v1/fleet/;/../{LIST}",
    f"/v1/fleet/..\\{LIST}",
    f"/v1/fleet/..%5c{LIST}",
    f"/v1/%63ontrol/{LIST.partition('/')[2]}",
    "/v1/control%2flist-nodes",
    f"/%76%31/{LIST}",
    "/V1/CONTROL/LIST-NODES",
    "/v1/Control/list-nodes",
    "/V1/FLEET/pull-messages",
    "/v1/fleet/Pull-Messages",
    f"/v1/{LIST}?/v1/fleet/pull-messages",
    f"/v1/{LIST}#/v1/fleet/pull-messages",
    f"/v1/fleet/pull-messages?/../../{LIST}",
    f"/v1/fleet/pull-messages#/../../{LIST}",
    "/v1/fleet/pull-messages/",
    f"/v1/{LIST}/",
    f"/v1/fleet/%00/../../{LIST}",
    f"/v1/fleet/\x7f/../../{LIST}",
    "/../v1/control/list-nodes",
    "*",
    f"http://{SUPERLINK}/v1/{LIST}",
    f"https://127.0.0.1:8000/v1/{LIST}",
]
# Beside these nginx itself finds that they are no HTTP.
NOT_FOUND_OR_BAD = {400, 404}


@dataclass
class Stand:
    proxy: Proxy
    superlink: SuperLink
    authority: Authority
    events: Events

    @property
    def number(self) -> int:
        """The SuperLink's port behind the proxy."""
        return int(self.superlink.address.split(":")[1])

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.certificate))

    def ask(self, target: str, name: str = SUPERLINK, method: str = "POST", *headers: str, body: bytes = b"") -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {name}", "Connection: close", f"Content-Type: {PROTOBUF}"]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", *headers, "", ""])
        return said(self.proxy.port, name, self.trust, head.encode("latin-1") + body)


class Served:
    """A server of these routes, within `with`."""

    def __init__(self, routes: list[Route], port: int, **more: Any) -> None:
        config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="warning", ws="none", **more)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


class Events(Served):
    """Stands for the API: sends an event only once the one before it has been seen."""

    def __init__(self) -> None:
        self.port, self.seen = free_port(), threading.Event()
        routes = [Route("/v1/events", self._stream), Route("/{path:path}", self._echo, methods=["GET", "POST"])]
        super().__init__(routes, self.port)

    async def _stream(self, request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            from anyio import to_thread

            yield b"data: first\n\n"
            assert await to_thread.run_sync(self.seen.wait, 20)
            yield b"data: second\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _echo(self, request: Request) -> Response:
        body = len(await request.body())
        told = {name: request.headers.getlist(name) for name in ("host", "x-forwarded-for", "x-request-id")}
        return PlainTextResponse(f"{body} {told}", headers={"X-Forwarded": ",".join(told["x-forwarded-for"])})

    def __exit__(self, *_: object) -> None:
        self.seen.set()
        super().__exit__()


class Named(Served):
    """Stands for a SuperLink: answers with its port, the path and the body's size."""

    def __init__(self, port: int, certificate: Path, key: Path) -> None:
        async def answer(request: Request) -> Response:
            return PlainTextResponse(f"{port} {request.url.path} {len(await request.body())}")

        routes = [Route("/{path:path}", answer, methods=["POST"])]
        super().__init__(routes, port, ssl_certfile=certificate, ssl_keyfile=key)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    home = tmp_path_factory.mktemp("proxied")
    authority = Authority(home / "authority")
    certificate, key = authority.sign(SUPERLINK, API, SPONSOR)
    with SuperLink(home / "aggregator", free_port(), task_key=TASK_KEY) as superlink, Events() as events:
        values = {
            "CERTIFICATE": certificate, "CERTIFICATE_KEY": key, "SUPERLINK_NAME": SUPERLINK,
            "SUPERLINK": superlink.address, "SUPERLINK_CA": superlink.certificates.authority, "API_NAME": API,
            "API": f"127.0.0.1:{events.port}", "SPONSOR_NAME": SPONSOR, "SPONSOR": f"127.0.0.1:{events.port}",
            "SPONSOR_CA": superlink.certificates.authority,
        }  # fmt: skip
        names = ["superlink", "api", "sponsor"]
        with running_proxy(home / "proxy", names, **{name: str(value) for name, value in values.items()}) as proxy:
            superlink.wait_until_up()
            yield Stand(proxy, superlink, authority, events)


def nodes(stand: Stand) -> dict[int, str]:
    """What the SuperLink itself says of each, asked on loopback."""
    trust = ssl.create_default_context(cafile=str(stand.superlink.certificates.authority))
    url = f"https://{stand.superlink.address}/v1/{LIST}"
    content = ListNodesRequest().SerializeToString()
    answer = httpx.post(url, content=content, headers={"Content-Type": PROTOBUF}, verify=trust)
    answer.raise_for_status()
    return {node.node_id: node.status for node in ListNodesResponse.FromString(answer.content).nodes_info}


@pytest.mark.parametrize("is_numbered", [False, True])
def test_a_supernode_connects_through_it(stand: Stand, tmp_path: Path, is_numbered: bool) -> None:
    """By the name alone, and by the SuperLink's port behind it, which Flower itself knows no address for."""
    make_transport_key(tmp_path / "key")
    number = stand.superlink.register(transport_public_key(tmp_path / "key"))
    command = [
        sys.executable, "-m", "consilium_client.relay.flower_internals", "supernode",
        "--superlink", f"{SUPERLINK}:{stand.proxy.port}{f'/{stand.number}' * is_numbered}",
        "--root-certificates", str(stand.authority.certificate),
        "--auth-supernode-private-key", str(tmp_path / "key"), "--host", "127.0.0.1", "--port", str(free_port()),
        "--isolation", "process",
    ]  # fmt: skip
    told = {"FLWR_HOME": str(tmp_path / "flower"), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(command, stdout=log, stderr=log, env=child_environment() | told)
    try:
        end = time.monotonic() + PATIENCE
        while nodes(stand)[number] != "online":
            assert node.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
    finally:
        node.terminate()
        node.wait(30)


def test_without_the_proxy_the_control_api_answers_whoever_asks(stand: Stand) -> None:
    """Else the refusals below would prove nothing."""
    assert isinstance(nodes(stand), dict)


@pytest.mark.parametrize("is_numbered", [False, True])
@pytest.mark.parametrize("target", REFUSED)
def test_control_and_runtime_are_not_there_however_they_are_spelt(stand: Stand, target: str, is_numbered: bool) -> None:
    if is_numbered:
        target = f"/{stand.number}{target}"
    request = stand.ask(target)
    assert status(request) in NOT_FOUND_OR_BAD
    assert b"nginx" in request  # it answered itself: nothing was passed on
    assert b"nginx/" not in request  # and does not say which version it is
    if target.startswith("/v1/") and target.isascii() and target.isprintable() and "%00" not in target:
        assert status(request) == 404


PULL = "/v1/fleet/pull-messages"


@pytest.mark.parametrize(
    "target",
    [f"//{{port}}{PULL}", f"/0{{port}}{PULL}", f"/{{port}}/{PULL}", f"/{{port}}/{{port}}{PULL}", f"/{{port}}/..{PULL}",
     f"/{{port}}.{PULL}", f"/{{port}}x{PULL}", f"/x{{port}}{PULL}", f"/{{port}}:{{port}}{PULL}", f"/%31{PULL}",
     f"/{{port}}@example.org{PULL}", f"{PULL}/{{port}}{PULL}"],
)  # fmt: skip
def test_a_ports_other_spellings_lead_nowhere(stand: Stand, target: str) -> None:
    answer = stand.ask(target.format(port=stand.number))
    assert status(answer) == 404
    assert b"nginx" in answer


def test_a_superlink_names_its_task_through_the_proxy(stand: Stand) -> None:
    """Else a hospital with another task's address would be refused without a word."""
    for path, task, why in (
        ("", TASK_KEY, None), (f"/{stand.number}", TASK_KEY, None), ("", f"{TASK_KEY}0", "another task"),
    ):  # fmt: skip
        found = why_shut_out(FleetAddress(SUPERLINK, stand.proxy.port, path), stand.authority.certificate, task)
        assert found is None if why is None else why in (found or "")
    wrong = FleetAddress(SUPERLINK, stand.proxy.port, "/1")
    assert "nothing runs behind its proxy" in (why_shut_out(wrong, stand.authority.certificate, TASK_KEY) or "")
    # Its answers to the aggregator and to hospitals that it knows have the name, too, and are otherwise Flower's.
    assert TASK_KEY.encode() in stand.ask(PULL)


@pytest.mark.parametrize("port", ["1", "22", "8080", "65535", "99999", "18446744073709551617", "9" * 4000])
def test_ports_that_are_no_superlinks_are_not_asked(stand: Stand, port: str) -> None:
    """So no other service of the machine is reached, and a SuperNode tries again."""
    assert status(stand.ask(f"/{port}{PULL}")) == 502


def test_one_name_leads_to_each_tasks_superlink(stand: Stand, tmp_path: Path) -> None:
    first = free_ports(3)
    certificate, key = stand.authority.sign(SUPERLINK)
    other = Authority(tmp_path / "own")
    files = [other.sign("localhost") for _ in range(3)]
    given = {
        "CERTIFICATE": str(certificate), "CERTIFICATE_KEY": str(key), "SUPERLINK_NAME": SUPERLINK,
        "SUPERLINK_PORTS": f"{first}-{first + 2}", "SUPERLINK_CA": str(other.certificate),
    }  # fmt: skip
    with ExitStack() as stack:
        for number, pair in enumerate(files):
            stack.enter_context(Named(first + number, *pair))
        proxy = stack.enter_context(running_proxy(tmp_path / "proxy", ["superlink"], **given))
        here = Stand(proxy, stand.superlink, stand.authority, stand.events)
        for number in range(3):
            for _ in range(3):
                answer = here.ask(f"/{first + number}{PULL}", body=b"12345")
                assert answer.endswith(f"{first + number} {PULL} 5".encode())
        assert here.ask(PULL).endswith(f"{first} {PULL} 0".encode())
        assert status(here.ask(f"/{first + 3}{PULL}")) == 502


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_the_fleet_api_is_for_post_alone(stand: Stand, method: str) -> None:
    assert status(stand.ask("/v1/fleet/pull-messages", method=method)) == 404


def test_no_header_leads_elsewhere(stand: Stand) -> None:
    elsewhere = [f"{name}: /v1/{LIST}" for name in ("X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix")]
    assert status(stand.ask("/v1/fleet/pull-messages", SUPERLINK, "POST", *elsewhere)) == 401
    over = stand.ask("/v1/fleet/pull-messages", SUPERLINK, "POST", f"X-HTTP-Method-Override: GET /v1/{LIST}")
    assert status(over) == 401


def test_no_second_request_is_smuggled_in_a_first(stand: Stand) -> None:
    hidden = f"POST /v1/{LIST} HTTP/1.1\r\nHost: {SUPERLINK}\r\nContent-Length: 0\r\n\r\n".encode()
    head = f"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: {SUPERLINK}\r\nContent-Type: {PROTOBUF}\r\n".encode()
    both = head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(hidden)) + hidden
    assert status(said(stand.proxy.port, SUPERLINK, stand.trust, both)) == 400
    one_after_the_other = (
        head + b"Content-Length: 0\r\n\r\n" + hidden.replace(b"1.1\r\n", b"1.1\r\nConnection: close\r\n")
    )
    answers = said(stand.proxy.port, SUPERLINK, stand.trust, one_after_the_other)
    assert [status(b"HTTP/1.1" + part) for part in answers.split(b"HTTP/1.1")[1:]] == [401, 404]


@pytest.mark.parametrize(("mib", "expected"), [(6, 401), (9, 413)])
def test_the_largest_of_flowers_messages_fits(stand: Stand, mib: int, expected: int) -> None:
    """Of an array it sends 5 MiB at a time. Who has no key is refused by the SuperLink, not by the proxy."""
    assert push_object(stand, mib << 20) == expected


def push_object(stand: Stand, size: int) -> int:
    """The status of an answer to a PushObjectRequest: field 3, bytes, is the object's content, of 2 MiB or more."""
    url = f"https://127.0.0.1:{stand.proxy.port}/v1/fleet/push-object"
    content = b"\x1a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
    headers = {"Host": SUPERLINK, "Content-Type": PROTOBUF}
    with httpx.Client(verify=stand.trust, timeout=30) as client:
        answer = client.post(
            url, content=content + bytes(size), headers=headers, extensions={"sni_hostname": SUPERLINK}
        )
    return answer.status_code


def test_what_the_proxy_has_no_room_for_is_sent_again(stand: Stand) -> None:
    """A SuperNode drops what is answered 500."""
    room = stand.proxy.folder / "lib" / "body"
    room.rename(room.with_name("away"))
    room.write_bytes(b"")
    try:
        assert push_object(stand, 3 << 20) == 503
    finally:
        room.unlink()
        room.with_name("away").rename(room)
    assert push_object(stand, 3 << 20) == 401


@pytest.mark.parametrize(
    ("version", "speaks"),
    [("TLSv1", False), ("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)],
)
def test_it_speaks_modern_tls_alone(stand: Stand, version: str, speaks: bool) -> None:
    context = stand.trust
    context.set_ciphers("ALL:@SECLEVEL=0")  # this side would speak anything
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion[version]
    if not speaks:
        with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
            connected(stand.proxy.port, SUPERLINK, context)
        return
    with connected(stand.proxy.port, SUPERLINK, context) as link:
        assert link.version() == version.replace("_", ".")


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
def test_it_speaks_http_of_both_versions(stand: Stand, protocol: str) -> None:
    context = stand.trust
    context.set_alpn_protocols([protocol])
    with connected(stand.proxy.port, SUPERLINK, context) as link:
        assert link.selected_alpn_protocol() == protocol


def test_http_2_leads_no_further(stand: Stand) -> None:
    """All that curl can send as it is."""
    if shutil.which("curl") is None or "HTTP2" not in subprocess.check_output(["curl", "--version"], text=True):
        pytest.skip("there is no curl that speaks HTTP/2")
    sent = [one for one in REFUSED if one.startswith("/") and one.isprintable() and "#" not in one]
    assert len(sent) > 40
    fine = "/v1/fleet/pull-messages"
    address = f"https://{SUPERLINK}:{stand.proxy.port}"
    given = [part for one in (*sent, fine) for part in ("-o", "/dev/null", f"{address}{one}")]
    command = ["curl", "-sg", "--http2", "--path-as-is", "--cacert", str(stand.authority.certificate)]
    told = ["--data-binary", "", "-H", f"Content-Type: {PROTOBUF}", "-w", "%{http_version} %{http_code}\n"]
    found = subprocess.run([*command, *told, *given], capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert len(found) == len(sent) + 1
    assert found[-1] == "2 401"
    assert set(found[:-1]) <= {"2 400", "2 404"}


@pytest.mark.parametrize("name", ["elsewhere.example.org", None])
def test_who_asks_for_another_name_sees_no_certificate(stand: Stand, name: str | None) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", stand.proxy.port), 10) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname=name)


def test_a_superlink_with_anothers_certificate_is_not_asked(stand: Stand, tmp_path: Path) -> None:
    """Whoever took its port on this machine would learn what hospitals send."""
    other = ensure_certificates(tmp_path / "tls").authority
    certificate, key = stand.authority.sign(SUPERLINK)
    values = {"CERTIFICATE": certificate, "CERTIFICATE_KEY": key, "SUPERLINK_NAME": SUPERLINK, "SUPERLINK_CA": other}
    given = {name: str(value) for name, value in values.items()} | {"SUPERLINK": stand.superlink.address}
    with running_proxy(tmp_path / "proxy", ["superlink"], **given) as proxy:
        wrong = Stand(proxy, stand.superlink, stand.authority, stand.events)
        assert status(wrong.ask("/v1/fleet/pull-messages")) == 502  # which a SuperNode tries again


# An account's two machines


@contextmanager
def machine(stand: Stand, folder: Path, peer: str, trusted: Path | None = None) -> Iterator[Stand]:
    """The proxy of a machine without this task's SuperLink. `peer`: address of the other machine's proxy."""
    certificate, key = stand.authority.sign(SUPERLINK)
    given = {
        "CERTIFICATE": str(certificate), "CERTIFICATE_KEY": str(key), "SUPERLINK_NAME": SUPERLINK,
        "SUPERLINK": f"127.0.0.1:{free_port()}", "SUPERLINK_CA": str(stand.superlink.certificates.authority),
        "SUPERLINK_PEER": peer, "SUPERLINK_PEER_CA": str(trusted or stand.authority.certificate),
    }  # fmt: skip
    with running_proxy(folder, ["superlink"], **given) as proxy:
        yield Stand(proxy, stand.superlink, stand.authority, stand.events)


def test_a_machine_without_the_task_asks_the_other_one(stand: Stand, tmp_path: Path) -> None:
    with machine(stand, tmp_path / "second", f"127.0.0.1:{stand.proxy.port}") as second:
        assert status(second.ask("/v1/fleet/pull-messages")) == 401  # of a SuperLink, to a request without a key
        assert status(second.ask(f"/{stand.number}/v1/fleet/pull-messages")) == 401
        assert push_object(second, 7 << 20) == push_object(stand, 7 << 20)
        assert {status(second.ask(target)) for target in (f"/v1/{LIST}", "/", "/v1/fleet/../" + LIST)} == {404}


def test_a_task_on_no_machine_goes_round_no_circle(stand: Stand, tmp_path: Path) -> None:
    """The asked machine asks nobody, though its own peer has the task. 503 makes a SuperNode try again."""
    with (
        machine(stand, tmp_path / "first", f"127.0.0.1:{stand.proxy.port}") as first,
        machine(stand, tmp_path / "second", f"127.0.0.1:{first.proxy.port}") as second,
    ):
        assert status(first.ask("/v1/fleet/pull-messages")) == 401
        assert status(second.ask("/v1/fleet/pull-messages")) == 503
        stranger = first.ask("/v1/fleet/pull-messages", SUPERLINK, "POST", "X-Consilium-Peer: 1")
        assert status(stranger) == 503


def test_a_peer_with_anothers_certificate_is_not_asked(stand: Stand, tmp_path: Path) -> None:
    peer, other = f"127.0.0.1:{stand.proxy.port}", Authority(tmp_path / "other").certificate
    with machine(stand, tmp_path / "second", peer, other) as second:
        assert status(second.ask("/v1/fleet/pull-messages")) == 502


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_certificates_are_renewed_while_it_runs(stand: Stand, tmp_path: Path) -> None:
    """Both: the proxy's own, and the authority of a SuperLink that made another because its folder `tls` was moved."""
    certificate, key = stand.authority.sign(SUPERLINK, days=3)
    earlier = ensure_certificates(tmp_path / "earlier").authority.read_bytes()
    trusted = tmp_path / "superlinks.crt"
    trusted.write_bytes(earlier)
    values = {"CERTIFICATE": certificate, "CERTIFICATE_KEY": key, "SUPERLINK_CA": trusted}
    given = {name: str(value) for name, value in values.items()} | {
        "SUPERLINK_NAME": SUPERLINK, "SUPERLINK": stand.superlink.address,
    }  # fmt: skip
    with running_proxy(tmp_path / "proxy", ["superlink"], **given) as proxy:
        here = Stand(proxy, stand.superlink, stand.authority, stand.events)
        assert status(here.ask("/v1/fleet/pull-messages")) == 502
        trusted.write_bytes(earlier + stand.superlink.certificates.authority.read_bytes())  # either will do
        for made, path in zip(stand.authority.sign(SUPERLINK, days=60), (certificate, key), strict=True):
            path.write_bytes(made.read_bytes())
        proxy.reload()
        # Its earlier worker takes connections for a moment longer.
        until(lambda: tls_server(SUPERLINK, proxy.port, stand.authority.certificate).ends > time.time() + 59 * DAY)
        until(lambda: status(here.ask("/v1/fleet/pull-messages")) == 401)


# The API


def test_events_come_as_they_happen(stand: Stand) -> None:
    with connected(stand.proxy.port, API, stand.trust) as link:
        link.sendall(f"GET /v1/events HTTP/1.1\r\nHost: {API}\r\nConnection: close\r\n\r\n".encode())
        found = b""
        for wanted in (b"data: first", b"data: second"):
            while wanted not in found:
                part = link.recv(1 << 16)
                assert part, found
                found += part
            stand.events.seen.set()


@pytest.mark.parametrize(("target", "expected"), [("/", 200), ("/v1/tasks", 200), ("/metrics", 404), ("/ready", 404)])
def test_what_watches_the_server_is_not_for_everybody(stand: Stand, target: str, expected: int) -> None:
    answer = stand.ask(target, API, "GET")
    assert status(answer) == expected
    assert b"Strict-Transport-Security: max-age=63072000\r\n" in answer


def test_nobody_says_for_whom_he_speaks(stand: Stand) -> None:
    answer = stand.ask("/v1/tasks", API, "GET", "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1")
    assert b"x-forwarded: 127.0.0.1\r\n" in answer


def test_of_the_sponsor_there_is_one_address(stand: Stand) -> None:
    """Behind it something without TLS answers here, and is not believed."""
    assert status(stand.ask("/batches", SPONSOR)) == 502
    for target in ("/", "/v1/tasks", "/batches/", "/batches/../metrics"):
        assert status(stand.ask(target, SPONSOR)) == 404


def test_what_is_missing_in_the_settings_is_named(tmp_path: Path) -> None:
    env = tmp_path / "proxy.env"
    env.write_text("LISTEN=443\nAPI_NAME=api.example.org\n")
    script = Path(__file__).parents[2] / "deploy" / "proxy" / "render"
    ran = subprocess.run([script, env, tmp_path, "api"], capture_output=True, text=True)
    assert ran.returncode != 0
    assert f"API: is not in {env}" in ran.stderr


# What the doctor says of both


@pytest.mark.parametrize(
    ("proxied", "is_numbered", "served"), [(True, False, 0), (True, True, 0), (True, True, 1), (False, False, 0)]
)
def test_the_doctor_tells_whether_the_control_api_can_be_reached(
    stand: Stand, tmp_path: Path, proxied: bool, is_numbered: bool, served: int
) -> None:
    """Without a proxy a SuperLink that others reach is a fault."""
    port = stand.proxy.port if proxied else stand.number
    public = f"{SUPERLINK}:{port}{f'/{stand.number}' * is_numbered}"
    authority = stand.authority.certificate if proxied else stand.superlink.certificates.authority
    folder = stand.superlink.certificates.authority.parents[1]
    settings = {
        "home": str(folder), "chain_url": "http://127.0.0.1:1", "deployment": str(tmp_path / "none"), "task": 1,
        "keystore": str(tmp_path / "none"), "password_file": str(tmp_path / "none"), "artifacts": str(tmp_path),
        "superlink_port": int(stand.superlink.address.split(":")[1]),
    }  # fmt: skip
    chain_id, tasks, number = TASK_KEY.split("-")
    contracts = dict.fromkeys(("token", "staking", "beacon", "tasks", "model_shares", "sponsored_account"), tasks)
    written = {"chain_id": int(chain_id), "first_block": 0, **contracts}
    if is_numbered:
        settings |= {"deployment": str(tmp_path / "book.json"), "task": int(number) + served}
        (tmp_path / "book.json").write_text(json.dumps(written))
    (tmp_path / "node.toml").write_text(tomli_w.dumps(settings))
    command = ["doctor", "aggregator", "--config", str(tmp_path / "node.toml"), "--json"]
    ran = CliRunner().invoke(app, [*command, "--public", public, "--authority", str(authority)])
    found = [(one["check"], one["level"]) for one in json.loads(ran.stdout)["findings"]]
    assert ("ports", "ok") in found  # it answers with this home's certificate
    assert ("control", "ok" if proxied else "fault") in found
    assert {("superlink", "fault" if served else "ok"), ("clock", "ok"), ("tls", "ok")} <= set(found)


@pytest.mark.parametrize(
    ("days", "name", "words"),
    [
        (-2, SUPERLINK, "has ended"),
        (30, "elsewhere.example.org", "is for another name"),
        (5, SUPERLINK, "for another 5"),
    ],
)
def test_the_doctor_reads_the_proxys_certificate(
    stand: Stand, tmp_path: Path, days: float, name: str, words: str
) -> None:
    certificate, key = stand.authority.sign(name, days=days)
    values = {"CERTIFICATE": certificate, "CERTIFICATE_KEY": key, "SUPERLINK_CA": stand.authority.certificate}
    given = {key: str(value) for key, value in values.items()} | {
        "SUPERLINK_NAME": SUPERLINK, "SUPERLINK": stand.superlink.address,
    }  # fmt: skip
    with running_proxy(tmp_path / "proxy", ["superlink"], **given) as proxy:
        seen = tls_server(SUPERLINK, proxy.port, stand.authority.certificate)
        (found,) = judge_tls("the SuperLink", seen)
        assert found.level is (Level.WARNING if days == 5 else Level.FAULT)
        assert words in found.says
        stranger = judge_tls("the SuperLink", tls_server(SUPERLINK, proxy.port, stand.superlink.certificates.authority))
        assert days != 5 or "not from the named authority" in stranger[0].says
