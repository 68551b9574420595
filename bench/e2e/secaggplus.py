"""Flower's own SecAgg+ and Flower's own plain round, unmodified, each hospital a process whose CPU time is counted.

What runs is as shipped in flwr: the server's DefaultWorkflow with SecAggPlusWorkflow or without, and FedAvg; the
hospitals' ClientApp with secaggplus_mod or without. Only the way between them is this module's: instead of SuperLink
and SuperNodes, a Grid that hands Flower's own protobuf messages to hospitals over sockets, one hospital after another,
so that a hundred fit two cores and none slows another. Both sides pay for reading and writing those messages; nobody
pays for SuperLink, polls, TLS or a process started for each message, which real Flower does (a baseline never looks
slower than it is).

SecAgg+ keeps Flower's defaults: parameters times rows / max_weight are clipped to [−8, 8] and rounded at random to 2²²
steps, sums are modulo 2³² (so of at most 1,024 hospitals), 8 bytes a parameter on the way; the mean comes back as
float64. Its masks are numpy's Mersenne Twister under 32 bits of the shared secret (`pseudo_rand_gen`): cheaper than a
stream cipher's, and within reach of whoever tries all seeds. It is measured as it is.

Training is the platform's own, one thread.

Run as a program it is a child of the benchmark: `server PLAN` conducts the rounds and starts `hospitals PLAN FD…`,
which loads torch once and splits into one process per hospital.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.models import model_of
from consilium_core.kinds import of_kind
from flwr.app import Context, Message, RecordDict
from flwr.common import ndarrays_to_parameters
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as MessageProto
from flwr.server.workflow.constant import MAIN_PARAMS_RECORD
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray

from bench.children import ROOT
from bench.e2e.own_machines import ServerClock, Stage, hospital_seconds, round_seconds, server_seconds

RUN, SERVER = 1, 1  # Flower's numbers of the run and of the server; hospitals follow
BESIDES = b"besides"
GRACE = 30.0
MIB = 2**20


@dataclass(frozen=True)
class Plan:
    """What the server child is to do: paths are strings, `rows` one file of features and labels per hospital.

    `num_shares` and `threshold` are SecAggPlusWorkflow's: integers are counts, fractions are of all hospitals and of
    the shares; None is the round without secure aggregation. No hospital may have more rows than `max_weight`: larger
    weights are clipped.
    """

    home: str
    task_file: str
    rows: Sequence[str]
    rounds: int
    seed: int
    num_shares: float | None = None
    threshold: float = 2 / 3
    max_weight: float = 1000.0

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Plan:
        return cls(**json.loads(path.read_text()))


class Report(TypedDict):
    """What a hospital's process says of one answer: CPU seconds, of which some by name, and MiB of its peak so far."""

    cpu_s: float
    parts: dict[str, float]
    peak_mib: float


@dataclass
class Traffic(Stage):
    """A stage, and the most bytes that any hospital was sent in it and sent back.

    Of what its seconds went into, parts by name, where somebody looked: of each the CPU seconds of the hospital that it
    took longest, and the server's wall seconds.
    """

    down: int = 0
    up: int = 0
    client_parts: dict[str, float] = field(default_factory=dict)
    server_parts: dict[str, float] = field(default_factory=dict)

    def count(self, request: bytes, answer: bytes, report: Report) -> None:
        """Adds one hospital's answer."""
        self.cpu_s.append(report["cpu_s"])
        self.down, self.up = max(self.down, len(request)), max(self.up, len(answer))
        for name, seconds in report["parts"].items():
            self.client_parts[name] = max(self.client_parts.get(name, 0.0), seconds)

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "server_s": self.server_s,
            "client_cpu_s": self.slowest_cpu_s,
            "client_cpu_mean_s": sum(self.cpu_s) / max(1, len(self.cpu_s)),
            "down_mb": self.down / MIB,
            "up_mb": self.up / MIB,
        }
        return told | {
            f"{side}_parts_s": parts
            for side, parts in (("client", self.client_parts), ("server", self.server_parts))
            if parts
        }


@dataclass
class Round:
    """One round as the server saw it. Seconds, and MiB of the processes' peaks so far."""

    wall_s: float = 0.0
    peaks_mib: dict[str, float] = field(default_factory=dict)  # "client" is the largest hospital
    helpers_cpu_s: dict[str, float] = field(default_factory=dict)  # of processes beside the server's
    besides_cpu_s: float | None = None  # of the slowest hospital: what it did for this round while others worked
    stages: list[Traffic] = field(default_factory=list)

    def count(self, request: bytes, answer: bytes, report: Report) -> None:
        """Adds one hospital's answer to the latest stage."""
        self.stages[-1].count(request, answer, report)
        self.peaks_mib["client"] = max(self.peaks_mib.get("client", 0.0), report["peak_mib"])

    def told(self) -> dict[str, Any]:
        return {
            "round_s": round_seconds(self.stages),
            "wall_s": self.wall_s,
            "client_cpu_s": hospital_seconds(self.stages),
            "train_cpu_s": sum(stage.client_parts.get("train", 0.0) for stage in self.stages),
            "server_s": server_seconds(self.stages),
            "server_cpu_s": sum(stage.server_cpu_s for stage in self.stages),
            **({"helpers_cpu_s": self.helpers_cpu_s} if self.helpers_cpu_s else {}),
            **({} if self.besides_cpu_s is None else {"besides_cpu_s": self.besides_cpu_s}),
            "peak_rss_mb": self.peaks_mib,
            "stages": {stage.name: stage.told() for stage in self.stages},
        }


