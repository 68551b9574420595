"""Sends messages to `https://` and `mailto:` addresses. A node's owner or a stranger chose the address.

A stranger's webhook could name a host of the server's own network. So its name is resolved once, all of its addresses
must be public, and the connection goes to a checked one. TLS still has the name. Redirects are refused.

Webhooks are signed as in Standard Webhooks (standardwebhooks.com). Mails have the links of RFC 8058.
"""

from __future__ import annotations

import base64
import email.policy
import email.utils
import hmac
import http.client
import ipaddress
import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from consilium_core.errors import NotSent
from consilium_core.private_files import read_private_file
from consilium_core.typed_toml import Section

HOST = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
MAIL_ADDRESS = re.compile(rf"(?=.{{1,100}}\Z)[A-Za-z0-9_+%-]+(?:\.[A-Za-z0-9_+%-]+)*@{HOST}")
_WEB_ADDRESS = re.compile(rf"https://{HOST}(?::(?P<port>[0-9]{{1,5}}))?(?:/[!\"$-~]*)?")
LONGEST = 300  # characters of an address
TIMEOUT = 5.0  # seconds of a connection, and of each read
TOTAL = 8.0  # seconds of a whole answer
MAIL_TIMEOUT = 30.0  # seconds of a mail server's answer: many wait before they answer
ADDRESSES_TRIED = 2  # of a host
MOST_ANSWER = 4_096  # bytes that are read
GONE = 410

_WHOLE_LINES = email.policy.default.clone(max_line_length=900)  # a folded URL would be encoded, and no link any more

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # without addresses that carry an IPv4 one, as 64:ff9b::/96


@dataclass(frozen=True)
class Webhook:
    url: str

    @property
    def host(self) -> str:
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or http.client.HTTPS_PORT


@dataclass(frozen=True)
class Mailbox:
    address: str


def mail_address(text: str) -> str:
    """The mail address, with its host in lower case. Raises ValueError."""
    local, _, host = text.rpartition("@")
    address = f"{local}@{host.lower()}"
    if not MAIL_ADDRESS.fullmatch(address):
        raise ValueError("it is not an address: write NAME@HOST, with a host's full name")
    return address


def parse_target(text: str) -> Webhook | Mailbox:
    """The address, with its host in lower case. Raises ValueError."""
    scheme, _, rest = text.partition(":")
    if scheme == "mailto":
        return Mailbox(mail_address(rest))
    if len(text) <= LONGEST and scheme == "https" and rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        url = f"https://{host.lower()}{slash}{path}"
        found = _WEB_ADDRESS.fullmatch(url)
        if found and 0 < int(found["port"] or http.client.HTTPS_PORT) < 65_536:
            return Webhook(url)
    raise ValueError("it is not an address: write https://HOST/PATH or mailto:NAME@HOST, with a host's full name")


def _checked(text: str) -> str:
    target = parse_target(text)
    return target.url if isinstance(target, Webhook) else f"mailto:{target.address}"


Target = Annotated[str, AfterValidator(_checked)]


def is_public(address: Ip) -> bool:
    """True if it belongs to one host of the public Internet."""
    if isinstance(address, ipaddress.IPv6Address):
        carries_another = address.sixtofour or address.teredo
        return address in _GLOBAL_UNICAST and address.is_global and not carries_another
    return address.is_global and not address.is_multicast


def resolved(host: str, port: int) -> list[str]:
    """The host's addresses, by the system, whose own limit may be minutes. Raises OSError, UnicodeError."""
    answer: Future[list[str]] = Future()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.set_result([str(one[4][0]) for one in found])
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return answer.result(TIMEOUT)


@dataclass(frozen=True)
class Reach:
    """Webhooks that are allowed: by default those that a stranger may choose. `ports`: None for all.

    `authority`: file with the certificates to trust; by default the system's.
    """

    ports: frozenset[int] | None = frozenset({http.client.HTTPS_PORT})
    admits: Callable[[Ip], bool] = is_public
    authority: Path | None = None
    resolve: Callable[[str, int], Sequence[str]] = resolved

    def addresses(self, hook: Webhook) -> list[str]:
        """Addresses of the host, all of them allowed. Raises NotSent."""
        if self.ports is not None and hook.port not in self.ports:
            raise NotSent(f"port {hook.port} is not allowed")
        try:
            found = list(dict.fromkeys(self.resolve(hook.host, hook.port)))
        except (OSError, UnicodeError):
            raise NotSent("its host name is unknown") from None
        if not found or not all(self.admits(ipaddress.ip_address(one)) for one in found):
            raise NotSent("its host is not on the public Internet")
        return found


STRANGERS = Reach()
OWNERS = Reach(ports=None, admits=lambda address: True)


def signature(secret: bytes, id_: str, at: int, body: bytes) -> str:
    """The header `webhook-signature`."""
    tag = hmac.digest(secret, b".".join((id_.encode(), str(at).encode(), body)), "sha256")
    return "v1," + base64.b64encode(tag).decode()


