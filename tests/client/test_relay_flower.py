"""Relay and node behind real Flower: SuperLink, SuperNode, executor and Unix socket, each its own process."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import consilium_client.relay.process as relay_process
import consilium_server.flower.internals as server_internals
import psutil
import pytest
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.signed_updates import sign_update
from consilium_chain.rpc.local_node import free_port
from consilium_client.errors import CellError
from consilium_client.hospital.relay_link import Listener
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_client.relay.process import RelayProcess
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_core.errors import ArtifactMissing
from consilium_server.aggregator.collection import Collection
from consilium_server.aggregator.uploads import Signed, Upload
from consilium_server.flower.internals import NODE_AWAY, SuperLink
from consilium_zk.blobs import Blob, from_scalars
from consilium_zk.kzg import commit
from eth_account import Account
from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

PRIVATE = "Doe-Jane-1957"
HOSPITAL_HOME = "hospital" * 25  # a Unix socket's address has at most 107 bytes
CONTRACT = bytes(range(20))
BLOBS = [from_scalars([value] * 4096) for value in (1, 2)]
HOSPITAL = Account.from_key(b"\x07" * 32)
POINTS = [commit(blob) for blob in BLOBS]
UPDATE = sign_update(HOSPITAL, 1, HOSPITAL.address, 7, 3, [bytes([1]) * 32, bytes([2]) * 32])
PATIENCE = 90.0  # seconds, against hanging for ever; nothing is measured by it

FOREIGN = """
from pathlib import Path
Path({marker!r}).write_text("foreign code ran")
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
app = ClientApp()
server = ServerApp()
"""


class RecordingGrid:
    """A grid that keeps every reply as the server received it."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.received: list[Message] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def pull_messages(self, identifiers: list[str]) -> list[Message]:
        replies = list(self._grid.pull_messages(identifiers))
        self.received += replies
        return replies


@dataclass
class Exchange:
    """A hospital's Flower side and the server's, ready to send rounds."""

    home: Path
    grid: RecordingGrid
    node: int
    relay: RelayProcess
    listener: Listener
    marker: Path
    asked: list[RoundRequest] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    answer: Callable[[RoundRequest], RoundReply] = lambda _: RoundReply(ReplyCode.SAT_OUT)

    def round(self, number: int) -> Collection:
        """Sends one round and waits for the hospital's reply, whatever it is."""
        nodes, addresses = {0: self.node}, [HOSPITAL.address]
        collection = Collection(self.grid, nodes, addresses, CONTRACT, 7, number, len(BLOBS), False)  # type: ignore[arg-type]
        end = time.monotonic() + PATIENCE
        while not (collection.arrived or collection.finished):
            assert time.monotonic() < end, (self.home / HOSPITAL_HOME / "logs" / "relay.log").read_text()[-2000:]
            if (status := self.relay.keep_running()) is not None:
                self.ended.append(status)
            collection.ask(1)
            collection.receive()
            time.sleep(0.1)
        return collection


def foreign_bundle(folder: Path, marker: Path) -> Path:
    """The server's bundle, with code of its own for hospitals to run."""
    shutil.copytree(server_internals.BUNDLE, folder)
    (folder / "foreign").mkdir()
    (folder / "foreign" / "__init__.py").write_text(FOREIGN.format(marker=str(marker)))
    lines = []
    for line in (folder / "pyproject.toml").read_text().splitlines():
        key = line.split("=")[0].strip()
        replaced = {"clientapp": 'clientapp = "foreign:app"', "serverapp": 'serverapp = "foreign:server"'}
        lines.append(replaced.get(key, line))
    text = "\n".join(lines) + "\n"
    assert "foreign:app" in text
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    home = tmp_path_factory.mktemp("x")
    hospital = home / HOSPITAL_HOME
    hospital.mkdir()
    make_transport_key(hospital / "transport.key")
    port, marker = free_port(), home / "foreign-code-ran"
    with pytest.MonkeyPatch.context() as patch, socket.socket() as taken, SuperLink(home, port) as superlink:
        # The first port that the relay tries was free a moment ago, and is another's by the time the SuperNode starts.
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1]])
        patch.setattr(relay_process, "free_port", lambda: next(ports, None) or free_port())
        patch.setattr(server_internals, "BUNDLE", foreign_bundle(home / "bundle", marker))
        superlink.wait_until_up()
        node = superlink.register(transport_public_key(hospital / "transport.key"))
        flower = SimpleNamespace(
            superlink=f"127.0.0.1:{port}",
            ca_certificate=superlink.certificates.authority,
            transport_key=hospital / "transport.key",
        )
        settings: Any = SimpleNamespace(home=hospital, flower=flower)
        path = hospital / "s"

        def answer(request: RoundRequest) -> RoundReply:
            made.asked.append(request)
            return made.answer(request)

        with (
            Listener(path, answer, lambda *_: None) as listener,
            RelayProcess(settings, path) as relay,
            superlink.run() as (grid, _),
        ):
            made = Exchange(home, RecordingGrid(grid), node, relay, listener, marker)
            yield made


