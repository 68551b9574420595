"""No header value, file name or pixel of a hospital's DICOM files reaches the network, a log or its home.

Two hospitals play the statistics round on a real chain behind wiretaps, with exact sums of their images.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Role
from consilium_chain.messages import Part, ReplyCode, signed_update_bytes
from consilium_chain.rounds.signed_updates import parse_signed_update
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.data.image.reader import ImageSet
from consilium_client.hospital.audit_log import AUDIT_FILE, Identifying, parse_log
from consilium_client.hospital.node import HospitalNode
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.task_file import TaskSettings, task_toml
from dicom_files import PATIENT, dicom
from hospital_driver import WINDOW, hospital_settings
from test_images_read import write_folder
from wiretap import Wiretap, search

IMAGES = 12
DATA = {
    "kind": "images", "classes": ["normal", "ill"], "height": 8, "width": 8, "bits": 16, "modality": "CT",
    "window": {"center": 40, "width": 400},
}  # fmt: skip


@pytest.fixture
def tapped(local_chain: LocalChain) -> Iterator[Callable[[], Wiretap]]:
    with ExitStack() as stack:

        def tap() -> Wiretap:
            made = Wiretap.of_port(local_chain.node.port)
            stack.callback(made.close)
            return made

        yield tap


def task_file() -> bytes:
    windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), WINDOW)
    settings = TaskSettings(rounds=1, cohorts=1, windows=windows, masked=False)
    values = tomllib.loads(task_toml(deal_wdbc(2, 1, 0), settings))
    return tomli_w.dumps(values | {
        "data": DATA, "model": {"name": "cnn", "channels": [4]}, "statistics": "exact",
    }).encode()  # fmt: skip


def patients(hospital: int) -> dict[str, dict[str, Any]]:
    """Header fields by file."""
    return {
        f"{('normal', 'ill')[at % 2]}/1.2.840.{hospital}/IM-Schulze-{hospital}{at:04}": PATIENT | {
            "PatientName": f"Schulze{hospital}{at:04}^Erika", "PatientID": f"MRN-{hospital}-{at:06}",
        }
        for at in range(IMAGES)
    }  # fmt: skip


def test_what_is_in_dicom_files_stays_there(
    local_chain: LocalChain, tapped: Callable[[], Wiretap], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    chain, store, raw = local_chain, ArtifactStore(tmp_path / "artifacts"), task_file()
    spec = parse_task_spec(raw)
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    params = task_params(spec, store.put_file(raw), aggregator.address)
    task = chain.treasury.operator.propose(params)
    aggregator.aggregator.join(task)
    chain.staked(Role.VOTER, 1, params.voter_bond)[0].voter.join(task)
    random, nodes, taps = np.random.default_rng(7), [], []
    for index in range(2):
        pixels = random.integers(900, 1300, (IMAGES, 8, 8), dtype=np.uint16)
        fields: dict[str, Any] = {"RescaleIntercept": "-1024", "Modality": "CT"}
        files = {
            name: dicom(image, **fields, **patient)
            for (name, patient), image in zip(patients(index).items(), pixels, strict=True)
        }
        home = tmp_path / f"h{index}"
        made = hospital_settings(chain, task, home, write_folder(tmp_path / f"d{index}", files), exact_statistics=True)
        taps.append(tapped())
        node = HospitalNode(made.model_copy(update={"chain_url": f"http://{taps[-1].address}"}))
        node.join()
        nodes.append(node)
    replies = [ask(node, task, Part.SIGNED) for node in nodes]
    size = signed_update_bytes(1)
    updates = [
        parse_signed_update(reply.body[:size], node.ledger.address, 1)
        for reply, node in zip(replies, nodes, strict=True)
    ]
    aggregator.aggregator.commit_updates(task, 0, [(0, update) for update in updates])
    replies += [ask(node, task, Part.UPLOAD) for node in nodes]
    assert [reply.code for reply in replies] == [ReplyCode.SIGNED] * 2 + [ReplyCode.OK] * 2

    network = [bytes(one.caller) for tap in taps for one in tap.conversations]
    network += [part for reply in replies for part in (reply.body, *reply.blobs)]
    said = capsys.readouterr()
    logs = [said.out.encode(), said.err.encode(), *(record.getMessage().encode() for record in caplog.records)]
    homes = [path.read_bytes() for index in range(2) for path in (tmp_path / f"h{index}").rglob("*") if path.is_file()]
    assert sum(map(len, network)) > 100_000
    assert [json.loads(line)["event"] for line in said.out.splitlines()].count("joined") == 2
    secret = needles([of_kind(ImageSet, node.training.examples) for node in nodes])
    assert search([*network, *logs, *homes], secret) == set()
    for kind, some in secret.items():  # there is something to be found
        assert search([*network, b"\0" + some[-1]], secret) == {kind}
    for node in nodes:
        entries = parse_log((node.settings.home / AUDIT_FILE).read_bytes())
        (entry,) = (one for one in entries if isinstance(one, Identifying))
        assert set(PATIENT) <= set(entry.fields.split(", "))
        assert entry.files == IMAGES


def ask(node: HospitalNode, task: int, part: Part) -> RoundReply:
    contract = bytes.fromhex(node.ledger.deployment.tasks.removeprefix("0x"))
    return node.answer(RoundRequest(contract, task, 0, part))


def needles(held: list[ImageSet]) -> dict[str, list[bytes]]:
    names = [name for index in range(2) for name in patients(index)]
    values = {value for index in range(2) for fields in patients(index).values() for value in fields.values()}
    pixels = np.concatenate([one.pixels for one in held])
    return {
        "header value": [value.encode() for value in sorted(values) if len(value) >= 8],
        "file name": [name.rsplit("/", 1)[1].encode() for name in names],
        "row of pixels": [row.tobytes() for image in pixels for row in image[0] if len(np.unique(row)) > 3],
        "shades": list(shades_of(pixels)),
    }


def shades_of(pixels: Any) -> Iterator[bytes]:
    for kind in ("<f8", ">f8"):
        found = (pixels / 65_535).astype(kind).ravel()
        yield from (one.tobytes() for one in found[(found > 0) & (found < 1)])
