"""Receipts of predictions: what a buyer finds of a server that cheats, with the task's model and no connection."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.ledger.channels import SaleMessages, SaleReceipt
from consilium_client.models.weights import Tensors
from consilium_operators.market.desk import answer_of
from consilium_operators.market.errors import SaleError
from consilium_operators.market.receipts import Bought, Finding, check_receipt, read_receipt
from consilium_operators.model_folder import SavedModel, read_model
from consilium_operators.prediction import Predictor
from eth_account import Account
from eth_account.signers.local import LocalAccount
from hypothesis import given, settings
from hypothesis import strategies as st
from model_driver import TABLE, written
from raised_faults import raises_fault

MESSAGES = SaleMessages(31337, "0x" + "11" * 20, "0x" + "22" * 20)
SERVER: LocalAccount = Account.from_key(b"\1" * 32)
ROWS = json.dumps({"rows": [{"age": age, "sex": age % 3} for age in range(20, 60)]}).encode()
OTHERS = json.dumps({"rows": [{"age": age, "sex": age % 3} for age in range(21, 61)]}).encode()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    return read_model(written(tmp_path_factory.mktemp("model"), TABLE, scale=1.0))


@pytest.fixture(scope="module")
def predictor(saved: SavedModel) -> Predictor:
    return Predictor(saved)


def signed(saved: SavedModel, request: bytes, response: bytes) -> Bought:
    """As the server signs it, whatever the response is."""
    return signed_by(saved.index.sha256, request, response)


def signed_by(model: str, request: bytes, response: bytes) -> Bought:
    """The same for a model's or an ensemble's digest."""
    receipt = SaleReceipt(
        1, SERVER.address, Account.from_key(b"\2" * 32).address, 7, b"\3" * 32, bytes.fromhex(model),
        hashlib.sha256(request).digest(), hashlib.sha256(response).digest(),
    )  # fmt: skip
    return Bought(receipt, bytes(SERVER.sign_message(MESSAGES.receipt(receipt)).signature), request, response)


def failed(findings: list[Finding]) -> set[str]:
    return {one.name for one in findings if one.holds is False}


def altered(saved: SavedModel, tensors: Tensors) -> Predictor:
    return Predictor(replace(saved, tensors=tensors))


def test_an_honest_answer_holds(saved: SavedModel, predictor: Predictor) -> None:
    findings = check_receipt(signed(saved, ROWS, answer_of(predictor, ROWS)), MESSAGES, predictor)
    assert [one.holds for one in findings] == [True] * 6
    alone = check_receipt(signed(saved, ROWS, answer_of(predictor, ROWS)), MESSAGES)
    assert [one.holds for one in alone] == [True] * 3 + [None] * 3


def test_another_model_is_found(saved: SavedModel, predictor: Predictor) -> None:
    other = altered(saved, {name: one * np.float32(1.001) for name, one in saved.tensors.items()})
    bought = signed(saved, ROWS, answer_of(other, ROWS))
    assert "fingerprint" in failed(check_receipt(bought, MESSAGES, predictor))


def test_lower_precision_is_found(saved: SavedModel, predictor: Predictor) -> None:
    """Weights rounded to bfloat16: the predictions alone may pass, and the fingerprint does not."""

    def rounded(values: Any) -> Any:
        return ((values.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)

    coarse = altered(saved, {name: rounded(one) for name, one in saved.tensors.items()})
    bought = signed(saved, ROWS, answer_of(coarse, ROWS))
    assert "fingerprint" in failed(check_receipt(bought, MESSAGES, predictor))


def test_a_cached_answer_is_found(saved: SavedModel, predictor: Predictor) -> None:
    """The answer to other rows, signed for these."""
    bought = signed(saved, ROWS, answer_of(predictor, OTHERS))
    assert failed(check_receipt(bought, MESSAGES, predictor)) == {"predictions", "fingerprint"}


def test_a_true_fingerprint_with_false_predictions_is_found(saved: SavedModel, predictor: Predictor) -> None:
    content = json.loads(answer_of(predictor, ROWS))
    content["predictions"] = json.loads(answer_of(predictor, OTHERS))["predictions"]
    bought = signed(saved, ROWS, json.dumps(content).encode())
    assert failed(check_receipt(bought, MESSAGES, predictor)) == {"predictions"}


def test_a_class_that_its_probabilities_contradict_is_found(saved: SavedModel, predictor: Predictor) -> None:
    content = json.loads(answer_of(predictor, ROWS))
    first = content["predictions"][0]
    first["class"] = next(name for name in first["probabilities"] if name != first["class"])
    bought = signed(saved, ROWS, json.dumps(content).encode())
    assert "predictions" in failed(check_receipt(bought, MESSAGES, predictor))


@pytest.mark.parametrize(
    "response",
    [
        b"", b"[]", b"{", b'{"predictions": 1}', b'{"predictions": []}', b'{"predictions": [{}]}',
        b'{"predictions": [{"probabilities": {"no": 1e999}}]}', b'{"predictions": null, "fingerprint": "!"}', b"\xff",
    ],
)  # fmt: skip
def test_malformed_answers_fail_by_name(saved: SavedModel, predictor: Predictor, response: bytes) -> None:
    findings = check_receipt(signed(saved, ROWS, response), MESSAGES, predictor)
    assert failed(findings) == {"predictions", "fingerprint"}


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300))
def test_any_fingerprint_is_judged_and_none_crashes(saved: SavedModel, predictor: Predictor, text: str) -> None:
    content = json.loads(answer_of(predictor, ROWS)) | {"fingerprint": text}
    findings = check_receipt(signed(saved, ROWS, json.dumps(content).encode()), MESSAGES, predictor)
    assert "fingerprint" in failed(findings)


def test_every_field_of_a_receipt_is_signed(saved: SavedModel, predictor: Predictor) -> None:
    bought = signed(saved, ROWS, answer_of(predictor, ROWS))
    other = Account.from_key(b"\4" * 32).address
    changes: list[dict[str, Any]] = [
        {"task": 2}, {"server": other}, {"buyer": other}, {"amount": 8}, {"payment": b"\5" * 32}, {"model": b"\5" * 32},
        {"request": b"\5" * 32}, {"response": b"\5" * 32},
    ]  # fmt: skip
    for change in changes:
        tampered = replace(bought, receipt=replace(bought.receipt, **change))
        assert "signature" in failed(check_receipt(tampered, MESSAGES, predictor)), change
    for messages in (SaleMessages(1, "0x" + "11" * 20, "0x"), SaleMessages(31337, "0x" + "33" * 20, "0x")):
        assert "signature" in failed(check_receipt(bought, messages, predictor))


def test_a_file_keeps_a_receipt(saved: SavedModel, predictor: Predictor, tmp_path: Path) -> None:
    bought = signed(saved, ROWS, answer_of(predictor, ROWS))
    bought.write(tmp_path / "receipt.json")
    assert read_receipt(tmp_path / "receipt.json") == bought
    good = json.loads((tmp_path / "receipt.json").read_text())
    for name in ("receipt", "request", "response"):
        (tmp_path / "bad.json").write_text(json.dumps({key: value for key, value in good.items() if key != name}))
        with raises_fault(SaleError, "ReceiptMalformed"):
            read_receipt(tmp_path / "bad.json")
    for name, value in {
        "signature": "0x00",
        "amount": "-1",
        "taskId": "0",
        "buyer": "0x00",
        "model": "00" * 32,
    }.items():
        (tmp_path / "bad.json").write_text(json.dumps({**good, "receipt": {**good["receipt"], name: value}}))
        with raises_fault(SaleError, "ReceiptMalformed"):
            read_receipt(tmp_path / "bad.json")
    with raises_fault(SaleError, "ReceiptMalformed"):
        read_receipt(tmp_path / "absent.json")


def test_a_fingerprint_is_short(predictor: Predictor) -> None:
    shown = json.loads(answer_of(predictor, ROWS))["fingerprint"]
    assert len(base64.b64decode(shown)) == 32 * 8
