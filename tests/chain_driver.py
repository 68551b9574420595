"""Plays whole tasks on a real local chain with real blobs, without Flower: for tests of any room.

Every test proposes a task of its own, so that tests share the node, the accounts and their stakes, and nothing else.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pytest
from consilium_chain.deploying.address_book import SUPPLY, Deployment, deploy
from consilium_chain.errors import Refused
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import (
    Accusation,
    CohortsFate,
    Commitments,
    Decoys,
    PublishedCohort,
    cohort_commitments,
)
from consilium_chain.ledger.roles import NO_KEY, CommittedUpdate
from consilium_chain.ledger.structs import Phase, Role, RoundState, TaskParams, members
from consilium_chain.rpc.blocks import BLOCKS_TIMED
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.settlement.accounting import take_stock
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_zk.blobs import Blob, add, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.drand import DrandChain
from consilium_zk.kzg import Commitment, commit, versioned_hash
from consilium_zk.packing import LaneLayout, pack
from consilium_zk.tickets import Ticket, public_key, sign_ticket
from eth_account import Account
from numpy.typing import NDArray
from web3.types import RPCEndpoint

GAS_MONEY = 10**19  # wei
TOKENS = 1_000_000 * TOKEN
STAKE = 500_000 * TOKEN
BOND = 1_000 * TOKEN
POOL_TIMEOUT = 60  # seconds
WINDOW = 2_000  # seconds of chain time: no test lets one pass but by `pass_deadline`
# Of tasks that several tests share: what else passes on this chain ends none of their phases.
SHARED_WINDOWS = {
    f"{phase}_window": 50 * WINDOW for phase in ("join", "commit", "upload", "publish", "score", "reveal")
}
LAYOUT = LaneLayout(bits=16, total_weight=256)
ENCRYPTION_KEY = bytes(range(32))  # stands for an X25519 key
ACCUSATION = Accusation(bytes(range(1, 33)), bytes(range(2, 34)))  # the chain takes any


@contextmanager
def refused(name: str, **values: object) -> Iterator[pytest.ExceptionInfo[Refused]]:
    """The block must raise Refused with this Solidity error and these of its values."""
    with pytest.raises(Refused) as caught:
        yield caught
    found = {key: caught.value.values.get(key) for key in values}
    assert (caught.value.name, found) == (name, values)


def task_params(aggregator: str, **changes: Any) -> TaskParams:
    """Terms under which nothing ends by itself; `changes` by field."""
    terms = TaskParams(
        spec_hash=bytes(32), aggregator=aggregator, pool=10_001, hospital_bond=BOND, voter_bond=BOND,
        aggregator_bond=BOND, tick_bounty=0, rounds=2, cohorts=1, min_cohort_size=1, min_hospitals=1, max_hospitals=2,
        min_voters=1, max_voters=1, seats=1, min_reveals=1, statistics_blobs=1, update_blobs=1, shards=1, digests=False,
        decoys=False, masked=False,
        update_bits=LAYOUT.bits, lane_bits=LAYOUT.lane_bits, rows_per_weight=10, max_weight=16,
        accept_floor=-10_000, harmful_below=-50_000, tolerance_abs=1_000, tolerance_bps=1_000, decoy_margin=50_000,
        hospital_share_bps=7_000, voter_share_bps=2_000, aggregator_share_bps=1_000, rank_decay_bps=0, rank_floor=0,
        harmful_slash_bps=2_000, withheld_slash_bps=200, not_revealed_slash_bps=1_000, failed_decoy_slash_bps=5_000,
        not_published_slash_bps=2_500, join_window=WINDOW, commit_window=WINDOW, upload_window=WINDOW,
        publish_window=WINDOW, score_window=WINDOW, reveal_window=WINDOW,
    )  # fmt: skip
    return replace(terms, **changes)


class LocalChain:
    """A node, the contracts, and accounts with tokens and stakes that tests borrow."""

    def __init__(self, genesis: int | None = None, drand: DrandChain | None = None) -> None:
        self.node = LocalNode(genesis=genesis)
        try:
            self.deployment: Deployment = deploy(Connection(self.node.url, Account.from_key(FAUCET_KEY)), drand=drand)
        except BaseException:
            self.node.stop()
            raise
        self.treasury = self.ledger(FAUCET_KEY)
        self.accounts: dict[str, Ledger] = {self.treasury.address: self.treasury}
        self._pools: dict[Role, list[Ledger]] = {role: [] for role in Role}

    def __enter__(self) -> LocalChain:
        return self

    def __exit__(self, *_: object) -> None:
        self.node.stop()

    def ledger(self, key: str | bytes) -> Ledger:
        return Ledger(Connection(self.node.url, Account.from_key(key)), self.deployment)

    def funded(self, tokens: int = TOKENS) -> Ledger:
        """A fresh account with ether and tokens."""
        ledger = self.ledger(secrets.token_bytes(32))
        self.rpc("anvil_setBalance", ledger.address, hex(GAS_MONEY))
        self.treasury.token.transfer(ledger.address, tokens)
        self.accounts[ledger.address] = ledger
        return ledger

    def staked(self, role: Role, count: int, bond: int = BOND) -> list[Ledger]:
        """Accounts whose free stake in a role is enough for a bond, and with a registered key if they vote."""
        pool = self._pools[role]
        able = list(
            itertools.islice((one for one in pool if one.staking.stake_of(one.address, role).free >= bond), count)
        )
        while len(able) < count:
            ledger = self.funded()
            ledger.staking.stake(role, STAKE)
            if role is Role.VOTER:
                ledger.voter.register_key(voter_key(ledger.connection.signer))
            pool.append(ledger)
            able.append(ledger)
        return able

    def rpc(self, method: str, *arguments: Any) -> Any:
        answer = self.treasury.connection.web3.provider.make_request(RPCEndpoint(method), list(arguments))
        assert "error" not in answer, answer
        return answer.get("result")

    def pass_time(self, seconds: int) -> None:
        """From the newest block on: anvil's clock may be behind it, once blocks were taken back."""
        newest = self.rpc("eth_getBlockByNumber", "latest", False)
        self.rpc("evm_setNextBlockTimestamp", int(newest["timestamp"], 16) + seconds)
        self.rpc("evm_mine")

    def mine(self, blocks: int) -> None:
        for start in range(0, blocks, 500):  # a call that lasts longer than a request's timeout fails
            self.rpc("anvil_mine", hex(min(500, blocks - start)))

    def await_pool(self) -> None:
        """Returns once no transaction waits for a block. anvil (1.7.1) shows a block, its transactions' receipts, too,
        before it takes these from its pool: what takes the block back meanwhile finds them there.
        """
        end = time.monotonic() + POOL_TIMEOUT
        while self.rpc("txpool_status")["pending"] != "0x0":
            assert time.monotonic() < end, "a transaction that waits comes into no block"
            time.sleep(0.002)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What the block brings onto the chain is gone after it, with the time that it let pass.

        anvil mines while it reverts: a block that is under way then may come out with the time of what is gone, and all
        that follow after it. So the chain is taken back twice: the second time the clock is right already.
        """
        first, second = self.rpc("evm_snapshot"), self.rpc("evm_snapshot")
        try:
            yield
        finally:
            assert self.rpc("evm_revert", second)
            self.rpc("evm_mine")  # after whatever was under way
            assert self.rpc("evm_revert", first)
            self.rpc("evm_mine")  # a gap shows only after it
            self._leave_gaps_behind()

    def _leave_gaps_behind(self) -> None:
        """A block that anvil mines while it reverts may take the number of one that is gone, and leave a number without
        a block. Readers that time the latest blocks need all of them, so that a gap must lie further back.
        """
        latest = int(self.rpc("eth_blockNumber"), 16)
        timed = range(max(0, latest - BLOCKS_TIMED), latest + 1)
        if any(self.rpc("eth_getBlockByNumber", hex(number), False) is None for number in timed):
            self.rpc("anvil_mine", hex(BLOCKS_TIMED + 1), "0x1")

    def blob_transactions(self, first_block: int) -> int:
        """How many of type 3 there are from this block on."""
        blocks = range(first_block, self.treasury.connection.blocks.number() + 1)
        found = (self.rpc("eth_getBlockByNumber", hex(block), True)["transactions"] for block in blocks)
        return sum(int(one["type"], 16) == 3 for block in found for one in block)

    @property
    def holders(self) -> set[str]:
        """All who ever received tokens, but the contracts: also accounts of other files, buyers and tills."""
        transfers = self.treasury.contracts.token.contract.events.Transfer.get_logs(from_block=0)
        return {transfer["args"]["to"] for transfer in transfers} - {
            self.deployment.staking, self.deployment.tasks, self.deployment.model_shares,
        }  # fmt: skip

    def unaccounted(self) -> int:
        """Tokens minted minus all that are anywhere, or were burnt: 0."""
        return take_stock(self.treasury, SUPPLY, self.holders).difference


class OtherContracts(LocalChain):
    """Deployed beside a chain's first ones, for the same token: accounts are the same, stakes are not. Its node is the
    other's, and ends with that.
    """

    def __init__(self, first: LocalChain) -> None:
        self.node = first.node
        account = Account.from_key(FAUCET_KEY)
        self.deployment = deploy(Connection(self.node.url, account), token=first.deployment.token)
        self.treasury = self.ledger(FAUCET_KEY)
        self.accounts = {self.treasury.address: self.treasury}
        self._pools = {role: [] for role in Role}


@dataclass
class Update:
    """What a hospital knows of its update of a round."""

    lanes: NDArray[np.uint64]
    blobs: list[Blob]
    points: list[Commitment]
    committed: CommittedUpdate


@dataclass
class TaskDriver:
    """One task with `hospitals` and `voters`, moved on phase by phase. The statistics round is round 0."""

    chain: LocalChain
    hospitals: int = 2
    voters: int = 1
    lanes: int = 50
    seed: int = 0
    terms: dict[str, Any] = field(default_factory=dict)
    layout: LaneLayout = LAYOUT
    statistics: tuple[LaneLayout, int] | None = None  # layout and lanes of round 0, where they are others
    proposed: int = 0  # a shard's number: it is not proposed again

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.nodes = self.chain.staked(Role.HOSPITAL, self.hospitals)
        self.judges = self.chain.staked(Role.VOTER, self.voters)
        (self.aggregator,) = self.chain.staked(Role.AGGREGATOR, 1, self.terms.get("aggregator_bond", BOND))
        self.operator = self.chain.treasury
        counts = {"max_hospitals": self.hospitals, "max_voters": self.voters, "seats": self.voters}
        self.params = task_params(self.aggregator.address, **counts | self.terms)
        if self.proposed:
            self.params = self.operator.tasks.params(self.proposed)
            self.aggregator = self.chain.accounts[self.params.aggregator]
        self.task = self.proposed or self.operator.operator.propose(self.params)
        self.updates: dict[tuple[int, int], Update] = {}
        self.ballots: dict[tuple[int, int], tuple[list[int], bytes]] = {}

    # Views

    @property
    def phase(self) -> Phase:
        return self.operator.tasks.state(self.task).phase

    @property
    def round(self) -> int:
        return self.operator.tasks.state(self.task).round

    @property
    def deadline(self) -> int:
        return self.operator.tasks.state(self.task).deadline

    @property
    def round_state(self) -> RoundState:
        return self.operator.tasks.round_state(self.task, self.round)

    @cached_property
    def weights(self) -> list[int]:
        """Of training rounds, by index of hospital: as they joined."""
        return [hospital.weight for hospital in self.operator.tasks.hospitals(self.task)]

    def weight(self, index: int, round_: int) -> int:
        return 1 if round_ == 0 else self.weights[index]

    def cohort(self, index: int) -> list[int]:
        return list(members(self.operator.tasks.cohort_members(self.task, self.round, index)))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [event.values for event in self.operator.logs.of_task(name, self.task)]

    # Joining

    def join(self, rows: Sequence[int] | None = None) -> Self:
        """Everybody joins, and with the last the statistics round begins."""
        self.aggregator.aggregator.join(self.task)
        for index, node in enumerate(self.nodes):
            encryption_key = ENCRYPTION_KEY if self.params.masked else NO_KEY
            node.hospital.join(
                self.task, rows[index] if rows else 10 * (index + 1), TransportKey.generate(), encryption_key
            )
        for judge in self.judges:
            judge.voter.join(self.task)
        return self

    def join_without_ether(self) -> Self:
        """Everybody joins; the hospitals, fresh accounts, have spent their last ether on it."""
        self.aggregator.aggregator.join(self.task)
        self.nodes = [self.chain.funded() for _ in self.nodes]
        for node in self.nodes:
            node.staking.stake(Role.HOSPITAL, STAKE)
            node.hospital.join(self.task, 10, TransportKey.generate())
            self.chain.rpc("anvil_setBalance", node.address, "0x0")
        for judge in self.judges:
            judge.voter.join(self.task)
        return self

    # Hospitals

    def make_update(self, index: int, round_: int | None = None) -> Update:
        """Random lanes, packed and blinded, with the points and hashes of this hospital and round."""
        number = self.round if round_ is None else round_
        layout, count = (self.layout, self.lanes) if number or self.statistics is None else self.statistics
        lanes = self.random.integers(0, 2**layout.bits - 1, count, dtype=np.uint64)
        return self.update_of(index, number, lanes, pack(lanes, layout))

    def update_of(self, index: int, round_: int, lanes: NDArray[np.uint64], packed: Sequence[Blob]) -> Update:
        """Packed blobs, blinded."""
        blobs = [with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS)) for blob in packed]
        points = [commit(blob) for blob in blobs]
        return Update(lanes, blobs, points, self.committed(index, round_, points))

    def committed(self, index: int, round_: int, points: Sequence[Commitment]) -> CommittedUpdate:
        """The commitment of a hospital to these points."""
        node = self.nodes[index]
        return CommittedUpdate(node.messages.point_hashes(self.task, round_, node.address, points))

    def cohort_of(self, index: int) -> int:
        """The number of a hospital's cohort in this round; 0 outside all."""
        return self.operator.tasks.cohort_of(self.task, self.round, index) or 0

    def send_commitment(self, index: int, committed: CommittedUpdate, round_: int | None = None) -> Receipt:
        round_ = self.round if round_ is None else round_
        return self.nodes[index].hospital.commit_update(self.task, round_, self.cohort_of(index), committed)

    def commit(self, index: int, update: Update | None = None) -> Update:
        round_ = self.round
        update = update or self.make_update(index, round_)
        self.send_commitment(index, update.committed)
        self.updates[round_, index] = update
        return update

    def commit_all(self, only: Sequence[int] | None = None) -> Self:
        for index in members(self.round_state.members):
            if only is None or index in only:
                self.commit(index)
        return self

    # Aggregator

    def cohort_sum(self, cohort: int, survivors: Sequence[int]) -> PublishedCohort:
        round_ = self.round
        present = [index for index in self.cohort(cohort) if index in survivors]
        updates = [self.updates[round_, index] for index in present]
        weights = [self.weight(index, round_) for index in present]
        count = len(updates[0].blobs)
        sums = [
            add([scale(u.blobs[place], w) for u, w in zip(updates, weights, strict=True)]) for place in range(count)
        ]
        return PublishedCohort(cohort, sums, self.commitments(cohort, present))

    def commitments(self, cohort: int, survivors: Sequence[int]) -> list[Commitments]:
        """A cohort's commitments to each blob, in the chain's order."""
        round_ = self.round
        index_of = {node.address: index for index, node in enumerate(self.nodes)}
        committed = self.operator.record.point_hashes(self.task, round_)
        hashes = {index_of[hospital]: own for hospital, own in committed.items()}
        shown = {index: self.updates[round_, index].points for index in survivors}
        return cohort_commitments(hashes, sum(1 << index for index in self.cohort(cohort)), shown)

    def publish(
        self,
        change: Callable[[PublishedCohort], PublishedCohort] | None = None,
        survivors: Sequence[int] | None = None,
        dropped: Sequence[int] = (),
        accused: Sequence[int] = (),
    ) -> list[Receipt]:
        """Publishes all cohorts' sums but those of `dropped` and `accused`, the first one as `change` makes it."""
        state = self.round_state
        present = list(members(state.committed)) if survivors is None else list(survivors)
        shown = [cohort for cohort in members(state.viable_cohorts) if cohort not in (*dropped, *accused)]
        sums = [self.shown_sum(cohort, present) for cohort in shown]
        if change is not None:
            sums[0] = change(sums[0])
        send = self.aggregator.aggregator.publish_sums
        if self.params.digests:
            sums = [replace(s, digests=[versioned_hash(commit(blob)) for blob in s.blobs]) for s in sums]
            send = self.aggregator.aggregator.publish_digests
        fate = CohortsFate(sum(1 << i for i in present), dropped, dict.fromkeys(accused, ACCUSATION))
        return send(self.task, self.round, fate, sums, self.decoys if sums else None)

    def pass_to_step(self, step: int) -> Self:
        """To the beginning of one of Disputing's three steps."""
        begins = self.operator.tasks.state(self.task).deadline - (3 - step) * self.params.publish_window
        self.chain.pass_time(max(1, begins - self.operator.connection.blocks.now()))
        return self

    def name(self, hospitals: Sequence[int]) -> Self:
        """In Disputing: nobody says anything more, and the aggregator names these."""
        self.pass_to_step(2).aggregator.aggregator.name_cheaters(
            self.task, self.round, sum(1 << index for index in hospitals)
        )
        return self

    def shown_sum(self, cohort: int, survivors: Sequence[int]) -> PublishedCohort:
        return self.cohort_sum(cohort, survivors)

    @property
    def decoys(self) -> Decoys | None:
        """The round's decoys as the aggregator sets them before it publishes."""
        return None

    # Beacon

    def beacon(self) -> int:
        """The request in progress, once its block can be proven."""
        request = self.round_state.beacon_request
        missing = request + 1 - self.operator.connection.blocks.number()
        if missing > 0:
            self.chain.mine(missing)
        return request

    def form(self) -> Self:
        self.operator.phases.form_cohorts(self.task, self.beacon())
        return self

    def draw(self) -> Self:
        self.operator.phases.draw_seats(self.task, self.beacon())
        return self

    # Voters

    def ticket(self, voter: int) -> Ticket:
        judge = self.judges[voter]
        message = judge.messages.ticket(self.task, self.round, self.round_state.seat_seed)
        return sign_ticket(voter_key(judge.connection.signer), message)

    def public_key(self, voter: int) -> bytes:
        return public_key(voter_key(self.judges[voter].connection.signer))

    def score(self, voter: int, scores: Sequence[int], ticket: bytes | None = None) -> None:
        judge, salt, round_ = self.judges[voter], secrets.token_bytes(32), self.round
        sealed = judge.tasks.score_commitment(self.task, round_, scores, salt)
        shown = self.ticket(voter) if ticket is None else ticket
        judge.voter.commit_scores(self.task, round_, self.public_key(voter), shown, sealed)
        self.ballots[round_, voter] = (list(scores), salt)

    def reveal(self, voter: int) -> None:
        round_ = self.round
        scores, salt = self.ballots[round_, voter]
        self.judges[voter].voter.reveal_scores(self.task, round_, scores, salt)

    # Passage

    def pass_deadline(self) -> None:
        state = self.operator.tasks.state(self.task)
        self.chain.pass_time(max(1, state.deadline + 1 - self.operator.connection.blocks.now()))

    def tick(self) -> Self:
        self.operator.phases.tick(self.task)
        return self

    def to_disputing(self, accused: Sequence[int], dropped: Sequence[int] = ()) -> Self:
        """To the first training round's evidence, about the cohorts of `accused`."""
        self.to_committing().commit_all().publish(accused=accused, dropped=dropped)
        return self

    def first_round(self) -> Self:
        """The whole statistics round."""
        self.commit_all().publish()
        if self.params.digests:  # judged for matching
            self.draw().judge([[0]] * self.voters)
        return self

    def to_committing(self) -> Self:
        """To the first training round's commitments."""
        return self.join().first_round().form()

    def to_scoring(self) -> Self:
        self.to_committing().commit_all().publish()
        return self.draw()

    def judge(self, scores: Sequence[Sequence[int]]) -> Self:
        """All voters score, reveal, and the round is settled."""
        self.vote(scores)
        self.operator.phases.settle(self.task, self.round)
        return self

    def vote(self, scores: Sequence[Sequence[int] | None]) -> Self:
        """All voters score, and reveal but for those of None."""
        for voter, own in enumerate(scores):
            self.score(voter, own or [])
        for voter, own in enumerate(scores):
            if own is not None:
                self.reveal(voter)
        return self

    def home(self) -> Self:
        """After the end: everybody's bonds and money come home."""
        for ledger in {node.address: node for node in itertools.chain(self.nodes, self.judges, [self.aggregator])}:
            self.operator.staking.release_bond(self.task, ledger)
        return self
