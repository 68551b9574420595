"""Nothing of a text, a file's name or a scan's header leaves a node's data: a whole task of real processes, searched.

Names and headers are of invented patients. Searched are each node's traffic with the chain, the replies to each
hospital's relay, all logs, the artifacts, and all files of all nodes' homes but the data.
"""

from __future__ import annotations

import base64
import json
import os
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.local_node import LocalNode
from consilium_chain.tasks.data_schemas import DataSchema, TextSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models import model_of
from consilium_core.private_files import write_private_file
from consilium_core.starter import Starter
from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.network import GAS_MONEY, Network, Party, Role, build
from consilium_lab.demo.options import DemoOptions
from consilium_lab.demo.processes import PRELOADED, Processes
from consilium_lab.demo.task_file import TaskSettings, task_toml
from dicom_files import PATIENT, dicom
from tapped_node import KEPT
from wiretap import Wiretap, search, spellings

pytestmark = pytest.mark.timeout(600)

HOSPITALS, VOTERS, ROWS, ROUNDS = 3, 2, 24, 1
PATIENCE = 400.0  # seconds, against hanging for ever
CLASSES = ["healthy", "ill"]
SEEN = {"healthy": "is well, sleeps and eats", "ill": "coughs, has a fever and shivers"}
Files = dict[str, bytes]


@dataclass
class Rows:
    """The files of each node, by its name, and the words in them that no other file has."""

    schema: DataSchema
    model: dict[str, Any]
    name: str
    frame: Callable[[], pd.DataFrame]
    files: Callable[[str], Files]
    accepted: dict[str, Any] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def secret(self, word: str) -> str:
        self.secrets.add(word)
        return word


def name_of(random: np.random.Generator) -> str:
    """A name that no program's text has, with letters of which encodings differ."""
    letters = "".join(random.choice(list("bcdfghjklmnpqrstvwxz"), 9))
    return f"{letters[:4]}ü{letters[4:]}".capitalize()


