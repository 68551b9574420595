"""Receipts of an ensemble's predictions: a server that cheats with a member, a weight or a precision is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_operators.ensembles.folder import SavedEnsemble, read_ensemble
from consilium_operators.ensembles.predictor import EnsemblePredictor
from consilium_operators.market.desk import answer_of
from consilium_operators.market.receipts import check_receipt
from consilium_operators.model_server import description
from consilium_operators.prediction import Answering, Predictor
from ensemble_folder_driver import NUMBER, TEXTS, exported
from model_driver import TABLE
from test_receipts import MESSAGES, ROWS, failed, signed_by

WIDE = TABLE.replace("[4]", "[32, 16]")
LOGISTIC = TABLE.replace('"mlp"\nhidden = [4]', '"logistic"')
GAINS = (20_000, 50_000, 30_000)
CHECKS = {"model", "predictions", "fingerprint"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> SavedEnsemble:
    return read_ensemble(exported(tmp_path_factory.mktemp("ensemble"), [TABLE, WIDE, LOGISTIC], GAINS))


@pytest.fixture(scope="module")
def honest(saved: SavedEnsemble) -> EnsemblePredictor:
    return EnsemblePredictor(saved)


def found(honest: EnsemblePredictor, by: Answering, states: str | None = None) -> set[str]:
    """The checks that fail of an answer by another predictor. `states`: the digest in the receipt, by default the true
    one of the ensemble.
    """
    bought = signed_by(states or honest.sha256, ROWS, answer_of(by, ROWS))
    return failed(check_receipt(bought, MESSAGES, honest))


def of_gains(saved: SavedEnsemble, *gains: int) -> EnsemblePredictor:
    members = tuple(one.model_copy(update={"gain": gain}) for one, gain in zip(saved.index.members, gains, strict=True))
    return EnsemblePredictor(replace(saved, index=saved.index.model_copy(update={"members": members})))


def with_tensors(saved: SavedEnsemble, at: int, change: Callable[[Any], Any]) -> EnsemblePredictor:
    models = list(saved.models)
    tensors = {name: change(one) for name, one in models[at].tensors.items()}
    models[at] = replace(models[at], tensors=tensors)
    return EnsemblePredictor(replace(saved, models=tuple(models)))


def test_an_honest_answer_holds_for_any_number_of_rows(honest: EnsemblePredictor) -> None:
    for count in (1, 2, 3, 40):
        rows = json.dumps({"rows": json.loads(ROWS)["rows"][:count]}).encode()
        findings = check_receipt(signed_by(honest.sha256, rows, answer_of(honest, rows)), MESSAGES, honest)
        assert [one.holds for one in findings] == [True] * 6


def test_a_server_that_runs_one_member_alone_is_found(saved: SavedEnsemble, honest: EnsemblePredictor) -> None:
    for model in saved.models:
        alone = Predictor(model)
        assert found(honest, alone) == {"predictions", "fingerprint"}
        assert found(honest, alone, alone.sha256) == CHECKS


def test_texts_are_answered_and_checked_without_a_graph(tmp_path: Path) -> None:
    saved = read_ensemble(exported(tmp_path, TEXTS, GAINS[:2]))
    honest, rows = EnsemblePredictor(saved), json.dumps({"rows": [{"text": "rain until noon"}, {"text": "Dear John"}]})
    for by, wrong in ((honest, set()), (Predictor(saved.models[0]), {"predictions", "fingerprint"})):
        bought = signed_by(honest.sha256, rows.encode(), answer_of(by, rows.encode()))
        assert failed(check_receipt(bought, MESSAGES, honest)) == wrong


def test_another_weight_is_found(saved: SavedEnsemble, honest: EnsemblePredictor) -> None:
    other = of_gains(saved, 21_000, 50_000, 30_000)
    assert other.sha256 != honest.sha256
    assert found(honest, other) == {"predictions"}
    assert found(honest, other, other.sha256) == {"model", "predictions"}
    least = of_gains(saved, 20_001, 50_000, 30_000)  # too little for the predictions to say
    assert found(honest, least, least.sha256) == {"model"}


def test_another_member_is_found(saved: SavedEnsemble, honest: EnsemblePredictor, tmp_path: Path) -> None:
    other = EnsemblePredictor(read_ensemble(exported(tmp_path, [TABLE, TABLE, LOGISTIC], GAINS)))
    assert found(honest, other) == {"predictions", "fingerprint"}
    assert found(honest, other, other.sha256) == CHECKS
    turned = EnsemblePredictor(replace(saved, models=saved.models[::-1]))
    assert found(honest, turned) == {"predictions", "fingerprint"}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_lower_precision_of_any_one_member_is_found(saved: SavedEnsemble, honest: EnsemblePredictor, at: int) -> None:
    """Also of the one whose activations are the smallest, and which has a fifth of the weight."""

    def rounded(values: Any) -> Any:
        return ((values.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)

    assert "fingerprint" in found(honest, with_tensors(saved, at, rounded))


def test_an_ensemble_of_another_number_is_found(saved: SavedEnsemble, honest: EnsemblePredictor) -> None:
    """As the same members on another chain."""
    for changes in ({"number": NUMBER + 1}, {"chain_id": 2}):
        other = EnsemblePredictor(replace(saved, index=saved.index.model_copy(update=changes)))
        assert found(honest, other, other.sha256) == {"model"}


def test_a_description_has_all_that_a_buyer_reads(honest: EnsemblePredictor) -> None:
    said = json.loads(json.dumps(description(honest)))
    assert (said["task"], said["sha256"], said["columns"]) == (NUMBER, honest.sha256, ["age", "sex"])
    assert said["classes"] == ["no", "maybe", "yes"]
    assert said["predict"]["most_rows"] == honest.most_rows
    assert said["card"].count("# a card") == 3
