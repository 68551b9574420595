"""Tasks with the number and time of a block. Of a node with many tasks, parts may be from blocks a little newer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_utils.crypto import keccak

from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, RoundState, TaskState
from consilium_chain.ledger.tasks import Tasks
from consilium_chain.rpc.event_logs import MALFORMED
from consilium_chain.rpc.looks import Asked

TRIES = 3  # the round may change while it is read
_MEMBERS = {Role.HOSPITAL: "hospitals", Role.VOTER: "voters"}


@dataclass(frozen=True)
class Snapshot:
    """`block`: the oldest that a part was read from. `time`: the block's, in seconds. `roster`: 32 bytes that change
    with the members of a role and their order, while a reorganisation can still change these; else None.
    """

    block: int
    time: int
    state: TaskState
    round: RoundState
    roster: bytes | None


class Snapshots:
    """Reads for all tasks of a node together, once per block. Raises as `Tasks`. `latest`: by task."""

    def __init__(self, contracts: Contracts, tasks: Tasks) -> None:
        self._connection, self._client, self._tasks = contracts.connection, contracts.tasks, tasks
        self._heartbeat = contracts.connection.blocks.heartbeat
        self._address = bytes.fromhex(str(contracts.tasks.contract.address)[2:])
        self._rounds: dict[int, int] = {}  # the latest known, by task
        self.latest: dict[int, Snapshot] = {}

    def of(self, task: int, role: Role) -> Snapshot:
        """A task, with the roster of its hospitals or voters."""
        members = self._asked(_MEMBERS[role], task, hashed=True)
        for _ in range(TRIES):
            round_ = self._rounds.get(task, STATISTICS_ROUND)
            state_of, round_of = self._asked("state", task), self._asked("roundState", task, round_)
            roster = [members] if round_ == STATISTICS_ROUND else []
            look = self._heartbeat.look(task, [state_of, round_of, *roster])
            try:
                state = TaskState.from_chain(self._values("state", look.answers[state_of]))
            except MALFORMED:
                state = self._tasks.state(task)  # raises the reason
            if state.round != round_:
                self._rounds[task] = state.round
                continue
            try:
                round_state = RoundState.from_chain(self._values("roundState", look.answers[round_of]))
            except MALFORMED:
                round_state = self._tasks.round_state(task, round_)
            can_change = round_ == STATISTICS_ROUND and state.phase is not Phase.ENDED
            found = look.answers.get(members) if can_change else None
            snapshot = self.latest[task] = Snapshot(look.number, look.time, state, round_state, found)
            return snapshot
        raise ChainUnreachable(self._connection.shown_url, "each answer names another round")

    def members(self, task: int, role: Role) -> tuple[list[str], bytes]:
        """The members' accounts in their order, and their roster."""
        name = _MEMBERS[role]
        reading = self._client.reading(name)
        answer = self._connection.answer(str(self._client.contract.address), reading.data([task]))
        try:
            return [raw[0] for raw in reading.values(answer)], keccak(hexstr=str(answer))
        except MALFORMED:
            members = self._client.read(name, task)  # raises the reason
            return [raw[0] for raw in members], b""

    def task_count(self) -> int:
        count = self._asked("taskCount")
        look = self._heartbeat.look("taskCount", [count])
        try:
            return int(self._values("taskCount", look.answers[count]))
        except MALFORMED:
            return self._tasks.count()

    def forget(self, task: int) -> None:
        """Reads an ended task no more."""
        self._heartbeat.forget(task)
        self.latest.pop(task, None)

    def _asked(self, name: str, *arguments: int, hashed: bool = False) -> Asked:
        return Asked(self._address, bytes.fromhex(self._client.reading(name).data(arguments)[2:]), hashed)

    def _values(self, name: str, answer: bytes | None) -> Any:
        return self._client.reading(name).values(None if answer is None else "0x" + answer.hex())
