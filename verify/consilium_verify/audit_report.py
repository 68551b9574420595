"""A signed report of the dashboard's audit (`dashboard/src/verify/report.ts`): its content, signature and chain.

The signature shows who answers for the report. It does not show that the checks were made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.judging_spec import MAX_COHORTS
from consilium_chain.tasks.limits import MAX_BLOBS
from consilium_chain.wallet_signatures import contract_accepts, signer_of
from consilium_core.strict_json import parse_json
from consilium_core.visible_text import shown
from eth_account.messages import encode_defunct
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from consilium_verify.errors import AuditReportError
from consilium_verify.report import Result

MOST_BYTES = 64 << 20  # 10,000 rounds with their blobs' hashes take less
MOST_ROUNDS = 10_001
MOST_WORDS = 100_000  # characters of a check's detail

Verdict = Literal["holds", "fails", "could not check"]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Address = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Hash = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=500)]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class AuditedCheck(_Part):
    name: Literal["decoys", "sums", "blobs"]
    result: Literal["holds", "FAILS", "not checked"]
    detail: Annotated[str, Field(max_length=MOST_WORDS)]


class AuditedSubject(_Part):
    task: Count
    round: Count
    rounds: Count
    outcome: Text
    chain_id: Count
    contract: Address
    node: Text
    survivors: Count


class AuditedInputs(_Part):
    block: Count
    record_sha256: Digest
    blobs: Annotated[list[Hash], Field(max_length=MAX_COHORTS * MAX_BLOBS)]


class AuditedRound(_Part):
    subject: AuditedSubject
    verdict: Verdict
    checks: Annotated[list[AuditedCheck], Field(max_length=3)]
    derived: Annotated[list[Any], Field(max_length=0)]
    holds: bool
    inputs: AuditedInputs | None
    ended_at: Time

    @model_validator(mode="after")
    def _verdict_is_of_its_checks(self) -> AuditedRound:
        results = {one.result for one in self.checks}
        own: Verdict = "could not check"
        if Result.FAILS in results:
            own = "fails"
        elif results == {Result.HOLDS}:
            own = "holds"
        if (self.verdict, self.holds) != (own, own != "fails"):
            raise ValueError(f"its verdict is '{self.verdict}', and by its checks it is '{own}'")
        return self


class AuditedChain(_Part):
    chain_id: Count
    contract: Address
    node: Text
    block: Count
    hash: Hash


class AuditReport(_Part):
    """`left`: ended rounds that were not verified."""

    form: Literal["consilium.audit/1"] = Field(alias="schema")
    made_by: Text
    task: Count
    chain: AuditedChain
    started_at: Time
    ended_at: Time
    left: Annotated[list[Count], Field(max_length=MOST_ROUNDS)]
    rounds: Annotated[list[AuditedRound], Field(max_length=MOST_ROUNDS)]
    not_proven: Annotated[list[Text], Field(max_length=64)]

    @model_validator(mode="after")
    def _is_of_one_task(self) -> AuditReport:
        own = (self.task, self.chain.chain_id, self.chain.contract)
        for one in self.rounds:
            if (one.subject.task, one.subject.chain_id, one.subject.contract) != own:
                raise ValueError(f"its round {one.subject.round} is of another task or contract")
        numbers = [one.subject.round for one in self.rounds]
        if len({*numbers, *self.left}) < len(numbers) + len(self.left):
            raise ValueError("a round stands twice in it")
        return self

    @property
    def by_verdict(self) -> dict[str, Sequence[int]]:
        """The numbers of its rounds by their verdict, of failed ones first, and of those that were not verified."""
        verdicts: tuple[Verdict, ...] = ("fails", "could not check", "holds")
        found: dict[str, Sequence[int]] = {
            name: [one.subject.round for one in self.rounds if one.verdict == name] for name in verdicts
        }
        return {**found, "not verified": self.left}


class Signature(_Part):
    """`signature`: of a key, or in a contract wallet's own form."""

    account: Address
    message: Text
    signature: Annotated[str, Field(pattern="^0x([0-9a-f]{2}){1,8192}$")]


