"""Decoy round at the aggregator: publication, stored secrets, and disclosure after another process's publication."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chain_driver import WINDOW, LocalChain, TaskDriver
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, Role
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_server.aggregator.decoys import HiddenSums
from consilium_server.aggregator.node import Aggregator
from consilium_server.aggregator.round_secrets import RoundSecrets, SecretFiles
from consilium_server.aggregator.uploads import CohortSum, Upload
from consilium_server.errors import DecoysLost
from consilium_zk.blobs import Blob, blinders, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import GENERATOR, Commitment, negate
from consilium_zk.decoys import is_flipped, negated_delta_lanes, read_lanes, seed_commitment
from consilium_zk.kzg import commit
from consilium_zk.packing import LaneLayout, pack, unpack
from decoy_driver import DecoyDriver, seed_of
from eth_account import Account
from sqlalchemy import Engine
from task_files import DATA

LAYOUT = LaneLayout(bits=17, total_weight=64)
LANES = LAYOUT.lanes_per_blob
SECRETS = RoundSecrets(
    bytes(range(200, 232)), {0: [(3, BLS_MODULUS - 1)], 2: [(0, 1), (2**200, 77)]},
    {0: [GENERATOR], 2: [GENERATOR, negate(GENERATOR)]}, 0b101,
)  # fmt: skip

# What is published


def random_sum(random: np.random.Generator, weight: int) -> tuple[CohortSum, Any]:
    lanes = random.integers(0, weight * (2**16 - 2) + 1, 2 * LANES, dtype=np.uint64)
    blobs = [
        with_blinders(blob, *(int.from_bytes(random.bytes(31), "big") for _ in range(2)))
        for blob in pack(lanes, LAYOUT, total_weight=weight)
    ]
    return CohortSum(blobs, [commit(blob) for blob in blobs]), lanes


@pytest.mark.parametrize("flipped", [0b00, 0b01, 0b10, 0b11])
def test_hidden_sums_commit_to_what_they_publish_and_read_back(flipped: int) -> None:
    random = np.random.default_rng(flipped)
    negated_delta = NegatedDelta(negated_delta_lanes(random.integers(-(2**17), 2**17, 2 * LANES), 16), LAYOUT)
    hidden = HiddenSums(4, 2, seed_of(flipped, 4, 2, 2), negated_delta)
    for cohort, weight in enumerate((5, 64)):
        total, lanes = random_sum(random, weight)
        points = {cohort: total.commitments}
        shown = hidden.hide(cohort, total, weight, points)
        assert shown.commitments == [commit(blob) for blob in shown.blobs]
        assert [blinders(blob) for blob in shown.blobs] == [(0, 0), (0, 0)]
        assert hidden.secrets.blinders[cohort] == [blinders(blob) for blob in total.blobs]
        published = unpack(shown.blobs, 2 * LANES, LAYOUT, weight)
        is_reversed = bool(flipped >> cohort & 1)
        np.testing.assert_array_equal(read_lanes(published, negated_delta.lanes, weight, 16, is_reversed), lanes)
    assert hidden.secrets.seed == hidden.seed
    assert set(hidden.secrets.points) == {0, 1}
    assert (hidden.decoys.seed_commitment, hidden.decoys.negated_delta_digest) == (
        seed_commitment(hidden.seed), negated_delta.digest,
    )  # fmt: skip


# What is kept


def test_secrets_come_back_as_they_were_kept(tmp_path: Path) -> None:
    SecretFiles(tmp_path).store(3, SECRETS)
    assert SecretFiles(tmp_path).of(3) == SECRETS
    other = RoundSecrets(bytes(32), {1: [(5, 6)]})
    SecretFiles(tmp_path).store(4, other)
    assert (SecretFiles(tmp_path).of(3), SecretFiles(tmp_path).of(4)) == (SECRETS, other)


def test_secrets_are_their_owners_alone_even_under_a_wide_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        SecretFiles(tmp_path).store(3, SECRETS)
    finally:
        os.umask(before)
    (file,) = tmp_path.iterdir()  # nothing half-written beside it
    assert file.stat().st_mode & 0o777 == 0o600


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def garbage(raw: bytes) -> bytes:
    return b"\xff\x00" + raw


def without_seed(raw: bytes) -> bytes:
    return json.dumps({"blinders": json.loads(raw)["blinders"]}).encode()


def seed_no_text(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"seed": 5}).encode()


def seed_too_short(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"seed": json.loads(raw)["seed"][:-2]}).encode()


def seed_no_hex(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"seed": json.loads(raw)["seed"][:-1] + "z"}).encode()


def three_blinders(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"blinders": {"0": [["0x1", "0x2", "0x3"]]}}).encode()


def blinders_a_list(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"blinders": [1]}).encode()


def points_off_the_curve(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw) | {"points": {"0": ["80" + "ff" * 47]}}).encode()


def no_object(raw: bytes) -> bytes:
    return b"[]"


SPOILT = [
    cut,
    garbage,
    without_seed,
    seed_no_text,
    seed_too_short,
    seed_no_hex,
    three_blinders,
    blinders_a_list,
    no_object,
]


@pytest.mark.parametrize("spoil", [*SPOILT, None], ids=lambda spoil: spoil.__name__ if spoil else "missing")
def test_lost_secrets_are_named_and_quoted_nowhere(tmp_path: Path, spoil: Callable[[bytes], bytes] | None) -> None:
    SecretFiles(tmp_path).store(3, SECRETS)
    (file,) = tmp_path.iterdir()
    if spoil is None:
        file.unlink()
    else:
        file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(DecoysLost, match=r"round-3\.json does not contain") as caught:
        SecretFiles(tmp_path).of(3)
    said = "".join(traceback.format_exception(caught.value))
    assert caught.value.__suppress_context__
    quoted = [SECRETS.seed.hex(), SECRETS.seed.hex()[:16], hex(BLS_MODULUS - 1), hex(2**200)]
    assert [secret for secret in quoted if secret in said] == []


# What a process discloses that did not publish it

TASK = f"""
name = "kept"
{DATA}
[model]
name = "logistic"
[rounds]
rounds = 1
cohorts = 1
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 16
[judging]
seats = 1
min_voters = 1
max_voters = 1
min_reveals = 1
[money]
pool = 100
[windows]
join = {WINDOW}
commit = {WINDOW}
upload = {WINDOW}
publish = {WINDOW}
score = {WINDOW}
reveal = {WINDOW}
"""


def aggregator_of(
    url: str, deployment: Deployment, key: bytes, task: int, folder: Path, database: Engine | None = None
) -> Aggregator:
    ledger = Ledger(Connection(url, Account.from_key(key)), deployment)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    settings = SimpleNamespace(
        connect=lambda: ledger, artifacts=folder / "store", task=task, home=home, shared_database=lambda: database
    )
    return Aggregator(settings)  # type: ignore[arg-type]


def secrets_of(aggregator: Aggregator, round_: int = 1) -> RoundSecrets:
    found = aggregator.task.secrets.latest(round_)
    assert found is not None
    return found


Given = dict[int, tuple[list[bytes], list[bytes]]]  # blobs and points, by hospital


def give_uploads(aggregator: Aggregator, uploads: Given, round_: int = 1) -> None:
    """Adds uploads as if they had come by Flower."""
    found = {
        index: Upload([Blob(blob) for blob in blobs], [Commitment(point) for point in points])
        for index, (blobs, points) in uploads.items()
    }
    collection = SimpleNamespace(uploads=found, arrived=0b11, finished=0)
    aggregator.rounds.of(round_).collection = collection  # type: ignore[assignment]


def attempt(aggregator: Aggregator, step: Step) -> None:
    state = aggregator.ledger.tasks.state(aggregator.number)
    aggregator._attempt(step, state, aggregator.ledger.tasks.round_state(aggregator.number, state.round))


def publish_and_be_killed(
    url: str, deployment: Deployment, key: bytes, task: int, folder: Path, uploads: Given
) -> None:
    aggregator = aggregator_of(url, deployment, key, task, folder)
    give_uploads(aggregator, uploads)
    attempt(aggregator, Step.PUBLISH)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module", params=["blobs", "digests"])
def played(local_chain: LocalChain, request: pytest.FixtureRequest) -> tuple[DecoyDriver, bytes]:
    """A task in a training round before its publication, and its file."""
    text = (TASK + f'[update]\nmasked = false\npublication = "{request.param}"\n').encode()
    spec = parse_task_spec(text)
    (aggregator,) = local_chain.staked(Role.AGGREGATOR, 1)
    params = task_params(spec, spec_hash(text), aggregator.address)
    terms = {name: value for name, value in asdict(params).items() if name != "aggregator"}
    task = DecoyDriver(
        local_chain, terms=terms, layout=spec.update_layout,
        statistics=(spec.statistics_layout, spec.statistics_values),
    )  # fmt: skip
    task.to_committing().commit_all()
    assert task.phase is Phase.UPLOADING
    return task, text


@pytest.fixture
def uploaded(played: tuple[DecoyDriver, bytes], tmp_path: Path) -> Iterator[DecoyDriver]:
    """The task, with its file in the test's store. Undo everything that the test did on the chain."""
    task, text = played
    ArtifactStore(tmp_path / "store").put_file(text)
    with task.chain.undone():
        yield task


