"""Decoy rounds as readers see them: two candidates for each sum, one model, and what voters say of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, Phase, TaskState, ballot_size
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.questions import Metric
from consilium_client.data.standardise import Standardiser, sums_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError, MismatchError
from consilium_client.hospital.node import HospitalNode
from consilium_client.models import model_of
from consilium_client.models.metrics import log_loss
from consilium_client.voter.node import VoterNode, is_half_over
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing
from consilium_core.kinds import of_kind
from consilium_lab.adversaries.nodes import LazyVoter
from consilium_zk.blobs import Blob
from consilium_zk.decoys import STRENGTH, is_flipped
from consilium_zk.packing import pack, unpack
from consilium_zk.quantise import Quantiser
from examples_read import read_table
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from paper_record import BLOCK_TIME, NUMBER, PaperRecord
from raised_faults import raises_fault
from task_files import DATA

WEIGHTS = (3, 5, 30)
ROUNDS = 4
WINDOW = 100
TASK = f"""
name = "decoys"
statistics = "exact"
{DATA}
[model]
name = "mlp"
hidden = [3]
[update]
bits = 16
value_range = 0.5
masked = false
[rounds]
rounds = {ROUNDS}
cohorts = 3
min_cohort_size = 1
max_hospitals = 3
max_weight = 32
[windows]
score = {WINDOW}
"""
PLAIN = TASK.replace("[rounds]", "[judging]\ndecoys = false\n[rounds]")
DIGESTS = PLAIN.replace("[update]", '[update]\npublication = "digests"')
ROWS = "age,sick\n20,0\n30,0\n40,1\n50,0\n60,1\n70,1\n80,1\n90,1\n"

Lanes = NDArray[np.uint64]
MakeVoter = Callable[..., tuple[PaperRecord, VoterNode]]


def seed_of(*bits: bool, round_: int = 1) -> bytes:
    """A seed with these secret bits in a round, found by trying."""
    tried = (number.to_bytes(32, "big") for number in range(10_000))
    return next(s for s in tried if all(is_flipped(s, NUMBER, round_, k) == bit for k, bit in enumerate(bits)))


def quantised(record: PaperRecord, updates: NDArray[np.float64]) -> list[Lanes]:
    """Each row of updates (cohorts, parameters), padded with zeros, as its hospital's lanes."""
    quantiser = Quantiser(record.spec.update.bits, record.spec.update.value_range)
    short = record.spec.lanes - updates.shape[1]
    return [quantiser.quantise(np.pad(update, (0, short))) for update in updates]


def packed(record: PaperRecord, lanes: list[Lanes]) -> list[list[Blob]]:
    return [pack(own, record.spec.update_layout) for own in lanes]


def drawn(record: PaperRecord, seed: int, scale: float = 0.1) -> list[list[Blob]]:
    updates = np.random.default_rng(seed).normal(0, scale, (len(WEIGHTS), record.spec.parameters))
    return packed(record, quantised(record, updates))


def played(task_file: str, folder: Path, seed: bytes, accepted: tuple[int, ...] = (0b011, 0b000, 0b110)) -> PaperRecord:
    """Three settled rounds, and a fourth that is published."""
    record = PaperRecord(task_file.encode(), folder, WEIGHTS, seed)
    for round_, cohorts in enumerate(accepted, start=1):
        record.publish(round_, drawn(record, round_))
        record.settle(round_, cohorts)
    record.publish(ROUNDS, drawn(record, ROUNDS))
    return record


# The model


@pytest.mark.parametrize("seed", [seed_of(False, True, False), seed_of(True, True, True)], ids=["010", "111"])
def test_bases_are_the_same_bits_with_and_without_decoys_whatever_is_flipped(seed: bytes, tmp_path: Path) -> None:
    plain, decoys = played(PLAIN, tmp_path / "plain", bytes(32)), played(TASK, tmp_path / "decoys", seed)
    assert plain.spec.parameters == decoys.spec.parameters == 10
    # The initial parameters hang on the file's hash: what is compared is what was added to them.
    first, other = plain.reader(), decoys.reader()
    for round_ in (1, 2, 3):
        one, two = first.sums.accepted(round_), other.sums.accepted(round_)
        assert (one is None) == (two is None) == (round_ == 2)
        if one is not None and two is not None:
            assert one.weight == two.weight
            np.testing.assert_array_equal(one.lanes, two.lanes)
    assert other.base(2).tobytes() == other.base(3).tobytes() != other.base(1).tobytes()
    assert decoys.reader().base(4).tobytes() == other.base(4).tobytes()


