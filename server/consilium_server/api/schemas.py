"""Models of the API's answers. They take the values of the tables: numbers of enumerations, integers, bytes.

Amounts are decimal text of the token's smallest unit (10^18 in one token), because numbers of JSON are exact only up
to 2^53. Times are whole seconds since the epoch. Enumerations are the contracts' names in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.ledger.structs import Outcome, Phase, Role, SlashReason, VoidReason
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from consilium_server.config import checksummed

Item = TypeVar("Item")
HASH = r"^0x[0-9a-f]{64}$"
LARGEST_TASK = 2**53 - 1


def names(kind: type[IntEnum]) -> list[str]:
    """Names of an enumeration, as the API says them."""
    return [member.name.lower() for member in kind]


def name(member: IntEnum) -> str:
    """The name of a member, as the API says it."""
    return member.name.lower()


def named(kind: type[IntEnum], value: str) -> int:
    """The number of a name."""
    return int(kind[value.upper()])


def hexed(raw: bytes) -> str:
    """Bytes as hexadecimal text."""
    return "0x" + raw.hex()


def _one_of(kind: type[IntEnum]) -> BeforeValidator:
    """Takes a name of the enumeration, or its number."""

    def check(value: str | int) -> str:
        text = name(kind(value)) if isinstance(value, int) else value
        if text not in names(kind):
            raise ValueError(f"one of {', '.join(names(kind))}")
        return text

    return BeforeValidator(check)


def _enum(kind: type[IntEnum]) -> Any:
    return Field(json_schema_extra={"enum": list(names(kind))})


PhaseName = Annotated[str, _one_of(Phase), _enum(Phase)]
OutcomeName = Annotated[str, _one_of(Outcome), _enum(Outcome)]
VoidReasonName = Annotated[str, _one_of(VoidReason), _enum(VoidReason)]
RoleName = Annotated[str, _one_of(Role), _enum(Role)]
SlashReasonName = Annotated[str, _one_of(SlashReason), _enum(SlashReason)]

Amount = Annotated[
    str, Field(
        pattern=r"^(0|[1-9][0-9]*)$", coerce_numbers_to_str=True, description="smallest units, decimal",
        examples=["12500000000000000000"],
    ),
]  # fmt: skip
Time = Annotated[int, Field(ge=0, description="seconds since the epoch", examples=[1_795_000_000])]
Hash = Annotated[
    str,
    Field(pattern=HASH, examples=["0x" + "1f" * 32]),
    BeforeValidator(lambda value: hexed(value) if isinstance(value, bytes) else value),
]
Account = Annotated[
    str, Field(
        pattern=r"^0x[0-9a-fA-F]{40}$", description="account with EIP-55's capitals",
        examples=["0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"],
    ),
]  # fmt: skip
GivenAccount = Annotated[
    str, AfterValidator(checksummed), Field(pattern=r"^0x[0-9a-fA-F]{40}$", description="in any capitals")
]
Bytes = Annotated[str, Field(pattern=r"^0x([0-9a-f]{2})*$", description="hexadecimal")]
TaskNumber = Annotated[int, Field(ge=1, le=LARGEST_TASK, examples=[1])]
RoundNumber = Annotated[int, Field(ge=0, le=2**31 - 1, description="0 is the statistics round", examples=[1])]
Indices = Annotated[list[int], Field(description="hospitals' positions in the task, ascending")]
Millionths = Annotated[int, Field(description="in millionths")]


class ApiModel(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class Page(ApiModel, Generic[Item]):
    items: Sequence[Item]
    next: str | None = Field(description="the cursor of the next page; null on the last")


class Contracts(ApiModel):
    tasks: Account
    staking: Account
    token: Account
    beacon: Account
    model_shares: Account


class Index(ApiModel):
    """State of the index. `chain_head` and `behind` are null if the server has no chain node, or got no answer."""

    block: int | None = Field(description="last indexed block; null before the first")
    hash: Hash | None
    latest_event_at: Time = Field(description="time of the latest block with an event; 0 before the first")
    chain_head: int | None
    behind: int | None = Field(description="blocks that the index lacks")


class Totals(ApiModel):
    nodes: int
    assets: Amount = Field(description="stake, unbonding stake included")
    locked: Amount = Field(description="part of it in bonds")
    rewarded: Amount = Field(description="rewards and money of model shares since the beginning")
    burnt: Amount = Field(description="burnt by slashes since the beginning")
    forfeited: Amount = Field(description="rewards that slashes took before they vested, since the beginning")


class Network(ApiModel):
    chain_id: int
    contracts: Contracts
    token_symbol: str | None = Field(description="null if the server has no chain node, or got no answer")
    index: Index
    tasks: dict[str, int] = Field(description="tasks by phase", examples=[{"joining": 1, "scoring": 2, "ended": 9}])
    rounds: dict[str, int] = Field(description="rounds by outcome", examples=[{"settled": 40, "void": 2}])
    pools: Amount = Field(description="pools of all tasks, before any payment")
    stake: dict[str, Totals] = Field(description="stake by role")
    delegators: int = Field(description="accounts that have shares of a node")
    unbonding_seconds: int | None = Field(
        description="seconds from unbonding to withdrawal, and notice of a higher commission; null without a chain node"
    )


class Payment(ApiModel):
    kind: Literal["reward", "slash", "bounty", "refund"]
    task: TaskNumber
    round: int | None
    account: Account
    role: RoleName | None
    amount: Amount
    reason: SlashReasonName | None = Field(description="reason of a slash")
    time: Time
    block: int
    log_index: int
    transaction: Hash | None


class Yield(ApiModel):
    """Realised yield of one token staked at `since` until `until`, in millionths of it; not annualised.

    `earned`: rise of the pool's reward index. `lost`: fall of a share's worth by slashes. Both are over the share's
    worth at `since`. Rewards that have not vested, and compounding, are left out. The node's commission is already
    deducted.
    """

    since: Time
    until: Time
    earned: Millionths
    lost: Millionths
    net: Millionths


class NodeSummary(ApiModel):
    node: Account
    role: RoleName
    assets: Amount = Field(description="all stake, unbonding included")
    active: Amount = Field(description="stake that is not unbonding")
    locked: Amount = Field(description="stake in bonds")
    free: Amount = Field(description="stake that new bonds can lock")
    shares: Amount
    unbonding_shares: Amount
    generation: int = Field(description="rises when a slash takes all; shares of earlier ones are worth nothing")
    commission_bps: int
    next_commission_bps: int | None
    next_commission_at: Time | None
    withdrawal_address: Account | None = Field(
        description="account that gets the owner's stake and rewards; null if that is the node"
    )
    next_withdrawal_address: Account | None = Field(description="announced, and paid from next_withdrawal_at on")
    next_withdrawal_at: Time | None
    rewarded: Amount
    burnt: Amount
    forfeited: Amount
    slashes: int
    delegators: int = Field(description="accounts with shares, the node's own included")
    tasks: int
    rounds: int = Field(description="rounds in which it was paid or slashed")
    paid_rounds: int
    own: Amount = Field(description="worth of the owner's shares, without unbonding ones")
    staked_at: Time | None = Field(description="time of its first stake")
    is_new: bool = Field(description="first stake younger than 30 days, or fewer than 5 paid rounds")
    voter_key: bool
    realised_yield: Yield
    annual_rate: Millionths | None = Field(
        description="the net yield as a simple rate of 365 days, rounded down; null if new, or over less than a day"
    )


class PoolChange(ApiModel):
    time: Time
    block: int
    log_index: int
    transaction: Hash | None
    event: str | None = Field(description="event that changed the pool", examples=["Delegated"])
    assets: Amount
    shares: Amount
    locked: Amount
    commission_bps: int
    rewarded: Amount
    burnt: Amount


class Delegation(ApiModel):
    delegator: Account
    node: Account
    role: RoleName
    shares: Amount
    worth: Amount = Field(description="present worth of the shares; 0 after a slash that took all")
    is_wiped: bool
    delegated: Amount
    withdrawn: Amount
    claimed: Amount
    since: Time = Field(description="time of the latest change")


class Unbonding(ApiModel):
    request: int
    node: Account
    role: RoleName
    shares: Amount
    worth: Amount
    matures_at: Time


Movement = Literal[
    "reward", "slash", "bounty", "refund", "delegated", "unbonding_started", "unbonded", "claimed"
]  # fmt: skip


class Entry(ApiModel):
    """A line of an account's history. For a delegator: stake, withdrawals and claims at each node."""

    time: Time
    kind: Movement
    task: int | None
    round: int | None
    node: Account | None
    role: RoleName | None
    amount: Amount | None = Field(description="null for unbonding_started, which is in shares")
    shares: Amount | None
    reason: SlashReasonName | None
    block: int
    log_index: int
    transaction: Hash | None


