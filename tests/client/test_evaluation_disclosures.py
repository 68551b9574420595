"""The chance to find a voter that skips some of its batches, by the code that discloses and checks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from consilium_chain.ledger.ledger import Ledger
from consilium_client.data.standardise import sums_of
from consilium_client.data.table.reader import Table
from consilium_client.task import load_task
from consilium_client.voter.ballots import Ballot
from consilium_client.voter.disclosure import Name, audit, disclose
from consilium_client.voter.evaluating import Judge
from consilium_zk.evaluation import BATCH_ROWS, DISCLOSED_BATCHES, drawn, held_out_root
from consilium_zk.packing import pack
from consilium_zk.quantise import Quantiser
from paper_record import NUMBER, PaperRecord
from task_files import DATA

BATCHES = 200
SKIPPED = BATCHES // 10
TRIALS = 200
SECRET = bytes(range(32))
VOTER = "0x00000000000000000000000000000000000000A1"
TASK = f"""
name = "evaluated"
{DATA}
[model]
name = "mlp"
hidden = [4]
[update]
bits = 16
value_range = 0.5
masked = false
[rounds]
rounds = 4
cohorts = 2
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 32
[judging]
decoys = false
"""


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> tuple[PaperRecord, Judge, Ballot]:
    """A settled round, and the ballot of a voter that evaluated all of its 200 batches."""
    folder: Path = tmp_path_factory.mktemp("paper")
    record = PaperRecord(TASK.encode(), folder, weights=(3, 5))
    record.address = VOTER
    random = np.random.default_rng(1)
    ages = random.uniform(0, 1, (BATCHES * BATCH_ROWS, 1))
    table = Table(ages, (ages[:, 0] > 0.6).astype(np.int64))
    record.statistics(sums_of(table, record.spec.data))
    quantiser = Quantiser(record.spec.update.bits, record.spec.update.value_range)
    updates = random.normal(0, 0.1, (2, record.spec.parameters))
    record.publish(1, [pack(quantiser.quantise(update), record.spec.update_layout) for update in updates])
    record.settle(1, 0b11)
    ledger = cast(Ledger, record)
    judge = Judge(load_task(ledger, record.store, NUMBER), record.reader(), table)
    record.held_out = held_out_root(SECRET, judge.rows)
    judged = judge.judged(1, record.rounds[1])
    return record, judge, Ballot.bound(1, judged.scores, judged.fingerprints)


def audited(record: PaperRecord, judge: Judge, ballot: Ballot) -> tuple[bool, dict[Name, bool | None]]:
    """True if an auditor of only the drawn batches finds the fault; and its findings."""
    record.reveal_ballot(1, ballot.scores, ballot.salt)
    ledger = cast(Ledger, record)
    disclosure = disclose(ledger, NUMBER, ballot, SECRET)
    found = {finding.name: finding.holds for finding in audit(ledger, judge, disclosure, drawn_only=True)}
    return found[Name.FINGERPRINTS] is False, found


def test_who_evaluated_everything_is_never_found_out(voted: tuple[PaperRecord, Judge, Ballot]) -> None:
    record, judge, honest = voted
    for number in range(10):
        record.ending = number.to_bytes(32, "big")
        found_out, found = audited(record, judge, honest)
        assert not found_out
        assert found == dict.fromkeys(Name, True) | {Name.SCORES: None}


@pytest.mark.deep
def test_who_skips_a_tenth_is_found_out_nine_times_in_ten(voted: tuple[PaperRecord, Judge, Ballot]) -> None:
    """200 times another tenth, copied from other batches or made up, and another draw.

    The chance is exactly 1 - C(180, 22) / C(200, 22) = 0.914; of 200 trials one deviation is 0.02.
    """
    record, judge, honest = voted
    random = np.random.default_rng(22)
    caught = 0
    for _ in range(TRIALS):
        skipped = random.choice(BATCHES, SKIPPED, replace=False)
        others = np.setdiff1d(np.arange(BATCHES), skipped)
        prints = list(honest.evaluated.fingerprints)
        for index in skipped:
            copied = prints[random.choice(others)]
            values = np.frombuffer(copied, "<u4,<f4").copy()
            values["f1"] += random.normal(0, 0.01, len(values)).astype(np.float32)
            prints[index] = copied if random.random() < 0.5 else values.tobytes()
        record.ending = random.bytes(32)
        found_out, found = audited(record, judge, Ballot.bound(1, honest.scores, tuple(prints)))
        assert found == dict.fromkeys(Name, True) | {Name.FINGERPRINTS: not found_out, Name.SCORES: None}
        caught += found_out
    exact = 1 - math.comb(BATCHES - SKIPPED, DISCLOSED_BATCHES) / math.comb(BATCHES, DISCLOSED_BATCHES)
    assert exact == pytest.approx(0.9143, abs=5e-5)
    assert abs(caught / TRIALS - exact) < 3 * math.sqrt(exact * (1 - exact) / TRIALS)
    assert caught / TRIALS >= 0.9, caught


def test_it_is_found_out_exactly_where_a_skipped_batch_is_drawn(voted: tuple[PaperRecord, Judge, Ballot]) -> None:
    """A voter that copied one fingerprint."""
    record, judge, honest = voted
    prints = list(honest.evaluated.fingerprints)
    prints[7] = prints[8]
    ballot = Ballot.bound(1, honest.scores, tuple(prints))
    outcomes = set()
    for number in range(60):
        record.ending = number.to_bytes(32, "big")
        shown = [batch.index for batch in disclose(cast(Ledger, record), NUMBER, ballot, SECRET).batches]
        found_out, _ = audited(record, judge, ballot)
        assert found_out == (7 in shown)
        outcomes.add(found_out)
    assert outcomes == {True, False}


def test_another_voter_of_the_round_draws_others(voted: tuple[PaperRecord, Judge, Ballot]) -> None:
    record, _, honest = voted
    shown = disclose(cast(Ledger, record), NUMBER, honest, SECRET)
    record.address = "0x00000000000000000000000000000000000000b2"
    try:
        other = disclose(cast(Ledger, record), NUMBER, honest, SECRET)
    finally:
        record.address = VOTER
    assert [batch.index for batch in shown.batches] != [batch.index for batch in other.batches]
    assert len(drawn(bytes(32), BATCHES)) == len(shown.batches) == len(other.batches) == DISCLOSED_BATCHES
