"""A node's part in a task: its account's index there, its payouts, and the calls of it that failed."""

from __future__ import annotations

from collections.abc import Callable

from consilium_chain.errors import Refused, TransactionRejected, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Role, TaskState
from consilium_chain.ledger.withdrawal import WithdrawalAddress
from consilium_chain.rounds.machine import has_ended
from consilium_core.errors import CoreError
from consilium_core.logs import emit
from consilium_zk.errors import ZkError

from consilium_client.errors import ClientError, NodeError

ROUND_ERRORS = (ClientError, CoreError, ZkError, OSError)  # a round may fail with these, and the node goes on
TRIES = 5  # blocks


def log_failed(ledger: Ledger, error: Refused | TransactionRejected, unpaid: str, **fields: object) -> None:
    """Logs a refused call; or, as the event `unpaid`, a call that the account could not pay for.

    The chain node's words stay out of the log. The account's balance for gas says most.
    """
    if isinstance(error, Refused):
        emit("refused", call=error.call, error=error.name, **fields)
    else:
        wei = str(ledger.connection.ether())
        emit(unpaid, call=error.call, error=name_of(error), wei=wei, **fields)


class Membership:
    """The ledger's account in a task. A reorganisation may undo its joining, or bring transactions back in another
    order, and with them another index.
    """

    index: int

    def __init__(self, ledger: Ledger, task: int, role: Role) -> None:
        self._ledger, self._task, self._role = ledger, task, role
        self._roster, self._is_in = b"", False  # as of the last read of the members
        self._paid: int | None = None  # the latest round whose payout was logged
        self._withdrawal: WithdrawalAddress | None = None  # as it was then

    def find(self) -> int | None:
        """The account's index on chain now; None if the task does not list it."""
        tasks = self._ledger.tasks
        members = tasks.voters(self._task) if self._role is Role.VOTER else tasks.hospitals(self._task)
        nodes = [member.node for member in members]
        return nodes.index(self._ledger.address) if self._ledger.address in nodes else None

    def require(self) -> int:
        """The index of an account that has joined. Raises NotInTask."""
        block = 0
        for _ in range(TRIES):  # a chain node may lag behind the one that gave the receipt
            if (index := self.find()) is not None:
                self.index = index
                return index
            block = self._ledger.connection.blocks.wait_after(block)
        raise NodeError("NotInTask", task=self._task, account=self._ledger.address)

    def stands(self, state: TaskState, roster: bytes | None = None) -> bool:
        """True if the account is in the task; follows its index. Only the first round can still undo joining.

        `roster`: of a snapshot. While it stays the same, so do the members.
        """
        if state.round != STATISTICS_ROUND or has_ended(state):
            return True
        if roster is not None and roster == self._roster:
            return self._is_in
        nodes, self._roster = self._ledger.snapshots.members(self._task, self._role)
        index = nodes.index(self._ledger.address) if self._ledger.address in nodes else None
        if index is not None and index != self.index:
            emit("moved", role=self._role.name.lower(), index=index)
            self.index = index
        self._is_in = index is not None
        return self._is_in

    def join_again(self, join: Callable[[], None]) -> None:
        emit("joining-undone", role=self._role.name.lower())
        try:
            join()
        except Refused as error:  # the first transaction came back, or another account took the seat
            emit("refused", call=error.call, error=error.name)

    def log_payouts(self, state: TaskState) -> None:
        """Logs reward and slash of each round, once the next round has begun or the task has ended. Rounds that were
        over before the first call are left out. As often, looks for another withdrawal address.
        """
        last = state.round if has_ended(state) else state.round - 1
        if self._paid is None or self._paid < last:
            self._log_withdrawal_address()
        if self._paid is None:
            self._paid = last
        while self._paid < last:
            payout = self._ledger.tasks.explain(self._task, self._paid + 1, self._ledger.address)
            self._paid += 1
            emit(
                "settled", round=self._paid, reason=payout.reason.name, reward=str(payout.reward),
                slash=str(payout.slash),
            )  # fmt: skip

    def _log_withdrawal_address(self) -> None:
        """Logs an announced change, and one that this process sees happen: the node's owner should know of both."""
        found, before = self._ledger.withdrawal.of(self._ledger.address, self._role), self._withdrawal
        if found.next is not None if before is None else found != before:
            emit("withdrawal-address", current=found.current, next=found.next, next_at=found.next_at)
        self._withdrawal = found
