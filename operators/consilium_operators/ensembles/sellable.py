"""The checks of an ensemble against the chain, before it is written or sold."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.ledger.ensembles import Ensemble
from consilium_chain.ledger.ledger import Ledger

from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.folder import SavedEnsemble
from consilium_operators.market.errors import SaleError
from consilium_operators.model_folder import ModelFile


def ensemble_of(ledger: Ledger, number: int) -> Ensemble:
    """Raises EnsembleError (EnsembleUnknown), ChainUnreachable."""
    found = ledger.ensembles.of(number)
    if found is None:
        raise EnsembleError("EnsembleUnknown", number=number)
    return found


def require_member(ledger: Ledger, ensemble: Ensemble, index: ModelFile, path: Path) -> None:
    """A model's file is of a member on this chain, and verified. Raises EnsembleError (MemberForeign,
    MemberNotVerified).
    """
    deployment = ledger.deployment
    if index.task not in ensemble.tasks or (index.chain_id, index.contract) != (deployment.chain_id, deployment.tasks):
        raise EnsembleError(
            "MemberForeign", path=path, task=index.task, chain=index.chain_id, contract=index.contract,
            number=ensemble.number, tasks=", ".join(map(str, ensemble.tasks)), wanted=deployment.chain_id,
            tasks_at=deployment.tasks,
        )  # fmt: skip
    if not index.verified:
        raise EnsembleError("MemberNotVerified", path=path, task=index.task)


def require_ensemble_sellable(ledger: Ledger, saved: SavedEnsemble, number: int, path: Path) -> None:
    """The chain sold each member's parts, or it would not have the ensemble. Raises SaleError (ModelOfAnotherTask),
    EnsembleError (EnsembleUnknown, EnsembleDiffers, MemberForeign, MemberNotVerified).
    """
    index, deployment = saved.index, ledger.deployment
    if (index.number, index.chain_id, index.contract) != (number, deployment.chain_id, deployment.model_shares):
        raise SaleError("ModelOfAnotherTask", path=path, found=index.number, chain=index.chain_id, task=number)
    ensemble = ensemble_of(ledger, number)
    if index.ensemble != ensemble:
        raise EnsembleError("EnsembleDiffers", path=path, found=_in_words(index.ensemble), wanted=_in_words(ensemble))
    for member, model in zip(index.members, saved.models, strict=True):
        require_member(ledger, ensemble, model.index, path / member.folder)


def _in_words(ensemble: Ensemble) -> str:
    return "gains " + ", ".join(f"{one.gain} of task {one.task}" for one in ensemble.members)
