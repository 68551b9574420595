"""Gas of every transaction of a task, on a local chain: four hospitals, five voters, two cohorts, one blob an update.

Updates are random numbers, packed and committed to as a hospital does: gas does not depend on what was learnt. Two
training rounds: the first publishes as the aggregator does, survivors, sums and blobs in one transaction; the second
takes the same steps apart. What forge measured of single calls (its committed snapshots) stands beside it.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import tomli_w
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import LOCAL_VESTING, deploy
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import (
    CohortsFate,
    Commitments,
    DisclosedBlob,
    DisclosedCohort,
    PublishedCohort,
    cohort_commitments,
)
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, members
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
from consilium_chain.rpc.outgoing import Receipt, Sending
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.transport_keys import TransportKey
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_server.aggregator.decoys import HiddenSums
from consilium_server.aggregator.uploads import Contribution, Upload, sum_cohort
from consilium_zk.blobs import Blob, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.decoys import is_flipped
from consilium_zk.kzg import Commitment, commit
from consilium_zk.packing import LaneLayout, pack
from consilium_zk.tickets import public_key, sign_ticket
from eth_account import Account
from web3.types import RPCEndpoint

from bench.results_store import figure, say, write_figure

HOSPITALS, VOTERS, ROUNDS = 4, 5, 2
ROWS = (158, 119, 80, 41)
SPENDING_MONEY = 5_000 * TOKEN
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 600)
SNAPSHOTS = Path(__file__).resolve().parents[2] / "chain" / "contracts" / "snapshots"
PUBLISH_GAS = 100_000  # more than a blob alone takes
PUBLISH = "publish: survivors, decoys, blobs"
# A transaction is known by an event that only it emits.
CALLS = {
    "NodeRegistered": "register",
    "VoterKeyRegistered": "registerVoterKey",
    "HeldOutCommitted": "commitHeldOut",
    "TaskProposed": "propose",
    "HospitalJoined": "joinAsHospital",
    "VoterJoined": "joinAsVoter",
    "AggregatorJoined": "joinAsAggregator",
    "CohortsFormed": "formCohorts",
    "UpdateCommitted": "commitUpdate",
    "SeatsDrawn": "drawSeats",
    "ScoresCommitted": "commitScores",
    "ScoresRevealed": "revealScores",
    "BondReleased": "releaseBond",
    "Claimed": "claim",
}


class Rehearsal:
    """One task from proposal to claims, driven in this process by every party's own ledger."""

    def __init__(self, node: LocalNode, store: ArtifactStore) -> None:
        faucet = Connection(node.url, Account.from_key(FAUCET_KEY))
        self.treasury = Ledger(faucet, deploy(faucet))
        self.node = node
        self.gas: dict[str, list[int]] = defaultdict(list)
        self.operator, self.aggregator = self._party(), self._party()
        self.hospitals = [self._party() for _ in range(HOSPITALS)]
        self.voters = [self._party() for _ in range(VOTERS)]
        self.spec = _spec()
        task_file = tomli_w.dumps(self.spec.model_dump(mode="json", exclude_none=True)).encode()
        params = task_params(self.spec, store.put_file(task_file), self.aggregator.address)
        self.treasury.token.transfer(self.operator.address, params.pool)
        self.task = self.operator.operator.propose(params)
        self.params, self.store = params, store
        self.sums = PublishedSums(self.treasury, store, self.task, self.spec)

    def _party(self) -> Ledger:
        account = Account.from_key(secrets.token_bytes(32))
        self.treasury.connection.transactions.send_ether(account.address, 10**18)
        self._note(
            "ERC-20 transfer to a new holder", self.treasury.token.transfer(account.address, SPENDING_MONEY // 2)
        )
        self._note("ERC-20 transfer", self.treasury.token.transfer(account.address, SPENDING_MONEY // 2))
        return Ledger(Connection(self.node.url, account), self.treasury.deployment)

    def _pass_time(self, seconds: int) -> None:
        for method, arguments in (("evm_increaseTime", [seconds]), ("evm_mine", [])):
            self.treasury.connection.web3.provider.make_request(RPCEndpoint(method), arguments)

    def _delegate(self) -> None:
        """The operator backs a hospital, twice."""
        connection, staking = self.operator.connection, self.operator.contracts.staking.contract.functions
        connection.transactions.send(
            self.operator.contracts.token.contract.functions.approve(self.operator.deployment.staking, 2 * TOKEN)
        )
        for call in ("delegate, first", "delegate, more"):
            self._note(
                call, connection.transactions.send(staking.delegate(self.hospitals[0].address, Role.HOSPITAL, TOKEN))
            )

    def _note(self, call: str, receipt: Receipt) -> None:
        self.gas[call].append(receipt.gas_used)

    def run(self) -> None:
        self._join()
        self._delegate()
        while (state := self.treasury.tasks.state(self.task)).phase is not Phase.ENDED:
            apart = state.round == ROUNDS
            contributions = self._commit(state.round)
            if state.round != STATISTICS_ROUND:
                self._hidden = HiddenSums(
                    self.task, state.round, secrets.token_bytes(32), self.sums.negated_delta(state.round)
                )
            self._publish(state.round, contributions, apart)
            if state.round != STATISTICS_ROUND:
                self._judge(state.round, apart)
        for ledger in (*self.hospitals, *self.voters, self.aggregator):
            ledger.staking.release_bond(self.task, ledger.address)
        self._pass_time(LOCAL_VESTING)
        for ledger in self.hospitals:
            ledger.staking.claim(Role.HOSPITAL)
        for ledger in self.voters:
            ledger.staking.claim(Role.VOTER)
        self.aggregator.staking.claim(Role.AGGREGATOR)
        for event in self.treasury.logs.between():
            # The statistics round is settled by its publication; a training round's figures are wanted here.
            if event.name in CALLS and event.values.get("round") != STATISTICS_ROUND:
                self.gas[CALLS[event.name]].append(self.treasury.connection.transactions.gas_of(event.transaction))

    def _join(self) -> None:
        self.aggregator.aggregator.join(self.task, self.params.aggregator_bond)
        for ledger, rows in zip(self.hospitals, ROWS, strict=True):
            ledger.staking.stake(Role.HOSPITAL, self.params.hospital_bond)
            ledger.hospital.join(self.task, rows, TransportKey.generate())
        for ledger in self.voters:
            ledger.voter.register_key(voter_key(_account(ledger)))
            ledger.staking.stake(Role.VOTER, self.params.voter_bond)
            ledger.voter.commit_held_out(secrets.token_bytes(32))
            ledger.voter.join(self.task)

    def _await_beacon(self, round_: int) -> int:
        request = self.treasury.tasks.round_state(self.task, round_).beacon_request
        block = 0
        while not self.treasury.phases.beacon_ready(request):
            block = self.treasury.connection.blocks.wait_after(block)
        return request

    def _cohorts(self, round_: int) -> list[int]:
        """The members of each cohort, as bit maps."""
        count = self.treasury.tasks.round_state(self.task, round_).cohorts
        return [self.treasury.tasks.cohort_members(self.task, round_, cohort) for cohort in range(count)]

    def _commit(self, round_: int) -> list[Contribution]:
        """Cohorts, then everybody's commitment; returns the hospitals' uploads, of one blob each."""
        if self.treasury.tasks.state(self.task).phase is Phase.FORMING:
            self.aggregator.phases.form_cohorts(self.task, self._await_beacon(round_))
        layout = self.spec.statistics_layout if round_ == STATISTICS_ROUND else self.spec.update_layout
        cohort_of = {index: cohort for cohort, map_ in enumerate(self._cohorts(round_)) for index in members(map_)}
        contributions = []
        for index, hospital in enumerate(self.treasury.tasks.hospitals(self.task)):
            ledger, blob = self.hospitals[index], _random_update(layout)
            points = [commit(blob)]
            update = CommittedUpdate(ledger.messages.point_hashes(self.task, round_, ledger.address, points))
            ledger.hospital.commit_update(self.task, round_, cohort_of[index], update)
            weight = 1 if round_ == STATISTICS_ROUND else hospital.weight
            contributions.append(Contribution(Upload([scale(blob, weight)], points), weight))
        return contributions

    def _commitments(self, round_: int, points: Mapping[int, Sequence[Commitment]]) -> list[Commitments]:
        """A cohort's commitments to each blob, in the chain's order. `points`: of its members, by index."""
        indices = {hospital.node: index for index, hospital in enumerate(self.treasury.tasks.hospitals(self.task))}
        hashes = {indices[node]: row for node, row in self.treasury.record.point_hashes(self.task, round_).items()}
        return cohort_commitments(hashes, sum(1 << index for index in points), points)

    def _publish(self, round_: int, contributions: Sequence[Contribution], apart: bool) -> None:
        decoys = self._hidden.decoys if self.params.has_decoys(round_) else None
        sums = self._sums(round_, contributions)
        everyone = (1 << HOSPITALS) - 1
        if not apart or decoys is None:
            (receipt,) = self.aggregator.aggregator.publish_sums(self.task, round_, CohortsFate(everyone), sums, decoys)
            if round_ != STATISTICS_ROUND:
                self._note(PUBLISH, receipt)
            return
        connection, functions = self.aggregator.connection, self.aggregator.contracts.tasks.contract.functions
        self._note(
            "fixSurvivors alone", connection.transactions.send(functions.fixSurvivors(self.task, round_, everyone))
        )
        setting = functions.setDecoys(self.task, round_, decoys.seed_commitment, decoys.negated_delta_digest)
        self._note("setDecoys alone", connection.transactions.send(setting))
        for cohort in sums:
            showing = functions.publish(self.task, round_, cohort.index, 0, 0, 1)
            sidecars = [self.aggregator.aggregator.prover.sidecar(blob) for blob in cohort.blobs]
            self._note("publish alone (1 blob)", connection.transactions.send(showing, Sending(PUBLISH_GAS, sidecars)))

    def _sums(self, round_: int, contributions: Sequence[Contribution]) -> list[PublishedCohort]:
        """The sums to publish; with decoys `_hidden` keeps the secrets that disclose them."""
        found = []
        for cohort, map_ in enumerate(self._cohorts(round_)):
            own = {index: contributions[index] for index in members(map_)}
            points = {index: one.points for index, one in own.items()}
            shown = sum_cohort(cohort, list(own.values()), [1])
            if self.params.has_decoys(round_):
                shown = self._hidden.hide(cohort, shown, sum(one.weight for one in own.values()), points)
            digests = [self.store.put_blob(*pair) for pair in zip(shown.blobs, shown.commitments, strict=True)]
            found.append(PublishedCohort(cohort, shown.blobs, self._commitments(round_, points), digests))
        return found

    def _judge(self, round_: int, apart: bool) -> None:
        self.aggregator.phases.draw_seats(self.task, self._await_beacon(round_))
        state = self.treasury.tasks.round_state(self.task, round_)
        ballots = [(self._ballot(round_, state.cohorts, index), secrets.token_bytes(32)) for index in range(VOTERS)]
        for ledger, (scores, salt) in zip(self.voters, ballots, strict=True):
            key = voter_key(_account(ledger))
            ticket = sign_ticket(key, ledger.messages.ticket(self.task, round_, state.seat_seed))
            commitment = ledger.tasks.score_commitment(self.task, round_, scores, salt)
            ledger.voter.commit_scores(self.task, round_, public_key(key), ticket, commitment)
        for ledger, (scores, salt) in zip(self.voters, ballots, strict=True):
            ledger.voter.reveal_scores(self.task, round_, scores, salt)
        self._disclose(round_, apart)

    def _ballot(self, round_: int, cohorts: int, index: int) -> tuple[int, ...]:
        """An honest voter's: every sum improves, every decoy harms."""
        flipped = [is_flipped(self._hidden.seed, self.task, round_, cohort) for cohort in range(cohorts)]
        sides = [[-90_000 if side else 90_000 for side in flipped], [90_000 if side else -90_000 for side in flipped]]
        return tuple(score + index for side in sides for score in side)

    def _disclose(self, round_: int, apart: bool) -> None:
        cohorts, maps = [], self._cohorts(round_)
        shown = self._hidden.secrets
        for cohort, pairs in shown.blinders.items():
            own = self._commitments(round_, {index: shown.points[index] for index in members(maps[cohort])})
            cohorts.append(DisclosedCohort(cohort, [DisclosedBlob(*blob) for blob in zip(pairs, own, strict=True)]))
        negated_delta = self._hidden.negated_delta.points
        if not apart:
            (receipt,) = self.aggregator.aggregator.disclose_decoys(
                self.task, round_, self._hidden.seed, negated_delta, cohorts, 0
            )
            return self._note("discloseDecoys of all cohorts, and settle", receipt)
        too_much = 2**40  # so that it settles apart
        self.treasury.phases.settle(self.task, round_)  # starts the phase
        for one in cohorts:
            (receipt,) = self.aggregator.aggregator.disclose_decoys(
                self.task, round_, self._hidden.seed, negated_delta, [one], too_much
            )
            self._note("discloseDecoys alone (1 blob, 2 hospitals)", receipt)
        return self._note("settle alone", self.aggregator.phases.settle(self.task, round_))


def _account(ledger: Ledger) -> Any:
    return ledger.connection.account


def _spec() -> TaskSpec:
    data = deal_wdbc(HOSPITALS, VOTERS, 0)
    # As many seats as voters: every ticket wins, so every voter pays for a whole ballot.
    return task_spec(data, TaskSettings(rounds=ROUNDS, seats=VOTERS, windows=WINDOWS, masked=False))


def _random_update(layout: LaneLayout) -> Blob:
    random = np.random.default_rng(secrets.randbits(128))
    lanes = random.integers(0, 1 << layout.bits - 2, layout.lanes_per_blob, dtype=np.uint64)
    (blob,) = pack(lanes, layout)
    return with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS))


def measure(quick: bool) -> dict[str, Any]:
    say("a task on a local chain")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, LocalNode() as node:
        rehearsal = Rehearsal(node, ArtifactStore(Path(folder)))
        rehearsal.run()
    return {
        "what": f"whole transactions' gas, {HOSPITALS} hospitals, {VOTERS} voters, 2 cohorts, one blob an update;"
        " the last transaction of a phase also pays for the next phase's start",
        "calls": {call: _summary(used) for call, used in sorted(rehearsal.gas.items())},
        "forge_snapshots": {path.stem: json.loads(path.read_text()) for path in sorted(SNAPSHOTS.glob("*.json"))},
    }


def _summary(used: Sequence[int]) -> dict[str, int]:
    return {
        "mean": round(mean(used)),
        "min": min(used),
        "max": max(used),
        "first": used[0],
        "last": used[-1],
        "count": len(used),
    }


def plot(result: dict[str, Any], folder: Path) -> None:
    shown = sorted(result["calls"].items(), key=lambda item: item[1]["mean"])
    drawn, (axes,) = figure(8, 0.3 * len(shown) + 1)
    for position, (call, gas) in enumerate(shown):
        compared = call.startswith("ERC-20")
        axes.barh(position, gas["mean"] / 1000, color="#8a8f98" if compared else "#2f6f9f", height=0.7)
        axes.plot([gas["min"] / 1000, gas["max"] / 1000], [position, position], color="black", linewidth=1)
        axes.text(gas["max"] / 1000, position, f"  {gas['mean'] / 1000:,.0f}k", va="center", fontsize=9)
    axes.set_yticks(range(len(shown)), [call for call, _ in shown])
    axes.margins(x=0.1, y=0.01)
    axes.set_xlabel("thousand gas a transaction: mean, and a line from least to most")
    axes.set_title(f"Gas by call: {HOSPITALS} hospitals, {VOTERS} voters, 2 cohorts, one blob", loc="left")
    write_figure(folder, "gas", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    shown = ("commitUpdate", PUBLISH, "commitScores", "revealScores", "settle alone", "ERC-20 transfer")
    return [(f"gas of {name}", f"{result['calls'][name]['mean']:,}") for name in shown]
