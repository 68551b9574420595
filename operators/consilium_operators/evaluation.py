"""An operator's evaluation of a finished model on labelled rows, and each of their sites apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from consilium_chain.evaluations.measures import RESAMPLES
from consilium_chain.evaluations.report import EvaluationReport
from consilium_client.data.examples import Labels
from consilium_client.data.table.reader import Table
from consilium_client.evaluation.measuring import MOST_SITES, Again, Rows
from consilium_client.models import Evaluation

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import SavedModel


def evaluate(
    saved: SavedModel,
    labels: Labels,
    found: Evaluation,
    sites: Sequence[str] | None,
    seed: int,
    resamples: int = RESAMPLES,
    table: tuple[Table, Again] | None = None,
) -> EvaluationReport:
    """`labels`: (n, …). `found`: of the same n rows. `sites`: each row's. `table`: as `Rows.evaluated` has it.

    Raises TooManySites, TooFewRows.
    """
    names = sorted(set(sites or ()))
    if len(names) > MOST_SITES:
        raise OperatorError("TooManySites", sites=len(names), at_most=MOST_SITES)
    of_site = np.array(sites if sites is not None else [], dtype=object)
    rows = Rows(saved.spec.data, labels, found, seed, resamples)
    whole = rows.evaluated(table)
    groups = tuple(rows.group(at, name, of_site == name) for at, name in enumerate(names, 1))
    return without_rows(saved, seed, resamples).model_copy(update={**dict(whole), "sites": groups})


def without_rows(saved: SavedModel, seed: int = 0, resamples: int = RESAMPLES) -> EvaluationReport:
    """The report of an operator without labelled rows."""
    index = saved.index
    return EvaluationReport(
        task=index.task, name=index.name, round=index.round, verified=index.verified, sha256=index.sha256,
        metric=saved.spec.judging.metric, seed=seed, resamples=resamples, all_rows=None,
    )  # fmt: skip
