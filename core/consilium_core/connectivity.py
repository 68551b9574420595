"""Connectivity checks: reach a server over TLS, or say why not."""

from __future__ import annotations

import email.utils
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

TIMEOUT = 5.0  # seconds
# Seconds: a SuperLink refuses a SuperNode (401, which ends it) whose clock is further off from its own
# (flwr 1.41, `common.constant`).
FLOWER_AHEAD, FLOWER_BEHIND = 5, 305


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


def why_shut_out(host: str, port: int, authority: Path, timeout: float = TIMEOUT) -> str | None:
    """The reason why that SuperLink would refuse a SuperNode of this machine, if a check finds one."""

    def clock(link: ssl.SSLSocket) -> str | None:
        ahead = _seconds_ahead_of(host, link)
        if ahead is None or -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
            return None
        where = "ahead of" if ahead > 0 else "behind"
        return f"this machine's clock is {abs(ahead):.0f} s {where} the server's: set it (`timedatectl set-ntp true`)"

    return _why_not(host, port, authority, timeout, clock)


def _why_not(
    host: str, port: int, authority: Path | None, timeout: float, check: Callable[[ssl.SSLSocket], str | None]
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
            return check(link)
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


def _seconds_ahead_of(host: str, link: ssl.SSLSocket) -> float | None:
    """None if the server sends no time."""
    connection = http.client.HTTPConnection(host)
    connection.sock = link
    try:
        connection.request("HEAD", "/")
        now = time.time()
        return seconds_ahead(now, connection.getresponse().getheader("Date"))
    except (OSError, http.client.HTTPException):
        return None


def seconds_ahead(now: float, date: str | None) -> float | None:
    """Seconds by which a clock that showed `now` is ahead of an HTTP Date, whose missing fraction counts as 0.5 s."""
    if date is None:
        return None
    try:
        return now - email.utils.parsedate_to_datetime(date).timestamp() - 0.5
    except ValueError:
        return None
