"""A node starts only work that its owner allowed: not another task file, a task outside the policy, or a round outside
the hours or while paused. On a real chain.
"""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import threading
from pathlib import Path

import pytest
import tomli_w
from chain_driver import LocalChain
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.machine import Step
from consilium_chain.rpc.local_node import free_port
from consilium_client.errors import OwnersRefusal
from consilium_client.hospital.relay_link import CHECK_INTERVAL
from consilium_client.hospital.transport_key import make_transport_key
from consilium_server.certificates import ensure_certificates
from hospital_driver import OPEN_POLICY, Committing, start
from raised_faults import raises_fault


@pytest.fixture(scope="module")
def committing(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Committing:
    return start(local_chain, tmp_path_factory.mktemp("sits-out"), 3, masked=False)


def hours_without_now() -> str:
    """Two hours that begin in three."""
    now = datetime.datetime.now()
    return f"{now + datetime.timedelta(hours=3):%H:%M}-{now + datetime.timedelta(hours=5):%H:%M}"


def policy(committing: Committing, **rules: object) -> Path:
    path = committing.settings[0].policy.with_name("other-policy.toml")
    path.write_text(tomli_w.dumps(OPEN_POLICY | rules))
    return path


def told(capsys: pytest.CaptureFixture[str], event: str) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if f'"event": "{event}"' in line]


def test_a_node_starts_no_other_task_file_than_the_one_approved(committing: Committing) -> None:
    with raises_fault(OwnersRefusal, "ApprovalStale", match=committing.settings[0].approved):
        committing.node(0, approved="00" * 32)


def test_a_node_starts_nothing_that_its_policy_does_not_allow(committing: Committing) -> None:
    with raises_fault(OwnersRefusal, "NotAllowed", match="does not list its model logistic"):
        committing.node(0, policy=policy(committing, models=["mlp"]))
    with raises_fault(OwnersRefusal, "PolicyInvalid"):
        committing.node(0, policy=committing.settings[0].policy.with_name("none.toml"))


def test_a_paused_hospital_begins_no_round_whoever_asks(
    committing: Committing, capsys: pytest.CaptureFixture[str]
) -> None:
    node = committing.node(0)
    paused = committing.settings[0].home / "paused"
    paused.touch()
    try:
        assert committing.ask(node, Part.SIGNED).code is ReplyCode.SAT_OUT
        committing.look(node)
        assert not committing.round_state.committed & 1
        (line,) = told(capsys, "sits-out")
        assert '"why": "paused"' in line
    finally:
        paused.unlink()
    assert committing.ask(node, Part.SIGNED).code is ReplyCode.SAT_OUT  # this round is over for it
    assert committing.ask(committing.node(0), Part.SIGNED).code is ReplyCode.SIGNED


def test_outside_its_hours_a_hospital_begins_no_round(
    committing: Committing, capsys: pytest.CaptureFixture[str]
) -> None:
    node = committing.node(1, policy=policy(committing, hours=hours_without_now()))
    assert committing.ask(node, Part.SIGNED).code is ReplyCode.SAT_OUT
    (line,) = told(capsys, "sits-out")
    assert '"why": "hours"' in line
    assert committing.ask(committing.node(1), Part.SIGNED).code is ReplyCode.SIGNED


def test_what_was_begun_before_a_pause_is_handed_over(committing: Committing) -> None:
    node = committing.node(2)
    signed = committing.signed(node)
    paused = committing.settings[2].home / "paused"
    paused.touch()
    try:
        again = committing.node(2)  # after a restart, too
        assert committing.signed(again) == signed
    finally:
        paused.unlink()


def test_a_superlink_that_cannot_be_reached_is_told_once_and_again_when_it_can(
    committing: Committing, capsys: pytest.CaptureFixture[str]
) -> None:
    node = committing.node(0)
    made = ensure_certificates(committing.settings[0].home / "link")
    capsys.readouterr()

    def look(port: int, now: float) -> list[str]:
        flower = node.settings.flower.model_copy(
            update={"superlink": f"127.0.0.1:{port}", "ca_certificate": made.authority}
        )
        node.link.settings = node.settings.model_copy(update={"flower": flower})
        if Step.CHECK_LINK in node.due()[1]:
            node.link.check(now)
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        return [line["event"] + (" " + line["why"][:12] if "why" in line else "") for line in lines]

    closed, key = free_port(), node.settings.flower.transport_key
    kept = key.read_bytes()
    make_transport_key(key)
    assert look(closed, 0.0) == [f"superlink-unreachable {str(key)[:12]}"]  # is not the one announced
    key.unlink()
    assert look(closed, CHECK_INTERVAL) == ["superlink-unreachable the node key"]  # is no key
    key.write_bytes(kept)
    assert look(closed, 2 * CHECK_INTERVAL) == ["superlink-unreachable nothing list"]
    assert look(closed, 3 * CHECK_INTERVAL - 1) == []  # not yet again
    assert look(closed, 3 * CHECK_INTERVAL) == []  # told before
    with socket.create_server(("127.0.0.1", 0)) as listening:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)

        def answer() -> None:
            plain, _ = listening.accept()
            context.wrap_socket(plain, server_side=True).close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert look(listening.getsockname()[1], 4 * CHECK_INTERVAL) == ["superlink-reached"]
        thread.join()
    node.link.requested = 0  # a request came: nothing is looked at any more
    assert look(closed, 5 * CHECK_INTERVAL) == []
