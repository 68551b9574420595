"""The only module of the client room that uses Flower's private API (flwr 1.41.0; a test fails when it moves).

Run as a program it is the child of a hospital's node:

  supernode …   Flower's own SuperNode, which polls for messages three times a second instead of every three seconds,
                and ends as soon as one of its threads ends
  relay …       the same with an executor, a fork of it, which runs the installed relay app for each message, each in
                a fork of its own. Both end together

The executor ignores the bundle that comes with a run: no foreign code is loaded.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from consilium_core.connectivity import fleet_address
from flwr.clientapp import ClientApp

POLL = 0.3  # seconds
LONGEST_WAIT = 3  # seconds between two tries of a SuperLink that does not answer; Flower's own are up to 20


def run_relay(runtime_address: str, secret_file: Path, arguments: list[str]) -> None:
    """A SuperNode with these arguments, and its executor. Two programs would load the same libraries twice."""
    import flwr.supernode.cli.flower_supernode
    import flwr.supernode.runtime.run_clientapp  # noqa: F401

    woken, wakes = os.pipe()
    executor = os.fork()
    if executor == 0:
        os.close(wakes)
        try:
            run_executor(runtime_address, secret_file, woken)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(woken)
    os.set_blocking(wakes, False)

    def end_with_it(*_: object) -> None:
        """A SuperNode alone would report the message of an ended executor as lost only after a minute."""
        if os.waitpid(executor, os.WNOHANG)[0] == executor:
            os._exit(1)

    signal.signal(signal.SIGCHLD, end_with_it)
    threading.Thread(target=_end_with_node, daemon=True).start()
    run_supernode(arguments, wakes)


def run_supernode(arguments: list[str], wakes: int | None = None) -> None:
    """`flower-supernode` with these arguments, and five changes: shorter sleeps, shorter waits for a restarted
    SuperLink, no messages of stopped runs, an end as soon as one of its threads ends, and the SuperLink's address may
    have a path (`consilium_core.connectivity.FleetAddress`).

    `wakes`: a pipe that gets a byte for each message.
    """
    import flwr.supercore.retry.http_retry as retry
    import flwr.supernode.start_client_internal as supernode
    from flwr.supernode.cli.flower_supernode import flower_supernode

    clock = {name: getattr(time, name) for name in dir(time) if not name.startswith("_")}
    # Three seconds between looks at the SuperLink, half a second between looks at its own store.
    clock["sleep"] = lambda seconds: time.sleep(POLL if seconds > 1 else POLL / 6)
    supernode.time = SimpleNamespace(**clock)
    retry.MAX_RETRY_DELAY = LONGEST_WAIT
    pull = supernode._pull_and_store_message

    def pull_whole(*, pull_object: Any, confirm_message_received: Any, **others: Any) -> int | None:
        """If a run is stopped while its message arrives, Flower keeps and answers the message. Each later reply then
        leaves only with the next request. So this makes Flower treat the message as not received.
        """
        calls = {"pull_object": pull_object, "confirm_message_received": confirm_message_received}
        received: int | None = pull(**{name: _failing(call) for name, call in calls.items()}, **others)
        if received is not None and wakes is not None:
            with suppress(BlockingIOError):  # full: the executor will wake
                os.write(wakes, b"\0")
        return received

    supernode._pull_and_store_message = pull_whole
    sys.argv = ["flower-supernode", *_behind_proxy(arguments)]
    threading.excepthook = _end_with_thread
    flower_supernode()


def _behind_proxy(arguments: list[str]) -> list[str]:
    """The arguments without the path of the SuperLink's address, which each request gets instead."""
    import flwr.supernode.fleet_http_connection as fleet

    if "--superlink" not in arguments:
        return arguments
    at = arguments.index("--superlink") + 1
    address, connect = fleet_address(arguments[at]), fleet.FleetHttpClient.from_server_address

    def through_path(server_address: str, *others: Any, **named: Any) -> Any:
        return connect(f"{server_address}{address.path}", *others, **named)

    fleet.FleetHttpClient = SimpleNamespace(from_server_address=through_path)
    return [*arguments[:at], address.server, *arguments[at + 1 :]]


def _end_with_node() -> None:
    """Ends this process when its input ends, as it does at any end of the node that started it."""
    os.read(0, 1)
    os._exit(1)


def _end_with_thread(ended: threading.ExceptHookArgs) -> None:
    """Flower does each part of a SuperNode's work in a thread, and never restarts one. Without the thread that answers
    the executor, or the one that sends heartbeats, the others would go on but send no reply.
    """
    threading.__excepthook__(ended)
    if ended.exc_type is not SystemExit:  # a thread ends so on purpose, as if its port is taken, which Flower handles
        os._exit(1)


def _failing(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, but with an ordinary error if the run has been stopped."""
    from flwr.supercore.run import RunNotRunningException

    def called(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except RunNotRunningException as error:
            raise RuntimeError("the run has been stopped") from error

    return called


def run_executor(runtime_address: str, secret_file: Path, woken: int) -> None:
    """Takes messages from the SuperNode at `runtime_address` without end, each in a forked process.

    `woken`: a pipe with a byte for each message, which ends with the SuperNode.
    """
    import flwr.supernode.runtime.run_clientapp as runtime
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
    from flwr.supercore.retry import make_simple_http_retry_invoker
    from flwr.supercore.runtime import RuntimeHttpClient

    def installed_app(*_: object) -> ClientApp:
        from consilium_client.relay.app import app

        return app

    runtime.install_from_fab = lambda *_, **__: None
    runtime.get_load_client_app_fn = lambda **_: installed_app
    installed_app()

    message = threading.Event()
    threading.Thread(target=_follow, args=(woken, message), daemon=True).start()
    _wait_for(runtime_address)  # Flower's own retries back off for seconds
    client = RuntimeHttpClient.from_server_address(
        server_address=runtime_address,
        insecure=True,  # loopback, to the SuperNode beside it
        root_certificates=None,
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(
                master_secret=secret_file.read_bytes(),
                protected_methods=frozenset({"/flwr.proto.Runtime/AcquireTask"}),
            ),
        ],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message.clear()
        response = client.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-clientapp"]))
        if response.HasField("task") and response.token and os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            threading.Thread(target=_end_with_supernode, args=(woken,), daemon=True).start()
            try:
                runtime.run_clientapp(runtime_address, response.token, insecure=True, parent_pid=os.getppid())
            finally:
                os._exit(0)
        if not response.HasField("task"):
            message.wait(LONGEST_WAIT)


def _follow(woken: int, message: threading.Event) -> None:
    """Sets the event for each byte of the pipe, and ends the process with the SuperNode at its other end."""
    while os.read(woken, select.PIPE_BUF):
        message.set()
    os._exit(0)


def _end_with_supernode(woken: int) -> None:
    """Ends an app's process, which would send its reply to an ended SuperNode again and again. Reads no byte of the
    pipe: these are for the executor.
    """
    poll = select.poll()
    poll.register(woken, 0)  # its other end's closing is always told
    poll.poll()
    os._exit(0)


def _wait_for(address: str) -> None:
    """Returns when a process listens there."""
    host, port = address.rsplit(":", 1)
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(POLL / 3)


if __name__ == "__main__":
    if sys.argv[1] == "supernode":
        run_supernode(sys.argv[2:])
    else:
        run_relay(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
