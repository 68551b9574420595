"""The aggregator runs a task's rounds. Flower carries uploads; the chain has the phase and the results."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from consilium_chain.errors import (
    ChainUnreachable,
    RandomnessUnavailable,
    Refused,
    TransactionRejected,
    TransportKeyMalformed,
)
from consilium_chain.ledger.snapshots import Snapshot
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, RoundState, TaskState
from consilium_chain.rounds.machine import (
    WAITING,
    AsAggregator,
    Step,
    View,
    expected_uploads,
    is_closed,
    last_round,
    next_steps,
)
from consilium_chain.rounds.timing import deadline_passed, margin
from consilium_chain.rpc.cell_proofs import CellProver
from consilium_chain.rpc.retry import retry_policy
from consilium_chain.settlement.leaving import collect
from consilium_core.locks import alone
from consilium_core.logs import emit
from consilium_core.tracing import span
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.kzg import setup
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from consilium_server.aggregator.collection import Carrier, Collection
from consilium_server.aggregator.decoys import disclose
from consilium_server.aggregator.disputes import name_cheaters
from consilium_server.aggregator.publication import Publication
from consilium_server.aggregator.round_work import Rounds
from consilium_server.aggregator.sharing import Lease, owner_of
from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.timeline import Timeline
from consilium_server.aggregator.uploads import CohortSum, Contribution
from consilium_server.config import SUPERLINK_DATABASE, AggregatorSettings
from consilium_server.errors import DecoysLost, ServerError, SuperLinkFailed
from consilium_server.flower.internals import SuperLink
from consilium_server.open_steps import chain_view, take_open_step

LOCK = "lock"  # file name; two aggregators with one key would publish a round twice, differently
POLL, SLOWEST_POLL = 0.15, 1.0  # seconds between polls for replies: longer on a chain with slower blocks
POLLS_OF_A_BLOCK = 12
SHORTEST_WAIT, LONGEST_WAIT = 1.0, 15.0  # seconds: for a chain node, for ether, before the next SuperLink starts
AHEAD = (*WAITING, Phase.SCORING, Phase.REVEALING)
MOST_PROVERS = 8
# The steps that are the purpose of a phase. After a final refusal of them only the deadline ends the phase.
PURPOSE: dict[Phase, tuple[Step, ...]] = {
    Phase.UPLOADING: (Step.FIX_SURVIVORS, Step.PUBLISH),
    Phase.PUBLISHING: (Step.PUBLISH,),
    Phase.DISPUTING: (Step.NAME,),
    Phase.REVEALING: (Step.DISCLOSE,),
    Phase.DISCLOSING: (Step.DISCLOSE,),
}
FINAL = (Step.FIX_SURVIVORS, Step.PUBLISH, Step.NAME)  # a refusal of these is not tried again
OVERTAKEN = {"AlreadySummed", "AlreadyPublished"}  # another account did a part of it: the rest is still due
MOVED = {"WrongPhase", "WrongRound"}  # the chain moved on after the step was chosen
UNOPENABLE = {"BlobMismatch", "DecoysMismatch", "CommitmentMismatch", "PointsWrong"}  # also at any later time


def home_lock(home: Path) -> AbstractContextManager[None]:
    """Holds `home`'s lock until any end of this process. Raises ServerError (AlreadyConducting)."""
    return alone(home / LOCK, ServerError("AlreadyConducting", home=str(home)))


