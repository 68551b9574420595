"""Receipts of predictions, checked without the server: its signature, the hashes, and the model run again.

The file is JSON: {"receipt": {…}, "request": the body's text, "response": the body's text}.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from consilium_chain.ledger.channels import SaleMessages, SaleReceipt
from consilium_chain.wallet_signatures import signer_of
from consilium_client.errors import FingerprintError
from consilium_client.models.metrics import predicted
from consilium_client.voter.fingerprints import TOLERANCE, worst_deviation
from consilium_core.strict_json import parse_json
from numpy.typing import NDArray

from consilium_operators.market.errors import SaleError
from consilium_operators.market.wire import parse_receipt, shown_receipt
from consilium_operators.prediction import Answered, Answering, examples_of, rows_of

MOST_BYTES: Final = 1 << 26
OF_THE_MODEL: Final = ("predictions", "fingerprint")
MOST_DIFFERENCE: Final = 1e-4  # of a prediction between two machines, as a part of the largest one of its column, or 1


@dataclass(frozen=True)
class Bought:
    """An answer with its receipt. `request`, `response`: the bytes of the two bodies. `signature`: the server's."""

    receipt: SaleReceipt
    signature: bytes
    request: bytes
    response: bytes

    @property
    def predictions(self) -> list[dict[str, Any]]:
        """As the server named them. Raises SaleError (ReceiptMalformed)."""
        found = _content(self.response)["predictions"]
        if not isinstance(found, list):
            raise SaleError("ReceiptMalformed", path="the answer", why="its predictions are not a list")
        return found

    def write(self, path: Path) -> None:
        content = {
            "receipt": shown_receipt(self.receipt, self.signature),
            "request": self.request.decode(),
            "response": self.response.decode(),
        }
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")


@dataclass(frozen=True)
class Finding:
    """A check of a receipt. `holds`: None if it was not made. `detail`: the values that it compared."""

    name: str
    holds: bool | None
    detail: str


def read_receipt(path: Path) -> Bought:
    """Raises SaleError (ReceiptMalformed)."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        content = parse_json(path.read_bytes())
        if not isinstance(content, dict) or content.keys() != {"receipt", "request", "response"}:
            raise ValueError('it is not {"receipt": …, "request": …, "response": …}')
        request, response = content["request"], content["response"]
        if not isinstance(request, str) or not isinstance(response, str):
            raise ValueError("the request and the response are not texts")
        receipt, signature = parse_receipt(content["receipt"])
    except (OSError, ValueError) as error:
        raise SaleError("ReceiptMalformed", path=path, why=error) from None
    return Bought(receipt, signature, request.encode(), response.encode())


def check_receipt(bought: Bought, messages: SaleMessages, predictor: Answering | None = None) -> list[Finding]:
    """`predictor`: of the task's model or the ensemble, to run it again. Without it the last three checks are not
    made.
    """
    receipt = bought.receipt
    signer = signer_of(messages.receipt(receipt), bought.signature)
    findings = [
        Finding("signature", signer == receipt.server, f"signed by {signer}, the server is {receipt.server}"),
        _hash("request", receipt.request, bought.request),
        _hash("response", receipt.response, bought.response),
    ]
    if predictor is None:
        return findings + [
            Finding(name, None, "no model was given") for name in ("model", "predictions", "fingerprint")
        ]
    own = predictor.sha256
    findings.append(Finding("model", receipt.model.hex() == own, f"{receipt.model.hex()}, and the task's is {own}"))
    return findings + _run_again(bought, predictor)


def _hash(name: str, stated: bytes, body: bytes) -> Finding:
    found = hashlib.sha256(body).digest()
    return Finding(name, found == stated, f"SHA-256 {found.hex()}, the receipt has {stated.hex()}")


def _run_again(bought: Bought, predictor: Answering) -> list[Finding]:
    """The model on the request's rows, against the answer."""
    try:
        content = _content(bought.response)
        clamp = content.get("clamp") is True
        schema = predictor.schema
        rows = rows_of(bought.request, schema, predictor.most_rows)
        found = predictor.answered(examples_of(rows, schema, clamp))
        stated = _stated(content["predictions"], predictor, found.predictions.shape)
        shown = base64.b64decode(str(content.get("fingerprint", "")), validate=True)
    except (SaleError, ValueError, binascii.Error) as error:
        return [Finding(name, False, f"the answer cannot be read: {error}") for name in OF_THE_MODEL]
    sizes = np.maximum(np.abs(found.predictions).max(axis=0), 1.0)
    difference = float((np.abs(stated - found.predictions) / sizes).max())
    return [
        Finding("predictions", difference <= MOST_DIFFERENCE, f"they differ by {difference:.1e} at most"),
        _fingerprint(shown, found),
    ]


def _fingerprint(shown: bytes, found: Answered) -> Finding:
    try:
        distance = worst_deviation(shown, found.activations)
    except FingerprintError as error:
        return Finding("fingerprint", False, str(error))
    return Finding(
        "fingerprint", distance <= TOLERANCE, f"{distance:.1e} of the largest activation, {TOLERANCE:.1e} allowed"
    )


def _content(response: bytes) -> dict[str, Any]:
    try:
        content = parse_json(response)
    except ValueError as error:
        raise SaleError("ReceiptMalformed", path="the answer", why=error) from None
    if not isinstance(content, dict) or "predictions" not in content:
        raise SaleError("ReceiptMalformed", path="the answer", why="it has no predictions")
    return content


def _stated(predictions: object, predictor: Answering, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """float64, as the model gives them. Raises ValueError."""
    key = "probabilities" if predictor.schema.classes else "answers"
    names = predictor.schema.classes or predictor.answers
    if not isinstance(predictions, list) or len(predictions) != shape[0]:
        raise ValueError("it has another number of predictions than rows")
    try:
        stated = np.array([[float(one[key][name]) for name in names] for one in predictions], np.float64)
    except (KeyError, TypeError, ValueError):
        raise ValueError("a prediction lacks a class or an answer") from None
    if key == "probabilities" and any(
        one.get("class") != names[int(called)] for one, called in zip(predictions, predicted(stated), strict=True)
    ):
        raise ValueError("a class is not the one with the largest probability")
    if stated.shape != shape or not np.isfinite(stated).all():
        raise ValueError("a prediction is not a number")
    return stated
