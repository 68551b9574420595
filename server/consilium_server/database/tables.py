"""Tables of facts. A row has the content of one log of the chain, and never changes. The latest row is the state.

Every fact belongs to a block. The removal of a reorganised block removes its facts (ON DELETE CASCADE), without other
changes. The latest row is by (block, log_index).

Enumerations are stored by their number in the contract (`consilium_chain.ledger.structs`), accounts as checksummed
addresses (EIP-55), times in seconds since the epoch.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, LargeBinary, MetaData, String, types
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

ACCOUNT = String(42)
MAP_DIGITS = 64  # hexadecimal, of 256 bits


class Amount(types.TypeDecorator[int]):
    """An unsigned number below 2^`bits`, as decimal text of fixed length, whose order is that of the numbers.

    Databases' own numbers end at 2^63, or are not exact.
    """

    impl = String
    cache_ok = True

    def __init__(self, bits: int = 128) -> None:
        self.bits, self.digits = bits, len(str((1 << bits) - 1))
        super().__init__(self.digits)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if not 0 <= value < 1 << self.bits:
            raise ValueError(f"{value} is not an amount: it must be from 0 to below 2^{self.bits}")
        return f"{value:0{self.digits}d}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value)


class BitMap(types.TypeDecorator[int]):
    """A set of indices below 256 (`structs.members`): hexadecimal, of one length."""

    impl = String(MAP_DIGITS)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else f"{value:0{MAP_DIGITS}x}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value, 16)


class Hex(types.TypeDecorator[bytes]):
    """A hash of 32 bytes: 0x and 64 hexadecimal digits, so that people can search for it."""

    impl = String(66)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else "0x" + bytes(value).hex()

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return None if value is None else bytes.fromhex(value[2:])


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Source(MappedAsDataclass, Base):
    """The contracts of the tables, in one row. `tasks`: the task contract, which names all others."""

    __tablename__ = "sources"

    chain_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    tasks: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)


class Checkpoint(MappedAsDataclass, Base):
    """A block up to which the tables are complete, and its hash, which shows a reorganisation and its beginning."""

    __tablename__ = "checkpoints"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(Hex)


class Block(MappedAsDataclass, Base):
    """A block with logs of the contracts."""

    __tablename__ = "blocks"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(Hex)
    time: Mapped[int] = mapped_column(BigInteger)


class Spec(MappedAsDataclass, Base):
    """A task file from the artifact store, by its keccak256. It belongs to no block."""

    __tablename__ = "specs"

    hash: Mapped[bytes] = mapped_column(Hex, primary_key=True)
    text: Mapped[str]


class Fact(MappedAsDataclass, Base):
    """`item`: number of the row among those of one log."""

    __abstract__ = True

    block: Mapped[int] = mapped_column(
        ForeignKey("blocks.number", ondelete="CASCADE"), primary_key=True, sort_order=-10
    )
    log_index: Mapped[int] = mapped_column(primary_key=True, sort_order=-9)
    item: Mapped[int] = mapped_column(primary_key=True, sort_order=-8)


class EventRow(Fact):
    """Every log of the contracts. Values that queries often need also have a column here, or their own table.

    `contract`: tasks or staking. `account`: the subject, such as a node, a voter, a hospital or an operator. `other`: a
    delegation's delegator. `values`: by their Solidity names, numbers as decimal text and bytes as 0x-text.
    """

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_task", "task", "round", "block", "log_index"),
        Index("ix_events_account", "account", "block", "log_index"),
        Index("ix_events_other", "other", "block", "log_index"),
        Index("ix_events_name", "name", "block", "log_index"),
        Index("ix_events_transaction", "transaction"),
    )

    contract: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(40))
    transaction: Mapped[bytes] = mapped_column(Hex)
    task: Mapped[int | None] = mapped_column(BigInteger)
    round: Mapped[int | None]
    account: Mapped[str | None] = mapped_column(ACCOUNT)
    role: Mapped[int | None]
    other: Mapped[str | None] = mapped_column(ACCOUNT)
    values: Mapped[dict[str, Any]] = mapped_column(JSON)


class TaskRow(Fact):
    """TaskProposed. `params`: the terms (`structs.TaskParams`) by name; numbers above 2^53 as text.

    Both pools are as proposed. `fundings` has the additions.
    """

    __tablename__ = "tasks"

    task: Mapped[int] = mapped_column(BigInteger, unique=True)
    operator: Mapped[str] = mapped_column(ACCOUNT, index=True)
    aggregator: Mapped[str] = mapped_column(ACCOUNT, index=True)
    spec_hash: Mapped[bytes] = mapped_column(Hex)
    pool: Mapped[int] = mapped_column(Amount)
    params: Mapped[dict[str, Any]] = mapped_column(JSON)


class Funding(Fact):
    """TaskFunded. `pool`: with the addition. A task without a row has the pool of its proposal."""

    __tablename__ = "fundings"
    __table_args__ = (Index("ix_fundings_task", "task", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[int] = mapped_column(Amount)


class PhaseStart(Fact):
    """PhaseStarted, also for a task's end. A task is in the phase of its latest row. `deadline`: 0 for none."""

    __tablename__ = "phases"
    __table_args__ = (Index("ix_phases_task", "task", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]
    phase: Mapped[int]
    deadline: Mapped[int] = mapped_column(BigInteger)


class Participant(Fact):
    """HospitalJoined, VoterJoined, AggregatorJoined. `weight`: a hospital's; 0 for others."""

    __tablename__ = "participants"
    __table_args__ = (Index("ix_participants_task", "task", "role", "position"),)

    task: Mapped[int] = mapped_column(BigInteger)
    account: Mapped[str] = mapped_column(ACCOUNT, index=True)
    role: Mapped[int]
    position: Mapped[int]
    weight: Mapped[int] = mapped_column(BigInteger)


class Cohort(Fact):
    """CohortsFormed: a row for each cohort, whose number is its `item`. `members`: hospitals by position."""

    __tablename__ = "cohorts"
    __table_args__ = (Index("ix_cohorts_task", "task", "round"),)

    task: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]
    members: Mapped[int] = mapped_column(BitMap)


