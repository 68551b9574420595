"""Reads the signed reports of a task's nodes, and holds each against the model and the chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from consilium_chain.errors import DeploymentInvalid, SiteReportInvalid
from consilium_chain.evaluations.report import NodeEntry, node_entries
from consilium_chain.evaluations.site_report import MOST_BYTES, NodeRole, SiteReport, Subject, parse_site_report
from consilium_chain.ledger.ledger import Ledger

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import SavedModel


def entries_of(ledger: Ledger, saved: SavedModel, paths: Sequence[Path]) -> tuple[NodeEntry, ...]:
    """Every hospital and voter of the task, with its report if one of the files has it.

    Raises OperatorError (SiteReportRefused), DeploymentInvalid for the address book of another contract.
    """
    given = [(path, _read(path)) for path in paths]
    index, book = saved.index, ledger.deployment
    if (index.chain_id, index.contract) != (book.chain_id, book.tasks):
        raise DeploymentInvalid(
            f"the model is of contract {index.contract} on chain {index.chain_id}, but the address book is for"
            f" {book.tasks} on chain {book.chain_id}: pass the matching address book"
        )
    tasks, subject = ledger.tasks, Subject.model_validate(index.model_dump(include=set(Subject.model_fields)))
    members: dict[NodeRole, list[str]] = {
        "hospital": [one.node for one in tasks.hospitals(index.task)],
        "voter": [one.node for one in tasks.voters(index.task)],
    }
    seen = set[tuple[str, str]]()
    for path, report in given:
        try:
            report.require_of(subject, members[report.role], saved.spec.data)
        except SiteReportInvalid as error:
            raise OperatorError("SiteReportRefused", path=path, why=error.why) from error
        if (node := (report.role, report.node.lower())) in seen:
            raise OperatorError("SiteReportRefused", path=path, why=f"another file has a report of {report.node}, too")
        seen.add(node)
    return node_entries(members, (report for _, report in given))


def _read(path: Path) -> SiteReport:
    """A report that its node signed. Raises OperatorError (SiteReportRefused)."""
    try:
        with path.open("rb") as file:
            return parse_site_report(file.read(MOST_BYTES + 1))
    except SiteReportInvalid as error:
        raise OperatorError("SiteReportRefused", path=path, why=error.why) from error
    except OSError as error:
        why = f"it cannot be read: {error.strerror}"
        raise OperatorError("SiteReportRefused", path=path, why=why) from error
