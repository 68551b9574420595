"""A task's public record without a chain: what the contract would say of published sums, and a real artifact store.

Stands in for `Ledger` towards whoever reads records or scores. Every hospital is a cohort by itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import Decoys
from consilium_chain.ledger.structs import Hospital, Outcome, Phase, RoundState, TaskParams, TaskState
from consilium_chain.rounds.signed_updates import NO_BASE
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, parse_task_spec
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_lab.simulation.record import NEW_ROUND
from consilium_zk.blobs import Blob, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.decoys import is_flipped, published_blob, seed_commitment
from consilium_zk.kzg import commit, setup
from consilium_zk.packing import pack
from consilium_zk.quantise import Quantiser
from eth_account import Account
from eth_utils.crypto import keccak
from numpy.typing import NDArray

NUMBER = 1
BLOCK_TIME = 10


class PaperRecord:
    """Rounds are played by `statistics`, `publish` and `settle`; readers ask the rest of a ledger."""

    def __init__(self, task_file: bytes, folder: Path, weights: Sequence[int], seed: bytes = bytes(32)) -> None:
        """`seed` decides which cohorts of all rounds are sign-flipped."""
        self.spec, self.folder, self.store = parse_task_spec(task_file), folder, ArtifactStore(folder)
        self.weights, self.seed = weights, seed
        self.tasks = self.record = self.votes = self
        self.terms = task_params(self.spec, self.store.put_file(task_file), "0x" + "11" * 20)
        self._aggregators = PublishedSums(cast(Ledger, self), self.store, NUMBER, self.spec)
        self.rounds: dict[int, RoundState] = {}
        self.hashes: dict[tuple[int, int], list[bytes]] = {}
        self.decoys: dict[int, Decoys] = {}
        self.held_out: bytes | None = None
        self.ballots: dict[tuple[int, str], tuple[bytes, tuple[int, ...]]] = {}  # commitments and scores
        self.stated: dict[int, bytes] = {}  # the base's digest that all hospitals state, by round
        self.ending = bytes(32)  # the hash of the block in which any round ended
        self.clock = 0
        self.on_block: Callable[[], object] = lambda: None
        setup()  # commits faster
        account = Account.from_key(secrets.token_bytes(32))
        self.address = account.address
        self.deployment = SimpleNamespace(tasks="0x" + "22" * 20)
        self.connection = SimpleNamespace(
            account=account,
            chain_id=31337,
            blocks=SimpleNamespace(now=lambda: self.clock, wait_after=self._next_block),
            transactions=SimpleNamespace(),
        )

    def reader(self) -> PublicRecord:
        """As a new process would derive it."""
        ledger = cast(Ledger, self)
        return PublicRecord(ledger, self.store, load_task(ledger, self.store, NUMBER))

    def settings(self, data: Path) -> Any:
        """A node's, whose ledger this is, and which allows everything."""
        policy = self.folder / "policy.toml"
        rules = (
            'operators = "any"',
            'models = "any"',
            'columns = "any"',
            "masked_only = false",
            "exact_statistics = true",
        )
        policy.write_text("\n".join(rules))
        return SimpleNamespace(
            connect=lambda: self, artifacts=self.folder, task=NUMBER, data=data, mapping=None, home=self.folder,
            data_accepted={"leak": True},
            policy=policy, approved=self.terms.spec_hash.hex(), held_out=0, device="cpu", trial_seed=None,
            statistics_file=self.folder / "statistics.jsonl",
        )  # fmt: skip

    def state(self, _: int) -> TaskState:
        return self.scoring(0)

    def statistics(self, values: NDArray[np.float64]) -> None:
        """Round 0, of one hospital's values."""
        lanes = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).quantise(values)
        self._put(0, [pack(lanes, self.spec.statistics_layout)])
        self.rounds[0] = replace(NEW_ROUND, outcome=Outcome.SETTLED, cohorts=1, viable_cohorts=1, survivors=1)

    def publish(self, round_: int, updates: Sequence[Sequence[Blob]]) -> RoundState:
        """A training round's sums: each hospital's packed update, blinded and weighted, as it is or sign-flipped."""
        sums = [
            [scale(_blinded(blob), weight) for blob in update]
            for update, weight in zip(updates, self.weights, strict=True)
        ]
        if self.spec.judging.decoys:
            negated_delta = self._aggregators.negated_delta(round_)
            self.decoys[round_] = Decoys(seed_commitment(self.seed), negated_delta.digest)
            for cohort, weight in enumerate(self.weights):
                flipped = is_flipped(self.seed, NUMBER, round_, cohort)
                sums[cohort] = [
                    published_blob(blob, back, weight, self.spec.update_layout, flipped)
                    for blob, back in zip(sums[cohort], negated_delta.blobs, strict=True)
                ]
        self._put(round_, sums)
        everybody = (1 << len(sums)) - 1
        self.rounds[round_] = replace(
            NEW_ROUND, cohorts=len(sums), viable_cohorts=everybody, members=everybody, survivors=everybody
        )
        return self.rounds[round_]

    def settle(self, round_: int, accepted: int) -> None:
        """`accepted`: bit map of cohorts. Says which sums are sign-flipped."""
        flipped = sum(is_flipped(self.seed, NUMBER, round_, k) << k for k in range(len(self.weights)))
        self.rounds[round_] = replace(
            self.rounds[round_],
            outcome=Outcome.SETTLED,
            accepted_cohorts=accepted,
            flipped_cohorts=flipped if self.spec.judging.decoys else 0,
        )

    def scoring(self, round_: int) -> TaskState:
        """The phase begins now."""
        deadline = self.clock + self.terms.score_window
        return TaskState("0x" + "22" * 20, Phase.SCORING, round_, deadline, 0, 0, True, False, 0, 0, 0)

    def _put(self, round_: int, sums: Sequence[Sequence[Blob]]) -> None:
        for cohort, blobs in enumerate(sums):
            self.hashes[round_, cohort] = [self.store.put_blob(blob, commit(blob)) for blob in blobs]

    def _next_block(self, seen: int) -> int:
        self.clock += BLOCK_TIME
        self.on_block()
        return seen + 1

    # What readers ask a ledger

    def folder_name(self, task: int) -> str:
        return f"paper-{task}"

    def params(self, task: int) -> TaskParams:
        return self.terms

    def round_state(self, task: int, round_: int) -> RoundState:
        return self.rounds.get(round_, NEW_ROUND)

    def cohort_members(self, task: int, round_: int, cohort: int) -> int:
        return 1 << cohort

    def hospitals(self, task: int) -> list[Hospital]:
        return [Hospital(f"0x{i:040x}", weight, 0) for i, weight in enumerate(self.weights)]

    def voters(self, task: int) -> list[Any]:
        """The node that this ledger is for."""
        return [SimpleNamespace(node=self.address)]

    def expected_blob_hashes(self, task: int, round_: int, cohort: int, count: int) -> list[bytes]:
        return list(self.hashes[round_, cohort][:count])

    def reveal_ballot(self, round_: int, scores: Sequence[int], salt: bytes) -> None:
        """Committed and revealed by this account, or instead of what it revealed before."""
        commitment = self.score_commitment(NUMBER, round_, scores, salt)
        self.ballots[round_, self.address] = commitment, tuple(scores)

    def score_commitment(
        self, task: int, round_: int, scores: Sequence[int], salt: bytes, voter: str | None = None
    ) -> bytes:
        return keccak(repr((task, round_, voter or self.address, tuple(scores), salt)).encode())

    def committed_ballot(self, task: int, round_: int, voter: str) -> bytes | None:
        return self.ballots.get((round_, voter), (None, ()))[0]

    def revealed_scores(self, task: int, round_: int, voter: str) -> tuple[int, ...] | None:
        return self.ballots.get((round_, voter), (b"", None))[1]

    def held_out_root(self, task: int, voter: str) -> bytes | None:
        return self.held_out

    def ending_hash(self, task: int, round_: int) -> bytes:
        return self.ending

    def stated_bases(self, task: int, round_: int) -> dict[str, bytes]:
        base = self.stated.get(round_, NO_BASE)
        return {one.node: base for one in self.hospitals(task) if base != NO_BASE}

    def decoys_set(self, task: int, round_: int) -> Decoys | None:
        return self.decoys.get(round_)


def _blinded(blob: Blob) -> Blob:
    return with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS))
