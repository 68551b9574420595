"""Every kind of bad input by the command line that its user types: its message, and the guide's error and exit code.

docs/errors.md has no messages: a message must go on with a way out, or the guide has a next step *in italics*.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import consilium_client.errors as client_errors
import consilium_operators.errors as operator_errors
import pytest
from bad_input_breaks import png
from bad_input_world import NAME, SHADES, TASKS, Case, Stage, World
from bad_inputs import AREAS, REQUESTS, Sent
from chain_driver import LocalChain
from consilium_chain.errors import InviteRefused, NotPossible
from consilium_client.errors import FAILED
from consilium_lab.errors import LabError
from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.market.errors import PaymentRefused, SaleError
from consilium_operators.model_folder import read_model
from consilium_operators.model_server import service
from consilium_operators.prediction import Predictor
from consilium_verify.errors import AuditReportError
from model_driver import written
from starlette.applications import Starlette
from starlette.testclient import TestClient

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
CASES = {(area, case.did): case for area, cases in AREAS.items() for case in cases}
# Errors that a command line brings about; of these, the names without a row.
OF_INPUT = (
    client_errors.OwnersRefusal, client_errors.DataError, client_errors.CellError, client_errors.RangeError,
    client_errors.FolderError, client_errors.ExampleError, client_errors.ConsentError, client_errors.HomeError,
    client_errors.BudgetError, client_errors.TransportKeyError,
    operator_errors.OperatorError, operator_errors.RowsInvalid, LabError, NotPossible, InviteRefused,
    AuditReportError, PaymentRefused, SaleError, EnsembleError,
)  # fmt: skip
ELSEWHERE = {
    "this installation or chain does not allow it": {
        "ArtifactTooLong", "BlobsUnavailable", "CellProverEnded", "ChainNotLocal", "ContractsNotBuilt",
        "OnnxNotInstalled",
    },
    "a language model, tried by tests/operators/test_language_models.py": {"ForetellsTokens"},
    "a function of the server's, tried by tests/client/test_query_servers.py": {"QueryFailed"},
    "rows that 8 bits do worse on, tried by tests/operators/test_onnx_int8.py": {"Int8Worse"},
    "a segmentation, tried by tests/operators/test_segmentation_models.py": {"MarksPixels"},
    "another party is at fault, tried by tests/e2e/test_invited_nodes.py": {
        "InviteContractsWrong", "InviteTooLate", "InviteSuperLinkWrong",
    },
    "a task by digest, tried by tests/e2e/test_invited_nodes.py": {"InviteOneStore"},
    "a contract's, tried by tests/e2e/test_contract_invites.py": {"InviteNeedsOwnNode"},
    "several tasks, tried by tests/e2e/test_invites_to_shards.py": {"InviteNotShards"},
    "an ended task, tried by tests/e2e/test_shares.py": {"NotForSale"},
    "a sale, tried by tests/e2e/test_market.py": {
        "AmountWrong", "AuthorizationExpires", "AuthorizationForged", "AuthorizationUsed", "AuthorizationWrong",
        "BookOfAnother", "ChannelClosing", "DepositSmall", "DepositTooSmall", "ModelNotVerified", "ModelOfAnotherTask",
        "PartsNotMinted", "PaymentForeign", "PaymentMalformed", "PaymentMissing", "ServerRefused", "TransferFailed",
        "TransferSmall",
        "UrlNotEncrypted", "VoucherExpires", "VoucherForged", "VoucherSpent",
    },
    "an ensemble, tried by tests/operators/test_ensemble_folders.py": {
        "EnsembleDiffers", "GraphImpossible", "MemberForeign", "MemberLocal", "MemberMissing", "MemberNotVerified",
        "MemberTwice", "MembersDiffer",
    },
    "a server that lies, tried by tests/e2e/test_hostile_servers.py": {
        "AmountMalformed", "BookLies", "CertificateMissing", "NotBought", "PriceIsZero", "ReceiptWrong",
        "ServerMalformed",
    },
    "a file, tried by tests/operators/test_receipts.py and test_bought_rows.py": {"ReceiptMalformed", "RowsUnreadable"},
    "another party is at fault": {"NotVerified", "SummaryNotVerified", "DataWrong", "DataTooLong"},
    "a file of public data was changed": {"DataUnreadable", "DemoDataMalformed"},
    "memory, tried by tests/client/test_series_read.py": {"SeriesTooLarge"},
    "the task's rows, not the table, are at fault": {"TooFewRows", "TooManyTasks"},
    "numbers of the command line, tried by tests/cli/bad_beginnings.py": {
        "DemoTooManyParties", "DemoTooLarge", "SimulationInvalid", "FolderInUse", "RulesInvalid",
    },
    "tried by tests/client/test_start.py": {"StartNotSimulated", "WeightsTooLong"},
    "an address, tried by tests/cli/test_api_as_commands.py": {"AddressMalformed", "AddressMistyped"},
    "a process ended, or a bug": {
        "DemoFailed", "SumMismatched", "NetworkNotUp", "MoneyLost", "OnnxDiffers",
    },
}  # fmt: skip
# The error, its exit code or HTTP's status, what is wrong, with "; " between several, and the next step.
LINE = re.compile(r"^- `([\w ]+)`(?: (\d+))?: (.+?)(?:\. \*(.+)\*)?$", re.MULTILINE)
WAY_OUT = re.compile(r"\b(run|write|name|pass|needs|gets|rows go) ")
SERVED = "Requests to a served model"  # with HTTP's status in place of an exit code


@dataclass(frozen=True)
class Row:
    """The guide's entry of one input. `own`: its next step, where the message has none."""

    error: str
    code: int
    own: str

    def pattern(self, said: str) -> str:
        """A pattern of the message, then of a way out: a clause of its own, but for messages that are one already."""
        found = ".*".join(map(re.escape, said.split("…")))
        return found if self.own or WAY_OUT.search(said) else rf"{found}.*?[;:.,)][ `]*\w+\W+\w+"


