"""Certificates and passwords are changed as docs/proxy.md says, under processes that run."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import tomli_w
from chain_driver import LocalChain, TaskDriver
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.rpc.local_node import free_port
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_client.relay.wire import SOCKET_VARIABLE
from consilium_core.children import child_environment
from consilium_core.connectivity import why_unreachable
from consilium_core.private_files import write_private_file
from consilium_operators.doctor.probes import tls_server
from consilium_server import certificates
from consilium_server.certificates import LONGEST_RUN, ensure_certificates
from consilium_server.flower.internals import SuperLink
from flwr.app import ConfigRecord, Message, RecordDict
from index_driver import Traffic, changeable_chain
from postgres_driver import SERVER, Postgres
from proxy_driver import DAY, Authority, running_proxy
from redis_driver import PASSWORD, Redis, running_redis
from worker_driver import Worker, until

pytestmark = pytest.mark.deep
NAME = "localhost"  # known on any machine
PATIENCE = 90.0  # seconds


@contextmanager
def supernode(folder: Path, port: int, authority: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Through the proxy. Its executor ends each message, of which a node has one at a time."""
    address, secret = f"127.0.0.1:{free_port()}", folder / "secret"
    write_private_file(secret, "0" * 64)
    command = [
        sys.executable, "-m", "consilium_client.relay.flower_internals", "relay", address, str(secret),
        "--superlink", f"{NAME}:{port}", "--root-certificates", str(authority),
        "--auth-supernode-private-key", str(folder / "key"), "--host", "127.0.0.1", "--port", address.split(":")[1],
        "--isolation", "process", "--superexec-auth-secret-file", str(secret),
    ]  # fmt: skip
    told = {"FLWR_HOME": str(folder / "flower"), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    told[SOCKET_VARIABLE] = str(folder / "nobody.sock")
    with (folder / "log").open("wb") as log:
        node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=child_environment() | told)
    try:
        yield node
    finally:
        node.terminate()
        node.wait(30)
        if node.stdin is not None:
            node.stdin.close()


def arrives(superlink: SuperLink, home: Path, number: int, node: subprocess.Popen[bytes]) -> None:
    """A message that is sent to the node now is fetched by it."""
    with superlink.run() as (grid, _):
        end = time.monotonic() + PATIENCE
        while number not in grid.get_node_ids():
            assert node.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        content = RecordDict({"request": ConfigRecord({"part": 1})})
        (asked,) = grid.push_messages([Message(content, dst_node_id=number, message_type="train")])
        while True:
            with sqlite3.connect(f"file:{home / 'superlink.sqlite'}?mode=ro", uri=True) as database:
                rows = database.execute("SELECT delivered_at FROM message_ins WHERE message_id = ?", [asked]).fetchall()
            database.close()
            if rows and rows[0][0]:
                return
            assert node.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)


def aged(folder: Path, days: float) -> None:
    """The certificate there has so many days left."""
    for name in ("server.pem", "server.key"):
        (folder / name).unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "LIFETIME", days * DAY)
        ensure_certificates(folder)


def test_certificates_change_under_a_supernode_that_runs(tmp_path: Path) -> None:
    """First the proxy's, by a reload; then the SuperLink's, by a start, of which the proxy need not be told."""
    home, port, authority = tmp_path / "home", free_port(), Authority(tmp_path / "authority")
    make_transport_key(tmp_path / "key")
    certificate, key = authority.sign(NAME, days=3)
    ensure_certificates(home / "tls")
    aged(home / "tls", 5)
    values = {
        "CERTIFICATE": certificate, "CERTIFICATE_KEY": key, "SUPERLINK_NAME": NAME, "SUPERLINK": f"127.0.0.1:{port}",
        "SUPERLINK_CA": home / "tls" / "ca.crt",
    }  # fmt: skip
    given = {name: str(value) for name, value in values.items()}
    with running_proxy(tmp_path / "proxy", ["superlink"], **given) as proxy, SuperLink(home, port) as superlink:
        superlink.wait_until_up()
        number = superlink.register(transport_public_key(tmp_path / "key"))
        with supernode(tmp_path, proxy.port, authority.certificate) as node:
            arrives(superlink, home, number, node)
            for made, place in zip(authority.sign(NAME, days=60), (certificate, key), strict=True):
                place.write_bytes(made.read_bytes())
            proxy.reload()
            renewed = time.time() + 59 * DAY.total_seconds()
            until(lambda: tls_server(NAME, proxy.port, authority.certificate).ends > renewed, PATIENCE)
            arrives(superlink, home, number, node)

            superlink.__exit__()
            aged(home / "tls", 5)
            with SuperLink(home, port) as again:
                again.wait_until_up()
                lasts = tls_server(NAME, port, home / "tls" / "ca.crt").ends - time.time()
                assert lasts > LONGEST_RUN.total_seconds()
                arrives(again, home, number, node)


