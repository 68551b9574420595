"""The platform's own masked and verified round, each hospital a process whose CPU time is counted.

What runs are the nodes themselves: the aggregator's class with its own settings, task and account, and hospitals' nodes
behind the relay's Flower app, which asks them over the node's socket as it does in a hospital. The chain is a real one
(anvil) with the real contracts; it mines each transaction at once, so that no second of a block interval is in the
round, but the aggregator looks for a receipt every 30 ms. What is this module's is the order: it calls the aggregator's
steps one after another instead of letting it look around, and hands Flower's protobuf messages to hospitals over
sockets, as bench/e2e/secaggplus.py does, one hospital after another.

A round begins with the assignment of cohorts (one, of all hospitals) and ends once the sum is on chain, or its hash,
and the contract has added up the commitments. How it is judged then, so that the next can begin, is no part of it; what
hospitals read ahead meanwhile is counted apart.

    configure  server: cohorts are assigned, everybody is asked
    update     hospitals: derive the base, of what they read ahead, train, quantise, pack, blind, commit, deal, sign
               server: checks it, stores share bundles, commits for all on chain
    upload     hospitals: read share bundles, weigh, mask; server: fixes the survivors on chain
    unmask     hospitals: open the shares dealt to them
               server: unmasks the sum, checks it against the commitments, publishes it with its proofs

A hospital's CPU time has in it all that its node asks the chain for; what the chain's own process spends on answering
is nobody's. The chain's part in transactions is in the aggregator's wall time, who waits for it.

Run as a program it is a child of the benchmark: `server PLAN` conducts the rounds and starts `hospitals PLAN FD…`,
which loads everything once and splits into one process per hospital.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, RoundState, TaskState, ballot_size
from consilium_chain.rounds.machine import Step
from consilium_chain.settings import read_settings
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_client.home import HospitalHome
from consilium_core.kinds import of_kind
from consilium_zk.kzg import setup
from consilium_zk.tickets import public_key, sign_ticket
from flwr.app import Message
from numpy.typing import NDArray

from bench.e2e.secaggplus import (
    BESIDES,
    RUN,
    SERVER,
    HospitalsGrid,
    Round,
    Traffic,
    answer_all,
    fork,
    node_of,
    peak_mib,
    read,
    split_off,
    written,
)

JOIN = b"join"
FINE = 90_000  # a score, in millionths: every sum is accepted


@dataclass(frozen=True)
class Plan:
    """What the server child is to do: configurations are the nodes' own, written as an operator would, as paths."""

    home: str
    aggregator: str
    hospitals: Sequence[str]
    voter: str
    rounds: int
    chain: int  # process id

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Plan:
        return cls(**json.loads(path.read_text()))


class Parts(dict[str, float]):
    """Seconds by part, each without those of parts within it. In one thread at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._within: list[float] = []

    def watch(self, part: str, owner: Any, *names: str) -> None:
        """Counts what these functions of an object, a class or a module take from now on."""
        for name in names:
            setattr(owner, name, self._counted(part, getattr(owner, name)))

    def _counted(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._within.append(0.0)
            started = self._clock()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = self._clock() - started
                self[part] = self.get(part, 0.0) + seconds - self._within.pop()
                if self._within:
                    self._within[-1] += seconds

        return counted


def cpu_seconds(process: int) -> float:
    """User and system time of another process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# The hospitals


def hospitals(plan: Plan, connections: Sequence[Connection]) -> None:
    """One process per connection, split off once everything is loaded and warm. Returns when all have ended."""
    from consilium_client.models import model_of
    from consilium_client.models.training import train
    from consilium_client.task import load_task

    settings = HospitalHome.open(Path(plan.hospitals[0])).approved_settings(None)
    ledger = settings.model_copy(update={"sponsor": None}).connect()
    spec = load_task(ledger, ArtifactStore(settings.artifacts), settings.task).spec
    features, labels = np.zeros((1, of_kind(TableSchema, spec.data).columns), np.float32), np.zeros(1, np.int64)
    train(spec, model_of(spec).initial(0), features, labels, 0)
    setup()
    fork(connections, lambda index: hospital(plan.hospitals[index], connections[index], index))