ModelFileName = Literal[
    "model.safetensors", "model.json", "model-card.md", "proof.json", "program.json", "program.safetensors",
    "program-frozen.safetensors",
    "program-tokenizer.json",
    "model.onnx", "model-int8.onnx", "report.json", "report.html", "report.svg",
]  # fmt: skip
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["1f" * 32])]


class ModelFile(ApiModel):
    name: ModelFileName
    size: int = Field(description="size in bytes")


class Quality(ApiModel):
    """Metrics of the model as it is after a round. Null: of another question, or without a meaning for these rows."""

    round: int = Field(ge=0, description="0 is the start, before the first training round")
    accuracy: FiniteFloat | None = Field(default=None, description="share of rows, 0 to 1")
    auc: FiniteFloat | None = Field(default=None, description="0.5 is chance")
    macro_f1: FiniteFloat | None = None
    log_loss: FiniteFloat | None = Field(default=None, description="nats a row, or of a language model a token")
    pr_auc: FiniteFloat | None = None
    calibration_error: FiniteFloat | None = None
    brier: FiniteFloat | None = None
    perplexity: FiniteFloat | None = None
    squared_error: FiniteFloat | None = Field(default=None, description="in squared deviations of the task")
    absolute_error: FiniteFloat | None = Field(default=None, description="in deviations of the task")
    r2: FiniteFloat | None = None
    c_index: FiniteFloat | None = Field(default=None, description="0.5 is chance")
    dice: FiniteFloat | None = None