def test_a_key_files_password_changes_under_what_runs(local_chain: LocalChain, tmp_path: Path) -> None:
    """The process that runs goes on, one that starts needs the password after."""
    task, payer, port = TaskDriver(local_chain).task, local_chain.funded(0), free_port()
    write_keystore(tmp_path / "key.json", payer.connection.signer, "before", LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", "before\n")
    write_private_file(tmp_path / "new", "after\n")
    local_chain.deployment.write(tmp_path / "book.json")
    settings = {
        "home": str(tmp_path / "home"), "chain_url": local_chain.node.url, "deployment": str(tmp_path / "book.json"),
        "keystore": str(tmp_path / "key.json"), "password_file": str(tmp_path / "password"), "task": task, "port": port,
        "gas_per_hospital": 1_000_000,
    }  # fmt: skip
    (tmp_path / "sponsor.toml").write_text(tomli_w.dumps(settings))
    consilium = [sys.executable, "-m", "consilium_cli.main"]
    sponsor = [*consilium, "server", "sponsor", "--config", str(tmp_path / "sponsor.toml")]

    def answers() -> bool:
        there = (tmp_path / "home" / "tls" / "ca.crt").exists()
        return there and why_unreachable("localhost", port, tmp_path / "home" / "tls" / "ca.crt", 5) is None

    @contextmanager
    def running() -> Iterator[subprocess.Popen[bytes]]:
        with (tmp_path / "said").open("ab") as said:
            process = subprocess.Popen(sponsor, stdout=said, stderr=said, env=child_environment())
        try:
            until(answers, PATIENCE)
            yield process
        finally:
            process.terminate()
            process.wait(30)

    with running() as process:
        change = [*consilium, "change-password", str(tmp_path / "key.json")]
        passwords = ["--password-file", str(tmp_path / "password"), "--new-password-file", str(tmp_path / "new")]
        subprocess.run([*change, *passwords], check=True, env=child_environment(), capture_output=True)
        assert process.poll() is None
        assert answers()
    early = subprocess.run(sponsor, capture_output=True, text=True, env=child_environment(), timeout=60)
    assert early.returncode == 1
    assert "error (KeystoreError)" in early.stderr
    shutil.move(tmp_path / "new", tmp_path / "password")
    with running():
        assert answers()
    assert "after" not in (tmp_path / "said").read_text()


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with changeable_chain() as chain:
        yield Traffic(chain, seed=5).steps(20)


@contextmanager
def asking_for_passwords(postgres: Postgres) -> Iterator[None]:
    """Of the role `worker`; others come in as before."""
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all worker scram-sha-256\n" + before)
    with admin(postgres) as connection:
        connection.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        rules.write_text(before)
        with admin(postgres) as connection:
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def admin(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(host=str(postgres.folder), dbname="postgres", user=SERVER, autocommit=True) as connection:
        yield connection


def indexed_on(worker: Worker) -> bool:
    """Whether it has indexed something since now."""
    before = len(worker.told("indexed"))
    return bool(until(lambda: len(worker.told("indexed")) > before, PATIENCE))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Redis]:
    with running_redis(tmp_path / "redis") as server:
        yield server


def test_passwords_of_redis_and_postgresql_change_and_a_worker_is_started_again(
    traffic: Traffic, redis_server: Redis, postgres: Postgres, tmp_path: Path
) -> None:
    """Redis knows two passwords of a user at once, PostgreSQL one of a role: what is connected stays so."""
    name = urlsplit(postgres.database()).path[1:]

    def around(word: str, broker_word: str) -> dict[str, Any]:
        return {
            "database_url": f"postgresql://worker:{word}@/{name}?host={postgres.folder}",
            "broker_url": redis_server.url.replace(PASSWORD, broker_word),
        }

    with admin(postgres) as connection:
        connection.execute("CREATE ROLE worker LOGIN SUPERUSER PASSWORD 'before'")
    with asking_for_passwords(postgres):
        with Worker(traffic.chain, tmp_path / "a", **around("before", PASSWORD)) as worker:
            until(lambda: worker.told("indexed"))
            redis_server.client().execute_command("ACL", "SETUSER", "default", ">after")  # type: ignore[no-untyped-call]
            with admin(postgres) as connection:
                connection.execute("ALTER ROLE worker PASSWORD 'after'")
            traffic.steps(3)
            assert indexed_on(worker)  # what is connected stays connected
            assert worker.end() == 0
            worker.start()  # with the password before
            assert worker._process is not None
            assert until(lambda: worker._process is not None and worker._process.poll() is not None, PATIENCE)
            assert "DatabaseUnreachable" in worker.said
        with Worker(traffic.chain, tmp_path / "a", **around("after", "after")) as worker:
            traffic.steps(3)
            assert indexed_on(worker)
            redis_server.client().execute_command("ACL", "SETUSER", "default", f"<{PASSWORD}")  # type: ignore[no-untyped-call]
            traffic.steps(3)
            assert indexed_on(worker)
            for word in ("before", "after", PASSWORD):
                assert f":{word}@" not in worker.said
