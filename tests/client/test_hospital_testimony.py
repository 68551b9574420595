"""Hospitals of a cohort without a sum testify on chain, and everybody finds whose doing it is. Real nodes and chain."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from chain_driver import LocalChain
from consilium_chain.accusations import find_culprits
from consilium_chain.artifacts import CHECK_BITS
from consilium_chain.errors import ArtifactMissing
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.views import DOES_NOT_MATCH, Phase, RoundState
from consilium_client.hospital import HospitalNode
from consilium_server.blaming import Statements, make_accusation
from consilium_server.errors import SumMismatch
from consilium_server.unmasking import cohort_answers
from consilium_server.uploads import Answer, Contribution, Upload, sum_cohort
from consilium_zk.blame import Reason
from consilium_zk.blobs import Blob, add, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import parse_commitment, weighted_sum
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.kzg import commit
from eth_utils.crypto import keccak
from hospital_driver import WINDOW, Committing, start

HOSPITALS = 4
LIAR = 3
ONE = parse_blob((1).to_bytes(32, "big") + bytes(BYTES_PER_BLOB - 32))


class FalseUpload(HospitalNode):
    """Adds one to the first scalar of what it uploads, and signs that."""

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]:
        return [add([masked[0], ONE]), *masked[1:]]


class Covered(FalseUpload):
    """Says of the mask that it shares with hospital 0 what would make its upload right."""

    def testimony(self, step: int, round_: int, round_state: RoundState) -> bytes:
        said = super().testimony(step, round_, round_state)
        if step == 1:
            return b""
        accusation = self.ledger.accusations(self.task.number, round_)[0].accusation
        factor = int.from_bytes(keccak(accusation + bytes(32))[:16], "big")
        first = parse_commitment(said[:BYTES_PER_COMPRESSED_G1])
        # It is the higher index, and takes the mask away.
        return weighted_sum([first, commit(ONE)], [1, -factor]) + said[BYTES_PER_COMPRESSED_G1:]


class Silent(FalseUpload):
    def testimony(self, step: int, round_: int, round_state: RoundState) -> bytes:
        return b""


class Garbage(FalseUpload):
    """Says something that is neither points nor seeds."""

    def testimony(self, step: int, round_: int, round_state: RoundState) -> bytes:
        return b"\xff" * 48 * (HOSPITALS - 1)


@dataclass
class Accused:
    """A statistics round in Blaming, as an honest aggregator brought it there."""

    round: Committing
    nodes: list[HospitalNode]

    @property
    def state(self) -> RoundState:
        return self.round.round_state

    def look(self, *but: int) -> None:
        """A turn of each node, but of these."""
        for node in self.nodes:
            if node.index not in but:
                node._testify_if_accused(self.round.aggregator.state(self.round.task))

    def testify(self, *but: int) -> None:
        """Both steps."""
        for _ in range(2):
            self.look(*but)
            self.round.chain.pass_time(WINDOW)

    def judged(self) -> tuple[int, ...]:
        """What the task's voter says."""
        return self.round.voter_node()._judged(self.round.aggregator.state(self.round.task), self.state)

    def culprits(self) -> dict[int, Reason]:
        return find_culprits(self.round.aggregator, self.round.store, self.round.task, 0, self.state)


def accused(chain: LocalChain, folder: Path, liar: type[HospitalNode]) -> Accused:
    round_ = start(chain, folder, HOSPITALS, masked=True)
    aggregator, task = round_.aggregator, round_.task
    nodes = [round_.node(index) for index in range(HOSPITALS)]
    nodes[LIAR] = liar(round_.settings[LIAR])
    nodes[LIAR].index = LIAR
    round_.relay(*(round_.signed(node) for node in nodes))

    uploads = {}
    for node in nodes:
        reply = round_.ask(node)
        assert reply.code is ReplyCode.OK
        uploads[node.index] = Upload([parse_blob(blob) for blob in reply.blobs], reply.body)
    statements = Statements(aggregator, task, 0)
    everybody = set(range(HOSPITALS))
    assert statements.agreeing(everybody, uploads) == everybody
    aggregator.fix_survivors(task, 0, (1 << HOSPITALS) - 1)

    answers = cohort_answers(aggregator, round_.store, task, 0, (1 << HOSPITALS) - 1, round_.round_state)
    for node in nodes:
        answers.take({node.index: Answer(round_.ask(node, part=Part.ANSWER).body)})
    points, hospitals = aggregator.committed_points(task, 0), aggregator.hospitals(task)
    parts = [Contribution(upload, points[hospitals[index].node], 1) for index, upload in uploads.items()]
    with pytest.raises(SumMismatch):
        sum_cohort(0, parts, [secrets.randbits(CHECK_BITS)], answers.residue())
    accusation = make_accusation(
        aggregator, round_.store, task, 0, round_.round_state, statements, uploads, answers.roots()
    )
    aggregator.accuse_cohort(task, 0, 0, accusation.accusation, accusation.evidence)
    assert aggregator.state(task).phase is Phase.BLAMING
    for node in nodes:  # of what a sponsor would carry
        round_.set_ether(node, 10**18)
    return Accused(round_, nodes)


