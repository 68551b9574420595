"""Proposes a task, funds it, stops it, and takes back the rest of its pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.faucet import given_account
from consilium_chain.errors import NotPossible, Refused, SpecInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, TaskParams
from consilium_chain.rounds.machine import last_round
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.tasks.estimate import Estimate, estimate
from consilium_chain.tasks.fairness import unfairness
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import RoundPay, room_in_pool, round_pay, task_params
from consilium_chain.tasks.start_specs import FileStart, TaskStart
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_client.errors import unfunded
from consilium_client.models import model_of
from consilium_client.programs.library import offer
from consilium_client.start import started_from, started_from_file

from consilium_operators.errors import OperatorError

# Gas limits of a proposal and of a funding, each with its approval. An account must hold their cost.
GAS_LIMIT = 1_300_000
FUND_GAS_LIMIT = 300_000


@dataclass(frozen=True)
class Proposal:
    """A task before it is proposed, or all shards of a model. Amounts in the smallest units. `tokens`, `wei`: the
    account's. `pool`, `gas_wei`: of all shards; the gas is about right.

    `free_stake`: the aggregator's, beside its `bond`. `still_open`, `ended`: this account's tasks with the same file.
    """

    account: str
    tokens: int
    wei: int
    pool: int
    gas_wei: int
    aggregator: str
    bond: int
    free_stake: int
    still_open: tuple[int, ...]
    ended: tuple[int, ...]


@dataclass(frozen=True)
class Proposed:
    """`task`: its number, or that of the first of `shards`. `gas_wei`: paid for all."""

    task: int
    shards: int
    gas_wei: int


@dataclass(frozen=True)
class Funding:
    """A task's pool before `amount` is added, and a round's pay before and after. Amounts in the smallest units.

    `tokens`, `wei`: the account's. `room`: the most that may be added; None without a bound.
    """

    task: int
    account: str
    tokens: int
    wei: int
    pool: int
    amount: int
    before: RoundPay
    after: RoundPay
    aggregator_bond: int
    room: int | None


@dataclass(frozen=True)
class Stop:
    """`round`: the present one. `last`: the last one that takes place. Both are None for a task that ends at once."""

    task: int
    round: int | None
    last: int | None


def operator_ledger(rpc: str, address_book: Path, keystore: Path | None, password_file: Path | None) -> Ledger:
    """The contracts' client with the operator's account. Default on the local chain: the account with all tokens.

    Raises DeploymentInvalid, ChainUnreachable, KeystoreError.
    """
    deployment = Deployment.read(address_book)
    account = given_account("operator's account", keystore, password_file, deployment.chain_id == CHAIN_ID)
    return Ledger(Connection(rpc, account), deployment)


def read_task(path: Path) -> tuple[bytes, TaskSpec]:
    """Raises SpecInvalid."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SpecInvalid(f"{path} cannot be read: {error.strerror}; pass the path of a task file") from error
    return raw, parse_task_spec(raw)


def require_fair(spec: TaskSpec) -> None:
    """Raises OperatorError (TermsUnfair) if chance would reject or slash too many honest cohorts."""
    if why := unfairness(spec):
        raise OperatorError("TermsUnfair", why=why)


def propose(
    ledger: Ledger,
    store: ArtifactStore,
    raw: bytes,
    aggregator: str | None,
    *,
    not_private: bool = False,
    again: bool = False,
    on_plan: Callable[[Proposal], None] = lambda plan: None,
    confirm: Callable[[Proposal], bool] | None = None,
) -> Proposed:
    """Puts the task file `raw` into the store, and proposes the task. The pool is paid at once.

    `on_plan` gets the plan before the account's funds are checked, `confirm` afterwards. Without `confirm`, an open
    task with the same file needs `again`.

    Raises SpecInvalid, NotPossible (BlobsUnavailable), ClientError (StartUnusable), ModelError (WeightsUnusable),
    ArtifactMissing, ConsentError (Unfunded) and OperatorError (PrivacyMissing, AggregatorMissing, TermsUnfair,
    AlreadyProposed, ProposalNotConfirmed): nothing is sent then.
    """
    spec = parse_task_spec(raw)
    if spec.privacy is None and not not_private:
        raise OperatorError("PrivacyMissing")
    if aggregator is None:
        raise OperatorError("AggregatorMissing")
    require_fair(spec)
    params = task_params(spec, spec_hash(raw), aggregator)
    if not ledger.deployment.blobs and not params.digests:
        raise NotPossible("BlobsUnavailable", chain_id=ledger.deployment.chain_id)
    if isinstance(spec.start, TaskStart):
        started_from(ledger, store, spec, spec.start)
    elif isinstance(spec.start, FileStart):
        started_from_file(store, spec, spec.start)
    offer(store, spec)
    if isinstance(spec.model, ProgramSpec):
        model_of(spec)
    plan = _plan(ledger, params, estimate(spec))
    on_plan(plan)
    is_second = bool(plan.still_open) and not again
    if is_second and confirm is None:
        raise _already(plan)
    require_funds(ledger, plan.pool, GAS_LIMIT * params.shards)
    if confirm is not None and not confirm(plan):
        raise _already(plan) if is_second else OperatorError("ProposalNotConfirmed")
    store.put_file(raw)
    before = ledger.connection.ether()
    number = ledger.operator.propose(params)
    return Proposed(number, params.shards, before - ledger.connection.ether())


