"""Two tasks of the same hospitals, one of which has a patient more in the second: what everybody can read of both.

The patient's row is the difference of the two tasks' sums in round 0, if these hold anything of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec, parse_task_spec
from consilium_client.config import HospitalSettings
from consilium_client.data.standardise import sums_of
from consilium_client.errors import ClientError, OwnersRefusal
from consilium_client.hospital.node import HospitalNode
from consilium_client.privacy.accountant import PrivacyAccountant
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import Frame, deal_wdbc, write_csv
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_zk.blobs import add
from consilium_zk.packing import unpack
from consilium_zk.quantise import Quantiser
from examples_read import read_table
from hospital_driver import OPEN_POLICY, WINDOW, hospital_settings
from numpy.typing import NDArray
from raised_faults import raises_fault

HOSPITALS = 3
DATA = deal_wdbc(HOSPITALS, 1, 0)
PATIENT = DATA.held_out[0].iloc[:1]


@dataclass
class Consortium:
    """The same hospitals, each with one home, in one task after another."""

    chain: LocalChain
    folder: Path
    homes: list[HospitalSettings]

    def propose(self, statistics: str | None, sections: str = "") -> tuple[int, TaskSpec]:
        """None: the task file says nothing of it. `sections`: more of the file."""
        windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), WINDOW)
        text = task_toml(DATA, TaskSettings(rounds=1, cohorts=1, windows=windows))
        said = "" if statistics is None else f'statistics = "{statistics}"\n'
        raw = (said + "".join(line for line in text.splitlines(True) if "statistics =" not in line)).encode()
        raw += sections.encode()
        spec = parse_task_spec(raw)
        (aggregator,) = self.chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
        params = task_params(spec, ArtifactStore(self.folder / "artifacts").put_file(raw), aggregator.address)
        task = self.chain.treasury.operator.propose(params)
        aggregator.aggregator.join(task)
        (voter,) = self.chain.staked(Role.VOTER, 1, params.voter_bond)
        voter.voter.join(task)
        return task, spec

    def node(self, index: int, task: int, rows: Frame) -> HospitalNode:
        path = self.folder / f"{task}-{index}.csv"
        write_csv(rows, path)
        if len(self.homes) == index:
            self.homes.append(hospital_settings(self.chain, task, self.folder / f"h{index}", path))
        approved = self.chain.treasury.tasks.params(task).spec_hash.hex()
        return HospitalNode(self.homes[index].model_copy(update={"task": task, "data": path, "approved": approved}))

    def allow(self, **rules: object) -> None:
        for home in self.homes:
            home.policy.write_text(tomli_w.dumps(OPEN_POLICY | rules))

    def read_sums(self, statistics: str | None, rows: list[Frame], sections: str = "") -> NDArray[np.float64]:
        """The public sums of a task's round 0, in which all hospitals take part with these rows."""
        task, spec = self.propose(statistics, sections)
        nodes = [self.node(index, task, own) for index, own in enumerate(rows)]
        for node in nodes:
            node.join()
        updates = []
        for node in nodes:
            update = node.updates.of(0)
            assert update is not None
            share_bundle = node.updates.secret_shares(0, update.seed)
            node.ledger.hospital.commit_update(task, 0, 0, CommittedUpdate(update.signed.point_hashes, share_bundle))
            updates.append(update)
        total = [add(blobs) for blobs in zip(*(one.blobs for one in updates), strict=True)]
        lanes = unpack(total, spec.statistics_values, spec.statistics_layout, HOSPITALS)
        return Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(lanes, HOSPITALS)


def with_patient(rows: list[Frame]) -> list[Frame]:
    return [pd.concat([rows[0], PATIENT], ignore_index=True), *rows[1:]]


@pytest.fixture
def consortium(local_chain: LocalChain, tmp_path: Path) -> Consortium:
    return Consortium(local_chain, tmp_path, [])


def test_differencing_two_tasks_statistics_gives_nothing(consortium: Consortium) -> None:
    before = consortium.read_sums(None, DATA.hospitals)
    after = consortium.read_sums(None, with_patient(DATA.hospitals))
    np.testing.assert_array_equal(after - before, 0)