def test_relay_carries_blobs_and_codes_and_no_private_text(exchange: Exchange) -> None:
    """One story, in order: each exchange takes Flower seconds, and the last one ends the node."""

    def raising(error: Exception) -> Callable[[RoundRequest], RoundReply]:
        def answer(_: RoundRequest) -> RoundReply:
            raise error

        return answer

    # The signed update and then the blobs arrive as they were, and the node got exactly what the server asked for.
    upload = RoundReply(ReplyCode.OK, BLOBS, b"".join(POINTS))
    answers = iter([RoundReply(ReplyCode.SIGNED, body=UPDATE.to_wire()), upload])
    exchange.answer = lambda _: next(answers)
    collection = exchange.round(3)
    assert (collection.signed, collection.uploads) == ({0: Signed(UPDATE, b"")}, {0: Upload(BLOBS, POINTS)})
    assert exchange.asked == [RoundRequest(CONTRACT, 7, 3, part) for part in (Part.SIGNED, Part.UPLOAD)]
    assert set(exchange.grid.received[0].content) == {"status"}
    assert status_of(exchange.grid.received[0]) == {"code": ReplyCode.SIGNED, "body": UPDATE.to_wire()}

    # The run came with a bundle of foreign code: nobody loaded it.
    assert not exchange.marker.exists()
    assert not list((exchange.home / HOSPITAL_HOME).rglob("foreign*"))

    # An executor is killed with a request in hand. The SuperLink says that the node went, and the request comes again;
    # by itself the SuperNode would say a minute later that its app is lost.
    def killed_once(_: RoundRequest) -> RoundReply:
        if len(exchange.asked) == before + 1:
            (supernode,) = (one for one in psutil.Process().children() if "--superlink" in one.cmdline())
            (executor,) = supernode.children()
            orphans.extend(executor.children())
            executor.kill()
        return RoundReply(ReplyCode.SAT_OUT)

    before, orphans = len(exchange.asked), list[psutil.Process]()
    exchange.answer = killed_once
    assert exchange.round(8).finished == 1
    assert orphans, "the process of the app"
    assert psutil.wait_procs(orphans, timeout=30)[1] == []
    gone = [reply for reply in exchange.grid.received if reply.has_error()]
    # A reply that was announced as the SuperNode ended never arrives: another error, and likewise asked for again.
    codes = {reply.error.code for reply in gone}
    assert {NODE_AWAY} <= codes <= {NODE_AWAY, ErrorCode.MESSAGE_UNAVAILABLE}
    assert exchange.ended[-1] == 1
    for reply in gone:
        exchange.grid.received.remove(reply)

    # Too few blobs, and a hospital that sits out.
    exchange.answer = lambda _: RoundReply(ReplyCode.OK, BLOBS[:1])
    assert exchange.round(4).finished == 1
    exchange.answer = lambda _: RoundReply(ReplyCode.SAT_OUT)
    assert exchange.round(5).finished == 1

    # A node that fails says so by a code alone, whatever its error says.
    for error in (
        ArtifactMissing(PRIVATE, PRIVATE),
        CellError("ValueNotNumeric", path=Path(PRIVATE), at=PRIVATE),
        OSError(PRIVATE),
    ):
        exchange.answer = raising(error)
        assert exchange.round(6).finished == 1
        assert status_of(exchange.grid.received[-1]) == {"code": ReplyCode.FAILED}
        exchange.listener.raise_fault()  # no fault of the program

    # A fault in the node's program ends its listener, and the relay still says only that it failed.
    exchange.answer = raising(ZeroDivisionError(PRIVATE))
    assert exchange.round(7).finished == 1
    assert status_of(exchange.grid.received[-1]) == {"code": ReplyCode.FAILED}
    with pytest.raises(ZeroDivisionError):
        exchange.listener.raise_fault()

    # All this at another port than the first, which was taken.
    supernode = (exchange.home / HOSPITAL_HOME / "logs" / "relay.log").read_text()
    assert "address already in use" in supernode

    # Nothing of it is in what the server was sent, nor in any file that the SuperLink keeps.
    assert len(exchange.grid.received) == 2 + 2 * 7  # what did not come was asked for once more
    for reply in exchange.grid.received[1:]:
        assert not reply.has_error()
        assert set(reply.content) == {"status", "blobs"}
        assert set(reply.content["status"]) <= {"code", "body"}
        assert PRIVATE not in repr(reply.content["status"])
        for array in reply.content["blobs"].values():
            assert isinstance(array.data, bytes)
            assert Blob(array.data) in BLOBS
    for file in exchange.home.glob("superlink*"):
        assert PRIVATE.encode() not in file.read_bytes(), file
    for file in (exchange.home / "flower").rglob("*"):
        assert not file.is_file() or PRIVATE.encode() not in file.read_bytes(), file


def status_of(reply: Message) -> dict[str, Any]:
    return dict(reply.content["status"])