@pytest.mark.parametrize("bits", [(False, True, False), (True, False, True)], ids=["010", "101"])
def test_candidates_are_the_sum_and_its_decoy_in_the_order_of_the_secret_bit(
    bits: tuple[bool, ...], tmp_path: Path
) -> None:
    record = played(TASK, tmp_path, seed_of(*bits, round_=ROUNDS))
    reader, state = record.reader(), record.rounds[ROUNDS]
    base, first = (reader.base(r).astype(np.float64) for r in (ROUNDS, 1))
    updates = np.random.default_rng(ROUNDS).normal(0, 0.1, (3, record.spec.parameters))
    step = 0.5 / (2**15 - 1)
    for cohort, flipped in enumerate(bits):
        candidates = reader.candidates(ROUNDS, cohort, state)
        genuine, decoy = candidates[flipped], candidates[not flipped]
        assert genuine is not None
        assert decoy is not None
        np.testing.assert_allclose(genuine, base + updates[cohort], atol=2 * step)
        back = np.clip(STRENGTH / 16 * (base - first), -0.5, 0.5)
        np.testing.assert_allclose(decoy, base - updates[cohort] - back, atol=5 * step)


def test_negated_delta_is_the_same_in_whatever_order_rounds_are_asked_for(tmp_path: Path) -> None:
    record = played(TASK, tmp_path, bytes(32))
    at_once, in_order = record.reader().sums, record.reader().sums
    last = at_once.negated_delta(4).digest
    assert [in_order.negated_delta(r).digest for r in (1, 2, 3, 4)][-1] == last
    assert len({at_once.negated_delta(r).digest for r in (1, 2, 4)}) == 3
    assert at_once.negated_delta(2).digest == at_once.negated_delta(3).digest  # round 2 accepted nothing
    assert record.decoys[4].negated_delta_digest == last


def test_a_decoy_round_has_no_model_before_its_bits_are_open(tmp_path: Path) -> None:
    record = played(TASK, tmp_path, bytes(32))
    reader = record.reader()
    with pytest.raises(RecordIncomplete, match="round 4"):
        reader.base(5)
    with pytest.raises(RecordIncomplete, match="decoys are still secret"):
        reader.sums.cohort_sum(4, 0, record.rounds[4])


@pytest.mark.parametrize("place", ["parameter", "padding"])
@pytest.mark.parametrize("seed", [seed_of(False, True, False), seed_of(True, False, False)], ids=["010", "100"])
def test_a_lane_out_of_range_makes_no_model_even_if_accepted(seed: bytes, place: str, tmp_path: Path) -> None:
    record = PaperRecord(TASK.encode(), tmp_path, WEIGHTS, seed)
    lanes = quantised(record, np.zeros((3, record.spec.parameters)))
    lanes[1][0 if place == "parameter" else -1] = 2**16 - 1  # one above the most
    state = record.publish(1, packed(record, lanes))
    reader = record.reader()
    assert reader.candidates(1, 1, state) == [None, None]
    assert all(candidate is not None for k in (0, 2) for candidate in reader.candidates(1, k, state))
    record.settle(1, 0b010)
    assert reader.base(2).tobytes() == reader.base(1).tobytes()


def test_a_decoy_that_leaves_the_range_is_no_model_but_its_sum_is(tmp_path: Path) -> None:
    """Much learnt and more to come: taking it back and turning the update round goes below what can be published."""
    record = PaperRecord(TASK.encode(), tmp_path, WEIGHTS, seed_of(False, False, False, round_=2))
    record.publish(1, packed(record, quantised(record, np.full((3, 10), 0.4))))
    record.settle(1, 0b111)
    state = record.publish(2, packed(record, quantised(record, np.full((3, 10), 0.2))))
    genuine, decoy = record.reader().candidates(2, 0, state)
    assert genuine is not None
    assert decoy is None


