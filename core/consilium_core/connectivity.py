"""Connectivity checks: reach a server over TLS, or say why not."""

from __future__ import annotations

import email.utils
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

TIMEOUT = 5.0  # seconds
# Seconds: a SuperLink refuses a SuperNode (401, which ends it) whose clock is further off from its own
# (flwr 1.41, `common.constant`).
FLOWER_AHEAD, FLOWER_BEHIND = 5, 305
FLEET_CALL = "/v1/fleet/pull-messages"
FLEET_HEADERS = {"Content-Type": "application/protobuf", "Content-Length": "0"}
TASK_HEADER = "Consilium-Task"  # of a SuperLink's answers: its task, by `Ledger.folder_name`
NOT_FOUND, NOTHING_BEHIND = 404, (502, 503, 504)


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[::1]:port". Raises ValueError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is not an address: write host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _address(text: str) -> str:
    host_and_port(text)
    return text


Address = Annotated[str, AfterValidator(_address)]


class FleetAddress(NamedTuple):
    """A SuperLink as hospitals reach it. `path`: in a URL, before the Fleet API's own; empty, or "/9100" for the port
    9100 behind a proxy that serves all SuperLinks of an operator under one name.
    """

    host: str
    port: int
    path: str = ""

    @property
    def server(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.server}{self.path}"


def fleet_address(text: str) -> FleetAddress:
    """Of "host:port" or "host:port/port behind the proxy". Raises ValueError."""
    server, slash, behind = text.partition("/")
    if slash and (not re.fullmatch("[1-9][0-9]{0,4}", behind) or int(behind) > 65_535):
        raise ValueError(f"{text!r} is not a SuperLink's address: write host:port, or host:port/9100")
    return FleetAddress(*host_and_port(server), slash + behind)


def _fleet(text: str) -> str:
    fleet_address(text)
    return text


Fleet = Annotated[str, AfterValidator(_fleet)]


def why_unreachable(host: str, port: int, authority: Path | None, timeout: float = TIMEOUT) -> str | None:
    """None if the server answers with a certificate of `authority` (None: of one that the system trusts).

    The text is this module's own: texts of libraries and servers stay out of logs.
    """
    return _why_not(host, port, authority, timeout, lambda link: None)


@dataclass(frozen=True)
class FleetAnswer:
    """A SuperLink's answer to a request without a node's key: the status; None for no answer. `ahead`: seconds by which
    this machine's clock is ahead of the server's. `task`: the task that the SuperLink serves, by `folder_name`.
    """

    status: int | None
    ahead: float | None = None
    task: str | None = None

    def may_serve(self, task: str) -> bool:
        """False if it names another task. An answer of a proxy alone names none."""
        return self.task in (None, task)


def ask_fleet(at: FleetAddress, authority: Path, timeout: float = TIMEOUT) -> FleetAnswer | str:
    """A SuperLink's answer, or the reason why it cannot be reached."""
    answer = FleetAnswer(None)

    def ask(link: ssl.SSLSocket) -> None:
        nonlocal answer
        answer = _fleet_answer(at, link)

    return _why_not(at.host, at.port, authority, timeout, ask) or answer


def why_refused(answer: FleetAnswer, task: str) -> str | None:
    """The reason why the SuperLink that answered so would refuse a SuperNode of this machine, if there is one. `task`:
    by `folder_name`, the one that it should serve.
    """
    ahead = answer.ahead
    if ahead is not None and not -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
        off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'}"
        return f"this machine's clock is {off} the server's: set it (`timedatectl set-ntp true`)"
    if not answer.may_serve(task):
        return "it serves another task: ask its operator for the address of this one"
    if answer.status == NOT_FOUND:
        return "no SuperLink is there: check the address, with the number behind the /"
    if answer.status in NOTHING_BEHIND:
        return "nothing runs behind its proxy: its aggregator may not have started yet"
    return None


def why_shut_out(at: FleetAddress, authority: Path, task: str, timeout: float = TIMEOUT) -> str | None:
    """The same of the SuperLink at an address, or the reason why it cannot be reached."""
    answer = ask_fleet(at, authority, timeout)
    return answer if isinstance(answer, str) else why_refused(answer, task)


def _why_not(
    host: str, port: int, authority: Path | None, timeout: float, use: Callable[[ssl.SSLSocket], None]
) -> str | None:
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError:
        return f"the certificate {authority} of the authority cannot be read: join the task again with the right one"
    try:
        with (
            socket.create_connection((host, port), timeout) as plain,
            context.wrap_socket(plain, server_hostname=host) as link,
        ):
            use(link)
            return None
    except ssl.SSLCertVerificationError:
        return "its certificate is not from the named authority, or not for this host name: ask its operator for both"
    except ssl.SSLError:
        return "the server there does not speak TLS: check the port"
    except socket.gaierror:
        return "its host name is unknown: check it, and this machine's DNS"
    except ConnectionRefusedError:
        return "nothing listens there: it may not have started yet, or the port is wrong"
    except TimeoutError:
        return f"it does not answer within {timeout:g} s: a firewall may block this machine"
    except OSError as error:
        return f"it cannot be reached ({error.strerror or 'the connection broke off'}): check this machine's network"


def _fleet_answer(at: FleetAddress, link: ssl.SSLSocket) -> FleetAnswer:
    connection = http.client.HTTPConnection(at.host)
    connection.sock = link
    try:
        connection.request("POST", at.path + FLEET_CALL, headers=FLEET_HEADERS)
        now = time.time()
        return fleet_answer(connection.getresponse(), now)
    except (OSError, http.client.HTTPException):
        return FleetAnswer(None)


def fleet_answer(answer: http.client.HTTPResponse, now: float) -> FleetAnswer:
    """`now`: seconds of this machine's clock when the request was sent."""
    return FleetAnswer(answer.status, seconds_ahead(now, answer.getheader("Date")), answer.getheader(TASK_HEADER))


def seconds_ahead(now: float, date: str | None) -> float | None:
    """Seconds by which a clock that showed `now` is ahead of an HTTP Date, whose missing fraction counts as 0.5 s."""
    if date is None:
        return None
    try:
        return now - email.utils.parsedate_to_datetime(date).timestamp() - 0.5
    except ValueError:
        return None
