"""Ensembles: finished models of several tasks that answer together, weighted by what voters measured of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.account import Account
from consilium.model import predicted
from consilium.sources import open_chain

if TYPE_CHECKING:
    import pandas as pd
    from consilium_chain.ledger.ensembles import Ensemble
    from consilium_operators.ensembles.exporting import ExportedEnsemble
    from consilium_operators.ensembles.folder import SavedEnsemble


class Ensembles(Account):
    """Ensembles, as one account forms them. `ensembles` reads them without an account."""

    def form(self, tasks: Sequence[int]) -> Ensemble:
        """Makes an ensemble of 2 to 16 tasks whose parts are minted. Anybody may.

        Its number stands for a task's in `Seller.serve`, `Buyer`, `offers` and tills. Raises Refused (EnsembleInvalid,
        EnsembleKnown, NotMinted, NoGain).
        """
        from consilium_operators.ensembles.sellable import ensemble_of

        return ensemble_of(self._ledger, self._ledger.ensembles.form(tasks))


def ensembles(
    number: int | None = None, *, rpc: str = LOCAL_RPC, address_book: str | Path = LOCAL_ADDRESS_BOOK
) -> list[Ensemble]:
    """The chain's ensemble of this number, or all. Raises EnsembleError (EnsembleUnknown), ChainUnreachable."""
    from consilium_operators.ensembles.sellable import ensemble_of

    ledger = open_chain(rpc, address_book)
    return ledger.ensembles.all() if number is None else [ensemble_of(ledger, number)]


def export_ensemble(
    number: int,
    models: Sequence[str | Path],
    output: str | Path,
    *,
    onnx: bool = True,
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
) -> ExportedEnsemble:
    """Writes an ensemble into a new folder, for `Seller.serve`, `check_receipt` and `EnsembleModel`.

    `models`: a folder of each member that `download_model` wrote, in any order. `onnx`: also writes all members as one
    `model.onnx`.

    Raises EnsembleError, OperatorError (OutputTaken, ModelFolderInvalid, OnnxNotInstalled, OnnxDiffers),
    ChainUnreachable.
    """
    from consilium_operators.ensembles.exporting import export_ensemble

    folders = [Path(one) for one in models]
    return export_ensemble(open_chain(rpc, address_book), number, folders, Path(output), onnx)


def is_ensemble(folder: str | Path) -> bool:
    """True if `export_ensemble` wrote the folder."""
    from consilium_operators.ensembles.folder import ENSEMBLE

    return (Path(folder) / ENSEMBLE).exists()


@dataclass(frozen=True)
class EnsembleModel:
    """An ensemble in use. `details`: its members' models and weights."""

    details: SavedEnsemble

    @classmethod
    def read(cls, folder: str | Path) -> EnsembleModel:
        """Raises EnsembleError (EnsembleFolderInvalid, MembersDiffer), OperatorError (ModelFolderInvalid)."""
        from consilium_operators.ensembles.folder import read_ensemble

        return cls(read_ensemble(Path(folder)))

    @property
    def name(self) -> str:
        """For people."""
        return self.details.name

    @property
    def verified(self) -> bool:
        """False if a check of a member failed."""
        return self.details.verified

    @property
    def sha256(self) -> str:
        """The digest in receipts, of number, chain and members."""
        return self.details.index.sha256

    def predict(
        self,
        rows: str | Path,
        *,
        mapping: str | Path | None = None,
        id_column: str | None = None,
        clamp: bool = False,
        output: str | Path | None = None,
    ) -> pd.DataFrame:
        """As `Model.predict`. `mapping`: instead of the first member's.

        Raises DataError (RangeError), OperatorError (OutputTaken), ModelError (ModelNotInstalled).
        """
        from consilium_operators.ensembles.predictor import EnsemblePredictor

        return predicted(EnsemblePredictor(self.details, clamp), rows, mapping, id_column, output)
