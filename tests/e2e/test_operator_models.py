"""`consilium operator` as its user types it: a played task is watched, and its model downloaded and served."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from chain_driver import LocalChain
from command_line import done, refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.task_spec import spec_hash
from consilium_client.models import model_of
from consilium_client.models.metrics import log_loss, predicted
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_core.children import child_environment
from consilium_core.kinds import of_kind
from consilium_core.live import of_block, sentence
from consilium_operators.event_words import EVENTS
from consilium_operators.model_folder import CARD, INDEX, MODEL, PROOF, ModelFile, Proof, read_model
from consilium_verify.verification import verify_round
from examples_read import read_table
from rich.text import Text
from safetensors.numpy import load_file
from voter_driver import ROWS, TASK, Door, FiledTask

Consilium = Callable[..., tuple[int, str]]
TEXT = TASK.replace("rounds = 1", "rounds = 2").replace('name = "logistic"', 'name = "mlp"\nhidden = [3]')


# --- a task that is played -----------------------------------------------------------------------------------------


@dataclass
class Played:
    """A task of two training rounds that is over: the first accepted, the second rejected. `told`: what one who watched
    from the beginning heard; the other watcher began in the middle."""

    chain: LocalChain
    task: FiledTask
    folder: Path
    told: list[dict[str, Any]]
    told_late: list[dict[str, Any]]

    @property
    def reading(self) -> list[str]:
        return ["--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json")]

    @property
    def arguments(self) -> list[str]:
        return [str(self.task.task), *self.reading, "--artifacts", str(self.folder / "artifacts")]

    def record(self) -> PublicRecord:
        ledger = Ledger(Connection(self.chain.node.url), self.chain.deployment)
        return PublicRecord(ledger, self.task.store, load_task(ledger, self.task.store, self.task.task))

    def expected(self) -> np.ndarray[Any, Any]:
        """The last model's probabilities on its hospital's own rows, as any node computes them."""
        record, model = self.record(), model_of(self.task.spec)
        inputs = model.inputs(
            read_table(self.task.rows, of_kind(TableSchema, self.task.spec.data)), record.statistics()
        )
        return model.evaluate(record.base(3), inputs).predictions


def watcher(folder: Path, chain: LocalChain, task: int, url: str | None = None) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "consilium_cli.main", "operator", "watch", str(task), "--rpc", url or chain.node.url,
        "--address-book", str(folder / "book.json"),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment())


def heard(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def played(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("played")
    local_chain.deployment.write(folder / "book.json")
    task = FiledTask(local_chain, folder, TEXT)
    task.judges, task.voters = local_chain.staked(Role.VOTER, 1), 1
    task.operator.operator.fund(task.task, 200 * TOKEN)
    early = watcher(folder, local_chain, task.task)
    try:
        task.join(rows=[8]).first_round()
        late = watcher(folder, local_chain, task.task)
        try:
            task.form().commit_all().publish()
            task.draw().judge([[40_000]])
            task.form().commit_all().publish()
            task.draw().judge([[-30_000]])
            assert task.phase is Phase.ENDED
            yield Played(local_chain, task, folder, heard(early), heard(late))
        finally:
            late.kill()
            late.communicate()
    finally:
        early.kill()
        early.communicate()


def without_time(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name != "at"} for line in lines]


def test_a_whole_task_is_told_in_order_and_once_whenever_one_began_to_watch(played: Played) -> None:
    told = [line["event"] for line in played.told]
    assert (told[0], told[-1]) == ("task-proposed", "task-ended")
    phases = [(line["round"], line["phase"]) for line in played.told if line["event"] == "phase-started"]
    training = ["FORMING", "COMMITTING", "UPLOADING", "DRAWING", "SCORING", "REVEALING"]
    for round_ in (1, 2):
        assert [phase for number, phase in phases if number == round_ and phase in training] == training
    medians = [line["medians"] for line in played.told if line["event"] == "round-settled"]
    assert medians[1:] == [[40_000], [-30_000]]
    accepted = [line["acceptedCohorts"] for line in played.told if line["event"] == "round-settled"]
    assert accepted[1:] == [[0], []]
    money = [line for line in played.told if line["event"] == "rewarded" and line["round"] == 1]
    assert {line["account"]: int(line["amount"]) for line in money} == {
        account: played.task.operator.tasks.explain(played.task.task, 1, account).reward
        for account in (played.task.nodes[0].address, played.task.judges[0].address, played.task.aggregator.address)
    }
    blocks = [line["block"] for line in played.told]
    assert blocks == sorted(blocks)
    connection = played.task.operator.connection
    assert [line["block_time"] for line in played.told] == [connection.blocks.time_of(block) for block in blocks]
    assert of_block(played.told[0]) == f"{datetime.fromtimestamp(played.told[0]['block_time'])}"
    assert without_time(played.told_late) == without_time(played.told)
    assert not any("points" in line or "taskId" in line for line in played.told)


def test_what_is_told_has_words_on_a_terminal(played: Played) -> None:
    said = [Text.from_markup(sentence(line["event"], line, EVENTS)).plain for line in played.told]
    for words in (
        "with a pool of 1,000.00 tokens", "its operator added 200.00 tokens: the pool now has 1,200.00",
        f"{played.task.judges[0].address} joined as voter 0",
        "round 1: 1 cohort(s): 0 of hospitals 0", "round 1: hospitals train and commit",
        f"round 1: {played.task.judges[0].address} revealed +0.0400",
        "round 1 is settled: cohort 0 +0.0400 accepted", "round 2 is settled: cohort 0 -0.0300 rejected",
        f"round 1: {played.task.nodes[0].address} earns 420.00 tokens",
    ):  # fmt: skip
        assert any(words in line for line in said), words
    assert said[-1].startswith("the task has ended; ")


def test_once_says_where_it_stands(played: Played, consilium: Consilium, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = consilium("operator", "watch", str(played.task.task), "--once", *played.reading)
    assert code == 0
    assert '"phase": "ENDED", "round": 2, "rounds": 2' in said
    assert (
        '"event": "round", "round": 1, "outcome": "SETTLED", "reason": "NONE", "medians": [40000], "accepted": [0]'
        in said
    )
    young = FiledTask(played.chain, played.folder, TEXT.replace("fall", "be"))
    done(
        consilium("operator", "watch", str(young.task), "--once", *played.reading),
        '"phase": "JOINING"',
        '"aggregator": false',
    )
    refused(consilium("operator", "watch", "999999", "--once", *played.reading), "TaskUnknown")


def test_a_watcher_is_ended_by_a_signal(played: Played) -> None:
    young = FiledTask(played.chain, played.folder, TEXT.replace("fall", "become"))
    process = watcher(played.folder, played.chain, young.task)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "task-proposed"
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    process.communicate()


def test_a_watcher_reads_in_parts_where_a_provider_gives_few_blocks_at_once(played: Played) -> None:
    parts = played.chain.treasury.connection.blocks.number() // 10
    with Door(played.chain.node.url, longest=parts) as door:
        process = watcher(played.folder, played.chain, played.task.task, door.url)
        assert without_time(heard(process)) == without_time(played.told)
        assert door.refused > 0


def test_a_watcher_outlasts_a_chain_node_that_does_not_answer(played: Played) -> None:
    young = FiledTask(played.chain, played.folder, TEXT.replace("fall", "grow"))

    def next_line(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
        assert process.stdout is not None
        return next(told for line in process.stdout if (told := json.loads(line))["event"] == event)

    with Door(played.chain.node.url) as door:
        process = watcher(played.folder, played.chain, young.task, door.url)
        try:
            next_line(process, "phase-started")
            door.shut = True
            assert next_line(process, "chain-unreachable")["tries"] == 1
            young.aggregator.aggregator.join(young.task)
            door.shut = False
            assert next_line(process, "aggregator-joined")["aggregator"] == young.aggregator.address
        finally:
            process.kill()
            process.communicate()


# --- download-model ------------------------------------------------------------------------------------------------


@pytest.fixture
def model(played: Played, consilium: Consilium, tmp_path: Path) -> Path:
    done(
        consilium("operator", "download-model", *played.arguments, "--output", str(tmp_path / "model")),
        "round 0 of 2, settled: holds", "round 2 of 2, settled: holds", "Next: consilium operator serve-model",
    )  # fmt: skip
    return tmp_path / "model"


def test_a_model_is_the_records_own_with_its_proof_and_card(played: Played, model: Path) -> None:
    assert sorted(path.name for path in model.iterdir()) == sorted([MODEL, CARD, PROOF, INDEX])
    base = played.record().base(3)
    tensors = load_file(model / MODEL)
    assert {name: one.shape for name, one in tensors.items()} == {
        "0.weight": (3, 1), "0.bias": (3,), "2.weight": (1, 3), "2.bias": (1,),
    }  # fmt: skip
    flat = np.concatenate([tensors[name].reshape(-1) for name in ("0.weight", "0.bias", "2.weight", "2.bias")])
    assert flat.tobytes() == base.tobytes()
    index = ModelFile.model_validate_json((model / INDEX).read_bytes())
    assert (index.task, index.round, index.rounds, index.verified) == (played.task.task, 2, 2, True)
    assert spec_hash(index.task_file.encode()).hex() == index.spec_hash
    proof = Proof.model_validate_json((model / PROOF).read_bytes())
    ledger = played.task.operator
    for one in proof.rounds:
        report = verify_round(
            Ledger(Connection(played.chain.node.url), played.chain.deployment), played.task.store, proof.task, one.round
        )
        assert one.report == report
        assert report.holds
        (cohort,) = one.cohorts
        (shown,) = ledger.tasks.expected_blob_hashes(proof.task, one.round, 0, 1)
        assert cohort.versioned_hashes == ("0x" + shown.hex(),)
        weight = 1 if one.round == 0 else ledger.tasks.hospitals(proof.task)[0].weight
        assert cohort.hospitals == {played.task.nodes[0].address: weight}
        (event,) = [e for e in ledger.logs.of_task("RoundSettled", proof.task) if e.values["round"] == one.round]
        assert (one.block, one.transaction) == (event.block, event.transaction)
    assert [one.cohorts[0].accepted for one in proof.rounds] == [True, True, False]
    assert proof.rounds[-1].report.derived[0].sha256 == index.sha256 == proof.model_sha256
    card = (model / CARD).read_text()
    assert "verify each round by itself" not in card  # each was
    for words in (
        "# who will fall ill",
        proof.operator,
        f"| `{played.task.nodes[0].address}` | {weight} | 1 |",
        "+0.040000 | yes",
        "-0.030000 | no",
        "no epsilon bounds",
        "| age | – |",
        "## Limits",
        proof.rounds[1].transaction,
        index.sha256,
    ):
        assert words in card, words


def test_a_download_refuses_to_write_over_anything(played: Played, consilium: Consilium, model: Path) -> None:
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    refused(consilium("operator", "download-model", *played.arguments, "--output", str(model)), "OutputTaken")
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    again = model.with_name("again")
    done(consilium("operator", "download-model", *played.arguments, "--output", str(again)))
    assert {path.name: path.read_bytes() for path in again.iterdir()} == before  # the record gives the same bytes


def test_a_mapping_goes_into_the_model_and_reads_its_users_files(
    played: Played, consilium: Consilium, tmp_path: Path
) -> None:
    (tmp_path / "mapping.toml").write_text('[columns]\nage = "Alter"\n')
    output, command = tmp_path / "mapped", ("operator", "download-model", *played.arguments, "--output")
    (tmp_path / "wrong.toml").write_text('[columns]\nweight = "Gewicht"\n')
    refused(consilium(*command, str(output), "--mapping", str(tmp_path / "wrong.toml")), "MappingInvalid", "weight")
    assert not output.exists()
    done(consilium(*command, str(output), "--mapping", str(tmp_path / "mapping.toml")))
    ages = [line.split(",")[0] for line in ROWS.splitlines()[1:]]
    (tmp_path / "rows.csv").write_text("\n".join(["Alter", *ages]) + "\n")
    predictions = tmp_path / "predictions.csv"
    done(consilium("predict", str(output), "--input", str(tmp_path / "rows.csv"), "--output", str(predictions)))
    found = [line.split(",")[2:] for line in predictions.read_text().splitlines()[1:]]
    assert [[float(share) for share in row] for row in found] == played.expected().tolist()


def test_a_model_is_measured_on_held_out_rows_from_the_start_on(
    played: Played, consilium: Consilium, tmp_path: Path
) -> None:
    folder, rows = tmp_path / "model", str(played.task.rows)
    command = ("operator", "download-model", *played.arguments, "--output", str(folder))
    done(consilium(*command, "--measure-on", rows, "--measure-on", rows), "accuracy on", "before the first round")
    measured = ModelFile.model_validate_json((folder / INDEX).read_bytes()).measured
    assert measured is not None
    labels = read_table(played.task.rows, of_kind(TableSchema, played.task.spec.data)).labels
    assert (measured.rows, measured.sources) == (2 * len(labels), 2)
    start, first, second = measured.rounds
    assert [one.round for one in measured.rounds] == [0, 1, 2]
    assert first.model_copy(update={"round": 2}) == second  # round 2 was rejected
    assert start.log_loss != first.log_loss
    assert second.accuracy == np.mean(predicted(played.expected()) == labels)
    assert second.log_loss == pytest.approx(log_loss(labels, played.expected()))
    card = (folder / CARD).read_text()
    count = 2 * len(labels)
    row = f"| 2 | {second.log_loss:.4f} | {second.accuracy:.4f} |"
    for words in (f"on {count} held-out rows of 2 files", row, "nats of log loss"):
        assert words in card, words
    assert read_model(folder).index.measured == measured


def test_a_model_is_written_over_only_where_it_is_the_same_tasks(
    played: Played, consilium: Consilium, model: Path, tmp_path: Path
) -> None:
    command = ("operator", "download-model", *played.arguments, "--replace", "--output")
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    broken = tmp_path / "broken.csv"
    broken.write_text("no,such,columns\n1,2,3\n")
    refused(consilium(*command, str(model), "--measure-on", str(broken)), "broken.csv")
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    done(consilium(*command, str(model), "--measure-on", str(played.task.rows)))
    assert "Not measured" not in (model / CARD).read_text()
    done(consilium(*command, str(model)))
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before

    others = ModelFile.model_validate_json(before[INDEX]).model_copy(update={"task": played.task.task + 1})
    (model / INDEX).write_text(others.model_dump_json(exclude_none=True))
    refused(consilium(*command, str(model)), "OutputTaken")
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / CARD).write_text("mine")
    refused(consilium(*command, str(documents)), "OutputTaken")
    assert [path.read_text() for path in documents.iterdir()] == ["mine"]


def altered_store(played: Played, tmp_path: Path, round_: int) -> tuple[list[str], Path]:
    """Arguments that name a copy of the store, and a round's blob in it."""
    copy = Path(shutil.copytree(played.folder / "artifacts", tmp_path / "altered"))
    (shown,) = played.task.operator.tasks.expected_blob_hashes(played.task.task, round_, 0, 1)
    return [*played.arguments[:-1], str(copy)], copy / f"blob-{shown.hex()}"


