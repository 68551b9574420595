"""Voters on a real chain, and an auditor with their rows: who looked passes, and who did not is found."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_driver import LocalChain
from click.testing import Result
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_cli.main import app
from consilium_client.errors import BallotError, ClientError, NodeError
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_client.voter.ballots import Ballot, kept_held_out_secret
from consilium_client.voter.disclosure import Disclosure, Finding, Name, audit, disclose
from consilium_client.voter.evaluating import Judge
from consilium_client.voter.node import VoterNode
from consilium_core.kinds import of_kind
from consilium_zk.evaluation import BATCH_ROWS, DISCLOSED_BATCHES, FINGERPRINT_TAG, ballot_salt, batch_leaves, leaf_salt
from consilium_zk.merkle import path_of
from evaluation_driver import EvaluatedTask, LazyNode, LyingNode, write_rows
from examples_read import read_table
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from typer.testing import CliRunner

HONEST, LAZY, LIAR = range(3)
BATCHES = 30
ROWS = BATCHES * BATCH_ROWS - 5


@dataclass
class Voted:
    task: EvaluatedTask
    folder: Path

    @property
    def ledger(self) -> Ledger:
        """Nobody's."""
        return Ledger(Connection(self.task.chain.node.url), self.task.chain.deployment)

    def disclosure(self, voter: int) -> Disclosure:
        node = self.task.voter_nodes[voter]
        return disclose(node.ledger, self.task.task, self.ballot(voter), self.secret(voter))

    def ballot(self, voter: int) -> Ballot:
        node = self.task.voter_nodes[voter]
        return node.ballots.kept(1)

    def secret(self, voter: int) -> bytes:
        node = self.task.voter_nodes[voter]
        return kept_held_out_secret(node.settings.home, node.ledger.folder_name(self.task.task))

    def judge(self, data: Path) -> Judge:
        ledger, store = self.ledger, self.task.store
        joined = load_task(ledger, store, self.task.task)
        return Judge(
            joined, PublicRecord(ledger, store, joined), read_table(data, of_kind(TableSchema, joined.spec.data))
        )

    def rows(self, voter: int) -> Path:
        return self.folder / f"rows-{voter}.csv"

    def verify(self, file: Path, data: Path, *more: str) -> tuple[int, str]:
        ran = self.run_verify(file, data, *more)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return ran.exit_code, ran.output

    def run_verify(self, file: Path, data: Path, *more: str) -> Result:
        book = self.folder / "book.json"
        self.task.chain.deployment.write(book)
        given = ["--data", data, "--artifacts", self.folder / "artifacts", "--rpc", self.task.chain.node.url]
        return run("verify-evaluation", file, *given, "--address-book", book, *more)


def run(*arguments: Any) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, list(map(str, arguments)))


class PowerCut(Exception):
    pass


def assert_kept_first(task: EvaluatedTask, found: Voted) -> None:
    """Where power fails as a ballot's commitment is about to leave, what it binds is on disk."""
    node = task.voter_nodes[HONEST]
    with pytest.MonkeyPatch.context() as patch:

        def cut(*_: object) -> None:
            raise PowerCut

        patch.setattr(node.ledger.voter, "commit_scores", cut)
        with pytest.raises(PowerCut):
            node._score(task.operator.tasks.state(task.task), task.round_state)
    kept = found.ballot(HONEST)
    assert len(kept.evaluated.fingerprints) == BATCHES
    assert kept.salt == ballot_salt(kept.evaluated.root, kept.evaluated.blinding)