def party(task: TaskDriver, folder: Path) -> tuple[str, Deployment, bytes, int, Path]:
    """A function that makes an aggregator."""
    key = bytes(task.aggregator.connection.signer.key)
    return task.chain.node.url, task.chain.deployment, key, task.task, folder


def weighted(task: TaskDriver, round_: int = 1) -> Given:
    """All hospitals' uploads of a round that all have committed in."""
    found = {}
    for index in range(task.hospitals):
        update, weight = task.updates[round_, index], task.weight(index, round_)
        found[index] = [bytes(scale(blob, weight)) for blob in update.blobs], [bytes(point) for point in update.points]
    return found


def test_aggregator_that_was_killed_after_publishing_opens_from_its_disk(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, whose = uploaded, party(uploaded, tmp_path)
    before = task.operator.tasks.state(task.task), task.round_state
    child = multiprocessing.get_context("spawn").Process(target=publish_and_be_killed, args=(*whose, weighted(task)))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert task.phase is Phase.DRAWING
    folder = tmp_path / "home" / "decoys" / task.aggregator.folder_name(task.task)
    secret = SecretFiles(folder).of(1)
    task.flipped = int(is_flipped(secret.seed, task.task, 1, 0))

    again = aggregator_of(*whose)
    again._attempt(Step.PUBLISH, *before)  # which it would do by an old view of the chain, and without any uploads
    assert SecretFiles(folder).of(1) == secret
    task.draw().vote([task.ballot([60_000], [-80_000])])
    again.conduct(None, {})  # type: ignore[arg-type]  # nothing is asked of hospitals any more
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.flipped_cohorts) == (Outcome.SETTLED, task.flipped)
    assert task.events("Slashed") == []
    told = capsys.readouterr().out
    assert "disclosed" in [json.loads(line)["event"] for line in told.splitlines()]
    assert secret.seed.hex() not in told