def test_an_altered_artifact_leaves_nothing_written(played: Played, consilium: Consilium, tmp_path: Path) -> None:
    """A rejected round's blob is not in the model: without it there is one, and it is not verified."""
    arguments, blob = altered_store(played, tmp_path, 2)
    raw = bytearray(blob.read_bytes())
    raw[1_000] ^= 1
    blob.write_bytes(raw)
    output = tmp_path / "model"
    command = ("operator", "download-model", *arguments, "--output", str(output))
    refused(
        consilium(*command), "NotVerified", "round 2: blobs", f"consilium verify {played.task.task} 2", "--unverified"
    )
    assert not output.exists()
    done(consilium(*command, "--unverified"), "NOT VERIFIED")
    index = ModelFile.model_validate_json((output / INDEX).read_bytes())
    assert not index.verified
    assert "Not verified" in (output / CARD).read_text()
    assert load_file(output / MODEL)["0.weight"].size == 3


def test_a_missing_artifact_of_the_model_leaves_nothing_even_unverified(
    played: Played, consilium: Consilium, tmp_path: Path
) -> None:
    arguments, blob = altered_store(played, tmp_path, 1)
    blob.unlink()
    command = ("operator", "download-model", *arguments, "--output", str(tmp_path / "model"))
    refused(consilium(*command), "NotVerified", "round 1: blobs")
    refused(consilium(*command, "--unverified"), "ArtifactMissing")
    (tmp_path / "altered" / f"file-{played.task.params.spec_hash.hex()}").unlink()
    refused(consilium(*command), "ArtifactMissing")
    assert not (tmp_path / "model").exists()


