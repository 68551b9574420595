"""The worth of a finished model, as hospital, voter and operator type it: measured, signed, shared, and in the card."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tomli_w
from chain_driver import LocalChain
from command_line import done, refused
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.evaluations.site_report import SiteReport, parse_site_report, sign
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port
from consilium_client.evaluation import handing_in
from consilium_client.home import VoterHome
from consilium_client.hospital.node import HospitalNode
from consilium_core.logs import log_to
from consilium_operators.model_folder import CARD, REPORT, read_model
from consilium_server.api.app import build, make_service
from consilium_server.api.reading import open_engine
from consilium_server.config import ApiSettings
from consilium_server.index.indexer import Indexer
from eth_account import Account
from hospital_driver import OPEN_POLICY, node_files
from served_app import served
from training_driver import TrainingTask, propose, task_file
from voter_driver import POLICY

Consilium = Callable[..., tuple[int, str]]


def write_rows(path: Path, rows: int, seed: int) -> Path:
    """The old fall ill more often."""
    random = np.random.default_rng(seed)
    ages = random.uniform(0, 120, rows)
    sick = random.random(rows) < 1 / (1 + np.exp((60 - ages) / 8))
    lines = "\n".join(f"{age:.1f},{int(one)}" for age, one in zip(ages, sick, strict=True))
    path.write_text(f"age,sick\n{lines}\n")
    return path


@dataclass
class Ended:
    """A task that real nodes of two hospitals trained; the first kept rows out. The voter has a home, too."""

    task: TrainingTask
    folder: Path
    voter: Path
    consilium: Consilium

    @property
    def number(self) -> str:
        return str(self.task.task)

    def hospital(self, command: str, *arguments: str, index: int = 0) -> tuple[int, str]:
        return self.consilium("hospital", command, *arguments, "--home", str(self.folder / f"h{index}"))

    def operator(self, command: str, *arguments: str) -> tuple[int, str]:
        return self.consilium("operator", command, *arguments, *self.reading)

    @property
    def reading(self) -> list[str]:
        chain = self.task.chain
        return ["--rpc", chain.node.url, "--address-book", str(self.folder / "h0" / "deployment.json")]

    def allow(self, rule: str) -> None:
        own = {**OPEN_POLICY, "share_evaluation": rule}
        (self.folder / "h0" / "policy.toml").write_text(tomli_w.dumps(own))


@pytest.fixture(scope="module")
def played(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingTask, Path]:
    folder = tmp_path_factory.mktemp("worth")
    task = propose(
        local_chain, folder, task_file("epochs = 4", "bits = 8", "accept_floor = -1000.0\nharmful_below = -1000.0")
    )
    for index, held_out in enumerate((0.5, 0.0)):
        write_rows(folder / f"h{index}" / "rows.csv", 400, index)
        task.start(index, held_out=held_out)
        home = {
            "chain_url": local_chain.node.url, "artifacts": str(folder / "artifacts"), "data": "rows.csv",
            "held_out": held_out,
        }  # fmt: skip
        (folder / f"h{index}" / "node.toml").write_text(tomli_w.dumps(home))
    task.join(rows=(200, 400)).first_round()
    for _ in range(2):
        task.form()
        task.play_round()
    assert task.phase is Phase.ENDED
    voter = folder / "voter"
    node_files(local_chain, task.judges[0], voter)
    write_rows(voter / "held-out.csv", 300, 9)
    settings = {"chain_url": local_chain.node.url, "artifacts": str(folder / "artifacts"), "data": "held-out.csv"}
    VoterHome.create(voter, settings, {**POLICY, "share_evaluation": "unless_private"})
    return task, folder


@pytest.fixture
def ended(played: tuple[TrainingTask, Path], consilium: Consilium) -> Ended:
    task, folder = played
    return Ended(task, folder, folder / "voter", consilium)


def test_a_hospital_sees_its_figures_and_shares_none_by_default(ended: Ended, tmp_path: Path) -> None:
    done(
        ended.hospital("evaluate", ended.number, "--alone"),
        "kept out of training", "the model", "the start", "your rows alone", "Loss of accuracy", "Calibration of yes",
        "Nothing left this machine",
    )  # fmt: skip
    (ended.folder / "h0" / "policy.toml").write_text(tomli_w.dumps(OPEN_POLICY))
    refused(
        ended.hospital("evaluate", ended.number, "--share", str(tmp_path / "report.json")), "SharingNotAllowed",
        '`share_evaluation` is "never"', code=3,
    )  # fmt: skip
    assert not (tmp_path / "report.json").exists()
    assert not (ended.folder / "h0" / "shared").exists()


def test_rows_that_were_trained_on_are_no_held_out_rows(ended: Ended) -> None:
    refused(ended.hospital("evaluate", ended.number, index=1), "NothingHeldOut")
    settings = ended.folder / "h1" / "node.toml"
    settings.write_text(settings.read_text().replace("held_out = 0.0", "held_out = 0.4"))
    refused(ended.hospital("evaluate", ended.number, index=1), "NothingHeldOut")


def test_from_signed_reports_to_the_card(ended: Ended, tmp_path: Path) -> None:
    by_hospital, by_voter, model = tmp_path / "hospital.json", tmp_path / "voter.json", tmp_path / "model"
    ended.allow("always")
    done(ended.hospital("evaluate", ended.number, "--share", str(by_hospital)), "signed by", "send it")
    last = json.loads((ended.folder / "h0" / "audit.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["to"], last["bytes"]) == ("evaluation", str(by_hospital), by_hospital.stat().st_size)
    done(ended.hospital("export-audit", "--output", str(tmp_path / "log")))
    done(ended.consilium("verify-audit", str(tmp_path / "log")), f"evaluation of task {ended.number}")
    done(
        ended.consilium("voter", "evaluate", ended.number, "--home", str(ended.voter), "--share", str(by_voter)), "Loss"
    )
    one = parse_site_report(by_voter.read_bytes())
    assert (one.role, one.found.all_rows.rows, one.found.importance[0].column) == ("voter", 300, "age")

    done(
        ended.operator(
            "download-model", ended.number, "--output", str(model), "--artifacts", str(ended.folder / "artifacts")
        )
    )
    assert "None yet" in (model / CARD).read_text()
    assert one.sha256 == read_model(model).index.sha256
    rows = write_rows(tmp_path / "rows.csv", 200, 12)
    sites = ["--sites", str(by_hospital), "--sites", str(by_voter)]
    done(
        ended.operator("evaluate", str(model), "--data", str(rows), *sites, "--into-card"), "not shared",
        f"added to {model / CARD}",
    )  # fmt: skip
    saved, card = read_model(model), (model / CARD).read_text()
    assert saved.report == EvaluationReport.model_validate_json((model / REPORT).read_bytes())
    assert [(entry.role, entry.report is not None) for entry in (saved.report.nodes if saved.report else ())] == [
        ("hospital", True), ("hospital", False), ("voter", True),
    ]  # fmt: skip
    for words in (
        "## Evaluation", "On 200 labelled rows", f"| hospital `{ended.task.nodes[1].address}` | not shared |",
        f"| voter `{one.node}` | 300 |", "![calibration curves and importance of columns](report.svg)", "| age |",
        "## Rounds and scores",
    ):  # fmt: skip
        assert words in card, words
    assert (model / "report.svg").read_bytes().startswith(b"<?xml")
    done(ended.operator("evaluate", str(model), *sites, "--into-card"))
    again = (model / CARD).read_text()
    assert again.count("## Evaluation") == 1
    assert "labelled rows" not in again.partition("## Evaluation")[2].partition("\n## ")[0]
    hub = tmp_path / "hub"
    done(ended.consilium("operator", "export-hugging-face", str(model), "--output", str(hub)))
    assert f"rows of voter {one.node}" in (hub / "README.md").read_text()


def signed_by(key: bytes, report: SiteReport, **changes: Any) -> bytes:
    account = Account.from_key(key)
    return sign(report.model_copy(update={"node": account.address, **changes}), account).written


def test_reports_of_others_are_refused(ended: Ended, tmp_path: Path) -> None:
    mine, model = tmp_path / "voter.json", tmp_path / "model"
    done(ended.consilium("voter", "evaluate", ended.number, "--home", str(ended.voter), "--share", str(mine)))
    done(
        ended.operator(
            "download-model", ended.number, "--output", str(model), "--artifacts", str(ended.folder / "artifacts")
        )
    )
    report = parse_site_report(mine.read_bytes())
    own = bytes(ended.task.judges[0].connection.signer.key)
    stranger, other_task = tmp_path / "stranger.json", tmp_path / "other.json"
    stranger.write_bytes(signed_by(b"\7" * 32, report))
    other_task.write_bytes(signed_by(own, report, task=report.task + 1))
    hospital = tmp_path / "as-hospital.json"
    hospital.write_bytes(signed_by(own, report, role="hospital"))
    for path, why in ((stranger, "is no voter"), (other_task, "its task is"), (hospital, "is no hospital")):
        refused(ended.operator("evaluate", str(model), "--sites", str(path)), "SiteReportRefused", why)
    refused(
        ended.operator("evaluate", str(model), "--sites", str(mine), "--sites", str(mine)), "SiteReportRefused",
        "another file has a report of",
    )  # fmt: skip
    refused(ended.operator("evaluate", str(model)), "NothingToEvaluate")
    assert REPORT not in read_model(model).index.files


@pytest.fixture
def api(ended: Ended, tmp_path: Path) -> Iterator[str]:
    """The operator's, with the task's model."""
    chain, store = ended.task.chain, ended.folder / "artifacts"
    model = tmp_path / "models" / f"task-{ended.number}"
    done(ended.operator("download-model", ended.number, "--output", str(model), "--artifacts", str(store)))
    settings = ApiSettings.model_validate({
        "home": tmp_path / "api", "database_url": f"sqlite:///{tmp_path}/index.sqlite", "artifacts": store,
        "deployment": ended.folder / "h0" / "deployment.json", "origin": "http://127.0.0.1", "models": model.parent,
    })  # fmt: skip
    engine = open_engine(settings.url)
    Indexer(Ledger(Connection(chain.node.url), chain.deployment), engine, ArtifactStore(store)).catch_up()
    with served(build(make_service(settings, engine))) as url:
        yield url
    engine.dispose()


def test_nodes_hand_in_what_their_owners_allow(
    ended: Ended, api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first hospital's owner and the voter's allow it, and the second hospital's does not."""
    said: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(handing_in, "LONGEST_WAIT", 0.1)

    def run(index: int, rule: str, url: str | None) -> None:
        own = ended.task.homes[index].model_copy(update={"held_out": 0.5, "report_to": url})
        own.policy.write_text(tomli_w.dumps({**OPEN_POLICY, "share_evaluation": rule}))
        HospitalNode(own).run()

    with log_to(lambda event, fields: said.append((event, dict(fields)))):
        run(0, "always", f"http://127.0.0.1:{free_port()}")
        run(0, "always", None)
        run(0, "always", api)
        run(1, "never", api)
        run(0, "never", api)  # it changed its mind: nothing more is sent
        voter = VoterHome.open(ended.voter)
        settings = voter.node_settings(ended.task.task, ended.task.operator.folder_name(ended.task.task))
        store = ArtifactStore(ended.folder / "artifacts")
        for to in (api, f"{api}/elsewhere"):
            handing_in.hand_in(
                settings.model_copy(update={"report_to": to}), voter.settings.reader(), store, settings.task
            )
    ours = [(event, fields.get("error", "")) for event, fields in said if "hand" in event or "shared" in event]
    assert ours == [
        ("not-handed-in", "the API does not answer"), ("not-handed-in", "node.toml has no report_to"),
        ("handed-in", ""), ("not-shared", "SharingNotAllowed"), ("not-shared", "SharingNotAllowed"), ("handed-in", ""),
        ("not-handed-in", "the API answered 404"),
    ]  # fmt: skip
    by_hand = [str(fields["by_hand"]) for _, fields in said if "by_hand" in fields]
    assert by_hand[0] == f"consilium hospital evaluate {ended.number} --share FILE"
    assert [event for event, _ in said].count("left") == 5
    for node in ended.task.nodes:
        assert node.staking.stake_of(node.address, Role.HOSPITAL).locked == 0

    (report,) = httpx.get(f"{api}/v1/tasks/{ended.number}/report", timeout=20).json()["items"]
    found = EvaluationReport.model_validate(report)
    assert [(one.role, one.report is not None) for one in found.nodes] == [
        ("hospital", True), ("hospital", False), ("voter", True),
    ]  # fmt: skip
    lines = [json.loads(line) for line in (ended.folder / "h0" / "audit.jsonl").read_text().splitlines()]
    posts = [one["to"] for one in lines if one["kind"] == "evaluation" and one["to"].startswith("http")]
    assert len(posts) == 2
    assert posts[-1] == f"{api}/v1/tasks/{ended.number}/site-reports"
    assert "evaluation" not in (ended.folder / "h1" / "audit.jsonl").read_text()
    assert not (ended.folder / "h1" / "shared").exists()