@pytest.fixture(scope="module")
def voted(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Voted:
    folder = tmp_path_factory.mktemp("evaluated")
    task = EvaluatedTask.propose(local_chain, folder, [VoterNode, LazyNode, LyingNode])
    for voter in (HONEST, LAZY, LIAR):
        write_rows(folder / f"rows-{voter}.csv", ROWS, seed=voter)
    found = Voted(task.to_seats(), folder)
    assert_kept_first(task, found)
    task.vote_all()
    with pytest.raises(RecordIncomplete, match="has not ended"):  # nobody knows yet what is drawn
        found.disclosure(HONEST)
    task.open()
    # Too late for this task.
    task.voter_nodes[HONEST].ledger.voter.commit_held_out(bytes(32))
    return found


def results(findings: Any) -> dict[Name, bool | None]:
    found: list[Finding] = list(findings)
    return {finding.name: finding.holds for finding in found}


ALL = dict.fromkeys(Name, True)


def test_an_honest_voter_opens_and_an_auditor_finds_that_all_holds(voted: Voted, tmp_path: Path) -> None:
    file = tmp_path / "disclosure.json"
    home = voted.task.folder_of(HONEST)
    ran = run("voter", "disclose-evaluation", voted.task.task, 1, "--home", home, "--out", file)
    assert (ran.exit_code, ran.exception) == (0, None)
    assert f"{DISCLOSED_BATCHES} batches of round 1" in ran.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, said = voted.verify(file, voted.rows(HONEST))
    assert code == 0, said
    assert said.count("holds") == len(Name)
    assert f"{DISCLOSED_BATCHES} of {BATCHES}:" in said
    assert "22 batches by 5 models" in said  # the base, and two cohorts' sums and decoys


def test_the_order_of_the_file_is_no_part_of_what_was_committed(voted: Voted, tmp_path: Path) -> None:
    order = np.random.default_rng(5).permutation(ROWS)
    other = write_rows(tmp_path / "rows.csv", ROWS, seed=HONEST, order=order.tolist())
    assert other.read_text() != voted.rows(HONEST).read_text()
    assert results(audit(voted.ledger, voted.judge(other), voted.disclosure(HONEST))) == ALL


def test_a_voter_that_copied_half_of_its_fingerprints_is_found(voted: Voted, tmp_path: Path) -> None:
    file = tmp_path / "disclosure.json"
    file.write_text(voted.disclosure(LAZY).model_dump_json())
    code, said = voted.verify(file, voted.rows(LAZY))
    assert code == 1
    found = results(audit(voted.ledger, voted.judge(voted.rows(LAZY)), voted.disclosure(LAZY)))
    assert found == ALL | {Name.FINGERPRINTS: False, Name.SCORES: False}
    code, said = voted.verify(file, voted.rows(LAZY), "--drawn-only")
    assert code == 1
    drawn = [batch.index for batch in voted.disclosure(LAZY).batches]
    copied = [index for index in drawn if index >= BATCHES // 2]
    assert f"these do not match their fingerprints: {', '.join(map(str, copied))}" in said


def test_a_voter_that_evaluates_and_says_something_else_is_found_by_its_scores_alone(voted: Voted) -> None:
    judge, disclosure = voted.judge(voted.rows(LIAR)), voted.disclosure(LIAR)
    assert results(audit(voted.ledger, judge, disclosure)) == ALL | {Name.SCORES: False}
    assert results(audit(voted.ledger, judge, disclosure, drawn_only=True)) == ALL | {Name.SCORES: None}


def test_other_rows_are_not_those_committed(voted: Voted, tmp_path: Path) -> None:
    lines = voted.rows(HONEST).read_text().splitlines()
    last = lines[-1]
    for changed in (lines[:-1], [*lines, last], [*lines[:-1], last[:-1] + str(1 - int(last[-1]))]):
        data = tmp_path / "rows.csv"
        data.write_text("\n".join(changed) + "\n")
        found = results(audit(voted.ledger, voted.judge(data), voted.disclosure(HONEST)))
        assert found == dict.fromkeys(Name, None) | {Name.BALLOT: True, Name.ROWS: False}


def test_a_voter_does_not_choose_what_it_opens(voted: Voted) -> None:
    """The lazy one shows only what it looked at."""
    honest, ballot = voted.disclosure(LAZY), voted.ballot(LAZY)
    leaves = batch_leaves(FINGERPRINT_TAG, ballot.evaluated.secret, ballot.evaluated.fingerprints)
    chosen = [
        {
            "index": index,
            "salt": leaf_salt(ballot.evaluated.secret, index).hex(),
            "fingerprints": ballot.evaluated.fingerprints[index].hex(),
            "path": [one.hex() for one in path_of(leaves, index)],
        }
        for index in range(BATCHES // 2)
    ]
    shown = Disclosure.model_validate_json(json.dumps(json.loads(honest.model_dump_json()) | {"batches": chosen}))
    found = results(audit(voted.ledger, voted.judge(voted.rows(LAZY)), shown, drawn_only=True))
    assert found == ALL | {Name.DRAW: False, Name.FINGERPRINTS: None, Name.SCORES: None}


def test_fingerprints_computed_after_the_ballot_are_not_its_own(voted: Voted) -> None:
    """The lazy one looks now, at what was drawn."""
    node = voted.task.voter_nodes[LAZY]
    judge = voted.judge(voted.rows(LAZY))
    state = voted.ledger.tasks.round_state(voted.task.task, 1)
    late = Ballot.bound(1, (0,) * 4, judge.judged(1, state).fingerprints)
    disclosure = disclose(node.ledger, voted.task.task, late, voted.secret(LAZY))
    assert results(audit(voted.ledger, judge, disclosure, drawn_only=True)) == ALL | {
        Name.BALLOT: False,
        Name.SCORES: None,
    }


def test_rows_chosen_after_joining_do_not_count(voted: Voted) -> None:
    """The honest voter has committed to others since."""
    address = voted.task.voter_nodes[HONEST].ledger.address
    assert voted.ledger.votes.held_out_root(voted.task.task + 1_000, address) == bytes(32)
    assert voted.ledger.votes.held_out_root(voted.task.task, address) not in (None, bytes(32))
    assert voted.ledger.votes.held_out_root(voted.task.task, voted.task.aggregator.address) is None


def test_nothing_is_opened_that_was_not_evaluated(voted: Voted, tmp_path: Path) -> None:
    node = voted.task.voter_nodes[HONEST]
    with raises_fault(NodeError, "NothingEvaluated"):
        disclose(node.ledger, voted.task.task, Ballot.bound(1, (0,) * 4, ()), bytes(32))
    with raises_fault(BallotError, "BallotLost"):
        node.ballots.kept(2)
    with raises_fault(NodeError, "HeldOutLost"):
        kept_held_out_secret(tmp_path, "nowhere")


def test_what_a_voter_keeps_is_its_own_to_read(voted: Voted) -> None:
    for voter in (HONEST, LAZY, LIAR):
        path = voted.task.voter_nodes[voter].ballots.path(1)
        kept = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert kept == {"held-out.json": 0o600, path.name: 0o600}
    assert len({voted.secret(voter) for voter in (HONEST, LAZY, LIAR)}) == 3


def test_a_restarted_voter_commits_to_the_same_rows_once(voted: Voted) -> None:
    node = voted.task.voter_nodes[LIAR]
    before = list(node.ledger.logs.of_staking("HeldOutCommitted", node.ledger.connection.blocks.number()))
    again = VoterNode(node.settings, node.ledger)
    again._commit_held_out()
    again.join()
    after = list(node.ledger.logs.of_staking("HeldOutCommitted", node.ledger.connection.blocks.number()))
    assert len(before) == len(after)


# Files that are none


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with raises_fault(ClientError, "DisclosureMalformed", match="cannot be read"):
        Disclosure.read(tmp_path / "none")


@settings(max_examples=60)
@given(data=st.data())
def test_a_changed_file_is_refused_by_name_or_found(voted: Voted, data: st.DataObject) -> None:
    """Whatever is cut out of it or put in."""
    raw = voted.disclosure(HONEST).model_dump_json().encode()
    place, length = data.draw(st.integers(0, 700) | st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 40))
    some = st.binary(max_size=3) | st.sampled_from([b"0", b"1", b"-1", b'"', b"null", b"1e9", b"[", b"{}"])
    file = voted.folder / "changed.json"
    file.write_bytes(raw[:place] + data.draw(some) + raw[place + length :])
    ran = voted.run_verify(file, voted.rows(HONEST), "--drawn-only")
    if ran.exit_code == 0:
        assert Disclosure.read(file) == voted.disclosure(HONEST)
    else:
        assert "FAILS" in ran.output or is_named(ran.exception), ran.exception
    if isinstance(ran.exception, ClientError) and ran.exception.name == "DisclosureMalformed":
        assert len(str(ran.exception)) < 400 + len(str(file))  # says where, and quotes nothing of the file


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"batches": NaN}', b'{"round": ' + b"9" * 5_000]
)
def test_what_is_no_opening_is_refused_by_name(raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "disclosure.json"
    file.write_bytes(raw)
    with raises_fault(ClientError, "DisclosureMalformed"):
        Disclosure.read(file)


def is_named(error: BaseException | None) -> bool:
    return any(kind.__module__.startswith("consilium_") for kind in type(error).__mro__)


FIELDS = ["round", "voter", "held_out_secret", "root", "blinding", "batches"]


@settings(max_examples=60)
@given(field=st.sampled_from(FIELDS), part=st.sampled_from(["index", "salt", "fingerprints", "path"]), data=st.data())
def test_a_well_formed_lie_is_found(voted: Voted, field: str, part: str, data: st.DataObject) -> None:
    shown = json.loads(voted.disclosure(HONEST).model_dump_json())
    words = st.binary(min_size=32, max_size=32).map(bytes.hex)
    if field == "round":
        shown[field] = 0
    elif field == "voter":
        shown[field] = voted.task.voter_nodes[LAZY].ledger.address
    elif field == "batches":
        batch = shown[field][data.draw(st.integers(0, DISCLOSED_BATCHES - 1))]
        kinds: dict[str, st.SearchStrategy[Any]] = {
            "index": st.integers(0, 2**63 - 1),
            "salt": words,
            "fingerprints": st.binary(max_size=2_000).map(bytes.hex),
            "path": st.lists(words, max_size=8),
        }
        batch[part] = data.draw(kinds[part].filter(lambda value: value != batch[part]))
    else:
        shown[field] = data.draw(words.filter(lambda value: value != shown[field]))
    disclosure = Disclosure.model_validate_json(json.dumps(shown))
    assert disclosure != voted.disclosure(HONEST)
    judge = voted.judge(voted.rows(HONEST))
    assert False in results(audit(voted.ledger, judge, disclosure, drawn_only=True)).values()