class Measured(ApiModel):
    """Metrics on held-out rows, by the party that has these rows. The chain does not prove them."""

    rows: int = Field(ge=1, description="number of rows")
    sources: int = Field(ge=1, description="number of files that they came from")
    rounds: list[Quality] = Field(min_length=1)


class References(ApiModel):
    """On the rows of `measured`. Only the operator of a demo states them, since it has all hospitals' rows."""

    pooled: dict[str, FiniteFloat] = Field(max_length=32, description="of a model of all rows in one place")
    alone: dict[str, FiniteFloat] = Field(max_length=32, description="mean of a model of each hospital alone")


class ModelView(ApiModel):
    round: int = Field(description="last round whose sums are in it")
    rounds: int = Field(description="rounds of the task")
    verified: bool = Field(description="true if every check of every round passed when the model was derived")
    sha256: Sha256 = Field(description="SHA-256 of its parameters; `consilium verify` shows the same")
    measured: Measured | None = Field(description="null if it was not measured")
    references: References | None = Field(description="null if the operator states none, as outside a demo")
    files: list[ModelFile]


class Models(ApiModel):
    items: list[ModelView]


class Reports(ApiModel):
    items: list[EvaluationReport]


class Nonce(ApiModel):
    """Values of a message of EIP-4361: nonce, `domain`, `uri` and `chain_id`."""

    nonce: str
    expires_at: Time
    domain: str
    uri: str
    chain_id: int


class SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(max_length=4096, description="message that the wallet signed (EIP-4361)")
    signature: str = Field(
        pattern=r"^0x([0-9a-fA-F]{2})*$", max_length=8194,
        description="hexadecimal: 65 bytes of a key (EIP-191), or up to 4,096 for a contract (EIP-1271)",
    )  # fmt: skip


class SessionView(ApiModel):
    account: Account
    role: Literal["signed-in", "admin"]
    expires_at: Time


class SignedIn(SessionView):
    token: str = Field(description="token for `Authorization: Bearer`; keep it secret like a password")


JobState = Literal["running", "done", "begun", "failed", "lost"]


class JobView(ApiModel):
    """`begun`: the process that it started is not yet known to be stable. `lost`: its worker ended; another does it."""

    job: str = Field(examples=["tick"])
    subject: str = Field(description="a task, or task/round; empty for a job without subject", examples=["3"])
    state: JobState
    failures: int = Field(ge=0, description="failures in a row", examples=[2])
    begun_at: Time
    succeeded_at: Time | None
    next_try_at: Time | None = Field(description="earliest time; null if it may begin at any time")
    error: str | None = Field(examples=["ChainUnreachable"])
    why: str | None = Field(examples=["no chain node answers at http://127.0.0.1:8545 (ConnectionError)"])
    worker: str = Field(description="host, process and run that had the job last", examples=["host:812:9f2b6c0d"])


class Jobs(ApiModel):
    items: list[JobView]
    total: int = Field(ge=0, description="number of all such jobs, also of those that the limit cut off")


class Health(ApiModel):
    status: Literal["ok"]
