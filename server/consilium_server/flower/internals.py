"""SuperLink and grid, by Flower's private API (flwr 1.41.0; a test fails when the API changes).

The SuperLink runs as a child, bound to loopback. The ServerApp runs in the aggregator's own process, because only that
process has the key that signs publications.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from consilium_chain.errors import LocalNodeError
from consilium_chain.rpc.local_node import require_free_port
from consilium_chain.tasks.judging_spec import MAX_PARTICIPANTS
from consilium_chain.tasks.limits import MAX_BLOBS
from consilium_chain.transport_keys import pem_of
from consilium_core.children import start_module
from consilium_core.private_files import write_private_file
from consilium_zk.constants import BYTES_PER_BLOB
from flwr.app import Array, Context, Error, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.cli.build import build_fab_from_disk
from flwr.common.constant import ErrorCode, Status
from flwr.common.serde import context_from_proto, context_to_proto, fab_to_proto, run_from_proto
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListRunsRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
)
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullAppMessagesRequest,
    PullTaskInputRequest,
    PushTaskOutputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.serverapp import Grid
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.inflatable.inflatable_object import (
    get_object_body,
    get_object_head_values_from_object_content,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectUnavailableError,
    inflate_object_from_contents,
)
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.retry.retry_invoker import RetryInvoker, exponential
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from consilium_server.certificates import Certificates, ensure_certificates
from consilium_server.config import SUPERLINK_DATABASE
from consilium_server.errors import SuperLinkFailed

START_TIMEOUT = 180.0  # seconds; a machine that starts all parties of a demo is busy for over a minute
ACQUIRE_TIMEOUT = 60.0
PORT_TIMEOUT = 10.0  # until the SuperLink before this one has released the port
ANSWER_TIMEOUT = 20.0  # for a SuperLink that runs and does not answer
# Limits of a hospital's reply: twice the blobs of the largest update, and Flower's objects of such a reply.
MOST_BYTES = 2 * MAX_BLOBS * BYTES_PER_BLOB
MOST_OBJECTS = 8 * MAX_BLOBS
NODE_AWAY = ErrorCode.NODE_UNAVAILABLE  # the answer to a message whose node has left, or is silent
SMALL_PARTS = 4 << 20  # bytes of a hospital's parts without blobs: signed update, secret shares, answer
FLOWERS_OWN = 64 << 20  # bytes of Flower's own data in its database
MOST_RUNS = 1_000  # in a database; each start of an aggregator adds one
SUPERLINK = "consilium_server.flower.bounded_superlink"
BUNDLE = Path(__file__).parent / "bundle"


@contextmanager
def _named_errors() -> Iterator[None]:
    """Turns errors of Flower's HTTP client into SuperLinkFailed."""
    try:
        yield
    except httpx.HTTPError as error:
        status = f" {error.response.status_code}" if isinstance(error, httpx.HTTPStatusError) else ""
        raise _failed(f"the SuperLink does not answer ({type(error).__name__}{status}): read superlink.log") from error


@dataclass
class _Arriving:
    """A reply that a hospital has announced: its objects, and the content of those that have arrived."""

    message_id: str
    reply_to: str
    object_ids: list[str]
    contents: dict[str, bytes] = field(default_factory=dict)


