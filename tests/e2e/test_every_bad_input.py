"""Every kind of bad input by the command line that its user types: message, error and exit code, as the guide has them.

docs/errors.md is what is expected here: … stands for any text, and a way out *in italics* is the guide's alone.
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
from consilium_chain.errors import NotPossible
from consilium_lab.errors import LabError
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
    operator_errors.OperatorError, operator_errors.RowsInvalid, LabError, NotPossible, AuditReportError,
)  # fmt: skip
ELSEWHERE = {
    "this installation or chain does not allow it": {
        "ArtifactTooLong", "BlobsUnavailable", "CellProverEnded", "ChainNotLocal", "ContractsNotBuilt",
        "OnnxNotInstalled",
    },
    "a language model, tried by tests/operators/test_language_models.py": {"ForetellsTokens"},
    "a function of the server's, tried by tests/client/test_query_servers.py": {"QueryFailed"},
    "a segmentation, tried by tests/operators/test_segmentation_models.py": {"MarksPixels"},
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
        "DemoFailed", "SumMismatched", "StarterLost", "NetworkNotUp", "MoneyLost", "OnnxDiffers",
    },
}  # fmt: skip
SERVED = "Requests to a served model"  # with HTTP's status in place of an exit code


@dataclass(frozen=True)
class Row:
    """A line of one of the guide's tables."""

    said: str
    way_out: str
    error: str
    code: int

    @property
    def pattern(self) -> str:
        own = self.way_out.startswith("*")
        return r"\W*".join(_pattern(part) for part in (self.said, "" if own else self.way_out))


def _pattern(text: str) -> str:
    return ".*".join(map(re.escape, text.split("…")))


def _rows() -> dict[tuple[str, str], Row]:
    rows = {}
    for section in GUIDE.read_text().split("\n## ")[1:]:
        area, _, body = section.partition("\n")
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if len(cells) == 5 and cells[4].isdigit():
                did, said, way_out, error, code = cells
                assert (area, did) not in rows, f"{area}: {did} stands twice in the guide"
                rows[area, did] = Row(said, way_out, error.strip("`"), int(code))
    return rows


ROWS = _rows()


def test_guide_and_cases_are_the_same_and_every_row_has_a_way_out() -> None:
    assert [where for where in ROWS if where[0] != SERVED] == list(CASES)
    assert [did for area, did in ROWS if area == SERVED] == [sent.did for sent in REQUESTS]
    assert len(CASES) == sum(map(len, AREAS.values()))
    assert [row for row in ROWS.values() if not row.way_out.strip("*")] == []


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
    assert re.search(row.pattern, said), said
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
    assert re.search(row.pattern, problem["detail"]), problem
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
