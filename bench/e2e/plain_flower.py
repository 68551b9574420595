"""Plain Flower as its users run it: SuperLink, a SuperNode for each hospital, FedAvg; without TLS, in memory.

Flower's own programs start its processes; the apps are this module's, and training is the platform's own. Each message
of a round starts a process, as Flower does by default.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from consilium_chain.rpc.local_node import free_ports
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models import model_of
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from bench.children import ROOT, Child

SEED = 0
ROUNDS_FILE, MODEL_FILE = "rounds.json", "model.npy"
ARRAY = "parameters"
APPS = "plainapps"
LOOK = 0.5  # seconds
START, PATIENCE = 120.0, 3600.0  # seconds
SUPERLINK, SUPERNODE, CLI = "flower-superlink", "flower-supernode", "flwr"

client_app, server_app = ClientApp(), ServerApp()


# The apps


@client_app.train()  # type: ignore[untyped-decorator]
def train_on_rows(message: Message, context: Context) -> Message:
    """Node settings: `task`, a task file, and `rows`, a file of standardised features and labels."""
    from consilium_client.models.training import train

    spec = parse_task_spec(Path(str(context.node_config["task"])).read_bytes())
    with np.load(str(context.node_config["rows"]), allow_pickle=False) as table:
        features, labels = table["features"], table["labels"]
    seed = SEED * 1_000_003 + int(message.content["config"]["server-round"])
    trained = train(spec, message.content["arrays"][ARRAY].numpy(), features, labels, seed)
    found = {"arrays": ArrayRecord({ARRAY: Array(trained)}), "metrics": MetricRecord({"num-examples": len(labels)})}
    return Message(RecordDict(found), reply_to=message)


class TimedFedAvg(FedAvg):  # type: ignore[misc]
    """Notes when each round began and ended, by the system's monotonic clock."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.rounds: list[list[float]] = []

    def configure_train(self, *given: Any, **named: Any) -> Iterable[Message]:
        self.rounds.append([time.monotonic()])
        messages: Iterable[Message] = super().configure_train(*given, **named)
        return messages

    def aggregate_train(self, *given: Any, **named: Any) -> Any:
        found = super().aggregate_train(*given, **named)
        self.rounds[-1].append(time.monotonic())
        return found


@server_app.main()  # type: ignore[untyped-decorator]
def average(grid: Grid, context: Context) -> None:
    """Run settings: `task`, `home` for the results, `rounds`, `hospitals`."""
    settings = context.run_config
    home, everyone = Path(str(settings["home"])), int(settings["hospitals"])
    spec = parse_task_spec(Path(str(settings["task"])).read_bytes())
    strategy = TimedFedAvg(fraction_evaluate=0.0, min_train_nodes=everyone, min_available_nodes=everyone)
    initial = ArrayRecord({ARRAY: Array(model_of(spec).initial(SEED))})
    result = strategy.start(grid, initial, int(settings["rounds"]), PATIENCE, ConfigRecord())
    np.save(home / MODEL_FILE, result.arrays[ARRAY].numpy(), allow_pickle=False)
    (home / ROUNDS_FILE).write_text(json.dumps(strategy.rounds))


# Their network


@contextmanager
def running(home: Path, task_file: Path, rows: Sequence[Path], rounds: int) -> Iterator[dict[str, int]]:
    """Flower's programs until the context is left; yields their process numbers, by name."""
    superlink, *supernodes = range(first := free_ports(1 + len(rows)), first + 1 + len(rows))
    _write_app(home, task_file, rounds, len(rows), superlink)
    told = _environment(home)
    usual = ["--insecure", "--host", "127.0.0.1"]
    with ExitStack() as stack:

        def start(name: str, program: str, *arguments: str) -> Child:
            return stack.enter_context(Child([__name__, program, *usual, *arguments], home / f"{name}.log", told))

        found = {
            "server": start(
                "server", SUPERLINK, "--port", str(superlink),
                "--disable-runtime-dependency-installation",
            )
        }  # fmt: skip
        for index, (port, own) in enumerate(zip(supernodes, rows, strict=True)):
            found[f"hospital-{index + 1}"] = start(
                f"hospital-{index + 1}", SUPERNODE, "--port", str(port),
                "--superlink", f"127.0.0.1:{superlink}", "--node-config", f"task='{task_file}' rows='{own}'",
            )  # fmt: skip
        _await_listener(superlink)
        yield {name: child.pid for name, child in found.items()}


def _await_listener(port: int) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(LOOK)
    raise RuntimeError("plain Flower's SuperLink does not listen")


def _write_app(home: Path, task_file: Path, rounds: int, hospitals: int, port: int) -> None:
    """An app folder, and the settings by which `flwr run` finds the SuperLink."""
    package = home / "app" / APPS
    package.mkdir(parents=True)
    own = "".join(f"{name} = {__name__}.{name}\n" for name in ("client_app", "server_app"))
    (package / "__init__.py").write_text(f"import {__name__}\n\n{own}")  # `flwr run` looks for assignments
    components = {"serverapp": f"{APPS}:server_app", "clientapp": f"{APPS}:client_app"}
    config = {"task": str(task_file), "home": str(home), "rounds": rounds, "hospitals": hospitals}
    project = {
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "project": {"name": APPS, "version": "1.0.0", "description": "", "license": "Apache-2.0", "dependencies": []},
        "tool": {"flwr": {"app": {"publisher": "bench", "components": components, "config": config}}},
    }
    (home / "app" / "pyproject.toml").write_text(tomli_w.dumps(project))
    superlinks = {"superlink": {"default": "bench", "bench": {"address": f"127.0.0.1:{port}", "insecure": True}}}
    (home / "flower").mkdir()
    (home / "flower" / "config.toml").write_text(tomli_w.dumps(superlinks))


def _environment(home: Path) -> dict[str, str]:
    """Flower finds its own programs by the path. They start the apps' processes, which import this module."""
    modules = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "FLWR_HOME": str(home / "flower"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(modules),
    }


def play(home: Path) -> tuple[list[list[float]], np.ndarray[Any, Any]]:
    """Asks the running SuperLink for all rounds; their beginnings and ends, and the last model."""
    with Child([__name__, CLI, "run", str(home / "app"), "bench"], home / "run.log", _environment(home)) as child:
        child.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while not (home / ROUNDS_FILE).exists():
        if time.monotonic() > end:
            raise RuntimeError(f"plain Flower did not end: {(home / 'server.log').read_text(errors='replace')[-2000:]}")
        time.sleep(LOOK)
    return json.loads((home / ROUNDS_FILE).read_text()), np.load(home / MODEL_FILE, allow_pickle=False)


def main() -> None:
    """One of Flower's programs with the rest of the arguments, as its script would start it."""
    sys.argv = sys.argv[1:]
    if sys.argv[0] == SUPERLINK:
        from flwr.superlink.cli import flower_superlink

        flower_superlink()
    elif sys.argv[0] == SUPERNODE:
        from flwr.supernode.cli import flower_supernode

        flower_supernode()
    else:
        from flwr.cli.app import app

        app()


if __name__ == "__main__":
    main()