class Aggregator:
    """The aggregator of one task. Tests and dishonest aggregators override the hooks, its first three methods."""

    def commit_for_hospitals(self, collection: Collection, round_state: RoundState) -> None:
        """Hook: sends the commitments that hospitals signed, when it is time. Hospitals need no ether for it."""
        work = self.rounds.of(collection.round)
        if work.committer is not None:
            updates = work.relayable(collection, round_state)
            work.committer.commit_if_due(updates, round_state, collection.finished, work.cohorts(round_state))

    def sum_to_publish(self, round_: int, total: CohortSum, parts: Sequence[Contribution]) -> CohortSum:
        """Hook: the sum to publish, given a cohort's checked sum."""
        return total

    def forces(self, round_: int) -> bool:
        """Hook: true if publication and disclosure are sent without a dry run."""
        return False

    def __init__(self, settings: AggregatorSettings) -> None:
        """Connects to the chain and reads the task. Raises SpecMismatch, and the errors of chain and store."""
        self.settings = settings
        self.task = AggregatedTask.open(settings)
        self.ledger, self.number, self.params = self.task.ledger, self.task.number, self.task.params
        self.rounds, self.timeline = Rounds(self.task), Timeline(self.number)
        self.membership = Membership(self.task)
        self._block, self._poll = 0, POLL
        self._was_up = False  # true once a SuperLink was
        self._retry = retry_policy((ChainUnreachable, TransactionRejected), LONGEST_WAIT)
        self._lease: Lease | None = None  # if several machines share this task

    def run(self) -> None:
        """Joins, runs every round, and collects the bond and the fee. Continues the work of an ended process.

        Raises ServerError (AlreadyConducting, LeaseHeld, LeaseLost), and SuperLinkFailed if the first SuperLink does
        not start.
        """
        with home_lock(self.settings.home), self._leased():
            has_left = False
            while not has_left:  # the block that ended the task may be undone
                if self._retry(self.ledger.tasks.state, self.number).phase is not Phase.ENDED:
                    self._conduct_with_provers()
                has_left = self._retry(collect, self.ledger, self.number, Role.AGGREGATOR)
            # Hospitals' replies and the SuperLink's database have no use after the task's end.
            shutil.rmtree(self.task.replies_folder, ignore_errors=True)
            for file in self.settings.home.glob(f"{SUPERLINK_DATABASE}*"):
                file.unlink(missing_ok=True)
            self.task.secrets.forget()
            emit("left", role="aggregator", balance=str(self._retry(self.ledger.token.balance, self.ledger.address)))

    def _leased(self) -> AbstractContextManager[object]:
        database, settings = self.task.database, self.settings
        if database is None:
            return nullcontext()
        task_key = self.ledger.folder_name(self.number)
        port, owner, share = settings.superlink_port, owner_of(settings.home), self.task.secrets.share
        self._lease = Lease(database, task_key, port, owner, reached=share)
        return self._lease

    def _require_lease(self) -> None:
        """Raises ServerError (LeaseLost) if another machine goes on with this task."""
        if self._lease is not None:
            self._lease.require()

    def _conduct_with_provers(self) -> None:
        blobs = self.params.cohorts * self.params.update_blobs
        with CellProver(min(blobs, os.cpu_count() or 1, MOST_PROVERS)) as self.ledger.aggregator.prover:
            wait = SHORTEST_WAIT
            while True:
                started = time.monotonic()
                try:
                    return self._conduct_by_flower()
                except SuperLinkFailed as error:
                    if not self._was_up:  # it never worked, so an operator must correct it
                        raise
                    wait = min(2 * wait, LONGEST_WAIT) if time.monotonic() - started < LONGEST_WAIT else SHORTEST_WAIT
                    emit("superlink-failed", error=str(error), wait_s=wait)
                    time.sleep(wait)

    def _conduct_by_flower(self) -> None:
        """Runs the task to its end with one SuperLink. Raises SuperLinkFailed."""
        blobs = max(self.params.update_blobs, self.params.statistics_blobs)
        home, port, task_key = self.settings.home, self.settings.superlink_port, self.ledger.folder_name(self.number)
        with SuperLink(home, port, blobs, self.params.max_hospitals, self.settings.tls, task_key) as superlink:
            superlink.wait_until_up()
            self._was_up = True
            setup()
            # The last step, because the first round may begin with it, and hospitals need the SuperLink then.
            self._retry(self._join)
            if self._retry(self._wait_for_participants) is Phase.ENDED:
                return
            self.membership.register = superlink.register
            nodes = self._retry(self.membership.nodes)
            with superlink.run() as (grid, context):
                server_app(self, nodes)(grid, context)

    def _join(self) -> None:
        state = self.ledger.tasks.state(self.number)
        if state.phase is Phase.JOINING and not state.aggregator_joined:
            self.ledger.aggregator.join(self.number, self.params.aggregator_bond)
        emit("joined", role="aggregator")

    def _wait_for_participants(self) -> Phase:
        """Waits until joining is over. Returns the phase after it."""
        block = 0
        while (seen := self._seen()).state.phase is Phase.JOINING:
            if not seen.state.aggregator_joined:  # a reorganisation removed the block with it
                self._join()
            if deadline_passed(seen.state, seen.time):
                self._attempt(Step.TICK, seen.state, None)
            block = self.ledger.connection.blocks.wait_after(block)
            self._require_lease()
        return seen.state.phase

    def _seen(self) -> Snapshot:
        """The task as of the newest block: one request a block, however often this is called."""
        return self.ledger.snapshots.of(self.number, Role.HOSPITAL)

    def _follow_order(self, roster: bytes | None, nodes: dict[int, int]) -> None:
        """Rebuilds all state by hospitals' indices if a reorganisation changed their order."""
        if self.membership.has_moved(roster):
            nodes.clear()
            nodes.update(self.membership.nodes())
            emit("hospitals-moved", hospitals=len(nodes))
            shutil.rmtree(self.task.replies_folder, ignore_errors=True)
            self.rounds.forget()

    def conduct(self, grid: Carrier, nodes: dict[int, int]) -> None:
        """Runs the task from its present state to its end. `nodes`: Flower ids by hospital's index."""
        self.rounds.disconnect()
        block_seconds = self._retry(self.ledger.connection.blocks.seconds)
        self._poll = min(max(POLL, block_seconds / POLLS_OF_A_BLOCK), SLOWEST_POLL)
        while self._retry(self._advance, grid, nodes):
            pass

    def _advance(self, grid: Carrier, nodes: dict[int, int]) -> bool:
        """Takes the step that is due, or waits a little. Returns false once the task has ended."""
        self._require_lease()
        seen = self._seen()
        state, round_state = seen.state, seen.round
        self.timeline.look(state.round, state.phase.name)
        if state.phase is Phase.JOINING:  # again, after a reorganisation
            self._wait_for_participants()
            return True
        if state.round == STATISTICS_ROUND and state.phase is not Phase.ENDED:
            self._follow_order(seen.roster, nodes)
        more_to_come = self._collect(grid, nodes, state, round_state)
        steps = self._next_steps(seen)
        if Step.STOP in steps:
            return False
        if steps:
            self._attempt(steps[0], state, round_state)
        elif more_to_come:
            time.sleep(self._poll)  # Flower has no notification of a node or a reply
        else:
            self._block = self.ledger.connection.blocks.wait_after(self._block)
        return True

    def _next_steps(self, seen: Snapshot) -> Sequence[Step]:
        """The steps that are due now."""
        state, round_state = seen.state, seen.round
        work = self.rounds.of(state.round)
        arrived, finished = work.arrived, work.finished
        is_uploading = state.phase is Phase.UPLOADING
        cohorts = work.cohorts(round_state) if is_uploading else [0] * round_state.cohorts
        awaited = expected_uploads(round_state, cohorts) & ~(finished & ~arrived)
        if is_uploading:
            awaited &= work.uploaders(round_state)
        view = self._view(seen)
        refused = work.refused in PURPOSE.get(state.phase, ())
        if state.phase is Phase.REVEALING and work.are_secrets_lost:
            refused = deadline_passed(state, view.now)  # the next phase has its own deadline for restoring them
        return next_steps(view, AsAggregator(awaited, arrived, refused, work.has_parts(state, round_state)))

    def _view(self, seen: Snapshot) -> View:
        params, state = self.params, seen.state
        return chain_view(
            self.ledger, self.number, state, seen.round, seen.time,
            upload_margin=margin(params.upload_window), answer_margin=margin(params.publish_window),
            masked=params.masked, publish_window=params.publish_window,
            has_decoys=params.has_decoys(state.round), min_reveals=params.min_reveals,
        )  # fmt: skip

    def _collect(self, grid: Carrier, nodes: dict[int, int], state: TaskState, round_state: RoundState) -> bool:
        """Requests hospitals' parts, receives replies, and commits. Returns true if it should poll again soon.

        Hospitals get a request before its time, because it takes long to arrive. They answer as soon as they have
        trained, and again once commitments are closed.
        """
        committed = round_state.committed
        if state.phase in (Phase.COMMITTING, Phase.UPLOADING):
            work = self.rounds.ask(state.round)
            collection = work.connect(grid, nodes, self.membership.order)
            uploads = state.phase is Phase.UPLOADING
            hospitals = work.uploaders(round_state) if uploads else round_state.members
            complete = collection.ask(hospitals, committed)
            self.task.sums.prepare(state.round)  # while hospitals train
            collection.receive()
            if uploads:
                return True
            if is_closed(state):
                return False
            self.commit_for_hospitals(collection, round_state)
            return not complete or bool(round_state.members & ~committed)
        if state.phase is Phase.PUBLISHING:
            collection = self.rounds.ask(state.round).connect(grid, nodes, self.membership.order)
            collection.ask(round_state.survivors, committed)
            collection.receive()
            return True
        ahead = state.round if state.phase is Phase.FORMING else state.round + 1
        if state.phase in AHEAD and ahead <= last_round(state, self.params.rounds):
            self.rounds.ask(ahead).connect(grid, nodes, self.membership.order).ask(state.active_hospitals)
        return False

    def _attempt(self, step: Step, state: TaskState, round_state: RoundState | None) -> None:
        """Takes a step. A refusal is logged and remembered, not fatal: another account may have been first."""
        try:
            with span(step.name.lower(), task=self.number, round=state.round):
                self._take(step, state, round_state)
        except Refused as error:
            late = {"late_s": self.ledger.connection.blocks.now() - state.deadline} if error.name == "PhaseOver" else {}
            emit("refused", call=error.call, error=error.name, round=state.round, **late)
            if error.name in MOVED:  # the next block shows the new state
                self._block = self.ledger.connection.blocks.wait_after(self._block)
            elif (step in FINAL and error.name not in OVERTAKEN) or error.name in UNOPENABLE:
                self.rounds.of(state.round).refused = step
        except EvidenceMalformed as error:  # the sum is correct, so there is no cheater
            emit("nobody-named", round=state.round, error=str(error))
            self.rounds.of(state.round).refused = step
        except DecoysLost as error:  # the operator may restore them before the deadline
            work = self.rounds.of(state.round)
            if not work.are_secrets_lost:
                emit("decoys-lost", round=state.round, error=str(error))
            work.are_secrets_lost = True
            self.ledger.connection.blocks.wait_after(self.ledger.connection.blocks.number())
        except RandomnessUnavailable as error:  # any account may deliver the drand round
            relays = [failure.name for failure in error.failures]
            emit("randomness-unavailable", round=state.round, drand_round=error.round, relays=relays)
            self.ledger.connection.blocks.wait_after(self.ledger.connection.blocks.number())

    def _take(self, step: Step, state: TaskState, round_state: RoundState | None) -> None:
        match step:
            case Step.FIX_SURVIVORS if round_state:
                self.rounds.of(state.round).fix_survivors(round_state)
            case Step.PUBLISH if round_state:
                work = self.rounds.of(state.round)
                found = Publication(self.task, work, state, round_state, self.sum_to_publish)
                found.publish(self.forces(state.round))
            case Step.NAME if round_state:
                name_cheaters(self.task, state.round, round_state)
            case Step.DISCLOSE if round_state:
                disclose(self.task, state.round, round_state, self.forces(state.round))
            case _:
                take_open_step(self.ledger, self.number, step, state.round, round_state)


