"""The only module of the client room that uses Flower's private API (flwr 1.41.0; a test fails when it moves).

Run as a program it is one of the two children of a hospital's node:

  supernode …   Flower's own SuperNode, looking for messages three times a second instead of every three seconds, and
                ending with any of its threads
  executor …    runs the installed relay app for each message, in a fork of one warm process

The executor ignores the bundle that comes with a run: no foreign code is loaded.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flwr.clientapp import ClientApp

POLL = 0.3  # seconds
LONGEST_WAIT = 3  # seconds between two tries of a SuperLink that does not answer; Flower's own are up to 20


def run_supernode(arguments: list[str]) -> None:
    """`flower-supernode` with these arguments; its sleeps are shortened, and its waits for a SuperLink that was
    started anew, it forgets what a stopped run asked for, and it ends with any of its threads; nothing else is changed.
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
        """Flower keeps, and has answered, a message whose run is stopped while it is received. Of all that follow, each
        reply then leaves only with the next request: so it is made what Flower takes for a message that did not come.
        """
        given = {"pull_object": pull_object, "confirm_message_received": confirm_message_received}
        received: int | None = pull(**{name: _failing(call) for name, call in given.items()}, **others)
        return received

    supernode._pull_and_store_message = pull_whole
    sys.argv = ["flower-supernode", *arguments]
    threading.excepthook = _end_with_thread
    flower_supernode()


def _end_with_thread(ended: threading.ExceptHookArgs) -> None:
    """Flower does each part of a SuperNode's work in a thread, and starts none again: without the one that answers the
    executor, or that shows the SuperLink a sign of life, the rest would run on and never send a reply again.
    """
    threading.__excepthook__(ended)
    if ended.exc_type is not SystemExit:  # so a thread ends on purpose, as where its port is taken: Flower looks for it
        os._exit(1)


def _failing(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, which raises an ordinary error where the run has been stopped."""
    from flwr.supercore.run import RunNotRunningException

    def called(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except RunNotRunningException as error:
            raise RuntimeError("the run has been stopped") from error

    return called


def run_executor(runtime_address: str, secret_file: Path) -> None:
    """Takes messages from the SuperNode at `runtime_address` for ever, one forked process each."""
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

    parent = os.getppid()
    _wait_for(runtime_address, parent)  # Flower's own retries back off for seconds
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
    while os.getppid() == parent:
        response = client.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-clientapp"]))
        if response.HasField("task") and response.token and os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                runtime.run_clientapp(runtime_address, response.token, insecure=True, parent_pid=os.getppid())
            finally:
                os._exit(0)
        time.sleep(POLL / 3)


def _wait_for(address: str, parent: int) -> None:
    """Returns when something listens there, or the parent process has ended."""
    host, port = address.rsplit(":", 1)
    while os.getppid() == parent:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(POLL / 3)


if __name__ == "__main__":
    if sys.argv[1] == "supernode":
        run_supernode(sys.argv[2:])
    else:
        run_executor(sys.argv[2], Path(sys.argv[3]))