def hospital(home: str, connection: Connection, index: int) -> None:
    """A hospital's node, which joins when it is told to and then answers until the server hangs up."""
    from consilium_client.hospital.node import HospitalNode
    from consilium_client.hospital.relay_link import Listener
    from consilium_client.relay import app
    from consilium_client.relay.wire import SOCKET_VARIABLE

    if connection.recv_bytes() != JOIN:
        return
    node = HospitalNode(HospitalHome.open(Path(home)).approved_settings(None).model_copy(update={"sponsor": None}))
    node.join()
    connection.send_bytes(JOIN)
    parts = Parts(time.process_time)
    watch_hospital(parts, node)
    node.settings.runtime.mkdir(exist_ok=True)
    socket_path = node.settings.runtime / "node.sock"
    os.environ[SOCKET_VARIABLE] = str(socket_path)
    with Listener(socket_path, node.answer, node.link.write_down):
        answer_all(connection, index, app.app, parts, lambda: read_ahead(node))


def read_ahead(node: Any) -> None:
    view, due = node.due()
    if Step.READ_AHEAD in due:
        node.actions[Step.READ_AHEAD](view)


def watch_hospital(parts: Parts, node: Any) -> None:
    """What is in no part is Flower's messages, the socket's, and what the node asks the chain."""
    from consilium_client.hospital import learning, masking, round_updates
    from consilium_zk.secure_aggregation import MaskingHospital

    parts.watch("derive base", node.training.record, "base")
    parts.watch("train", learning, "learn")
    parts.watch("quantise and pack", node.training, "packed")
    parts.watch("blind", node.updates, "_blinded")
    parts.watch("commit", round_updates, "commit")
    parts.watch("deal", node.updates, "secret_shares")
    parts.watch("sign", node.ledger.hospital, "sign_update")
    parts.watch("keep on disk", node.updates.pending, "write")
    parts.watch("write down replies", node.link, "write_down")
    parts.watch("read share bundles", node.updates.masking, "_share_bundles")
    parts.watch("weigh", round_updates, "scale")
    parts.watch("expand masks", MaskingHospital, "mask")
    parts.watch("add masks", masking, "add")
    parts.watch("open shares", MaskingHospital, "answer")


# The server


class QueueGrid(HospitalsGrid):
    """What the aggregator sends waits until hospitals are to answer, and their answers until it takes them in."""

    def __init__(self, connections: Sequence[Connection], parts: Parts) -> None:
        super().__init__(connections)
        self._asked: dict[int, deque[tuple[str, bytes]]] = {node: deque() for node in self._connections}
        self._answers: dict[str, bytes] = {}
        self._sent = 0
        self._besides = 0.0
        self._parts = parts

    def begin(self) -> None:
        self.rounds.append(Round(stages=[Traffic("configure")], besides_cpu_s=self._besides))
        self._parts.clear()
        self._started = time.perf_counter()
        self._clock.skip()

    def exchange(self, name: str) -> None:
        """Every hospital answers the oldest message to it: the server's work until then was the stage's before."""
        now = self.rounds[-1]
        self._end_stage(now)
        now.stages.append(Traffic(name))
        for node, queue in self._asked.items():
            identifier, request = queue.popleft()
            self._answers[identifier], report = self._ask(node, request)
            now.count(request, self._answers[identifier], report)
        self._clock.skip()

    def end(self) -> None:
        now = self.rounds[-1]
        self._end_stage(now)
        now.wall_s = time.perf_counter() - self._started

    def _end_stage(self, now: Round) -> None:
        self._clock.credit(now.stages[-1])
        now.stages[-1].server_parts = dict(self._parts)
        self._parts.clear()

    def join(self) -> None:
        """Everybody, in order."""
        for connection in self._connections.values():
            connection.send_bytes(JOIN)
            if connection.recv_bytes() != JOIN:
                raise RuntimeError("a hospital did not join: see the log")

    def besides(self) -> None:
        """What hospitals do for the next round while a committee judges, counted apart."""
        self._besides = max(self._ask(node, BESIDES)[1]["cpu_s"] for node in self._connections)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        identifiers = []
        for message in messages:
            self._sent += 1
            identifier = str(self._sent)
            message.metadata.__dict__["_message_id"] = identifier  # as Flower's own grids do
            self._asked[message.metadata.dst_node_id].append((identifier, written(message)))
            identifiers.append(identifier)
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [read(self._answers.pop(one)) for one in message_ids if one in self._answers]


