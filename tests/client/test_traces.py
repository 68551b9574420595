"""A hospital's spans of a round, beside the aggregator's: of one trace, whole, and with nothing of its rows."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Phase
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rpc.local_node import free_port
from consilium_client.hospital.node import HospitalNode
from consilium_core.collector import TracingSettings
from consilium_core.tracing import Party, traced
from consilium_server.aggregator.round_work import Committer
from consilium_server.aggregator.timeline import Timeline
from hospital_driver import Committing, start
from span_receiver import Receiver, receiving
from wiretap import search

HOSPITALS = 3


@dataclass
class Traced:
    made: Committing
    hospital: HospitalNode
    receiver: Receiver
    needles: dict[str, list[bytes]]


def play(made: Committing, receiver: Receiver) -> HospitalNode:
    """Hospital 0 in the statistics round, until its masked upload has left."""
    settings = TracingSettings(endpoint=receiver.endpoint)
    made.settings[0] = made.settings[0].model_copy(update={"tracing": settings})
    ledger = made.aggregator
    party = Party(ledger.deployment.chain_id, ledger.deployment.tasks, "aggregator", ledger.address, made.task)
    with made.settings[0].traced("hospital", made.task):
        hospital = made.node(0)
        signed = {0: made.signed(hospital)}
    signed |= {index: made.signed(made.node(index)) for index in range(1, HOSPITALS)}
    with traced(settings, party):
        timeline = Timeline(made.task)
        timeline.look(0, ledger.tasks.state(made.task).phase.name)
        Committer(ledger, made.task, 0, [one.node for one in ledger.tasks.hospitals(made.task)]).commit_if_due(
            signed, made.round_state, 0, [(1 << HOSPITALS) - 1]
        )
        assert ledger.tasks.state(made.task).phase is Phase.UPLOADING
        timeline.look(0, "UPLOADING")
        timeline.look(0, Phase.ENDED.name)
    with made.settings[0].traced("hospital", made.task):
        assert made.ask(hospital, Part.UPLOAD).code is ReplyCode.OK
    return hospital


def needles_of(hospital: HospitalNode, table: Path) -> dict[str, list[bytes]]:
    """Its secrets: rows as it reads them and as text, its update, and its files' names."""
    frame = pd.read_csv(table)
    update = hospital.updates.pending.read(0)
    assert update is not None
    return {
        "rows": [struct.pack("<d", value) for value in frame.to_numpy(float).ravel() if value not in (0, 1)],
        "cells": [text for line in table.read_bytes().split() for text in line.split(b",") if len(text) >= 8],
        "lines": [line for line in table.read_bytes().split() if len(line) >= 8],
        "columns": [name.encode() for name in frame.columns if len(name) >= 8],
        "update": [
            bytes(update.blobs[0][at : at + 31]) for at in range(1, 3_200, 32) if any(update.blobs[0][at:][:31])
        ],
        "seed": [update.seed],
        "paths": [str(hospital.settings.home).encode(), str(table).encode(), table.name.encode().rjust(8, b"/")],
    }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    with LocalChain() as chain, receiving() as receiver:
        made = start(chain, tmp_path_factory.mktemp("task"), HOSPITALS, masked=True)
        hospital = play(made, receiver)
        yield Traced(made, hospital, receiver, needles_of(hospital, made.settings[0].data))


def test_both_processes_are_in_one_trace_under_the_aggregators_root(scene: Traced) -> None:
    spans, hospital = scene.receiver, scene.hospital
    root = spans.named("round 0")
    of_round = {one.name: one for one in spans.spans if one.trace == root.trace}
    assert {name for name, one in of_round.items() if one.of["consilium.role"] == "hospital"} == {
        "train", "share masks", "commit points", "sign", "upload",
    } | ({"store get"} & of_round.keys())  # fmt: skip
    assert {name for name, one in of_round.items() if one.of["consilium.role"] == "aggregator"} == {
        "round 0", "phase committing", "phase uploading", "relay commitments", "send commitUpdates",
        "await commitUpdates",
    }  # fmt: skip
    relayed, awaited = of_round["relay commitments"], of_round["await commitUpdates"]
    assert {of_round[name].parent for name in ("train", "sign", "upload", "phase committing", "relay commitments")} == {
        root.id
    }
    assert awaited.parent == of_round["send commitUpdates"].parent == relayed.id
    assert (relayed.facts["consilium.hospitals"], relayed.facts["consilium.round"]) == (HOSPITALS, 0)
    assert awaited.facts["consilium.gas"] == scene.made.aggregator.connection.transactions.gas_of(
        str(awaited.facts["consilium.transaction"])
    )
    assert of_round["train"].of["consilium.account"] == hospital.ledger.address
    assert of_round["train"].seconds > 0
    (read,) = [one for one in spans.spans if one.name == "read data"]
    assert read.trace != root.trace  # before any round


def test_nothing_of_the_rows_is_in_the_spans(scene: Traced) -> None:
    assert all(scene.needles.values())
    assert search(scene.receiver.raw, scene.needles) == set()
    for kind, some in scene.needles.items():  # the search would find each
        assert search([*scene.receiver.raw, b"." + some[-1]], scene.needles) >= {kind}


def test_a_node_whose_collector_is_away_answers_all_the_same(scene: Traced) -> None:
    settings = TracingSettings(endpoint=f"http://127.0.0.1:{free_port()}")
    own = scene.made.settings[0].model_copy(update={"tracing": settings})
    with own.traced("hospital", own.task):
        assert scene.made.ask(scene.made.node(0), Part.UPLOAD).code is ReplyCode.OK
