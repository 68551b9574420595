"""`consilium doctor` on what is really there: files, chains, databases, ports, certificates, each well and not."""

from __future__ import annotations

import datetime
import json
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import tomli_w
from chain_driver import LocalChain, TaskDriver
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.rpc.local_node import LocalNode, free_port
from consilium_cli.main import app
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key, read_transport_key
from consilium_core.children import child_environment
from consilium_core.private_files import write_private_file
from consilium_operators.doctor import checks, probes
from consilium_server.certificates import ensure_certificates
from consilium_server.database.engine import connect, open_database, writing
from consilium_server.database.tables import Source
from consilium_server.index import store
from consilium_server.sponsor.service import service
from eth_account import Account
from eth_account.signers.local import LocalAccount
from proxy_driver import Authority
from redis_driver import PASSWORD, Redis, running_redis
from span_receiver import receiving
from sponsor_driver import served as served_over_https
from sqlalchemy import text
from typer.testing import CliRunner

SEPOLIA = 11_155_111
NODES = ("hospital", "voter")
NOW = datetime.datetime.now(datetime.UTC)


@dataclass
class Report:
    code: int
    findings: list[dict[str, Any]]

    def levels(self, check: str) -> list[str]:
        return [one["level"] for one in self.findings if one["check"] == check]

    def says(self, check: str) -> str:
        return "; ".join(f"{one['says']} → {one['remedy']}" for one in self.findings if one["check"] == check)

    @property
    def faults(self) -> set[str]:
        return {one["check"] for one in self.findings if one["level"] == "fault"}


class Stand:
    """A machine's files for any role, all in order."""

    def __init__(self, chain: LocalChain, folder: Path) -> None:
        self.chain, self.folder = chain, folder
        self.account: LocalAccount = Account.from_key(secrets.token_bytes(32))
        chain.rpc("anvil_setBalance", self.account.address, hex(10**19))
        write_private_file(folder / "password", "secret\n")
        write_keystore(folder / "key.json", self.account, "secret", LIGHT_SCRYPT_N)
        chain.deployment.write(folder / "deployment.json")
        (folder / "artifacts").mkdir()
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.port = free_port()
        self.config = folder / "role.toml"

    def settings(self, role: str) -> dict[str, Any]:
        common = {"home": str(self.home), "deployment": str(self.folder / "deployment.json")}
        chain = {"chain_url": self.chain.node.url}
        keys = {"keystore": str(self.folder / "key.json"), "password_file": str(self.folder / "password")}
        store = {"artifacts": [str(self.folder / "artifacts")]}
        if role not in NODES:
            open_database(f"sqlite:///{self.home / 'index.sqlite'}").dispose()
        found: dict[str, dict[str, Any]] = {
            "api": {**common, **chain, **store, "origin": f"http://127.0.0.1:{self.port}", "port": self.port},
            "index": {**common, **chain, **store},
            "worker": {**common, **chain, **store, **keys},
            "aggregator": {**common, **chain, **store, **keys, "task": 1, "superlink_port": self.port},
            "sponsor": {**common, **chain, **keys, "task": 1, "port": self.port},
            "hospital": {**chain, **store, "data": "rows.csv"},
            "voter": {**chain, **store, "data": "rows.csv"},
        }
        return found[role]

    def write(self, role: str, **changes: Any) -> None:
        given = {name: value for name, value in (self.settings(role) | changes).items() if value is not None}
        if role not in NODES:
            write_private_file(self.config, tomli_w.dumps(given))
            return
        shutil.rmtree(self.home)
        self.home.mkdir(mode=0o700)
        for name in ("key.json", "password", "deployment.json"):
            shutil.copy2(self.folder / name, self.home / name)
        (self.home / "rows.csv").write_text("age,sick\n1,0\n")
        policy: dict[str, Any] = {"operators": "any", "models": "any"}
        if role == "hospital":
            make_transport_key(self.home / "transport.key")
            HospitalHome.create(self.home, given, policy | {"columns": "any"})
        else:
            VoterHome.create(self.home, given, policy | {"metrics": "any"})

    def doctor(self, role: str, *arguments: str) -> Report:
        where = ["--home", str(self.home)] if role in NODES else ["--config", str(self.config)]
        ran = CliRunner().invoke(app, ["doctor", role, *where, "--json", *arguments])
        assert ran.exit_code in (0, 1), ran.output
        told = json.loads(ran.stdout)
        assert told["role"] == role
        assert told["fit"] == (ran.exit_code == 0)
        assert all(bool(one["remedy"]) == (one["level"] != "ok") for one in told["findings"])
        return Report(ran.exit_code, told["findings"])


