"""Pays for what a task's hospitals sign: an HTTPS service with an account of its own, of ether and without stake."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from consilium_chain.errors import ChainError, Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.local_node import require_free_port
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.sponsoring.batches import BATCHES_PATH, MAX_CALLS, MAX_DATA, Carried, RefusedBatch, SignedBatch
from consilium_chain.sponsoring.carrier import Carrier
from consilium_core.logs import emit
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from consilium_server.certificates import ensure_certificates
from consilium_server.config import SponsorSettings
from consilium_server.errors import NotSponsored
from consilium_server.sponsor.rules import Terms

LARGEST_BODY = 2 * MAX_CALLS * MAX_DATA + 4096  # bytes: hexadecimal, and what is around it
MOST_AT_ONCE = 64  # connections


class Sponsor:
    """Tries each batch, asks its terms, sends it, and answers once it is on chain."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger, self._terms = ledger, terms
        self._spent: Counter[str] = Counter()  # gas, by account, since the start
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def carry_out(self, batch: SignedBatch) -> Receipt:
        """Raises NotSponsored, Refused, and the chain room's other errors."""
        with self._alone(batch.account):
            connection = self._ledger.connection
            carrier = Carrier(connection)
            if not carrier.would_point_to(batch, self._ledger.deployment.sponsored_account):
                raise NotSponsored(
                    f"{batch.account} does not point to this deployment's SponsoredAccount, nor would it"
                )
            is_hospital = batch.account in [h.node for h in self._ledger.tasks.hospitals(self._terms.task)]
            self._terms.check_calls(batch.account, self._ledger.contracts.named(batch.calls), is_hospital)
            self._terms.check_gas(self._spent[batch.account], carrier.gas_of(batch))
            receipt = connection.transactions.receipt(carrier.carry_out(batch))
            self._spent[batch.account] += receipt.gas_used
            return receipt

    @contextmanager
    def _alone(self, account: str) -> Iterator[None]:
        """One batch of an account at a time: of two with one nonce the second would be paid for in vain."""
        with self._lock:
            if account in self._busy:
                raise NotSponsored(f"another batch of {account} is under way; try again")
            self._busy.add(account)
        try:
            yield
        finally:
            with self._lock:
                self._busy.remove(account)


def service(sponsor: Sponsor) -> Starlette:
    """POST a SignedBatch, and get 200 Carried, 409 RefusedBatch, or words: 400, 403, 413, 503."""

    async def batches(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                return PlainTextResponse(f"a batch has at most {LARGEST_BODY} bytes", 413)
        try:
            batch = SignedBatch.model_validate_json(body)
        except ValidationError as error:
            fault = error.errors()[0]
            return PlainTextResponse(f"no batch: {'.'.join(map(str, fault['loc']))}: {fault['msg']}", 400)
        return await run_in_threadpool(_answer, sponsor, batch)

    return Starlette(routes=[Route(BATCHES_PATH, batches, methods=["POST"])])


def _answer(sponsor: Sponsor, batch: SignedBatch) -> Response:
    try:
        receipt = sponsor.carry_out(batch)
    except NotSponsored as error:
        return PlainTextResponse(str(error), 403)
    except Refused as error:
        emit("not-carried-out", account=batch.account, error=error.name)
        return _json(RefusedBatch(data=error.data), 409)
    except ChainError as error:
        emit("not-carried-out", account=batch.account, error=type(error).__name__)
        return PlainTextResponse(f"this sponsor cannot send anything now ({type(error).__name__})", 503)
    emit("carried-out", account=batch.account, calls=len(batch.calls), gas=receipt.gas_used)
    return _json(Carried(transaction=bytes.fromhex(receipt.transaction[2:])), 200)


def _json(answer: BaseModel, status: int) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")


def run(settings: SponsorSettings) -> None:
    """Serves until it is told to stop, also after the task's end: what hospitals earned vests and is claimed later.

    Raises LocalNodeError where something listens on the port, Refused where there is no such task.
    """
    ledger = settings.connect()
    ledger.tasks.params(settings.task)
    require_free_port(settings.port, "the sponsor")
    certificates = ensure_certificates(settings.home / "tls")
    sponsor = Sponsor(ledger, Terms(settings.task, ledger.deployment.staking, settings.gas_per_hospital))
    emit("sponsoring", account=ledger.address, wei=str(ledger.connection.ether()))
    uvicorn.run(
        service(sponsor), host="127.0.0.1", port=settings.port, log_level="warning", access_log=False, ws="none",
        limit_concurrency=MOST_AT_ONCE, ssl_certfile=certificates.certificate, ssl_keyfile=certificates.key,
    )  # fmt: skip
