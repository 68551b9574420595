"""The same Flower round without commitments and chain: base parameters down, trained parameters up, FedAvg.

SuperLink, SuperNodes and warm executors are those of a verifiable round, started with the same settings by the same
code (`consilium_server.flower_internals`, `consilium_client.relay`); the training function, its rows and seeds too.
What differs is the app: this one trains where the relay would ask the hospital's node.

Run as a program it is a child of the benchmark: `server PLAN` conducts the rounds, `executor …` is what it starts.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import consilium_client.relay.app as relay_app
import numpy as np
from consilium_chain.keystore import write_private_file
from consilium_chain.task_spec import TaskSpec, parse_task_spec
from consilium_client.config import FlowerSettings
from consilium_client.models import initial_parameters
from consilium_client.relay.flower_internals import run_executor
from consilium_client.relay.processes import RelayProcesses, transport_public_key
from consilium_server.flower_internals import SuperLink
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from numpy.typing import NDArray

POLL = 0.15  # as the verifiable side's aggregator
PATIENCE = 120.0  # seconds for nodes to come online, and for a round


@dataclass(frozen=True)
class Plan:
    """What the server child is to do: paths are strings, `rows` one file of features and labels per hospital."""

    home: str
    port: int
    task_file: str
    rows: Sequence[str]
    weights: Sequence[int]
    rounds: int
    seed: int

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Plan:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True)
class PlainRound:
    """Seconds: of the whole round, of the slowest hospital's training, and of the averaging."""

    seconds: float
    train_s: float
    average_s: float


class PlainRelay(RelayProcesses):
    """A hospital's SuperNode and executor, the latter with the training app instead of the relay app."""

    def __init__(self, home: Path, flower: FlowerSettings, task_file: str, rows: str, seed: int) -> None:
        settings: Any = SimpleNamespace(home=home, flower=flower)
        super().__init__(settings, home / "unused.sock")
        script = [sys.executable, __file__, "executor"]
        arguments = [self._runtime, str(self._secret_file), task_file, rows, str(seed)]
        self._commands["executor"] = [*script, *arguments]
        self._environment["OMP_NUM_THREADS"] = "1"

    def dismiss(self) -> None:
        """Asks the children to end, without waiting: a SuperNode takes seconds, all of them together no longer."""
        for child in self._children.values():
            child.terminate()


# The executor


def training_app(spec: TaskSpec, features: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> ClientApp:
    """Trains from the parameters that a message brings; torch is loaded and warm before the first one."""
    from consilium_client.training import train

    train(spec, initial_parameters(spec.model, spec.data.columns, 0), features, labels, 0)
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def answer(message: Message, context: Context) -> Message:
        (base,) = message.content["model"].to_numpy_ndarrays()
        round_ = int(message.content["request"]["round"])
        started = time.monotonic()
        trained = train(spec, base, features, labels, seed * 1_000_003 + round_)
        seconds = time.monotonic() - started
        content = {"model": ArrayRecord([trained]), "metrics": MetricRecord({"train_s": seconds})}
        return Message(RecordDict(content), reply_to=message)

    return app


def executor(runtime: str, secret_file: str, task_file: str, rows: str, seed: str) -> None:
    with np.load(rows) as table:
        spec = parse_task_spec(Path(task_file).read_bytes())
        relay_app.app = training_app(spec, table["features"], table["labels"], int(seed))
    run_executor(runtime, Path(secret_file))


# The server


def conduct(plan: Plan) -> tuple[list[PlainRound], NDArray[np.float32]]:
    """All rounds, and the last one's model."""
    home = Path(plan.home)
    task_file = Path(plan.task_file)
    spec = parse_task_spec(task_file.read_bytes())
    parameters = initial_parameters(spec.model, spec.data.columns, plan.seed)
    rounds = []
    with ExitStack() as stack:
        superlink = stack.enter_context(SuperLink(home, plan.port))
        superlink.wait_until_up()
        nodes: list[int] = []
        relays: list[PlainRelay] = []
        for index, rows in enumerate(plan.rows):
            key = new_transport_key(home / f"hospital-{index + 1}")
            nodes.append(superlink.register(transport_public_key(key)))
            flower = FlowerSettings(
                superlink=superlink.address, ca_certificate=superlink.certificates.authority, transport_key=key
            )
            relay = PlainRelay(key.parent, flower, plan.task_file, rows, plan.seed)
            stack.enter_context(relay)
            relay.keep_running()
            relays.append(relay)
        grid, _ = stack.enter_context(superlink.run())
        wait_until_online(grid, nodes)
        for round_ in range(1, plan.rounds + 1):
            measured, parameters = one_round(grid, nodes, plan.weights, parameters, round_)
            rounds.append(measured)
        for relay in relays:
            relay.dismiss()
    return rounds, parameters


def new_transport_key(home: Path) -> Path:
    """A hospital's Flower node key."""
    home.mkdir(parents=True)
    key = ec.generate_private_key(ec.SECP384R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_private_file(home / "transport.key", text.decode())
    return home / "transport.key"


def wait_until_online(grid: Grid, nodes: Sequence[int]) -> None:
    end = time.monotonic() + PATIENCE
    while not set(nodes) <= set(grid.get_node_ids()):
        if time.monotonic() > end:
            raise TimeoutError(f"not all SuperNodes came online within {PATIENCE:.0f} s; see their logs")
        time.sleep(POLL)


def one_round(
    grid: Grid, nodes: Sequence[int], weights: Sequence[int], base: NDArray[np.float32], round_: int
) -> tuple[PlainRound, NDArray[np.float32]]:
    """Sends the base to all, waits for all, averages by weight."""
    started = time.monotonic()
    request = ConfigRecord({"round": round_})
    messages = [
        Message(RecordDict({"model": ArrayRecord([base]), "request": request}), dst_node_id=node, message_type="train")
        for node in nodes
    ]
    waiting = dict(zip(grid.push_messages(messages), range(len(nodes)), strict=True))
    trained: dict[int, NDArray[np.float32]] = {}
    train_s = 0.0
    while waiting:
        if time.monotonic() - started > PATIENCE:
            raise TimeoutError(f"{len(waiting)} hospitals did not answer in round {round_}; see their logs")
        for reply in grid.pull_messages(list(waiting)):
            if reply.has_error():
                raise RuntimeError(f"a hospital failed in round {round_}: {reply.error.reason}")
            (parameters,) = reply.content["model"].to_numpy_ndarrays()
            trained[waiting.pop(reply.metadata.reply_to_message_id)] = parameters
            train_s = max(train_s, float(reply.content["metrics"]["train_s"]))
        if waiting:
            time.sleep(POLL)
    arrived = time.monotonic()
    total = np.zeros(base.shape)
    for index, parameters in trained.items():
        total += weights[index] * parameters.astype(np.float64)
    mean = (total / sum(weights)).astype(np.float32)
    ended = time.monotonic()
    return PlainRound(round(ended - started, 3), round(train_s, 3), round(ended - arrived, 4)), mean


def server(plan_file: str) -> None:
    """Writes rounds.json and model.npy into the plan's home."""
    plan = Plan.read(Path(plan_file))
    rounds, parameters = conduct(plan)
    home = Path(plan.home)
    np.save(home / "model.npy", parameters, allow_pickle=False)
    (home / "rounds.json").write_text(json.dumps([asdict(one) for one in rounds]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    if sys.argv[1] == "server":
        server(sys.argv[2])
    else:
        executor(*sys.argv[2:])
