"""A second signature on a hospital's task: prepared in its home, signed elsewhere, and brought back."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.keystore import open_keystore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_client.consent import Policy, read_policy
from consilium_client.errors import OwnersRefusal
from consilium_client.home import approval_file
from consilium_client.second_signature import (
    SignedApproval,
    Statement,
    malformed,
    own_statement,
    parse_statement,
    read_approval,
    read_bounded,
    require_approved,
    statement_bytes,
)
from consilium_core.private_files import write_private_file
from consilium_core.typed_toml import validation_faults
from pydantic import ValidationError

from consilium.client import Client

STATEMENT, POLICY, TASK = "statement.json", "policy.toml", "task.toml"
MOST_BYTES = 1 << 21  # of a file of a request


@dataclass(frozen=True)
class ApprovalRequest:
    """A statement with the policy and the task file that it names, read from a folder."""

    statement: Statement
    policy: str
    spec: TaskSpec

    @classmethod
    def read(cls, folder: str | Path) -> ApprovalRequest:
        """Raises OwnersRefusal (SecondSignatureMalformed) unless both files have the statement's hashes; PolicyInvalid,
        SpecInvalid.
        """
        path = Path(folder)
        statement, policy, task = (read_bounded(path / name, MOST_BYTES) for name in (STATEMENT, POLICY, TASK))
        found = parse_statement(statement)
        hashes = {POLICY: (hashlib.sha256(policy).hexdigest(), found.policy), TASK: (spec_hash(task).hex(), found.spec)}
        for name, (here, named) in hashes.items():
            if "0x" + here != named:
                raise malformed(f"{path / name} is not the file that {STATEMENT} names")
        read_policy(path / POLICY, Policy)
        return cls(found, policy.decode(), parse_task_spec(task))

    def sign(self, keystore: str | Path, password_file: str | Path) -> SignedApproval:
        """By a key file. Raises KeystoreError."""
        account = open_keystore(Path(keystore), Path(password_file))
        return self.signed(account.address, "0x" + bytes(account.sign_message(self.statement.message).signature).hex())

    def signed(self, signer: str, signature: str) -> SignedApproval:
        """With a signature made elsewhere: by a wallet on statement.json, or a contract's (EIP-1271)."""
        try:
            return SignedApproval(statement=self.statement, signer=signer, signature=signature.lower())
        except ValidationError as error:
            raise malformed(validation_faults(error)) from None


def request_approval(client: Client, task: int, folder: str | Path) -> Statement:
    """Writes a new folder for the signer: the statement as EIP-712 typed data, this home's policy, and the task file.

    Raises OwnersRefusal (NotAllowed, SecondSignatureNotNeeded), and as `Client.task` does.
    """
    found, policy = client.task(task), client.policy()
    policy.require(found.spec, client.state(task).operator)
    if policy.approval is None:
        raise OwnersRefusal("SecondSignatureNotNeeded", task=task)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    statement = own_statement(policy, client._ledger, client.account, task, found.params.spec_hash, today)
    path = Path(folder)
    path.mkdir(parents=True)
    (path / STATEMENT).write_bytes(statement_bytes(statement))
    (path / POLICY).write_bytes(client.settings.policy.read_bytes())
    (path / TASK).write_bytes(client._store.get_file(found.params.spec_hash))
    return statement


def take_approval(client: Client, task: int, file: str | Path) -> SignedApproval:
    """Checks a signed file against chain, task, policy and account as they are now, and keeps it in the home.

    Raises OwnersRefusal, and as `Client.task` does.
    """
    approval, policy = read_approval(Path(file)), client.policy()
    params, given = client._ledger.tasks.params(task), approval.statement
    own = own_statement(policy, client._ledger, client.account, task, params.spec_hash, given.date)
    require_approved(approval, own, policy, client._ledger)
    write_private_file(approval_file(client.folder, task), approval.written)
    return approval
