"""The desk over HTTP. Requests are never logged, and no error repeats their values.

| request | answer |
|---|---|
| `GET /` | the model, and `sale`: price, addresses, and the least deposit |
| `GET /channels/ADDRESS` | the buyer's last voucher: `sold`, `expiresAt`, `signature` |
| `POST /deposits` | sends a deposit that the buyer signed: `transaction` |
| `POST /predict` | without a payment status 402 and the ways to pay; with one the predictions and a receipt |

Other pages' scripts may call it: no cookie and no session exists that they could abuse. Errors are problem+json (RFC
9457) with their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from consilium_chain.addresses import checked_address
from consilium_chain.errors import ChainUnreachable, NotPossible
from consilium_client.errors import ClientError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consilium_operators.errors import RowsInvalid
from consilium_operators.market import wire
from consilium_operators.market.desk import SalesDesk
from consilium_operators.market.errors import PaymentRefused
from consilium_operators.model_server import PREDICT, body_of, description, http_problem, problem, problem_of

MOST_DEPOSIT_BODY: Final = 4_096


def service(desk: SalesDesk) -> Starlette:
    async def describe(_: Request) -> Response:
        return JSONResponse(description(desk.predictor) | {"sale": _sale(desk)})

    async def channel(request: Request) -> Response:
        try:
            buyer = checked_address(request.path_params["address"])
        except NotPossible as error:
            return problem_of(404, error.name, str(error), {})
        return await run_in_threadpool(_guarded, lambda: _channel(desk, buyer))

    async def deposit(request: Request) -> Response:
        try:
            body = await body_of(request, MOST_DEPOSIT_BODY)
        except RowsInvalid as error:
            return problem(error)
        return await run_in_threadpool(_guarded, lambda: _deposit(desk, body))

    async def predict(request: Request) -> Response:
        try:
            body = await body_of(request)
        except RowsInvalid as error:
            return problem(error)
        paid, url = request.headers.get(wire.SIGNATURE), str(request.url)
        return await run_in_threadpool(_guarded, lambda: _predict(desk, body, paid, url))

    return Starlette(
        routes=[
            Route("/", describe, methods=["GET"]),
            Route("/channels/{address}", channel, methods=["GET"]),
            Route("/deposits", deposit, methods=["POST"]),
            Route(PREDICT, predict, methods=["POST"]),
        ],
        middleware=[
            Middleware(
                CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"],
                allow_headers=["content-type", wire.SIGNATURE],
                expose_headers=[wire.REQUIRED, wire.RESPONSE, wire.RECEIPT],
            )
        ],
        exception_handlers={HTTPException: http_problem},
    )  # fmt: skip


def _guarded(answer: Callable[[], Response]) -> Response:
    try:
        return answer()
    except (RowsInvalid, ClientError) as error:
        return problem(error)
    except PaymentRefused as error:
        return problem_of(402, error.name, str(error), {})
    except ChainUnreachable as error:
        # The buyer sends the same request again: its payment is taken once.
        return problem_of(503, error.name, "the server's chain node does not answer; send the request again", {})


def _predict(desk: SalesDesk, body: bytes, paid: str | None, url: str) -> Response:
    rows = desk.rows_in(body)
    terms = desk.terms(rows)
    try:
        if paid is None:
            raise PaymentRefused("PaymentMissing", price=terms.price)
        payment = wire.parse_payment(paid, terms.chain_id)
        sold = desk.sell(body, payment)
    except PaymentRefused as error:
        required = {
            "x402Version": wire.VERSION, "error": error.name, "resource": {"url": url}, "accepts": terms.accepts,
        }  # fmt: skip
        answer = problem_of(402, error.name, str(error), {"accepts": terms.accepts})
        answer.headers[wire.REQUIRED] = wire.encoded(required)
        return answer
    response = {
        "success": True, "transaction": "", "network": wire.network_of(terms.chain_id),
        "payer": sold.receipt["buyer"], "amount": str(terms.price),
    }  # fmt: skip
    headers = {wire.RECEIPT: wire.encoded(sold.receipt), wire.RESPONSE: wire.encoded(response)}
    return Response(sold.body, media_type="application/json", headers=headers)


def _channel(desk: SalesDesk, buyer: str) -> Response:
    sold, voucher = desk.sold_to(buyer)
    shown: dict[str, Any] = {"sold": str(sold), "expiresAt": None, "signature": None}
    if voucher is not None:
        shown |= {"expiresAt": str(voucher.expires_at), "signature": "0x" + voucher.signature.hex()}
    return JSONResponse(shown)


def _deposit(desk: SalesDesk, body: bytes) -> Response:
    return JSONResponse({"transaction": desk.deposit(*wire.parse_deposit(body))})


def _sale(desk: SalesDesk) -> dict[str, Any]:
    terms = desk.terms(1)
    return {
        "chainId": terms.chain_id, "token": terms.token, "modelShares": terms.model_shares,
        "taskId": str(terms.task), "server": terms.server, "till": terms.till, "price": str(desk.price),
        "expiresAfter": terms.expires_after, "leastDeposit": str(desk.least_sent),
    }  # fmt: skip