def test_differencing_exact_statistics_is_refused_by_the_hospital_whose_rows_differ(
    consortium: Consortium, tmp_path: Path
) -> None:
    task, spec = consortium.propose("exact")
    with raises_fault(OwnersRefusal, "NotAllowed", match="`exact_statistics` is false"):
        consortium.node(0, task, DATA.hospitals[0])
    for index in range(1, HOSPITALS):
        consortium.homes.append(hospital_settings(consortium.chain, task, tmp_path / f"h{index}", tmp_path / "none"))
    consortium.allow(exact_statistics=True)
    before = consortium.read_sums("exact", DATA.hospitals)

    # With one patient more the node stakes nothing, and it signs nothing where it joined before the rows were counted.
    again, _ = consortium.propose("exact")
    grown = consortium.node(0, again, with_patient(DATA.hospitals)[0])
    with raises_fault(ClientError, "StatisticsOverlap") as caught:
        grown.join()
    assert (caught.value.values["shared"], caught.value.values["differing"]) == (len(DATA.hospitals[0]), 1)
    with raises_fault(ClientError, "StatisticsOverlap"):
        grown.training.packed(0, grown.local_update)
    assert consortium.chain.treasury.tasks.hospitals(again) == []

    # The same rows say nothing new.
    np.testing.assert_array_equal(consortium.read_sums("exact", DATA.hospitals), before)

    # A home that lost its list is told by the chain. Had it given the sums, they would show the patient's row.
    consortium.homes[0] = consortium.homes[0].model_copy(update={"statistics_ledger": tmp_path / "empty.jsonl"})
    with raises_fault(ClientError, "StatisticsUnknown", match="does not list their rows"):
        consortium.read_sums("exact", with_patient(DATA.hospitals))
    (row,) = read_table(_written(tmp_path, PATIENT), of_kind(TableSchema, spec.data)).features
    own = sums_of(grown.training.examples, spec.data)
    earlier = sums_of(read_table(_written(tmp_path, DATA.hospitals[0]), of_kind(TableSchema, spec.data)), spec.data)
    np.testing.assert_allclose(np.split(own - earlier, 3)[1], row, atol=1e-9)


def test_differencing_two_summaries_is_refused_and_with_noise_a_patient_is_within_it(
    consortium: Consortium, tmp_path: Path
) -> None:
    exact, noisy = "[summary]\nbins = 4\n", "[summary]\nbins = 4\nepsilon = 1.0\n"
    task, _ = consortium.propose(None, exact)
    for index in range(HOSPITALS):
        consortium.homes.append(hospital_settings(consortium.chain, task, tmp_path / f"h{index}", tmp_path / "none"))
    for rules, why in (({}, '`summaries` is "no"'), ({"summaries": "noisy"}, '`summaries` is "noisy"')):
        consortium.allow(**rules)
        with raises_fault(OwnersRefusal, "NotAllowed", match=why):
            consortium.node(0, task, DATA.hospitals[0])
    consortium.allow(summaries="exact")
    before = consortium.read_sums(None, DATA.hospitals, exact)
    np.testing.assert_array_equal(consortium.read_sums(None, DATA.hospitals, exact), before)
    frame = DATA.hospitals[0]
    relabelled = frame.assign(**{frame.columns[-1]: frame[frame.columns[-1]].to_numpy()[::-1]})
    for sections, rows, why in (
        (exact, with_patient(DATA.hospitals), "1 row.s. are in only one set"),
        ("[summary]\nbins = 5\n", DATA.hospitals, "its histograms have 4 parts, not 5"),
        (exact, [relabelled, *DATA.hospitals[1:]], "the answers of some rows differ"),
    ):
        with raises_fault(ClientError, "StatisticsOverlap", match=why):
            consortium.read_sums(None, rows, sections)
    # With noise the node gives them, at a price, and one patient is less than a standard deviation.
    consortium.read_sums(None, DATA.hospitals, noisy)
    after = consortium.read_sums(None, with_patient(DATA.hospitals), noisy)
    assert np.abs(after - before).max() > 5
    charges = PrivacyAccountant(consortium.homes[0].home / "privacy.jsonl").charges()
    assert [one.round for one in charges] == [0, 0]


def _written(folder: Path, rows: Frame) -> Path:
    path = folder / "rows.csv"
    write_csv(rows, path)
    return path
