"""Hospitals of a cohort without a sum submit evidence on chain, and everybody finds whose doing it is. Real nodes and
chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from accused_driver import HOSPITALS, LIAR, ONE, Accused, Covered, FalseProof, FalseUpload, Garbage, Silent, accused
from chain_driver import LocalChain
from consilium_chain.ledger.structs import DOES_NOT_MATCH, Phase
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_client.hospital.node import HospitalNode
from consilium_core.errors import ArtifactMissing
from consilium_server.aggregator.disputes import Statements
from consilium_server.aggregator.uploads import Upload
from consilium_zk.blobs import add, parse_blob
from consilium_zk.disputes import Reason, parse_agreements
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.secret_shares import ShareBundle
from eth_utils.crypto import keccak


@pytest.fixture(scope="module")
def played(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Accused:
    return accused(local_chain, tmp_path_factory.mktemp("accused"), FalseUpload)


@pytest.fixture
def case(played: Accused) -> Iterator[Accused]:
    with played.restarted(FalseUpload) as case:
        yield case


@pytest.mark.parametrize(
    ("liar", "reason"),
    [
        (FalseUpload, Reason.CONTRADICTION),
        (Covered, Reason.FALSE_POINT),
        (FalseProof, Reason.FALSE_POINT),
        (Silent, Reason.NO_POINTS),
        (Garbage, Reason.NO_POINTS),
    ],
)
def test_who_uploaded_something_else_is_named_and_slashed(
    played: Accused, liar: type[HospitalNode], reason: Reason
) -> None:
    with played.restarted(liar) as case:
        aggregator, task = case.round.aggregator, case.round.task
        case.submit_evidence()
        assert case.cheaters() == {LIAR: reason}
        aggregator.aggregator.name_cheaters(task, 0, 1 << LIAR)
        assert aggregator.tasks.state(task).phase is Phase.DRAWING
        assert case.judged() == (0,)


@pytest.mark.parametrize("named", [1, 1 << LIAR | 1])
def test_voters_say_that_an_honest_hospital_is_not_to_blame(
    case: Accused, named: int, capsys: pytest.CaptureFixture[str]
) -> None:
    case.submit_evidence()
    case.round.aggregator.aggregator.name_cheaters(case.round.task, 0, named)
    assert case.judged() == (DOES_NOT_MATCH,)
    assert '"CheatersMismatched"' in capsys.readouterr().out


def test_a_hospital_shows_nothing_but_what_it_agrees_on_with_a_liar(played: Accused) -> None:
    with played.restarted(Covered) as case:
        case.submit_evidence()
        points, agreements = case.round.aggregator.record.submitted_evidence(case.round.task, 0)
    assert sorted(points) == list(range(HOSPITALS))
    assert {index: len(raw) for index, raw in agreements.items()} == {0: 98}
    assert parse_agreements(agreements[0]).keys() == {LIAR}


def test_a_restarted_hospital_submits_evidence_the_same_and_the_first_word_counts(case: Accused) -> None:
    case.look()
    first = case.round.aggregator.record.submitted_evidence(case.round.task, 0)
    case.nodes = [case.round.node(index) for index in range(HOSPITALS)]
    case.look()
    assert case.round.aggregator.record.submitted_evidence(case.round.task, 0) == first


def test_evidence_that_could_not_be_sent_is_sent_again(case: Accused, capsys: pytest.CaptureFixture[str]) -> None:
    case.round.set_ether(case.nodes[0], 0)
    case.look()
    assert '"evidence-not-submitted"' in capsys.readouterr().out
    case.round.set_ether(case.nodes[0], 10**18)
    case.look()
    assert sorted(case.round.aggregator.record.submitted_evidence(case.round.task, 0)[0]) == list(range(HOSPITALS))


def test_a_hospital_submits_evidence_before_its_relay_is_started(
    case: Accused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a late start there is little time for it, and none for anything else first."""

    def keep_running() -> dict[str, int]:
        raise BlockingIOError

    node = case.nodes[0]
    monkeypatch.setattr(node.link, "raise_fault", lambda: None)
    monkeypatch.setattr(node.link, "keep_running", keep_running)
    with pytest.raises(BlockingIOError):
        node.poll()
    assert list(case.round.aggregator.record.submitted_evidence(case.round.task, 0)[0]) == [0]


