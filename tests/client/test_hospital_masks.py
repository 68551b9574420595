"""Hospitals' nodes in a masked round on a real chain: their sum is had, none of their updates, and who asks for more
than one set of survivors gets nothing.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chain_driver import LocalChain, refused
from consilium_chain.artifacts.store import CHECK_BITS
from consilium_chain.ledger.structs import DOES_NOT_MATCH, Phase, members
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.disputes import find_cheaters
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_client.data.standardise import sums_of
from consilium_client.errors import NodeError
from consilium_client.hospital.masking import Accused
from consilium_client.hospital.node import HospitalNode
from consilium_core.errors import ArtifactMissing
from consilium_core.kinds import of_kind
from consilium_server.aggregator.node import Aggregator
from consilium_server.aggregator.unmasking import CohortAnswers, cohort_answers
from consilium_server.aggregator.uploads import Answer, CohortSum, Contribution, Upload, parse_upload_body, sum_cohort
from consilium_server.errors import SumMismatch
from consilium_zk.blobs import parse_blob
from consilium_zk.disputes import Reason
from consilium_zk.errors import MaskingTooSmall, SharesInvalid
from consilium_zk.key_exchange import public_key
from consilium_zk.kzg import commit
from consilium_zk.packing import unpack
from consilium_zk.quantise import Quantiser
from consilium_zk.secret_shares import BYTES_PER_ENTRY, ShareBundle, share_bundle_bytes
from hospital_driver import WINDOW, Committing, start
from raised_faults import raises_fault

Make = Callable[[int], Committing]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("masks")


@pytest.fixture(scope="module")
def begun(local_chain: LocalChain, folder: Path) -> dict[int, Committing]:
    """By number of hospitals."""
    return {number: start(local_chain, folder / str(number), number, masked=True, exact=True) for number in (3, 4, 5)}


@pytest.fixture
def make(local_chain: LocalChain, begun: dict[int, Committing], folder: Path, tmp_path: Path) -> Iterator[Make]:
    """Undoes a test's changes on the chain and in the nodes' folders."""
    shutil.copytree(folder, tmp_path / "before")
    with local_chain.undone():
        yield begun.__getitem__
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "before", folder)


def upload(round_: Committing, node: HospitalNode) -> Upload:
    reply = round_.ask(node, Part.UPLOAD)
    assert reply.code is ReplyCode.OK
    return Upload([parse_blob(blob) for blob in reply.blobs], *parse_upload_body(reply.body, 1))


def uploads(round_: Committing, nodes: Sequence[HospitalNode]) -> dict[int, Upload]:
    """Everybody signs, is committed, and uploads."""
    round_.relay(*(round_.signed(node) for node in nodes))
    assert round_.aggregator.tasks.state(round_.task).phase is Phase.UPLOADING
    return {node.index: upload(round_, node) for node in nodes}


def fix(round_: Committing, survivors: Sequence[int]) -> CohortAnswers:
    round_.aggregator.aggregator.fix_survivors(round_.task, 0, sum(1 << index for index in survivors))
    cohort = round_.aggregator.tasks.cohort_members(round_.task, 0, 0)
    return cohort_answers(round_.aggregator, round_.store, round_.task, 0, cohort, round_.round_state)


def answer(round_: Committing, node: HospitalNode) -> Answer:
    reply = round_.ask(node, Part.ANSWER)
    assert reply.code is ReplyCode.ANSWERED
    return Answer(reply.body)


def summed(round_: Committing, parts: dict[int, Upload], answers: CohortAnswers) -> CohortSum:
    contributions = [Contribution(part, 1) for _, part in sorted(parts.items())]
    residue = answers.residue()
    assert residue is not None
    return sum_cohort(0, contributions, [secrets.randbits(CHECK_BITS)], residue)


def assert_is_sum_of(total: CohortSum, nodes: Sequence[HospitalNode]) -> None:
    spec = nodes[0].task.spec
    lanes = unpack(total.blobs, spec.statistics_values, spec.statistics_layout, len(nodes))
    quantiser = Quantiser(STATISTICS_BITS, STATISTICS_RANGE)
    expected = sum(quantiser.quantise(sums_of(node.training.examples, spec.data), None) for node in nodes)
    assert (lanes == expected).all()


def test_the_sum_is_had_and_no_upload_is_what_was_committed_to(make: Make) -> None:
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    parts = uploads(round_, nodes)
    hashes = round_.aggregator.record.point_hashes(round_.task, 0)
    for node in nodes:
        part, account = parts[node.index], node.ledger.address
        assert node.ledger.messages.point_hashes(round_.task, 0, account, part.points) == hashes[account]
        assert commit(part.blobs[0]) != part.points[0]
    answers = fix(round_, [0, 1, 2])
    assert not answers.is_over(0)
    answers.take({node.index: answer(round_, node) for node in nodes})
    assert answers.is_over(0)
    assert_is_sum_of(summed(round_, parts, answers), nodes)


def test_points_are_kept_back_until_no_reorganisation_opens_commitments_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_client.hospital.context.confirmations_of", lambda chain_id: 50)
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    round_.relay(*(round_.signed(node) for node in nodes))
    closed = round_.aggregator.record.phase_block(round_.task, 0, Phase.UPLOADING)
    shown_at: list[int] = []

    def ask() -> None:
        assert round_.ask(nodes[0], Part.UPLOAD).code is ReplyCode.OK
        shown_at.append(round_.aggregator.connection.blocks.number())

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(1)
    assert shown_at == []
    round_.chain.mine(60)
    asking.join(60)
    (block,) = shown_at
    assert closed is not None
    assert block >= closed + 49


def test_a_restarted_hospital_masks_and_answers_as_before(make: Make) -> None:
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    parts = uploads(round_, nodes)
    again = round_.node(1)
    reply = round_.ask(again, Part.UPLOAD)
    assert Upload([parse_blob(blob) for blob in reply.blobs], *parse_upload_body(reply.body, 1)) == parts[1]
    answers = fix(round_, [0, 1, 2])
    assert answer(round_, round_.node(1)) == answer(round_, nodes[1])
    answers.take({index: answer(round_, round_.node(index)) for index in range(3)})
    assert_is_sum_of(summed(round_, parts, answers), nodes)


def test_a_hospital_reads_what_was_dealt_once_a_round(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look reads the commitments of all of the task from the chain: 60 ms of CPU where there are 88."""
    round_, read = make(3), []

    def counted(*given: Any) -> dict[int, ShareBundle]:
        read.append(given[3])
        return read_share_bundles(*given)

    monkeypatch.setattr("consilium_client.hospital.masking.read_share_bundles", counted)
    nodes = [round_.node(index) for index in range(3)]
    uploads(round_, nodes)
    fix(round_, [0, 1, 2])
    first = [answer(round_, node) for node in nodes]
    assert read == [0, 0, 0]
    assert [answer(round_, round_.node(index)) for index in range(3)] == first


