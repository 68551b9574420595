"""Webhooks and mails, with hostile addresses, names and servers."""

from __future__ import annotations

import hmac
import ipaddress
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from consilium_core import notify
from consilium_core.errors import NotSent
from consilium_core.notify import Mailbox, MailServer, Reach, Webhook, is_public, mail, parse_target, post
from told_servers import HOOK, Hooks, hooks, mails

SECRET = b"s" * 32
STOP = "https://x.org/stop?token=" + "a" * 200
NOT_PUBLIC = (
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
    "::8.8.8.8", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254",
    "fec0::1", "ff02::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
)  # fmt: skip
NO_TARGETS = (
    "http://a.example.org/", "https://a.example.org:0/", "https://a.example.org:65536/", "https://127.0.0.1/",
    "https://0x7f.1/", "https://2130706433/", "https://[::1]/", "https://localhost/", "https://intranet/",
    "https://u:p@a.example.org/", "https://a.example.org@b.org/", "https://a.example.org/#a", "https://a.example.org\\@b.org",
    "https:a.example.org/", "https://a.example.org/ b", "https://a.example.org/\r\nX: y", "https://ä.example.org/",
    "https://a.example.org/" + "a" * 280, "file:///etc/passwd", "", "mailto:", "mailto:a@b", "mailto:a@b.org,c@d.org",
    "mailto:a@b.org\r\nBcc: c@d.org", "mailto:a@b.org\n", "mailto:<a@b.org>", 'mailto:"a b"@c.org', "mailto:a..b@c.org",
    "mailto:a@b.org?subject=x", "mailto:-@[127.0.0.1]", "mailto:" + "a" * 95 + "@b.org",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooks]:
    with hooks(tmp_path_factory.mktemp("hooks")) as server:
        yield server


def sent(server: Hooks, path: str = "/", reach: Reach | None = None, host: str = HOOK) -> bytes:
    return post(
        Webhook(server.url(path, host)), b'{"challenge": "c"}', "id1", 1_795_000_000, SECRET, reach or server.reach()
    )


@pytest.mark.parametrize("text", NO_TARGETS)
def test_parse_target_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="it is not an address"):
        parse_target(text)


def test_parse_target_takes_the_longest_and_lowers_hosts() -> None:
    longest = "https://a.example.org/" + "a" * 278
    assert (len(longest), parse_target(longest)) == (300, Webhook(longest))
    assert parse_target("https://A.Example.org:65535/Ab?c=D") == Webhook("https://a.example.org:65535/Ab?c=D")
    assert parse_target("mailto:A.b+c@D.org") == Mailbox("A.b+c@d.org")
    assert parse_target("mailto:" + "a" * 94 + "@b.org") == Mailbox("a" * 94 + "@b.org")


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_is_public_is_false(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"])
def test_is_public_is_true(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "found", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["2606:4700::1", "::ffff:10.0.0.1"], []], ids=str
)
def test_post_connects_nowhere_if_an_address_is_not_public(monkeypatch: pytest.MonkeyPatch, found: list[str]) -> None:
    monkeypatch.setattr("socket.create_connection", lambda *_: pytest.fail("it connected"))
    with pytest.raises(NotSent, match="not on the public Internet"):
        post(Webhook("https://a.example.org/"), b"", "1", 1, SECRET, Reach(resolve=lambda host, port: found))


def test_post_connects_to_the_checked_address_though_the_name_leads_elsewhere_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, reached = [["8.8.8.8"], ["127.0.0.1"]], []

    def connect(address: tuple[str, int], timeout: float) -> None:
        reached.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(NotSent, match="does not answer"):
        post(Webhook("https://a.org/"), b"", "1", 1, SECRET, Reach(resolve=lambda host, port: answers.pop(0)))
    assert (reached, answers) == ([("8.8.8.8", 443)], [["127.0.0.1"]])


def test_post_takes_port_443_alone_unless_more_are_allowed(server: Hooks) -> None:
    with pytest.raises(NotSent, match="is not allowed"):
        sent(server, reach=server.reach(ports=frozenset({443})))
    assert sent(server, reach=server.reach(ports=None)) == b"c"


