"""Transactions of a task's parties: operator, hospitals and voters; and those by which anybody ends a phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilium_zk.tickets import SecretKey, public_key
from eth_utils.crypto import keccak

from consilium_chain.errors import DeploymentInvalid, NotPossible, Refused
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.messages import Messages
from consilium_chain.ledger.staking import Staking
from consilium_chain.ledger.structs import Role, TaskParams
from consilium_chain.rounds.beacons import Beacon
from consilium_chain.rounds.signed_updates import NO_BASE, NO_SHARE_BUNDLE, SignedUpdate, sign_update
from consilium_chain.rounds.statements import SignedStatement
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.transport_keys import TransportKey

NO_KEY = bytes(32)  # of a hospital in a task that is not masked
# Upper bounds, as in `publishing`.
_GAS_TO_COMMIT = 100_000
_GAS_PER_BLOB = 27_000
_GAS_PER_SHARE_BYTE = 50
_OF_TOKENS = ("ERC20InsufficientAllowance", "ERC20InsufficientBalance")


@dataclass(frozen=True)
class CommittedUpdate:
    """The hashes of a round's points (`Messages.point_hashes`), in a masked task the hospital's secret shares
    (`secure_aggregation`), and the digest of the base that it trained from (32 bytes).
    """

    point_hashes: Sequence[bytes]
    share_bundle: bytes = b""
    base: bytes = NO_BASE


class OperatorCalls:
    """Transactions of a task's operator."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts, self._tasks = contracts, contracts.tasks

    def propose(self, params: TaskParams) -> int:
        """Proposes a task, or all shards of a model, and pays each its pool. Returns the id of the first.

        Raises BlobsUnavailable before it pays anything.
        """
        deployment = self._contracts.deployment
        if not deployment.blobs and not params.digests:
            raise NotPossible("BlobsUnavailable", chain_id=deployment.chain_id)
        self._contracts.token.send("approve", deployment.tasks, params.pool * params.shards)
        receipt = self._tasks.send("propose", params.to_chain())
        for event in self._contracts.connection.logs.events(
            self._tasks.contract, receipt.block, receipt.block, "TaskProposed"
        ):
            if event.transaction == receipt.transaction:
                return int(event.values["taskId"])
        raise DeploymentInvalid(
            f"the contract {deployment.tasks} took a proposal without a TaskProposed event; check the address book"
        )

    def try_fund(self, task: int, amount: int) -> None:
        """Raises Refused as `fund` would, except for the token's own errors, before an allowance is paid."""
        try:
            self._tasks.read("fund", task, amount)
        except Refused as error:
            if error.name not in _OF_TOKENS:
                raise

    def fund(self, task: int, amount: int) -> Receipt:
        """Adds to a task's pool while others join; only its operator may."""
        self._contracts.token.send("approve", self._contracts.deployment.tasks, amount)
        return self._tasks.send("fund", task, amount)

    def stop(self, task: int) -> Receipt:
        """Ends the task after this round; only its operator may. The rest of the pool is refundable at the end."""
        return self._tasks.send("stop", task)

    def claim_refund(self) -> None:
        if self._tasks.read("claimable", self._contracts.address):
            self._tasks.send("claim")


