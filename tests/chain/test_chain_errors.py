"""What goes wrong outside the contracts, and the error that says so with a way out."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from address_books import made_up_book
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import ChainUnreachable, DeploymentInvalid, LocalNodeError
from consilium_chain.keystore import LIGHT_SCRYPT_N, address_of, open_keystore, voter_key, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import LocalNode, free_port
from consilium_chain.rpc.reverts import refusal_from
from consilium_chain.settings import NodeSettings, TaskNumber, read_settings
from consilium_core import private_files
from consilium_core.children import child_environment
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, ConfigInvalid, KeystoreError
from consilium_core.private_files import write_private_file
from consilium_zk.blobs import from_scalars
from consilium_zk.kzg import commit, versioned_hash
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

BOOK = made_up_book()


def test_connection_names_dead_url_and_way_out() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ChainUnreachable, match=rf"{url} .*consilium chain local.* another URL"):
        Connection(url)


class Impostor(http.server.BaseHTTPRequestHandler):
    status, body = 200, b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def impostor() -> Iterator[str]:
    """A server that is no chain node; its class says what it answers."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Impostor)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"no such page"),
        (500, b""),
        (200, b"<html>a web page</html>"),
        (200, b"{}"),
        (200, b"[]"),
        (200, b'[{"jsonrpc":"2.0","id":0,"result":"0x1"}]'),
        (200, b"null"),
        (200, b'"0x1"'),
        (200, b"1"),
        (200, b"\xff\xfe"),
        (200, b'{"jsonrpc":"2.0","id":0,"result":null}'),
        (200, b'{"jsonrpc":"2.0","id":0,"result":"many"}'),
        (200, b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no such method"}}'),
    ],
)
def test_connection_refuses_what_is_no_chain_node(
    impostor: str, status: int, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Impostor, "status", status)
    monkeypatch.setattr(Impostor, "body", body)
    with pytest.raises(ChainUnreachable):
        Connection(impostor)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"null", b"<html>", b"\xff"])
def test_connection_names_url_when_the_node_turns_strange(
    impostor: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Impostor, "body", b'{"jsonrpc":"2.0","id":0,"result":"0x7a69"}')
    connection = Connection(impostor, Account.create())
    monkeypatch.setattr(Impostor, "body", body)
    ledger = Ledger(connection, BOOK)
    for attempt in (
        connection.blocks.number,
        connection.blocks.now,
        lambda: connection.transactions.send_ether(connection.address, 1),
        lambda: connection.blocks.header(0),
        ledger.tasks.count,
    ):
        with pytest.raises(ChainUnreachable, match=impostor):
            attempt()


def test_a_chain_is_asked_by_way_of_the_environments_proxy(impostor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Impostor, "body", b'{"jsonrpc":"2.0","id":0,"result":"0x7a69"}')
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", impostor)
    assert Connection("http://chain.invalid:8545").chain_id == 0x7A69
    monkeypatch.setenv("no_proxy", "chain.invalid")
    with pytest.raises(ChainUnreachable):
        Connection("http://chain.invalid:8545")