@pytest.fixture
def stand(local_chain: LocalChain, tmp_path: Path) -> Stand:
    return Stand(local_chain, tmp_path)


CHECKS = {
    "api": {"versions", "disk", "memory", "files", "chain", "clock", "contracts", "database", "artifacts", "ports"},
    "index": {"versions", "disk", "memory", "files", "chain", "clock", "contracts", "database", "artifacts"},
    "worker": {
        "versions", "disk", "memory", "files", "chain", "clock", "contracts", "money", "database", "artifacts",
    },
    "aggregator": {
        "versions", "disk", "memory", "files", "chain", "clock", "contracts", "money", "artifacts", "ports", "tls",
    },
    "sponsor": {"versions", "disk", "memory", "files", "chain", "clock", "contracts", "money", "ports", "tls"},
    "hospital": {
        "versions", "disk", "memory", "files", "chain", "clock", "contracts", "money", "artifacts", "policy",
        "training",
    },
    "voter": {"versions", "disk", "memory", "files", "chain", "clock", "contracts", "money", "artifacts", "policy"},
}  # fmt: skip


@pytest.mark.parametrize("role", CHECKS)
def test_what_is_in_order_is_found_so(stand: Stand, role: str) -> None:
    stand.write(role)
    if role in ("aggregator", "sponsor"):
        ensure_certificates(stand.home / "tls")
    found = stand.doctor(role)
    # Nobody serves the API yet, and a tested machine may be full.
    assert found.faults - {"public", "disk"} == set(), found.findings
    assert {one["check"] for one in found.findings} - {"public"} == CHECKS[role]


# Files, chain and money

Break = Callable[[Stand], dict[str, Any]]


def _mode(name: str, mode: int) -> Break:
    def broken(stand: Stand) -> dict[str, Any]:
        (stand.folder / name).chmod(mode)
        return {}

    return broken


def _content(name: str, content: str) -> Break:
    def broken(stand: Stand) -> dict[str, Any]:
        write_private_file(stand.folder / name, content)
        return {}

    return broken


def _gone(name: str) -> Break:
    def broken(stand: Stand) -> dict[str, Any]:
        (stand.folder / name).unlink()
        return {}

    return broken


def _book(**changes: Any) -> Break:
    def broken(stand: Stand) -> dict[str, Any]:
        replace(stand.chain.deployment, **changes).write(stand.folder / "deployment.json")
        return {}

    return broken


def _exchanged(stand: Stand) -> dict[str, Any]:
    own = stand.chain.deployment
    replace(own, beacon=own.sponsored_account).write(stand.folder / "deployment.json")
    return {}


def _patched(stand: Stand) -> dict[str, Any]:
    """Somebody else's Staking, one byte off."""
    own = stand.chain.deployment
    code = bytearray.fromhex(stand.chain.rpc("eth_getCode", own.staking, "latest")[2:])
    code[40] ^= 1  # of what every call runs through
    place = Account.from_key(secrets.token_bytes(32)).address
    stand.chain.rpc("anvil_setCode", place, "0x" + code.hex())
    replace(own, staking=place).write(stand.folder / "deployment.json")
    return {}


