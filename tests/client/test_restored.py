"""Restored homes. A node goes on from a current copy. With an older copy, it loses only the later records: nothing
leaves twice, and all that has left is charged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from chain_driver import LocalChain
from consilium_chain.keystore import LIGHT_SCRYPT_N, open_keystore, write_keystore
from consilium_chain.ledger.structs import Phase, RoundState, SlashReason
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.transport_keys import TransportKey
from consilium_client.errors import AuditError, NodeError, PrivacyError
from consilium_client.hospital.audit_log import (
    AUDIT_FILE,
    AuditLog,
    Export,
    export,
    parse_export,
    read_log,
    require_extends,
)
from consilium_client.voter.node import VoterNode
from consilium_core.errors import KeystoreError
from consilium_core.private_files import write_private_file
from eth_account import Account
from hospital_driver import Committing, has_point_of, start
from raised_faults import raises_fault
from test_hospital_private import events, propose_private
from training_driver import ROWS
from voter_driver import FiledTask, voter_home


@pytest.fixture
def committing(local_chain: LocalChain, tmp_path: Path) -> Committing:
    return start(local_chain, tmp_path, 2, masked=False)


def copy_of(home: Path) -> Path:
    return Path(shutil.copytree(home, home.with_name(f"copy of {home.name}")))


def put_back(copy: Path, home: Path) -> None:
    """On a machine that has nothing else."""
    shutil.rmtree(home)
    shutil.copytree(copy, home)


# A hospital


def test_a_hospital_goes_on_in_its_round_from_a_copy_made_within_it(committing: Committing) -> None:
    home = committing.settings[0].home
    signed = committing.signed(committing.node(0))
    copy = copy_of(home)
    committing.relay(signed, committing.signed(committing.node(1)))
    put_back(copy, home)
    again = committing.node(0)
    assert committing.signed(again) == signed
    assert has_point_of(committing, committing.ask(again, Part.UPLOAD), signed)


def test_a_hospital_from_an_older_copy_is_charged_for_what_the_chain_has_of_it(
    local_chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = propose_private(local_chain, tmp_path)
    private.start(0), private.start(1)
    private.join(rows=ROWS).first_round().form().play_round()
    private.form()
    home = private.homes[0].home
    copy = copy_of(home)  # after the first round
    private.commit_all()
    assert private.phase is Phase.UPLOADING
    before = private.spent(0).charges()
    put_back(copy, home)
    assert [one.round for one in private.spent(0).charges()] == [1]
    capsys.readouterr()
    node = private.start(0)
    assert private.spent(0).charges() == before
    (told,) = events(capsys, "charged-late")
    assert told["rounds"] == [2]
    with raises_fault(NodeError, "PendingUpdateLost"):
        node.updates.of(2)
    private.start(0)  # what is charged is not charged again
    assert events(capsys, "charged-late") == []
    assert private.spent(0).charges() == before

    ledger = home / "privacy.jsonl"
    ledger.unlink()
    private.start(0)
    assert private.spent(0).charges() == before
    ledger.write_bytes(ledger.read_bytes()[:-20])  # as a copy that was made while it was written
    private.start(0)
    assert private.spent(0).charges() == before
    ledger.write_bytes(b"no ledger\n" + ledger.read_bytes())
    with raises_fault(PrivacyError, "EpsilonLedgerInvalid"):
        private.start(0)


def test_of_two_updates_the_one_that_is_not_committed_to_never_leaves(committing: Committing) -> None:
    """A copy from before the signature signs another update; the aggregator has the first one, and commits that."""
    home = committing.settings[0].home
    committing.node(0)
    copy = copy_of(home)
    first = committing.signed(committing.node(0))
    put_back(copy, home)
    again = committing.node(0)
    assert committing.signed(again).point_hashes != first.point_hashes
    committing.relay(first, committing.signed(committing.node(1)))
    with raises_fault(NodeError, "PendingUpdateLost"):
        committing.ask(again, Part.UPLOAD)
    assert committing.ask(committing.node(1), Part.UPLOAD).code is ReplyCode.OK


def test_a_masked_hospital_without_its_encryption_key_is_told_to_restore_it(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    committing = start(local_chain, tmp_path, 3, masked=True)
    (key,) = (committing.settings[0].home / "masking").rglob("encryption.key")
    kept = key.read_bytes()
    key.unlink()
    with raises_fault(NodeError, "EncryptionKeyLost", match="backup"):
        committing.node(0).join()
    key.write_bytes(kept)
    committing.node(0).join()


def test_an_audit_log_from_an_older_copy_does_not_pass_for_the_one_that_went_on(tmp_path: Path) -> None:
    account, home = Account.create(), tmp_path / "home"
    home.mkdir()

    def export_after(what: bytes) -> Export:
        AuditLog(home / AUDIT_FILE).leaving("trial", "https://rpc.example", what, call="tick", contract=account.address)
        return parse_export(export(read_log(home / AUDIT_FILE), account, 1, account.address))

    export_after(b"1")
    copy = copy_of(home)
    older = export_after(b"2")
    put_back(copy, home)
    newer = export_after(b"3")
    with raises_fault(AuditError, "AuditRewritten", match="is missing or different"):
        require_extends(newer, older)


def test_key_files_that_are_put_back_open_to_others_are_not_taken(tmp_path: Path) -> None:
    account, home = Account.create(), tmp_path / "home"
    write_private_file(home / "password", "secret\n")
    write_keystore(home / "key.json", account, "secret", LIGHT_SCRYPT_N)
    copy = copy_of(home)
    for name in ("key.json", "password"):
        put_back(copy, home)
        (home / name).chmod(0o644)
        with pytest.raises(KeystoreError, match="chmod 600"):
            open_keystore(home / "key.json", home / "password")
    put_back(copy, home)
    assert open_keystore(home / "key.json", home / "password").address == account.address


# A voter


@pytest.fixture
def chain() -> Iterator[LocalChain]:
    with LocalChain() as made:
        yield made


def test_a_voter_reveals_from_its_copy_and_loses_what_an_older_one_does_not_have(
    chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = FiledTask(chain, tmp_path)
    home, account = voter_home(chain, tmp_path / "voter")
    settings = home.node_settings(task.task, account.folder_name(task.task))

    def node() -> VoterNode:
        made = VoterNode(settings, account)
        made.join()
        return made

    node()
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    task.to_drawing().draw()
    node().poll()  # commits
    copy = copy_of(home.folder)
    put_back(copy, home.folder)
    node().poll()  # reveals
    task.operator.phases.settle(task.task, 0)
    assert task.events("Slashed") == []

    task.to_drawing().draw()
    node().poll()
    put_back(copy, home.folder)  # of the round before
    capsys.readouterr()
    node().poll()
    assert len(events(capsys, "ballot-lost")) == 1
    task.pass_deadline()
    task.tick()
    (slash,) = task.events("Slashed")
    assert (slash["account"], slash["reason"]) == (account.address, SlashReason.NOT_REVEALED)
    part = slash["amount"] / task.params.voter_bond
    assert part == task.params.not_revealed_slash_bps / 10_000


def test_a_disk_that_takes_and_gives_nothing_for_a_while_costs_no_vote_and_no_bond(
    chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = []

    class Counting(VoterNode):
        def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
            judged.append(round_)
            return super().scores(round_, round_state)

    task = FiledTask(chain, tmp_path)
    home, account = voter_home(chain, tmp_path / "voter")
    node = Counting(home.node_settings(task.task, account.folder_name(task.task)), account)
    node.join()
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    task.to_drawing().draw()
    capsys.readouterr()

    kept = node.ballots.path(0)
    in_the_way = kept.with_name(kept.name + ".draft")
    in_the_way.mkdir(parents=True)
    for _ in range(3):
        node.poll()
    assert len(events(capsys, "round-failed")) == 1  # told once
    in_the_way.rmdir()
    node.poll()
    assert (judged, task.phase) == ([0], Phase.REVEALING)  # judged once

    aside = kept.rename(kept.with_name("aside"))
    for _ in range(2):
        node.poll()
    kept.mkdir()  # something is there, and cannot be read
    for _ in range(2):
        node.poll()
    kept.rmdir()
    aside.rename(kept)
    said = capsys.readouterr().out
    assert (said.count('"ballot-lost"'), said.count('"round-failed"')) == (1, 1)
    node.poll()
    task.operator.phases.settle(task.task, 0)
    assert task.events("Slashed") == []
