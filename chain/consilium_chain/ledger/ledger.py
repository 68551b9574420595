"""The contracts as typed calls: what nodes, the aggregator and the demo do on chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from consilium_zk.constants import BYTES_PER_EIP2537_G1
from consilium_zk.kzg import Challenge, Commitment, Opening, challenge, parse_commitment
from consilium_zk.secure_aggregation import context
from consilium_zk.tickets import SecretKey, prove_possession, public_key, ticket_message
from eth_utils.crypto import keccak

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import BlobsUnavailable, DeploymentInvalid, RecordIncomplete, Refused
from consilium_chain.ledger.publishing import (
    GAS_PER_BATCH,
    NOTHING_SAID,
    Accusation,
    Canaries,
    CohortsFate,
    OpenedCohort,
    Priced,
    PublishedCohort,
    RoundCalls,
    SaidBefore,
)
from consilium_chain.ledger.structs import (
    Event,
    Hospital,
    Payout,
    Phase,
    Role,
    RoundState,
    Stake,
    TaskParams,
    TaskState,
    Unbonding,
    Voter,
)
from consilium_chain.rounds.beacons import open_beacon
from consilium_chain.rounds.drand_relays import QUICKNET_RELAYS
from consilium_chain.rounds.signed_updates import NO_DEALING, SignedUpdate, relayed_gas, sign_update, update_batches
from consilium_chain.rounds.statements import SignedStatement, StatementSigning
from consilium_chain.rpc.batching import batches
from consilium_chain.rpc.cell_proofs import CellProver, Sidecar
from consilium_chain.rpc.connection import MAX_BLOBS_PER_TRANSACTION, Connection, Pending, Receipt, Sending
from consilium_chain.sponsoring.batches import Call, NamedCall
from consilium_chain.tasks.estimate import ChainTerms
from consilium_chain.transport_keys import TransportKey, transport_message

COMMITMENT_BYTES = 48
NO_KEY = bytes(32)  # of a hospital in a task that is not masked
# Above what the contract takes, as in `publishing`.
_GAS_TO_COMMIT = 120_000
_GAS_PER_BLOB = 40_000
_GAS_PER_DEALT_BYTE = 50
STAKING_TRIES = 10
FINALITY = 64  # blocks of Ethereum that a reorganisation may reach back: two epochs
_OVERTAKEN = ("AlreadyRegistered", "StakeInsufficient", "ERC20InsufficientAllowance")
_OF_TOKENS = ("ERC20InsufficientAllowance", "ERC20InsufficientBalance")
NO_COMMISSION = 0  # of a node that registers by staking: it has no delegators yet, and may raise it


@dataclass(frozen=True)
class CommittedUpdate:
    """A round's commitments (G1, EIP-2537, 128 bytes per blob), the opening that answers their challenge, and in a
    masked task the hospital's dealing (`secure_aggregation`).
    """

    points: bytes
    opening: Opening
    dealing: bytes = b""


@dataclass(frozen=True)
class ShownBlinders:
    """What somebody who opened a canary round said of one blob: the round's seed, 32 bytes, and the blinders of the sum
    behind it. Whether it is true, whoever reads it can tell (`consilium_zk.canaries.published_commitment`).
    """

    cohort: int
    blob: int
    seed: bytes
    blinders: tuple[int, int]


class Ledger:
    """One account's view of the contracts, or a reader's where the connection has no account."""

    def __init__(
        self, connection: Connection, deployment: Deployment, drand_relays: Sequence[str] = QUICKNET_RELAYS
    ) -> None:
        if connection.chain_id != deployment.chain_id:
            raise DeploymentInvalid(
                f"the address book is of chain {deployment.chain_id}, but {connection.shown_url} is chain"
                f" {connection.chain_id}: pass the one that fits"
            )
        self.connection = connection
        self.deployment = deployment
        self.prover = CellProver(0)  # who publishes much puts one with processes here
        self._token = connection.contract("ConsiliumToken", deployment.token)
        self._staking = connection.contract("Staking", deployment.staking)
        self._beacon = open_beacon(connection, deployment, drand_relays)
        self._tasks = connection.contract("Tasks", deployment.tasks)
        self._begun: dict[int, int] = {}  # by task, a block before which there is no event of it

    @property
    def address(self) -> str:
        return str(self.connection.address)

    def place(self, task: int) -> str:
        """Names the folder of what a node keeps of a task: one for each deployment, which all count tasks from one."""
        return f"{self.connection.chain_id}-{self.deployment.tasks}-{task}"

    # Reads

    def params(self, task: int) -> TaskParams:
        return TaskParams.from_chain(self._read("params", task))

    def state(self, task: int, block: int | None = None) -> TaskState:
        return TaskState.from_chain(self._read("state", task, block=block))

    def round_state(self, task: int, round_: int) -> RoundState:
        return RoundState.from_chain(self._read("roundState", task, round_))

    def hospitals(self, task: int) -> list[Hospital]:
        return [Hospital.from_chain(raw) for raw in self._read("hospitals", task)]

    def voters(self, task: int) -> list[Voter]:
        return [Voter.from_chain(raw) for raw in self._read("voters", task)]

    def cohort_members(self, task: int, round_: int, cohort: int) -> int:
        return int(self._read("cohortMembers", task, round_, cohort))

    def expected_blob_hashes(self, task: int, round_: int, cohort: int, count: int) -> list[bytes]:
        """Versioned hashes of a cohort's first `count` blobs, 32 bytes each; zero until they are known."""
        calls = [self._encode("expectedBlobHash", task, round_, cohort, blob) for blob in range(count)]
        return list(self._read("multicall", calls))

    def explain(self, task: int, round_: int, account: str) -> Payout:
        """What an account was paid and slashed in a round, and why."""
        return Payout.from_chain(self._read("explain", task, round_, account))

    def refundable(self, account: str, block: int | None = None) -> int:
        """What tasks owe an operator back."""
        return int(self._read("claimable", account, block=block))

    def total_refundable(self, block: int | None = None) -> int:
        return int(self._read("totalClaimable", block=block))

    def chain_terms(self) -> ChainTerms:
        """What gas, blobs and time cost on this chain at this moment."""
        connection, deployment = self.connection, self.deployment
        block_seconds = connection.block_seconds()
        return ChainTerms(
            gas_price=connection.present_fee(),
            blob_gas_price=connection.blob_fee() if deployment.blobs else 0,
            block_seconds=block_seconds,
            beacon_seconds=self._beacon.wait(block_seconds),
            takes_blobs=deployment.blobs,
            has_drand=deployment.beacon_kind == "DrandBeacon",
        )

    def proposals(self, operator: str, spec_hash: bytes) -> list[int]:
        """The tasks that an account has proposed by a file of this hash, ascending."""
        proposed = self._events_of_task("TaskProposed", operator=operator)
        return sorted(event.values["taskId"] for event in proposed if bytes(event.values["specHash"]) == spec_hash)

    def task_count(self, block: int | None = None) -> int:
        return int(self._read("taskCount", block=block))

    def balance(self, account: str, block: int | None = None) -> int:
        return int(self.connection.call(self._token.functions.balanceOf(account), block))

    def total_supply(self) -> int:
        return int(self.connection.call(self._token.functions.totalSupply()))

    def total_staked(self, block: int | None = None) -> int:
        return int(self.connection.call(self._staking.functions.totalStaked(), block))

    def stake_of(self, account: str, role: Role, block: int | None = None) -> Stake:
        return Stake.from_chain(self.connection.call(self._staking.functions.stakeOf(account, role), block))

    def unvested(self, node: str, role: Role, block: int | None = None) -> int:
        """A node's rewards that have not vested, rounded down."""
        return self._pool(node, role, block)["unvestedX48"] >> 48

    def claimable(self, delegator: str, node: str, role: Role, block: int | None = None) -> int:
        """A delegator's vested rewards from a node; the owner's, with the commission."""
        _, _, claimable = self.connection.call(self._staking.functions.positionOf(delegator, node, role), block)
        return int(claimable)

    def is_registered(self, node: str, role: Role) -> bool:
        return self._pool(node, role)["vestedAt"] != 0

    def commission(self, node: str, role: Role) -> int:
        """In basis points; where a raise was announced, what it will be."""
        pool = self._pool(node, role)
        return pool["nextCommissionBps" if pool["nextCommissionAt"] else "commissionBps"]

    def voter_key_hash(self, voter: str) -> bytes:
        """keccak256 of the registered public key, 32 bytes; zero where none is."""
        return bytes(self.connection.call(self._staking.functions.voterKeyHash(voter)))

    def tasks_of_voter(self, voter: str) -> list[int]:
        """Every task that it ever joined, ascending."""
        return sorted(event.values["taskId"] for event in self._events_of_task("VoterJoined", voter=voter))

    def _pool(self, node: str, role: Role, block: int | None = None) -> dict[str, int]:
        function = self._staking.functions.poolOf(node, role)
        names = [component["name"] for component in function.abi["outputs"][0]["components"]]
        return dict(zip(names, self.connection.call(function, block), strict=True))

    def ticket_message(self, task: int, round_: int, seat_seed: bytes, voter: str | None = None) -> bytes:
        """What a ticket signs, computed here: a node must not sign what another says that it signs. `voter`: by default
        this account.
        """
        contract, account = _bytes20(self.deployment.tasks), _bytes20(voter or self.address)
        return ticket_message(self.connection.chain_id, contract, task, round_, seat_seed, account)

    def transport_message(self, task: int, key: bytes) -> bytes:
        """The message that a hospital's node key signs so that this account joins by it."""
        contract = _bytes20(self.deployment.tasks)
        return transport_message(self.connection.chain_id, contract, task, _bytes20(self.address), key)

    def challenge(self, task: int, round_: int, hospital: str, commitments: Sequence[Commitment]) -> Challenge:
        contract = _bytes20(self.deployment.tasks)
        return challenge(self.connection.chain_id, contract, task, round_, _bytes20(hospital), commitments)

    def score_commitment(
        self, task: int, round_: int, scores: Sequence[int], salt: bytes, voter: str | None = None
    ) -> bytes:
        """`voter`: by default this account."""
        return bytes(self._read("scoreCommitment", task, round_, voter or self.address, list(scores), salt))

    def events(self, first_block: int | None = None, last_block: int | None = None) -> Iterator[Event]:
        """Events of the task and staking contracts in [first, last]; by default from deployment to the latest block."""
        start = self.deployment.first_block if first_block is None else first_block
        last = self.connection.block_number() if last_block is None else last_block
        return iter(self.connection.events_of((self._tasks, self._staking), start, last))

    def events_naming(self, account: str) -> list[Event]:
        """Events of tasks, staking and token with the account in one of their fields, whoever caused them."""
        first, last = self.deployment.first_block, self.connection.block_number()
        contracts = (self._tasks, self._staking, self._token)
        found = [event for contract in contracts for event in self.connection.events(contract, first, last)]
        return [event for event in found if account in event.values.values()]

    def transport_keys(self, task: int) -> dict[int, bytes]:
        """Flower node keys by index of hospital, as the hospitals announced them when they joined."""
        return {
            event.values["index"]: bytes(event.values["transportKey"])
            for event in self._events_of_task("HospitalJoined", taskId=task)
        }

    def committed_points(self, task: int, round_: int) -> dict[str, list[Commitment]]:
        """A round's commitments by hospital, one per blob."""
        found = {}
        for event in self._events_of_task("UpdateCommitted", taskId=task, round=round_):
            points = bytes(event.values["points"])
            found[event.values["hospital"]] = [
                parse_commitment(points[i : i + COMMITMENT_BYTES]) for i in range(0, len(points), COMMITMENT_BYTES)
            ]
        return found

    def points_of(self, task: int, round_: int, hospital: str) -> bytes | None:
        """What a hospital has committed to in a round, compressed, 48 bytes per blob; None where this node has seen no
        event of it.
        """
        for event in self._events_of_task("UpdateCommitted", taskId=task, round=round_, hospital=hospital):
            return bytes(event.values["points"])
        return None

    def rounds_committed(self, hospital: str) -> list[tuple[int, int]]:
        """Task and round of all that a hospital has ever committed to, in the order of the chain."""
        committed = self._events_of_task("UpdateCommitted", hospital=hospital)
        return [(event.values["taskId"], event.values["round"]) for event in committed]

    def sealing_keys(self, task: int) -> dict[int, bytes]:
        """By index of hospital, as the hospitals announced them when they joined."""
        return {
            event.values["index"]: bytes(event.values["sealingKey"])
            for event in self._events_of_task("HospitalJoined", taskId=task)
        }

    def dealing_digests(self, task: int, round_: int) -> dict[str, bytes]:
        """By hospital that has committed, keccak256 of what it dealt; without those that dealt nothing."""
        found = {
            event.values["hospital"]: bytes(event.values["dealing"])
            for event in self._events_of_task("UpdateCommitted", taskId=task, round=round_)
        }
        return {hospital: digest for hospital, digest in found.items() if digest != NO_DEALING}

    def dealings_on_chain(self, task: int, round_: int) -> dict[bytes, bytes]:
        """Of hospitals that committed with a transaction of their own: dealings by their keccak256."""
        events = self._events_of_task("Dealt", taskId=task, round=round_)
        return {keccak(dealing): dealing for dealing in (bytes(event.values["dealing"]) for event in events)}

    def masking_context(self, task: int, round_: int) -> bytes:
        return context(self.connection.chain_id, _bytes20(self.deployment.tasks), task, round_)

    def canaries_set(self, task: int, round_: int) -> Canaries | None:
        """None where this node has seen no event of it."""
        for event in self._events_of_task("CanariesSet", taskId=task, round=round_):
            return Canaries(bytes(event.values["seedCommitment"]), bytes(event.values["retreat"]))
        return None

    def said_of_publication(self, task: int, round_: int) -> SaidBefore:
        """What this node has seen events of."""
        summed, published = (
            frozenset(
                (e.values["cohort"], e.values["blob"]) for e in self._events_of_task(name, taskId=task, round=round_)
            )
            for name in ("CohortSummed", "CohortPublished")
        )
        return SaidBefore(summed, published, self.canaries_set(task, round_))

    def shown_blinders(self, task: int, round_: int) -> list[ShownBlinders]:
        """What transactions that open this canary round say of its sums, as they said it: the refused ones, too.

        No event holds it, so it is read from the calls to the contract between the phase's start and the last cohort's
        opening. What another contract called in somebody's name is not found.
        """
        started = [
            event.block
            for event in self._events_of_task("PhaseStarted", taskId=task, round=round_)
            if event.values["phase"] == Phase.OPENING
        ]
        opened = [event.block for event in self._events_of_task("CohortOpened", taskId=task, round=round_)]
        if not started or not opened:
            return []
        found = []
        for call in self.connection.calls_of(self._tasks, min(started), max(opened)):
            given = call.arguments
            if call.name == "openCanaries" and (given["taskId"], given["number"]) == (task, round_):
                for place, one in enumerate(given["opened"]):
                    blob, blinders = given["firstBlob"] + place, (one["first"], one["second"])
                    found.append(ShownBlinders(given["cohort"], blob, bytes(given["seed"]), blinders))
        return found

    def accusations(self, task: int, round_: int) -> dict[int, Accusation]:
        """By cohort."""
        return {
            event.values["cohort"]: Accusation(bytes(event.values["accusation"]), bytes(event.values["evidence"]))
            for event in self._events_of_task("CohortAccused", taskId=task, round=round_)
        }

    def testimonies(self, task: int, round_: int) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Of step 0 and of step 1, by index of hospital: the first that each gave in that step."""
        indices = {hospital.node: index for index, hospital in enumerate(self.hospitals(task))}
        found: tuple[dict[int, bytes], dict[int, bytes]] = {}, {}
        for event in self._events_of_task("Testified", taskId=task, round=round_):
            testimony = bytes(event.values["testimony"])
            found[event.values["step"]].setdefault(indices[event.values["hospital"]], testimony)
        return found

    def committed_ballot(self, task: int, round_: int, voter: str) -> bytes | None:
        """What a voter committed to its scores by; None for nothing."""
        found = self._events_of_task("ScoresCommitted", taskId=task, round=round_, voter=voter)
        return next((bytes(event.values["commitment"]) for event in found), None)

    def revealed_scores(self, task: int, round_: int, voter: str) -> tuple[int, ...] | None:
        """None where the voter has not revealed any."""
        found = self._events_of_task("ScoresRevealed", taskId=task, round=round_, voter=voter)
        return next((tuple(event.values["scores"]) for event in found), None)

    def held_out_root(self, task: int, voter: str) -> bytes | None:
        """What a voter committed to last before it joined the task; so far, where it has not. None for nothing."""
        joined = [(e.block, e.index) for e in self._events_of_task("VoterJoined", taskId=task, voter=voter)]
        first, last = self.deployment.first_block, self.connection.block_number()
        committed = self.connection.events(self._staking, first, last, "HeldOutCommitted", voter=voter)
        roots = [bytes(e.values["root"]) for e in committed if not joined or (e.block, e.index) < joined[0]]
        return roots[-1] if roots else None

    def ending_hash(self, task: int, round_: int) -> bytes:
        """Hash of the block in which a round was settled or voided, 32 bytes. Raises RecordIncomplete."""
        for name in ("RoundSettled", "RoundVoided"):
            for event in self._events_of_task(name, taskId=task, round=round_):
                return self.connection.block_hash(event.block)
        raise RecordIncomplete(f"round {round_} of task {task} has not ended: wait, or name an earlier one")

    def task_events(self, name: str, task: int) -> list[Event]:
        """All events of this name and task, in order."""
        return list(self._events_of_task(name, taskId=task))

    def staking_events(self, name: str, last_block: int) -> Iterator[Event]:
        """All events of this name from deployment to a block, in order."""
        return self.connection.events(self._staking, self.deployment.first_block, last_block, name)

    def _events_of_task(self, name: str, **indexed: Any) -> Iterator[Event]:
        first, last = self.deployment.first_block, self.connection.block_number()
        if "taskId" in indexed and self.connection.bounds_spans:
            first = self._first_block_of(indexed["taskId"], last)
        return self.connection.events(self._tasks, first, last, name, **indexed)

    def _first_block_of(self, task: int, last: int) -> int:
        """A block before which there is no event of a task, looked for once: of a deployment that is months old a
        provider gives all events in hundreds of answers only.
        """
        if task not in self._begun:
            first = self.deployment.first_block
            for event in self.connection.events(self._tasks, first, last, "TaskProposed", taskId=task):
                self._begun[task] = max(event.block - FINALITY, first)
                break
            else:  # where the node lags behind
                return first
        return self._begun[task]

    # Money

    def transfer(self, recipient: str, amount: int) -> Receipt:
        return self.connection.send(self._token.functions.transfer(recipient, amount))

    def stake(self, role: Role, amount: int) -> None:
        """Makes this account a node of the role, unless it is one, and brings its free stake up to `amount`."""
        self.connection.send_all(self._staking_calls(role, amount))

    def register_node(self, role: Role, more: int, commission_bps: int) -> None:
        """Makes this account a node of the role that keeps so much of its delegators' rewards, and stakes `more`.

        Of a node already the commission is changed: at once where it is lowered, after the unbonding period else.
        """
        calls = self._calls_to_stake(role, more, commission_bps)
        if self.is_registered(self.address, role) and self.commission(self.address, role) != commission_bps:
            calls.append(self._staking.functions.setCommission(role, commission_bps))
        self.connection.send_all(calls)

    def _staking_calls(self, role: Role, amount: int) -> list[Any]:
        missing = max(amount - self.stake_of(self.address, role).free, 0)
        return self._calls_to_stake(role, missing, NO_COMMISSION)

    def _calls_to_stake(self, role: Role, more: int, commission_bps: int) -> list[Any]:
        calls = []
        if more:
            calls.append(self._token.functions.approve(self.deployment.staking, more))
        if not self.is_registered(self.address, role):
            calls.append(self._staking.functions.register(role, commission_bps, more))
        elif more:
            calls.append(self._staking.functions.delegate(self.address, role, more))
        return calls

    def claim(self, role: Role) -> None:
        """Takes home what has vested of this node's rewards, if anything has."""
        if self.claimable(self.address, self.address, role):
            self.connection.send(self._staking.functions.claim(self.address, role))

    def unstake(self, role: Role, amount: int) -> int:
        """Starts to take so much of this node's own stake home, all that is there if `amount` is more; returns what it
        was worth. Rounded down to whole shares. From now on that part earns nothing and backs no new bond.
        """
        node, staking = self.address, self._staking.functions
        shares, worth, _ = self.connection.call(staking.positionOf(node, node, role))
        part = shares if amount >= worth else amount * shares // worth
        if not part:
            return 0
        self.connection.send(staking.startUnbonding(node, role, part))
        return int(part * worth // shares)

    def unbondings(self, delegator: str) -> list[Unbonding]:
        """What a delegator has on its way home, in the order in which it was asked for."""
        staking, found = self._staking.functions, []
        for number in range(self.connection.call(staking.requestCount(delegator))):
            (node, role, matures_at, _, shares), amount = self.connection.call(staking.requestOf(delegator, number))
            if shares:  # else it is home
                found.append(Unbonding(number, node, Role(role), matures_at, amount))
        return found

    def withdraw(self, requests: Sequence[int]) -> None:
        """Takes home what has matured of this account's own."""
        self.connection.send_all([self._staking.functions.withdraw(request) for request in requests])

    def claim_refund(self) -> None:
        if self.refundable(self.address):
            self._send("claim")

    def release_bond(self, task: int, account: str) -> bool:
        """Unlocks an account's bonds of an ended task; False where nothing of them is left."""
        try:
            self._send("releaseBond", task, account)
        except Refused as error:
            if error.name == "NothingToRelease":
                return False
            raise
        return True

    # A task's life

    def propose(self, params: TaskParams) -> int:
        """Proposes a task and pays its pool; returns its id. Raises BlobsUnavailable before it spends anything."""
        if not self.deployment.blobs and not params.digests:
            raise BlobsUnavailable(self.deployment.chain_id)
        self.connection.send(self._token.functions.approve(self.deployment.tasks, params.pool))
        receipt = self._send("propose", params.to_chain())
        for event in self.connection.events(self._tasks, receipt.block, receipt.block):
            if event.name == "TaskProposed" and event.transaction == receipt.transaction:
                return int(event.values["taskId"])
        raise DeploymentInvalid(f"{self.deployment.tasks} accepted a proposal and emitted no TaskProposed event")

    def try_fund(self, task: int, amount: int) -> None:
        """Raises Refused where `fund` would, before an allowance is paid for: all but what the token has to say."""
        try:
            self._read("fund", task, amount)
        except Refused as error:
            if error.name not in _OF_TOKENS:
                raise

    def fund(self, task: int, amount: int) -> Receipt:
        """Adds to a task's pool while others join: the operator's word alone."""
        self.connection.send(self._token.functions.approve(self.deployment.tasks, amount))
        return self._send("fund", task, amount)

    def stop(self, task: int) -> Receipt:
        """No further round: the operator's word, once. What is left of the pool is refundable when the task ends."""
        return self._send("stop", task)

    def join_as_aggregator(self, task: int, stake: int | None = None) -> Receipt:
        """Joins, with free stake brought up to `stake` before. An account's aggregators may do so at the same time,
        each for a task of its own: what is refused because another was quicker is looked at again.
        """
        for left in reversed(range(STAKING_TRIES)):
            try:
                if stake is not None:
                    self.stake(Role.AGGREGATOR, stake)
                return self._send("joinAsAggregator", task)
            except Refused as error:
                if stake is None or not left or error.name not in _OVERTAKEN:
                    raise
        raise AssertionError("the last try ends it")

    def join_as_hospital(
        self, task: int, rows: int, key: TransportKey, sealing_key: bytes = NO_KEY, stake: int | None = None
    ) -> Receipt:
        """Joins by a node key, with free stake brought up to `stake` before: both or neither where a sponsor pays."""
        calls = [] if stake is None else self._staking_calls(Role.HOSPITAL, stake)
        proof = key.sign(self.transport_message(task, key.public))
        calls.append(self._tasks.functions.joinAsHospital(task, rows, key.public, proof, sealing_key))
        return self.connection.send_all(calls)[-1]

    def register_voter_key(self, key: SecretKey) -> Receipt:
        public = public_key(key)
        proof = prove_possession(
            key, self.connection.chain_id, _bytes20(self.deployment.staking), _bytes20(self.address)
        )
        return self.connection.send(self._staking.functions.registerVoterKey(public, proof))

    def commit_held_out(self, root: bytes) -> Receipt:
        """Says by which rows this voter judges in the tasks that it joins from now on."""
        return self.connection.send(self._staking.functions.commitHeldOut(root))

    def join_as_voter(self, task: int) -> Receipt:
        return self._send("joinAsVoter", task)

    def beacon_expired(self, request: int) -> bool:
        return request != 0 and self._beacon.expired(request)

    def beacon_ready(self, request: int) -> bool:
        """A round's request is 0 where nothing is waited for."""
        return request == 0 or self._beacon.ready(request)

    def form_cohorts(self, task: int, request: int) -> Receipt:
        """`request` is the round's, 0 where the value that drew the last seats deals the cohorts."""
        return self._send("formCohorts", task, self._beacon.proof(request) if request else b"")

    def draw_seats(self, task: int, request: int) -> Receipt:
        return self._send("drawSeats", task, self._beacon.proof(request))

    def commit_update(self, task: int, round_: int, update: CommittedUpdate, force: bool = False) -> Receipt:
        encoded = (update.points, update.opening.value.to_bytes(32, "big"), update.opening.proof, update.dealing)
        function = self._tasks.functions.commitUpdate(task, round_, encoded)
        blobs = len(update.points) // BYTES_PER_EIP2537_G1
        gas = _GAS_TO_COMMIT + _GAS_PER_BLOB * blobs + _GAS_PER_DEALT_BYTE * len(update.dealing)
        return self.connection.send(function, Sending(gas, force=force))

    def sign_update(self, task: int, round_: int, update: CommittedUpdate) -> SignedUpdate:
        """What lets anybody commit this account's update: it needs no ether. One update per round."""
        signer, contract = self.connection.signer, self.deployment.tasks
        dealing = keccak(update.dealing) if update.dealing else NO_DEALING
        chain_id = self.connection.chain_id
        return sign_update(signer, chain_id, contract, task, round_, update.points, update.opening, dealing)

    def statement_signing(self, task: int, round_: int) -> StatementSigning:
        """Where hospitals' statements on their uploads are of (`consilium_chain.rounds.statements`)."""
        return StatementSigning(self.connection.chain_id, self.deployment.tasks, task, round_)

    def sign_statement(self, task: int, round_: int, statement: bytes) -> SignedStatement:
        return self.statement_signing(task, round_).sign(self.connection.signer, statement)

    def commit_updates(self, task: int, round_: int, updates: Sequence[SignedUpdate]) -> list[Receipt]:
        """Commits for hospitals that signed, in as few transactions as can be; who has committed already is skipped.

        Raises Refused before anything of a transaction is spent; its `hospital` names whose update is wrong.
        """
        return [
            self._send("commitUpdates", task, round_, [update.to_chain() for update in batch], gas=relayed_gas(batch))
            for batch in update_batches(updates)
        ]

    def fix_survivors(self, task: int, round_: int, survivors: int) -> Receipt:
        return self._send("fixSurvivors", task, round_, survivors)

    def publish_sums(
        self,
        task: int,
        round_: int,
        fate: CohortsFate,
        sums: Sequence[PublishedCohort],
        canaries: Canaries | None = None,
        force: bool = False,
        before: SaidBefore = NOTHING_SAID,
    ) -> list[Receipt]:
        """Says whose updates are in the sums, adds up their commitments (in a canary round: says what its canaries are
        instead) and publishes the cohorts' blobs, all of it but what was said `before`.

        One transaction where everything fits into six blobs and its gas, several otherwise: each is sent as soon as its
        blobs' cell proofs are ready, and only then the first one's receipt is awaited.
        """
        round_calls = RoundCalls(self._encode, task, round_, before)
        missing = [(cohort, blob) for cohort in sums for blob in round_calls.missing(cohort)]
        ready = iter([self.prover.sidecar(cohort.blobs[blob]) for cohort, blob in missing])
        batch = [round_calls.beginning(fate, canaries, self.round_state(task, round_).committed)]
        sidecars: list[Sidecar] = []
        pending = []
        for cohort, blob in missing:
            shown = round_calls.blob(cohort, blob, len(sidecars), canaries is not None)
            gas = sum(one.gas for one in batch) + shown.gas
            if len(sidecars) == MAX_BLOBS_PER_TRANSACTION or gas > GAS_PER_BATCH:
                pending.append(self._multicall(batch, "publish", force, sidecars))
                batch, sidecars = [], []
                shown = round_calls.blob(cohort, blob, 0, canaries is not None)
            batch.append(shown)
            sidecars.append(next(ready))
        if any(one.calls for one in batch):
            pending.append(self._multicall(batch, "publish", force, sidecars))
        return [self.connection.receipt(one) for one in pending]

    def publish_digests(
        self,
        task: int,
        round_: int,
        fate: CohortsFate,
        sums: Sequence[PublishedCohort],
        canaries: Canaries | None = None,
        force: bool = False,
        before: SaidBefore = NOTHING_SAID,
    ) -> list[Receipt]:
        """The same by versioned hashes, on a chain without blobs: the bytes are in an artifact store."""
        round_calls = RoundCalls(self._encode, task, round_, before)
        calls = [round_calls.beginning(fate, canaries, self.round_state(task, round_).committed)]
        for cohort in sums:
            calls += [round_calls.digest(cohort, blob, canaries is not None) for blob in round_calls.missing(cohort)]
        return self._in_batches(calls, "publish", force)

    def accuse_cohort(self, task: int, round_: int, cohort: int, accusation: bytes, evidence: bytes) -> Receipt:
        """Drops a cohort whose sum does not hold, and has its hospitals testify."""
        return self._send("accuseCohort", task, round_, cohort, accusation, evidence)

    def testify(self, task: int, round_: int, step: int, testimony: bytes) -> Receipt:
        """For the step that it is (`rounds.machine.dispute_step`): what comes late is refused."""
        return self._send("testify", task, round_, step, testimony)

    def name_culprits(self, task: int, round_: int, hospitals: int) -> Receipt:
        """Names hospitals of accused cohorts, as a bit map."""
        return self._send("nameCulprits", task, round_, hospitals)

    def open_canaries(
        self,
        task: int,
        round_: int,
        seed: bytes,
        retreat: Sequence[Commitment],
        cohorts: Sequence[OpenedCohort],
        settle_gas: int,
        force: bool = False,
    ) -> list[Receipt]:
        """Opens a canary round's sums, and settles it where the last transaction has `settle_gas` to spare.

        `retreat`: the commitment to each blob of the round's retreat.
        """
        round_calls = RoundCalls(self._encode, task, round_)
        calls = [
            round_calls.opening(cohort, blob, seed, retreat) for cohort in cohorts for blob in range(len(cohort.blobs))
        ]
        settling = round_calls.settling(settle_gas)
        if sum(call.gas for call in [*calls, settling]) <= GAS_PER_BATCH:  # else by itself, once cohorts are opened
            calls.append(settling)
        return self._in_batches(calls, "openCanaries", force)

    def _in_batches(self, calls: Sequence[Priced], name: str, force: bool) -> list[Receipt]:
        """One transaction after the other, each with as many of the calls, by their gas, as it takes."""
        parts = batches([(call, call.gas) for call in calls], GAS_PER_BATCH)
        return [self.connection.receipt(self._multicall(batch, name, force)) for batch in parts]

    def _multicall(self, batch: Sequence[Priced], name: str, force: bool, sidecars: Sequence[Sidecar] = ()) -> Pending:
        calls = list(chain.from_iterable(one.calls for one in batch))
        sending = Sending(sum(one.gas for one in batch), sidecars, force, name)
        return self.connection.submit(self._tasks.functions.multicall(calls), sending)

    def commit_scores(self, task: int, round_: int, public: bytes, ticket: bytes, commitment: bytes) -> Receipt:
        return self._send("commitScores", task, round_, public, ticket, commitment)

    def stand_down(self, task: int, round_: int) -> Receipt:
        return self._send("standDown", task, round_)

    def reveal_scores(self, task: int, round_: int, scores: Sequence[int], salt: bytes) -> Receipt:
        return self._send("revealScores", task, round_, list(scores), salt)

    def settle(self, task: int, round_: int) -> Receipt:
        return self._send("settle", task, round_)

    def tick(self, task: int) -> Receipt:
        return self._send("tick", task)

    def resume(self, task: int) -> Receipt:
        return self._send("resume", task)

    def named(self, calls: Sequence[Call]) -> list[NamedCall | None]:
        """What calls are of, if of the token, of staking or of tasks; None for any other."""
        contracts = {"token": self._token, "staking": self._staking, "tasks": self._tasks}
        return [self.connection.named(call, contracts) for call in calls]

    def _read(self, name: str, *arguments: Any, block: int | None = None) -> Any:
        return self.connection.call(self._tasks.functions[name](*arguments), block)

    def _send(self, name: str, *arguments: Any, gas: int | None = None) -> Receipt:
        return self.connection.send(self._tasks.functions[name](*arguments), Sending(gas))

    def _encode(self, name: str, *arguments: Any) -> str:
        return str(self._tasks.encode_abi(name, args=list(arguments)))


def _bytes20(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