def test_a_provider_that_refuses_to_answer_is_one_that_does_not(impostor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes wait for a chain that cannot be reached; of a rate limit they would end."""
    monkeypatch.setattr(Impostor, "body", b'{"jsonrpc":"2.0","id":0,"result":"0x7a69"}')
    connection = Connection(impostor, Account.create())
    limit = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32005,"message":"daily request count exceeded"}}'
    monkeypatch.setattr(Impostor, "body", limit)
    ledger = Ledger(connection, BOOK)
    for attempt in (
        connection.blocks.number, connection.blocks.now, connection.ether, lambda: connection.blocks.header(0),
        ledger.tasks.count, lambda: ledger.tasks.state(1),
    ):  # fmt: skip
        with pytest.raises(ChainUnreachable, match="daily request count exceeded"):
            attempt()


def test_connection_names_url_when_the_node_goes_away() -> None:
    with LocalNode() as node:
        connection = Connection(node.url, Account.create())
    for attempt in (
        connection.blocks.number,
        connection.blocks.now,
        lambda: connection.blocks.wait_after(0),
        lambda: connection.transactions.send_ether(connection.address, 1),
        lambda: connection.blocks.header(0),
    ):
        with pytest.raises(ChainUnreachable, match=node.url):
            attempt()


def test_connection_names_block_that_the_node_has_not(local_chain: LocalChain) -> None:
    for reading in (
        local_chain.treasury.connection.blocks.header,
        lambda number: list(
            local_chain.treasury.connection.blocks.calls_of(
                local_chain.treasury.contracts.tasks.contract, number, number
            )
        ),
    ):
        with pytest.raises(ChainUnreachable, match=rf"{local_chain.node.url} .*no block 1000000000"):
            reading(10**9)


def test_a_refusal_that_carries_a_struct_is_named() -> None:
    terms = (10, 20, 30, 39)
    data = keccak(text="TermsInvalid((uint8,uint8,uint8,uint8))")[:4] + encode(["(uint8,uint8,uint8,uint8)"], [terms])
    refusal = refusal_from(data, "showTerms")
    assert (refusal.name, refusal.values) == ("TermsInvalid", {"terms": terms})


def test_reader_without_account_cannot_send(local_chain: LocalChain) -> None:
    reader = Connection(local_chain.node.url)
    assert reader.blocks.number() > 0
    with pytest.raises(ValueError, match="only read"):
        reader.transactions.send_ether(local_chain.treasury.address, 1)


def test_ledger_refuses_address_book_of_another_chain(local_chain: LocalChain) -> None:
    other = replace(local_chain.deployment, chain_id=1)
    with pytest.raises(
        DeploymentInvalid,
        match=r"of chain 1, but http://.* is on chain 31337; pass the address book or the URL that matches",
    ):
        Ledger(Connection(local_chain.node.url), other)


def test_deployment_round_trips(tmp_path: Path) -> None:
    BOOK.write(tmp_path / "book.json")
    assert Deployment.read(tmp_path / "book.json") == BOOK


def test_deployment_missing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DeploymentInvalid, match="does not exist; deploy first"):
        Deployment.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"chain_id": 1}',
        json.dumps(vars(BOOK) | {"extra": 1}).encode(),
        json.dumps({name: value for name, value in vars(BOOK).items() if name != "model_shares"}).encode(),
        b"\xff\xfe",
    ],
)
def test_deployment_malformed_is_named(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "book.json").write_bytes(text)
    with pytest.raises(DeploymentInvalid, match=r"book\.json is malformed"):
        Deployment.read(tmp_path / "book.json")


@pytest.mark.parametrize("change", [{"tasks": "here"}, {"tasks": 7}, {"chain_id": "31337"}, {"first_block": None}])
def test_deployment_with_values_of_another_kind_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "book.json").write_text(json.dumps(vars(BOOK) | change))
    with pytest.raises(DeploymentInvalid, match=r"book\.json is malformed"):
        Deployment.read(tmp_path / "book.json")


@pytest.fixture
def keystore(tmp_path: Path) -> tuple[Path, Path]:
    write_keystore(tmp_path / "key.json", Account.from_key(b"\x07" * 32), "right", LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", "right\n")
    return tmp_path / "key.json", tmp_path / "password"


def test_keystore_opens_and_hides_its_key(keystore: tuple[Path, Path]) -> None:
    assert open_keystore(*keystore).key == b"\x07" * 32
    assert "07" * 32 not in keystore[0].read_text()
    assert [path.stat().st_mode & 0o777 for path in keystore] == [0o600, 0o600]


def test_keystore_refuses_wrong_password_without_showing_it(keystore: tuple[Path, Path]) -> None:
    keystore[1].write_text("another-secret")
    with pytest.raises(KeystoreError, match="does not open with the password in") as caught:
        open_keystore(*keystore)
    assert "another-secret" not in str(caught.value)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_keystore_refuses_files_open_to_others(keystore: tuple[Path, Path], which: int, mode: int) -> None:
    keystore[which].chmod(mode)
    with pytest.raises(KeystoreError, match=f"can be read by others; run `chmod 600 {keystore[which]}`"):
        open_keystore(*keystore)


@pytest.mark.parametrize(("mode", "is_refused"), [(0o440, False), (0o400, False), (0o444, True), (0o404, True)])
def test_of_a_systemd_credential_the_groups_bits_are_a_mask(
    keystore: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, mode: int, is_refused: bool
) -> None:
    """Which its folder, for that unit's user alone, stands for."""
    monkeypatch.setattr(private_files, "CREDENTIALS", keystore[0].parent)
    keystore[1].chmod(mode)
    if not is_refused:
        assert open_keystore(*keystore).address
        return
    with pytest.raises(KeystoreError, match="can be read by others"):
        open_keystore(*keystore)


@pytest.mark.parametrize("which", [0, 1])
def test_keystore_names_missing_file(keystore: tuple[Path, Path], which: int) -> None:
    keystore[which].unlink()
    with pytest.raises(KeystoreError, match=f"{keystore[which]} does not exist"):
        open_keystore(*keystore)


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"[]", b"3", b'{"crypto": {}}', b'{"version": 3}', b"\xff"])
def test_keystore_refuses_malformed_key_file(keystore: tuple[Path, Path], text: bytes) -> None:
    keystore[0].write_bytes(text)
    with pytest.raises(KeystoreError):
        open_keystore(*keystore)


