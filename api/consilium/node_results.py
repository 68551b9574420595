"""The values that `Client` and `Voter` return.

Amounts of tokens are in the smallest unit, 10^-18; ether is in wei. Times are the chain's, in Unix seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from consilium_chain.ledger.structs import Phase

if TYPE_CHECKING:
    from pathlib import Path

    from consilium_chain.ledger.structs import PayoutReason, Stake, TaskState
    from consilium_chain.ledger.withdrawal import WithdrawalAddress
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_client.consent import Policy, VoterPolicy
    from consilium_client.data.profile import Finding as Remark
    from consilium_operators.doctor.findings import Finding

__all__ = [
    "Activity", "Balance", "Claimed", "ClientStatus", "Departure", "Joining", "ListedTask", "Membership", "OwnTask",
    "Phase", "Registered", "Registration", "Standing", "TaskList", "Unstaking", "VoterStatus",
]  # fmt: skip


def agree(question: object) -> bool:
    """The default answer: a call in Python is the consent."""
    return True


@dataclass(frozen=True)
class ListedTask:
    """A task of the chain, for one node.

    `spec`: None if the task file cannot be read; then `objections` says why. `members`: nodes of this role in the task,
    of `most`. `is_in`: this node is one of them. `bond`: of one node. `objections`: this home's reasons not to join; a
    voter's has none for a task that it is in, or that can no longer be joined.
    """

    number: int
    state: TaskState
    spec: TaskSpec | None
    members: int
    most: int
    is_in: bool
    bond: int
    pool: int
    objections: tuple[str, ...]


@dataclass(frozen=True)
class TaskList:
    """The newest task first. `hidden`: number of tasks that are over, or can no longer be joined."""

    tasks: tuple[ListedTask, ...]
    hidden: int


class Activity(StrEnum):
    """A node's part in a task now: of a hospital's node, its process; of a voter's, its seat in the present round."""

    RUNS = "runs"
    STOPPED = "does not run"
    LEFT = "left"

    NOTHING_TO_JUDGE = "–"
    NOT_DRAWN = "not drawn"
    NOT_YET_KNOWN = "not yet known"
    NO_SEAT = "none"
    COMMITTED = "committed, not revealed yet"
    BALLOT_LOST = "committed, but the ballot is gone"
    REVEALED = "revealed"


@dataclass(frozen=True)
class OwnTask:
    """One of the node's own tasks.

    `is_in`: the chain lists the node. `rewards` and `slashed`: of all rounds so far. `last`: the reason of the latest
    round's pay; None before the first round.
    """

    number: int
    state: TaskState
    activity: Activity
    is_in: bool
    bond: int
    rewards: int
    slashed: int
    last: PayoutReason | None


@dataclass(frozen=True)
class Standing:
    """The account's tasks and money on the chain. `claimable`: vested rewards; `unvested`: rewards of later.
    `withdrawal`: the account that is paid.
    """

    tasks: tuple[OwnTask, ...]
    stake: Stake
    claimable: int
    unvested: int
    withdrawal: WithdrawalAddress


@dataclass(frozen=True)
class _Status:
    folder: Path
    is_paused: bool
    findings: Sequence[Finding]

    @property
    def is_reachable(self) -> bool:
        """True if `standing` can be read: key file and chain have no fault."""
        return not any(one.level == "fault" for one in self.findings if one.check in ("key file", "chain"))


@dataclass(frozen=True)
class ClientStatus(_Status):
    """A hospital's home and its connections.

    `approved`: tasks with an approval, or with a bond that is still locked. `epsilon`: the privacy cost of the rows in
    all private tasks, at `policy.delta`; None without such a task.
    """

    policy: Policy
    approved: tuple[int, ...]
    epsilon: float | None


@dataclass(frozen=True)
class VoterStatus(_Status):
    """A voter's home and its connections. `runs`: a process judges."""

    policy: VoterPolicy
    runs: bool


@dataclass(frozen=True)
class Membership:
    """The measured risk that an attacker recognises rows in the sums, `in_words`. `rows`: training rows; `is_assumed`
    if this home's data do not fit the task, so that their number is unknown.
    """

    rows: int
    is_assumed: bool
    in_words: str

    @classmethod
    def of(cls, spec: TaskSpec, rows: int, held_out: float) -> Membership:
        """A home has so many rows, and keeps the part `held_out` of them out of training."""
        from consilium_client.privacy.membership import in_words

        kept = max(1, rows - round(rows * held_out))
        return cls(kept, False, in_words(spec, kept))


@dataclass(frozen=True)
class Joining:
    """The checked facts before a hospital joins. `rows`: all that fit the task. `superlink`: host:port. `shut_out`: the
    reason if it does not accept this node yet. `remarks`: possible faults of the data, all answered that ask.
    `unneeded`: answers of its settings without such a remark.
    """

    task: int
    rows: int
    membership: Membership
    superlink: str
    shut_out: str | None
    remarks: tuple[Remark, ...] = ()
    unneeded: tuple[str, ...] = ()


class Departure(StrEnum):
    """The result of leaving: the task was not joined; the bond is locked until it ends; bond and rewards are paid."""

    NOT_JOINED = "not joined"
    BOND_LOCKED = "bond locked"
    PAID = "paid"


@dataclass(frozen=True)
class Balance:
    """The money of a voter's account. `staked`: as a voter. `commission`: per cent of its delegators' rewards."""

    tokens: int
    ether: int
    staked: int
    is_voter: bool
    commission: float


@dataclass(frozen=True)
class Registration:
    """The steps that a voter's registration lacks. `becomes_voter`, `makes_key`: the step is missing. `stakes`: tokens
    to add. `commission`: the wanted one, in per cent; `present`: that of now. A higher one counts after the unbonding
    period. `gas`: the most that all steps cost.
    """

    becomes_voter: bool
    commission: float
    present: float
    stakes: int
    makes_key: bool
    gas: int

    @property
    def is_done(self) -> bool:
        return not (self.becomes_voter or self.stakes or self.makes_key or self.commission != self.present)


@dataclass(frozen=True)
class Registered:
    """`paid`: for gas."""

    paid: int
    stake: Stake


@dataclass(frozen=True)
class Claimed:
    """`rewards` that `payee` has now, `unvested` ones later, and the ended tasks whose bonds are free."""

    payee: str
    rewards: int
    unvested: int
    released: tuple[int, ...]


@dataclass(frozen=True)
class Unstaking:
    """The tokens that are to unbond, and the stake before."""

    amount: int
    stake: Stake
