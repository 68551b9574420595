"""The report at a task's end: the one that `consilium operator evaluate --into-card` adds to the server's model, and
those that the task's nodes hand in.

Clients need not trust it: a node's figures carry the node's signature. The server shows none whose signature fails, or
whose signer is not in the task by its index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from anyio import to_thread
from consilium_chain.errors import SiteReportInvalid, SpecInvalid
from consilium_chain.evaluations.measures import RESAMPLES
from consilium_chain.evaluations.report import MOST_BYTES, EvaluationReport, node_entries
from consilium_chain.evaluations.site_report import NodeRole, SiteReport, Subject, parse_site_report
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.locks import in_turn
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from sqlalchemy import func, select

from consilium_server.api import schemas
from consilium_server.api.context import Service
from consilium_server.api.models import ModelIndex, find_model
from consilium_server.api.observed import client_address
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import At, at_head
from consilium_server.api.routing import READ, FromReader, Shared, limited
from consilium_server.api.schemas import TaskNumber
from consilium_server.api.task_reads import participants, spec_of, task_row
from consilium_server.database.tables import OutcomeRow

REPORT = "report.json"

reports = APIRouter(prefix="/v1", tags=["tasks"])
ROUTERS = (reports,)


@reports.get(
    "/tasks/{task}/report", response_model=schemas.Reports, operation_id="getReport",
    summary="What the task's model is worth, if this server has an evaluation of it: none or one", responses=READ,
)  # fmt: skip
async def get_report(reader: FromReader, service: Shared, task: TaskNumber) -> Response:
    index, files = await to_thread.run_sync(_files, service, task)

    def read(at: At) -> schemas.Reports:
        report = None if index is None else _report(files, index, at)
        return schemas.Reports(items=[] if report is None else [report])

    digest = hashlib.sha256(b"\0".join(files)).hexdigest()
    return await reader.answer(read, depends_on=lambda head: f"{index and index.sha256} {digest}")


@reports.post(
    "/tasks/{task}/site-reports", status_code=HTTPStatus.NO_CONTENT, operation_id="handInSiteReport",
    summary="Takes a signed report of the model by a hospital or voter of an ended task",
    responses=documented(404, 413, 422, 429, 503),
)  # fmt: skip
def hand_in(request: Request, service: Shared, task: TaskNumber, body: SiteReport) -> None:
    limited(service.limits.checks, client_address(request.scope, service))
    with at_head(service.engine, service.deployment) as at:
        subject, schema = _expected(at, service, task, body)
        members = _members(at, task)
    try:
        report = parse_site_report(body.written)
        report.require_of(subject, members[report.role], schema)
        _keep(_folder(service, task), report)
    except SiteReportInvalid as error:
        raise Problem("site-report-invalid", str(error)) from error
    except OSError as error:
        raise Problem("not-ready", "this server cannot store the report now: try again later") from error


def _expected(at: At, service: Service, task: int, report: SiteReport) -> tuple[Subject, DataSchema]:
    """The subject of reports of an ended task. Before the server has the final model, it takes the report's word for
    the digest. Raises Problem.
    """
    row, book, model = task_row(at, task), service.deployment, find_model(service, task)
    last = at.db.scalar(select(func.max(OutcomeRow.round)).where(OutcomeRow.task == task))
    spec, _ = (None, None) if row.text is None else spec_of(row.text)
    if row.phase != Phase.ENDED or last is None or spec is None:
        raise Problem("not-ready", f"this server's index has no end of task {task}, or no task file: try again later")
    is_final = model is not None and model[1].round == last
    subject = Subject(
        chain_id=book.chain_id, contract=book.tasks, task=task, spec_hash=row.TaskRow.spec_hash.hex(), round=last,
        sha256=model[1].sha256 if model is not None and is_final else report.sha256,
    )  # fmt: skip
    return subject, spec.data


def _keep(folder: Path, report: SiteReport) -> None:
    """Instead of an earlier report by this node of the same model. Raises SiteReportInvalid, OSError."""
    path = folder / f"{report.role}-{report.node.lower()}.json"
    with in_turn(path.with_suffix(".lock")):
        if path.exists() and _is_of_another(path.read_bytes(), report):
            raise SiteReportInvalid("this server has a report by this node of another model of the task")
        write_private_file(path, report.written)


def _is_of_another(kept: bytes, report: SiteReport) -> bool:
    """False for a file that is no report by today's rules: it is never shown, and must not keep a valid one out."""
    try:
        return parse_site_report(kept).subject != report.subject
    except SiteReportInvalid:
        return False


