"""Proposes a task, funds it, stops it, and takes back the rest of its pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import NotPossible, Refused, SpecInvalid
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, TaskParams
from consilium_chain.rounds.machine import last_round
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID, FAUCET_KEY
from consilium_chain.tasks.estimate import Estimate
from consilium_chain.tasks.proposal import room_in_pool, round_pay, task_params
from consilium_chain.tasks.task_spec import TOKEN, TaskSpec, parse_task_spec, spec_hash
from consilium_client.errors import unfunded
from consilium_core.errors import KeystoreError
from consilium_core.units import ether, tokens
from eth_account import Account
from eth_account.signers.local import LocalAccount

from consilium_operators.errors import OperatorError

# Gas limits of a proposal and of a funding, each with its approval. An account must hold their cost.
GAS_LIMIT = 1_300_000
FUND_GAS_LIMIT = 300_000


@dataclass(frozen=True)
class Dialogue:
    """Shows each step, and asks before a payment. `confirm` returns False without a terminal."""

    say: Callable[[str], None]
    warn: Callable[[str], None]
    confirm: Callable[[str], bool]

    def require(self, agreed: bool, question: str) -> None:
        """Raises OperatorError (ProposalNotConfirmed)."""
        if not agreed and not self.confirm(question):
            raise OperatorError("ProposalNotConfirmed")


@dataclass(frozen=True)
class Agreed:
    """The answers that options give: `yes` to all questions, `again` to a second task with the same file."""

    yes: bool
    again: bool
    not_private: bool


def operator_ledger(rpc: str, address_book: Path, keystore: Path | None, password_file: Path | None) -> Ledger:
    """The contracts' client with the operator's account. Default on the local chain: the account with all tokens.

    Raises DeploymentInvalid, ChainUnreachable, KeystoreError.
    """
    deployment = Deployment.read(address_book)
    if keystore is not None and password_file is not None:
        account: LocalAccount = open_keystore(keystore, password_file)
    elif deployment.chain_id == CHAIN_ID and keystore is None and password_file is None:
        account = Account.from_key(FAUCET_KEY)
    else:
        raise KeystoreError("no operator's account: pass both --keystore and --password-file")
    return Ledger(Connection(rpc, account), deployment)


def read_task(path: Path) -> tuple[bytes, TaskSpec]:
    """Raises SpecInvalid."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SpecInvalid(f"{path} cannot be read: {error.strerror}; pass the path of a task file") from error
    return raw, parse_task_spec(raw)


def propose(
    ledger: Ledger,
    store: ArtifactStore,
    raw: bytes,
    found: Estimate,
    aggregator: str | None,
    agreed: Agreed,
    dialogue: Dialogue,
) -> int:
    """Asks, puts the task file `raw` into the store, and proposes the task. Returns its number. `found`: its estimate.

    Raises SpecInvalid, BlobsUnavailable, Unfunded and OperatorError (PrivacyMissing, AggregatorMissing,
    AlreadyProposed, ProposalNotConfirmed): nothing is sent then.
    """
    spec = parse_task_spec(raw)
    if spec.privacy is None and not agreed.not_private:
        raise OperatorError("PrivacyMissing")
    if aggregator is None:
        raise OperatorError("AggregatorMissing")
    params = task_params(spec, spec_hash(raw), aggregator)
    if not ledger.deployment.blobs and not params.digests:
        raise NotPossible("BlobsUnavailable", chain_id=ledger.deployment.chain_id)
    _show_account(ledger, params, found, dialogue)
    is_agreed = _same_again(ledger, params, agreed, dialogue) or agreed.yes
    require_funds(ledger, params.pool, GAS_LIMIT)
    dialogue.require(is_agreed, f"\nPropose it, and pay {tokens(params.pool)} tokens?")
    store.put_file(raw)
    before = ledger.connection.ether()
    number = ledger.operator.propose(params)
    dialogue.say(f"\ntask {number} is proposed, for {ether(before - ledger.connection.ether())} ether of gas")
    dialogue.say(
        f"Next: hospitals, voters and the aggregator {params.aggregator} join within {spec.windows.join:,} s;\n"
        f"      its file must also be in their artifact stores\n"
        f"      consilium operator watch {number}\n"
        f"      consilium operator download-model {number} --output DIR, when it has ended"
    )
    return number


def _show_account(ledger: Ledger, params: TaskParams, found: Estimate, dialogue: Dialogue) -> None:
    connection = ledger.connection
    dialogue.say(
        f"\naccount {ledger.address}\n"
        f"holds   {tokens(ledger.token.balance(ledger.address))} tokens, {ether(connection.ether())} ether\n"
        f"pays    {tokens(params.pool)} tokens into the pool, and about"
        f" {ether(found.operator.total * connection.fees.present())} ether of gas"
    )
    free = ledger.staking.stake_of(params.aggregator, Role.AGGREGATOR).free
    if free < params.aggregator_bond:
        dialogue.warn(
            f"warning (aggregator): {params.aggregator} has {tokens(free)} tokens of free stake. It cannot join before"
            f" it has staked its bond of {tokens(params.aggregator_bond)}"
        )