def test_evidence_that_is_not_what_hospitals_signed_names_nobody(
    case: Accused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an accuser changes any part of it, voters find that the case proves nothing, and say so."""
    case.submit_evidence()
    store, aggregator = case.round.store, case.round.aggregator
    said = aggregator.record.accusations(case.round.task, 0)[0]
    file = json.loads(store.get_file(said.evidence))

    def cheaters_of(changed: object) -> None:
        digest = store.put_file(json.dumps(changed).encode())
        monkeypatch.setattr(aggregator.record, "accusations", lambda *_: {0: replace(said, evidence=digest)})
        case.cheaters()

    other = store.put_file(add([parse_blob(store.get_file(bytes.fromhex(file["uploads"]["0"][0]))), ONE]))
    changes: list[object] = [
        file | {"statements": file["statements"] | {"0": file["statements"]["1"]}},
        file | {"statements": file["statements"] | {"0": "00"}},
        file | {"uploads": file["uploads"] | {"0": [other.hex()]}},
        file | {"uploads": {"0": file["uploads"]["0"]}},
        file | {"uploads": file["uploads"] | {"0": [256 * "00"]}},  # no name of a file
        file | {"commitments": file["commitments"] | {"0": file["commitments"]["1"]}},
        file | {"commitments": file["commitments"] | {"0": ["c0" + 47 * "00"]}},
        file | {"commitments": file["commitments"] | {"0": 2 * file["commitments"]["0"]}},
        file | {"commitments": file["commitments"] | {"0": ["00" * 48]}},  # no point
        file | {"commitments": {"0": file["commitments"]["0"]}},
        file | {"commitments": {}},
        file | {"roots": file["roots"] | {"0": file["roots"]["1"]}},
        file | {"answers": {"0": file["statements"]["0"]}},
        {"statements": file["statements"]},
        [],
    ]
    for changed in changes:
        with pytest.raises(EvidenceMalformed):
            cheaters_of(changed)
    with pytest.raises(EvidenceMalformed, match=r"hospitals \[0\] do not have 1 blobs"):  # whose bytes nobody reads
        cheaters_of(file | {"uploads": file["uploads"] | {"0": 1000 * [keccak(b"gone").hex()]}})
    with pytest.raises(ArtifactMissing):
        cheaters_of(file | {"uploads": file["uploads"] | {"0": [keccak(b"gone").hex()]}})


def test_an_upload_nobody_answers_for_is_left_out(case: Accused, capsys: pytest.CaptureFixture[str]) -> None:
    round_, uploads, everybody = case.round, case.uploads, set(range(HOSPITALS))

    cohort = masked_cohort(round_.aggregator, round_.task, 0, (1 << HOSPITALS) - 1)
    share_bundles = read_share_bundles(round_.aggregator, round_.store, round_.task, 0, cohort)

    def sound(given: dict[int, Upload], masking: dict[int, ShareBundle] = share_bundles) -> set[int]:
        return Statements(round_.aggregator, round_.task, 0).sound(cohort, masking, given)

    def stated(one: bytes) -> dict[int, Upload]:
        return uploads | {1: replace(uploads[1], statement=one)}

    assert sound(uploads) == everybody
    assert sound(stated(b"")) == sound(stated(uploads[2].statement)) == everybody - {1}
    assert sound(stated(uploads[1].statement[:-1] + b"\x00")) == everybody - {1}
    assert sound(uploads | {1: replace(uploads[1], blobs=uploads[2].blobs)}) == everybody - {1}
    assert capsys.readouterr().out.count("statement-refused") == 4
    assert sound(uploads, {i: share_bundle for i, share_bundle in share_bundles.items() if i != 1}) == set()