def _folder(service: Service, task: int) -> Path:
    return service.settings.home / "site-reports" / f"task-{task}"


def _files(service: Service, task: int) -> tuple[ModelIndex | None, list[bytes]]:
    """The operator's report, empty if there is none, and those of the nodes: the smallest, as many as a report holds.
    No file without a model.
    """
    found = find_model(service, task)
    if found is None:
        return None, []
    files, path = [b""], found[0] / REPORT
    if path.is_file():
        with path.open("rb") as file:
            files = [file.read(MOST_BYTES + 1)]
    room = MOST_BYTES
    for one in sorted(_folder(service, task).glob("*.json"), key=lambda one: (one.stat().st_size, one.name)):
        if (room := room - one.stat().st_size) >= 0:
            files.append(one.read_bytes())
    return found[1], files


def _report(files: Sequence[bytes], index: ModelIndex, at: At) -> EvaluationReport | None:
    """Of this model, from all files whose signatures hold; None without any."""
    subject = Subject.model_validate(index.model_dump(include=set(Subject.model_fields)))
    members, shared, own = _members(at, index.task), list[SiteReport](), None
    try:
        spec = parse_task_spec(index.task_file.encode())
    except (SpecInvalid, ZkError) as error:
        emit("report-refused", task=index.task, why=type(error).__name__)
        return None
    if files[0]:
        with _refused(index.task):
            own = _own(files[0], subject, members, spec.data)
    for raw in files[1:]:
        with _refused(index.task):
            report = parse_site_report(raw)
            report.require_of(subject, members[report.role], spec.data)
            shared.append(report)
    if not shared:
        return own
    own = own or EvaluationReport(
        **index.model_dump(include={"task", "round", "verified", "sha256"}), name=spec.name,
        metric=spec.judging.metric, seed=0, resamples=RESAMPLES, all_rows=None,
    )  # fmt: skip
    return own.model_copy(update={"nodes": node_entries(members, [*own.shared, *shared])})


@contextmanager
def _refused(task: int) -> Iterator[None]:
    """A file that does not hold is in the log, and nowhere else."""
    try:
        yield
    except ValidationError as error:
        emit("report-refused", task=task, why=type(error).__name__)
    except SiteReportInvalid as error:
        emit("report-refused", task=task, why=error.why)


def _own(raw: bytes, subject: Subject, members: Mapping[NodeRole, list[str]], schema: DataSchema) -> EvaluationReport:
    """The operator's, all of whose signatures hold. Raises ValidationError, SiteReportInvalid."""
    if len(raw) > MOST_BYTES:
        raise SiteReportInvalid(f"the file has more than {MOST_BYTES:,} bytes")
    report = EvaluationReport.model_validate_json(raw)
    if (report.task, report.round, report.sha256) != (subject.task, subject.round, subject.sha256):
        raise SiteReportInvalid("the file is of another model")
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
        entry.report.require_of(subject, members[entry.role], schema)
    return report


def _members(at: At, task: int) -> dict[NodeRole, list[str]]:
    joined = participants(at, task)
    return {
        "hospital": [one.account for one, _ in joined if one.role == Role.HOSPITAL],
        "voter": [one.account for one, _ in joined if one.role == Role.VOTER],
    }
