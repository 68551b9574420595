"""What facts mean: each finding of the doctor's at both sides of its bounds."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from consilium_chain.errors import ChainUnreachable
from consilium_cli.doctor import findings as doctor
from consilium_cli.doctor import reach
from consilium_cli.doctor.asking import Check, ask
from consilium_cli.doctor.findings import MIB, Finding, Findings, Level
from consilium_cli.doctor.reach import Held

OK, WARNING, FAULT = Level.OK, Level.WARNING, Level.FAULT
NOW, DAY = 1_800_000_000.0, 86_400.0
HERE = Path("/srv/x")

VERSIONS = doctor.Versions("3.11.2", "0.1.0", {"flwr": "1.41.0"}, {"flwr": "1.41.0"})
MACHINE = doctor.Machine(HERE, 9_000 * MIB, 20_000 * MIB, 900 * MIB, 600 * MIB)
KEY = doctor.File(HERE, "the key file", stat.S_IFREG | 0o600)
CREDENTIAL = doctor.File(Path("/run/credentials/consilium-worker.service/password"), "it", stat.S_IFREG | 0o440)
SEPOLIA = doctor.Chain("https://node", 11_155_111, 11_155_111, 100, int(NOW) - 6, 12.0, NOW)
CONTRACTS = doctor.Contracts({"Tasks": "same", "ConsiliumToken": "same"}, "same", [])
MONEY = doctor.Money("0xA", 10**17, 10**9, 3_000_000)
PORT = reach.Port("the API", "127.0.0.1:8080", Held.FREE)
CERTIFICATE = reach.CertificateFile("its certificate", HERE, NOW - DAY, NOW + 200 * DAY, True, True, False, NOW)
FACE = reach.Face("the SuperLink", "fl.example.org:443", None, "TLSv1.3", NOW + 60 * DAY, NOW)
REFUSED = {"/v1/control/list-nodes": 404, "//v1/control/list-nodes": 404}
SUPERLINK = reach.SuperLinkFace("fl.example.org:443", reach.Answer(401, 0.2), REFUSED, True)
NODE_KEY = reach.NodeKey(3, HERE, True)
PUBLIC = reach.Public("the API", "https://c.example.org", 200, (200,))
PLACE = doctor.Place("/srv/artifacts", None, True)
DATABASE = doctor.Database("sqlite:///x", "0003", "0003", True)
REDIS = doctor.Redis("Redis at 127.0.0.1:6379", "noeviction", 0, 2 * MIB, True)


def with_control(status: int | None, **changes: Any) -> reach.SuperLinkFace:
    return replace(SUPERLINK, control={**REFUSED, "/v1//control/list-nodes": status}, **changes)


CASES: list[tuple[Callable[[Any], Findings], Any, list[tuple[str, Level]], str]] = [
    (doctor.of_versions, VERSIONS, [("versions", OK)], "flwr 1.41.0"),
    (doctor.of_versions, replace(VERSIONS, installed={"flwr": "1.42.0"}), [("versions", FAULT)], "1.41.0 is needed"),
    (doctor.of_versions, replace(VERSIONS, installed={"flwr": None}), [("versions", FAULT)], "not installed"),
    (doctor.of_machine, MACHINE, [("disk", OK), ("memory", OK)], "9,000 MiB are free where /srv/x is"),
    (doctor.of_machine, replace(MACHINE, disk_free=2_047 * MIB), [("disk", WARNING), ("memory", OK)], "make room"),
    (doctor.of_machine, replace(MACHINE, disk_free=255 * MIB), [("disk", FAULT), ("memory", OK)], "255 MiB"),
    (doctor.of_machine, replace(MACHINE, memory_available=599 * MIB), [("disk", OK), ("memory", WARNING)], "599 MiB"),
    (doctor.of_file, KEY, [("files", OK)], "0600"),
    (doctor.of_file, replace(KEY, mode=None), [("files", FAULT)], "not there"),
    (doctor.of_file, replace(KEY, mode=stat.S_IFREG | 0o640), [("files", FAULT)], "chmod 600 /srv/x"),
    (doctor.of_file, replace(KEY, mode=stat.S_IFREG | 0o604), [("files", FAULT)], "open to others (0604)"),
    (doctor.of_file, replace(KEY, mode=stat.S_IFREG | 0o640, is_secret=False), [("files", OK)], "0640"),
    (doctor.of_file, replace(KEY, mode=stat.S_IFDIR | 0o755), [("files", FAULT)], "chmod 700 /srv/x"),
    (doctor.of_file, replace(KEY, why="it is empty"), [("files", FAULT)], "it is empty"),
    (doctor.of_file, CREDENTIAL, [("files", OK)], "0440"),
    (doctor.of_file, replace(CREDENTIAL, mode=stat.S_IFREG | 0o444), [("files", FAULT)], "0444"),
    (doctor.of_chain, SEPOLIA, [("chain", OK), ("clock", OK)], "6 s later than the time of the chain's latest block"),
    (doctor.of_chain, replace(SEPOLIA, wanted_id=1), [("chain", FAULT)], "the address book is of chain 1"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW + 54), [("chain", OK), ("clock", OK)], "60 s later"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW + 55), [("chain", OK), ("clock", WARNING)], "up to date"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW + 895), [("chain", OK), ("clock", FAULT)], "901 s later"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW - 9), [("chain", OK), ("clock", OK)], "3 s earlier"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW - 10), [("chain", OK), ("clock", WARNING)], "set the clock"),
    (doctor.of_chain, replace(SEPOLIA, now=NOW - 67), [("chain", OK), ("clock", FAULT)], "61 s earlier"),
    (doctor.of_chain, replace(SEPOLIA, block_seconds=0.2, now=NOW + 24), [("chain", OK), ("clock", OK)], "30 s later"),
    (
        doctor.of_chain, replace(SEPOLIA, chain_id=31_337, wanted_id=31_337, now=NOW + 10**6),
        [("chain", OK), ("clock", OK)], "may be moved",
    ),
    (doctor.of_contracts, CONTRACTS, [("contracts", OK)], "2 contracts"),
    (doctor.of_contracts, replace(CONTRACTS, codes={"Tasks": "none"}), [("contracts", FAULT)], "of Tasks is none"),
    (
        doctor.of_contracts, replace(CONTRACTS, codes={"ConsiliumToken": "none"}), [("contracts", WARNING)],
        "may name any token",
    ),
    (doctor.of_contracts, replace(CONTRACTS, strangers=["Tasks.token"]), [("contracts", FAULT)], "Tasks.token"),
    (doctor.of_money, MONEY, [("money", OK)], "0.100000 ether, enough for 100,000,000 gas"),
    (doctor.of_money, replace(MONEY, wei=3 * 10**15), [("money", OK)], "3,000,000 gas"),
    (doctor.of_money, replace(MONEY, wei=3 * 10**15 - 10**9), [("money", WARNING)], "send 0xA 0.000000 ether or more"),
    (doctor.of_money, replace(MONEY, wei=0), [("money", FAULT)], "send 0xA 0.003000 ether"),
    (doctor.of_money, replace(MONEY, wei=0, is_sponsored=True), [("money", OK)], "a sponsor pays"),
    (reach.of_port, PORT, [("ports", OK)], "is free"),
    (reach.of_port, replace(PORT, held=Held.OURS), [("ports", OK)], "answers as the API"),
    (reach.of_port, replace(PORT, held=Held.FOREIGN), [("ports", FAULT)], "held by something else"),
    (reach.of_port, replace(PORT, held=Held.FORBIDDEN), [("ports", FAULT)], "above 1,023"),
    (reach.of_port, replace(PORT, beyond="203.0.113.1:8080"), [("ports", FAULT)], "for loopback alone"),
    (reach.of_certificate_file, CERTIFICATE, [("tls", OK)], "another 200 days"),
    (reach.of_certificate_file, replace(CERTIFICATE, ends=NOW + 19.9 * DAY), [("tls", WARNING)], "19.9 days"),
    (reach.of_certificate_file, replace(CERTIFICATE, ends=NOW + 20 * DAY), [("tls", OK)], "20 days"),
    (reach.of_certificate_file, replace(CERTIFICATE, ends=NOW - 2 * DAY), [("tls", FAULT)], "ended 2 days ago"),
    (reach.of_certificate_file, replace(CERTIFICATE, starts=NOW + DAY), [("tls", FAULT)], "not valid for another 1 d"),
    (reach.of_certificate_file, replace(CERTIFICATE, is_of_authority=False), [("tls", FAULT)], "authority beside it"),
    (reach.of_certificate_file, replace(CERTIFICATE, fits_key=False), [("tls", FAULT)], "key beside it"),
    (reach.of_face, FACE, [("tls", OK)], "another 60 days, TLSv1.3"),
    (reach.of_face, replace(FACE, ends=NOW + 5 * DAY), [("tls", WARNING)], "have it renewed"),
    (reach.of_face, replace(FACE, why="nothing listens there: start it"), [("tls", FAULT)], "start it"),
    (reach.of_superlink, SUPERLINK, [("superlink", OK), ("control", OK), ("clock", OK)], "in 2 spellings"),
    (reach.of_superlink, with_control(200), [("superlink", OK), ("control", FAULT), ("clock", OK)], "deploy/proxy"),
    (reach.of_superlink, with_control(415), [("superlink", OK), ("control", FAULT), ("clock", OK)], "stop runs"),
    (reach.of_superlink, with_control(403), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (reach.of_superlink, with_control(None), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (reach.of_superlink, with_control(502), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (
        reach.of_superlink, with_control(200, is_own=False),
        [("superlink", OK), ("control", WARNING), ("clock", OK)], "tell the aggregator's operator",
    ),
    (
        reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(502)), [("superlink", WARNING), ("control", OK)],
        "start the aggregator",
    ),
    (
        reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(404)), [("superlink", FAULT), ("control", OK)],
        "let the proxy pass /v1/fleet/ on",
    ),
    (reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(None)), [("superlink", FAULT)], "answers nothing"),
    (
        reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(401, 5.0)),
        [("superlink", OK), ("control", OK), ("clock", FAULT)], "5 s later than that of fl.example.org",
    ),
    (
        reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(401, -304.0)),
        [("superlink", OK), ("control", OK), ("clock", OK)], "304 s earlier",
    ),
    (
        reach.of_superlink, replace(SUPERLINK, fleet=reach.Answer(401, -305.0)),
        [("superlink", OK), ("control", OK), ("clock", FAULT)], "timedatectl",
    ),
    (reach.of_node_key, NODE_KEY, [("node-key", OK)], "announced for task 3"),
    (reach.of_node_key, replace(NODE_KEY, is_announced=False), [("node-key", FAULT)], "restore that key"),
    (reach.of_node_key, replace(NODE_KEY, is_announced=None), [("node-key", WARNING)], "has not joined it"),
    (reach.of_public, PUBLIC, [("public", OK)], "answers at https://c.example.org"),
    (reach.of_public, replace(PUBLIC, status=404), [("public", FAULT)], "answers 404"),
    (reach.of_public, replace(PUBLIC, status=None), [("public", FAULT)], "answers nothing"),
    (reach.of_public, replace(PUBLIC, status=502), [("public", WARNING)], "does not run behind its proxy"),
    (reach.of_public, replace(PUBLIC, exposed=["/metrics"]), [("public", OK), ("public", WARNING)], "/metrics of"),
    (doctor.of_places, [PLACE], [("artifacts", OK)], "answers"),
    (doctor.of_places, [replace(PLACE, why="no such folder")], [("artifacts", FAULT)], "mount it"),
    (
        doctor.of_places, [PLACE, doctor.Place("https://m", "late", False)],
        [("artifacts", OK), ("artifacts", WARNING)], "https://m: late",
    ),
    (doctor.of_database, DATABASE, [("database", OK)], "at migration 0003"),
    (doctor.of_database, replace(DATABASE, found=None), [("database", WARNING)], "no tables yet"),
    (doctor.of_database, replace(DATABASE, found="0002"), [("database", WARNING)], "copy the database"),
    (doctor.of_database, replace(DATABASE, found="9", is_known=False), [("database", FAULT)], "a later version"),
    (doctor.of_database, replace(DATABASE, stranger="chain 1"), [("database", FAULT)], "other contracts (chain 1)"),
    (doctor.of_redis, REDIS, [("redis", OK)], "no limit; appendonly on"),
    (doctor.of_redis, replace(REDIS, keeps_log=False), [("redis", OK)], "appendonly off"),
    (doctor.of_redis, replace(REDIS, refuses="MISCONF"), [("redis", FAULT)], "CONFIG SET appendonly no"),
    (doctor.of_redis, replace(REDIS, refuses="NOREPLICAS"), [("redis", FAULT)], "(NOREPLICAS)"),
    (doctor.of_redis, replace(REDIS, policy="allkeys-lru"), [("redis", WARNING)], "maxmemory-policy noeviction"),
    (doctor.of_redis, replace(REDIS, limit=100 * MIB, used=91 * MIB), [("redis", WARNING)], "91 MiB are used"),
    (doctor.of_redis, replace(REDIS, limit=100 * MIB, used=90 * MIB), [("redis", OK)], "maxmemory 100 MiB"),
]  # fmt: skip


@pytest.mark.parametrize(("judge", "seen", "expected", "words"), CASES)
def test_facts_mean(judge: Callable[[Any], Findings], seen: Any, expected: list[tuple[str, Level]], words: str) -> None:
    found = judge(seen)
    assert [(one.check, one.level) for one in found] == expected
    assert any(words in f"{one.says} → {one.remedy}" for one in found), found
    assert all(bool(one.remedy) == (one.level is not OK) for one in found)


@pytest.mark.parametrize(
    ("url", "is_told"),
    [
        ("http://127.0.0.1:8545", False), ("http://[::1]:8545", False), ("http://10.0.0.7:8545", False),
        ("http://geth:8545", False), ("https://node.example.org/KEY", False), ("http://node.example.org/KEY", True),
        ("redis://:PASSWORD@queue.example.org/0", True), ("rediss://:PASSWORD@queue.example.org/0", False),
        ("postgresql://u:PASSWORD@db.example.org/c", True), ("sqlite:////var/lib/x", False),
        ("postgresql://u:PASSWORD@db.example.org/c?sslmode=verify-full", False), ("http://192.0.2.77", False),
        ("http://8.8.8.8", True),
    ],
)  # fmt: skip
def test_what_goes_between_machines_in_the_clear_is_told(url: str, is_told: bool) -> None:
    found = reach.of_link("it", url)
    assert [one.level for one in found] == ([WARNING] if is_told else [])
    assert not any("KEY" in str(one) or "PASSWORD" in str(one) for one in found)


def told(name: str) -> Findings:
    return [Finding(name, OK, name)]


def test_everybody_is_asked_at_once_and_in_order() -> None:
    both = threading.Barrier(3)

    def look(name: str) -> Findings:
        both.wait(5)
        return told(name)

    found = ask([Check(name, partial(look, name), "it") for name in "abc"])
    assert [one.check for one in found] == ["a", "b", "c"]


def test_who_does_not_answer_keeps_nobody_waiting() -> None:
    never = threading.Event()

    def hangs() -> Findings:
        never.wait(60)
        return []

    checks = [
        Check("chain", hangs, "the chain node"),
        Check("contracts", hangs, "the chain node", "chain"),
        Check("disk", lambda: told("disk"), "this machine"),
    ]
    start = time.monotonic()
    found = ask(checks, 0.2)
    assert time.monotonic() - start < 2
    assert [(one.check, one.level) for one in found] == [("chain", FAULT), ("disk", OK)]
    assert "does not answer within 0.2 s" in found[0].says
    never.set()


def test_what_goes_wrong_is_a_finding_and_keeps_what_it_is_not_to_say() -> None:
    def unreachable() -> Findings:
        raise ChainUnreachable("http://node", "ConnectTimeout")

    def unforeseen() -> Findings:
        raise ValueError("redis://:PASSWORD@host")

    def unreadable() -> Findings:
        raise PermissionError(13, "Permission denied", "/etc/x")

    found = ask(
        [
            Check("chain", unreachable, "the chain node"), Check("money", unreachable, "the chain node", "chain"),
            Check("redis", unforeseen, "Redis"), Check("tls", unreadable, "the certificate"),
        ]
    )  # fmt: skip
    assert [(one.check, one.level, one.values["error"]) for one in found] == [
        ("chain", FAULT, "ChainUnreachable"), ("redis", FAULT, "ValueError"), ("tls", FAULT, "PermissionError"),
    ]  # fmt: skip
    assert "ConnectTimeout" in found[0].says
    assert "PASSWORD" not in str(found)
