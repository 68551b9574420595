"""Why a server cannot be reached, in words; and that a hospital's node says so of its SuperLink."""

from __future__ import annotations

import email.utils
import re
import socket
import threading
import time
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_core.connectivity import (
    TASK_HEADER,
    FleetAddress,
    fleet_address,
    host_and_port,
    why_shut_out,
    why_unreachable,
)
from consilium_server.certificates import ensure_certificates
from tls_driver import server

TASK = "31337-0x5FbDB2315678afecb367f032d93F642f64180aa3-3"


def test_a_server_of_the_authority_is_reached_and_no_other(tmp_path: Path) -> None:
    own, other = (ensure_certificates(tmp_path / name).authority for name in ("own", "other"))
    with server(tmp_path / "own") as port:
        assert why_unreachable("127.0.0.1", port, own) is None
        assert "not from the named authority" in (why_unreachable("127.0.0.1", port, other) or "")


def test_each_way_not_to_be_reached_has_its_words(tmp_path: Path) -> None:
    authority = ensure_certificates(tmp_path).authority
    assert "nothing listens there" in (why_unreachable("127.0.0.1", free_port(), authority) or "")
    assert "its host name is unknown" in (why_unreachable("nowhere.invalid", 9092, authority) or "")
    assert "cannot be read" in (why_unreachable("127.0.0.1", free_port(), tmp_path / "none.crt") or "")
    with server(None) as port:
        assert "does not answer within 0.2 s" in (why_unreachable("127.0.0.1", port, authority, 0.2) or "")


@pytest.mark.parametrize(
    ("ahead", "why"),
    [
        (3_600, r"this machine's clock is 3[56]\d\d s ahead of the server's: set it"),
        (-3_600, r"3[56]\d\d s behind"),
        (10, r"clock is \d+ s ahead of"), (-240, None), (0, None),
    ],
)  # fmt: skip
def test_a_clock_at_which_flower_refuses_nodes_is_told(ahead: int, why: str | None, tmp_path: Path) -> None:
    authority = ensure_certificates(tmp_path).authority
    date = email.utils.formatdate(time.time() - ahead, usegmt=True)
    answer = f"HTTP/1.1 401 Unauthorized\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n".encode()
    with server(tmp_path, answer) as port:
        found = why_shut_out(FleetAddress("localhost", port), authority, TASK)
    assert found is None if why is None else re.search(why, found or "")


@pytest.mark.parametrize(
    ("status", "named", "why"),
    [
        (401, TASK, None), (401, None, None), (200, None, None),
        (401, TASK + "1", "it serves another task"), (404, None, "no SuperLink is there"),
        (502, None, "nothing runs behind its proxy"), (503, None, "nothing runs behind its proxy"),
    ],
)  # fmt: skip
def test_an_address_that_leads_elsewhere_is_told(
    status: int, named: str | None, why: str | None, tmp_path: Path
) -> None:
    authority = ensure_certificates(tmp_path).authority
    more = f"{TASK_HEADER}: {named}\r\n" if named else ""
    answer = f"HTTP/1.1 {status} As It Is\r\n{more}Content-Length: 0\r\n\r\n".encode()
    with server(tmp_path, answer) as port:
        found = why_shut_out(FleetAddress("localhost", port, "/9100"), authority, TASK)
    assert found is None if why is None else why in (found or "")


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nDate: soon\r\n\r\n"])
def test_who_tells_no_time_is_believed_to_let_nodes_in(answer: bytes, tmp_path: Path) -> None:
    authority = ensure_certificates(tmp_path).authority
    with server(tmp_path, answer) as port:
        assert why_shut_out(FleetAddress("localhost", port), authority, TASK) is None


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_speaks_no_tls_is_told_from_silence(said: bytes, tmp_path: Path) -> None:
    authority = ensure_certificates(tmp_path).authority
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            plain, _ = listening.accept()
            plain.recv(1_000)
            plain.sendall(said)
            plain.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        found = why_unreachable("127.0.0.1", listening.getsockname()[1], authority)
        thread.join()
    assert "does not speak TLS" in (found or "")


@pytest.mark.parametrize(
    ("address", "found"),
    [("fl.example:9092", ("fl.example", 9092)), ("[::1]:1", ("::1", 1)), ("127.0.0.1:65535", ("127.0.0.1", 65_535))],
)
def test_an_address_is_a_host_and_a_port(address: str, found: tuple[str, int]) -> None:
    assert host_and_port(address) == found


@pytest.mark.parametrize(
    ("address", "host", "port", "path"),
    [
        ("fl.example:9092", "fl.example", 9092, ""),
        ("fl.example:443/9100", "fl.example", 443, "/9100"),
        ("[::1]:443/65535", "::1", 443, "/65535"),
    ],
)
def test_a_superlinks_address_may_have_its_port_behind_a_proxy(address: str, host: str, port: int, path: str) -> None:
    found = fleet_address(address)
    assert found == FleetAddress(host, port, path)
    assert str(found) == address


@pytest.mark.parametrize(
    "behind", ["", "0", "09100", "65536", "91000000", "9100/", "9100/x", "../x", "9100?x", "-1", "٩١٠٠"]
)
def test_a_path_other_than_a_port_is_refused(behind: str) -> None:
    with pytest.raises(ValueError, match="write host:port, or host:port/9100"):
        fleet_address(f"fl.example:443/{behind}")


@pytest.mark.parametrize("address", ["", "fl.example", ":9092", "fl.example:", "a:x", "a:0", "a:65536", "a:-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write host:port"):
        host_and_port(address)