class Membership:
    """Maps hospitals to Flower's nodes. `register` registers a transport key; None until a SuperLink is up."""

    def __init__(self, task: AggregatedTask) -> None:
        self._task = task
        self.order: list[str] = []  # hospitals' accounts when their nodes were registered
        self._roster: bytes | None = None  # of a snapshot with that order
        self.register: Callable[[bytes], int] | None = None

    def nodes(self) -> dict[int, int]:
        """Registers every hospital's key, and returns Flower node ids by hospitals' indices. Raises SuperLinkFailed.

        A hospital with an unusable key is absent, and the others take part.
        """
        self.order, roster = self._task.ledger.snapshots.members(self._task.number, Role.HOSPITAL)
        keys = self._task.ledger.record.transport_keys(self._task.number)
        is_whole = len(keys) == len(self.order)  # else a reorganisation came between the two reads
        self._roster = roster if is_whole else None
        register, nodes = self.register, dict[int, int]()
        if register is None:
            return nodes
        for index, key in sorted(keys.items()):
            try:
                node = register(key)
            except TransportKeyMalformed as error:
                emit("transport-key-unusable", hospital=index, why=str(error))
                continue
            if node in nodes.values():
                emit("transport-key-repeated", hospital=index)
                continue
            nodes[index] = node
        return nodes

    def has_moved(self, roster: bytes | None) -> bool:
        """True if hospitals have another order than when their nodes were registered. `roster`: of a snapshot."""
        if self.register is None or (roster is not None and roster == self._roster):
            return False
        return self._roster is None or self.order != self._task.addresses()


def server_app(aggregator: Aggregator, nodes: dict[int, int]) -> ServerApp:
    """The aggregator as Flower's ServerApp; `nodes` maps a hospital's index to its Flower node id."""
    app = ServerApp()

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        aggregator.conduct(grid, nodes)

    return app