@pytest.mark.parametrize(
    "changes", [{"n": 1 << 30}, {"n": 1 << 20, "r": 1 << 10}, {"p": 1 << 24}, {"dklen": 1 << 34}, {"salt": "x"}]
)
def test_keystore_refuses_a_key_file_that_costs_all_memory_or_time(
    keystore: tuple[Path, Path], changes: dict[str, object]
) -> None:
    file = json.loads(keystore[0].read_text())
    file["crypto"]["kdfparams"] |= changes
    keystore[0].write_text(json.dumps(file))
    with pytest.raises(KeystoreError, match="does not open"):
        open_keystore(*keystore)


@pytest.mark.parametrize("kdf", ["scrypt", "pbkdf2"])
def test_keystore_opens_what_other_programs_write(
    keystore: tuple[Path, Path], kdf: Literal["scrypt", "pbkdf2"]
) -> None:
    """With capitals and fields of their own; geth's, ethers' and eth_keyfile's costs are within bounds."""
    file = Account.encrypt(b"\x07" * 32, "right", kdf=kdf, iterations=4096 if kdf == "scrypt" else 10)
    keystore[0].write_text(json.dumps({"Crypto": file["crypto"], "version": 3, "x-ethers": {}, "address": "07" * 20}))
    assert open_keystore(*keystore).key == b"\x07" * 32
    assert address_of(keystore[0]) == "0x" + "07" * 20


def test_voter_key_follows_from_account_alone() -> None:
    one, other = Account.from_key(b"\x07" * 32), Account.from_key(b"\x08" * 32)
    assert voter_key(one).reveal() == voter_key(Account.from_key(b"\x07" * 32)).reveal()
    assert len({voter_key(one).reveal(), voter_key(other).reveal(), int.from_bytes(one.key, "big")}) == 3


def test_local_node_names_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalNodeError, match=f"port {port} for the local chain is in use"):
            LocalNode(port)


def test_local_node_leaves_no_process() -> None:
    with LocalNode() as node:
        assert node.process.poll() is None
    assert node.process.poll() is not None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", node.port)) != 0


def test_child_environment_passes_no_secret_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_PASSWORD", "hush")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    assert "hush" not in child_environment().values()
    assert "PATH" in child_environment()


SETTINGS = """
home = "{folder}"
chain_url = "http://127.0.0.1:1"
deployment = "{folder}/book.json"
artifacts = "{folder}"
keystore = "{folder}/key.json"
password_file = "{folder}/password"
task = 1
"""


class TaskSettings(NodeSettings):
    task: TaskNumber


def test_settings_read(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(SETTINGS.format(folder=tmp_path))
    assert read_settings(tmp_path / "node.toml", TaskSettings).keystore == tmp_path / "key.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "home: Field required"),
        (b"home = ", "is not TOML"),
        (b"\xff\xfe", r"node\.toml is not UTF-8"),
        (SETTINGS.replace("task = 1", "task = 0").encode(), "task: "),
        (SETTINGS.replace("task = 1", "").encode(), "task: Field required"),
        (SETTINGS.replace("task = 1", "task = 1\npassword = 'x'").encode(), "password: Extra inputs"),
        (SETTINGS.replace("task = 1", "task = 'one'").encode(), "task: "),
    ],
)
def test_settings_that_do_not_hold_say_where(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "node.toml").write_bytes(text)
    with pytest.raises(ConfigInvalid, match=said):
        read_settings(tmp_path / "node.toml", TaskSettings)


def test_settings_missing_or_folder_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ConfigInvalid, match=str(path)):
            read_settings(path, TaskSettings)


def test_artifacts_missing_and_corrupt_are_named(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    digest = store.put_file(b"a task")
    assert store.get_file(digest) == b"a task"
    with pytest.raises(ArtifactMissing, match="add another mirror"):
        store.get_file(bytes(32))
    (tmp_path / f"file-{digest.hex()}").write_bytes(b"another task")
    with pytest.raises(ArtifactCorrupt, match="does not have the hash in its name"):
        store.get_file(digest)
    blob, other = from_scalars([5] * 4096), from_scalars([6] * 4096)
    name, next_name = store.put_blob(blob, commit(blob)), store.put_blob(other, commit(other))
    assert name == versioned_hash(commit(blob))
    assert store.get_blobs([name, next_name, name]) == [blob, other, blob]
    swapped = other + commit(blob)
    for wrong in (blob[:-1], bytes(len(blob)), b"\xff" * len(blob), b"", blob, swapped, other + commit(other)):
        (tmp_path / f"blob-{name.hex()}").write_bytes(wrong)
        with pytest.raises(ArtifactCorrupt, match=name.hex()):
            store.get_blobs([next_name, name])