def _rows() -> dict[tuple[str, str], Row]:
    rows = {}
    for section in GUIDE.read_text().split("\n## ")[1:]:
        area, _, body = section.partition("\n")
        for error, code, wrong, own in LINE.findall(body.replace("\n  ", " ")):
            for did in wrong.split("; "):
                assert (area, did) not in rows, f"{area}: {did} stands twice in the guide"
                rows[area, did] = Row(error, int(code or FAILED), own)
    return rows


ROWS = _rows()


def test_guide_and_cases_are_the_same() -> None:
    assert {where for where in ROWS if where[0] != SERVED} == set(CASES)
    assert sorted(did for area, did in ROWS if area == SERVED) == sorted(sent.did for sent in REQUESTS)
    assert len(CASES) == sum(map(len, AREAS.values()))


def test_the_guide_has_every_error_of_input_or_a_reason_why_not() -> None:
    names = {name for kind in OF_INPUT for name in kind.MESSAGES}
    reasons = [name for those in ELSEWHERE.values() for name in those]
    assert len(names) > 90
    assert sorted(names - {row.error for row in ROWS.values()}) == sorted(reasons)


@pytest.fixture(scope="module")
def stage(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(local_chain, tmp_path_factory.mktemp("stage"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("where", CASES, ids=": ".join)
def test_it_is_refused_as_the_guide_says(
    consilium: Callable[..., tuple[int, str]], stage: Stage, tmp_path: Path, where: tuple[str, str]
) -> None:
    case: Case = CASES[where]
    row, world = ROWS[where], World(stage, tmp_path / "h")
    with world.until_over:
        code, said = consilium(*case.break_(world))
    named = re.findall(r"error \((\w+)\): ", said)
    assert (code, named or ["usage"]) == (row.code, [row.error]), said
    assert re.search(row.pattern(case.said), said), said
    assert NAME not in said


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    return service(Predictor(read_model(written(tmp_path_factory.mktemp("served"), TASKS["table"]))))


@pytest.mark.parametrize("sent", REQUESTS, ids=lambda sent: sent.did)
def test_a_served_model_refuses_as_the_guide_says(served: Starlette, sent: Sent) -> None:
    row = ROWS[SERVED, sent.did]
    with TestClient(served, base_url="http://localhost") as client:
        answer = client.post(sent.path, content=sent.body, headers={"Content-Type": sent.media_type})
    problem = answer.json()
    assert (answer.status_code, problem["title"]) == (row.code, row.error), problem
    assert re.search(row.pattern(sent.said), problem["detail"]), problem
    assert NAME not in answer.text


def test_nobody_joined_a_task_by_any_of_it(stage: Stage) -> None:
    assert [stage.rich.tasks.hospitals(number) for number in stage.tasks.values()] == [[] for _ in stage.tasks]


def test_nothing_is_wrong_but_for_what_a_case_breaks(
    consilium: Callable[..., tuple[int, str]], stage: Stage, tmp_path: Path
) -> None:
    world = World(stage, tmp_path / "h")
    world.write("folder/ill/a.txt", f"{NAME} is ill")
    world.write("notes.csv", f"note,found\n{NAME} is ill,ill\n")
    world.write("x-rays/ill/1.png", png(SHADES))
    fits = {"rows.csv": "rows fit", "notes.csv": "texts fit", "folder": "texts fit", "x-rays": "images fit"}
    for kind, data in zip(("table", "text", "text", "images"), fits, strict=True):
        code, said = consilium(*world.check(kind, data))
        assert (code, NAME in said) == (0, False), said
        assert fits[data] in said
    assert consilium(*world.init())[0] == 0
    assert consilium(*world.hospital("status"))[0] == 0
    code, said = consilium(*world.join("images", "--data", world.folder / "x-rays"))
    assert (code, "data fit: 1 rows" in said, "joined as hospital" in said) == (0, True, True), said
