"""A node of one home folder: the part that hospitals and voters share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import SpecInvalid, SpecMismatch
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Hospital, Phase, TaskState, Unbonding, Voter
from consilium_chain.tasks.money_spec import TOKEN
from consilium_client.config import HomeSettings
from consilium_client.errors import ConsentError
from consilium_client.home import Home
from consilium_client.task import JoinedTask, load_task
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_operators.doctor.connections import check_connections
from consilium_operators.doctor.findings import Findings

from consilium.node_results import Activity, ListedTask, OwnTask, Standing, TaskList, Unstaking, agree

UNREADABLE = (ArtifactMissing, ArtifactCorrupt, SpecInvalid, SpecMismatch)
HomeType = TypeVar("HomeType", bound=Home[Any, Any])


class Node(ABC, Generic[HomeType]):
    """A node's home folder, with its chain and its artifact store.

    Methods raise ChainUnreachable, DeploymentInvalid, and the errors that they name. Those that send a transaction read
    the key file's password, and raise KeystoreError; the others need none.
    """

    _kind: ClassVar[type[Home[Any, Any]]]

    def __init__(self, home: str | Path) -> None:
        """Opens a home that `create` or `consilium … init` made. Raises HomeMissing, ConfigInvalid."""
        self._home: HomeType = self._kind.open(Path(home))  # type: ignore[assignment]
        self.folder = self._home.folder

    @classmethod
    def create_like(cls, home: str | Path, other: str | Path, address_book: str | Path) -> Self:
        """A home for the contracts of another address book, with the account, policy and data of the home `other`,
        which stays in use. Raises HomeMissing, HomeTaken, DeploymentInvalid, SameContracts.
        """
        return cls(cls._kind.create_like(Path(home), cls._kind.open(Path(other)), Path(address_book)).folder)

    @property
    @abstractmethod
    def settings(self) -> HomeSettings:
        """The content of node.toml."""

    @cached_property
    def account(self) -> str:
        """The account's address. Raises KeystoreError."""
        return address_of(self.settings.keystore)

    def connections(self) -> Findings:
        """Checks key file, chain, clock, money, stores and sponsor, in 20 seconds at most. Sends nothing."""
        return check_connections(self._home)

    def task(self, number: int) -> JoinedTask:
        """A task's file and its terms on chain.

        Raises ArtifactMissing, ArtifactCorrupt, SpecInvalid, SpecMismatch, Refused (TaskUnknown).
        """
        return load_task(self._ledger, self._store, number)

    def state(self, number: int) -> TaskState:
        """Raises Refused (TaskUnknown)."""
        return self._ledger.tasks.state(number)

    def tasks(self, every: bool = False) -> TaskList:
        """The chain's tasks that this node is in or may join; with `every`, all. Raises PolicyInvalid."""
        listed, hidden = [], 0
        for number in range(self._ledger.tasks.count(), 0, -1):
            state, members = self.state(number), self._members(number)
            is_in = self.account in [one.node for one in members]
            if every or self._is_listed(state, is_in):
                listed.append(_listed(self, number, state, len(members), is_in))
            else:
                hidden += 1
        return TaskList(tuple(listed), hidden)

    def pause(self) -> None:
        """Begins no more rounds, and joins no more tasks. A running node notices it."""
        self._home.pause()

    def resume(self) -> None:
        """Takes part again from the next round on."""
        self._home.resume()

    def withdraw(self) -> int:
        """Withdraws the stake whose unbonding period is over, to the withdrawal address if there is one; returns the
        tokens. Sends nothing if there is none.
        """
        ledger = self._signing
        matured = [one for one in self.unbondings() if one.matures_at <= ledger.connection.blocks.now()]
        if not matured:
            return 0
        payee = ledger.withdrawal.payee(self.account, self._home.role)
        before = ledger.token.balance(payee)
        ledger.staking.withdraw([one.request for one in matured])
        return ledger.token.balance(payee) - before

    def unstake(self, tokens: int, *, confirm: Callable[[Unstaking], bool] = agree) -> int:
        """Starts to unbond whole tokens of this node's own stake, at most all; returns their worth, 0 without a stake.
        Raises ConsentError (NotConfirmed).
        """
        ledger, role = self._signing, self._home.role
        stake = ledger.staking.stake_of(self.account, role)
        if not confirm(Unstaking(min(tokens * TOKEN, stake.active), stake)):
            raise ConsentError("NotConfirmed", about="this node's stake")
        return ledger.staking.unstake(role, tokens * TOKEN)

    def unbondings(self) -> list[Unbonding]:
        """The parts of this node's own stake that are unbonding, or can be withdrawn, oldest first."""
        own = self.account, self._home.role
        return [one for one in self._ledger.staking.unbondings(self.account) if (one.node, one.role) == own]

    @cached_property
    def _ledger(self) -> Ledger:
        return self.settings.reader()

    @cached_property
    def _store(self) -> ArtifactStore:
        """Raises MirrorUnsupported."""
        return ArtifactStore(self.settings.artifacts, passing=self.folder / CACHE)

    @cached_property
    def _signing(self) -> Ledger:
        """With the home's account. Raises KeystoreError."""
        return self.settings.connect()

    @abstractmethod
    def _members(self, number: int) -> Sequence[Hospital | Voter]:
        """The nodes of this role in a task."""

    @abstractmethod
    def _is_listed(self, state: TaskState, is_in: bool) -> bool:
        """True if `tasks` has the task without `every`."""

    @abstractmethod
    def _objections(self, task: JoinedTask, state: TaskState, is_in: bool) -> list[str]:
        """This home's reasons not to join, in words."""

    @abstractmethod
    def _activity(self, number: int, state: TaskState, index: int | None) -> Activity:
        """`index`: this node's in the task; None if it has not joined."""