def test_secrets_are_on_disk_before_anything_is_sent(
    uploaded: DecoyDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator = aggregator_of(*party(uploaded, tmp_path))
    give_uploads(aggregator, weighted(uploaded))
    seen = []

    def sent(task: int, round_: int, survivors: int, sums: Any, decoys: Any, *_: object) -> list[Any]:
        seen.append((secrets_of(aggregator, round_), decoys, len(sums)))
        return []

    monkeypatch.setattr(
        aggregator.ledger.aggregator, "publish_digests" if uploaded.params.digests else "publish_sums", sent
    )
    attempt(aggregator, Step.PUBLISH)
    ((secret, decoys, count),) = seen
    assert seed_commitment(secret.seed) == decoys.seed_commitment
    assert len(secret.blinders) == count == 1
    own = scale(uploaded.updates[1, 0].blobs[0], uploaded.weight(0, 1))
    other = scale(uploaded.updates[1, 1].blobs[0], uploaded.weight(1, 1))
    sums = [(a + b) % BLS_MODULUS for a, b in zip(blinders(own), blinders(other), strict=True)]
    assert list(secret.blinders[0][0]) == sums


def test_what_was_to_be_published_before_a_kill_is_published_and_nothing_else(
    uploaded: DecoyDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The publication may reach the chain at any time, so its secrets must not be replaced."""
    killed = aggregator_of(*party(uploaded, tmp_path))
    give_uploads(killed, {0: weighted(uploaded)[0]})

    def sent(*_: object) -> list[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        killed.ledger.aggregator, "publish_digests" if uploaded.params.digests else "publish_sums", sent
    )
    with pytest.raises(KeyboardInterrupt):
        attempt(killed, Step.PUBLISH)
    before = secrets_of(killed, 1)
    assert before.survivors == 0b01

    again = aggregator_of(*party(uploaded, tmp_path))
    give_uploads(again, weighted(uploaded))  # a second one has come since
    attempt(again, Step.PUBLISH)
    assert uploaded.phase is Phase.DRAWING
    assert uploaded.round_state.survivors == 0b01
    assert secrets_of(again, 1) == before


def test_aggregator_without_its_secrets_says_so_and_lets_the_deadline_pass(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aggregator = aggregator_of(*party(uploaded, tmp_path))
    give_uploads(aggregator, weighted(uploaded))
    attempt(aggregator, Step.PUBLISH)
    (file,) = Path(aggregator.task.secrets.shown).iterdir()
    file.unlink()
    uploaded.draw().vote([[60_000, -80_000]])
    attempt(aggregator, Step.DISCLOSE)
    voted_in = uploaded.phase
    assert voted_in is Phase.REVEALING
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["round"] for line in told if line["event"] == "decoys-lost"] == [1]
    assert aggregator.rounds.of(1).refused is None  # restored before the deadline, they would open it
    attempt(aggregator, Step.SETTLE)
    assert uploaded.phase is Phase.DISCLOSING
    uploaded.pass_deadline()
    aggregator.conduct(None, {})  # type: ignore[arg-type]
    assert uploaded.operator.tasks.round_state(uploaded.task, 1).outcome is Outcome.VOID
