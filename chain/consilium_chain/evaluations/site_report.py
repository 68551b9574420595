"""A node's signed report of a finished model on its own held-out rows: coarse figures, which its owner lets go.

The account signs (EIP-191) chain, contract, task and model beside the digest of the content, so that no report stands
for another task, model or node. All figures have two decimals and all counts are whole tens: a reader refuses finer
ones, which a changed node could send.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from consilium_core.visible_text import shown
from eth_account import Account
from eth_account.messages import SignableMessage, encode_defunct
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from consilium_chain.errors import SiteReportInvalid
from consilium_chain.evaluations.measures import Evaluated, Measure, Plain
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
from consilium_chain.tasks.questions import Metric

DECIMALS, TENS = 2, 10
LEAST_ROWS = 50  # below, a metric of few rows says the labels of some
MOST_BYTES = 1 << 18
MOST_FIGURE = 1e15  # no figure reaches that: pages write larger numbers in other forms

Address = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")]
NodeRole = Literal["hospital", "voter"]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Subject(Plain):
    """The model in question. `sha256`: of its parameters, without local tensors, their bytes little-endian."""

    chain_id: PositiveInt
    contract: Address
    task: PositiveInt
    spec_hash: Digest
    round: NonNegativeInt
    sha256: Digest


class SiteContent(Subject):
    """`found`: of the model. `start`, `alone`: metrics of the task's starting model, and of one that this hospital's
    training rows gave alone, on the same rows. A file without `alone` is as before that field.
    """

    format: Literal["consilium-site-report-1"] = "consilium-site-report-1"
    role: NodeRole
    node: Address
    found: Evaluated
    start: dict[Metric, Measure]
    alone: dict[Metric, Measure] | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _coarse(self) -> SiteContent:
        if any(value != round(value, DECIMALS) for value in _of_kind(float, self.model_dump())):
            raise ValueError(f"a figure has more than {DECIMALS} decimals")
        groups = (self.found.all_rows, *self.found.subgroups)
        counts = [count for one in groups for count in (one.rows, *one.classes.values())]
        counts += [one.rows for curve in self.found.calibration for one in curve.bins]
        if any(count % TENS for count in counts):
            raise ValueError("a count of rows is no whole ten")
        if any(one.rows < LEAST_ROWS for one in groups):
            raise ValueError(f"a figure is of fewer than {LEAST_ROWS} rows")
        return self

    @property
    def digest(self) -> str:
        raw = self.model_dump_json(exclude={"signature"}).encode()
        return hashlib.sha256(raw).hexdigest()


class SiteReport(SiteContent):
    signature: Annotated[str, Field(pattern="^0x[0-9a-f]{130}$")]

    @property
    def written(self) -> bytes:
        return self.model_dump_json(indent=1).encode() + b"\n"

    def require_signed(self) -> None:
        """Raises SiteReportInvalid unless `node` signed it."""
        try:
            signer = Account.recover_message(_statement(self), signature=self.signature)
        except (BadSignature, ValueError):
            signer = None
        if signer is None or signer.lower() != self.node.lower():
            raise SiteReportInvalid("its signature is not by the node that it names")

    @property
    def subject(self) -> Subject:
        return Subject.model_validate(self.model_dump(include=set(Subject.model_fields)))

    def require_of(self, subject: Subject, members: Sequence[str], schema: DataSchema) -> None:
        """`members`: the task's nodes of the report's role. Raises SiteReportInvalid."""
        for name, own in subject:
            value = getattr(self, name)
            if value != own and str(value).lower() != str(own).lower():
                raise SiteReportInvalid(f"its {name} is {shown(str(value), 80)}, and here it is {own}")
        if self.node.lower() not in {one.lower() for one in members}:
            raise SiteReportInvalid(f"{self.node} is no {self.role} of task {self.task}")
        if foreign := [name for name in _names(self.found) if name not in _known(schema)]:
            raise SiteReportInvalid(f"the task has no {shown(foreign[0], 40)}")


def sign(content: SiteContent, account: LocalAccount) -> SiteReport:
    """`content.node` is the account's."""
    signature = bytes(account.sign_message(_statement(content)).signature)
    return SiteReport.model_validate(content.model_dump() | {"signature": "0x" + signature.hex()})


def parse_site_report(raw: bytes) -> SiteReport:
    """A report whose node signed it, of figures below `MOST_FIGURE`. Raises SiteReportInvalid."""
    if len(raw) > MOST_BYTES:
        raise SiteReportInvalid(f"it has more than {MOST_BYTES:,} bytes")
    try:
        found = SiteReport.model_validate_json(raw)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise SiteReportInvalid(f"{shown('.'.join(map(str, fault['loc'])), 80)}: {fault['msg']}".lstrip(": ")) from None
    if any(abs(value) >= MOST_FIGURE for value in _of_kind(float, found.model_dump())):
        raise SiteReportInvalid(f"a figure is {MOST_FIGURE:.0e} or larger")
    found.require_signed()
    return found


def _statement(of: SiteContent) -> SignableMessage:
    """In words, for a person who sees it before signing."""
    lines = [
        "Consilium site report, version 1", f"chain {of.chain_id}", f"contract {of.contract}", f"task {of.task}",
        f"model {of.sha256}", f"content {of.digest}",
    ]  # fmt: skip
    return encode_defunct(text="\n".join(lines))


def _of_kind(kind: type, value: Any) -> Iterator[Any]:
    """All values of this type within dictionaries and tuples."""
    if isinstance(value, kind):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from _of_kind(kind, part)


def _names(found: Evaluated) -> Iterator[str]:
    yield from (one.column for one in found.importance)
    yield from (one.class_name for one in found.calibration)
    yield from (one.name or "" for one in found.subgroups)
    for one in (found.all_rows, *found.subgroups):
        yield from (*one.measures, *one.classes)


def _known(schema: DataSchema) -> set[str]:
    """Names that a report may have."""
    known = {*schema.inputs, *schema.asked.columns, *schema.classes, *schema.asked.metrics}
    return known | set(subgroup_names(schema)) if isinstance(schema, TableSchema) else known


def subgroup_names(schema: TableSchema) -> Iterator[str]:
    for feature in schema.features:
        if feature.name in schema.subgroups and feature.kind == "category":
            yield from (f"{feature.name} = {name}" for name in feature.names)
            yield f"{feature.name} missing"