class OutcomeRow(Fact):
    """RoundSettled and RoundVoided. `medians`: in millionths, by cohort; `accepted`: cohorts."""

    __tablename__ = "outcomes"
    __table_args__ = (Index("ix_outcomes_task", "task", "round"),)

    task: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]
    outcome: Mapped[int]
    reason: Mapped[int]
    medians: Mapped[list[int]] = mapped_column(JSON)
    accepted: Mapped[int] = mapped_column(BitMap)


class Payment(Fact):
    """Rewarded, Slashed, BountyPaid, and TaskEnded's refund, which has no round. `kind`: reward, slash, bounty, refund.

    `role`: the account's role in the task, if it has one. `reason`: a slash's; null for others.
    """

    __tablename__ = "payments"
    __table_args__ = (Index("ix_payments_task", "task", "round"), Index("ix_payments_account", "account", "kind"))

    task: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int | None]
    account: Mapped[str] = mapped_column(ACCOUNT)
    role: Mapped[int | None]
    kind: Mapped[str] = mapped_column(String(8))
    amount: Mapped[int] = mapped_column(Amount)
    reason: Mapped[int | None]


class PoolRow(Fact):
    """A node's pool of stake after a log of Staking that changed it (`Pools.sol`), computed from events only.

    `next_commission_bps`: announced, and in effect from `next_commission_at` on, also without a later row. So is
    `next_withdrawal_address`. Without a `withdrawal_address` the node itself is paid.
    `index_x48`: one share's earnings since the registration, with a fraction of 48 bits, plus 2^-48.
    `burnt`, `forfeited`, `rewarded`: sums since then. `voter_key`: true if a voter's key is registered.
    """

    __tablename__ = "pools"
    __table_args__ = (Index("ix_pools_node", "node", "role", "block", "log_index"),)

    node: Mapped[str] = mapped_column(ACCOUNT)
    role: Mapped[int]
    generation: Mapped[int]
    assets: Mapped[int] = mapped_column(Amount)
    shares: Mapped[int] = mapped_column(Amount)
    unbonding_shares: Mapped[int] = mapped_column(Amount)
    locked: Mapped[int] = mapped_column(Amount)
    commission_bps: Mapped[int]
    next_commission_bps: Mapped[int | None]
    next_commission_at: Mapped[int | None] = mapped_column(BigInteger)
    index_x48: Mapped[int] = mapped_column(Amount(144))
    rewarded: Mapped[int] = mapped_column(Amount)
    burnt: Mapped[int] = mapped_column(Amount)
    forfeited: Mapped[int] = mapped_column(Amount)
    voter_key: Mapped[bool]
    withdrawal_address: Mapped[str | None] = mapped_column(ACCOUNT, default=None)
    next_withdrawal_address: Mapped[str | None] = mapped_column(ACCOUNT, default=None)
    next_withdrawal_at: Mapped[int | None] = mapped_column(BigInteger, default=None)