def test_a_hospital_that_dropped_out_after_its_commitment_is_masked_away(make: Make) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    parts = uploads(round_, nodes)
    dropped = parts.pop(2)
    answers = fix(round_, list(parts))
    assert round_.ask(nodes[2], Part.ANSWER).code is ReplyCode.SAT_OUT
    answers.take({index: answer(round_, nodes[index]) for index in parts})
    assert_is_sum_of(summed(round_, parts, answers), [nodes[index] for index in parts])
    # With all that it was given, the aggregator does not read what it has of the one that it left out.
    with pytest.raises(SumMismatch):
        summed(round_, parts | {2: dropped}, answers)


def test_a_hospital_that_answered_for_some_answers_for_no_others(make: Make) -> None:
    """As after a reorganisation, or where the chain that it sees is not the one that others see."""
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    uploads(round_, nodes)
    before = round_.chain.rpc("evm_snapshot")
    fix(round_, [0, 1, 2])
    first = answer(round_, nodes[0])
    assert round_.chain.rpc("evm_revert", before)
    fix(round_, [0, 1, 2, 3])
    for node in (nodes[0], round_.node(0)):
        with raises_fault(NodeError, "MaskingChanged", match="answered"):
            round_.ask(node, Part.ANSWER)
    assert answer(round_, nodes[1]) != first


def test_a_hospital_that_masked_with_some_masks_with_no_others(make: Make) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    signed = [round_.signed(node) for node in nodes]
    before = round_.chain.rpc("evm_snapshot")
    round_.relay(*signed)
    upload(round_, nodes[0])
    assert round_.chain.rpc("evm_revert", before)
    round_.relay(*signed[:3])
    round_.chain.pass_time(WINDOW + 1)
    round_.aggregator.phases.tick(round_.task)
    with raises_fault(NodeError, "MaskingChanged", match="masked"):
        round_.ask(round_.node(0), Part.UPLOAD)