def test_post_is_signed_as_standard_webhooks(server: Hooks) -> None:
    assert sent(server, "/a?b=c") == b"c"
    path, headers, body = server.got[-1]
    assert (path, headers["host"], headers["webhook-id"]) == ("/a?b=c", f"{HOOK}:{server.port}", "id1")
    tag = hmac.digest(SECRET, b"id1.1795000000." + body, "sha256")
    version, _, found = headers["webhook-signature"].partition(",")
    assert (version, b64decode(found)) == ("v1", tag)


def test_post_wants_a_certificate_for_the_name(server: Hooks) -> None:
    for reach, host in ((server.reach(), "other.example.org"), (server.reach(authority=None), HOOK)):
        with pytest.raises(NotSent, match="its certificate is not valid"):
            sent(server, reach=reach, host=host)


def test_post_follows_no_redirect(server: Hooks) -> None:
    with pytest.raises(NotSent, match="status 302"):
        sent(server, "/redirect")
    assert server.got[-1][0] == "/redirect"


def test_post_reads_a_bounded_answer(server: Hooks) -> None:
    assert sent(server, "/large") == b"x" * notify.MOST_ANSWER


def test_post_ends_a_server_that_drips(server: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "TOTAL", 0.3)
    start = time.monotonic()
    with pytest.raises(NotSent, match="does not answer"):
        sent(server, "/slow")
    assert time.monotonic() - start < 3


@pytest.mark.parametrize("with_tls", [False, True])
def test_mail_server_sends(tmp_path: Path, with_tls: bool) -> None:
    with mails(tmp_path, with_tls) as server:
        own = MailServer("localhost", server.port, with_tls, "a@x.org", "user", "pass word", server.authority)
        own.send(mail("a@x.org", Mailbox("b@y.org"), "Slashed", "50 tokens ε\n", "id1", STOP))
        server.refuses = "550 no such user: pass word"
        with pytest.raises(NotSent, match=r"did not take it \(SMTPRecipientsRefused\)"):
            own.send(mail("a@x.org", Mailbox("b@y.org"), "Slashed", "50 tokens", "id1"))
    (got,) = server.got
    assert server.logins[0] == "\0user\0pass word"
    assert (got["To"], got["Message-ID"], server.text()) == ("b@y.org", "<id1@x.org>", "50 tokens ε\n")
    assert (got["List-Unsubscribe"], got["List-Unsubscribe-Post"]) == (
        f"<{STOP}>", "List-Unsubscribe=One-Click",
    )  # fmt: skip


def test_mail_server_refuses_a_password_that_smtp_cannot_carry(tmp_path: Path) -> None:
    with mails(tmp_path) as server, pytest.raises(NotSent, match="UnicodeEncodeError"):
        MailServer("localhost", server.port, False, "a@x.org", "user", "pässword").send(
            mail("a@x.org", Mailbox("b@y.org"), "Slashed", "text", "id1")
        )


def test_resolved_does_not_wait_for_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "TIMEOUT", 0.05)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: time.sleep(0.5))
    with pytest.raises(NotSent, match="its host name is unknown"):
        post(Webhook("https://a.example.org/"), b"", "1", 1, SECRET)


def test_mail_refuses_line_breaks_in_headers() -> None:
    for place in range(3):
        values = ["a@x.org", "b@y.org", "Slashed"]
        values[place] += "\r\nBcc: c@z.org"
        with pytest.raises(ValueError, match="linefeed or carriage return"):
            mail(values[0], Mailbox(values[1]), values[2], "text", "id1")


def test_mail_server_wants_tls_unless_it_is_on_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mails(tmp_path) as server:
        monkeypatch.setattr(notify, "_is_loopback", lambda host: False)
        with pytest.raises(NotSent, match="SMTPNotSupportedError"):
            MailServer("localhost", server.port, False, "a@x.org", "user", "secret").send(
                mail("a@x.org", Mailbox("b@y.org"), "Slashed", "text", "id1")
            )
    assert (server.logins, server.got) == ([], [])
