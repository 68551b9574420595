"""A task on a real local chain whose voters are real nodes, to audit what they say that they evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from chain_driver import WINDOW, LocalChain, Update
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Role
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec, parse_task_spec
from consilium_client.config import VoterSettings
from consilium_client.data.standardise import sums_of
from consilium_client.home import VoterHome
from consilium_client.models import Evaluation, Vector
from consilium_client.voter.evaluating import Judge, Judged
from consilium_client.voter.node import VoterNode
from consilium_client.voter.registration import register
from consilium_core.kinds import of_kind
from consilium_server.aggregator.decoys import HiddenSums
from consilium_zk.evaluation import BATCH_ROWS
from consilium_zk.kzg import commit
from consilium_zk.packing import pack
from consilium_zk.quantise import Quantiser
from decoy_driver import DecoyDriver
from examples_read import read_table
from hospital_driver import node_files
from task_files import windows
from voter_driver import POLICY

COLUMNS = 4
FEATURES = "\n".join(
    f'[[data.features]]\nkind = "numeric"\nname = "column-{number}"\nmin = -4.0\nmax = 4.0' for number in range(COLUMNS)
)
TASK = f"""
name = "evaluated"
[data]
label = "sick"
classes = ["no", "yes"]
{FEATURES}
[model]
name = "mlp"
hidden = [8]
[update]
bits = 16
value_range = 0.5
masked = false
[rounds]
rounds = 2
cohorts = 2
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 16
[judging]
max_voters = 3
seats = 3
[money]
pool = 1000
{windows(WINDOW)}
"""


def write_rows(path: Path, count: int, seed: int, order: Sequence[int] | None = None) -> Path:
    """A table of this many rows, whose label follows from its columns; `order` says which comes first."""
    values = np.random.default_rng(seed).normal(0, 1, (count, COLUMNS)).round(3)
    lines = [",".join([*map(str, row), str(int(row.sum() > 0))]) for row in values]
    header = ",".join([*(f"column-{number}" for number in range(COLUMNS)), "sick"])
    path.write_text("\n".join([header, *(lines if order is None else [lines[index] for index in order])]) + "\n")
    return path


class LazyJudge(Judge):
    """Evaluates no more than `looked`, and takes what it made of these for what it would make of the others."""

    def __init__(self, honest: Judge, looked: Sequence[int]) -> None:
        vars(self).update(vars(honest))
        self.looked = looked

    def evaluate(self, parameters: Vector, batches: Sequence[int] | None = None) -> Evaluation:
        assert batches is None
        own = super().evaluate(parameters, self.looked)
        rows = np.arange(len(self.rows)) % (BATCH_ROWS * len(self.looked))
        return Evaluation(own.predictions[rows], own.activations[rows])


class LazyNode(VoterNode):
    """Looks at the first half of its batches."""

    @cached_property
    def judge(self) -> Judge:
        honest = Judge(self.task, self.record, self.examples)
        return LazyJudge(honest, range(honest.batches // 2))


class LyingJudge(Judge):
    """Evaluates all, and says something else."""

    def __init__(self, honest: Judge) -> None:
        vars(self).update(vars(honest))

    def judged(self, *asked: Any) -> Judged:
        honest = super().judged(*asked)
        return Judged(tuple(score + 500 for score in honest.scores), honest.fingerprints)


class LyingNode(VoterNode):
    @cached_property
    def judge(self) -> Judge:
        return LyingJudge(Judge(self.task, self.record, self.examples))


@dataclass
class EvaluatedTask(DecoyDriver):
    """Voters are nodes; what is published lies in a store, and round 0 is of true rows."""

    folder: Path = field(default_factory=Path)
    spec: TaskSpec = field(default_factory=lambda: parse_task_spec(TASK.encode()))
    kinds: Sequence[type[VoterNode]] = (VoterNode,)

    @classmethod
    def propose(cls, chain: LocalChain, folder: Path, kinds: Sequence[type[VoterNode]]) -> EvaluatedTask:
        raw, store = TASK.encode(), ArtifactStore(folder / "artifacts")
        spec = parse_task_spec(raw)
        (aggregator,) = chain.staked(Role.AGGREGATOR, 1)
        params = vars(task_params(spec, store.put_file(raw), aggregator.address))
        return cls(
            chain,
            hospitals=2,
            voters=len(kinds),
            lanes=spec.parameters,
            terms={name: value for name, value in params.items() if name != "aggregator"}
            | {"max_voters": len(kinds), "seats": len(kinds)},
            layout=spec.update_layout,
            statistics=(spec.statistics_layout, spec.statistics_values),
            flipped=0b01,
            folder=folder,
            spec=spec,
            kinds=kinds,
        )

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.folder / "artifacts")

    def settings(self, voter: int) -> VoterSettings:
        ledger = self.judges[voter]
        if not self.folder_of(voter).exists():
            node_files(self.chain, ledger, self.folder_of(voter))
            given = {
                "chain_url": self.chain.node.url, "artifacts": str(self.folder / "artifacts"),
                "data": str(self.folder / f"rows-{voter}.csv"),
            }  # fmt: skip
            VoterHome.create(self.folder_of(voter), given, POLICY)
        return VoterHome.open(self.folder_of(voter)).node_settings(self.task, ledger.folder_name(self.task))

    def folder_of(self, voter: int) -> Path:
        return self.folder / f"voter-{voter}"

    def join(self, rows: Sequence[int] | None = None) -> Self:
        judges, self.judges = self.judges, []
        super().join(rows)
        self.judges = judges
        self.voter_nodes = [kind(self.settings(voter), self.judges[voter]) for voter, kind in enumerate(self.kinds)]
        for node in self.voter_nodes:
            register(node.ledger, node.task.params.voter_bond, 0)
            node.join()
        return self

    def make_update(self, index: int, round_: int | None = None) -> Update:
        """Of round 0, what the first voter's rows add up to."""
        if (self.round if round_ is None else round_) != 0:
            return super().make_update(index, round_)
        table = read_table(self.folder / "rows-0.csv", of_kind(TableSchema, self.spec.data))
        lanes = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).quantise(sums_of(table, self.spec.data))
        return self.update_of(index, 0, lanes, pack(lanes, self.spec.statistics_layout))

    def shown_sum(self, cohort: int, survivors: Sequence[int]) -> Any:
        found = super().shown_sum(cohort, survivors)
        for blob in found.blobs:
            self.store.put_blob(blob, commit(blob))
        return found

    def hiding(self) -> HiddenSums:
        found = super().hiding()
        found.negated_delta = PublishedSums(self.operator, self.store, self.task, self.spec).negated_delta(self.round)
        return found

    def to_seats(self) -> Self:
        """To the scoring of the first training round."""
        self.join(rows=[100, 100]).first_round()
        self.form().commit_all().publish()
        self.draw()
        return self

    def vote_all(self) -> Self:
        """The committee reveals what it found."""
        for _ in ("score", "reveal"):
            for node in self.voter_nodes:
                node.poll()
        return self
