"""A node's own evaluation of a finished model, and the report of it that its owner may share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_chain.keystore import open_keystore
from consilium_client.data.kinds import read_examples, read_held_out
from consilium_client.errors import DataError
from consilium_client.evaluation.own import OwnEvaluation, evaluate_own, require_never_trained
from consilium_client.evaluation.sharing import require_allowed, share
from consilium_client.home import HospitalHome, VoterHome
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.hospital.training import LOCAL_TENSORS, keep_out
from consilium_core.private_files import write_private_file
from consilium_core.visible_text import shown

from consilium.node import Node

if TYPE_CHECKING:
    import pandas as pd
    from consilium_chain.evaluations.site_report import NodeRole, SiteReport

SHARED = "shared"  # folder of a home
LONGEST_NAME = 500  # of a file, in the audit log


@dataclass(frozen=True)
class NodeEvaluation:
    """`details`: everything that was measured, for this node's owner. `report`: the shared one, if asked for."""

    details: OwnEvaluation
    report: SiteReport | None = None

    @property
    def metrics(self) -> pd.DataFrame:
        """By model (`model`, `start` and perhaps `alone`) and metric: `value`, and its interval `low` to `high`."""
        import pandas as pd

        own = self.details
        models = {"model": own.found.all_rows.measures, "start": own.start, "alone": own.alone or {}}
        found = {(name, metric): one.model_dump() for name, of in models.items() for metric, one in of.items()}
        index = pd.MultiIndex.from_tuples(list(found), names=["model", "metric"])
        return pd.DataFrame(list(found.values()), index, dtype=float)


def evaluate_hospital(
    node: Node[HospitalHome], number: int, output: Path | None, alone: bool, seed: int
) -> NodeEvaluation:
    """As `Client.evaluate`."""
    home, task, place = node._home, node.task(number), node._ledger.folder_name(number)
    if output is not None:
        require_allowed(home.policy(), task.spec)
    settings = require_never_trained(home.settings, number, place)
    chosen = home.approval(number) if number in home.approved_tasks() else None
    data, mapping = (chosen and chosen.data) or settings.data, (chosen and chosen.mapping) or settings.mapping
    kept, held_out = keep_out(settings, read_examples(data, task.spec.data, mapping))
    if held_out is None:
        raise DataError("TooFewRows", rows=0, at_least=1)
    local = home.folder / "memory" / place / LOCAL_TENSORS
    own = evaluate_own(
        node._ledger, node._store, task, held_out, trained_on=kept if alone else None,
        local=local if task.spec.training.local and local.exists() else None, seed=seed,
    )  # fmt: skip
    return _shared(node, own, "hospital", output)


def evaluate_voter(node: Node[VoterHome], number: int, output: Path | None, seed: int) -> NodeEvaluation:
    """As `Voter.evaluate`."""
    home, task, place = node._home, node.task(number), node._ledger.folder_name(number)
    if output is not None:
        require_allowed(home.policy(), task.spec)
    settings = home.node_settings(number, place)
    examples = read_held_out(settings.data, task.spec, settings.mapping)
    return _shared(node, evaluate_own(node._ledger, node._store, task, examples, seed=seed), "voter", output)


def _shared(
    node: Node[HospitalHome] | Node[VoterHome], own: OwnEvaluation, role: NodeRole,
    output: Path | None,
) -> NodeEvaluation:  # fmt: skip
    """Writes the report into `output`, if it is given; a hospital's audit log has it before."""
    if output is None:
        return NodeEvaluation(own)
    settings, home, subject = node.settings, node._home, own.subject
    kept = node.folder / SHARED / f"{node._ledger.folder_name(subject.task)}.json"
    report = share(own, role, home.policy(), open_keystore(settings.keystore, settings.password_file), kept)
    if role == "hospital":
        AuditLog(settings.home / AUDIT_FILE).leaving(
            "evaluation", shown(str(output.absolute()), LONGEST_NAME), report.written, contract=subject.contract,
            task=subject.task,
        )  # fmt: skip
    write_private_file(output, report.written)
    return NodeEvaluation(own, report)
