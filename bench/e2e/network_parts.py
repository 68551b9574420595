"""The processes of bench/e2e/network.py: those that join, those that judge, and Flower's engine with the aggregators.

Run as a program: `join PLAN K N` makes every N-th hospital from the K-th join its task, and ends; `judge PLAN K N` does
the same with voters, which then judge until their tasks have ended; `simulate PLAN` runs the engine.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.logs import about, json_line, log_to
from consilium_server.aggregator.collection import Carrier
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid, ServerApp

PLAN = "CONSILIUM_NETWORK_PLAN"
AT_ONCE = 12  # requests that the engine holds, of all tasks
ACTORS = 2
STORE_BYTES = 256 * 2**20  # of ray's object store
LOOK = 0.5  # seconds


@dataclass(frozen=True)
class TaskPlan:
    """A task's number, and its parties' homes, as paths."""

    number: int
    aggregator: str
    hospitals: list[str]
    voters: list[str]


@dataclass(frozen=True)
class Plan:
    home: str
    chain_url: str
    voter_bond: int  # in whole tokens
    tasks: list[TaskPlan]

    def write(self) -> Path:
        path = Path(self.home) / "plan.json"
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def read(cls, path: Path) -> Plan:
        fields = json.loads(path.read_text())
        return cls(**{**fields, "tasks": [TaskPlan(**task) for task in fields["tasks"]]})

    def ledger(self) -> Ledger:
        """A reader's."""
        return Ledger(Connection(self.chain_url), Deployment.read(Path(self.home) / "deployment.json"))


def hospital_node(task: int, home: str) -> Any:
    """A hospital's node, which pays for its own transactions."""
    from consilium_client.home import HospitalHome
    from consilium_client.hospital.node import HospitalNode

    opened = HospitalHome.open(Path(home))
    deployment = Deployment.read(opened.settings.deployment)
    return HospitalNode(opened.node_settings(task, f"{deployment.chain_id}-{deployment.tasks}-{task}"))


def join(plan: Plan, first: int, step: int) -> None:
    everybody = [(task.number, home) for task in plan.tasks for home in task.hospitals]
    for task, home in everybody[first::step]:
        hospital_node(task, home).join()


def judge(plan: Plan, first: int, step: int) -> None:
    from consilium_client.home import VoterHome
    from consilium_client.voter.node import VoterNode
    from consilium_client.voter.registration import register

    judges: dict[int, list[VoterNode]] = {task.number: [] for task in plan.tasks}
    everybody = [(task.number, home) for task in plan.tasks for home in task.voters]
    for task, folder in everybody[first::step]:
        home = VoterHome.open(Path(folder))
        ledger = home.settings.connect()
        register(ledger, plan.voter_bond * TOKEN, 0)
        node = VoterNode(home.node_settings(task, ledger.folder_name(task)), ledger)
        node.join()
        judges[task].append(node)
    reader, block = plan.ledger(), 0
    done: set[tuple[int, int, Phase]] = set()  # where nobody here has anything more to do
    while judges:
        for task, nodes in list(judges.items()):
            state = reader.tasks.state(task)
            moment = task, state.round, state.phase
            if state.phase is Phase.ENDED:
                del judges[task]
            elif state.phase in (Phase.SCORING, Phase.REVEALING) and moment not in done:
                taken = {(state.round, step) for node in nodes for step in node.poll()}
                if not any(failed[:2] in taken for node in nodes for failed in node.failed):
                    done.add(moment)
        block = reader.connection.blocks.wait_after(block)


# The engine's side of a hospital

app = ClientApp()
_nodes: dict[str, Any] = {}  # of this actor, by home; what has to last is in the home


@app.train()  # type: ignore[untyped-decorator]
def answer(message: Message, context: Context) -> Message:
    """The relay's own app, with the node in its process instead of behind a socket."""
    from consilium_client.relay import app as relay

    relay._ask_node = lambda message: ask(message, context)
    return relay.train(message, context)