def peak_mib(process: int | str = "self") -> float:
    """A program's largest resident size so far; getrusage would count what it was started from as well."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


# The hospitals


def hospitals(plan: Plan, connections: Sequence[Connection]) -> None:
    """One process per connection, split off once torch is loaded and warm. Returns when all have ended."""
    from consilium_client.models.training import train

    spec = parse_task_spec(Path(plan.task_file).read_bytes())
    features, labels = np.zeros((1, of_kind(TableSchema, spec.data).columns), np.float32), np.zeros(1, np.int64)
    train(spec, model_of(spec).initial(0), features, labels, 0)
    fork(connections, lambda index: hospital(plan, spec, connections[index], index))


def fork(connections: Sequence[Connection], hospital: Callable[[int], None]) -> None:
    """One process per connection. A connection has one holder, so that the server hears of its death."""

    def alone(index: int) -> None:
        for other in range(len(connections)):
            if other != index:
                connections[other].close()
        hospital(index)

    split = multiprocessing.get_context("fork")
    children = [split.Process(target=alone, args=(index,)) for index in range(len(connections))]
    for child in children:
        child.start()
    for connection in connections:
        connection.close()
    for child in children:
        child.join()


def hospital(plan: Plan, spec: TaskSpec, connection: Connection, index: int) -> None:
    """Answers until the server hangs up."""
    np.random.seed()  # Flower rounds by numpy's global generator: processes split off one would round alike
    parts: dict[str, float] = {}
    app = training_app(plan, spec, index, lambda seconds: parts.update(train=seconds))
    answer_all(connection, index, app, parts)


def answer_all(
    connection: Connection,
    index: int,
    app: Callable[[Message, Context], Message],
    parts: dict[str, float],
    besides: Callable[[], None] | None = None,
) -> None:
    """Answers until the server hangs up. `parts` are CPU seconds, which whoever works in `app` adds to; `besides` is
    what a hospital does when it is told `BESIDES`.
    """
    context = Context(RUN, node_of(index), {}, RecordDict(), {})
    while answer_one(connection, app, context, parts, besides):
        parts.clear()


def answer_one(
    connection: Connection,
    app: Callable[[Message, Context], Message],
    context: Context,
    parts: dict[str, float],
    besides: Callable[[], None] | None,
) -> bool:
    """Answers one message, then what it took; False when the server has hung up. Keeps nothing large until the next."""
    try:
        request = connection.recv_bytes()
    except EOFError:
        return False
    started = time.process_time()
    if besides is not None and request == BESIDES:
        besides()
        answer = BESIDES
    else:
        answer = written(app(read(request), context))
    report: Report = {"cpu_s": time.process_time() - started, "parts": parts, "peak_mib": peak_mib()}
    connection.send_bytes(answer)
    connection.send_bytes(json.dumps(report).encode())
    return True


def training_app(plan: Plan, spec: TaskSpec, index: int, trained: Callable[[float], None]) -> Any:
    """A ClientApp of Flower's API that SecAgg+ is made for; tells `trained` the CPU seconds of each training."""
    from consilium_client.models.training import train
    from flwr.client import NumPyClient
    from flwr.client.mod import secaggplus_mod
    from flwr.clientapp import ClientApp

    with np.load(plan.rows[index], allow_pickle=False) as table:
        features, labels = table["features"], table["labels"]

    class Hospital(NumPyClient):  # type: ignore[misc]
        def fit(self, parameters: list[NDArray[Any]], config: dict[str, Any]) -> tuple[list[NDArray[Any]], int, Any]:
            started = time.process_time()
            base = parameters[0].astype(np.float32, copy=False)  # SecAgg+ gives back float64
            result = train(spec, base, features, labels, plan.seed * 1_000_003 + int(config["round"]))
            trained(time.process_time() - started)
            return [result], len(labels), {}

    return ClientApp(lambda context: Hospital().to_client(), mods=[secaggplus_mod] if plan.num_shares else [])


# The server


def node_of(index: int) -> int:
    return SERVER + 1 + index


def read(raw: bytes) -> Message:
    return message_from_proto(MessageProto.FromString(raw))


def written(message: Message) -> bytes:
    raw: bytes = message_to_proto(message).SerializeToString()
    return raw


