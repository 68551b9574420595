"""A node's own evaluation of a finished model, and the report of it that its owner may share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_client.evaluation.handing_in import evaluate_node, note_leaving, signed
from consilium_client.evaluation.own import OwnEvaluation
from consilium_client.evaluation.sharing import require_allowed
from consilium_client.home import HospitalHome, VoterHome
from consilium_core.private_files import write_private_file

from consilium.node import Node

if TYPE_CHECKING:
    import pandas as pd
    from consilium_chain.evaluations.site_report import SiteReport
    from consilium_client.config import DataSettings


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
    home = node._home
    approved = home.approval(number) if number in home.approved_tasks() else None
    own = {} if approved is None else approved.model_dump(include={"data", "mapping"}, exclude_none=True)
    return _evaluate(node, home.settings.model_copy(update=own), number, output, alone, seed)


def evaluate_voter(node: Node[VoterHome], number: int, output: Path | None, seed: int) -> NodeEvaluation:
    """As `Voter.evaluate`."""
    settings = node._home.node_settings(number, node._ledger.folder_name(number))
    return _evaluate(node, settings, number, output, False, seed)


def _evaluate(
    node: Node[HospitalHome] | Node[VoterHome], settings: DataSettings, number: int, output: Path | None, alone: bool,
    seed: int,
) -> NodeEvaluation:  # fmt: skip
    """Writes the report into `output`, if it is given; a hospital's audit log has it before."""
    task = node.task(number)
    if output is not None:
        require_allowed(node._home.policy(), task.spec)
    own = evaluate_node(settings, node._ledger, node._store, task, alone, seed)
    if output is None:
        return NodeEvaluation(own)
    report = signed(settings, own, node._ledger.folder_name(number))
    note_leaving(settings, report, str(output.absolute()))
    write_private_file(output, report.written)
    return NodeEvaluation(own, report)
