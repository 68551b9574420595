"""`consilium verify` on real settled tasks: what holds, what each change of the record makes fail, and what it says."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accused_driver import LIAR, Accused, Bribed, FalseUpload, accused
from chain_driver import LocalChain, TaskDriver, refused
from chain_driver import task_params as driver_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete, Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import Decoys, DisclosedCohort, PublishedCohort
from consilium_chain.ledger.record import Record, ShownBlinders
from consilium_chain.ledger.structs import Hospital, Outcome, Role, RoundState, SlashReason, VoidReason
from consilium_chain.rounds.sums import NegatedDelta, PublishedSums
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.main import app
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_client.voter.node import VoterNode
from consilium_core.kinds import of_kind
from consilium_server.aggregator.decoys import HiddenSums
from consilium_verify.checks import (
    Published,
    decoy_sums,
    decoys_follow,
    lanes_in_range,
    plain_sums,
    terms_match,
)
from consilium_verify.money_checks import Books, cheaters_follow, settlement_follows
from consilium_verify.report import Check, Name, Report, Result, derived
from consilium_verify.verification import verify_round, verify_task
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import GENERATOR, weighted_sum
from consilium_zk.decoys import is_flipped, negated_delta_lanes, published_commitment, seed_commitment
from consilium_zk.disputes import Reason
from consilium_zk.kzg import commit, versioned_hash
from consilium_zk.packing import LaneLayout
from decoy_driver import DecoyDriver
from hospital_driver import WINDOW
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from task_files import DATA, windows
from typer.testing import CliRunner

GOOD, BAD = [60_000, 40_000], [-80_000, -90_000]


def task_file(decoys: bool, masked: bool = False) -> bytes:
    """Of two cohorts of any size; masked, of one of all three hospitals."""
    return f"""
name = "audited"
{DATA}
[model]
name = "mlp"
hidden = [3]
[update]
bits = 16
value_range = 0.5
masked = {"true" if masked else "false"}
[rounds]
rounds = 2
cohorts = {1 if masked else 2}
min_cohort_size = {3 if masked else 1}
min_hospitals = {3 if masked else 2}
max_hospitals = 3
max_weight = 16
[judging]
max_voters = 2
seats = 2
decoys = {"true" if decoys else "false"}
[money]
pool = 1000
{windows(20_000)}
""".encode()


class Kept:
    """Puts into a store what it publishes."""

    store: ArtifactStore

    def keep(self, published: PublishedCohort) -> PublishedCohort:
        for blob in published.blobs:
            self.store.put_blob(blob, commit(blob))
        return published


@dataclass
class PlainTask(TaskDriver, Kept):
    def shown_sum(self, cohort: int, survivors: Any) -> PublishedCohort:
        return self.keep(super().shown_sum(cohort, survivors))


@dataclass
class DecoyTask(DecoyDriver, Kept):
    """Its decoys take back the progress in the record, unless it lies."""

    lies: bool = False

    def shown_sum(self, cohort: int, survivors: Any) -> PublishedCohort:
        return self.keep(super().shown_sum(cohort, survivors))

    def hiding(self) -> HiddenSums:
        found, spec = super().hiding(), parse_task_spec(self.store.get_file(self.params.spec_hash))
        if not self.lies:
            found.negated_delta = PublishedSums(self.operator, self.store, self.task, spec).negated_delta(self.round)
        return found


@dataclass
class Settled:
    """A task whose rounds are all settled, and where its artifacts are."""

    task: PlainTask | DecoyTask
    spec: TaskSpec
    folder: Path

    @property
    def ledger(self) -> Ledger:
        """Nobody's."""
        return Ledger(Connection(self.task.chain.node.url), self.task.chain.deployment)

    def report(self, round_: int, folder: Path | None = None) -> Report:
        return verify_round(self.ledger, ArtifactStore(folder or self.folder), self.task.task, round_)

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(self.folder, folder / "artifacts"))

    def blob(self, folder: Path, round_: int, cohort: int) -> Path:
        (shown,) = self.task.operator.tasks.expected_blob_hashes(self.task.task, round_, cohort, 1)
        return folder / f"blob-{shown.hex()}"


def propose(
    chain: LocalChain,
    kind: type[PlainTask | DecoyTask],
    folder: Path,
    decoys: bool,
    masked: bool = False,
    **more: Any,
) -> Settled:
    raw, store = task_file(decoys, masked), ArtifactStore(folder)
    spec = parse_task_spec(raw)
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1)
    params = task_params(spec, store.put_file(raw), aggregator.address)
    task = kind(
        chain,
        hospitals=3,
        voters=2,
        lanes=spec.parameters,
        terms={name: value for name, value in vars(params).items() if name != "aggregator"},
        layout=spec.update_layout,
        statistics=(spec.statistics_layout, spec.statistics_values),
        **more,
    )
    task.store = store
    return Settled(task, spec, folder)