class _File(_Part):
    report: AuditReport
    sha256: Digest
    signature: Signature | None


@dataclass(frozen=True)
class SignedReport:
    """`is_contract`: a contract wallet took the signature as its own, at the latest block. `is_compared`: chain,
    contract and block are those of the chain node.
    """

    report: AuditReport
    sha256: str
    account: str
    is_contract: bool
    is_compared: bool


def verify_report(path: Path, ledger: Ledger | None = None) -> SignedReport:
    """A report that its account signed. `ledger`: also compares its chain with this one, and asks a contract wallet.

    Raises AuditReportError, ChainUnreachable.
    """
    raw = _read(path)
    file, found = _parsed(path, raw)
    digest = hashlib.sha256(canonical(found["report"])).hexdigest()
    if digest != file.sha256:
        raise AuditReportError(
            "ReportChanged", path=path, why=f"its report has SHA-256 {digest}, and the file says {file.sha256}"
        )
    signed = file.signature
    if signed is None:
        raise AuditReportError("ReportUnsigned", path=path)
    if signed.message != message_for(digest):
        raise AuditReportError("ReportChanged", path=path, why=f"the signed text does not name its SHA-256 {digest}")
    if ledger is not None:
        _require_of(path, file.report.chain, ledger)
    raw = bytes.fromhex(signed.signature[2:])
    by_key = (signer_of(encode_defunct(text=signed.message), raw) or "").lower() == signed.account.lower()
    if not by_key:
        _require_contract(path, signed, ledger)
    return SignedReport(file.report, digest, signed.account, not by_key, ledger is not None)


def message_for(digest: str) -> str:
    """The text that a wallet signs."""
    return f"Consilium audit report\nSHA-256: {digest}"


def canonical(value: object) -> bytes:
    """As the dashboard writes it, and `jq -cS`, but for U+007F, which jq escapes. Raises ValueError for text that is
    not Unicode.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise AuditReportError("ReportUnreadable", path=path, why=error.strerror or type(error).__name__) from error
    if len(raw) > MOST_BYTES:
        raise AuditReportError("ReportMalformed", path=path, why=f"it has more than {MOST_BYTES:,} bytes")
    return raw


def _parsed(path: Path, raw: bytes) -> tuple[_File, dict[str, Any]]:
    """The checked file, and the same as plain JSON."""
    try:
        found = parse_json(raw)
        file = _File.model_validate(found)
        canonical(found)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        why = shown(f"{where}: {fault['msg'].removeprefix('Value error, ')}" if where else fault["msg"], 200)
    except ValueError as error:
        why = "it has text that is not Unicode" if isinstance(error, UnicodeError) else str(error)
    else:
        return file, cast("dict[str, Any]", found)
    raise AuditReportError("ReportMalformed", path=path, why=why)


def _require_of(path: Path, chain: AuditedChain, ledger: Ledger) -> None:
    """Raises ReportElsewhere unless the chain has the contract and the block."""
    book = ledger.deployment
    head = ledger.connection.blocks.head(chain.block)
    block = "not known" if head is None else "0x" + head.hash.hex()
    for what, given, own in (
        ("chain id", chain.chain_id, book.chain_id),
        ("contract", chain.contract, book.tasks),
        (f"block {chain.block}", chain.hash, block),
    ):
        if str(given).lower() != str(own).lower():
            raise AuditReportError("ReportElsewhere", path=path, what=what, given=given, own=own)


def _require_contract(path: Path, signed: Signature, ledger: Ledger | None) -> None:
    """Raises ReportForged unless the account is a contract that takes the signature."""
    hint = " with its key. If the account is a contract wallet, pass --deployment and --chain-url"
    if ledger is not None:
        raw = bytes.fromhex(signed.signature[2:])
        if contract_accepts(ledger.connection.endpoint, signed.account, encode_defunct(text=signed.message), raw):
            return
        hint = ", neither with a key nor as a contract wallet"
    raise AuditReportError("ReportForged", path=path, account=signed.account, hint=hint)
