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
from consilium_core.connectivity import FleetAnswer
from consilium_operators.doctor.checks import Check, run_checks
from consilium_operators.doctor.findings import (
    MIB,
    Finding,
    Findings,
    Level,
    judge_chain,
    judge_contracts,
    judge_database,
    judge_file,
    judge_machine,
    judge_money,
    judge_redis,
    judge_store,
    judge_versions,
)
from consilium_operators.doctor.servers import (
    Held,
    TlsServer,
    judge_certificate,
    judge_link,
    judge_node_key,
    judge_port,
    judge_public,
    judge_superlink,
    judge_tls,
)

OK, WARNING, FAULT = Level.OK, Level.WARNING, Level.FAULT
NOW, DAY = 1_800_000_000.0, 86_400.0
HERE = Path("/srv/x")

Facts = dict[str, Any]

VERSIONS = Facts(python="3.11.2", consilium="0.1.0", installed={"flwr": "1.41.0"}, pinned={"flwr": "1.41.0"})
MACHINE = Facts(
    folder=HERE, disk_free=9_000 * MIB, disk_total=20_000 * MIB, memory_available=900 * MIB, memory_needed=600 * MIB
)
KEY = Facts(path=HERE, what="the key file", mode=stat.S_IFREG | 0o600)
CREDENTIAL = Facts(
    path=Path("/run/credentials/consilium-worker.service/password"), what="it", mode=stat.S_IFREG | 0o440
)
SEPOLIA = Facts(
    shown_url="https://node", chain_id=11_155_111, wanted_id=11_155_111, block=100, block_time=int(NOW) - 6,
    block_seconds=12.0, now=NOW,
)  # fmt: skip
CONTRACTS = Facts(codes={"Tasks": "same", "ConsiliumToken": "same"}, same="same", strangers=[])
MONEY = Facts(account="0xA", wei=10**17, price=10**9, gas=3_000_000)
PORT = Facts(what="the API", address="127.0.0.1:8080", held=Held.FREE)
CERTIFICATE = Facts(
    what="its certificate", path=HERE, starts=NOW - DAY, ends=NOW + 200 * DAY, now=NOW, is_of_authority=True,
    fits_key=True, can_be_renewed=False,
)  # fmt: skip
TLS = TlsServer("fl.example.org:443", None, "TLSv1.3", NOW + 60 * DAY, NOW)
REFUSED = {"/v1/control/list-nodes": 404, "//v1/control/list-nodes": 404}
SUPERLINK = Facts(
    address="fl.example.org:443", fleet=FleetAnswer(401, 0.2), control=REFUSED, is_own=True, task="1-0xaa-3"
)
NODE_KEY = Facts(task=3, path=HERE, is_announced=True)
PUBLIC = Facts(what="the API", url="https://c.example.org", status=200, right=(200,))
STORE = Facts(shown="/srv/artifacts", why=None)
DATABASE = Facts(shown="sqlite:///x", found="0003", newest="0003", is_known=True)
REDIS = Facts(shown="Redis at 127.0.0.1:6379", policy="noeviction", limit=0, used=2 * MIB, keeps_log=True)


def changed(facts: Facts, **changes: Any) -> Facts:
    return facts | changes


def tls(**changes: Any) -> Facts:
    return {"what": "the SuperLink", "seen": replace(TLS, **changes)}


def with_control(status: int | None, **changes: Any) -> Facts:
    return changed(SUPERLINK, control={**REFUSED, "/v1//control/list-nodes": status}, **changes)