def test_nobody_uploads_without_every_share_bundle(make: Make) -> None:
    """An aggregator that keeps one to itself could unmask by it, or let nobody unmask."""
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    signed = [round_.signed(node) for node in nodes]
    (of_kind(Path, round_.settings[0].artifacts[0]) / f"file-{signed[1].share_bundle.hex()}").unlink()
    round_.relay(*signed)
    for node in nodes:
        with pytest.raises(ArtifactMissing):
            round_.ask(node, Part.UPLOAD)


def test_a_hospital_that_commits_on_its_own_deals_on_chain(make: Make) -> None:
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    signed = [round_.signed(node) for node in nodes]
    (of_kind(Path, round_.settings[0].artifacts[0]) / f"file-{signed[0].share_bundle.hex()}").unlink()
    round_.set_ether(nodes[0], 10**18)
    round_.chain.pass_time(WINDOW // 2)
    round_.look(nodes[0])
    assert round_.round_state.committed == 0b001
    round_.relay(*signed[1:])
    parts = {node.index: upload(round_, node) for node in nodes}
    answers = fix(round_, [0, 1, 2])
    answers.take({node.index: answer(round_, node) for node in nodes})
    assert_is_sum_of(summed(round_, parts, answers), nodes)


def test_who_deals_nothing_sound_is_in_nobodys_masking(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    monkeypatch.setattr(nodes[3].updates, "secret_shares", lambda *_: b"no share bundle")
    signed = [round_.signed(node) for node in nodes]
    round_.relay(*signed)
    cohort = masked_cohort(round_.aggregator, round_.task, 0, 0b1111)
    assert sorted(read_share_bundles(round_.aggregator, round_.store, round_.task, 0, cohort)) == [0, 1, 2]
    parts = {index: upload(round_, nodes[index]) for index in range(3)}
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="hospital 3 sent no sound secret shares"):
        round_.ask(nodes[3], Part.UPLOAD)
    answers = fix(round_, [0, 1, 2])
    answers.take({index: answer(round_, nodes[index]) for index in range(3)})
    assert_is_sum_of(summed(round_, parts, answers), nodes[:3])


def test_nobody_masks_with_fewer_than_two_others(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    monkeypatch.setattr(nodes[2].updates, "secret_shares", lambda *_: b"no share bundle")
    round_.relay(*(round_.signed(node) for node in nodes))
    for node in nodes:
        with pytest.raises(MaskingTooSmall):
            round_.ask(node, Part.UPLOAD)


def isolated(make: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Committing, list[HospitalNode]]:
    """A chain node shows only three of five commitments. The contract itself would not go on with them."""
    round_ = make(5)
    nodes = [round_.node(index) for index in range(5)]
    round_.relay(*(round_.signed(node) for node in nodes))

    def shown(*asked: Any) -> dict[int, ShareBundle]:
        return {index: share_bundle for index, share_bundle in read_share_bundles(*asked).items() if index < 3}

    monkeypatch.setattr("consilium_client.hospital.masking.read_share_bundles", shown)
    monkeypatch.setattr("consilium_server.aggregator.round_work.read_share_bundles", shown)
    return round_, nodes


def test_a_hospital_gives_nothing_in_a_masking_below_its_cohorts_threshold(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who keeps commitments from it chooses with whom it masks."""
    round_, nodes = isolated(make, monkeypatch)
    masking, update = nodes[0].updates.masking, nodes[0].updates.of(0)
    assert masking is not None
    assert update is not None
    place = 0, 0b11111
    accused = Accused(*place, 0b00111, bytes(32), 1)
    for give in (
        lambda: round_.ask(nodes[0], Part.UPLOAD),
        lambda: masking.masked(*place, 0, update.seed, update.blobs),
        lambda: masking.answer(*place, 0b00111, 0, update.seed),
        lambda: masking.statement(*place, 0, update.blobs),
        lambda: masking.points(accused, 0, update.seed),
        lambda: masking.agreements(accused, 0, update.seed, {}),
    ):
        with pytest.raises(MaskingTooSmall) as caught:
            give()
        assert (caught.value.hospitals, caught.value.least, caught.value.size) == (3, 4, 5)
    assert not list(round_.settings[0].home.rglob("masked-0"))


def test_a_hospital_answers_for_no_fewer_survivors_than_its_cohorts_threshold(make: Make) -> None:
    round_ = make(5)
    nodes = [round_.node(index) for index in range(5)]
    uploads(round_, nodes)
    with refused("SurvivorsInvalid", survivors=0b00111):
        round_.aggregator.aggregator.fix_survivors(round_.task, 0, 0b00111)
    masking, update = nodes[0].updates.masking, nodes[0].updates.of(0)
    assert masking is not None
    assert update is not None
    with pytest.raises(MaskingTooSmall):
        masking.answer(0, 0b11111, 0b00111, 0, update.seed)
    with pytest.raises(MaskingTooSmall):
        masking.points(Accused(0, 0b11111, 0b00111, bytes(32), 1), 0, update.seed)
    assert not list(round_.settings[0].home.rglob("answered-0"))


def aggregator_of(round_: Committing, home: Path) -> Aggregator:
    settings = SimpleNamespace(
        connect=lambda: round_.aggregator, artifacts=round_.settings[0].artifacts, task=round_.task, home=home,
        shared_database=lambda: None,
    )  # fmt: skip
    return Aggregator(settings)  # type: ignore[arg-type]


def test_an_aggregator_asks_nobody_of_a_cohort_that_can_have_no_sum(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_, _ = isolated(make, monkeypatch)
    aggregator = aggregator_of(round_, tmp_path)
    assert aggregator.rounds.of(0).uploaders(round_.round_state) == 0


def test_an_aggregator_asks_for_uploads_of_those_who_mask(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make(5)
    nodes = [round_.node(index) for index in range(5)]
    monkeypatch.setattr(nodes[4].updates, "secret_shares", lambda *_: b"no share bundle")
    round_.relay(*(round_.signed(node) for node in nodes))
    aggregator = aggregator_of(round_, tmp_path)
    assert aggregator.rounds.of(0).uploaders(round_.round_state) == 0b01111


# Encryption keys at their worst


# The contract itself takes no key of zeros.
@pytest.mark.parametrize("key", [b"\xff" * 32, (1).to_bytes(32, "little")], ids=["ones", "identity"])
def test_an_encryption_key_that_is_none_leaves_out_its_hospital_alone(
    local_chain: LocalChain, tmp_path: Path, key: bytes
) -> None:
    round_ = start(local_chain, tmp_path, 4, masked=True, exact=True, encryption_keys={3: key})
    nodes = [round_.node(index) for index in range(4)]
    signed = [round_.signed(node) for node in nodes]
    aggregator = aggregator_of(round_, tmp_path / "aggregator")
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="not a point of the prime-order group"):
        aggregator.rounds.of(0).store_share_bundle(3, round_.store.get_file(signed[3].share_bundle), [0b1111])
    round_.relay(*signed)
    assert aggregator.rounds.of(0).uploaders(round_.round_state) == 0b0111
    parts = {index: upload(round_, nodes[index]) for index in range(3)}
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="hospital 3 sent no sound secret shares"):
        round_.ask(nodes[3], Part.UPLOAD)
    answers = fix(round_, [0, 1, 2])
    answers.take({index: answer(round_, nodes[index]) for index in range(3)})
    assert_is_sum_of(summed(round_, parts, answers), nodes[:3])
    assert find_cheaters(round_.aggregator, round_.store, round_.task, 0, round_.round_state) == {}


def test_an_encryption_key_that_is_anothers_costs_its_hospital_alone(local_chain: LocalChain, tmp_path: Path) -> None:
    key = secrets.token_bytes(32)
    both = dict.fromkeys((0, 3), public_key(key))
    round_ = start(local_chain, tmp_path, 4, masked=True, exact=True, encryption_keys=both)
    (file,) = round_.settings[0].home.rglob("encryption.key")  # only hospital 0 has the private key
    file.write_bytes(key)
    nodes = [round_.node(index) for index in range(4)]
    parts = uploads(round_, nodes)
    answers = fix(round_, [0, 1, 2, 3])
    answers.take({index: answer(round_, nodes[index]) for index in (1, 2, 3)})
    assert answers.residue() is None
    answers.take({0: answer(round_, nodes[0])})
    assert_is_sum_of(summed(round_, parts, answers), nodes)


# A dealer that cost its cohort the sum


@pytest.mark.parametrize("survivors", [0b1111, 0b0111], ids=["it uploads", "it keeps its upload"])
def test_a_dealer_whose_shares_cannot_be_opened_is_named_and_slashed(
    make: Make, tmp_path: Path, survivors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    dealt, size = nodes[3].updates.secret_shares, share_bundle_bytes(0)

    def nothing_sound(*place: Any) -> bytes:
        raw = dealt(*place)
        entries = [raw[start : start + BYTES_PER_ENTRY] for start in range(size, len(raw), BYTES_PER_ENTRY)]
        return raw[:size] + b"".join(bytes(80) + entry[80:] for entry in entries)

    monkeypatch.setattr(nodes[3].updates, "secret_shares", nothing_sound)
    parts = uploads(round_, nodes)
    ledger, task = round_.aggregator, round_.task
    aggregator = aggregator_of(round_, tmp_path)
    ledger.aggregator.fix_survivors(task, 0, survivors)
    given = {index: answer(round_, nodes[index]) for index in range(3)}  # the dealer is silent
    collected = SimpleNamespace(uploads=parts, answers=given, arrived=survivors, finished=survivors)
    aggregator.rounds.of(0).collection = collected  # type: ignore[assignment]
    assert aggregator.rounds.of(0).has_parts(ledger.tasks.state(task), round_.round_state)
    aggregator._attempt(Step.PUBLISH, ledger.tasks.state(task), round_.round_state)
    assert ledger.tasks.state(task).phase is Phase.DISPUTING
    assert round_.round_state.accused == 0b1111

    for _ in range(2):
        round_.chain.pass_time(WINDOW)
    assert find_cheaters(ledger, round_.store, task, 0, round_.round_state) == {3: Reason.FALSE_SHARE_BUNDLE}
    with round_.chain.undone():
        ledger.aggregator.name_cheaters(task, 0, 0b0001)
        assert round_.voter_node()._judged(ledger.tasks.state(task), round_.round_state) == (DOES_NOT_MATCH,)
    aggregator._attempt(Step.NAME, ledger.tasks.state(task), round_.round_state)
    assert round_.round_state.named == 0b1000
    assert round_.voter_node()._judged(ledger.tasks.state(task), round_.round_state) == (0,)


def test_an_answer_that_another_signed_or_for_other_survivors_is_none(make: Make) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    uploads(round_, nodes)
    before = round_.chain.rpc("evm_snapshot")
    fix(round_, [0, 1, 2])
    earlier = answer(round_, nodes[0])
    assert round_.chain.rpc("evm_revert", before)
    answers = fix(round_, [0, 1, 2, 3])
    answers.take({0: earlier, 1: Answer(b""), 2: answer(round_, nodes[3])})
    assert answers.sound == {}
    answers.take({3: answer(round_, nodes[3])})
    assert answers.sound.keys() == {3}


def test_a_hospital_without_the_key_that_it_announced_says_so(make: Make) -> None:
    round_ = make(3)
    (key,) = round_.settings[0].home.rglob("encryption.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    with raises_fault(NodeError, "EncryptionKeyLost", match="restore the file"):
        round_.node(0).join()


def test_a_hospital_names_who_sealed_it_no_sound_shares(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    round_ = make(4)
    nodes = [round_.node(index) for index in range(4)]
    uploads(round_, nodes)
    answers = fix(round_, [0, 1, 2, 3])
    assert nodes[0].updates.masking is not None
    nodes[0].updates.masking._private = secrets.token_bytes(32)  # to it, all seals are broken now
    wrong = answer(round_, nodes[0])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    named = [(line["hospital"], line["error"]) for line in told if line["event"] == "share-bundle-invalid"]
    assert named == [(index, "CiphertextInvalid") for index in (1, 2, 3)]
    answers.take({0: wrong})
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["dealer"] for line in told if line["event"] == "share-missing"] == [1, 2, 3]
    answers.take({index: answer(round_, nodes[index]) for index in (1, 2, 3)})
    assert answers.is_over(0)


def test_too_few_answers_end_the_cohort_and_blame_nobody(make: Make) -> None:
    round_ = make(3)
    nodes = [round_.node(index) for index in range(3)]
    uploads(round_, nodes)
    answers = fix(round_, [0, 1, 2])
    answers.take({0: answer(round_, nodes[0])})
    assert not answers.is_over(0b010)
    assert answers.is_over(0b110)
    assert answers.residue() is None
    bonds = [hospital.bond for hospital in round_.aggregator.tasks.hospitals(round_.task)]
    assert list(members(round_.round_state.survivors)) == [0, 1, 2]
    assert len(set(bonds)) == 1