class Conductor:
    """Takes a real aggregator through its rounds, and a lone voter through their judging."""

    def __init__(self, plan: Plan, connections: Sequence[Connection]) -> None:
        from consilium_client.home import VoterHome
        from consilium_server.aggregator.node import Aggregator
        from consilium_server.config import AggregatorSettings

        self.parts = Parts(time.perf_counter)
        self.grid = QueueGrid(connections, self.parts)
        self.nodes = {index: node_of(index) for index in range(len(connections))}
        self.plan = plan
        self.aggregator = Aggregator(read_settings(Path(plan.aggregator), AggregatorSettings))
        self.ledger: Ledger = self.aggregator.ledger
        self.task = self.aggregator.number
        self.voter = VoterHome.open(Path(plan.voter)).settings.connect()

    def run(self) -> NDArray[np.float32]:
        """Every round; returns the last one's model."""
        from consilium_chain.rpc.cell_proofs import CellProver
        from consilium_server.aggregator.node import MOST_PROVERS

        params = self.aggregator.params
        processes = min(params.cohorts * params.update_blobs, os.cpu_count() or 1, MOST_PROVERS)
        with CellProver(processes) as self.ledger.aggregator.prover:  # as the aggregator's own `run`
            setup()
            self._join()
            watch_server(self.parts, self.aggregator)
            for _ in range(self.plan.rounds + 1):
                self._round()
                self._judge()
        return self._model()

    def _join(self) -> None:
        params = self.aggregator.params
        self.ledger.aggregator.join(self.task, params.aggregator_bond)
        self.voter.voter.join(self.task)  # registered with its home
        self.grid.join()

    def _round(self) -> None:
        state, round_state = self._await_beacon()
        before = self._helpers_cpu_s()
        self.grid.begin()
        if state.phase is Phase.FORMING:
            self.aggregator._attempt(Step.FORM_COHORTS, state, round_state)
        self._look(Phase.COMMITTING)
        self.grid.exchange("update")
        self._look(Phase.COMMITTING)
        self.grid.exchange("upload")
        state, round_state = self._look(Phase.UPLOADING)
        self.aggregator._attempt(Step.FIX_SURVIVORS, state, round_state)
        self.grid.exchange("unmask")
        state, round_state = self._look(Phase.PUBLISHING)
        if not self.aggregator.rounds.of(state.round).has_parts(state, round_state):
            raise RuntimeError(f"round {state.round}: the answers do not unmask the sum, see the log")
        self.aggregator._attempt(Step.PUBLISH, state, round_state)
        self.grid.end()
        self._note_helpers(before)
        self._require_published(state.round)

    def _look(self, phase: Phase) -> tuple[TaskState, RoundState]:
        """One look of the aggregator's own loop: it asks, takes in what is there, and commits for others."""
        state = self.ledger.tasks.state(self.task)
        if state.phase is not phase:
            raise RuntimeError(f"round {state.round} is {state.phase.name} instead of {phase.name}: see the log")
        round_state = self.ledger.tasks.round_state(self.task, state.round)
        self.aggregator._collect(self.grid, self.nodes, state, round_state)
        return state, round_state

    def _require_published(self, round_: int) -> None:
        """Raises RuntimeError unless every hospital is in the sum, which the contract has added up."""
        state = self.ledger.tasks.round_state(self.task, round_)
        everyone = (1 << len(self.nodes)) - 1
        if state.survivors != everyone or state.summed_cohorts != 1 or not state.viable_cohorts:
            raise RuntimeError(f"round {round_} is no whole round: see the log")

    def _helpers(self) -> dict[str, list[int]]:
        """Processes that work for the aggregator."""
        return {"provers": [child.pid for child in self.ledger.aggregator.prover._children], "chain": [self.plan.chain]}

    def _helpers_cpu_s(self) -> dict[str, float]:
        return {name: sum(map(cpu_seconds, processes)) for name, processes in self._helpers().items()}

    def _note_helpers(self, before: dict[str, float]) -> None:
        now = self.grid.rounds[-1]
        now.helpers_cpu_s = {name: seconds - before[name] for name, seconds in self._helpers_cpu_s().items()}
        now.peaks_mib |= {name: sum(map(peak_mib, processes)) for name, processes in self._helpers().items()}
        now.peaks_mib["server"] = peak_mib()

    def _await_beacon(self) -> tuple[TaskState, RoundState]:
        state = self.ledger.tasks.state(self.task)
        round_state = self.ledger.tasks.round_state(self.task, state.round)
        block = 0
        while state.phase in (Phase.FORMING, Phase.DRAWING) and not self.ledger.phases.beacon_ready(
            round_state.beacon_request
        ):
            block = self.ledger.connection.blocks.wait_after(block)
        return state, round_state

    def _judge(self) -> None:
        """The voter says that the sum is fine. The statistics round needs no word where it is published in blobs."""
        number = self.aggregator.rounds.asked
        assert number is not None
        params, voter = self.aggregator.params, self.voter
        if self.ledger.tasks.round_state(self.task, number).outcome is not Outcome.PENDING:
            return
        state, round_state = self._await_beacon()
        self.grid.besides()
        self.aggregator._attempt(Step.DRAW_SEATS, state, round_state)
        round_state = self.ledger.tasks.round_state(self.task, number)
        scores, salt = [FINE] * ballot_size(params, number, round_state.cohorts), secrets.token_bytes(32)
        key = voter_key(voter.connection.signer)
        ticket = sign_ticket(key, voter.messages.ticket(self.task, number, round_state.seat_seed))
        sealed = voter.tasks.score_commitment(self.task, number, scores, salt)
        voter.voter.commit_scores(self.task, number, public_key(key), ticket, sealed)
        voter.voter.reveal_scores(self.task, number, scores, salt)
        self.ledger.phases.settle(self.task, number)

    def _model(self) -> NDArray[np.float32]:
        from consilium_client.replay import PublicRecord
        from consilium_client.task import load_task

        record = PublicRecord(
            self.ledger, self.aggregator.task.store, load_task(self.ledger, self.aggregator.task.store, self.task)
        )
        return record.base(self.plan.rounds + 1)