CASES: list[tuple[Callable[..., Findings], Facts, list[tuple[str, Level]], str]] = [
    (judge_versions, VERSIONS, [("versions", OK)], "flwr 1.41.0"),
    (judge_versions, changed(VERSIONS, installed={"flwr": "1.42.0"}), [("versions", FAULT)], "1.41.0 is needed"),
    (judge_versions, changed(VERSIONS, installed={"flwr": None}), [("versions", FAULT)], "not installed"),
    (judge_machine, MACHINE, [("disk", OK), ("memory", OK)], "9,000 MiB are free on the disk of /srv/x"),
    (judge_machine, changed(MACHINE, disk_free=2_047 * MIB), [("disk", WARNING), ("memory", OK)], "free some space"),
    (judge_machine, changed(MACHINE, disk_free=255 * MIB), [("disk", FAULT), ("memory", OK)], "255 MiB"),
    (judge_machine, changed(MACHINE, memory_available=599 * MIB), [("disk", OK), ("memory", WARNING)], "599 MiB"),
    (judge_file, KEY, [("files", OK)], "0600"),
    (judge_file, changed(KEY, mode=None), [("files", FAULT)], "is missing"),
    (judge_file, changed(KEY, mode=stat.S_IFREG | 0o640), [("files", FAULT)], "chmod 600 /srv/x"),
    (judge_file, changed(KEY, mode=stat.S_IFREG | 0o604), [("files", FAULT)], "open to others (0604)"),
    (judge_file, changed(KEY, mode=stat.S_IFREG | 0o640, is_secret=False), [("files", OK)], "0640"),
    (judge_file, changed(KEY, mode=stat.S_IFDIR | 0o755), [("files", FAULT)], "chmod 700 /srv/x"),
    (judge_file, changed(KEY, why="it is empty"), [("files", FAULT)], "it is empty"),
    (judge_file, CREDENTIAL, [("files", OK)], "0440"),
    (judge_file, changed(CREDENTIAL, mode=stat.S_IFREG | 0o444), [("files", FAULT)], "0444"),
    (judge_chain, SEPOLIA, [("chain", OK), ("clock", OK)], "6 s ahead of the chain's latest block"),
    (judge_chain, changed(SEPOLIA, wanted_id=1), [("chain", FAULT)], "the address book is for chain 1"),
    (judge_chain, changed(SEPOLIA, now=NOW + 54), [("chain", OK), ("clock", OK)], "60 s ahead"),
    (judge_chain, changed(SEPOLIA, now=NOW + 55), [("chain", OK), ("clock", WARNING)], "up to date"),
    (judge_chain, changed(SEPOLIA, now=NOW + 895), [("chain", OK), ("clock", FAULT)], "901 s ahead"),
    (judge_chain, changed(SEPOLIA, now=NOW - 9), [("chain", OK), ("clock", OK)], "3 s behind"),
    (judge_chain, changed(SEPOLIA, now=NOW - 10), [("chain", OK), ("clock", WARNING)], "set the clock"),
    (judge_chain, changed(SEPOLIA, now=NOW - 67), [("chain", OK), ("clock", FAULT)], "61 s behind"),
    (judge_chain, changed(SEPOLIA, block_seconds=0.2, now=NOW + 24), [("chain", OK), ("clock", OK)], "30 s ahead"),
    (
        judge_chain, changed(SEPOLIA, chain_id=31_337, wanted_id=31_337, now=NOW + 10**6),
        [("chain", OK), ("clock", OK)], "may be moved",
    ),
    (judge_contracts, CONTRACTS, [("contracts", OK)], "2 contracts"),
    (judge_contracts, changed(CONTRACTS, codes={"Tasks": "none"}), [("contracts", FAULT)], "of Tasks holds none"),
    (
        judge_contracts, changed(CONTRACTS, codes={"ConsiliumToken": "none"}), [("contracts", WARNING)],
        "may name any token",
    ),
    (judge_contracts, changed(CONTRACTS, strangers=["Tasks.token"]), [("contracts", FAULT)], "Tasks.token"),
    (judge_money, MONEY, [("money", OK)], "0.100000 ether, enough for 100,000,000 gas"),
    (judge_money, changed(MONEY, wei=3 * 10**15), [("money", OK)], "3,000,000 gas"),
    (judge_money, changed(MONEY, wei=3 * 10**15 - 10**9), [("money", WARNING)], "send 0xA 0.000001 ether or more"),
    (judge_money, changed(MONEY, wei=0), [("money", FAULT)], "send 0xA 0.003000 ether"),
    (judge_money, changed(MONEY, wei=0, is_sponsored=True), [("money", OK)], "a sponsor pays"),
    (judge_port, PORT, [("ports", OK)], "is free"),
    (judge_port, changed(PORT, held=Held.OURS), [("ports", OK)], "answers as the API"),
    (judge_port, changed(PORT, held=Held.FOREIGN), [("ports", FAULT)], "used by another program"),
    (judge_port, changed(PORT, held=Held.FORBIDDEN), [("ports", FAULT)], "above 1,023"),
    (judge_port, changed(PORT, beyond="203.0.113.1:8080"), [("ports", FAULT)], "for loopback only"),
    (judge_certificate, CERTIFICATE, [("tls", OK)], "another 200 days"),
    (judge_certificate, changed(CERTIFICATE, ends=NOW + 19.9 * DAY), [("tls", WARNING)], "19.9 days"),
    (judge_certificate, changed(CERTIFICATE, ends=NOW + 20 * DAY), [("tls", OK)], "20 days"),
    (judge_certificate, changed(CERTIFICATE, ends=NOW - 2 * DAY), [("tls", FAULT)], "ended 2 days ago"),
    (judge_certificate, changed(CERTIFICATE, starts=NOW + DAY), [("tls", FAULT)], "not valid for another 1 d"),
    (judge_certificate, changed(CERTIFICATE, is_of_authority=False), [("tls", FAULT)], "authority beside it"),
    (judge_certificate, changed(CERTIFICATE, fits_key=False), [("tls", FAULT)], "key beside it"),
    (judge_tls, tls(), [("tls", OK)], "another 60 days, TLSv1.3"),
    (judge_tls, tls(ends=NOW + 5 * DAY), [("tls", WARNING)], "renew it"),
    (judge_tls, tls(why="nothing listens there: start it"), [("tls", FAULT)], "start it"),
    (judge_superlink, SUPERLINK, [("superlink", OK), ("control", OK), ("clock", OK)], "in 2 spellings"),
    (judge_superlink, with_control(200), [("superlink", OK), ("control", FAULT), ("clock", OK)], "deploy/proxy"),
    (judge_superlink, with_control(415), [("superlink", OK), ("control", FAULT), ("clock", OK)], "stop runs"),
    (judge_superlink, with_control(403), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (judge_superlink, with_control(None), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (judge_superlink, with_control(502), [("superlink", OK), ("control", OK), ("clock", OK)], "is refused"),
    (
        judge_superlink, with_control(200, is_own=False),
        [("superlink", OK), ("control", WARNING), ("clock", OK)], "tell the aggregator's operator",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(502)), [("superlink", WARNING), ("control", OK)],
        "start the aggregator",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(404)), [("superlink", FAULT), ("control", OK)],
        "let the proxy pass /v1/fleet/ on",
    ),
    (judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(None)), [("superlink", FAULT)], "answers nothing"),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(401, 0.2, "1-0xaa-3")),
        [("superlink", OK), ("control", OK), ("clock", OK)], "answers as a SuperLink",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(401, 0.2, "1-0xaa-33")),
        [("superlink", FAULT), ("control", OK), ("clock", OK)], "is the address of another task",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(401, 5.0)),
        [("superlink", OK), ("control", OK), ("clock", FAULT)], "5 s ahead of that of fl.example.org",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(401, -304.0)),
        [("superlink", OK), ("control", OK), ("clock", OK)], "304 s behind",
    ),
    (
        judge_superlink, changed(SUPERLINK, fleet=FleetAnswer(401, -305.0)),
        [("superlink", OK), ("control", OK), ("clock", FAULT)], "timedatectl",
    ),
    (judge_node_key, NODE_KEY, [("node-key", OK)], "announced for task 3"),
    (judge_node_key, changed(NODE_KEY, is_announced=False), [("node-key", FAULT)], "restore that key"),
    (judge_node_key, changed(NODE_KEY, is_announced=None), [("node-key", WARNING)], "has not joined it"),
    (judge_public, PUBLIC, [("public", OK)], "answers at https://c.example.org"),
    (judge_public, changed(PUBLIC, status=404), [("public", FAULT)], "answers 404"),
    (judge_public, changed(PUBLIC, status=None), [("public", FAULT)], "answers nothing"),
    (judge_public, changed(PUBLIC, status=502), [("public", WARNING)], "does not run behind its proxy"),
    (judge_public, changed(PUBLIC, exposed=["/metrics"]), [("public", OK), ("public", WARNING)], "/metrics of"),
    (judge_store, STORE, [("artifacts", OK)], "answers"),
    (judge_store, changed(STORE, why="no such folder"), [("artifacts", FAULT)], "mount"),
    (
        judge_store, Facts(shown="https://m", why="late", is_needed=False), [("artifacts", WARNING)],
        "https://m: late",
    ),
    (judge_database, DATABASE, [("database", OK)], "at migration 0003"),
    (judge_database, changed(DATABASE, found=None), [("database", WARNING)], "no tables yet"),
    (judge_database, changed(DATABASE, found="0002"), [("database", WARNING)], "copy the database"),
    (judge_database, changed(DATABASE, found="9", is_known=False), [("database", FAULT)], "a later version"),
    (judge_database, changed(DATABASE, stranger="chain 1"), [("database", FAULT)], "other contracts (chain 1)"),
    (judge_redis, REDIS, [("redis", OK)], "no limit; appendonly on"),
    (judge_redis, changed(REDIS, keeps_log=False), [("redis", OK)], "appendonly off"),
    (judge_redis, changed(REDIS, refuses="MISCONF"), [("redis", FAULT)], "CONFIG SET appendonly no"),
    (judge_redis, changed(REDIS, refuses="NOREPLICAS"), [("redis", FAULT)], "(NOREPLICAS)"),
    (judge_redis, changed(REDIS, policy="allkeys-lru"), [("redis", WARNING)], "maxmemory-policy noeviction"),
    (judge_redis, changed(REDIS, limit=100 * MIB, used=91 * MIB), [("redis", WARNING)], "91 MiB are used"),
    (judge_redis, changed(REDIS, limit=100 * MIB, used=90 * MIB), [("redis", OK)], "maxmemory 100 MiB"),
]  # fmt: skip


