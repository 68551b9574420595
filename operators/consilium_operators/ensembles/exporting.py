"""Writes an ensemble that the chain has as a folder, from its members' folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.ledger.ensembles import Ensemble
from consilium_chain.ledger.ledger import Ledger

from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.folder import EnsembleFile, MemberFile, SavedEnsemble, folder_of, write_ensemble
from consilium_operators.ensembles.onnx_graph import ensemble_onnx
from consilium_operators.ensembles.sellable import ensemble_of, require_member
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import SavedModel, read_model


@dataclass(frozen=True)
class ExportedEnsemble:
    """`ensemble`: as the chain has it. `sha256`: the digest in receipts. `difference`: the largest one of a prediction
    between `model.onnx` and PyTorch on drawn examples; None if it was left out.
    """

    ensemble: Ensemble
    sha256: str
    difference: float | None


def export_ensemble(
    ledger: Ledger, number: int, models: Sequence[Path], output: Path, with_onnx: bool = True
) -> ExportedEnsemble:
    """`models`: one folder of each member, in any order. `output`: a new folder.

    Raises EnsembleError (EnsembleUnknown, MemberForeign, MemberTwice, MemberMissing, MemberNotVerified, MemberLocal,
    MembersDiffer, GraphImpossible), OperatorError (OutputTaken, ModelFolderInvalid, ForetellsTokens, MarksPixels,
    OnnxNotInstalled, OnnxDiffers), ChainUnreachable.
    """
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
    ensemble = ensemble_of(ledger, number)
    folders, saved = dict[int, Path](), dict[int, SavedModel]()
    for path in models:
        found = read_model(path)
        require_member(ledger, ensemble, found.index, path)
        task = found.index.task
        if task in folders:
            raise EnsembleError("MemberTwice", path=path, task=task, first=folders[task])
        folders[task], saved[task] = path, found
    if missing := [task for task in ensemble.tasks if task not in folders]:
        raise EnsembleError("MemberMissing", missing=", ".join(map(str, missing)), number=number)
    index = EnsembleFile(
        number=number, chain_id=ledger.deployment.chain_id, contract=ledger.deployment.model_shares,
        members=tuple(
            MemberFile(task=one.task, gain=one.gain, sha256=saved[one.task].index.sha256, folder=folder_of(one.task))
            for one in ensemble.members
        ),
    )  # fmt: skip
    whole = SavedEnsemble(index, tuple(saved[task] for task in ensemble.tasks))
    whole.require_alike()
    raw, difference = ensemble_onnx(whole) if with_onnx else (None, None)
    write_ensemble(output, index, folders, raw)
    return ExportedEnsemble(ensemble, index.sha256, difference)