@pytest.mark.parametrize(
    ("liar", "reason"),
    [
        (FalseUpload, Reason.CONTRADICTION),
        (Covered, Reason.FALSE_POINT),
        (Silent, Reason.NO_POINTS),
        (Garbage, Reason.NO_POINTS),
    ],
)
def test_who_uploaded_something_else_is_named_and_slashed(
    local_chain: LocalChain, tmp_path: Path, liar: type[HospitalNode], reason: Reason
) -> None:
    case = accused(local_chain, tmp_path, liar)
    aggregator, task = case.round.aggregator, case.round.task
    case.testify()
    assert case.culprits() == {LIAR: reason}
    aggregator.name_culprits(task, 0, 1 << LIAR)
    assert aggregator.state(task).phase is Phase.DRAWING
    assert case.judged() == (0,)


@pytest.mark.parametrize("named", [1, 1 << LIAR | 1])
def test_voters_say_that_an_honest_hospital_is_not_to_blame(
    local_chain: LocalChain, tmp_path: Path, named: int, capsys: pytest.CaptureFixture[str]
) -> None:
    case = accused(local_chain, tmp_path, FalseUpload)
    case.testify()
    case.round.aggregator.name_culprits(case.round.task, 0, named)
    assert case.judged() == (DOES_NOT_MATCH,)
    assert '"CulpritsMismatched"' in capsys.readouterr().out


def test_a_hospital_shows_nothing_but_the_seed_it_shares_with_a_liar(local_chain: LocalChain, tmp_path: Path) -> None:
    case = accused(local_chain, tmp_path, Covered)
    case.testify()
    points, seeds = case.round.aggregator.testimonies(case.round.task, 0)
    assert sorted(points) == list(range(HOSPITALS))
    assert {index: len(raw) for index, raw in seeds.items()} == {0: 34}
    assert int.from_bytes(seeds[0][:2], "big") == LIAR


def test_a_restarted_hospital_testifies_the_same_and_the_first_word_counts(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    case = accused(local_chain, tmp_path, FalseUpload)
    case.look()
    first = case.round.aggregator.testimonies(case.round.task, 0)
    case.nodes = [case.round.node(index) for index in range(HOSPITALS)]
    case.look()
    assert case.round.aggregator.testimonies(case.round.task, 0) == first


def test_testimony_that_could_not_be_sent_is_sent_again(
    local_chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = accused(local_chain, tmp_path, FalseUpload)
    case.round.set_ether(case.nodes[0], 0)
    case.look()
    assert '"not-testified"' in capsys.readouterr().out
    case.round.set_ether(case.nodes[0], 10**18)
    case.look()
    assert sorted(case.round.aggregator.testimonies(case.round.task, 0)[0]) == list(range(HOSPITALS))


def test_evidence_that_is_not_what_hospitals_signed_names_nobody(local_chain: LocalChain, tmp_path: Path) -> None:
    """Whatever an accuser changes of it, voters find that the case proves nothing, and say so."""
    case = accused(local_chain, tmp_path, FalseUpload)
    case.testify()
    store, aggregator = case.round.store, case.round.aggregator
    said = aggregator.accusations(case.round.task, 0)[0]
    file = json.loads(store.get_file(said.evidence))

    def culprits_of(changed: object) -> None:
        digest = store.put_file(json.dumps(changed).encode())
        aggregator.accusations = lambda *_: {0: replace(said, evidence=digest)}  # type: ignore[method-assign]
        case.culprits()

    other = store.put_file(add([parse_blob(store.get_file(bytes.fromhex(file["uploads"]["0"][0]))), ONE]))
    for changed in (
        file | {"statements": file["statements"] | {"0": file["statements"]["1"]}},
        file | {"statements": file["statements"] | {"0": "00"}},
        file | {"uploads": file["uploads"] | {"0": [other.hex()]}},
        file | {"uploads": {"0": file["uploads"]["0"]}},
        file | {"uploads": file["uploads"] | {"0": [256 * "00"]}},  # no name of a file
        file | {"roots": file["roots"] | {"0": file["roots"]["1"]}},
        {"statements": file["statements"]},
        [],
    ):
        with pytest.raises(EvidenceMalformed):
            culprits_of(changed)
    with pytest.raises(ArtifactMissing):
        culprits_of(file | {"uploads": file["uploads"] | {"0": [keccak(b"gone").hex()]}})


def test_an_upload_nobody_answers_for_is_left_out(
    local_chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_ = start(local_chain, tmp_path, HOSPITALS, masked=True)
    nodes = [round_.node(index) for index in range(HOSPITALS)]
    round_.relay(*(round_.signed(node) for node in nodes))
    replies = [round_.ask(node) for node in nodes]
    uploads = {i: Upload([parse_blob(b) for b in reply.blobs], reply.body) for i, reply in enumerate(replies)}
    everybody = set(range(HOSPITALS))

    def agreeing(**changed: bytes) -> set[int]:
        given = {i: replace(upload, statement=changed.get(f"h{i}", upload.statement)) for i, upload in uploads.items()}
        return Statements(round_.aggregator, round_.task, 0).agreeing(everybody, given)

    assert agreeing() == everybody
    assert agreeing(h1=b"") == agreeing(h1=uploads[2].statement) == everybody - {1}
    assert agreeing(h1=uploads[1].statement[:-1] + b"\x00") == everybody - {1}
    swapped = uploads | {1: replace(uploads[1], blobs=uploads[2].blobs)}
    assert Statements(round_.aggregator, round_.task, 0).agreeing(everybody, swapped) == everybody - {1}
    assert capsys.readouterr().out.count("statement-refused") == 4