def _copied(field: str) -> Break:
    """The very same code at another address, which the other contracts do not name."""

    def broken(stand: Stand) -> dict[str, Any]:
        own = stand.chain.deployment
        place = Account.from_key(secrets.token_bytes(32)).address
        stand.chain.rpc("anvil_setCode", place, stand.chain.rpc("eth_getCode", getattr(own, field), "latest"))
        return _book(**{field: place})(stand)

    return broken


def _ether(wei: int) -> Break:
    def broken(stand: Stand) -> dict[str, Any]:
        stand.chain.rpc("anvil_setBalance", stand.account.address, hex(wei))
        return {}

    return broken


def _setting(**changes: Any) -> Break:
    return lambda stand: changes


def _readable_broker(stand: Stand) -> dict[str, Any]:
    return {"broker_url": f"redis://:{PASSWORD}@127.0.0.1:1/0"}


NOBODY = "0x" + "ab" * 20
DEAD = "http://127.0.0.1:1"
BROKEN: dict[str, tuple[Break, str, str, str]] = {
    "key file open to others": (_mode("key.json", 0o640), "files", "fault", "is open to others (0640) → chmod 600"),
    "password open to others": (_mode("password", 0o604), "files", "fault", "is open to others (0604) → chmod 600"),
    "no key file": (_gone("key.json"), "files", "fault", "key.json is missing"),
    "no password": (_gone("password"), "files", "fault", "password is missing"),
    "empty password": (_content("password", "\n"), "files", "fault", "password: it is empty"),
    "key file of nothing": (_content("key.json", "{}"), "files", "fault", "is not a key file"),
    "no chain node": (_setting(chain_url=DEAD), "chain", "fault", "no chain node answers at http://127.0.0.1:1"),
    "no address book": (_gone("deployment.json"), "chain", "fault", "does not exist; deploy first"),
    "another chain's book": (_book(chain_id=1), "chain", "fault", "the address book is for chain 1"),
    "no contract there": (_book(tasks=NOBODY), "contracts", "fault", "the address of Tasks holds no contract"),
    "another contract there": (_exchanged, "contracts", "fault", "the address of PrevrandaoBeacon holds other code"),
    "a patched contract": (_patched, "contracts", "fault", "the address of Staking holds other code"),
    "a token that nobody names": (
        _copied("token"),
        "contracts",
        "fault",
        "another address for Tasks.token, Staking.token, ModelShares.token",
    ),
    "no model shares there": (_book(model_shares=NOBODY), "contracts", "fault", "of ModelShares holds no contract"),
    "model shares that nobody names": (
        _copied("model_shares"),
        "contracts",
        "fault",
        "another address for Staking.modelShares",
    ),
    "no ether": (_ether(0), "money", "fault", "send 0x"),
    "little ether": (_ether(10**12), "money", "warning", "has 0.000001 ether, enough for"),
    "no artifact store": (_setting(artifacts=["/nowhere/at/all"]), "artifacts", "fault", "/nowhere/at/all: no such"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_in_order_is_named(stand: Stand, what: str) -> None:
    broken, check, level, words = BROKEN[what]
    stand.write("worker", **broken(stand))
    found = stand.doctor("worker")
    assert level in found.levels(check), found.findings
    assert words in found.says(check)
    assert found.code == (1 if level == "fault" or found.faults else 0)


def test_a_mirror_may_be_away(stand: Stand) -> None:
    stand.write("worker", artifacts=[str(stand.folder / "artifacts"), "http://127.0.0.1:1/mirror"])
    assert stand.doctor("worker").levels("artifacts") == ["ok", "warning"]


def test_each_chain_node_is_checked(stand: Stand) -> None:
    for urls, levels in (
        ([stand.chain.node.url, DEAD], ["ok", "warning"]),
        ([DEAD, stand.chain.node.url], ["fault", "ok"]),
    ):
        stand.write("worker", chain_url=urls)
        found = stand.doctor("worker")
        assert found.levels("chain") == levels
        assert found.levels("money") == ["ok"]
        stand.write("hospital", chain_url=urls)
        assert stand.doctor("hospital").levels("chain") == levels


def test_a_store_that_takes_nothing_is_a_fault(stand: Stand) -> None:
    stand.write("worker", artifacts=[str(stand.folder / "password")])
    assert stand.doctor("worker").levels("artifacts") == ["fault"]


def test_a_chain_node_that_does_not_answer_is_told_once(stand: Stand) -> None:
    stand.write("worker", chain_url=DEAD)
    found = stand.doctor("worker")
    assert [one["check"] for one in found.findings if "chain node" in one["says"]] == ["chain"]


def test_passwords_in_a_configuration_are_for_its_user_alone(stand: Stand) -> None:
    for mode, expected in ((0o600, []), (0o644, ["fault"])):
        stand.write("worker", broker_url=f"redis://:{PASSWORD}@127.0.0.1:1/0")
        stand.config.chmod(mode)
        found = stand.doctor("worker")
        assert [level for level in found.levels("files") if level != "ok"] == expected
        assert PASSWORD not in str(found.findings)
    stand.write("worker")
    stand.config.chmod(0o644)  # nothing is to be hidden
    assert "fault" not in stand.doctor("worker").levels("files")


@pytest.mark.parametrize(("offset", "level"), [(0, "ok"), (-300, "warning"), (-7_200, "fault"), (600, "fault")])
def test_the_clock_is_held_against_the_chains(stand: Stand, offset: int, level: str) -> None:
    with LocalNode(genesis=round(time.time()) + offset) as node:
        for method, arguments in (("evm_mine", []), ("evm_mine", []), ("anvil_setChainId", [SEPOLIA])):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": arguments}
            assert "error" not in httpx.post(node.url, json=request).json()
        replace(stand.chain.deployment, chain_id=SEPOLIA).write(stand.folder / "deployment.json")
        stand.write("index", chain_url=node.url)
        found = stand.doctor("index")
    assert found.levels("clock") == [level], found.findings
    assert "the chain's latest block" in found.says("clock")


# Database and Redis


def _migrated(url: str, statement: str) -> None:
    engine = open_database(url)
    with writing(engine) as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_a_database_is_known_by_its_migration(stand: Stand, database_url: str) -> None:
    def look() -> tuple[list[str], str]:
        stand.write("index", database_url=database_url)
        found = stand.doctor("index")
        return found.levels("database"), found.says("database")

    assert look()[0] == ["warning"]  # empty
    open_database(database_url).dispose()
    assert look() == (["ok"], look()[1])
    _migrated(database_url, "UPDATE alembic_version SET version_num = '0002'")
    levels, says = look()
    assert levels == ["warning"]
    assert "is at migration 0002, but this version needs 0010" in says
    engine = connect(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    levels, says = look()
    assert levels == ["fault"]
    assert "migration 9999, from a later version" in says


def test_looking_makes_no_database(stand: Stand) -> None:
    stand.write("index")
    shutil.rmtree(stand.home)
    stand.home.mkdir(mode=0o700)
    assert stand.doctor("index").levels("database") == ["warning"]
    assert list(stand.home.iterdir()) == []


def test_a_database_of_other_contracts_is_refused(stand: Stand, database_url: str) -> None:
    engine = open_database(database_url)
    for tasks, level in ((stand.chain.deployment.tasks, "ok"), (NOBODY, "fault")):
        with writing(engine) as connection:
            connection.execute(store.table_of(Source).delete())
            store.add(connection, [Source(stand.chain.deployment.chain_id, tasks)])
        stand.write("index", database_url=database_url)
        assert stand.doctor("index").levels("database") == [level]
    engine.dispose()


def test_a_database_that_does_not_answer_is_named_without_its_password(stand: Stand) -> None:
    stand.write("index", database_url="postgresql://u:s3cret-of-db@127.0.0.1:1/c")
    found = stand.doctor("index")
    assert found.levels("database") == ["fault"]
    assert "127.0.0.1:1" in found.says("database")
    assert "s3cret-of-db" not in str(found.findings)


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with running_redis(tmp_path_factory.mktemp("redis") / "data") as server:
        yield server


@pytest.mark.parametrize(
    ("policy", "log", "level", "words"),
    [
        ("noeviction", "yes", "ok", "appendonly on"),
        ("noeviction", "no", "ok", "appendonly off"),
        ("allkeys-lru", "yes", "warning", "CONFIG SET maxmemory-policy noeviction"),
        ("volatile-ttl", "yes", "warning", "maxmemory-policy volatile-ttl"),
    ],
)
def test_redis_is_to_drop_nothing(stand: Stand, queue: Redis, policy: str, log: str, level: str, words: str) -> None:
    with queue.client() as client:
        client.config_set("maxmemory-policy", policy)
        client.config_set("appendonly", log)
    stand.write("worker", broker_url=queue.url)
    found = stand.doctor("worker")
    assert found.levels("redis") == [level]
    assert words in found.says("redis")
    assert PASSWORD not in str(found.findings)


@pytest.mark.parametrize(("setting", "code"), [("maxmemory", "OOM"), ("min-replicas-to-write", "NOREPLICAS")])
def test_a_redis_that_refuses_to_write_is_found_out_without_writing(
    stand: Stand, queue: Redis, setting: str, code: str
) -> None:
    stand.write("worker", broker_url=queue.url)
    with queue.client() as client:
        client.config_set(setting, 1)
        try:
            refused = stand.doctor("worker")
        finally:
            client.config_set(setting, 0)
        client.config_set("maxmemory-policy", "noeviction")
        assert stand.doctor("worker").levels("redis") == ["ok"]
        assert client.dbsize() == 0
    assert refused.levels("redis") == ["fault"]
    assert f"it refuses to write ({code})" in refused.says("redis")


def test_a_redis_that_is_away_or_refuses_is_named_without_its_password(stand: Stand, queue: Redis) -> None:
    for url in (f"redis://:{PASSWORD}@127.0.0.1:1/0", f"redis://:another-{PASSWORD}@127.0.0.1:{queue.port}/0"):
        stand.write("worker", broker_url=url)
        found = stand.doctor("worker")
        assert found.levels("redis") == ["fault"]
        assert "the broker accepts no messages" in found.says("redis")
        assert PASSWORD not in str(found.findings)


@pytest.mark.parametrize("role", ["worker", "hospital"])
def test_a_collector_that_takes_no_spans_is_a_warning(stand: Stand, role: str) -> None:
    headers = stand.folder / "headers"
    write_private_file(headers, "Authorization: s3cret-of-collector\n")
    with receiving() as receiver:
        stand.write(role, tracing={"endpoint": receiver.endpoint, "headers_file": str(headers)})
        found = stand.doctor(role)
        assert found.levels("tracing") == ["ok"]
        assert [one["authorization"] for one in receiver.headers] == ["s3cret-of-collector"]
        receiver.status = 401
        refused = stand.doctor(role)
        headers.chmod(0o644)
        assert "the headers of the collector" in stand.doctor(role).says("files")
    headers.chmod(0o600)
    away = stand.doctor(role)
    assert (refused.levels("tracing"), away.levels("tracing")) == (["warning"], ["warning"])
    assert "it answered with status 401; the role runs without it → start it, or correct" in refused.says("tracing")
    assert "it does not answer (ConnectionRefusedError)" in away.says("tracing")
    assert "s3cret" not in str([found.findings, refused.findings, away.findings])


# Ports, certificates, servers


@contextmanager
def listening(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Something that takes connections and says nothing."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(64)
        yield taken.getsockname()[1]


@pytest.mark.parametrize("role", ["aggregator", "sponsor"])
def test_a_port_that_something_else_holds_is_a_fault(stand: Stand, role: str) -> None:
    name = "superlink_port" if role == "aggregator" else "port"
    stand.write(role)
    assert stand.doctor(role).levels("ports") == ["ok"]
    with listening() as port:
        stand.write(role, **{name: port})
        found = stand.doctor(role)
    assert found.levels("ports") == ["fault"]
    assert "is used by another program" in found.says("ports")


def test_what_is_for_loopback_listens_nowhere_else(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_outward_address", lambda: "127.0.0.2")  # a machine of the tests may have no other
    stand.write("aggregator")
    assert stand.doctor("aggregator").levels("ports") == ["ok"]
    with listening("127.0.0.2", stand.port):
        found = stand.doctor("aggregator")
    assert found.levels("ports") == ["fault"]
    assert f"127.0.0.2:{stand.port}" in found.says("ports")


@pytest.mark.parametrize(
    ("days", "starts_in", "level", "words"),
    [
        (300, 0, "ok", "is valid for another"), (10, 0, "warning", "move"), (-3, 0, "fault", "ended 3"),
        (30, 5, "fault", "is not valid for another"),
    ],
)  # fmt: skip
def test_a_certificates_days_are_counted(stand: Stand, days: float, starts_in: float, level: str, words: str) -> None:
    tls, authority = stand.home / "tls", Authority(stand.folder / "authority", days=400)
    certificate, key = authority.sign("localhost", days=days, starts_in=starts_in)
    tls.mkdir(mode=0o700)
    for made, name in ((authority.certificate, "ca.crt"), (certificate, "server.pem"), (key, "server.key")):
        shutil.copy2(made, tls / name)
    stand.write("aggregator")
    found = stand.doctor("aggregator")
    assert found.levels("tls") == [level], found.findings
    assert words in found.says("tls")


@pytest.mark.parametrize(("other", "words"), [("ca.crt", "authority beside it"), ("server.key", "key beside it")])
def test_a_certificate_fits_what_lies_beside_it(stand: Stand, other: str, words: str) -> None:
    tls = ensure_certificates(stand.home / "tls").authority.parent
    ensure_certificates(stand.folder / "another")
    shutil.copy2(stand.folder / "another" / other, tls / other)
    stand.write("aggregator")
    found = stand.doctor("aggregator")
    assert found.levels("tls") == ["fault"]
    assert words in found.says("tls")


def test_a_keys_mode_counts_for_certificates_too(stand: Stand) -> None:
    ensure_certificates(stand.home / "tls").key.chmod(0o644)
    stand.write("sponsor")
    assert "the certificate's key" in stand.doctor("sponsor").says("files")
    assert stand.doctor("sponsor").code == 1


def test_what_opens_decoys_is_for_the_aggregator_alone(stand: Stand) -> None:
    stand.write("aggregator")
    for name in ("1", "2"):
        write_private_file(stand.home / "decoys" / "0x" / name, "seed")
    assert "fault" not in stand.doctor("aggregator").levels("files")
    (stand.home / "decoys" / "0x" / "2").chmod(0o604)
    assert "decoys/0x/2 is open to others (0604)" in stand.doctor("aggregator").says("files")


def test_a_worker_looks_after_its_tasks(stand: Stand) -> None:
    folder = stand.home / "tasks" / "31337-0x-1"
    ensure_certificates(folder / "tls")
    aggregator = stand.settings("aggregator") | {"home": str(folder)}
    write_private_file(folder / "node.toml", tomli_w.dumps(aggregator))
    stand.write("worker")
    found = stand.doctor("worker")
    assert (found.levels("ports"), found.levels("tls")) == (["ok"], ["ok"])


@pytest.fixture(scope="module")
def served(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The API itself, as a process."""
    stand = Stand(local_chain, tmp_path_factory.mktemp("served"))
    stand.write("api")
    command = [sys.executable, "-m", "consilium_cli.main", "server", "api", "--config", str(stand.config)]
    with (stand.folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=child_environment())
    try:
        end = time.monotonic() + 60
        while not probes.answers_as_api(f"http://127.0.0.1:{stand.port}"):
            assert process.poll() is None, (stand.folder / "said").read_text()
            assert time.monotonic() < end
            time.sleep(0.1)
        yield stand
    finally:
        process.terminate()
        process.wait(30)


def test_an_api_that_runs_is_known_as_such(served: Stand) -> None:
    found = served.doctor("api")
    assert (found.levels("ports"), found.levels("public")) == (["ok"], ["ok"])
    assert "answers as the API" in found.says("ports")
    assert found.code == 0 or found.faults == {"disk"}, found.findings


def test_an_api_that_does_not_run_has_a_free_port_and_no_public_face(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "PATIENCE", 0.5)
    stand.write("api")
    found = stand.doctor("api")
    assert (found.levels("ports"), found.levels("public")) == (["ok"], ["fault"])
    with listening() as port:
        stand.write("api", port=port)
        assert stand.doctor("api").levels("ports") == ["fault"]


def test_a_sponsor_that_runs_is_known_as_such(stand: Stand) -> None:
    with served_over_https(service(None), stand.home) as sponsor:  # type: ignore[arg-type]
        stand.write("sponsor", port=int(sponsor.url.rpartition(":")[2]))
        address = sponsor.url.removeprefix("https://").replace("127.0.0.1", "localhost")
        found = stand.doctor("sponsor", "--public", address, "--authority", str(stand.home / "tls" / "ca.crt"))
        assert "answers as the sponsor" in found.says("ports")
        assert found.levels("public") == ["ok"], found.findings
        assert found.levels("tls") == ["ok", "ok"]
        assert "fault" in stand.doctor("sponsor", "--public", address).levels("tls")  # no authority that is known here


def test_clients_of_a_proxied_api_are_told_apart(stand: Stand) -> None:
    stand.write("api", origin="https://localhost:1")
    assert stand.doctor("api").levels("proxies") == ["warning"]
    stand.write("api", origin="https://localhost:1", proxies=["127.0.0.1"])
    assert stand.doctor("api").levels("proxies") == []


# Nodes


def test_a_hospital_is_told_of_a_superlink_that_is_away(stand: Stand) -> None:
    stand.write("hospital")
    home = HospitalHome.open(stand.home)
    task_key = stand.chain.treasury.folder_name(999_999)
    approval = Approval(place=task_key, spec_hash="00" * 32, approved_at=NOW, superlink="127.0.0.1:1")
    home.approve(999_999, approval, ensure_certificates(stand.folder / "tls").authority.read_bytes())
    found = stand.doctor("hospital")
    assert "fault" in found.levels("tls")
    assert "nothing listens there" in found.says("tls")


def test_a_hospitals_node_key_is_the_one_that_it_announced(stand: Stand) -> None:
    driver = TaskDriver(stand.chain, hospitals=1)
    (node,) = driver.nodes
    assert isinstance(node.connection.account, LocalAccount)
    write_keystore(stand.folder / "key.json", node.connection.account, "secret", LIGHT_SCRYPT_N)
    stand.write("hospital")
    home = HospitalHome.open(stand.home)
    task_key = node.folder_name(driver.task)
    approval = Approval(place=task_key, spec_hash="00" * 32, approved_at=NOW, superlink="127.0.0.1:1")
    home.approve(driver.task, approval, ensure_certificates(stand.folder / "tls").authority.read_bytes())

    def look() -> list[str]:
        found = stand.doctor("hospital")
        assert found.levels("tls") == ["warning"]  # while others join, the aggregator may not have begun
        return found.levels("node-key")

    assert look() == ["warning"]
    node.hospital.join(driver.task, 10, read_transport_key(stand.home / "transport.key"))
    assert look() == ["ok"]
    make_transport_key(stand.home / "transport.key")
    assert look() == ["fault"]


def test_a_hospitals_node_key_and_policy_are_read(stand: Stand) -> None:
    stand.write("hospital")
    write_private_file(stand.home / "transport.key", "no key")
    (stand.home / "policy.toml").write_text("operators = 3")
    found = stand.doctor("hospital")
    assert found.faults - {"disk"} == {"files", "policy"}
    assert "transport.key" in found.says("files")


def test_a_hospital_without_ether_is_fit_where_a_sponsor_pays(stand: Stand) -> None:
    stand.chain.rpc("anvil_setBalance", stand.account.address, "0x0")
    stand.write("hospital")
    assert stand.doctor("hospital").levels("money") == ["fault"]
    stand.write("hospital", sponsor={"url": "https://localhost:1"})
    found = stand.doctor("hospital")
    assert found.levels("money") == ["ok"]
    assert "the sponsor localhost:1" in found.says("tls")


def test_a_hospital_is_told_by_what_it_trains(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.write("hospital", device="numpy")
    found = stand.doctor("hospital")
    assert "NumPy, without torch: logistic and mlp" in found.says("training")
    assert "needs about 350" in found.says("memory")
    stand.write("hospital", device="cpu")
    assert "torch, on cpu" in stand.doctor("hospital").says("training")
    monkeypatch.setitem(sys.modules, "torch", None)
    found = stand.doctor("hospital")
    assert found.levels("training") == ["fault"]
    assert 'device = "cpu" needs torch' in found.says("training")


def test_a_home_is_for_its_user_alone(stand: Stand) -> None:
    stand.write("voter")
    stand.home.chmod(0o755)
    assert f"chmod 700 {stand.home}" in stand.doctor("voter").says("files")


# The command


def test_what_does_not_parse_is_a_finding_beside_others(stand: Stand) -> None:
    stand.config.write_text("home = 3\nhome = 4\n")
    found = stand.doctor("worker")
    assert (found.code, found.levels("configuration")) == (1, ["fault"])
    assert {"versions", "disk"} <= {one["check"] for one in found.findings}
    stand.write("worker", broker_url=f"amqp://:{PASSWORD}@queue")
    found = stand.doctor("worker")
    assert (found.code, found.levels("configuration")) == (1, ["fault"])
    assert PASSWORD not in str(found.findings)
    shutil.rmtree(stand.home)
    assert "is not a voter's home" in stand.doctor("voter").says("configuration")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["worker"], "pass the worker's configuration file with --config"),
        (["worker", "--home", "x"], "pass the worker's configuration file with --config"),
        (["hospital", "--config", "x"], "a hospital's configuration is in its home"),
        (["worker", "--config", "x", "--public", "a:1"], "the configuration has the address of a worker"),
        (["aggregator", "--config", "x", "--public", "nowhere"], "write host:port"),
        (["aggregator", "--config", "x", "--authority", "/none"], "the file /none does not exist"),
        (["queen"], "'queen' is not one of"),
    ],
)
def test_wrong_flags_are_refused(arguments: list[str], words: str) -> None:
    ran = CliRunner().invoke(app, ["doctor", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert ran.exit_code == 2
    assert words in " ".join(ran.output.split())


def test_people_get_a_table(stand: Stand) -> None:
    stand.write("worker")
    (stand.folder / "password").chmod(0o644)
    ran = CliRunner().invoke(app, ["doctor", "worker", "--config", str(stand.config)], env={"COLUMNS": "300"})
    assert ran.exit_code == 1
    assert "→ chmod 600" in ran.output
    assert " fault(s), " in ran.output.splitlines()[-1]


def test_hosts_that_do_not_answer_do_not_hold_it_up(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody hangs: chain node, mirror, database, Redis."""
    assert checks.LIMIT < 8  # and two to start the program
    monkeypatch.setattr(checks, "LIMIT", 1.5)
    with listening() as port:
        stand.write(
            "worker", chain_url=f"http://127.0.0.1:{port}", broker_url=f"redis://127.0.0.1:{port}/0",
            database_url=f"postgresql://u@127.0.0.1:{port}/c",
            artifacts=[str(stand.folder / "artifacts"), f"http://127.0.0.1:{port}/mirror"],
        )  # fmt: skip
        start = time.monotonic()
        found = stand.doctor("worker")
        assert time.monotonic() - start < checks.LIMIT + 2
    assert {"chain", "database", "redis"} <= found.faults
    assert found.levels("artifacts") == ["ok", "warning"]
