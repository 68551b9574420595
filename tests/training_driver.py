"""A task whose hospitals' updates are made by real nodes on a real chain, each with a home and a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import tomli_w
from chain_driver import LocalChain, TaskDriver, Update
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import PublishedCohort
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.config import HospitalSettings
from consilium_client.hospital.node import HospitalNode
from consilium_client.hospital.round_updates import PendingUpdate
from consilium_client.privacy.accountant import PrivacyAccountant
from consilium_zk.kzg import commit
from consilium_zk.packing import unpack
from hospital_driver import OPEN_POLICY, hospital_settings, node_files
from task_files import DATA, windows

ROWS = (30, 45)
GOOD = [[20_000]]


def task_file(training: str, update: str = "", judging: str = "", rounds: int = 2, top: str = "") -> bytes:
    """`training`: the rest of that section, and sections after it."""
    return f"""
name = "trained"
{top}
{DATA}
[model]
name = "logistic"
[training]
batch_size = 64
learning_rate = 0.5
{training}
[update]
masked = false
{update}
[rounds]
rounds = {rounds}
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 16
[judging]
max_voters = 1
seats = 1
decoys = false
{judging}
[money]
pool = 1000
{windows(100_000)}
""".encode()


@dataclass
class TrainingTask(TaskDriver):
    """Its hospitals' updates are made by real nodes, each with a home and a table of its own.

    Accounts are fresh but for the first ones, if some are `known`: a node is charged for all that its account ever did.
    """

    known: Sequence[Ledger] = ()
    folder: Path = Path()
    spec: TaskSpec | None = None
    homes: list[HospitalSettings] = field(default_factory=list)
    running: dict[int, HospitalNode] = field(default_factory=dict)
    false_base: bytes | None = None  # what its hospitals state instead of their own

    def __post_init__(self) -> None:
        super().__post_init__()
        self.nodes = [*self.known, *(self.chain.funded() for _ in self.nodes[len(self.known) :])]
        for node in self.nodes:
            node.staking.stake(Role.HOSPITAL, self.params.hospital_bond)

    def settle_in(self) -> Self:
        for index, ledger in enumerate(self.nodes):
            home, random = self.folder / f"h{index + 100 * self.seed}", np.random.default_rng(index + 100 * self.seed)
            ages = random.uniform(0, 120, ROWS[index])
            rows = "\n".join(f"{age:.1f},{int(age > 50)}" for age in ages)
            made = hospital_settings(self.chain, self.task, home, home / "rows.csv")
            (home / "rows.csv").write_text(f"age,sick\n{rows}\n")
            self.homes.append(made.model_copy(update=node_files(self.chain, ledger, home)))
        return self

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.folder / "artifacts")

    def start(self, index: int, max_epsilon: float | None = None, **changes: Any) -> HospitalNode:
        """A process of this hospital, after a restart if it had one before. `changes`: of its settings."""
        limit: dict[str, Any] = {} if max_epsilon is None else {"max_epsilon": max_epsilon}
        limit["exact_statistics"] = self.spec is not None and self.spec.statistics == "exact"
        limit["summaries"] = "exact" if self.spec is not None and self.spec.summary else "no"
        self.homes[index].policy.write_text(tomli_w.dumps(OPEN_POLICY | limit))
        node = HospitalNode(self.homes[index].model_copy(update=changes))
        node.context.membership.index = index
        self.running[index] = node
        return node

    def made(self, index: int) -> PendingUpdate | None:
        return self.running[index].updates.of(self.round)

    def make_update(self, index: int, round_: int | None = None) -> Update:
        made, spec = self.made(index), self.spec
        assert made is not None
        assert spec is not None
        layout, values = (
            (spec.update_layout, spec.lanes) if self.round else (spec.statistics_layout, spec.statistics_values)
        )
        committed = CommittedUpdate(made.signed.point_hashes, base=self.false_base or made.signed.base)
        return Update(unpack(made.blobs, values, layout, 1), list(made.blobs), list(made.points), committed)

    def shown_sum(self, cohort: int, survivors: Sequence[int]) -> PublishedCohort:
        published = super().shown_sum(cohort, survivors)
        for blob in published.blobs:
            self.store.put_blob(blob, commit(blob))
        return published

    def play_round(self) -> None:
        self.commit_all().publish()
        self.draw().judge(GOOD)

    def spent(self, index: int) -> PrivacyAccountant:
        return PrivacyAccountant(self.homes[index].home / "privacy.jsonl")


def propose(chain: LocalChain, folder: Path, raw: bytes, known: Sequence[Ledger] = ()) -> TrainingTask:
    return shards(chain, folder, raw, known)[0]


def shards(chain: LocalChain, folder: Path, raw: bytes, known: Sequence[Ledger] = ()) -> list[TrainingTask]:
    """All shards of a task file, which have one store."""
    store = ArtifactStore(folder / "artifacts")
    spec = parse_task_spec(raw)
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1, 10**22)
    params = task_params(spec, store.put_file(raw), aggregator.address)
    terms = {name: value for name, value in vars(params).items() if name != "aggregator"}
    found: list[TrainingTask] = []
    for shard in range(params.shards):
        proposed = found[0].task + shard if found else 0
        one = TrainingTask(
            chain, lanes=spec.lanes, layout=spec.update_layout, terms=terms, seed=shard, proposed=proposed,
            statistics=(spec.statistics_layout, spec.statistics_values), known=known, folder=folder, spec=spec,
        )  # fmt: skip
        found.append(one.settle_in())
    return found