def play(settled: Settled) -> Settled:
    """Round 1 with both cohorts accepted, round 2 with one that is harmful and a voter that is off."""
    task = settled.task
    task.join(rows=[25, 160, 90]).first_round()
    for genuine in (GOOD, [50_000, -60_000]):
        task.form().commit_all().publish()
        if isinstance(task, DecoyDriver):
            task.draw().vote([task.ballot(genuine, BAD), task.ballot(genuine, [BAD[0], BAD[1] - 100])])
            task.open()
        else:
            task.draw().judge([genuine, [genuine[0] + 90_000, genuine[1]]])
    return settled


@pytest.fixture(scope="module")
def plain(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Settled:
    return play(propose(local_chain, PlainTask, tmp_path_factory.mktemp("plain"), decoys=False))


@pytest.fixture(scope="module")
def decoy(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Settled:
    return play(propose(local_chain, DecoyTask, tmp_path_factory.mktemp("decoy"), decoys=True, flipped=0b01))


def results(report: Report) -> dict[Name, Result]:
    return {check.name: check.result for check in report.checks}


def failing(report: Report) -> dict[Name, str]:
    return {check.name: check.detail for check in report.checks if check.result is Result.FAILS}


# What holds


@pytest.mark.parametrize("kind", ["plain", "decoy"])
@pytest.mark.parametrize("round_", [0, 1, 2])
def test_every_round_of_an_honest_task_holds(request: pytest.FixtureRequest, kind: str, round_: int) -> None:
    settled: Settled = request.getfixturevalue(kind)
    report = settled.report(round_)
    wanted: dict[Name, Result] = dict.fromkeys(set(Name) - {Name.DECOYS, Name.CHEATERS, Name.BASES}, Result.HOLDS)
    if round_ == 0:
        wanted[Name.SETTLEMENT] = Result.UNCHECKED
    elif kind == "decoy":
        wanted[Name.DECOYS] = Result.HOLDS
    assert results(report) == wanted, report.checks
    assert report.holds
    # A hospital derives the same bits.
    ledger, store = settled.ledger, settled.task.store
    record = PublicRecord(ledger, store, load_task(ledger, store, settled.task.task))
    own: list[tuple[str, NDArray[Any]]] = [
        ("final model" if round_ == 2 else f"base of round {round_ + 1}", record.base(round_ + 1))
    ]
    if round_ == 0:
        own.insert(0, ("statistics", record.statistics()))
    assert [(one.what, one.sha256) for one in report.derived] == [
        (what, hashlib.sha256(values.tobytes()).hexdigest()) for what, values in own
    ]


def test_verify_says_what_it_found_in_a_hundred_columns_and_as_json(decoy: Settled, tmp_path: Path) -> None:
    code, said = consilium(decoy, tmp_path, decoy.folder)  # without ROUND: the last
    assert (code, max(map(len, said.splitlines()))) == (0, 100)
    report = decoy.report(2)
    for words in ["round 2 of 2: settled", "final model", report.derived[0].sha256, "Not proven", "trained honestly"]:
        assert words in said
    assert "FAILS" not in said
    code, said = consilium(decoy, tmp_path, decoy.folder, "2", "--json")
    assert code == 0
    assert Report.model_validate_json(said) == report
    raw = json.loads(said)
    assert (raw["holds"], tuple(raw["proven"]), tuple(raw["not_proven"])) == (True, report.proven, report.not_proven)


def test_whole_task_is_verified_round_by_round_and_names_what_fails(plain: Settled, tmp_path: Path) -> None:
    told: list[Report] = []
    found = verify_task(plain.ledger, ArtifactStore(plain.folder), plain.task.task, on_report=told.append)
    assert [report.subject.round for report in found.rounds] == [0, 1, 2]
    assert (list(found.rounds), found.failed) == (told, {})
    folder = plain.copy(tmp_path)
    plain.blob(folder, 2, 0).unlink()
    assert verify_task(plain.ledger, ArtifactStore(folder), plain.task.task).failed == {2: ["blobs"]}


def test_example_verifies_the_last_round(plain: Settled, tmp_path: Path) -> None:
    chain = plain.task.chain
    chain.deployment.write(tmp_path / "book.json")
    given = [tmp_path / "book.json", chain.node.url, plain.folder, plain.task.task]
    command = [sys.executable, "-m", "consilium_verify.example", *map(str, given)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"{one.result:12} {one.name}: {one.detail}" for one in plain.report(2).checks]


def consilium(settled: Settled, scratch: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    return run_verify(settled.task.chain, scratch, folder, str(settled.task.task), *arguments)


def run_verify(chain: LocalChain, scratch: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of `consilium verify`, on a wide terminal."""
    book = scratch / "book.json"
    chain.deployment.write(book)
    given = ["--rpc", chain.node.url, "--address-book", str(book), "--artifacts", str(folder)]
    ran = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["verify", *arguments, *given])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return ran.exit_code, ran.output


def test_a_decoy_tasks_model_is_written_with_which_sums_were_flipped(decoy: Settled, tmp_path: Path) -> None:
    decoy.task.chain.deployment.write(tmp_path / "book.json")
    given = ["--rpc", decoy.task.chain.node.url, "--address-book", str(tmp_path / "book.json")]
    given += ["--artifacts", str(decoy.folder), "--output", str(tmp_path / "model")]
    ran = CliRunner().invoke(app, ["operator", "download-model", str(decoy.task.task), *given])
    assert ran.exit_code == 0, ran.exception
    proof = json.loads((tmp_path / "model" / "proof.json").read_text())
    assert [[cohort["flipped"] for cohort in one["cohorts"]] for one in proof["rounds"][1:]] == [[True, False]] * 2
    assert [[cohort["accepted"] for cohort in one["cohorts"]] for one in proof["rounds"]] == [
        [True], [True, True], [True, False],
    ]  # fmt: skip
    assert proof["model_sha256"] == decoy.report(2).derived[-1].sha256
    assert all(len(one["report"]["checks"]) >= 6 and one["report"]["holds"] for one in proof["rounds"])


# What fails, by changes of the store


def flip_a_byte(file: Path) -> None:
    kept = file.read_bytes()
    file.write_bytes(kept[:31] + bytes([kept[31] ^ 1]) + kept[32:])


@pytest.mark.parametrize("kind", ["plain", "decoy"])
@pytest.mark.parametrize("attack", ["a byte changed", "missing", "another under its name"])
def test_changed_blob_fails_by_name(request: pytest.FixtureRequest, tmp_path: Path, kind: str, attack: str) -> None:
    settled: Settled = request.getfixturevalue(kind)
    folder = settled.copy(tmp_path)
    blob, other = settled.blob(folder, 1, 1), settled.blob(folder, 1, 0)
    if attack == "missing":
        blob.unlink()
    elif attack == "a byte changed":
        flip_a_byte(blob)
    else:
        shutil.copyfile(other, blob)
    report = settled.report(1, folder)
    assert list(failing(report)) == [Name.BLOBS]
    assert "cohort 1: " in failing(report)[Name.BLOBS]
    assert blob.name.removeprefix("blob-") in failing(report)[Name.BLOBS]
    found = results(report)
    assert (found[Name.SUMS], found[Name.LANES], found[Name.MODEL]) == (Result.HOLDS, *[Result.UNCHECKED] * 2)
    assert report.failed_first[0].name is Name.BLOBS
    code, said = consilium(settled, tmp_path, folder, "1")
    assert code == 1
    assert said.index("FAILS") < said.index("holds")
    # The next round has lost its base, and says so.
    assert Name.MODEL in failing(settled.report(2, folder)) or Name.DECOYS in failing(settled.report(2, folder))


def test_changed_task_file_fails_by_name_and_leaves_the_sums(plain: Settled, tmp_path: Path) -> None:
    folder = plain.copy(tmp_path)
    (file,) = folder.glob("file-*")
    file.write_bytes(file.read_bytes().replace(b"pool = 1000", b"pool = 2000"))
    report = plain.report(1, folder)
    assert list(failing(report)) == [Name.TASK_FILE]
    left = {name for name, result in results(report).items() if result is Result.HOLDS}
    assert left == {Name.SUMS, Name.BLOBS, Name.SETTLEMENT}
    assert report.derived == ()


def test_task_whose_terms_are_not_its_files_fails_with_both_values(
    local_chain: LocalChain, plain: Settled, tmp_path: Path
) -> None:
    terms = plain.task.params
    check = terms_match(terms, replace(terms, pool=terms.pool + 3 * TOKEN))
    assert check.result is Result.HOLDS
    assert check.detail.endswith("its terms are those on chain, and its operator added 3.00 tokens to the pool")
    check = terms_match(terms, replace(terms, pool=terms.pool - 1))
    assert check.detail == f"pool is {terms.pool} in the file and {terms.pool - 1} on chain"
    check = terms_match(terms, replace(terms, hospital_bond=terms.hospital_bond + 1, decoys=True))
    assert (check.name, check.result) == (Name.TASK_FILE, Result.FAILS)
    assert check.detail.splitlines() == [
        "decoys is False in the file and True on chain",
        f"hospital_bond is {terms.hospital_bond} in the file and {terms.hospital_bond + 1} on chain",
    ]


def test_decoys_of_an_aggregators_own_choosing_fail_though_the_chain_settled_them(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    """The contract takes its word for what they take back; a committee that says nothing lets it pass."""
    settled = play(propose(local_chain, DecoyTask, tmp_path / "store", decoys=True, flipped=0b01, lies=True))
    faults = failing(settled.report(1))
    assert "by the record" in faults[Name.DECOYS]
    assert "cohort 0, blob 0" in faults[Name.SUMS]
    assert "cohort 1" not in faults[Name.SUMS]  # as it is: nothing was taken back


def test_opening_in_several_transactions_among_refused_ones_is_found(local_chain: LocalChain, tmp_path: Path) -> None:
    settled = propose(local_chain, DecoyTask, tmp_path / "store", decoys=True, flipped=0b10)
    task = settled.task
    assert isinstance(task, DecoyTask)
    task.join().first_round().form().commit_all().publish()
    task.draw().vote([task.ballot(GOOD, BAD)] * 2)

    def wrong(disclosed: list[DisclosedCohort]) -> list[DisclosedCohort]:
        return [replace(one, blobs=[replace(blob, blinders=(1, 2)) for blob in one.blobs]) for one in disclosed]

    hidden, stranger = task.hiding(), local_chain.funded()
    task.open(lambda disclosed: disclosed[1:], settle_gas=10**8)
    with refused("BlobMismatch"):
        points = hidden.negated_delta.points
        stranger.aggregator.disclose_decoys(
            task.task, 1, hidden.seed, points, wrong(task.disclosed()), 10**8, force=True
        )
    task.open(by=stranger)
    shown = [(one.cohort, one.blinders == (1, 2)) for one in settled.ledger.record.shown_blinders(task.task, 1)]
    assert shown == [(1, False), (0, True), (1, True), (0, False), (1, False)]
    assert results(settled.report(1))[Name.SUMS] is Result.HOLDS


def test_void_round_moves_nothing_and_pays_by_the_rules(local_chain: LocalChain, tmp_path: Path) -> None:
    settled = propose(local_chain, DecoyTask, tmp_path / "store", decoys=True)
    task = settled.task.join().first_round().form().commit_all()
    task.publish()
    task.draw().vote([[0] * 4] * 2)
    task.operator.phases.settle(task.task, 1)
    task.pass_deadline()
    task.tick()  # not disclosed: the aggregator is slashed
    report = settled.report(1)
    assert report.subject.outcome == "void (not disclosed)"
    assert [name for name, result in results(report).items() if result is Result.HOLDS] == [
        Name.TASK_FILE, Name.MODEL, Name.SETTLEMENT,
    ]  # fmt: skip
    (base,) = report.derived
    (before,) = [one for one in settled.report(0).derived if one.what == "base of round 1"]
    assert (base.what, base.sha256) == ("base of round 2", before.sha256)
    assert "slashes (1)" in next(check.detail for check in report.checks if check.name is Name.SETTLEMENT)


@pytest.mark.parametrize("kind", [PlainTask, DecoyTask])
def test_round_without_a_sum_moves_nothing_and_slashes_whose_doing_it_is(
    local_chain: LocalChain, tmp_path: Path, kind: type[Any]
) -> None:
    """The chain has nothing of its decoys either."""
    settled = propose(local_chain, kind, tmp_path / "store", kind is DecoyTask, masked=True)
    task = settled.task.join(rows=[25, 160, 90]).first_round()
    for charged in ([], [0]):
        task.form().commit_all().publish(accused=charged)
        if charged:
            task.name([1]).draw().vote([[0] * (1 + (kind is DecoyTask))] * 2)
            task.operator.phases.settle(task.task, 2)
        elif isinstance(task, DecoyTask):
            task.draw().vote([task.ballot(GOOD[:1], BAD[:1])] * 2)
            task.open()
        else:
            task.draw().judge([GOOD[:1]] * 2)
    report = settled.report(2)
    assert report.subject.outcome == "settled"
    # This driver's hospitals deal nothing, so that its accusation is of nobody's masking.
    fault = "hospital 1 was named, and the committee agreed; the evidence proves nothing: survivors [0, 1, 2]"
    assert list(failing(report)) == [Name.CHEATERS]
    assert failing(report)[Name.CHEATERS].startswith(fault)
    assert [name for name, result in results(report).items() if result is Result.HOLDS] == [
        Name.TASK_FILE, Name.MODEL, Name.SETTLEMENT,
    ]  # fmt: skip
    assert {check.detail for check in report.checks if check.result is Result.UNCHECKED} == {
        "no cohort of this round has a sum"
    }
    assert "slashes (1)" in next(check.detail for check in report.checks if check.name is Name.SETTLEMENT)
    (before,), (after,) = settled.report(1).derived, report.derived
    assert (before.what, after.what, after.sha256) == ("base of round 2", "final model", before.sha256)


# Who broke a sum


@pytest.fixture(scope="module")
def disputed(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Accused:
    """A statistics round whose sum hospital LIAR broke; everybody else has disputed, and nobody is named yet."""
    case = accused(local_chain, tmp_path_factory.mktemp("disputed"), FalseUpload)
    case.submit_evidence()
    return case


def verdict(case: Accused, store: ArtifactStore | None = None) -> Check:
    ledger = Ledger(Connection(case.round.chain.node.url), case.round.chain.deployment)
    report = verify_round(ledger, store or case.round.store, case.round.task, 0)
    return next(check for check in report.checks if check.name is Name.CHEATERS)


def name(case: Accused, hospitals: Sequence[int], voter: type[VoterNode]) -> None:
    case.round.aggregator.aggregator.name_cheaters(case.round.task, 0, sum(1 << index for index in hospitals))
    case.judge(voter(case.round.voter, case.round.voter.connect()))


def test_who_broke_a_sum_is_recomputed_and_told_in_words(disputed: Accused, tmp_path: Path) -> None:
    chain, task = disputed.round.chain, str(disputed.round.task)
    folder = of_kind(Path, disputed.round.settings[0].artifacts[0])
    liar = disputed.nodes[LIAR].ledger.address
    with chain.undone():
        name(disputed, [LIAR], VoterNode)
        check = verdict(disputed)
        assert (check.result, check.detail.splitlines()) == (
            Result.HOLDS,
            [
                f"hospital {LIAR} was named, and the committee agreed; the evidence gives hospital {LIAR}",
                f"hospital {LIAR} ({liar}): named, slashed; {Reason.CONTRADICTION}",
            ],
        )
        code, said = run_verify(chain, tmp_path, folder, task, "0")
        words = " ".join(said.split())
        assert (code, liar in words, "No honest hospital that submitted evidence in time is among them" in words) == (
            0,
            True,
            True,
        )

        evidence = disputed.round.aggregator.record.accusations(disputed.round.task, 0)[0].evidence.hex()
        upload = json.loads((folder / f"file-{evidence}").read_bytes())["uploads"]["1"][0]
        changes: list[tuple[str, Callable[[Path], None]]] = [
            (evidence, Path.unlink), (upload, Path.unlink), (upload, flip_a_byte),
        ]  # fmt: skip
        for number, (digest, change) in enumerate(changes):
            other = Path(shutil.copytree(folder, tmp_path / str(number)))
            change(other / f"file-{digest}")
            check = verdict(disputed, ArtifactStore(other))
            assert (check.result, digest in check.detail) == (Result.FAILS, True)
            assert check.detail.endswith(f"unproven: hospital {LIAR} was named, and the committee agreed")
        assert run_verify(chain, tmp_path, other, task, "0")[0] == 1


@pytest.mark.parametrize(
    ("named", "voter", "result", "words"),
    [
        ([0], Bribed, Result.FAILS, "hospital 0 was named, and the committee agreed"),
        ([0, LIAR], Bribed, Result.FAILS, f"hospitals 0, {LIAR} were named, and the committee agreed"),
        ([LIAR], Bribed, Result.FAILS, f"hospital {LIAR} was named, but most of the committee said"),
        ([0], VoterNode, Result.HOLDS, "hospital 0 was named, but most of the committee said"),
    ],
)
def test_committee_that_judged_wrongly_fails_and_one_that_saw_through_holds(
    disputed: Accused, named: list[int], voter: type[VoterNode], result: Result, words: str
) -> None:
    with disputed.round.chain.undone():
        name(disputed, named, voter)
        check = verdict(disputed)
        assert check.result is result
        assert check.detail.startswith(words)
        upheld = "agreed" in words
        for index in {*named, LIAR}:
            done = f"{'' if index in named else 'not '}named, {'' if upheld and index in named else 'not '}slashed"
            why = Reason.CONTRADICTION if index == LIAR else "no evidence against it"
            assert f"hospital {index} ({disputed.nodes[index].ledger.address}): {done}; {why}" in check.detail


def test_aggregator_that_named_nobody_is_told_whom_the_evidence_gives(disputed: Accused, tmp_path: Path) -> None:
    with disputed.round.chain.undone():
        disputed.round.chain.pass_time(2 * WINDOW)
        disputed.round.aggregator.phases.tick(disputed.round.task)
        check = verdict(disputed)
        assert check.result is Result.HOLDS
        assert check.detail.startswith(f"the aggregator named no hospital in time; the evidence gives hospital {LIAR}")
        check = verdict(disputed, ArtifactStore(tmp_path))
        assert (check.result, check.detail.splitlines()[-1]) == (Result.FAILS, "unproven: if a hospital broke a sum")


def test_accused_that_had_no_time_to_submit_evidence_are_not_said_to_have_been_silent(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    """The aggregator accuses one cohort, and lets the other one's publication pass."""
    masked = {"masked": True, "min_cohort_size": 3, "min_hospitals": 3, "cohorts": 2}
    task = TaskDriver(local_chain, hospitals=6, terms=masked).to_committing()
    task.commit_all().aggregator.aggregator.fix_survivors(task.task, 1, 0b111111)
    task.aggregator.aggregator.accuse_cohort(task.task, 1, 0, bytes(32), bytes(32))
    task.pass_deadline()
    task.tick()
    report = verify_round(task.operator, ArtifactStore(tmp_path), task.task, 1)
    assert (report.subject.outcome, results(report)[Name.CHEATERS]) == ("void (not published)", Result.UNCHECKED)


def test_verify_refuses_rounds_without_an_outcome(local_chain: LocalChain, plain: Settled, tmp_path: Path) -> None:
    with pytest.raises(RecordIncomplete, match="round 3 of task"):
        plain.report(3)
    with pytest.raises(Refused, match="TaskUnknown"):
        verify_round(plain.ledger, plain.task.store, 10_000, 0)
    young = TaskDriver(local_chain)
    plain.task.chain.deployment.write(tmp_path / "book.json")
    given = ["--rpc", local_chain.node.url, "--address-book", str(tmp_path / "book.json"), "--artifacts", str(tmp_path)]
    ran = CliRunner().invoke(app, ["verify", str(young.task), *given])
    assert isinstance(ran.exception, RecordIncomplete)
    assert "wait until one is" in str(ran.exception)


def test_key_in_the_nodes_url_is_never_shown(decoy: Settled, tmp_path: Path) -> None:
    decoy.task.chain.deployment.write(tmp_path / "book.json")
    given = [str(decoy.task.task), "--address-book", str(tmp_path / "book.json"), "--artifacts", str(decoy.folder)]
    for node in (decoy.task.chain.node.url, "http://127.0.0.1:9"):
        ran = CliRunner(env={"CONSILIUM_RPC_URL": f"{node}/?key=hush"}).invoke(app, ["verify", *given])
        assert node in ran.output + str(ran.exception)
        assert "hush" not in ran.output + str(ran.exception)


# What fails, by changes of what the chain says


def published(weights: list[int], scalars: list[list[int]], bits: int = 0) -> tuple[dict[str, Any], Published]:
    """A cohort whose members committed to these scalars times the generator, one for each of two blobs."""
    points = {f"0x{i:02x}": [weighted_sum([GENERATOR], [k]) for k in pair] for i, pair in enumerate(scalars)}
    totals = [sum(w * pair[blob] for w, pair in zip(weights, scalars, strict=True)) for blob in range(2)]
    hashes = [versioned_hash(weighted_sum([GENERATOR], [total])) for total in totals]
    return points, Published(1, dict(zip(points, weights, strict=True)), hashes)


MEMBERS = st.lists(
    st.tuples(st.integers(1, 2**16), st.lists(st.integers(1, BLS_MODULUS - 1), min_size=2, max_size=2)),
    min_size=2,
    max_size=4,
)


def test_points_that_a_survivor_did_not_commit_to_fail(plain: Settled, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = plain.ledger.record.shown_points(plain.task.task, 1)
    one = next(iter(shown))
    moved = {blob: weighted_sum([point, GENERATOR], [1, 1]) for blob, point in shown[one].items()}
    monkeypatch.setattr(Record, "shown_points", lambda *_: shown | {one: moved})
    assert failing(plain.report(1))[Name.SUMS] == f"{one} did not commit to the points that PointsShown has"


@given(MEMBERS, st.data())
def test_sums_hold_for_the_committed_points_and_for_no_others(drawn: list[Any], data: st.DataObject) -> None:
    points, cohort = published([w for w, _ in drawn], [pair for _, pair in drawn])
    assert plain_sums(points, [cohort]).result is Result.HOLDS
    who, blob = data.draw(st.sampled_from(sorted(points))), data.draw(st.integers(0, 1))
    moved = weighted_sum([points[who][blob], GENERATOR], [1, 1])
    changed = points | {who: [moved if place == blob else point for place, point in enumerate(points[who])]}
    check = plain_sums(changed, [cohort])
    assert check.result is Result.FAILS
    assert check.detail.startswith(f"cohort 1, blob {blob}: the chain has {cohort.hashes[blob].hex()}")
    heavier = replace(cohort, weights=dict(cohort.weights) | {who: cohort.weights[who] + 1})
    assert plain_sums(points, [heavier]).result is Result.FAILS
    for fewer in ({k: v for k, v in points.items() if k != who}, points | {who: points[who][:1]}):
        check = plain_sums(fewer, [cohort])
        assert (check.result, who in check.detail) == (Result.FAILS, True)


LAYOUT = LaneLayout(bits=17, total_weight=256)
NEGATED_DELTA = NegatedDelta(negated_delta_lanes(np.arange(-2000, 2000, dtype=np.int64), 16), LAYOUT)
SEED = bytes(range(32))


@pytest.mark.parametrize("flipped", [False, True])
def test_decoy_sums_hold_by_blinders_that_anybody_shows_and_not_without(flipped: bool) -> None:
    points, cohort = published([3, 4], [[11, 12], [13, 14]])
    points = {who: pair[:1] for who, pair in points.items()}
    total = weighted_sum([pair[0] for pair in points.values()], [3, 4])
    shown = published_commitment(total, 7, (5, 6), NEGATED_DELTA.points[0], LAYOUT, flipped)
    cohort = replace(cohort, hashes=[versioned_hash(shown)], is_flipped=flipped)
    right, wrong, elsewhere = (ShownBlinders(k, 0, SEED, pair) for k, pair in ((1, (5, 6)), (1, (6, 5)), (0, (5, 6))))
    for said, result in [
        ([right], Result.HOLDS), ([wrong, right], Result.HOLDS), ([wrong], Result.FAILS),
        ([], Result.UNCHECKED), ([elsewhere], Result.UNCHECKED),
    ]:  # fmt: skip
        assert decoy_sums(points, [cohort], NEGATED_DELTA, said).result is result
    assert decoy_sums(points, [replace(cohort, is_flipped=not flipped)], NEGATED_DELTA, [right]).result is Result.FAILS


def test_decoys_follow_the_seed_and_the_record() -> None:
    said = Decoys(seed_commitment(SEED), NEGATED_DELTA.digest)
    cohorts = [Published(k, {}, [], is_flipped(SEED, 1, 2, k)) for k in range(4)]
    shown = [ShownBlinders(0, 0, bytes(32), (0, 0)), ShownBlinders(0, 0, SEED, (0, 0))]
    assert decoys_follow(1, 2, said, NEGATED_DELTA.digest, shown, cohorts).result is Result.HOLDS
    assert decoys_follow(1, 2, said, NEGATED_DELTA.digest, shown[:1], cohorts).result is Result.UNCHECKED
    assert decoys_follow(1, 2, said, bytes(32), shown, cohorts).result is Result.FAILS
    lied = [*cohorts[:3], replace(cohorts[3], is_flipped=not cohorts[3].is_flipped)]
    check = decoys_follow(1, 2, said, NEGATED_DELTA.digest, shown, lied)
    assert (check.result, check.detail[:8]) == (Result.FAILS, "cohort 3")


def test_lanes_out_of_range_fail_where_they_were_accepted() -> None:
    faults = {0: "", 1: "cohort 1: lane 5 is too large"}
    assert lanes_in_range(faults, accepted=0b01).result is Result.HOLDS
    check = lanes_in_range(faults, accepted=0b11)
    assert (check.result, check.detail) == (Result.FAILS, faults[1])


MONEY = ("Rewarded", "Slashed", "BountyPaid", "RoundSettled", "ScoresRevealed")


def test_settlement_fails_where_the_chain_told_of_other_money(decoy: Settled) -> None:
    ledger, number = decoy.ledger, decoy.task.task
    state = ledger.tasks.round_state(number, 2)
    books = Books(
        ledger.tasks.hospitals(number), ledger.tasks.voters(number),
        [ledger.tasks.cohort_members(number, 2, k) for k in range(2)],
        *(ledger.logs.of_task(name, number) for name in MONEY),
    )  # fmt: skip

    def check(changed: Books) -> Check:
        return settlement_follows(decoy.task.params, 2, state, changed)

    assert check(books).result is Result.HOLDS
    last = books.rewarded[-1]
    generous = replace(last, values=last.values | {"amount": last.values["amount"] + 1})
    found = check(replace(books, rewarded=[*books.rewarded[:-1], generous]))
    assert found.result is Result.FAILS
    assert found.detail == (
        f"{last.values['account']} is paid {last.values['amount'] + 1} on chain,"
        f" but {last.values['amount']} by the rules"
    )
    assert check(replace(books, slashed=[])).result is Result.FAILS


# How an accused round can end: void for which reason, and whether who is named is slashed for it then.
ENDS = {
    VoidReason.NONE: True,
    VoidReason.NO_SUMS: True,
    VoidReason.TOO_FEW_SCORES: False,
    VoidReason.NOT_DISCLOSED: False,
}
NODES = [f"0x{index:02x}" for index in range(4)]
INDICES = st.sets(st.integers(0, 3))
REASONS = st.dictionaries(st.integers(0, 3), st.sampled_from(Reason))
TERMS = driver_params("0xaa", masked=True)


def round_state(void: VoidReason, named: set[int], guilty: set[int], viable: int = 0) -> RoundState:
    plain: dict[str, Any] = dict.fromkeys((field.name for field in fields(RoundState)), 0)
    outcome = Outcome.VOID if void else Outcome.SETTLED
    bits = {"named": sum(1 << i for i in named), "guilty": sum(1 << i for i in guilty), "viable_cohorts": viable}
    return RoundState(**plain | bits | {"outcome": outcome, "void_reason": void, "medians": ()})


def slashed_books(hospitals: set[int]) -> Books:
    """Of round 1; in round 0 all were, and some in round 1 for other things."""
    for_what = [(0, i, SlashReason.FALSE_UPLOAD) for i in range(4)] + [(1, 3, SlashReason.HARMFUL_COHORT)]
    for_what += [(1, i, SlashReason.FALSE_UPLOAD) for i in hospitals]
    told = [
        Event("Slashed", {"round": round_, "account": NODES[i], "amount": 1, "reason": int(reason)}, 1, 0, "", "")
        for round_, i, reason in for_what
    ]
    return Books([Hospital(node, 1, 1) for node in NODES], [], [], [], told, [], [], [])


@given(INDICES.filter(bool), REASONS, st.sampled_from([*ENDS]), st.data())
def test_naming_holds_if_and_only_if_the_evidence_gives_the_same(
    named: set[int], found: dict[int, Reason], end: VoidReason, data: st.DataObject
) -> None:
    guilty = named if ENDS[end] else set[int]()
    check = cheaters_follow(TERMS, 1, round_state(end, named, guilty), slashed_books(guilty), found)
    assert check.result is (Result.HOLDS if found.keys() == named else Result.FAILS)
    lines = check.detail.splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == [f"hospital {i} ({NODES[i]})" for i in sorted(named | set(found))]
    assert all(found[i] in line for i, line in zip(sorted(named | set(found)), lines, strict=True) if i in found)
    # Whoever is right: that others are slashed than the rules say, or guilty, fails.
    others = data.draw(INDICES.filter(lambda drawn: drawn != guilty))
    for state, books in [
        (round_state(end, named, guilty), slashed_books(others)),
        (round_state(end, named, others), slashed_books(guilty)),
    ]:
        assert cheaters_follow(TERMS, 1, state, books, found).result is Result.FAILS


@given(INDICES.filter(bool), REASONS, st.sampled_from(["", "the evidence proves nothing: it is none"]))
def test_committee_that_refuses_a_naming_is_right_if_and_only_if_the_evidence_gives_others(
    named: set[int], found: dict[int, Reason], flaw: str
) -> None:
    found = {} if flaw else found
    state, books = round_state(VoidReason.MISMATCHED, named, set()), slashed_books(set())
    check = cheaters_follow(TERMS, 1, state, books, found, flaw)
    assert check.result is (Result.FAILS if found.keys() == named else Result.HOLDS)
    assert flaw in check.detail
    # It may have meant what was published, where that is its to say: then only a wrong naming tells.
    published = replace(state, viable_cohorts=1)
    assert cheaters_follow(TERMS, 1, published, books, found, flaw).result is check.result
    for terms in (replace(TERMS, decoys=True), replace(TERMS, digests=True)):
        wanted = Result.UNCHECKED if check.result is Result.FAILS else Result.HOLDS
        assert cheaters_follow(terms, 1, published, books, found, flaw).result is wanted
        assert cheaters_follow(terms, 1, published, slashed_books(named), found, flaw).result is Result.FAILS


@given(REASONS)
def test_aggregator_that_names_nobody_is_slashed_whatever_the_evidence_gives(found: dict[int, Reason]) -> None:
    state = round_state(VoidReason.NOT_PUBLISHED, set(), set())
    assert cheaters_follow(TERMS, 1, state, slashed_books(set()), found).result is Result.HOLDS
    assert cheaters_follow(TERMS, 1, state, slashed_books({2}), found).result is Result.FAILS


def test_terms_under_which_a_false_upload_costs_nothing_slash_nobody() -> None:
    state, found = round_state(VoidReason.NONE, {1}, {1}), {1: Reason.NO_PROOF}
    free = replace(TERMS, harmful_slash_bps=0)
    assert cheaters_follow(free, 1, state, slashed_books(set()), found).result is Result.HOLDS
    assert cheaters_follow(free, 1, state, slashed_books({1}), found).result is Result.FAILS


def test_digest_is_of_little_endian_bytes() -> None:
    assert derived("x", np.array([1.5], ">f4")).sha256 == hashlib.sha256(b"\x00\x00\xc0\x3f").hexdigest()