def test_padding_is_read_and_left_out(tmp_path: Path) -> None:
    """Values after the parameters change neither the model nor the delta that decoys take back."""
    honest, marked = (PaperRecord(TASK.encode(), tmp_path / name, WEIGHTS) for name in ("honest", "marked"))
    lanes = quantised(honest, np.random.default_rng(1).normal(0, 0.1, (3, 10)))
    honest.publish(1, packed(honest, lanes))
    lanes[0][10:] = 2**16 - 2
    marked.publish(1, packed(marked, lanes))
    for record in (honest, marked):
        record.settle(1, 0b111)
    assert honest.reader().base(2).tobytes() == marked.reader().base(2).tobytes()
    assert honest.reader().sums.negated_delta(2).digest == marked.reader().sums.negated_delta(2).digest


def test_an_update_of_two_blobs_is_read_back(tmp_path: Path) -> None:
    large = TASK.replace("bits = 16", "bits = 38").replace("hidden = [3]", "hidden = [8_000]")
    record = PaperRecord(large.encode(), tmp_path, WEIGHTS, seed_of(True, False, True))
    assert (record.spec.update_blobs, record.spec.parameters) == (2, 24_001)
    lanes = quantised(record, np.random.default_rng(1).normal(0, 0.1, (3, 24_001)))
    record.publish(1, packed(record, lanes))
    record.settle(1, 0b001)
    found = record.reader().sums.accepted(1)
    assert found is not None
    np.testing.assert_array_equal(found.lanes, lanes[0][:24_001] * np.uint64(3))