class HospitalCalls:
    """Transactions and signatures of a hospital."""

    def __init__(self, contracts: Contracts, messages: Messages, staking: Staking) -> None:
        self._contracts, self._tasks = contracts, contracts.tasks
        self._messages, self._staking = messages, staking

    def join(
        self, task: int, rows: int, key: TransportKey, encryption_key: bytes = NO_KEY, stake: int | None = None
    ) -> Receipt:
        """Joins by a node key; `stake`: first brings the free stake up to this. Both or neither if a sponsor pays."""
        calls = [] if stake is None else self._staking.calls_to_stake(Role.HOSPITAL, stake)
        proof = key.sign(self._messages.transport(task, key.public))
        calls.append(self._tasks.function("joinAsHospital", task, rows, key.public, proof, encryption_key))
        return self._contracts.connection.transactions.send_all(calls)[-1]

    def commit_update(
        self, task: int, round_: int, cohort: int, update: CommittedUpdate, force: bool = False
    ) -> Receipt:
        """`cohort`: the number of this account's. `force`: sends it although the contract may refuse it."""
        encoded = (list(update.point_hashes), update.share_bundle, update.base)
        gas = _GAS_TO_COMMIT + _GAS_PER_BLOB * len(update.point_hashes) + _GAS_PER_SHARE_BYTE * len(update.share_bundle)
        return self._tasks.send("commitUpdate", task, round_, cohort, encoded, gas=gas, force=force)

    def sign_update(self, task: int, round_: int, update: CommittedUpdate) -> SignedUpdate:
        """Lets anybody commit this account's update, without ether of its own. One update per round."""
        connection, contract = self._contracts.connection, self._contracts.deployment.tasks
        share_bundle = keccak(update.share_bundle) if update.share_bundle else NO_SHARE_BUNDLE
        signer, chain_id = connection.signer, connection.chain_id
        return sign_update(signer, chain_id, contract, task, round_, update.point_hashes, share_bundle, update.base)

    def sign_statement(self, task: int, round_: int, statement: bytes) -> SignedStatement:
        return self._messages.statements(task, round_).sign(self._contracts.connection.signer, statement)

    def submit_evidence(self, task: int, round_: int, step: int, evidence: bytes) -> Receipt:
        """In a step (`rounds.disputes`): the contract refuses late statements."""
        return self._tasks.send("submitEvidence", task, round_, step, evidence)

    def resume(self, task: int) -> Receipt:
        """Takes part again from the next round on, after an absence."""
        return self._tasks.send("resume", task)


class VoterCalls:
    """Transactions of a voter."""

    def __init__(self, contracts: Contracts, messages: Messages) -> None:
        self._tasks, self._staking, self._messages = contracts.tasks, contracts.staking, messages

    def register_key(self, key: SecretKey) -> Receipt:
        return self._staking.send("registerVoterKey", public_key(key), self._messages.possession(key))

    def commit_held_out(self, root: bytes) -> Receipt:
        """Commits to the rows by which this voter judges in tasks that it joins from now on."""
        return self._staking.send("commitHeldOut", root)

    def join(self, task: int) -> Receipt:
        return self._tasks.send("joinAsVoter", task)

    def commit_scores(self, task: int, round_: int, public: bytes, ticket: bytes, commitment: bytes) -> Receipt:
        return self._tasks.send("commitScores", task, round_, public, ticket, commitment)

    def stand_down(self, task: int, round_: int) -> Receipt:
        return self._tasks.send("standDown", task, round_)

    def reveal_scores(self, task: int, round_: int, scores: Sequence[int], salt: bytes) -> Receipt:
        return self._tasks.send("revealScores", task, round_, list(scores), salt)


class PhaseCalls:
    """Transactions that anybody may send to end a phase. `request`: the round's request to the beacon, or 0."""

    def __init__(self, contracts: Contracts, beacon: Beacon) -> None:
        self._tasks, self._beacon = contracts.tasks, beacon

    def beacon_ready(self, request: int) -> bool:
        """True if the chain would take the beacon's proof now; also without a request."""
        return request == 0 or self._beacon.ready(request)

    def beacon_expired(self, request: int) -> bool:
        return request != 0 and self._beacon.expired(request)

    def form_cohorts(self, task: int, request: int) -> Receipt:
        """Without a request, the value that drew the last seats assigns the cohorts."""
        return self._tasks.send("formCohorts", task, self._beacon.proof(request) if request else b"")

    def draw_seats(self, task: int, request: int) -> Receipt:
        return self._tasks.send("drawSeats", task, self._beacon.proof(request))

    def settle(self, task: int, round_: int) -> Receipt:
        return self._tasks.send("settle", task, round_)

    def tick(self, task: int) -> Receipt:
        """Ends a phase after its deadline."""
        return self._tasks.send("tick", task)
