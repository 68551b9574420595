"""Pays the gas of batches that a task's hospitals sign: an HTTPS service with its own account, which has only ether.

Its cost is bounded. An account outside the task must join it with the same batch, which locks a bond until the task's
end and takes one of its seats. So a sponsor pays at most its budget for each hospital that the task admits.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.calls import NamedCall
from consilium_chain.rpc.local_node import require_free_port
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.sponsoring.batches import BATCHES_PATH, MAX_CALLS, MAX_DATA, Carried, RefusedBatch, SignedBatch
from consilium_chain.sponsoring.carrier import Carrier
from consilium_core.errors import CoreError
from consilium_core.logs import emit
from consilium_core.tracing import span
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from consilium_server.certificates import ensure_certificates
from consilium_server.config import SponsorSettings
from consilium_server.errors import RequestRefused

LARGEST_BODY = 2 * MAX_CALLS * MAX_DATA + 4096  # bytes: hexadecimal data, and the rest of the JSON
MOST_AT_ONCE = 64  # connections
JOIN = ("tasks", "joinAsHospital")
# By contract and function: the arguments that must equal a value of this sponsor's terms or of the batch.
PAID: dict[tuple[str, str], dict[str, str]] = {
    ("token", "approve"): {"spender": "staking"},
    ("staking", "register"): {"role": "role"},
    ("staking", "delegate"): {"role": "role", "node": "account"},
    ("staking", "claim"): {"role": "role", "node": "account"},
    ("staking", "startUnbonding"): {"role": "role", "node": "account"},
    ("staking", "withdraw"): {},
    ("staking", "setWithdrawalAddress"): {"role": "role", "node": "account"},
    JOIN: {"taskId": "task"},
    ("tasks", "resume"): {"taskId": "task"},
    ("tasks", "commitUpdate"): {"taskId": "task"},
    ("tasks", "submitEvidence"): {"taskId": "task"},
    ("tasks", "tick"): {"taskId": "task"},
    ("tasks", "releaseBond"): {"taskId": "task", "account": "account"},
    ("tasks", "claim"): {},
}


@dataclass(frozen=True)
class Terms:
    """Terms of payment. `staking`: that contract's address; `budget`: gas for each hospital of the task."""

    task: int
    staking: str
    budget: int

    def check_calls(self, account: str, calls: Sequence[NamedCall | None], is_hospital: bool) -> None:
        """Raises RequestRefused (NotSponsored). None stands for an unknown call."""
        own = {"task": self.task, "staking": self.staking, "account": account, "role": Role.HOSPITAL}
        for call in calls:
            wanted = None if call is None else PAID.get((call.contract, call.name))
            if call is None or wanted is None:
                shown = "an unknown function" if call is None else f"{call.contract}.{call.name}"
                raise _unpaid(f"this sponsor does not pay for {shown}")
            for argument, name in wanted.items():
                if call.arguments[argument] != own[name]:
                    raise _unpaid(f"{argument} of {call.name} must be {own[name]}, not {call.arguments[argument]}")
        if not is_hospital and JOIN not in [(call.contract, call.name) for call in calls if call]:
            raise _unpaid(f"{account} is not a hospital of task {self.task}, and this batch does not join it")

    def check_gas(self, spent: int, gas: int) -> None:
        """Raises RequestRefused (NotSponsored)."""
        if spent + gas > self.budget:
            left = max(self.budget - spent, 0)
            raise _unpaid(f"this batch needs {gas:,} gas; {left:,} of {self.budget:,} for each hospital are left")


class Sponsor:
    """Checks the terms of each batch, simulates it, sends it, and answers once it is on chain."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger, self._terms = ledger, terms
        self._spent: Counter[str] = Counter()  # gas, by account, since the start
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def carry_out(self, batch: SignedBatch) -> Receipt:
        """Sends a batch. Raises RequestRefused (NotSponsored), Refused, and the chain room's other errors."""
        with span("carry out", task=self._terms.task), self._alone(batch.account):
            connection = self._ledger.connection
            carrier = Carrier(connection)
            if not carrier.would_point_to(batch, self._ledger.deployment.sponsored_account):
                raise _unpaid(
                    f"{batch.account} does not point to this deployment's SponsoredAccount, also not after this batch"
                )
            is_hospital = batch.account in [h.node for h in self._ledger.tasks.hospitals(self._terms.task)]
            self._terms.check_calls(batch.account, self._ledger.contracts.named(batch.calls), is_hospital)
            self._terms.check_gas(self._spent[batch.account], carrier.gas_of(batch))
            receipt = connection.transactions.receipt(carrier.carry_out(batch))
            self._spent[batch.account] += receipt.gas_used
            return receipt

    @contextmanager
    def _alone(self, account: str) -> Iterator[None]:
        """Serialises an account's batches: the sponsor would pay in vain for the second of two with one nonce."""
        with self._lock:
            if account in self._busy:
                raise _unpaid(f"another batch of {account} is in progress: try again")
            self._busy.add(account)
        try:
            yield
        finally:
            with self._lock:
                self._busy.remove(account)


def service(sponsor: Sponsor) -> Starlette:
    """POST a SignedBatch, and get 200 Carried, 409 RefusedBatch, or text: 400, 403, 413, 503."""

    async def batches(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                return PlainTextResponse(f"a batch may have at most {LARGEST_BODY} bytes: send fewer calls", 413)
        try:
            batch = SignedBatch.model_validate_json(body)
        except ValidationError as error:
            fault = error.errors()[0]
            return PlainTextResponse(
                f"this is not a valid batch: {'.'.join(map(str, fault['loc']))}: {fault['msg']}", 400
            )
        return await run_in_threadpool(_answer, sponsor, batch)

    return Starlette(routes=[Route(BATCHES_PATH, batches, methods=["POST"])])


def _answer(sponsor: Sponsor, batch: SignedBatch) -> Response:
    try:
        receipt = sponsor.carry_out(batch)
    except RequestRefused as error:
        return PlainTextResponse(str(error), 403)
    except Refused as error:
        emit("not-carried-out", account=batch.account, error=error.name)
        return _json(RefusedBatch(data=error.data), 409)
    except CoreError as error:
        emit("not-carried-out", account=batch.account, error=type(error).__name__)
        return PlainTextResponse(
            f"this sponsor cannot send the batch now ({type(error).__name__}): try again later", 503
        )
    emit("carried-out", account=batch.account, calls=len(batch.calls), gas=receipt.gas_used)
    return _json(Carried(transaction=bytes.fromhex(receipt.transaction[2:])), 200)


def _json(answer: BaseModel, status: int) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")


def run(settings: SponsorSettings) -> None:
    """Serves until a signal to stop, also after the task's end, because hospitals claim vested rewards later.

    Raises LocalNodeError if the port is in use, Refused if the task does not exist.
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


def _unpaid(why: str) -> RequestRefused:
    return RequestRefused("NotSponsored", why=why)