def entry_of(node: Node[Any], number: int) -> tuple[int, Hospital | Voter] | None:
    """The node's index in a task, and its entry on the chain; None if it has not joined."""
    return next(((at, one) for at, one in enumerate(node._members(number)) if one.node == node.account), None)


def standing_of(node: Node[Any], numbers: Iterable[int]) -> Standing:
    """Of these tasks, in this order."""
    staking, role = node._ledger.staking, node._home.role
    return Standing(
        tasks=tuple(_own(node, number) for number in numbers),
        stake=staking.stake_of(node.account, role),
        claimable=staking.claimable(node.account, node.account, role),
        unvested=staking.unvested(node.account, role),
        withdrawal=node._ledger.withdrawal.of(node.account, role),
    )


def _listed(node: Node[Any], number: int, state: TaskState, members: int, is_in: bool) -> ListedTask:
    params, role = node._ledger.tasks.params(number), node._home.whose()
    most, bond = getattr(params, f"max_{role}s"), getattr(params, f"{role}_bond")
    try:
        task = node.task(number)
    except UNREADABLE as error:
        return ListedTask(number, state, None, members, most, is_in, bond, params.pool, (str(error),))
    objections = tuple(node._objections(task, state, is_in))
    return ListedTask(number, state, task.spec, members, most, is_in, bond, params.pool, objections)


def _own(node: Node[Any], number: int) -> OwnTask:
    state, entry = node.state(number), entry_of(node, number)
    if entry is None:
        return OwnTask(number, state, node._activity(number, state, None), False, 0, 0, 0, None)
    index, own = entry
    over = range(STATISTICS_ROUND, state.round + (state.phase is Phase.ENDED))
    paid = [node._ledger.tasks.explain(number, round_, node.account) for round_ in over]
    return OwnTask(
        number, state, node._activity(number, state, index), True, own.bond, sum(one.reward for one in paid),
        sum(one.slash for one in paid), paid[-1].reason if paid else None,
    )  # fmt: skip
