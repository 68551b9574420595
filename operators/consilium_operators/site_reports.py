"""Reads the signed reports of a task's nodes, and holds each against the model and the chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from consilium_chain.errors import DeploymentInvalid, SiteReportInvalid
from consilium_chain.evaluations.report import NodeEntry
from consilium_chain.evaluations.site_report import MOST_BYTES, NodeRole, SiteReport, Subject, parse_site_report
from consilium_chain.ledger.ledger import Ledger

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import SavedModel


def node_entries(ledger: Ledger, saved: SavedModel, paths: Sequence[Path]) -> tuple[NodeEntry, ...]:
    """Every hospital and voter of the task, with its report if one of the files has it.

    Raises OperatorError (SiteReportRefused), DeploymentInvalid for the address book of another contract.
    """
    index, book = saved.index, ledger.deployment
    if (index.chain_id, index.contract) != (book.chain_id, book.tasks):
        raise DeploymentInvalid(
            f"the model is of contract {index.contract} on chain {index.chain_id}, but the address book is for"
            f" {book.tasks} on chain {book.chain_id}: pass the matching address book"
        )
    tasks = ledger.tasks
    hospitals, voters = tasks.hospitals(index.task), tasks.voters(index.task)
    members: dict[NodeRole, list[str]] = {
        "hospital": [one.node for one in hospitals],
        "voter": [one.node for one in voters],
    }
    found: dict[tuple[str, str], SiteReport] = {}
    for path in paths:
        report = _checked(path, saved, members)
        if found.setdefault((report.role, report.node.lower()), report) is not report:
            raise OperatorError("SiteReportRefused", path=path, why=f"another file has a report of {report.node}, too")
    return tuple(
        NodeEntry(node=node, role=role, report=found.get((role, node.lower())))
        for role, nodes in members.items()
        for node in nodes
    )


def _checked(path: Path, saved: SavedModel, members: dict[NodeRole, list[str]]) -> SiteReport:
    index = saved.index
    subject = Subject(
        chain_id=index.chain_id, contract=index.contract, task=index.task, spec_hash=index.spec_hash, round=index.round,
        sha256=index.sha256,
    )  # fmt: skip
    try:
        with path.open("rb") as file:
            report = parse_site_report(file.read(MOST_BYTES + 1))
        report.require_of(subject, members[report.role], saved.spec.data)
    except SiteReportInvalid as error:
        raise OperatorError("SiteReportRefused", path=path, why=error.why) from error
    except OSError as error:
        why = f"it cannot be read: {error.strerror}"
        raise OperatorError("SiteReportRefused", path=path, why=why) from error
    return report