def test_a_task_without_a_round_has_no_model(played: Played, consilium: Consilium, tmp_path: Path) -> None:
    young = FiledTask(played.chain, played.folder, TEXT.replace("fall", "stay"))
    arguments = [str(young.task), *played.arguments[1:], "--output", str(tmp_path / "model")]
    refused(consilium("operator", "download-model", *arguments), "RecordIncomplete", "has no model yet")
    with played.chain.undone():
        played.chain.pass_time(100_001)
        young.operator.phases.tick(young.task)
        assert young.operator.tasks.round_state(young.task, 0).outcome is Outcome.PENDING
        refused(consilium("operator", "download-model", *arguments), "RecordIncomplete", "has no model yet")


def test_a_void_round_leaves_the_model_as_it_was(played: Played, consilium: Consilium, tmp_path: Path) -> None:
    task = FiledTask(played.chain, played.folder, TEXT.replace("fall", "seem"))
    task.judges, task.voters = played.chain.staked(Role.VOTER, 1), 1
    task.to_committing()
    arguments = [str(task.task), *played.arguments[1:], "--output", str(tmp_path / "model")]
    with played.chain.undone():
        played.chain.pass_time(100_001)
        task.tick()
        assert task.operator.tasks.round_state(task.task, 1).outcome is Outcome.VOID
        done(consilium("operator", "watch", str(task.task), "--once", *played.reading), '"outcome": "VOID"')
        done(consilium("operator", "download-model", *arguments), "round 1 of 2, void (too few hospitals): holds")
    spec, params = task.spec, task.params
    first = model_of(spec).initial(seed=int.from_bytes(params.spec_hash[:8], "big"))
    assert load_file(tmp_path / "model" / MODEL)["0.weight"].tobytes() == first[:3].tobytes()
    proof = Proof.model_validate_json((tmp_path / "model" / PROOF).read_bytes())
    assert [len(one.cohorts) for one in proof.rounds] == [1, 0]
    assert "| 1 | void (too few hospitals) |" in (tmp_path / "model" / CARD).read_text()


