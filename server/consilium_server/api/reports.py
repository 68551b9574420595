"""The report at a task's end, which `consilium operator evaluate --into-card` adds to the server's model of the task.

Clients need not trust it: a node's figures carry the node's signature. The server shows none whose signature fails, or
whose signer is not in the task by its index.
"""

from __future__ import annotations

import hashlib

from consilium_chain.errors import SiteReportInvalid, SpecInvalid
from consilium_chain.evaluations.report import MOST_BYTES, EvaluationReport
from consilium_chain.evaluations.site_report import Subject
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.logs import emit
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Response
from pydantic import ValidationError

from consilium_server.api import schemas
from consilium_server.api.models import ModelIndex, find_model
from consilium_server.api.reading import At
from consilium_server.api.routing import READ, FromReader, Shared
from consilium_server.api.schemas import TaskNumber
from consilium_server.api.task_reads import participants

REPORT = "report.json"

reports = APIRouter(prefix="/v1", tags=["tasks"])
ROUTERS = (reports,)


@reports.get(
    "/tasks/{task}/report", response_model=schemas.Reports, operation_id="getReport",
    summary="What the task's model is worth, if this server has an evaluation of it: none or one", responses=READ,
)  # fmt: skip
async def get_report(reader: FromReader, service: Shared, task: TaskNumber) -> Response:
    found = find_model(service, task)
    raw = b""
    if found is not None and (path := found[0] / REPORT).is_file():
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)

    def read(at: At) -> schemas.Reports:
        report = None if found is None or not raw else _checked(raw, found[1], at)
        return schemas.Reports(items=[] if report is None else [report])

    return await reader.answer(
        read, depends_on=lambda head: f"{found and found[1].sha256} {hashlib.sha256(raw).hexdigest()}"
    )


def _checked(raw: bytes, index: ModelIndex, at: At) -> EvaluationReport | None:
    """The report of this model, all of whose signatures hold; None for another file."""
    try:
        if len(raw) > MOST_BYTES:
            raise SiteReportInvalid(f"the file has more than {MOST_BYTES:,} bytes")
        report = EvaluationReport.model_validate_json(raw)
        if (report.task, report.round, report.sha256) != (index.task, index.round, index.sha256):
            raise SiteReportInvalid("the file is of another model")
        _require_signed(report, index, at)
    except (ValidationError, SpecInvalid, ZkError) as error:
        emit("report-refused", task=index.task, why=type(error).__name__)
    except SiteReportInvalid as error:
        emit("report-refused", task=index.task, why=error.why)
    else:
        return report
    return None


def _require_signed(report: EvaluationReport, index: ModelIndex, at: At) -> None:
    """Raises SiteReportInvalid, SpecInvalid."""
    subject = Subject(
        chain_id=index.chain_id, contract=index.contract, task=index.task, spec_hash=index.spec_hash, round=index.round,
        sha256=index.sha256,
    )  # fmt: skip
    spec, joined = parse_task_spec(index.task_file.encode()), participants(at, index.task)
    members: dict[str, list[str]] = {
        schemas.name(role): [one.account for one, _ in joined if one.role == role]
        for role in (Role.HOSPITAL, Role.VOTER)
    }
    seen = set[tuple[str, str]]()
    for entry in report.nodes:
        if (entry.role, entry.node.lower()) in seen:
            raise SiteReportInvalid(f"it lists {entry.node} twice")
        seen.add((entry.role, entry.node.lower()))
        if entry.node.lower() not in {one.lower() for one in members[entry.role]}:
            raise SiteReportInvalid(f"{entry.node} is no {entry.role} of the task")
        if entry.report is None:
            continue
        if (entry.report.role, entry.report.node.lower()) != (entry.role, entry.node.lower()):
            raise SiteReportInvalid(f"the report of {entry.node} is another node's")
        entry.report.require_signed()
        entry.report.require_of(subject, members[entry.role], spec.data)
