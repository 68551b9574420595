"""Checks a hospital's exported audit log, also against the chain: it must have every action of the hospital there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from consilium_chain.errors import DeploymentInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.outgoing import Sent
from consilium_chain.wallet_signatures import signer_of
from consilium_client.errors import AuditError
from consilium_client.hospital.audit_log import (
    Approved,
    Batch,
    Counted,
    Export,
    Identifying,
    Recovered,
    Reply,
    Seal,
    Shared,
    Transaction,
    Trial,
    parse_export,
)
from consilium_client.second_signature import Statement


def read_export(path: Path) -> Export:
    """An export whose signature and hashes hold. Raises AuditError."""
    try:
        return parse_export(path.read_bytes())
    except OSError as error:
        raise AuditError("AuditUnreadable", path=path, why=error.strerror or type(error).__name__) from error


class Message(NamedTuple):
    """A message that left the hospital. `at`: Unix seconds. `message`: such as `reply OK` or `transaction resume`."""

    at: int
    message: str
    to: str
    bytes: int


def messages_of(log: Export) -> list[Message]:
    """Without lines that a crash cut off: their messages were not sent; and without lines of what stayed there."""
    return [
        Message(one.at, f"{one.kind} {_which(one)}", one.to, one.bytes)
        for one in log.entries
        if not isinstance(one, Recovered | Identifying | Counted | Approved)
    ]


class Consent(NamedTuple):
    """A second signature under which the node started. `policy`: its SHA-256. `is_by_key`: the signer's key signed it
    for this hospital; else a contract may have, which only the chain can say.
    """

    task: int
    signer: str
    policy: str
    is_by_key: bool


def consents_of(log: Export) -> list[Consent]:
    """Each once, in the log's order."""
    found = (
        Consent(one.task, one.signer, one.policy, _is_by_key(one, log.seal))
        for one in log.entries
        if one.kind == "approved"
    )
    return list(dict.fromkeys(found))


def _is_by_key(one: Approved, seal: Seal) -> bool:
    try:
        statement = Statement(
            chain_id=seal.chain_id, contract=one.contract, hospital=seal.hospital, task=one.task, spec=one.spec,
            policy=one.policy, date=one.date,
        )  # fmt: skip
        return signer_of(statement.message, bytes.fromhex(one.signature[2:])) == one.signer
    except ValueError:
        return False


def _which(one: Trial | Transaction | Batch | Reply | Shared) -> str:
    if one.kind == "evaluation":
        return f"of task {one.task}"
    return one.code if one.kind == "reply" else one.call


def require_complete(checked: Export, ledger: Ledger) -> int:
    """The number of the hospital's transactions. Raises AuditIncomplete, DeploymentInvalid."""
    book, seal = ledger.deployment, checked.seal
    if (book.chain_id, book.tasks) != (seal.chain_id, seal.contract):
        raise DeploymentInvalid(
            f"the log is for contract {seal.contract} on chain {seal.chain_id}, but the address book is for"
            f" {book.tasks} on chain {book.chain_id}: pass the matching address book"
        )
    missing, own = unrecorded(checked, ledger.logs.naming(seal.hospital), cache(ledger.connection.transactions.sent))
    if missing:
        raise AuditError("AuditIncomplete", count=len(missing), hospital=seal.hospital, missing="; ".join(missing))
    return own


def unrecorded(checked: Export, events: Iterable[Event], sent: Callable[[str], Sent]) -> tuple[list[str], int]:
    """Descriptions of the on-chain actions that the log lacks, and the number of the hospital's transactions.

    The log must have the hash of an own transaction, and the calldata of one that a sponsor carried out. If another
    account committed for the hospital, the log must have the signed update of that round. `events`: those that name the
    hospital. `sent`: gives the transaction of a hash.
    """
    hospital = checked.seal.hospital
    transactions = {entry.transaction for entry in checked.entries if entry.kind == "transaction"}
    batches = {entry.calldata for entry in checked.entries if entry.kind == "batch"}
    signed = {
        (entry.contract, entry.task, entry.round)
        for entry in checked.entries
        if entry.kind == "reply" and entry.code == "SIGNED"
    }
    missing: dict[str, str] = {}
    own = set()
    for event in events:
        transaction = sent(event.transaction)
        if transaction.sender == hospital:
            known = event.transaction in transactions
        elif transaction.to == hospital:
            known = hashlib.sha256(transaction.data).hexdigest() in batches
        elif event.name == "UpdateCommitted":
            known = (event.contract, event.values["taskId"], event.values["round"]) in signed
        else:
            continue  # an action of others: rewards, slashes, delegations
        own.add(event.transaction)
        if not known:
            missing.setdefault(event.transaction, f"{event.name} in block {event.block}, {event.transaction}")
    return list(missing.values()), len(own)
