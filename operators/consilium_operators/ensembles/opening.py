"""A folder of either kind, as something that answers rows."""

from __future__ import annotations

from pathlib import Path

from consilium_operators.ensembles.folder import ENSEMBLE, read_ensemble
from consilium_operators.ensembles.predictor import EnsemblePredictor
from consilium_operators.model_folder import read_model
from consilium_operators.prediction import Predictor


def opened(folder: Path, clamp: bool = False) -> Predictor | EnsemblePredictor:
    """The predictor of a model's folder or of an ensemble's.

    Raises OperatorError (ModelFolderInvalid, LocalTensorsMissing), EnsembleError (EnsembleFolderInvalid,
    MembersDiffer), ModelNotInstalled.
    """
    if (folder / ENSEMBLE).exists():
        return EnsemblePredictor(read_ensemble(folder), clamp)
    return Predictor(read_model(folder), clamp)