class HospitalsGrid:
    """As much of a Grid as workflows ask for: hands messages to hospitals' processes one after another, and keeps each
    round's account.

    A stage is one exchange with the hospitals, from the sending of its messages to that of the next one's, so that what
    the server does with the answers counts to it. Before the first, a stage of the server alone, `configure`.
    """

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = {node_of(index): connection for index, connection in enumerate(connections)}
        self._clock = ServerClock()
        self.rounds: list[Round] = []

    def account(self, workflow: Callable[[Grid, Context], None]) -> Callable[[Grid, Context], None]:
        """`workflow`, each call of which is a round. Raises RuntimeError where Flower gave a round up."""

        def one_round(grid: Grid, context: Context) -> None:
            before = context.state.array_records[MAIN_PARAMS_RECORD]
            now = Round(stages=[Traffic("configure")])
            self.rounds.append(now)
            started = time.perf_counter()
            self._clock.skip()
            workflow(grid, context)
            if context.state.array_records[MAIN_PARAMS_RECORD] is before:
                raise RuntimeError("Flower gave the round up and left the model as it was: it says why above")
            self._clock.credit(now.stages[-1])
            now.wall_s, now.peaks_mib["server"] = time.perf_counter() - started, peak_mib()

        return one_round

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Every answer; `timeout` (seconds) is not kept. Raises RuntimeError if a hospital's process has ended."""
        now, asked = self.rounds[-1], list(messages)
        self._clock.credit(now.stages[-1])
        stage = Traffic(stage_name(asked[0]))
        now.stages.append(stage)
        answers = []
        for message in asked:
            request = written(message)
            self._clock.credit(stage)
            answer, report = self._ask(message.metadata.dst_node_id, request)
            self._clock.skip()
            answers.append(read(answer))
            now.count(request, answer, report)
        return answers

    def _ask(self, node: int, request: bytes) -> tuple[bytes, Report]:
        connection = self._connections[node]
        try:
            connection.send_bytes(request)
            return connection.recv_bytes(), json.loads(connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise RuntimeError(f"hospital {node - SERVER} ended in round {len(self.rounds)}: see the log") from error

    def get_node_ids(self) -> list[int]:
        return list(self._connections)

    @property
    def run(self) -> Run:
        return Run.create_empty(RUN)


def stage_name(message: Message) -> str:
    """SecAgg+'s own name of the stage; a plain round has one."""
    configs = message.content.config_records.get(RECORD_KEY_CONFIGS, {})
    return str(configs.get(Key.STAGE, "train"))


def conduct(plan: Plan, connections: Sequence[Connection]) -> tuple[list[Round], NDArray[np.float32]]:
    """All rounds, and the last one's model."""
    from flwr.server import LegacyContext, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
    from flwr.server.workflow.default_workflows import default_fit_workflow

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, SERVER, 0
    spec = parse_task_spec(Path(plan.task_file).read_bytes())
    everyone = len(connections)
    strategy = FedAvg(
        min_fit_clients=everyone,
        min_available_clients=everyone,
        fraction_evaluate=0.0,
        accept_failures=False,
        initial_parameters=ndarrays_to_parameters([model_of(spec).initial(plan.seed)]),
        on_fit_config_fn=lambda number: {"round": number},
    )
    secure = plan.num_shares is not None
    fit = (
        SecAggPlusWorkflow(plan.num_shares, plan.threshold, max_weight=plan.max_weight)
        if secure
        else default_fit_workflow
    )
    grid = HospitalsGrid(connections)
    context = LegacyContext(Context(RUN, SERVER, {}, RecordDict(), {}), ServerConfig(num_rounds=plan.rounds), strategy)
    DefaultWorkflow(fit_workflow=grid.account(fit))(grid, context)
    (model,) = context.state.array_records[MAIN_PARAMS_RECORD].to_numpy_ndarrays()
    return grid.rounds, model.astype(np.float32)


@contextmanager
def split_off(program: str, plan_file: str, count: int) -> Iterator[list[Connection]]:
    """Connections to `count` hospitals' processes, which `program` is and which end when the context is left."""
    pairs = [socket.socketpair() for _ in range(count)]
    theirs = [str(far.fileno()) for _, far in pairs]
    command = [sys.executable, "-m", program, "hospitals", plan_file, *theirs]
    child = subprocess.Popen(command, cwd=ROOT, pass_fds=[far.fileno() for _, far in pairs])
    for _, far in pairs:
        far.close()
    connections = [Connection(near.detach()) for near, _ in pairs]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()
        child.wait(GRACE)


def server(plan_file: str) -> None:
    """Writes rounds.json and model.npy into the plan's home."""
    plan = Plan.read(Path(plan_file))
    with split_off(__spec__.name, plan_file, len(plan.rows)) as connections:
        rounds, model = conduct(plan, connections)
    home = Path(plan.home)
    np.save(home / "model.npy", model, allow_pickle=False)
    (home / "rounds.json").write_text(json.dumps([one.told() for one in rounds]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    if sys.argv[1] == "server":
        server(sys.argv[2])
    else:
        hospitals(Plan.read(Path(sys.argv[2])), [Connection(int(one)) for one in sys.argv[3:]])
