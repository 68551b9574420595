"""A hospital signs its commitment for others, sends it itself only where nobody relays it, and never signs two."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Phase
from consilium_chain.messages import Part, ReplyCode
from consilium_client.errors import NodeError, OwnersRefusal
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_zk.blobs import parse_blob
from consilium_zk.kzg import commit
from hospital_driver import OPEN_POLICY, WINDOW, Committing, has_point_of, start
from raised_faults import raises_fault

HOSPITALS = 2


@pytest.fixture
def committing(local_chain: LocalChain, tmp_path: Path) -> Committing:
    return start(local_chain, tmp_path, HOSPITALS, masked=False)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """The nodes' events about commitments since the last call."""

    def read() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [line for line in lines if line["event"] not in ("joined", "training", "uploading")]

    return read


Told = Callable[[], list[dict[str, Any]]]


def test_hospitals_without_ether_are_committed_and_upload(committing: Committing, told: Told) -> None:
    nodes = [committing.node(index) for index in range(HOSPITALS)]
    committing.relay(*(committing.signed(node) for node in nodes))
    assert committing.aggregator.tasks.state(committing.task).phase is Phase.UPLOADING
    hashes = committing.aggregator.record.point_hashes(committing.task, 0)
    for node in nodes:
        reply = committing.ask(node, Part.UPLOAD)
        assert reply.code is ReplyCode.OK
        made, account = [commit(parse_blob(blob)) for blob in reply.blobs], node.ledger.address
        assert reply.body == b"".join(made)
        assert node.ledger.messages.point_hashes(committing.task, 0, account, made) == hashes[account]
        assert committing.ask(node, Part.UPLOAD) == reply  # a lost upload can be asked for again
        committing.look(node)
        committing.look(node)
    assert [(line["event"], line["by"]) for line in told()] == [("committed", "relay")] * HOSPITALS


def test_upload_is_kept_back_until_commitments_are_closed(committing: Committing) -> None:
    first, second = (committing.node(index) for index in range(HOSPITALS))
    replies: list[RoundReply] = []
    update = committing.signed(first)
    asking = threading.Thread(target=lambda: replies.append(committing.ask(first, Part.UPLOAD)))
    asking.start()
    committing.relay(update)
    committing.chain.mine(20)
    assert replies == []
    committing.relay(committing.signed(second))
    asking.join(60)
    assert [reply.code for reply in replies] == [ReplyCode.OK]


def test_restarted_node_signs_no_other_update(committing: Committing) -> None:
    signed = committing.signed(committing.node(0))
    again = committing.node(0)
    assert committing.signed(again) == signed
    committing.look(again)
    assert committing.signed(committing.node(0)) == signed
    committing.relay(signed, committing.signed(committing.node(1)))
    after = committing.node(0)
    assert committing.signed(after) == signed  # to a request that comes late
    assert has_point_of(committing, committing.ask(after, Part.UPLOAD), signed)


def test_restarted_node_whose_update_is_damaged_signs_no_other_one(committing: Committing) -> None:
    committing.signed(committing.node(0))
    (file,) = (committing.settings[0].home / "pending").rglob("round-0")
    file.write_bytes(file.read_bytes()[:-1])
    again = committing.node(0)
    with raises_fault(NodeError, "PendingUpdateLost"):
        committing.ask(again, Part.SIGNED)
    assert committing.ask(again, Part.SIGNED).code is ReplyCode.SAT_OUT
    assert not list(file.parent.glob("writing"))


def test_hospital_that_nobody_relays_sends_its_own(committing: Committing, told: Told) -> None:
    node = committing.node(0)
    committing.set_ether(node, 10**18)
    update = committing.signed(node)
    committing.look(node)
    committing.chain.pass_time(WINDOW // 4)
    committing.look(node)
    assert (committing.round_state.committed, told()) == (0, [])
    committing.chain.pass_time(WINDOW // 4)
    committing.look(node)
    assert committing.round_state.committed == 0b01
    (line,) = told()
    assert (line["event"], line["by"], line["gas"] > 50_000) == ("committed", "own", True)
    committing.look(node)
    assert told() == []
    committing.relay(update, committing.signed(committing.node(1)))  # a relay that comes after all harms nobody
    assert committing.round_state.committed == 0b11


def test_hospital_that_nobody_relays_and_without_ether_says_so_once_and_lives(
    committing: Committing, told: Told
) -> None:
    node = committing.node(0)
    update = committing.signed(node)
    committing.chain.pass_time(WINDOW // 2)
    for _ in range(3):
        committing.look(node)
    (line,) = told()
    assert (line["event"], line["round"], line["error"]) == ("not-committed", 0, "EtherMissing")
    assert (line["call"], line["wei"]) == ("commitUpdate", "0")
    committing.relay(update)  # late is not too late
    committing.look(node)
    assert [(line["event"], line["by"]) for line in told()] == [("committed", "relay")]


def test_training_on_the_same_rows_from_the_same_base_gives_another_update(committing: Committing) -> None:
    """Else two tasks' updates would differ by a row that is in one of them alone."""
    node = committing.node(0)
    base = node.training.record.base(1)
    first, again = (node.local_update(1, base) for _ in range(2))
    assert not np.array_equal(first, again)
    assert np.linalg.norm(first - again) < np.linalg.norm(first)


def test_a_node_does_not_start_on_fewer_rows_than_its_policy_wants(committing: Committing) -> None:
    settings = committing.settings[0]
    rows = committing.node(0).training.examples.rows
    settings.policy.write_text(tomli_w.dumps(OPEN_POLICY | {"min_rows": rows}))
    committing.node(0)
    with raises_fault(OwnersRefusal, "NotAllowed", match=f"below `min_rows` {rows}"):
        committing.node(0, held_out=0.5)


def test_hospital_that_commits_on_its_own_waits_for_nobody(committing: Committing, told: Told) -> None:
    node = committing.node(0, commits="own")
    committing.set_ether(node, 10**18)
    committing.look(node)
    assert (committing.round_state.committed, told()) == (0, [])  # not before the aggregator has reached it
    update = committing.signed(node)
    committing.look(node)
    assert committing.round_state.committed == 0b01
    assert [line["by"] for line in told()] == ["own"]
    committing.relay(update, committing.signed(committing.node(1)))
    assert committing.round_state.committed == 0b11


def test_hospital_that_was_not_committed_uploads_nothing(committing: Committing) -> None:
    left_out, other = (committing.node(index) for index in range(HOSPITALS))
    committing.signed(left_out)
    committing.relay(committing.signed(other))
    committing.chain.pass_time(WINDOW + 1)
    committing.aggregator.phases.tick(committing.task)
    assert committing.aggregator.tasks.state(committing.task).phase is Phase.UPLOADING
    assert committing.ask(other, Part.UPLOAD).code is ReplyCode.OK
    assert committing.ask(left_out, Part.UPLOAD).code is ReplyCode.SAT_OUT


def test_hospital_refuses_other_tasks_and_sits_out_other_rounds(committing: Committing) -> None:
    node = committing.node(0)
    contract = bytes.fromhex(committing.aggregator.deployment.tasks.removeprefix("0x"))
    for place in ((secrets.token_bytes(20), committing.task), (contract, 2**40)):
        assert node.answer(RoundRequest(*place, 0, Part.SIGNED)).code is ReplyCode.REFUSED
    assert committing.ask(node, Part.SIGNED, 2).code is ReplyCode.SAT_OUT
    assert not list((committing.settings[0].home / "pending").rglob("round-*"))
