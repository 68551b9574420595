"""A hospital signs its commitment for others, sends it itself only where nobody relays it, and never signs two."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore, write_private_file
from consilium_chain.ledger import Ledger
from consilium_chain.messages import ReplyCode
from consilium_chain.proposal import task_params
from consilium_chain.relaying import SignedUpdate, parse_signed_update
from consilium_chain.task_spec import parse_task_spec
from consilium_chain.views import Phase, Role, RoundState
from consilium_cli.demo.datasets import deal_wdbc, write_csv
from consilium_cli.demo.task_file import TaskSettings, task_toml
from consilium_client.config import FlowerSettings, HospitalSettings
from consilium_client.errors import PendingUpdateLost
from consilium_client.hospital import HospitalNode
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_zk.blobs import parse_blob
from consilium_zk.curve import to_eip2537
from consilium_zk.kzg import commit
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eth_account.signers.local import LocalAccount

WINDOW = 10_000  # seconds of chain time: none passes but by `pass_time`
HOSPITALS = 2


@dataclass
class Committing:
    """A task in its statistics round's Committing phase, and what its hospitals' nodes run on."""

    chain: LocalChain
    aggregator: Ledger
    task: int
    settings: list[HospitalSettings]

    def node(self, index: int, **changes: Any) -> HospitalNode:
        """A process of this hospital: at first as after joining, later as after a restart."""
        node = HospitalNode(self.settings[index].model_copy(update=changes))
        node.index = index
        return node

    @property
    def round_state(self) -> RoundState:
        return self.aggregator.round_state(self.task, 0)

    def look(self, node: HospitalNode) -> None:
        """One turn of the node's own loop."""
        node._take_part(self.aggregator.state(self.task))

    def ask(self, node: HospitalNode, round_: int = 0) -> RoundReply:
        contract = bytes.fromhex(self.aggregator.deployment.tasks.removeprefix("0x"))
        return node.answer(RoundRequest(contract, self.task, round_))

    def signed(self, node: HospitalNode) -> SignedUpdate:
        reply = self.ask(node)
        assert (reply.code, list(reply.blobs)) == (ReplyCode.SIGNED, [])
        return parse_signed_update(reply.update, node.ledger.address, 1)

    def relay(self, *updates: SignedUpdate) -> None:
        self.aggregator.commit_updates(self.task, 0, updates)

    def set_ether(self, node: HospitalNode, wei: int) -> None:
        self.chain.rpc("anvil_setBalance", node.ledger.address, hex(wei))


def hospital_settings(chain: LocalChain, store: ArtifactStore, task: int, home: Path, data: Path) -> HospitalSettings:
    hospital = chain.funded()
    account = hospital.connection.account
    assert isinstance(account, LocalAccount)
    write_private_file(home / "password", "secret\n")
    write_keystore(home / "key.json", account, "secret", scrypt_n=LIGHT_SCRYPT_N)
    chain.deployment.write(home / "deployment.json")
    key = ec.generate_private_key(ec.SECP384R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_private_file(home / "transport.key", key.decode())
    return HospitalSettings(
        home=home, chain_url=chain.node.url, deployment=home / "deployment.json", artifacts=home.parent / "artifacts",
        keystore=home / "key.json", password_file=home / "password", task=task, data=data,
        flower=FlowerSettings(superlink="none", ca_certificate=home / "none", transport_key=home / "transport.key"),
    )  # fmt: skip


@pytest.fixture
def committing(local_chain: LocalChain, tmp_path: Path) -> Committing:
    """Hospitals have no ether left."""
    data = deal_wdbc(HOSPITALS, 1, 0)
    windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), WINDOW)
    raw = task_toml(data, TaskSettings(rounds=1, cohorts=1, windows=windows)).encode()
    store = ArtifactStore(tmp_path / "artifacts")
    aggregator = local_chain.staked(Role.AGGREGATOR, 1)[0]
    params = task_params(parse_task_spec(raw), store.put_file(raw), aggregator.address)
    task = local_chain.treasury.propose(params)
    aggregator.join_as_aggregator(task)
    local_chain.staked(Role.VOTER, 1)[0].join_as_voter(task)
    settings = []
    for index, frame in enumerate(data.hospitals):
        write_csv(frame, tmp_path / f"{index}.csv")
        settings.append(hospital_settings(local_chain, store, task, tmp_path / f"h{index}", tmp_path / f"{index}.csv"))
    made = Committing(local_chain, aggregator, task, settings)
    for own in settings:
        node = HospitalNode(own)
        node.join()
        made.set_ether(node, 0)
    assert aggregator.state(task).phase is Phase.COMMITTING
    return made


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """What nodes have told since the last call of how commitments went."""

    def read() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [line for line in lines if line["event"] not in ("joined", "training", "uploading")]

    return read