def _same_again(ledger: Ledger, params: TaskParams, agreed: Agreed, dialogue: Dialogue) -> bool:
    """True if the user agreed to a second task with the same file. Raises OperatorError (AlreadyProposed)."""
    known = ledger.record.proposals(ledger.address, params.spec_hash)
    still = [number for number in known if ledger.tasks.state(number).phase is not Phase.ENDED]
    if not still:
        if known:
            dialogue.say(f"        again: task {', '.join(map(str, known))} had the same file, and has ended")
        return False
    if agreed.again:
        return agreed.yes
    question = f"\nTask {', '.join(map(str, still))} has the same file, and has not ended. Pay for another task?"
    if agreed.yes or not dialogue.confirm(question):
        raise OperatorError("AlreadyProposed", tasks=", ".join(map(str, still)), last=still[-1])
    return True


def require_funds(ledger: Ledger, amount: int, gas: int) -> None:
    """Raises Unfunded."""
    missing = max(amount - ledger.token.balance(ledger.address), 0)
    missing_wei = max(gas * ledger.connection.fees.highest() - ledger.connection.ether(), 0)
    if missing or missing_wei:
        raise unfunded(ledger.address, missing, missing_wei)


def fund(ledger: Ledger, number: int, whole_tokens: int, agreed: bool, dialogue: Dialogue) -> None:
    """Adds whole tokens to a task's pool. Raises Refused (TaskUnknown, WrongPhase, NotOperator), Unfunded and
    OperatorError (BondOutweighed, ProposalNotConfirmed): nothing is sent then.
    """
    params, amount = ledger.tasks.params(number), whole_tokens * TOKEN
    try:
        ledger.operator.try_fund(number, amount)
    except Refused as error:
        if error.name != "ParamsInvalid":
            raise
        most = (room_in_pool(params) or 0) // TOKEN
        raise OperatorError("BondOutweighed", task=number, most=most) from error
    _show_funding(ledger, number, params, amount, dialogue)
    require_funds(ledger, amount, FUND_GAS_LIMIT)
    dialogue.require(agreed, f"\nAdd {tokens(amount)} tokens to the pool of task {number}?")
    ledger.operator.fund(number, amount)
    dialogue.say(f"the pool of task {number} has {tokens(params.pool + amount)} tokens")


def _show_funding(ledger: Ledger, number: int, params: TaskParams, amount: int, dialogue: Dialogue) -> None:
    account, pool, room = ledger.address, params.pool, room_in_pool(params)
    before, after = round_pay(params, pool), round_pay(params, pool + amount)
    most = "any number of tokens" if room is None else f"at most {room // TOKEN:,} whole tokens"
    dialogue.say(
        f"task {number}: a pool of {tokens(pool)} tokens becomes one of {tokens(pool + amount)}\n"
        f"  a round pays at most: hospitals {tokens(before.hospitals)}, then {tokens(after.hospitals)};"
        f" voters {tokens(before.voters)}, then {tokens(after.voters)};"
        f" aggregator {tokens(before.aggregator)}, then {tokens(after.aggregator)}\n"
        f"  the aggregator's bond of {tokens(params.aggregator_bond)} tokens allows {most} to be added\n"
        f"account {account}\n"
        f"holds   {tokens(ledger.token.balance(account))} tokens, {ether(ledger.connection.ether())} ether"
    )


def stop(ledger: Ledger, number: int, agreed: bool, dialogue: Dialogue) -> None:
    """Starts no more rounds of a task. Raises Refused (NotOperator, AlreadyStopped, TaskUnknown) and
    OperatorError (ProposalNotConfirmed).
    """
    state = ledger.tasks.state(number)
    if state.phase is Phase.JOINING:
        words = "It ends at once"
    else:
        until = last_round(replace(state, stopping=True), ledger.tasks.params(number).rounds)
        words = f"It is in round {state.round}: rounds up to {until} still take place, and are paid"
    question = f"Stop task {number}? {words}. Then bonds are released, and the rest of the pool comes back."
    dialogue.require(agreed, question)
    ledger.operator.stop(number)
    if ledger.tasks.state(number).phase is Phase.ENDED:
        ledger.operator.claim_refund()
        dialogue.say(f"task {number} has ended, and the rest of its pool is in the operator's account")
    else:
        dialogue.say(f"task {number} ends with round {until}; then `consilium operator refund` takes back the rest")


def refund(ledger: Ledger, dialogue: Dialogue) -> None:
    """Transfers the rest of ended tasks' pools to the operator's account."""
    owed = ledger.tasks.refundable(ledger.address)
    ledger.operator.claim_refund()
    dialogue.say(f"{tokens(owed)} tokens came back to {ledger.address}")