@pytest.mark.parametrize(("judge", "seen", "expected", "words"), CASES)
def test_facts_mean(judge: Callable[..., Findings], seen: Facts, expected: list[tuple[str, Level]], words: str) -> None:
    found = judge(**seen)
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
    found = judge_link("it", url)
    assert [one.level for one in found] == ([WARNING] if is_told else [])
    assert not any("KEY" in str(one) or "PASSWORD" in str(one) for one in found)


def told(name: str) -> Findings:
    return [Finding(name, OK, name)]


def test_everybody_is_asked_at_once_and_in_order() -> None:
    both = threading.Barrier(3)

    def look(name: str) -> Findings:
        both.wait(5)
        return told(name)

    found = run_checks([Check(name, partial(look, name), "it") for name in "abc"])
    assert [one.check for one in found] == ["a", "b", "c"]


def test_who_does_not_answer_keeps_nobody_waiting() -> None:
    never = threading.Event()

    def hangs() -> Findings:
        never.wait(60)
        return []

    checks = [
        Check("chain", hangs, "the chain node"),
        Check("contracts", hangs, "the chain node", ("chain",)),
        Check("disk", lambda: told("disk"), "this machine"),
    ]
    start = time.monotonic()
    found = run_checks(checks, 0.2)
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

    found = run_checks(
        [
            Check("chain", unreachable, "the chain node"), Check("money", unreachable, "the chain node", ("chain",)),
            Check("redis", unforeseen, "Redis"), Check("tls", unreadable, "the certificate"),
        ]
    )  # fmt: skip
    assert [(one.check, one.level, one.values["error"]) for one in found] == [
        ("chain", FAULT, "ChainUnreachable"), ("redis", FAULT, "ValueError"), ("tls", FAULT, "PermissionError"),
    ]  # fmt: skip
    assert "ConnectTimeout" in found[0].says
    assert "PASSWORD" not in str(found)