Told = Callable[[], list[dict[str, Any]]]


def test_hospitals_without_ether_are_committed_and_upload(committing: Committing, told: Told) -> None:
    nodes = [committing.node(index) for index in range(HOSPITALS)]
    committing.relay(*(committing.signed(node) for node in nodes))
    assert committing.aggregator.state(committing.task).phase is Phase.UPLOADING
    points = committing.aggregator.committed_points(committing.task, 0)
    for node in nodes:
        reply = committing.ask(node)
        assert reply.code is ReplyCode.OK
        assert [commit(parse_blob(blob)) for blob in reply.blobs] == points[node.ledger.address]
        assert committing.ask(node) == reply  # a lost upload can be asked for again
        committing.look(node)
        committing.look(node)
    assert [(line["event"], line["by"]) for line in told()] == [("committed", "relay")] * HOSPITALS


def test_upload_is_kept_back_until_commitments_are_closed(committing: Committing) -> None:
    first, second = (committing.node(index) for index in range(HOSPITALS))
    replies: list[RoundReply] = []
    update = committing.signed(first)
    asking = threading.Thread(target=lambda: replies.append(committing.ask(first)))
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
    assert committing.signed(after) == signed  # a node's first answer, whatever was asked of the one before
    (blob,) = committing.ask(after).blobs
    assert to_eip2537(commit(parse_blob(blob))) == signed.points


def test_restarted_node_whose_update_is_damaged_signs_no_other_one(committing: Committing) -> None:
    committing.signed(committing.node(0))
    (file,) = (committing.settings[0].home / "pending").rglob("round-0")
    file.write_bytes(file.read_bytes()[:-1])
    again = committing.node(0)
    with pytest.raises(PendingUpdateLost):
        committing.ask(again)
    assert committing.ask(again).code is ReplyCode.SAT_OUT
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
    assert (line["event"], line["by"], line["gas"] > 100_000) == ("committed", "own", True)
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
    assert (line["event"], line["round"], line["error"]) == ("not-committed", 0, "TransactionRejected")
    assert (line["call"], line["wei"]) == ("commitUpdate", "0")
    committing.relay(update)  # late is not too late
    committing.look(node)
    assert [(line["event"], line["by"]) for line in told()] == [("committed", "relay")]


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
    committing.aggregator.tick(committing.task)
    assert committing.aggregator.state(committing.task).phase is Phase.UPLOADING
    assert committing.ask(other).code is ReplyCode.OK
    assert committing.ask(left_out).code is ReplyCode.SAT_OUT


def test_hospital_refuses_other_tasks_and_sits_out_other_rounds(committing: Committing) -> None:
    node = committing.node(0)
    contract = bytes.fromhex(committing.aggregator.deployment.tasks.removeprefix("0x"))
    for request in (RoundRequest(secrets.token_bytes(20), committing.task, 0), RoundRequest(contract, 2**40, 0)):
        assert node.answer(request).code is ReplyCode.REFUSED
    assert committing.ask(node, 2).code is ReplyCode.SAT_OUT
    assert not list((committing.settings[0].home / "pending").rglob("round-*"))
