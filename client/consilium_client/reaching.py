"""Whether a server of the other side can be reached over TLS, and in words why not."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

PATIENCE = 5.0  # seconds


def host_and_port(address: str) -> tuple[str, int]:
    """Of "host:port", or of "[::1]:port". Raises ValueError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is no address: say host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _address(text: str) -> str:
    host_and_port(text)
    return text


Address = Annotated[str, AfterValidator(_address)]


def why_unreachable(host: str, port: int, authority: Path | None, patience: float = PATIENCE) -> str | None:
    """None where it answers and its certificate is of `authority` (without, of those that the system trusts).

    Words of this module alone: what a library or the other side says stays out of journals.
    """
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError:
        return f"the authority's certificate {authority} cannot be read: join the task again with the right one"
    try:
        with (
            socket.create_connection((host, port), patience) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError:
        return "its certificate is not of the authority named, or not for this name: ask who runs it for both"
    except ssl.SSLError:
        return "what answers there does not speak TLS: check the port"
    except socket.gaierror:
        return "its name is not known here: check it, and this machine's DNS"
    except ConnectionRefusedError:
        return "nothing listens there: it may not have been started yet, or the port is another"
    except TimeoutError:
        return f"it does not answer within {patience:g} s: a firewall in between may have to let this machine out"
    except OSError as error:
        return f"there is no way there ({error.strerror or 'the connection broke off'}): check this machine's network"