def watch_server(parts: Parts, aggregator: Any) -> None:
    """What is in no part is what the aggregator asks the chain, and small."""
    from consilium_server.aggregator import collection, round_work, unmasking, uploads
    from consilium_zk.secure_aggregation import Unmasking
    from eth_account.typed_transactions import base as blob_transactions

    from bench.e2e import secaggplus

    parts.watch("read messages", secaggplus, "read")
    parts.watch("read messages", sys.modules[__name__], "read")
    parts.watch("parse replies", collection, "parse_reply")
    parts.watch("store share bundles", round_work.RoundWork, "store_share_bundle")
    parts.watch("read share bundles", round_work, "read_share_bundles")
    parts.watch("read share bundles", unmasking, "read_share_bundles")
    parts.watch("take answers", unmasking.CohortAnswers, "take")
    parts.watch("add uploads", uploads, "add")
    parts.watch("expand masks", Unmasking, "residue")
    parts.watch("take masks away", uploads, "without")
    parts.watch("add commitments", uploads, "sum_commitments")
    parts.watch("check the sum", uploads, "commits_to")
    parts.watch("store the sum", aggregator.task.store, "put_blob")
    parts.watch("wait for cell proofs", blob_transactions, "compute_cells_and_kzg_proofs")
    parts.watch("deal cohorts on chain", aggregator.ledger.phases, "form_cohorts")
    parts.watch("commit on chain", aggregator.ledger.aggregator, "commit_updates")
    parts.watch("fix survivors on chain", aggregator.ledger.aggregator, "fix_survivors")
    parts.watch("publish on chain", aggregator.ledger.aggregator, "publish_sums", "publish_digests")
    chain = aggregator.ledger.connection
    parts.watch("estimate gas", chain.web3.eth, "estimate_gas")
    parts.watch("send transactions", chain.web3.eth, "send_raw_transaction")
    parts.watch("await receipts", chain.transactions, "receipt")


def server(plan_file: str) -> None:
    """Writes rounds.json, without the statistics round, and model.npy into the plan's home."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, SERVER, 0
    plan = Plan.read(Path(plan_file))
    with split_off(__spec__.name, plan_file, len(plan.hospitals)) as connections:
        conductor = Conductor(plan, connections)
        model = conductor.run()
    home = Path(plan.home)
    np.save(home / "model.npy", model, allow_pickle=False)
    (home / "rounds.json").write_text(json.dumps([one.told() for one in conductor.grid.rounds[1:]]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    if sys.argv[1] == "server":
        server(sys.argv[2])
    else:
        hospitals(Plan.read(Path(sys.argv[2])), [Connection(int(one)) for one in sys.argv[3:]])