def test_hospitals_fill_every_lane_of_their_blobs(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    record = PaperRecord(TASK.encode(), tmp_path, WEIGHTS)
    node = HospitalNode(record.settings(tmp_path / "rows.csv"))
    record.statistics(sums_of(node.training.examples, record.spec.data))
    lanes = unpack(node.training.packed(1, node.local_update), record.spec.lanes, record.spec.update_layout, 1)
    assert len(np.unique(lanes[:10])) > 5
    assert set(lanes[10:].tolist()) == {2**15 - 1}


def test_a_trials_updates_are_the_same_each_time_and_only_on_a_local_chain(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    record = PaperRecord(TASK.encode(), tmp_path, WEIGHTS)
    settings = record.settings(tmp_path / "rows.csv")

    def blobs(seed: int | None) -> list[Blob]:
        settings.trial_seed = seed
        node = HospitalNode(settings)
        if not record.rounds:
            record.statistics(sums_of(node.training.examples, record.spec.data))
        return node.training.packed(1, node.local_update)

    assert blobs(7) == blobs(7) != blobs(8)
    assert len({tuple(blobs(None)) for _ in range(4)}) > 1  # two may round all ten lanes alike
    record.connection.chain_id = 1
    with raises_fault(ClientError, "TrialNotLocal", match="chain 1"):
        blobs(7)


# Voters


@pytest.fixture
def voter(tmp_path: Path) -> MakeVoter:
    """A record with its statistics, and a voter that reads it."""

    def make(task_file: str = TASK, kind: type[VoterNode] = VoterNode) -> tuple[PaperRecord, VoterNode]:
        (tmp_path / "rows.csv").write_text(ROWS)
        record = PaperRecord(task_file.encode(), tmp_path / "store", WEIGHTS, seed_of(True, False, False))
        node = kind(record.settings(tmp_path / "rows.csv"), cast(Ledger, record))
        record.statistics(
            sums_of(read_table(tmp_path / "rows.csv", of_kind(TableSchema, record.spec.data)), record.spec.data)
        )
        return record, node

    return make


def judged(record: PaperRecord, node: VoterNode, round_: int) -> tuple[int, ...]:
    return node._judged(record.scoring(round_), record.rounds[round_])


def blob_file(record: PaperRecord, round_: int, cohort: int) -> Path:
    return record.folder / f"blob-{record.hashes[round_, cohort][0].hex()}"


def test_ballot_holds_a_score_of_each_reading(voter: MakeVoter) -> None:
    record, node = voter()
    lanes = quantised(record, np.random.default_rng(3).normal(0, 0.2, (3, 10)))
    lanes[2][0] = 2**16 - 1
    state = record.publish(1, packed(record, lanes))
    ballot = judged(record, node, 1)
    reader = record.reader()
    rows = Standardiser.from_sums(reader.statistics()).transform(of_kind(Table, node.examples))

    def loss(parameters: NDArray[np.float32]) -> float:
        return log_loss(node.examples.labels, model_of(record.spec).evaluate(parameters, rows).predictions)

    expected = []
    for reading in range(2):
        for cohort in range(2):
            candidate = reader.candidates(1, cohort, state)[reading]
            assert candidate is not None
            expected.append(round((loss(reader.base(1)) - loss(candidate)) * 1_000_000))
        expected.append(INVALID_SCORE)
    assert list(ballot) == expected
    assert len(set(ballot[:2] + ballot[3:5])) == 4


def test_a_voter_with_an_altered_base_derives_it_anew_before_it_judges(voter: MakeVoter) -> None:
    record, node = voter()
    record.publish(1, drawn(record, 1))
    honest = judged(record, node, 1)
    record.stated[1] = node.record.base_digest(1)
    state = node.record._states[1]
    node.record._states[1] = replace(state, outer=replace(state.outer, model=-state.outer.model))
    assert judged(record, node, 1) == honest


@pytest.mark.parametrize("metric", ["accuracy", "auc", "macro_f1", "pr_auc", "calibration_error", "brier"])
def test_scores_are_gains_by_the_tasks_metric(metric: Metric, voter: MakeVoter) -> None:
    task = PLAIN.replace("[judging]", f'[judging]\nmetric = "{metric}"')
    assert task != PLAIN
    record, node = voter(task)
    state = record.publish(1, drawn(record, 1))
    reader = record.reader()
    rows = Standardiser.from_sums(reader.statistics()).transform(of_kind(Table, node.examples))

    def told(parameters: NDArray[np.float32]) -> float:
        model = model_of(record.spec)
        found = model.evaluate(parameters, rows).predictions
        return model.objective.measures[metric].worth(node.examples.labels, found)

    for cohort, score in enumerate(judged(record, node, 1)):
        (candidate,) = reader.candidates(1, cohort, state)
        assert candidate is not None
        assert score == round((told(candidate) - told(reader.base(1))) * 1_000_000)


def test_ballot_leaves_out_cohorts_that_were_not_published(
    voter: MakeVoter,
) -> None:
    record, node = voter()
    record.publish(1, drawn(record, 1))
    record.rounds[1] = replace(record.rounds[1], viable_cohorts=0b101)
    del record.hashes[1, 1]
    ballot = judged(record, node, 1)
    assert [score == 0 for score in ballot] == [False, True, False] * 2


def test_voter_says_at_once_that_a_negated_delta_is_not_the_records(
    voter: MakeVoter,
) -> None:
    record, node = voter()
    state = record.publish(1, drawn(record, 1))
    record.decoys[1] = replace(record.decoys[1], negated_delta_digest=bytes(32))
    with raises_fault(MismatchError, "NegatedDeltaMismatched"):
        node.scores(1, state)
    assert judged(record, node, 1) == (DOES_NOT_MATCH,) * 6
    assert record.clock == 0


def take_away(record: PaperRecord, file: Path) -> None:
    file.unlink()


def change_a_bit(record: PaperRecord, file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(raw[:31] + bytes([raw[31] ^ 1]) + raw[32:])


def forget_decoys(record: PaperRecord, file: Path) -> None:
    record.decoys.clear()


FAULTS = pytest.mark.parametrize("fault", [take_away, change_a_bit, forget_decoys])


@FAULTS
def test_voter_waits_half_the_window_and_then_says_that_it_does_not_match(
    fault: Callable[[PaperRecord, Path], None], voter: MakeVoter
) -> None:
    record, node = voter()
    record.publish(1, drawn(record, 1))
    fault(record, blob_file(record, 1, 2))
    assert judged(record, node, 1) == (DOES_NOT_MATCH,) * 6
    assert record.clock == WINDOW // 2


@FAULTS
def test_voter_scores_what_comes_back_in_time(fault: Callable[[PaperRecord, Path], None], voter: MakeVoter) -> None:
    record, node = voter()
    state = record.publish(1, drawn(record, 1))
    expected, file = node.scores(1, state), blob_file(record, 1, 2)
    raw, decoys = file.read_bytes(), dict(record.decoys)
    fault(record, file)

    def mend() -> None:
        if record.clock == 3 * BLOCK_TIME:
            file.write_bytes(raw)
            record.decoys.update(decoys)

    record.on_block = mend
    again = VoterNode(node.settings, node.ledger)  # this one has read nothing yet
    assert judged(record, again, 1) == expected
    assert record.clock == 3 * BLOCK_TIME


def test_voter_says_that_a_lost_record_does_not_match(
    voter: MakeVoter,
) -> None:
    record, node = voter()
    record.publish(1, drawn(record, 1))
    record.settle(1, 0b111)
    record.publish(2, drawn(record, 2))
    blob_file(record, 1, 0).unlink()
    assert judged(record, node, 2) == (DOES_NOT_MATCH,) * 6


def test_voter_accuses_nobody_of_its_own_store(voter: MakeVoter) -> None:
    record, node = voter()
    record.publish(1, drawn(record, 1))
    file = blob_file(record, 1, 0)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreMissing, match="Is a directory"):
        judged(record, node, 1)
    assert record.clock == WINDOW // 2


def test_voter_accuses_nobody_of_statistics_that_a_hospital_spoilt(
    voter: MakeVoter,
) -> None:
    record, node = voter()
    lanes = np.full(3, 2**40 - 1, np.uint64)
    record.hashes[0, 0] = []
    record._put(0, [pack(lanes, record.spec.statistics_layout, total_weight=2)])
    record.publish(1, drawn(record, 1))
    with raises_fault(ClientError, "StatisticsOutOfRange"):
        judged(record, node, 1)


@pytest.mark.parametrize(("change", "error"), [(take_away, ArtifactMissing), (change_a_bit, ArtifactCorrupt)])
def test_voter_of_a_plain_task_has_nothing_to_accuse_of(
    change: Callable[[PaperRecord, Path], None],
    error: type[Exception],
    voter: MakeVoter,
) -> None:
    record, node = voter(PLAIN)
    record.publish(1, drawn(record, 1))
    assert len(judged(record, node, 1)) == 3
    change(record, blob_file(record, 1, 0))
    with pytest.raises(error):
        judged(record, VoterNode(node.settings, node.ledger), 1)


def test_statistics_by_digest_are_judged_for_matching_only(
    voter: MakeVoter,
) -> None:
    record, node = voter(DIGESTS)
    assert judged(record, node, 0) == (0,)
    blob_file(record, 0, 0).unlink()
    assert judged(record, VoterNode(node.settings, node.ledger), 0) == (DOES_NOT_MATCH,)


def test_updates_by_digest_have_one_score_each(voter: MakeVoter) -> None:
    record, node = voter(DIGESTS)
    record.publish(1, drawn(record, 1))
    assert len(judged(record, node, 1)) == 3
    blob_file(record, 1, 1).unlink()
    assert judged(record, VoterNode(node.settings, node.ledger), 1) == (DOES_NOT_MATCH,) * 3


@pytest.mark.parametrize("task_file", [TASK, PLAIN, DIGESTS], ids=["decoys", "plain", "digests"])
def test_lazy_voters_ballots_are_as_long_as_honest_ones(task_file: str, voter: MakeVoter) -> None:
    record, lazy = voter(task_file, LazyVoter)
    record.publish(1, drawn(record, 1))
    honest = VoterNode(lazy.settings, lazy.ledger)
    for round_ in (0, 1):
        lengths = {len(judged(record, node, round_)) for node in (lazy, honest)}
        assert lengths == {ballot_size(record.terms, round_, record.rounds[round_].cohorts)}


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.integers(0, 2 * 10**6))
def test_is_half_over_once_half_the_window_has_passed(window: int, start: int, waited: int) -> None:
    state = TaskState("0x" + "11" * 20, Phase.SCORING, 1, start + window, 0, 0, True, False, 0, 0, 0)
    assert is_half_over(state, window, start + waited) == (2 * waited >= window)