class Position(Fact):
    """A delegator's shares of a node after a log about them, without unbonding shares.

    Shares of a generation before the pool's are worth nothing. `delegated`, `withdrawn`, `claimed`: sums in tokens. An
    owner is a delegator of its own node.
    """

    __tablename__ = "positions"
    __table_args__ = (
        Index("ix_positions_delegator", "delegator", "node", "role", "block", "log_index"),
        Index("ix_positions_node", "node", "role", "delegator", "block", "log_index"),
    )

    delegator: Mapped[str] = mapped_column(ACCOUNT)
    node: Mapped[str] = mapped_column(ACCOUNT)
    role: Mapped[int]
    generation: Mapped[int]
    shares: Mapped[int] = mapped_column(Amount)
    delegated: Mapped[int] = mapped_column(Amount)
    withdrawn: Mapped[int] = mapped_column(Amount)
    claimed: Mapped[int] = mapped_column(Amount)


class UnbondingRow(Fact):
    """UnbondingStarted (with `shares`) and Unbonded (without any), by delegator and request."""

    __tablename__ = "unbondings"
    __table_args__ = (Index("ix_unbondings_delegator", "delegator", "request", "block", "log_index"),)

    delegator: Mapped[str] = mapped_column(ACCOUNT)
    request: Mapped[int] = mapped_column(BigInteger)
    node: Mapped[str] = mapped_column(ACCOUNT)
    role: Mapped[int]
    generation: Mapped[int]
    shares: Mapped[int] = mapped_column(Amount)
    matures_at: Mapped[int] = mapped_column(BigInteger)


class ProfileRow(MappedAsDataclass, Base):
    """A node's signed profile (`SignedProfile`), the latest. Not a fact: its node sent it to this server.

    `words`: name and institution, to search in.
    """

    __tablename__ = "profiles"

    account: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)
    updated_at: Mapped[int] = mapped_column(BigInteger)
    words: Mapped[str] = mapped_column(String(500))
    signed: Mapped[dict[str, Any]] = mapped_column(JSON)


class VerifiedNameRow(MappedAsDataclass, Base):
    """An account's name that another side verifies. Not a fact. `kind`: domain or ens. `name`: empty without one.

    `verified_at`: time of the last answer, Unix seconds. `next_at`: time of the next question.
    """

    __tablename__ = "verified_names"

    account: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)
    kind: Mapped[str] = mapped_column(String(6), primary_key=True)
    name: Mapped[str] = mapped_column(String(253))
    verified_at: Mapped[int] = mapped_column(BigInteger)
    next_at: Mapped[float] = mapped_column(Double)


class AggregatorRow(MappedAsDataclass, Base):
    """The machine that runs a task's aggregator, of those that share this database. Not a fact.

    `task_key`: `Ledger.folder_name` of the task. `owner`: empty if none had it yet. Times by the database's clock.
    """

    __tablename__ = "aggregators"

    task_key: Mapped[str] = mapped_column("place", String(120), key="task_key", primary_key=True)
    superlink_port: Mapped[int]
    owner: Mapped[str] = mapped_column(String(120))
    since: Mapped[float] = mapped_column(Double)
    leased_until: Mapped[float] = mapped_column(Double)


class SealedSecretsRow(MappedAsDataclass, Base):
    """Secrets that disclose a round's decoys, encrypted with the aggregator's account. Not a fact."""

    __tablename__ = "sealed_secrets"

    task_key: Mapped[str] = mapped_column("place", String(120), key="task_key", primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)


class JobRow(MappedAsDataclass, Base):
    """The last run of a job, and the earliest time of the next one. Not a fact: the table may be emptied at any time.

    `subject`: a task, or task/round; empty for a job without subject. `outcome`: done, failed, or begun (the process
    that it started is not yet known to be stable); None until its first end. `mark`: names the finished work, if the
    job needs it.
    """

    __tablename__ = "jobs"

    job: Mapped[str] = mapped_column(String(16), primary_key=True)
    subject: Mapped[str] = mapped_column(String(40), primary_key=True)
    begun_at: Mapped[float] = mapped_column(Double)
    ended_at: Mapped[float | None] = mapped_column(Double)
    succeeded_at: Mapped[float | None] = mapped_column(Double)
    outcome: Mapped[str | None] = mapped_column(String(8))
    failures: Mapped[int]  # in a row
    error: Mapped[str | None] = mapped_column(String(80))
    why: Mapped[str | None] = mapped_column(String(1000))
    mark: Mapped[str | None] = mapped_column(String(200))
    not_before: Mapped[float] = mapped_column(Double)
    owner: Mapped[str] = mapped_column(String(120))
    leased_until: Mapped[float] = mapped_column(Double)
