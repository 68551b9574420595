"""`consilium operator propose`, and what an operator can do to its task: shows what it would be and cost, and asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import BlobsUnavailable, KeystoreError, Refused
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, TaskParams
from consilium_chain.rounds.machine import last_round
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import CHAIN_ID, FAUCET_KEY
from consilium_chain.tasks.estimate import Estimate
from consilium_chain.tasks.funding import room_in_pool, round_pay
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TOKEN, spec_hash
from consilium_client.errors import Unfunded
from consilium_core.units import ether, tokens
from consilium_operators.errors import (
    AggregatorMissing,
    AlreadyProposed,
    BondOutweighed,
    PrivacyMissing,
    ProposalNotConfirmed,
)
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import (
    is_checksum_address,
    is_checksum_formatted_address,
    is_hex_address,
    to_checksum_address,
)

from consilium_cli.artifacts import open_artifacts
from consilium_cli.operator import checking

# Of approving and proposing, and of approving and adding, as they are sent: an account must hold what that would cost.
GAS_LIMIT = 1_300_000
FUND_GAS_LIMIT = 300_000


@dataclass(frozen=True)
class Payer:
    keystore: Path | None
    password_file: Path | None

    def account(self, chain_id: int) -> LocalAccount:
        """On the local chain by default the one that has all tokens. Raises KeystoreError."""
        if self.keystore is not None and self.password_file is not None:
            return open_keystore(self.keystore, self.password_file)
        if chain_id == CHAIN_ID and self.keystore is None and self.password_file is None:
            account: LocalAccount = Account.from_key(FAUCET_KEY)
            return account
        raise KeystoreError("an operator's account is needed: pass both --keystore and --password-file")


@dataclass(frozen=True)
class Said:
    """What flags say."""

    dry_run: bool
    yes: bool
    again: bool
    not_private: bool


def propose(
    path: Path, artifacts: Sequence[str], rpc: str, address_book: Path, payer: Payer, aggregator: str | None, said: Said
) -> None:
    """Raises SpecInvalid, PrivacyMissing, BlobsUnavailable, AlreadyProposed, Unfunded, ProposalNotConfirmed: nothing
    is sent then.
    """
    raw, spec = checking.read_task(path)
    deployment = Deployment.read(address_book)
    ledger = Ledger(Connection(rpc), deployment)
    found = checking.show(raw, spec, ledger.chain_terms())
    if said.dry_run:
        typer.echo("\na dry run: nothing was sent")
        return
    if spec.privacy is None and not said.not_private:
        raise PrivacyMissing
    params = task_params(spec, spec_hash(raw), _checked(aggregator))
    if not deployment.blobs and not params.digests:
        raise BlobsUnavailable(deployment.chain_id)
    ledger = Ledger(Connection(rpc, payer.account(deployment.chain_id)), deployment)
    _show_account(ledger, params, found)
    agreed = _same_again(ledger, params, said) or said.yes
    _require_funds(ledger, params.pool, GAS_LIMIT)
    if not agreed and not (
        sys.stdin.isatty() and typer.confirm(f"\nPropose it, and pay {tokens(params.pool)} tokens?")
    ):
        raise ProposalNotConfirmed
    open_artifacts(artifacts).put_file(raw)
    before = ledger.connection.ether()
    number = ledger.operator.propose(params)
    typer.echo(f"\ntask {number} is proposed, for {ether(before - ledger.connection.ether())} ether of gas")
    typer.echo(
        f"Next: hospitals, voters and the aggregator {params.aggregator} join within {spec.windows.join:,} s;\n"
        f"      its file has to be in their artifact stores, too\n"
        f"      consilium operator watch {number}\n"
        f"      consilium operator download-model {number} --output DIR, once it has ended"
    )


def _checked(aggregator: str | None) -> str:
    if aggregator is None:
        raise AggregatorMissing
    if not is_hex_address(aggregator):
        raise typer.BadParameter("no account's address: 0x and 40 hexadecimal digits", param_hint="--aggregator")
    if is_checksum_formatted_address(aggregator) and not is_checksum_address(aggregator):
        raise typer.BadParameter("mistyped: its capitals are not its checksum (EIP-55)", param_hint="--aggregator")
    return str(to_checksum_address(aggregator))


def _show_account(ledger: Ledger, params: TaskParams, found: Estimate) -> None:
    connection = ledger.connection
    typer.echo(
        f"\naccount {ledger.address}\n"
        f"holds   {tokens(ledger.token.balance(ledger.address))} tokens, {ether(connection.ether())} ether\n"
        f"pays    {tokens(params.pool)} tokens into the pool, and about"
        f" {ether(found.operator.total * connection.fees.present())} ether of gas"
    )
    free = ledger.staking.stake_of(params.aggregator, Role.AGGREGATOR).free
    if free < params.aggregator_bond:
        typer.secho(
            f"warning (aggregator): {params.aggregator} has {tokens(free)} tokens of free stake, and cannot join before"
            f" it has the {tokens(params.aggregator_bond)} of its bond",
            fg=typer.colors.YELLOW,
        )


def _same_again(ledger: Ledger, params: TaskParams, said: Said) -> bool:
    """Whether somebody has said yes to a second task of this very file. Raises AlreadyProposed."""
    known = ledger.record.proposals(ledger.address, params.spec_hash)
    still = [number for number in known if ledger.tasks.state(number).phase is not Phase.ENDED]
    if not still:
        if known:
            typer.echo(f"        once more: task {', '.join(map(str, known))} was by this very file, and is over")
        return False
    if said.again:
        return said.yes
    asked = f"\nTask {', '.join(map(str, still))} is by this very file, and not over. Pay for another one?"
    if said.yes or not sys.stdin.isatty() or not typer.confirm(asked):
        raise AlreadyProposed(still)
    return True


def _require_funds(ledger: Ledger, amount: int, gas: int) -> None:
    """Raises Unfunded."""
    missing = max(amount - ledger.token.balance(ledger.address), 0)
    missing_wei = max(gas * ledger.connection.fees.highest() - ledger.connection.ether(), 0)
    if missing or missing_wei:
        raise Unfunded(ledger.address, missing, missing_wei)


def fund(number: int, whole_tokens: int, rpc: str, address_book: Path, payer: Payer, agreed: bool) -> None:
    """Raises Refused (TaskUnknown, WrongPhase, NotOperator), BondOutweighed, Unfunded, ProposalNotConfirmed: nothing is
    sent then.
    """
    deployment, amount = Deployment.read(address_book), whole_tokens * TOKEN
    ledger = Ledger(Connection(rpc, payer.account(deployment.chain_id)), deployment)
    params = ledger.tasks.params(number)
    try:
        ledger.operator.try_fund(number, amount)
    except Refused as error:
        if error.name != "ParamsInvalid":
            raise
        raise BondOutweighed(number, (room_in_pool(params) or 0) // TOKEN) from error
    _show_funding(ledger, number, params, amount)
    _require_funds(ledger, amount, FUND_GAS_LIMIT)
    if not agreed and not (
        sys.stdin.isatty() and typer.confirm(f"\nAdd {tokens(amount)} tokens to the pool of task {number}?")
    ):
        raise ProposalNotConfirmed
    ledger.operator.fund(number, amount)
    typer.echo(f"the pool of task {number} has {tokens(params.pool + amount)} tokens")


def _show_funding(ledger: Ledger, number: int, params: TaskParams, amount: int) -> None:
    account, pool, room = ledger.address, params.pool, room_in_pool(params)
    before, after = round_pay(params, pool), round_pay(params, pool + amount)
    most = "any number of tokens" if room is None else f"at most {room // TOKEN:,} whole tokens"
    typer.echo(
        f"task {number}: a pool of {tokens(pool)} tokens becomes one of {tokens(pool + amount)}\n"
        f"  a round pays at most: hospitals {tokens(before.hospitals)}, then {tokens(after.hospitals)};"
        f" voters {tokens(before.voters)}, then {tokens(after.voters)};"
        f" aggregator {tokens(before.aggregator)}, then {tokens(after.aggregator)}\n"
        f"  the aggregator's bond of {tokens(params.aggregator_bond)} tokens allows {most} to be added\n"
        f"account {account}\n"
        f"holds   {tokens(ledger.token.balance(account))} tokens, {ether(ledger.connection.ether())} ether"
    )


def stop(number: int, rpc: str, address_book: Path, payer: Payer, agreed: bool) -> None:
    """Raises Refused (NotOperator, AlreadyStopped, TaskUnknown), ProposalNotConfirmed."""
    deployment = Deployment.read(address_book)
    ledger = Ledger(Connection(rpc, payer.account(deployment.chain_id)), deployment)
    state = ledger.tasks.state(number)
    if state.phase is Phase.JOINING:
        words = "It ends at once"
    else:
        until = last_round(replace(state, stopping=True), ledger.tasks.params(number).rounds)
        words = f"It is in round {state.round}: rounds up to {until} are played and paid"
    question = f"Stop task {number}? {words}, bonds come free, and what is left of the pool comes back."
    if not agreed and not (sys.stdin.isatty() and typer.confirm(question)):
        raise ProposalNotConfirmed
    ledger.operator.stop(number)
    if ledger.tasks.state(number).phase is Phase.ENDED:
        ledger.operator.claim_refund()
        typer.echo(f"task {number} has ended, and what was left of its pool is in the operator's account")
    else:
        typer.echo(f"task {number} ends with round {until}; `consilium operator refund` then brings back what is left")


def refund(rpc: str, address_book: Path, payer: Payer) -> None:
    """What ended tasks owe the account: the rest of their pools."""
    deployment = Deployment.read(address_book)
    ledger = Ledger(Connection(rpc, payer.account(deployment.chain_id)), deployment)
    owed = ledger.tasks.refundable(ledger.address)
    ledger.operator.claim_refund()
    typer.echo(f"{tokens(owed)} tokens came back to {ledger.address}")
