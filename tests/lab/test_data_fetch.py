"""`consilium data fetch`: the right files whole, or a named refusal; against a local server of files."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_cli.main import app
from consilium_lab.data import building, publishers
from consilium_lab.data.building import ARRAYS, arrays_sha256, build_medquad, build_pneumonia
from consilium_lab.data.fetching import DOWNLOADS, TRIES, fetch
from consilium_lab.data.publishers import PUBLISHERS, Download, Publisher
from consilium_lab.demo.datasets import PNEUMONIA_FILE, deal_heart, deal_medquad, deal_pneumonia
from consilium_lab.demo.options import MEDQUAD_FILE, DataSet
from consilium_lab.errors import LabError
from file_server import FileServer, Request
from raised_faults import raises_fault
from typer.testing import CliRunner

BODY = bytes(range(256)) * 1_200
NAME = "processed.va.data"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / NAME).write_bytes(BODY)
    with FileServer(tmp_path / "served") as running:
        yield running


def quiet(name: str, size: int, whole: int | None) -> None:
    pass


def of(*urls: str, body: bytes = BODY, most: int = 1 << 20) -> Publisher:
    """Heart disease with one file."""
    one = Download(NAME, urls, hashlib.sha256(body).hexdigest(), most)
    return replace(PUBLISHERS[DataSet.HEART], downloads=(one,))


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_fetched_once_with_their_progress(server: FileServer, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    publisher, folder = of(f"{server.url}/{NAME}"), tmp_path / "data"
    (path,) = fetch(DataSet.HEART, publisher, folder, lambda *now: told.append(now))
    assert path.read_bytes() == BODY
    assert files_of(folder) == ["heart-licence.txt", NAME]
    assert "CC BY 4.0" in (folder / "heart-licence.txt").read_text()
    assert told[-1] == (NAME, len(BODY), len(BODY))
    fetch(DataSet.HEART, publisher, folder, quiet)
    assert server.asked[NAME] == 1
    path.write_bytes(b"changed")
    fetch(DataSet.HEART, publisher, folder, quiet)
    assert (server.asked[NAME], path.read_bytes()) == (2, BODY)


def ranged(server: FileServer, tears: list[int]) -> None:
    """Sends ranges; the first answers break off after so many bytes."""

    def behave(request: Request, name: str) -> None:
        begun = int(re.findall(r"\d+", request.headers.get("Range", "0"))[0])
        rest = BODY[begun:]
        request.send_response(206 if begun else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest[: tears.pop(0)] if tears else rest)
        request.close_connection = True

    server.behaviour = behave


def test_a_torn_download_continues_where_it_ended(server: FileServer, tmp_path: Path) -> None:
    ranged(server, [200_000, 50_000])
    sizes: list[int] = []
    (path,) = fetch(
        DataSet.HEART, of(f"{server.url}/{NAME}"), tmp_path / "data", lambda name, size, whole: sizes.append(size)
    )
    assert (path.read_bytes(), server.asked[NAME]) == (BODY, 3)
    assert sizes == sorted(sizes)  # no byte twice


def test_a_later_command_continues_too(server: FileServer, tmp_path: Path) -> None:
    ranged(server, [100_000, *[0] * (TRIES - 1)])
    publisher, folder = of(f"{server.url}/{NAME}"), tmp_path / "data"
    with raises_fault(LabError, "DataUnreachable"):
        fetch(DataSet.HEART, publisher, folder, quiet)
    assert (folder / f"{NAME}.part").stat().st_size == 100_000
    assert not (folder / NAME).exists()
    fetch(DataSet.HEART, publisher, folder, quiet)
    assert files_of(folder) == ["heart-licence.txt", NAME]


def test_a_wrong_checksum_is_refused_by_name_and_nothing_is_kept(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "served" / NAME).write_bytes(BODY + b"x")
    with raises_fault(LabError, "DataWrong") as caught:
        fetch(DataSet.HEART, of(f"{server.url}/{NAME}"), tmp_path / "data", quiet)
    values = caught.value.values
    assert values["found"] == hashlib.sha256(BODY + b"x").hexdigest()
    assert values["wanted"] == hashlib.sha256(BODY).hexdigest()
    assert files_of(tmp_path / "data") == ["heart-licence.txt"]


def test_another_address_gives_what_the_first_does_not(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "served" / "wrong").write_bytes(b"sold")
    publisher = of(f"{server.url}/absent", f"{server.url}/wrong", f"{server.url}/{NAME}")
    (path,) = fetch(DataSet.HEART, publisher, tmp_path / "data", quiet)
    assert path.read_bytes() == BODY
    assert server.asked == {"absent": 1, "wrong": 1, NAME: 1}  # what is not there is not asked for again


def test_a_server_that_sends_for_ever_is_stopped(server: FileServer, tmp_path: Path) -> None:
    server.behaviour = server.send_for_ever
    with raises_fault(LabError, "DataTooLong"):
        fetch(DataSet.HEART, of(f"{server.url}/{NAME}"), tmp_path / "data", quiet)
    assert files_of(tmp_path / "data") == ["heart-licence.txt"]


def test_without_a_network_one_line_says_where_to_get_what(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/{NAME}"
    with raises_fault(LabError, "DataUnreachable") as caught:
        fetch(DataSet.HEART, of(url), tmp_path / "data", quiet)
    message = str(caught.value)
    assert "\n" not in message
    for word in (url, str(tmp_path / "data"), NAME, "consilium data fetch heart", httpx.ConnectError.__name__):
        assert word in message


# --- what is built ---------------------------------------------------------------------------------------------------


def document(number: str, *pairs: tuple[str, str]) -> str:
    said = "".join(
        f'<QAPair pid="{n}"><Question qid="{number}-{n}" qtype="{kind}">?</Question><Answer>{text}</Answer></QAPair>'
        for n, (kind, text) in enumerate(pairs, start=1)
    )
    return f'<Document id="{number}"><Focus>A  cough</Focus><QAPairs>{said}</QAPairs></Document>'


def archive(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as written:
        for name, text in files.items():
            written.writestr(f"MedQuAD-1/{name}", text)
    return path


ANSWER = "It is an infection of the airways, and lasts for some weeks."


def medquad(path: Path) -> Path:
    return archive(
        path,
        {
            "9_CDC_QA/a.xml": document("1", ("symptoms", ANSWER)),  # said before
            "1_CancerGov_QA/b.xml": document("2", ("symptoms", f"\n {ANSWER}\n"), ("research", ANSWER + " More.")),
            "1_CancerGov_QA/a.xml": document("1", ("causes", "Too short."), ("treatment", "drink tea " * 100)),
            "10_MPlus_ADAM_QA/a.xml": document("1", ("causes", ANSWER + " No institute.")),
            "readme.txt": "",
        },
    )


def test_medquad_is_a_table_of_cut_answers_each_once(tmp_path: Path) -> None:
    build_medquad(medquad(tmp_path / "medquad.zip"), tmp_path / "built.csv")
    raw = (tmp_path / "built.csv").read_bytes()
    assert b"\r" not in raw
    rows = list(csv.DictReader(io.StringIO(raw.decode())))
    assert [(row["institute"], row["docid"], row["qid"], row["focus"], row["qtype"]) for row in rows] == [
        ("NCI", "1", "1-2", "A cough", "treatment"), ("NCI", "2", "2-1", "A cough", "symptoms"),
    ]  # fmt: skip
    assert rows[0]["text"] == ("drink tea " * 60).rstrip()
    assert rows[1]["text"] == ANSWER
    for row in rows:
        in_test = int(hashlib.sha256(f"1_CancerGov_QA/{row['docid']}".encode()).hexdigest(), 16) % 5 == 0
        assert row["split"] == ("test" if in_test else "train")


def copy(path: Path, labels: list[int], first: int) -> Path:
    images = np.arange(first, first + len(labels), dtype=np.uint8)[:, None, None] * np.ones((28, 28), np.uint8)
    train = {"train_images": images, "train_labels": np.array(labels, np.uint8)[:, None]}
    rest = {name: np.full((2, 1), first, np.uint8) for name in ARRAYS if not name.startswith("train")}
    np.savez(path, allow_pickle=False, **train, **rest)
    return path


def test_pneumonia_takes_each_class_from_its_copy(tmp_path: Path) -> None:
    output = tmp_path / "built.npz"
    build_pneumonia(copy(tmp_path / "a.npz", [0, 1, 0], 0), copy(tmp_path / "b.npz", [1, 0, 1, 1], 100), output)
    with np.load(output) as built:
        pairs = sorted(
            zip(built["train_images"][:, 0, 0].tolist(), built["train_labels"].ravel().tolist(), strict=True)
        )
        assert pairs == [(0, 0), (2, 0), (100, 1), (102, 1), (103, 1)]
        assert built["test_labels"].tolist() == [[100], [100]]
    again = tmp_path / "again.npz"
    build_pneumonia(tmp_path / "a.npz", tmp_path / "b.npz", again)
    assert arrays_sha256(again) == arrays_sha256(output)


def building_from(server: FileServer, wanted: str) -> Publisher:
    one = Download("medquad.zip", (f"{server.url}/medquad.zip",), None, 1 << 20)
    return replace(PUBLISHERS[DataSet.MEDQUAD], downloads=(one,), built=wanted)


def test_a_built_file_is_checked_and_a_wrong_one_refused(server: FileServer, tmp_path: Path) -> None:
    build_medquad(medquad(tmp_path / "served" / "medquad.zip"), tmp_path / "right.csv")
    right = (tmp_path / "right.csv").read_bytes()
    with raises_fault(LabError, "DataWrong", match=MEDQUAD_FILE):
        fetch(DataSet.MEDQUAD, building_from(server, "0" * 64), tmp_path / "data", quiet)
    assert not [path for path in (tmp_path / "data").iterdir() if path.suffix == ".csv"]
    assert files_of(tmp_path / "data" / DOWNLOADS) == []
    publisher = building_from(server, hashlib.sha256(right).hexdigest())
    (path,) = fetch(DataSet.MEDQUAD, publisher, tmp_path / "data", quiet)
    assert path.read_bytes() == right
    fetch(DataSet.MEDQUAD, publisher, tmp_path / "data", quiet)
    assert server.asked["medquad.zip"] == 2


def test_a_file_that_was_carried_there_is_used_without_a_network(tmp_path: Path) -> None:
    (tmp_path / DOWNLOADS).mkdir()
    build_medquad(medquad(tmp_path / DOWNLOADS / "medquad.zip"), tmp_path / "right.csv")
    one = Download("medquad.zip", (f"http://127.0.0.1:{free_port()}/x",), None, 1)
    wanted = hashlib.sha256((tmp_path / "right.csv").read_bytes()).hexdigest()
    publisher = replace(PUBLISHERS[DataSet.MEDQUAD], downloads=(one,), built=wanted)
    (path,) = fetch(DataSet.MEDQUAD, publisher, tmp_path, quiet)
    assert path == tmp_path / MEDQUAD_FILE


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_damaged_files_are_refused_by_name(server: FileServer, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "served" / "medquad.zip").write_bytes(content)
    with pytest.raises(LabError) as caught:
        fetch(DataSet.MEDQUAD, building_from(server, "0" * 64), tmp_path / "data", quiet)
    assert caught.value.name in ("DataUnreadable", "DataWrong")
    (tmp_path / "a.npz").write_bytes(content)
    with raises_fault(LabError, "DataUnreadable"):
        build_pneumonia(tmp_path / "a.npz", tmp_path / "a.npz", tmp_path / "out.npz")


def test_a_document_larger_than_any_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "LARGEST_DOCUMENT", 50)
    with raises_fault(LabError, "DataUnreadable"):
        build_medquad(medquad(tmp_path / "medquad.zip"), tmp_path / "built.csv")


# --- the command and the demo ----------------------------------------------------------------------------------------


def test_the_licence_is_shown_and_accepted_first(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(publishers.PUBLISHERS, DataSet.HEART, of(f"{server.url}/{NAME}"))
    command = ["data", "fetch", "heart", "--to", str(tmp_path / "data")]
    ran = CliRunner().invoke(app, command)
    assert isinstance(ran.exception, LabError)
    assert ran.exception.name == "LicenceNotAccepted"
    assert "licence: CC BY 4.0" in ran.output
    assert not (tmp_path / "data").exists()
    assert server.asked == {}
    ran = CliRunner().invoke(app, [*command, "--yes"])
    assert ran.exit_code == 0, ran.output
    assert f"Next: consilium demo --data heart --data-dir {tmp_path / 'data'}" in ran.output
    assert (tmp_path / "data" / NAME).read_bytes() == BODY


def test_published_files_are_those_that_the_demo_reads() -> None:
    assert {one.name for one in PUBLISHERS[DataSet.HEART].downloads} == {
        f"processed.{place}.data" for place in ("cleveland", "hungarian", "switzerland", "va")
    }
    assert PUBLISHERS[DataSet.MEDQUAD].file == MEDQUAD_FILE
    assert PUBLISHERS[DataSet.PNEUMONIA].file == PNEUMONIA_FILE
    for publisher in PUBLISHERS.values():
        sums = [one.sha256 for one in publisher.downloads] + [publisher.built]
        assert all(re.fullmatch("[0-9a-f]{64}", one) for one in sums if one is not None)
        assert all(url.startswith("https://") for one in publisher.downloads for url in one.urls)


@pytest.mark.parametrize("data", [DataSet.HEART, DataSet.MEDQUAD, DataSet.PNEUMONIA])
def test_missing_files_are_named_in_the_words_of_their_own_data_set(data: DataSet, tmp_path: Path) -> None:
    with raises_fault(LabError, "DemoDataMissing") as caught:
        match data:
            case DataSet.HEART:
                deal_heart(tmp_path, 1, seed=0)
            case DataSet.MEDQUAD:
                deal_medquad(tmp_path, 3, 1, seed=0)
            case _:
                deal_pneumonia(tmp_path, 3, 1, seed=0)
    message = str(caught.value)
    assert f"consilium data fetch {data} --to DIR" in message
    assert str(data.needs) in message
    assert "heart" in message if data is DataSet.HEART else "heart" not in message