class GradualGrid(HttpGrid):  # type: ignore[misc]
    """Flower's grid, but `pull_messages` never waits: an incomplete reply comes with a later call.

    Flower's own grid waits for each announced reply in turn, up to three minutes, also while complete ones are there.
    A single hospital that announces an upload and never sends it could then make a round miss its deadlines.
    """

    def __init__(
        self, address: str, authority: bytes, token: str, has_ended: Callable[[], bool] = lambda: False
    ) -> None:
        """`has_ended`: says if the SuperLink at the address has ended. All calls raise SuperLinkFailed."""
        super().__init__(address, insecure=False, root_certificates=authority, token=token)
        self._retry_invoker = _retrying(has_ended)
        self._arriving: list[_Arriving] = []

    @_named_errors()
    def get_node_ids(self) -> list[int]:
        return list(super().get_node_ids())

    @_named_errors()
    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        return list(super().push_messages(messages))

    @_named_errors()
    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Complete replies to these messages. A reply that can no longer arrive is an error."""
        if unknown := set(message_ids) - {reply.reply_to for reply in self._arriving}:
            answer = self._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=unknown))
            for proto, tree in zip(answer.messages_list, answer.message_object_trees, strict=True):
                ids = [node.object_id for node in iterate_object_tree(tree)]
                self._arriving.append(_Arriving(proto.metadata.message_id, proto.metadata.reply_to_message_id, ids))
        pulled = [(reply, self._pull(reply)) for reply in self._arriving]
        self._arriving = [reply for reply, message in pulled if message is None]
        return [message for _, message in pulled if message is not None]

    def _pull(self, reply: _Arriving) -> Message | None:
        """Fetches the objects that are new; None if some are missing."""
        run = self._run.run_id
        fetch = make_pull_object_fn_protobuf(self._runtime_client.PullObject, self.node, run)
        if len(reply.object_ids) > MOST_OBJECTS:
            return self._lost(reply, "the reply has too many objects")
        size = sum(map(len, reply.contents.values()))
        try:
            for object_id in reply.object_ids:
                if object_id not in reply.contents:
                    reply.contents[object_id] = fetch(object_id)
                    size += len(reply.contents[object_id])
                if size > MOST_BYTES:
                    return self._lost(reply, "the reply is too long")
        except ObjectUnavailableError:
            return None
        except ObjectPullError as error:
            return self._lost(reply, str(error))
        self._runtime_client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(node=self.node, run_id=run, message_object_id=reply.message_id)
        )
        try:
            message = _inflated(reply)
        except Exception as error:  # foreign bytes can cause any error in Flower's objects
            return self._lost(reply, f"it is not a message ({type(error).__name__})")
        # The SuperLink has checked the sender of the announcement, but not the sender in the object itself.
        message.metadata.__dict__["_message_id"] = reply.message_id
        message.metadata.__dict__["_reply_to_message_id"] = reply.reply_to
        return message

    def _lost(self, reply: _Arriving, why: str) -> Message:
        ours = self.node.node_id
        metadata = Metadata(
            run_id=self._run.run_id, message_id="", src_node_id=ours, dst_node_id=ours, message_type="system",
            group_id="", ttl=0, reply_to_message_id=reply.reply_to, created_at=time.time(),
        )  # fmt: skip
        return make_message(metadata=metadata, error=Error(code=ErrorCode.MESSAGE_UNAVAILABLE, reason=why))


def _inflated(reply: _Arriving) -> Message:
    """Builds the message from its objects. Raises any error of Flower if they do not form a message."""
    for content in reply.contents.values():
        kind, parts, _ = get_object_head_values_from_object_content(content)
        if kind == Array.__qualname__:  # it may name one part many times
            order = json.loads(get_object_body(content, Array))["arraychunk_ids"]
            if sum(len(reply.contents[parts[at]]) for at in order) > MOST_BYTES:
                raise ValueError("an array of the reply is too long")
    message = inflate_object_from_contents(reply.message_id, reply.contents)
    if not isinstance(message, Message) or not (message.has_error() or isinstance(message.content, RecordDict)):
        raise TypeError("the reply is an object of another type than a message")
    return message


def _retrying(has_ended: Callable[[], bool]) -> RetryInvoker:
    """A retry policy with an end. Flower's own never ends, and stops the process with SIGINT after the run's end."""

    def is_final(error: Exception) -> bool:
        return has_ended() or (isinstance(error, httpx.HTTPStatusError) and not error.response.is_server_error)

    return RetryInvoker(
        wait_gen_factory=lambda: exponential(base_delay=0.2, max_delay=2),
        recoverable_exceptions=(httpx.TransportError, httpx.HTTPStatusError), max_tries=None, max_time=ANSWER_TIMEOUT,
        should_giveup=is_final,
    )  # fmt: skip


def _heartbeat(client: RuntimeHttpClient) -> bool:
    """Sends a heartbeat; true if it arrived.

    Flower's own raises SIGINT after the run's end. Here the grid's next call reports it.
    """
    try:
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    except httpx.HTTPError:
        return False
    return True


class SuperLink:
    """Flower's SuperLink on 127.0.0.1, with TLS, node authentication and a database; ended on exit.

    It also ends if the process that made it is killed.
    """

    def __init__(
        self,
        home: Path,
        port: int,
        blobs: int = MAX_BLOBS,
        hospitals: int = MAX_PARTICIPANTS,
        tls: Path | None = None,
        task_key: str = "",
    ) -> None:
        """`blobs`: of the largest update. Each hospital may store twice that. `tls`: by default in `home`.
        `task_key`: `Ledger.folder_name` of its task, which its answers name.

        Raises LocalNodeError if another process keeps the port; ServerError (CertificatesUnusable).
        """
        until_free = Retrying(
            retry=retry_if_exception_type(LocalNodeError), stop=stop_after_delay(PORT_TIMEOUT), wait=wait_fixed(0.2),
            reraise=True,
        )  # fmt: skip
        until_free(require_free_port, port, "the SuperLink")
        self.certificates: Certificates = ensure_certificates(tls or home / "tls")
        self.address = f"127.0.0.1:{port}"
        self._secret = home / "superexec.secret"
        write_private_file(self._secret, secrets.token_hex(32))
        log, share = home / "superlink.log", 2 * blobs * BYTES_PER_BLOB + SMALL_PARTS
        arguments = [
            str(log), str(share), str(2 * hospitals * share + FLOWERS_OWN), task_key,
            "--host", "127.0.0.1", "--port", str(port),
            "--ssl-ca-certfile", str(self.certificates.authority),
            "--ssl-certfile", str(self.certificates.certificate),
            "--ssl-keyfile", str(self.certificates.key),
            "--enable-supernode-auth",
            "--database", str(home / SUPERLINK_DATABASE),
            "--isolation", "process",
            "--superexec-auth-secret-file", str(self._secret),
            "--disable-runtime-dependency-installation",
        ]  # fmt: skip
        with log.open("ab") as output:
            environment = {"FLWR_HOME": str(home / "flower")}
            self._process = start_module(SUPERLINK, *arguments, environment=environment, output=output, errors=output)
        self._node_ids: dict[bytes, int] | None = None  # of all registered keys

    def __enter__(self) -> SuperLink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def wait_until_up(self) -> None:
        """Waits until it answers. Raises SuperLinkFailed."""
        end = time.monotonic() + START_TIMEOUT
        trust = ssl.create_default_context(cafile=str(self.certificates.authority))
        with httpx.Client(verify=trust, timeout=2) as client:
            while time.monotonic() < end:
                if self._process.poll() is not None:
                    raise _failed(f"the SuperLink ended with exit code {self._process.returncode}: read superlink.log")
                try:
                    client.get(f"https://{self.address}/health").raise_for_status()
                    return
                except httpx.HTTPError:
                    time.sleep(0.1)
        raise _failed(f"the SuperLink did not answer within {START_TIMEOUT:.0f} s: read superlink.log")

    def register(self, transport_key: bytes) -> int:
        """Admits a hospital's node key (64 bytes, as on chain), unless the database has it; returns its Flower node id.

        Raises SuperLinkFailed, TransportKeyMalformed.
        """
        key = pem_of(transport_key)
        with self._control() as control:
            if self._node_ids is None:
                nodes = control.ListNodes(ListNodesRequest()).nodes_info
                self._node_ids = {bytes(node.public_key): int(node.node_id) for node in nodes}
            if key not in self._node_ids:
                answer = control.RegisterNode(RegisterNodeRequest(public_key=key))
                self._node_ids[key] = int(answer.node_id)
            return self._node_ids[key]

    def _client(self, kind: Any, *interceptors: Any) -> Any:
        return kind.from_server_address(
            server_address=self.address, insecure=False, root_certificates=self.certificates.authority.read_bytes(),
            interceptors=list(interceptors),
        )  # fmt: skip

    @contextmanager
    def _control(self) -> Iterator[ControlHttpClient]:
        client = self._client(ControlHttpClient, RuntimeVersionHttpInterceptor(component_name="flwr CLI"))
        try:
            with _named_errors():
                yield client
        finally:
            client.close()

    @contextmanager
    def run(self) -> Iterator[tuple[Grid, Context]]:
        """Starts a Flower run and yields its grid, as a ServerApp process would get it.

        Stops the runs of earlier processes, whose messages are then dropped. Raises SuperLinkFailed.
        """
        bundle = build_fab_from_disk(BUNDLE)
        fab = Fab(hashlib.sha256(bundle).hexdigest(), bundle, {})
        with self._control() as control:
            for run_id in unfinished_runs(control):
                control.StopRun(StopRunRequest(run_id=run_id))
            started = control.StartRun(StartRunRequest(fab=fab_to_proto(fab)))
        if not started.HasField("run_id"):
            raise _failed(f"the SuperLink did not start a run: {started.note}")
        token = self._acquire(int(started.run_id))
        grid = GradualGrid(self.address, self.certificates.authority.read_bytes(), token, self.has_ended)
        client = grid._runtime_client
        heartbeat = HeartbeatSender(lambda: _heartbeat(client))
        heartbeat.start()
        try:
            with _named_errors():
                task = client.PullTaskInput(PullTaskInputRequest())
            grid.set_run(run_from_proto(task.run))
            TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
            TaskIdentity.node_id = task.context.node_id
            context = context_from_proto(task.context)
            yield grid, context
            with _named_errors():
                output = PushTaskOutputRequest(context=context_to_proto(context), sub_status="completed", details="")
                client.PushTaskOutput(output)
        finally:
            heartbeat.stop()
            grid.close()

    def _acquire(self, run_id: int) -> str:
        """The token of the run's ServerApp task."""
        secret, acquire = self._secret.read_bytes(), frozenset({"/flwr.proto.Runtime/AcquireTask"})
        client = self._client(
            RuntimeHttpClient,
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=acquire),
        )
        end = time.monotonic() + ACQUIRE_TIMEOUT
        try:
            with _named_errors():
                while time.monotonic() < end:
                    response = client.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-serverapp"]))
                    if response.token and response.task.run_id == run_id:
                        return str(response.token)
                    time.sleep(0.05)
        finally:
            client.close()
        raise _failed(f"the SuperLink gave no ServerApp task within {ACQUIRE_TIMEOUT:.0f} s: read superlink.log")


def unfinished_runs(control: ControlHttpClient) -> list[int]:
    """Runs of earlier aggregators in a SuperLink's database. Raises SuperLinkFailed."""
    with _named_errors():
        runs = control.ListRuns(ListRunsRequest(limit=MOST_RUNS)).run_dict
    return [int(run_id) for run_id, run in runs.items() if run.status.status != Status.FINISHED]


def _failed(why: str) -> SuperLinkFailed:
    return SuperLinkFailed("SuperLinkFailed", why=why)
