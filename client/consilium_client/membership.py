"""A node's place among a task's hospitals or voters: its account's index there."""

from __future__ import annotations

from collections.abc import Callable

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Role, TaskState
from consilium_chain.rounds.machine import has_ended
from consilium_core.logs import emit

from consilium_client.errors import NodeError

LOOKS = 5  # blocks


class Membership:
    """The ledger's account in a task. A reorganisation may undo its joining, or bring transactions back in another
    order, and with them another index.
    """

    index: int

    def __init__(self, ledger: Ledger, task: int, role: Role) -> None:
        self._ledger, self._task, self._role = ledger, task, role

    def find(self) -> int | None:
        """The account's index on chain now; None if the task does not list it."""
        if self._role is Role.VOTER:
            nodes = [voter.node for voter in self._ledger.tasks.voters(self._task)]
        else:
            nodes = [hospital.node for hospital in self._ledger.tasks.hospitals(self._task)]
        return nodes.index(self._ledger.address) if self._ledger.address in nodes else None

    def require(self) -> int:
        """The index of an account that has joined. Raises NotInTask."""
        block = 0
        for _ in range(LOOKS):  # a chain node may lag behind the one that told of the receipt
            if (index := self.find()) is not None:
                self.index = index
                return index
            block = self._ledger.connection.blocks.wait_after(block)
        raise NodeError("NotInTask", task=self._task, account=self._ledger.address)

    def stands(self, state: TaskState) -> bool:
        """True if the account is in the task; follows its index. Only the first round can still undo joining."""
        if state.round != STATISTICS_ROUND or has_ended(state):
            return True
        index = self.find()
        if index is not None and index != self.index:
            emit("moved", role=self._role.name.lower(), index=index)
            self.index = index
        return index is not None

    def join_again(self, join: Callable[[], None]) -> None:
        emit("joining-undone", role=self._role.name.lower())
        try:
            join()
        except Refused as error:  # the first transaction came back, or another took the place: the next look tells
            emit("refused", call=error.call, error=error.name)
