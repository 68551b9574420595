"""Tables of facts. A row says what one log of the chain said, and is never changed: what holds now is the latest row.

Every fact hangs on its block. Taking a reorganised block out takes its facts along (ON DELETE CASCADE), and there is
nothing to be undone. The latest is by (block, log_index).

Enumerations are kept by their number in the contract (`consilium_chain.ledger.structs`), accounts as checksummed
addresses (EIP-55), times in seconds since the epoch.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, MetaData, String, types
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

ACCOUNT = String(42)
MAP_DIGITS = 64  # hexadecimal, of 256 bits


class Amount(types.TypeDecorator[int]):
    """An unsigned number below 2^`bits`, as tokens in their smallest unit or shares: decimal text of fixed length.

    So text sorts as numbers do. Databases' own numbers end at 2^63, or are not exact.
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
            raise ValueError(f"{value} is no amount: it does not fit {self.bits} bits")
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
    """A hash, 32 bytes: 0x and 64 hexadecimal digits, as people search for it."""

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
    """The contracts that the tables are of: one row. `tasks`: the task contract, which names all others."""

    __tablename__ = "sources"

    chain_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    tasks: Mapped[str] = mapped_column(ACCOUNT, primary_key=True)


class Checkpoint(MappedAsDataclass, Base):
    """A block up to which all is in the tables, and its hash: how a reorganisation is noticed, and where it began."""

    __tablename__ = "checkpoints"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(Hex)


class Block(MappedAsDataclass, Base):
    """A block that holds any of the contracts' logs."""

    __tablename__ = "blocks"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(Hex)
    time: Mapped[int] = mapped_column(BigInteger)


class Spec(MappedAsDataclass, Base):
    """A task file, which has its keccak256 for a name and hangs on no block. From the artifact store."""

    __tablename__ = "specs"

    hash: Mapped[bytes] = mapped_column(Hex, primary_key=True)
    text: Mapped[str]


class Fact(MappedAsDataclass, Base):
    """`item`: of several rows that one log gives, which."""

    __abstract__ = True

    block: Mapped[int] = mapped_column(
        ForeignKey("blocks.number", ondelete="CASCADE"), primary_key=True, sort_order=-10
    )
    log_index: Mapped[int] = mapped_column(primary_key=True, sort_order=-9)
    item: Mapped[int] = mapped_column(primary_key=True, sort_order=-8)


class EventRow(Fact):
    """Every log of the contracts. Values that queries often need also have a column here or a table of their own.

    `contract`: tasks or staking. `account`: whom it is about, a node, a voter, a hospital, an operator; of a delegation
    the delegator is in `other`. `values`: by their Solidity names, numbers as decimal text and bytes as 0x-text.
    """

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_task", "task", "round", "block", "log_index"),
        Index("ix_events_account", "account", "block", "log_index"),
        Index("ix_events_other", "other", "block", "log_index"),
        Index("ix_events_name", "name", "block", "log_index"),
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
    """TaskProposed. `params`: the contract's terms (`views.TaskParams`) by name, numbers as text where above 2^53. Both
    pools as proposed: what was added is in `fundings`.
    """

    __tablename__ = "tasks"

    task: Mapped[int] = mapped_column(BigInteger, unique=True)
    operator: Mapped[str] = mapped_column(ACCOUNT, index=True)
    aggregator: Mapped[str] = mapped_column(ACCOUNT, index=True)
    spec_hash: Mapped[bytes] = mapped_column(Hex)
    pool: Mapped[int] = mapped_column(Amount)
    params: Mapped[dict[str, Any]] = mapped_column(JSON)


class Funding(Fact):
    """TaskFunded. `pool`: with what was added. A task without a row has the pool that it was proposed with."""

    __tablename__ = "fundings"
    __table_args__ = (Index("ix_fundings_task", "task", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[int] = mapped_column(Amount)


class PhaseStart(Fact):
    """PhaseStarted, which a task's end is, too. A task is in the phase of its latest row; `deadline` 0: none."""

    __tablename__ = "phases"
    __table_args__ = (Index("ix_phases_task", "task", "block", "log_index"),)

    task: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]
    phase: Mapped[int]
    deadline: Mapped[int] = mapped_column(BigInteger)


class Participant(Fact):
    """HospitalJoined, VoterJoined, AggregatorJoined. `weight`: of a hospital, else 0."""

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

    `role`: in which the account was paid or slashed in the task, where it has one. `reason`: of a slash, else null.
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
    """A node's pool of stake after a log of Staking that changed it (`Pools.sol`), as it follows from events alone.

    `next_commission_bps`: announced, and in effect from `next_commission_at` on, whether or not a later row says so.
    `index_x48`: what one share has earned since the node was registered, 48 bits of it fraction, and one (2^-48).
    `burnt`, `forfeited`, `rewarded`: sums since then. `voter_key`: whether a voter's key is registered.
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


class Position(Fact):
    """A delegator's shares of a node after a log about them, without those that unbond; of a generation before the
    pool's they are worth nothing.

    `delegated`, `withdrawn`, `claimed`: tokens, sums since its first. An owner is a delegator of its own node.
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
    """UnbondingStarted (`shares` of a request) and Unbonded (then no shares are left): by delegator and request."""

    __tablename__ = "unbondings"
    __table_args__ = (Index("ix_unbondings_delegator", "delegator", "request", "block", "log_index"),)

    delegator: Mapped[str] = mapped_column(ACCOUNT)
    request: Mapped[int] = mapped_column(BigInteger)
    node: Mapped[str] = mapped_column(ACCOUNT)
    role: Mapped[int]
    generation: Mapped[int]
    shares: Mapped[int] = mapped_column(Amount)
    matures_at: Mapped[int] = mapped_column(BigInteger)


class JobRow(MappedAsDataclass, Base):
    """Last run of a job with its subject, and when it may begin again. No fact: it may be emptied at any time.

    `subject`: a task, or task/round; empty for a job that has only one. `outcome`: done, begun (the process that it
    started has yet to prove stable) or failed; None until it first ends. `mark`: names the work that was done, if the
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