def post(hook: Webhook, body: bytes, id_: str, at: int, secret: bytes | None, reach: Reach = STRANGERS) -> bytes:
    """Sends JSON; returns the first `MOST_ANSWER` bytes of the answer. `at`: Unix seconds. Raises NotSent.

    Without `secret` it is not signed.
    """
    headers = {
        "Content-Type": "application/json", "User-Agent": "consilium", "Connection": "close", "webhook-id": id_,
        "webhook-timestamp": str(at),
    }  # fmt: skip
    if secret is not None:
        headers["webhook-signature"] = signature(secret, id_, at, body)
    return _answer(hook, "POST", body, headers, reach, MOST_ANSWER)


def get(page: Webhook, most: int, reach: Reach = STRANGERS) -> bytes:
    """The first `most` bytes of a page that a stranger named. Raises NotSent."""
    return _answer(page, "GET", None, {"User-Agent": "consilium", "Connection": "close"}, reach, most)


def _answer(
    hook: Webhook, method: str, body: bytes | None, headers: Mapping[str, str], reach: Reach, most: int
) -> bytes:
    context = ssl.create_default_context(cafile=reach.authority)
    try:
        plain = _connected(reach.addresses(hook), hook.port)
        with plain, context.wrap_socket(plain, server_hostname=hook.host) as link:
            status, answer = _exchange(link, hook, method, body, headers, most)
    except ssl.SSLCertVerificationError:
        raise NotSent("its certificate is not valid for its name") from None
    except (OSError, http.client.HTTPException) as error:
        raise NotSent(f"it does not answer ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise NotSent(f"it answered with status {status}", is_gone=status == GONE)
    return answer


def _connected(addresses: Sequence[str], port: int) -> socket.socket:
    tried = addresses[:ADDRESSES_TRIED]
    for address in tried[:-1]:
        try:
            return socket.create_connection((address, port), TIMEOUT)
        except OSError:
            continue
    return socket.create_connection((tried[-1], port), TIMEOUT)


def _exchange(
    link: ssl.SSLSocket, hook: Webhook, method: str, body: bytes | None, headers: Mapping[str, str], most: int
) -> tuple[int, bytes]:
    """Status and bounded answer. The timer ends a server that sends a byte now and then."""
    parts = urlsplit(hook.url)
    connection = http.client.HTTPSConnection(hook.host, hook.port)
    connection.sock = link
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with suppress(OSError):  # not by TLS, which would wait for an answer
            socket.socket.shutdown(link, socket.SHUT_RDWR)

    timer = threading.Timer(TOTAL, end)
    timer.daemon = True
    timer.start()
    try:
        with closing(connection):
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            said = answer.read(most)
        if is_late.is_set():  # what ends amidst headers looks whole
            raise TimeoutError
        return answer.status, said
    finally:
        timer.cancel()


@dataclass(frozen=True)
class MailServer:
    """An SMTP server for outgoing mail. `is_tls`: TLS from the beginning; without, STARTTLS, but not on loopback."""

    host: str
    port: int
    is_tls: bool
    sender: str
    user: str | None = None
    password: str | None = None
    authority: Path | None = None

    def send(self, mail: EmailMessage) -> None:
        """Raises NotSent, without the server's words: they may repeat secrets."""
        context = ssl.create_default_context(cafile=self.authority)
        try:
            with self._connected(context) as server:
                if not self.is_tls and not _is_loopback(self.host):
                    server.starttls(context=context)
                if self.user is not None:
                    server.login(self.user, self.password or "")
                server.send_message(mail)
        except (OSError, UnicodeError, smtplib.SMTPException) as error:
            code = getattr(error, "smtp_code", None)
            cause = f"{type(error).__name__}{f' {code}' if code else ''}"
            raise NotSent(f"the mail server {self.host} did not take it ({cause})") from None

    def _connected(self, context: ssl.SSLContext) -> smtplib.SMTP:
        if self.is_tls:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=MAIL_TIMEOUT, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=MAIL_TIMEOUT)


class MailSettings(Section):
    """An SMTP server for outgoing mail."""

    host: str
    port: Annotated[int, Field(ge=1, le=65_535)] = 465
    tls: Annotated[bool, Field(description="from the beginning; false: STARTTLS, and none on loopback")] = True
    sender: Annotated[str, AfterValidator(mail_address), Field(description="address that mails come from")]
    user: str | None = None
    password_file: Annotated[Path | None, Field(description="file with the user's password, mode 600")] = None

    def server(self) -> MailServer:
        """Reads the password. Raises KeystoreError."""
        password = None if self.password_file is None else read_private_file(self.password_file).strip()
        return MailServer(self.host, self.port, self.tls, self.sender, self.user, password)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")


def mail(sender: str, to: Mailbox, subject: str, text: str, id_: str, stop: str | None = None) -> EmailMessage:
    """A program's mail. `stop`: URL that ends the mails by one POST. Raises ValueError for line breaks in headers."""
    message = EmailMessage(_WHOLE_LINES)
    message["From"], message["To"], message["Subject"] = sender, to.address, subject
    message["Date"] = email.utils.formatdate(usegmt=True)
    message["Message-ID"] = f"<{id_}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    if stop is not None:
        message["List-Unsubscribe"], message["List-Unsubscribe-Post"] = f"<{stop}>", "List-Unsubscribe=One-Click"
    message.set_content(text)
    return message