# --- serve-model ---------------------------------------------------------------------------------------------------


def test_a_served_model_answers_what_every_node_computes(played: Played, model: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "consilium_cli.main", "operator", "serve-model", str(model), "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment()
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            what = patiently(lambda: client.get("/"), process).json()
            assert (what["task"], what["classes"], what["columns"]) == (played.task.task, ["no", "yes"], ["age"])
            assert what["card"] == (model / CARD).read_text()
            ages = [float(line.split(",")[0]) for line in ROWS.splitlines()[1:]]
            answer = client.post("/predict", json={"rows": [{"age": age} for age in ages]})
            assert answer.status_code == 200
            shown = [list(one["probabilities"].values()) for one in answer.json()["predictions"]]
            assert shown == played.expected().tolist()
            assert [one["class"] for one in answer.json()["predictions"]] == [
                ["no", "yes"][int(row.argmax())] for row in played.expected()
            ]
            fault = client.post("/predict", json={"rows": [{"age": 20}, {"age": "Mary Smith"}]})
            assert (fault.status_code, fault.headers["content-type"]) == (422, "application/problem+json")
            assert (fault.json()["title"], fault.json()["row"], fault.json()["column"]) == ("ValueNotNumeric", 2, "age")
            assert "Mary" not in fault.text
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert "Mary" not in out + err
    assert "Traceback" not in err


def patiently(ask: Callable[[], httpx.Response], process: subprocess.Popen[str]) -> httpx.Response:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return ask()
        except httpx.ConnectError:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    raise AssertionError("nothing answers within a minute")


def test_a_tampered_folder_is_not_served(model: Path, consilium: Consilium) -> None:
    def served(folder: Path) -> tuple[int, str]:
        return consilium("operator", "serve-model", str(folder), "--port", str(free_port()))

    for name in (MODEL, CARD, PROOF):
        copy = Path(shutil.copytree(model, model.with_name(f"without-{name}")))
        (copy / name).unlink()
        refused(served(copy), "ModelFolderInvalid", name, "cannot be read")
        raw = bytearray((model / name).read_bytes())
        raw[-1] ^= 1
        (copy / name).write_bytes(raw)
        refused(served(copy), "ModelFolderInvalid", name, "was changed", "download-model")
    refused(served(model.with_name("none")), "ModelFolderInvalid", INDEX)
