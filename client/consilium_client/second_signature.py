"""A second signature on a task: `[approval]` in policy.toml names accounts, one of which must approve each task.

The statement is EIP-712 typed data, which any wallet signs. It binds chain, contract, task, task file, this hospital's
account, and the policy by the hash of its bytes: so a changed policy needs another signature. A contract signs by its
own rule (EIP-1271).
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from consilium_chain.addresses import ExactAddress
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.typed_data import typed_data
from consilium_chain.wallet_signatures import MOST_SIGNATURE, contract_accepts, signer_of
from consilium_core.strict_json import parse_json
from consilium_core.typed_toml import Section, validation_faults
from consilium_core.visible_text import shown
from eth_account.messages import SignableMessage, encode_typed_data
from eth_utils.address import to_checksum_address
from pydantic import AfterValidator, Field, ValidationError

from consilium_client.consent import Policy
from consilium_client.errors import OwnersRefusal

MOST_BYTES = 1 << 15
DOMAIN = "ConsiliumApproval"
STRUCT = {"hospital": "address", "task": "uint256", "spec": "bytes32", "policy": "bytes32", "date": "string"}


def _date(text: str) -> str:
    datetime.date.fromisoformat(text)
    return text


Hash = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern="^0x([0-9a-f]{2})+$", max_length=2 + 2 * MOST_SIGNATURE)]


class Statement(Section):
    """`spec`: keccak256 of the task file. `policy`: SHA-256 of policy.toml. `date`: of its preparation, UTC."""

    chain_id: Annotated[int, Field(strict=True, ge=1, lt=1 << 53)]
    contract: ExactAddress
    hospital: ExactAddress
    task: Annotated[int, Field(strict=True, ge=1, lt=1 << 53)]
    spec: Hash
    policy: Hash
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_date)]

    @property
    def typed(self) -> dict[str, Any]:
        """As wallets take it (`eth_signTypedData_v4`)."""
        values = self.model_dump(include=set(STRUCT))
        return typed_data(DOMAIN, self.chain_id, self.contract, {"Approval": STRUCT}, values)

    @property
    def message(self) -> SignableMessage:
        return encode_typed_data(full_message=self.typed)


class SignedApproval(Section):
    form: Literal["consilium-approval-1"] = "consilium-approval-1"
    statement: Statement
    signer: ExactAddress
    signature: Signature

    @property
    def written(self) -> bytes:
        return self.model_dump_json(indent=1).encode() + b"\n"


def own_statement(policy: Policy, ledger: Ledger, hospital: str, task: int, spec_hash: bytes, date: str) -> Statement:
    """The statement that this hospital needs, as things are."""
    return Statement(
        chain_id=ledger.deployment.chain_id,
        contract=to_checksum_address(ledger.deployment.tasks),
        hospital=to_checksum_address(hospital),
        task=task,
        spec="0x" + spec_hash.hex(),
        policy="0x" + policy.digest,
        date=date,
    )


def parse_statement(raw: bytes) -> Statement:
    """Typed data in exactly this program's form. Raises OwnersRefusal (SecondSignatureMalformed)."""
    try:
        tree: Any = parse_json(_bounded(raw))
        domain = tree["domain"]
        found = Statement(chain_id=domain["chainId"], contract=domain["verifyingContract"], **tree["message"])
    except ValidationError as error:
        raise malformed(validation_faults(error)) from None
    except (KeyError, TypeError):
        raise malformed("it is not the typed data that `consilium hospital approve` writes") from None
    except ValueError as error:
        raise malformed(str(error)) from None
    if found.typed != tree:
        raise malformed("its types or its domain are not those of an approval")
    return found


def statement_bytes(statement: Statement) -> bytes:
    return json.dumps(statement.typed, indent=1).encode() + b"\n"


def read_bounded(path: Path, most: int = MOST_BYTES) -> bytes:
    """A file of at most `most` bytes. Raises OwnersRefusal (SecondSignatureMalformed)."""
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise malformed(f"{shown(str(path), 200)} cannot be read: {error.strerror}") from None
    if len(raw) > most:
        raise malformed(f"{shown(str(path), 200)} has more than {most:,} bytes")
    return raw


def read_approval(path: Path) -> SignedApproval:
    """Raises OwnersRefusal (SecondSignatureMalformed)."""
    raw = read_bounded(path)
    try:
        parse_json(raw)
        return SignedApproval.model_validate_json(raw)
    except ValidationError as error:
        raise malformed(validation_faults(error)) from None
    except ValueError as error:
        raise malformed(str(error)) from None


def require_approved(approval: SignedApproval, own: Statement, policy: Policy, ledger: Ledger) -> None:
    """`own`: as `own_statement` has it, of any date.

    Raises OwnersRefusal (SecondSignatureOfAnother, -FromFuture, -ByStranger, -Forged), ChainUnreachable.
    """
    given = approval.statement
    for name in Statement.model_fields:
        found, here = getattr(given, name), getattr(own, name)
        if name != "date" and found != here:
            raise OwnersRefusal("SecondSignatureOfAnother", task=own.task, field=name, found=found, here=here)
    tomorrow = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=1)
    if datetime.date.fromisoformat(given.date) > tomorrow:  # its writer's clock may be ahead
        raise OwnersRefusal("SecondSignatureFromFuture", date=given.date)
    if policy.approval is None or approval.signer.lower() not in policy.approval.by:
        raise OwnersRefusal("SecondSignatureByStranger", signer=approval.signer)
    signature = bytes.fromhex(approval.signature[2:])
    by_key = signer_of(given.message, signature) == approval.signer
    if not by_key and not contract_accepts(ledger.connection.endpoint, approval.signer, given.message, signature):
        raise OwnersRefusal("SecondSignatureForged", signer=approval.signer)


def second_signature(
    policy: Policy, ledger: Ledger, hospital: str, task: int, spec_hash: bytes, file: Path
) -> SignedApproval | None:
    """The kept approval of a task, if the policy asks for one and it holds. None if the policy asks for none.

    Raises OwnersRefusal (SecondSignatureMissing, and as `require_approved` does).
    """
    if policy.approval is None:
        return None
    if not file.exists():
        raise OwnersRefusal("SecondSignatureMissing", task=task, by=", ".join(policy.approval.by))
    approval = read_approval(file)
    own = own_statement(policy, ledger, hospital, task, spec_hash, approval.statement.date)
    require_approved(approval, own, policy, ledger)
    return approval


def _bounded(raw: bytes) -> bytes:
    if len(raw) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return raw


def malformed(why: str) -> OwnersRefusal:
    """The refusal of a file that is no request or signature; `why` completes it."""
    return OwnersRefusal("SecondSignatureMalformed", why=why)