def texts() -> Rows:
    """Notes in folders of their class, each in a file with a patient's name."""

    def files(node: str) -> Files:
        random = np.random.default_rng(list(node.encode()))
        found = {}
        for at in range(ROWS):
            label, patient, place = CLASSES[at % 2], rows.secret(name_of(random)), rows.secret(name_of(random))
            case = rows.secret(f"case-{random.integers(10**9, 10**10)}")
            found[f"{label}/{patient} {case}.txt"] = f"{patient} of {place} {SEEN[label]}. See {case}.".encode()
        return found

    def frame() -> pd.DataFrame:
        return pd.DataFrame({"text": [f"A note {at}." for at in range(ROWS)], "label": CLASSES * (ROWS // 2)})

    schema = TextSchema(kind="text", text="text", label="label", classes=CLASSES)
    model = {"name": "lora", "max_tokens": 16}
    rows = Rows(schema, model, "medquad", frame, files, {"leak": True})  # "fever" gives the label away
    return rows


def scans() -> Rows:
    """DICOM files without an ending, in a folder of a patient's name below that of their class."""

    def files(node: str) -> Files:
        random = np.random.default_rng(list(node.encode()))
        found = {}
        for at in range(ROWS):
            number = f"{random.integers(10**9, 10**10)}"
            patient, case = rows.secret(name_of(random)), rows.secret(f"MRN-{number}")
            header: dict[str, Any] = PATIENT | {
                "PatientName": f"{patient}^Erika", "PatientID": case, "InstitutionName": rows.secret(name_of(random)),
                "SpecificCharacterSet": "ISO_IR 192",
            }  # fmt: skip
            pixels = random.integers(900 + 100 * (at % 2), 1300, (8, 8), dtype=np.uint16)
            content = dicom(pixels, RescaleIntercept="-1024", Modality="CT", **header)
            found[f"{CLASSES[at % 2]}/{patient}/IM-{rows.secret(number)}"] = content
        return found

    def frame() -> pd.DataFrame:
        random = np.random.default_rng(0)
        images = list(random.integers(0, 60_000, (ROWS, 8, 8), dtype=np.uint16))
        return pd.DataFrame({"image": images, "label": [0, 1] * (ROWS // 2)})

    schema = ImageSchema.model_validate(
        {
            "kind": "images", "classes": CLASSES, "height": 8, "width": 8, "bits": 16, "modality": "CT",
            "window": {"center": 40, "width": 400},
        }
    )  # fmt: skip
    rows = Rows(schema, {"name": "cnn", "channels": [4]}, "pneumonia", frame, files)
    return rows


@dataclass
class Play:
    """A network whose nodes have the rows. `chain`: all of them reach it through this wiretap."""

    rows: Rows
    network: Network
    chain: Wiretap

    def prepare(self, party: Party) -> None:
        """Ether in place of a sponsor, whose TLS no wiretap reads; the wiretap's address; the rows' folder."""
        settings = tomllib.loads((party.home / "node.toml").read_text()) | {"chain_url": f"http://{self.chain.address}"}
        settings.pop("sponsor", None)
        if self.rows.accepted and party.role in (Role.HOSPITAL, Role.VOTER):
            settings["data_accepted"] = self.rows.accepted
        if party.role is Role.HOSPITAL:
            self.network.treasury.connection.transactions.send_ether(party.address, GAS_MONEY)
        if party.role in (Role.HOSPITAL, Role.VOTER):
            (party.home / str(settings["data"])).unlink()
            settings["data"] = str(self.folder(party))
            for name, content in self.rows.files(party.name).items():
                path = self.folder(party) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        write_private_file(party.home / "node.toml", tomli_w.dumps(settings))

    def folder(self, party: Party) -> Path:
        return self.network.options.output / "data" / party.name

    def run(self, processes: Processes) -> None:
        """From the first process to the end of the last one, which has taken its bond back."""
        task = str(self.network.task)
        commands = {
            Role.AGGREGATOR: ["server", "run", "--config"], Role.HOSPITAL: ["hospital", "run", task, "--home"],
            Role.VOTER: ["voter", "run", "--task", task, "--home"],
        }  # fmt: skip
        for party in self.network.parties:
            if party.role in commands:
                self.prepare(party)
                place = party.home / "node.toml" if party.role is Role.AGGREGATOR else party.home
                processes.start(party.name, "tapped_node", *commands[party.role], os.fspath(place))
        end = time.monotonic() + PATIENCE
        while processes.wait(1) and time.monotonic() < end:
            assert {name: processes.errors_of(name) for name in processes.ended_badly()} == {}
        assert processes.running() == []
        assert self.network.treasury.tasks.state(self.network.task).phase is Phase.ENDED

    def kept(self) -> dict[str, bytes]:
        """All files of the network but the data."""
        output = self.network.options.output
        files = (path for path in output.rglob("*") if path.is_file() and not path.is_relative_to(output / "data"))
        return {str(path.relative_to(output)): path.read_bytes() for path in files}

    def needles(self) -> dict[str, list[bytes]]:
        return {f"word {at}": sorted(spellings(word)) for at, word in enumerate(sorted(self.rows.secrets))}


@pytest.fixture(params=[texts, scans], ids=["texts", "scans"])
def play(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    places = [os.fspath(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
    rows: Rows = request.param()
    parts = [rows.frame() for _ in range(HOSPITALS + VOTERS)]
    names = [f"hospital-{at + 1}" for at in range(HOSPITALS)]
    data = DemoData(rows.name, "patients that are invented", rows.schema, names, parts[VOTERS:], parts[:VOTERS])
    windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 600)
    made = TaskSettings(ROUNDS, cohorts=1, seats=VOTERS, windows=windows, model=rows.model)
    task_file = task_toml(data, made).encode()
    model_of(parse_task_spec(task_file)).require_installed()
    options = DemoOptions(hospitals=HOSPITALS, voters=VOTERS, output=tmp_path / "out")
    options.output.mkdir()
    with (options.output / "chain.log").open("wb") as log, LocalNode(None, log) as node:
        tap = Wiretap.of_port(node.port)
        found = Play(rows, build(options, data, task_file, node), tap)
        with Starter(options.output, PRELOADED) as starter, Processes(options.output / "logs", starter) as processes:
            found.run(processes)
        tap.close()
        yield found


def test_no_word_of_a_text_or_a_file_name_leaves_the_data(play: Play) -> None:
    network = [bytes(part) for one in play.chain.conversations for part in (one.caller, one.callee)]
    kept, needles = play.kept(), play.needles()
    assert len(needles) > ROWS * (HOSPITALS + VOTERS)
    assert search([*network, *kept.values()], needles) == set()
    data = play.network.options.output / "data"
    held = [part for path in data.rglob("*") if path.is_file() for part in (os.fsencode(path), path.read_bytes())]
    assert search(held, needles) == set(needles)
    # There was something to search: a whole task, whose log has the nodes' events and whose relays had replies.
    hospitals = [party.name for party in play.network.of(Role.HOSPITAL)]
    assert all(len(kept[f"nodes/{name}/{KEPT}"]) > 100_000 for name in hospitals)
    assert sum(map(len, network)) > 1_000_000
    events = {name: _events(kept[f"logs/{name}.jsonl"]) for name in hospitals}
    assert all({"joined", "training", "left"} <= set(said) for said in events.values())


def test_each_spelling_is_found() -> None:
    word = "Mürkwxlbmann"
    found = [search([b"\0" * 3 + one + b"\0"], {"word": spellings(word)}) for one in spellings(word)]
    assert found == [{"word"}] * len(found)
    for raw in (word.encode(), word.encode("utf-16-le")):
        assert search([raw.hex().encode()], {"word": spellings(word)}) == {"word"}
    for before in range(3):
        assert search([base64.b64encode(b"x" * before + word.encode() + b"more")], {"word": spellings(word)})


def _events(journal: bytes) -> Sequence[str]:
    return [json.loads(line)["event"] for line in journal.splitlines() if line.startswith(b"{")]
