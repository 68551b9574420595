"""A node's evaluation of a finished model, its signed report, and the report's way to the operator's API.

At a task's end the node does by itself what `evaluate --share` does, under the same policy. Bond and rewards are
collected before, and depend on nothing here.
"""

from __future__ import annotations

import asyncio
import traceback
from http import HTTPStatus
from pathlib import Path

import httpx
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import name_of
from consilium_chain.evaluations.site_report import NodeRole, SiteReport, parse_site_report
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_core.faults import Fault
from consilium_core.logs import emit
from consilium_core.visible_text import shown
from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from consilium_client.config import DataSettings, HospitalAccountSettings
from consilium_client.consent import Policy, TaskPolicy, VoterPolicy, read_policy
from consilium_client.data.kinds import read_examples, read_held_out
from consilium_client.errors import DataError, OwnersRefusal
from consilium_client.evaluation.own import OwnEvaluation, evaluate_own, require_never_trained
from consilium_client.evaluation.sharing import require_allowed, share
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.hospital.training import LOCAL_TENSORS, keep_out
from consilium_client.task import JoinedTask, load_task

SHARED = "shared"  # folder of a home
LONGEST_NAME = 500  # of a receiver, in the audit log
TRIES = 7  # within two minutes: the server's index may lag behind the chain
LONGEST_WAIT = 30.0  # seconds between two tries
TIMEOUT = 30.0  # seconds for an answer's status: a server may drip
NO_ANSWER = 0
MAY_PASS = (NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS)  # and the server's own faults
ALLOW = 'share_evaluation = "unless_private" or "always" in policy.toml (docs/privacy.md)'


def evaluate_node(
    settings: DataSettings, ledger: Ledger, store: ArtifactStore, task: JoinedTask, alone: bool = False, seed: int = 0
) -> OwnEvaluation:
    """On the rows of this node that no round trained on. `alone`: as `evaluate_own` has it, of a hospital.

    Raises ClientError (NothingHeldOut), DataError, and as `evaluate_own` does.
    """
    if not isinstance(settings, HospitalAccountSettings):
        rows = read_held_out(settings.data, task.spec, settings.mapping)
        return evaluate_own(ledger, store, task, rows, seed=seed)
    task_key = ledger.folder_name(task.number)
    settings = require_never_trained(settings, task.number, task_key)
    kept, held_out = keep_out(settings, read_examples(settings.data, task.spec.data, settings.mapping))
    if held_out is None:
        raise DataError("TooFewRows", rows=0, at_least=1)
    local = settings.home / "memory" / task_key / LOCAL_TENSORS
    return evaluate_own(
        ledger, store, task, held_out, trained_on=kept if alone else None,
        local=local if task.spec.training.local and local.exists() else None, seed=seed,
        device=settings.device,
    )  # fmt: skip


def signed(settings: DataSettings, own: OwnEvaluation, task_key: str) -> SiteReport:
    """The report, which the home keeps. Raises as `share` does, and PolicyInvalid, KeystoreError."""
    account = open_keystore(settings.keystore, settings.password_file)
    return share(own, _role(settings), _policy(settings), account, _kept(settings, task_key))


def note_leaving(settings: DataSettings, report: SiteReport, to: str) -> None:
    """A hospital's audit log has it before it leaves. `to`: a file or an address. Raises AuditError."""
    if report.role == "hospital":
        AuditLog(settings.home / AUDIT_FILE).leaving(
            "evaluation", shown(to, LONGEST_NAME), report.written, contract=report.contract, task=report.task
        )


def hand_in(settings: DataSettings, ledger: Ledger, store: ArtifactStore, number: int) -> None:
    """Evaluates an ended task's model, and gives the signed report to the operator's API, if the policy allows it.

    Logs a failure, and raises none: the node ends as it would without.
    """
    try:
        error = _handed_in(settings, ledger, store, number)
    except OwnersRefusal as refusal:
        emit("not-shared", error=name_of(refusal), allow=ALLOW)
        return
    except Exception as fault:  # an unknown one, too
        if not isinstance(fault, Fault | OSError):
            traceback.print_exc()
        error = name_of(fault)
    finally:
        store.forget()
    if error:
        emit("not-handed-in", error=error, by_hand=f"consilium {_role(settings)} evaluate {number} --share FILE")


def _handed_in(settings: DataSettings, ledger: Ledger, store: ArtifactStore, number: int) -> str:
    """Empty, or the reason why the API has no report. Raises OwnersRefusal before anything is computed."""
    policy = _policy(settings)
    if policy.share_evaluation == "never":
        raise OwnersRefusal("SharingNotAllowed", why='`share_evaluation` is "never"')
    task = load_task(ledger, store, number)
    require_allowed(policy, task.spec)
    task_key = ledger.folder_name(number)
    if (kept := _kept(settings, task_key)).exists():  # from before a restart, or by `evaluate --share`
        report = parse_site_report(kept.read_bytes())
    else:
        report = signed(settings, evaluate_node(settings, ledger, store, task), task_key)
    if settings.report_to is None:
        return "node.toml has no report_to"
    url = f"{settings.report_to}/v1/tasks/{number}/site-reports"
    note_leaving(settings, report, url)
    patiently: Retrying = Retrying(
        retry=retry_if_result(lambda status: status in MAY_PASS or status >= HTTPStatus.INTERNAL_SERVER_ERROR),
        stop=stop_after_attempt(TRIES), wait=wait_random_exponential(max=LONGEST_WAIT),
        retry_error_callback=lambda last: last.outcome and last.outcome.result(),
    )  # fmt: skip
    status = patiently(lambda: asyncio.run(_post(url, report.written)))
    if status == HTTPStatus.NO_CONTENT:
        emit("handed-in", to=settings.report_to)
        return ""
    return f"the API answered {status}" if status else "the API does not answer"


async def _post(url: str, content: bytes) -> int:
    """The answer's status; 0 without an answer. Reads nothing else of it."""
    headers = {"Content-Type": "application/json"}
    try:
        async with (
            asyncio.timeout(TIMEOUT), httpx.AsyncClient(timeout=None) as client,
            client.stream("POST", url, content=content, headers=headers) as answer,
        ):  # fmt: skip
            return answer.status_code
    except (TimeoutError, httpx.HTTPError):
        return NO_ANSWER


def _kept(settings: DataSettings, task_key: str) -> Path:
    return settings.home / SHARED / f"{task_key}.json"


def _role(settings: DataSettings) -> NodeRole:
    return "hospital" if isinstance(settings, HospitalAccountSettings) else "voter"


def _policy(settings: DataSettings) -> TaskPolicy:
    """Raises PolicyInvalid."""
    return read_policy(settings.policy, Policy if _role(settings) == "hospital" else VoterPolicy)