def _plan(ledger: Ledger, params: TaskParams, found: Estimate) -> Proposal:
    connection = ledger.connection
    known = ledger.record.proposals(ledger.address, params.spec_hash)
    still_open = tuple(number for number in known if ledger.tasks.state(number).phase is not Phase.ENDED)
    return Proposal(
        account=ledger.address, tokens=ledger.token.balance(ledger.address), wei=connection.ether(),
        pool=params.pool * params.shards, aggregator=params.aggregator,
        gas_wei=found.operator.total * params.shards * connection.fees.present(),
        bond=params.aggregator_bond, free_stake=ledger.staking.stake_of(params.aggregator, Role.AGGREGATOR).free,
        still_open=still_open, ended=tuple(number for number in known if number not in still_open),
    )  # fmt: skip


def _already(plan: Proposal) -> OperatorError:
    return OperatorError("AlreadyProposed", tasks=", ".join(map(str, plan.still_open)), last=plan.still_open[-1])


def require_funds(ledger: Ledger, amount: int, gas: int) -> None:
    """Raises ConsentError (Unfunded)."""
    missing = max(amount - ledger.token.balance(ledger.address), 0)
    missing_wei = max(gas * ledger.connection.fees.highest() - ledger.connection.ether(), 0)
    if missing or missing_wei:
        raise unfunded(ledger.address, missing, missing_wei)


def fund(
    ledger: Ledger,
    number: int,
    whole_tokens: int,
    *,
    on_plan: Callable[[Funding], None] = lambda plan: None,
    confirm: Callable[[Funding], bool] = lambda plan: True,
) -> Funding:
    """Adds whole tokens to a task's pool. `on_plan` and `confirm` as in `propose`.

    Raises Refused (TaskUnknown, WrongPhase, NotOperator), ConsentError (Unfunded) and OperatorError (BondOutweighed,
    ProposalNotConfirmed): nothing is sent then.
    """
    params, amount, account = ledger.tasks.params(number), whole_tokens * TOKEN, ledger.address
    room = room_in_pool(params)
    try:
        ledger.operator.try_fund(number, amount)
    except Refused as error:
        if error.name != "ParamsInvalid":
            raise
        raise OperatorError("BondOutweighed", task=number, most=(room or 0) // TOKEN) from error
    plan = Funding(
        number, account, ledger.token.balance(account), ledger.connection.ether(), params.pool, amount,
        round_pay(params, params.pool), round_pay(params, params.pool + amount), params.aggregator_bond, room,
    )  # fmt: skip
    on_plan(plan)
    require_funds(ledger, amount, FUND_GAS_LIMIT)
    if not confirm(plan):
        raise OperatorError("ProposalNotConfirmed")
    ledger.operator.fund(number, amount)
    return plan


def stop(ledger: Ledger, number: int, *, confirm: Callable[[Stop], bool] = lambda plan: True) -> Stop:
    """Starts no more rounds of a task. If it ends at once, the rest of its pool comes back now.

    Raises Refused (NotOperator, AlreadyStopped, TaskUnknown) and OperatorError (ProposalNotConfirmed).
    """
    if not confirm(_stopping(ledger, number)):
        raise OperatorError("ProposalNotConfirmed")
    ledger.operator.stop(number)
    stopped = _stopping(ledger, number)
    if stopped.last is None:
        ledger.operator.claim_refund()
    return stopped


def _stopping(ledger: Ledger, number: int) -> Stop:
    state = ledger.tasks.state(number)
    if state.phase in (Phase.JOINING, Phase.ENDED):
        return Stop(number, None, None)
    return Stop(number, state.round, last_round(replace(state, stopping=True), ledger.tasks.params(number).rounds))


def refund(ledger: Ledger) -> int:
    """Transfers the rest of ended tasks' pools to the operator's account. Returns it, in the smallest unit."""
    owed = ledger.tasks.refundable(ledger.address)
    ledger.operator.claim_refund()
    return owed