def ask(message: Message, context: Context) -> Any:
    """Any actor may be asked: nodes go on from what is in their homes."""
    from consilium_client.membership import ROUND_ERRORS
    from consilium_client.relay.wire import RoundReply, RoundRequest

    plan_file = Path(os.environ[PLAN])
    fields = message.content["request"]
    number, round_ = int(fields["task"]), int(fields["round"])
    request = RoundRequest(bytes(fields["contract"]), number, round_, Part(fields["part"]))
    with (plan_file.parent / f"actor-{os.getpid()}.log").open("a") as log, log_to(_writer(log)):
        try:
            node = _node(plan_file, number, context.node_id)
            reply = node.answer(request)
            node.link.write_down(request, reply)
        except ROUND_ERRORS as error:
            log.write(f"{type(error).__name__}: {error}\n")
            return RoundReply(ReplyCode.FAILED)
    return reply


def _writer(log: Any) -> Any:
    return lambda event, fields: log.write(json_line(event, fields))


def _node(plan_file: Path, task: int, node_id: int) -> Any:
    home = json.loads((plan_file.parent / "nodes.json").read_text())[str(node_id)]
    if home not in _nodes:
        node = hospital_node(task, home)
        node.join()  # has joined: finds its membership, as after a restart
        _nodes[home] = node
    return _nodes[home]


# The engine's side of the aggregators


@dataclass
class Traffic:
    """Flower messages as they would be serialised."""

    requests: int = 0
    replies: int = 0
    request_bytes: int = 0
    reply_bytes: int = 0
    largest_reply: int = 0


class Waves:
    """Hands an engine that has few workers its requests in waves: a hospital's second once all of its task have
    answered their first, for who has signed waits for all others. Few of a wave at once: each look of the engine at
    what is there is a look at all of it for each of its nodes. And only what `is_due`: a hospital of a shard that is
    done waits for the other shards, whose hospitals need the workers.
    """

    def __init__(self, grid: Carrier, at_once: int, is_due: Callable[[Message], bool] = lambda _: True) -> None:
        self._grid, self._at_once, self._is_due, self.traffic = grid, at_once, is_due, Traffic()
        self._waves: deque[deque[tuple[str, Message]]] = deque()
        self._wave_of: dict[int, int] = {}  # by node: how many waves had begun with its latest
        self._begun = 0
        self._open: dict[str, str] = {}  # by the engine's own number
        self._sent = 0

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        tickets = []
        for message in messages:
            self._sent += 1
            tickets.append(str(self._sent))
            self._into_wave(message, tickets[-1])
        self._hand_over()
        return tickets

    def _into_wave(self, message: Message, ticket: str) -> None:
        node = message.metadata.dst_node_id
        wave = max(self._wave_of.get(node, -1) + 1, self._begun)
        self._wave_of[node] = wave
        while len(self._waves) <= wave - self._begun:
            self._waves.append(deque())
        self._waves[wave - self._begun].append((ticket, message))

    def _hand_over(self) -> None:
        while self._waves and not self._waves[0] and not self._open:
            self._waves.popleft()
            self._begun += 1
        while self._waves and len(self._open) < self._at_once:
            wave = self._waves[0]
            at = next((index for index, (_, message) in enumerate(wave) if self._is_due(message)), None)
            if at is None:
                return
            ticket, message = wave[at]
            del wave[at]
            (number,) = self._grid.push_messages([message])
            self._open[number] = ticket
            self.traffic.requests += 1
            self.traffic.request_bytes += message_to_proto(message).ByteSize()

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        found = list(self._grid.pull_messages(list(self._open))) if self._open else []
        for reply in found:
            size = message_to_proto(reply).ByteSize()
            self.traffic.replies += 1
            self.traffic.reply_bytes += size
            self.traffic.largest_reply = max(self.traffic.largest_reply, size)
            metadata = reply.metadata
            metadata.__dict__["_reply_to_message_id"] = self._open.pop(metadata.reply_to_message_id)
        self._hand_over()
        return found

    def get_node_ids(self) -> Iterable[int]:
        return self._grid.get_node_ids()


