"""Connectivity checks: reach a server over TLS, or give the reason why not in words."""

from __future__ import annotations

import email.utils
import http.client
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

PATIENCE = 5.0  # seconds
# Seconds: a SuperLink refuses a SuperNode (401, which ends it) whose clock is further off from its own
# (flwr 1.41, `common.constant`).
FLOWER_AHEAD, FLOWER_BEHIND = 5, 305


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[::1]:port". Raises ValueError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is no address: say host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _address(text: str) -> str:
    host_and_port(text)
    return text


Address = Annotated[str, AfterValidator(_address)]


def why_unreachable(host: str, port: int, authority: Path | None, patience: float = PATIENCE) -> str | None:
    """None if it answers and its certificate is of `authority` (None: of those that the system trusts).

    The words are this module's alone: words of a library or of the other side stay out of logs.
    """
    return _why_not(host, port, authority, patience, lambda link: None)


def why_shut_out(host: str, port: int, authority: Path, patience: float = PATIENCE) -> str | None:
    """The reason why the SuperLink there would refuse a SuperNode of this machine, as far as it can be seen."""

    def clock(link: ssl.SSLSocket) -> str | None:
        ahead = _seconds_ahead_of(host, link)
        if ahead is None or -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
            return None
        than = "later" if ahead > 0 else "earlier"
        return f"this machine's clock is {abs(ahead):.0f} s {than} than its own: set it (`timedatectl set-ntp true`)"

    return _why_not(host, port, authority, patience, clock)


def _why_not(
    host: str, port: int, authority: Path | None, patience: float, look: Callable[[ssl.SSLSocket], str | None]
) -> str | None:
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError:
        return f"the authority's certificate {authority} cannot be read: join the task again with the right one"
    try:
        with (
            socket.create_connection((host, port), patience) as plain,
            context.wrap_socket(plain, server_hostname=host) as link,
        ):
            return look(link)
    except ssl.SSLCertVerificationError:
        return "its certificate is not of the authority named, or not for this name: ask its operator for both"
    except ssl.SSLError:
        return "the server there does not speak TLS: check the port"
    except socket.gaierror:
        return "its name is not known here: check it, and this machine's DNS"
    except ConnectionRefusedError:
        return "nothing listens there: it may not have been started yet, or the port is another"
    except TimeoutError:
        return f"it does not answer within {patience:g} s: a firewall in between may have to let this machine out"
    except OSError as error:
        return f"there is no way there ({error.strerror or 'the connection broke off'}): check this machine's network"


def _seconds_ahead_of(host: str, link: ssl.SSLSocket) -> float | None:
    """None if it tells no time."""
    asking = http.client.HTTPConnection(host)
    asking.sock = link
    try:
        asking.request("HEAD", "/")
        asked = time.time()
        return seconds_ahead(asked, asking.getresponse().getheader("Date"))
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