class Uploading:
    """Says if a request is for a part whose phase has begun. Looks at the chain at most twice a second."""

    def __init__(self, ledger: Ledger, task: int) -> None:
        self._ledger, self._task, self._looked = ledger, task, -math.inf
        self._now: tuple[int, Phase] = 0, Phase.JOINING

    def __call__(self, message: Message) -> bool:
        fields = message.content["request"]
        if Part(fields["part"]) is not Part.UPLOAD:
            return True
        if time.monotonic() > self._looked + LOOK:
            self._looked, state = time.monotonic(), self._ledger.tasks.state(self._task)
            self._now = state.round, state.phase
        return self._now >= (int(fields["round"]), Phase.UPLOADING)


def simulate(plan: Plan, plan_file: Path) -> None:
    """Writes simulation.json into the plan's home."""
    from consilium_chain.settings import read_settings
    from consilium_server.aggregator.node import Aggregator
    from consilium_server.config import AggregatorSettings
    from consilium_zk.kzg import setup
    from flwr.simulation import run_simulation

    os.environ |= {PLAN: str(plan_file), "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    aggregators = [Aggregator(read_settings(Path(task.aggregator), AggregatorSettings)) for task in plan.tasks]
    hospitals = [home for task in plan.tasks for home in task.hospitals]
    traffic: dict[int, Traffic] = {}
    server = ServerApp()

    @server.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        while len(ids := sorted(grid.get_node_ids())) < len(hospitals):
            time.sleep(LOOK)
        written = plan_file.parent / "nodes.part"
        written.write_text(json.dumps(dict(zip(map(str, ids), hospitals, strict=True))))
        written.rename(plan_file.parent / "nodes.json")
        setup()
        home_of = dict(zip(hospitals, ids, strict=True))
        with ThreadPoolExecutor(len(aggregators)) as threads:
            list(threads.map(lambda one, task: conduct(one, task, grid, home_of), aggregators, plan.tasks))

    def conduct(aggregator: Aggregator, task: TaskPlan, grid: Grid, node_of: Mapping[str, int]) -> None:
        """As the aggregator's own `run`, with the engine instead of its SuperLink."""
        from consilium_chain.rpc.cell_proofs import CellProver

        ledger = aggregator.ledger
        waves = Waves(grid, max(ACTORS, AT_ONCE // len(plan.tasks)), Uploading(ledger, task.number))
        with about(task=task.number), CellProver(1) as ledger.aggregator.prover:
            ledger.aggregator.join(task.number, aggregator.params.aggregator_bond)
            aggregator._wait_for_participants()
            addresses = {hospital.node: index for index, hospital in enumerate(ledger.tasks.hospitals(task.number))}
            nodes = {addresses[address_of(home)]: node_of[home] for home in task.hospitals}
            aggregator.conduct(waves, nodes)
        traffic[task.number] = waves.traffic

    run_simulation(
        server,
        app,
        len(hospitals),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {
                "num_cpus": ACTORS,
                "_temp_dir": str(plan_file.parent / "ray"),
                "object_store_memory": STORE_BYTES,
                "log_to_driver": False,
            },
        },
    )
    told = {str(number): asdict(one) for number, one in traffic.items()}
    (plan_file.parent / "simulation.json").write_text(json.dumps(told))


def address_of(home: str) -> str:
    from consilium_chain.keystore import address_of as of_file

    return of_file(Path(home) / "key.json")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    what, plan_file, *rest = sys.argv[1:]
    plan = Plan.read(Path(plan_file))
    match what:
        case "join":
            join(plan, *map(int, rest))
        case "judge":
            judge(plan, *map(int, rest))
        case "simulate":
            simulate(plan, Path(plan_file))


if __name__ == "__main__":
    from bench.e2e import network_parts  # so that the engine's actors import the app, rather than have it sent

    network_parts.main()
