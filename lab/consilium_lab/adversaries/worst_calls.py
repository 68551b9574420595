"""The calls of a stranger, with bad values in each field: empty, longest, repeated, another's, out of range.

The packages of real nodes do not contain them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, STATISTICS_ROUND, Role, ballot_size
from consilium_chain.rounds.signed_updates import NO_BASE, SignedUpdate
from consilium_chain.settings import NodeSettings, TaskNumber
from consilium_chain.transport_keys import TransportKey, transport_message
from consilium_zk.key_exchange import public_key as encryption_key_of
from consilium_zk.tickets import prove_possession, public_key, sign_ticket

Try = tuple[str, Any]  # the bad field in words, and the call, not sent yet

MOST: Final = 2**256 - 1
LARGEST_SCORE: Final = 2**63 - 1
LONG: Final = 120_000  # bytes: the largest transaction is 128 KiB
COUNTLESS: Final = 1_000  # scores
BEYOND_UNITS: Final = 10_001  # basis points
NO_ROLE: Final = 200
NO_SALT: Final = bytes(32)
LONGEST_NAME: Final = b'"' + "\N{RIGHT-TO-LEFT OVERRIDE}<script>".encode() * 1_000 + b'"\n# '
# Each stranger that joins as a hospital takes the next. They are not zero, so the contract accepts them.
ENCRYPTION_KEYS: Final = {
    "the group's identity": (1).to_bytes(32, "little"),
    "a key with a public secret": encryption_key_of(bytes(32)),
    "the identity, not in its canonical form": (2**255 - 18).to_bytes(32, "little"),
    "all bits set": b"\xff" * 32,
}


class StrangerSettings(NodeSettings):
    task: TaskNumber


class WorstCalls:
    """Calls with bad values, not sent yet."""

    def __init__(self, settings: StrangerSettings) -> None:
        self.ledger: Ledger = settings.connect()
        self.store = ArtifactStore(settings.artifacts)
        self.task = settings.task
        self.params = self.ledger.tasks.params(self.task)
        connection, deployment = self.ledger.connection, self.ledger.deployment
        self._staking = connection.contract("Staking", deployment.staking)
        self._tasks = connection.contract("Tasks", deployment.tasks).functions
        self._key = voter_key(connection.signer)
        self._transport_key = TransportKey.generate()
        self._round = STATISTICS_ROUND

    def _join_call(
        self,
        task: int | None = None,
        rows: int = 1,
        key: bytes | None = None,
        proof: bytes | None = None,
        sealing: bytes = b"\x02" * 32,
    ) -> Any:
        """Has its own key and the proof, except where the caller gives others."""
        task = self.task if task is None else task
        key = self._transport_key.public if key is None else key
        own = self._transport_key.sign(self.ledger.messages.transport(self.task, self._transport_key.public))
        return self._tasks.joinAsHospital(task, rows, key, own if proof is None else proof, sealing)

    def _hospital_joins(self) -> Iterator[Try]:
        """The contract refuses all of them."""
        other = self.ledger.record.transport_keys(self.task)[0]
        elsewhere = self.ledger.messages.transport(self.task + 1, self._transport_key.public)
        contract, hospital = self.ledger.deployment.tasks, self.ledger.tasks.hospitals(self.task)[0].node
        chain_id, own = self.ledger.connection.chain_id, self._transport_key.public
        copied = transport_message(chain_id, _bytes20(contract), self.task, _bytes20(hospital), own)
        yield "no task", self._join_call(task=0)
        yield "a task that does not exist", self._join_call(task=MOST)
        yield "no rows", self._join_call(rows=0)
        yield "no key", self._join_call(key=b"")
        yield "a key of zeros", self._join_call(key=bytes(64))
        yield "a key off the curve", self._join_call(key=b"\xff" * 64)
        yield "the longest key", self._join_call(key=bytes(LONG))
        yield "another's key", self._join_call(key=other)
        yield "no proof", self._join_call(proof=b"")
        yield "a proof of zeros", self._join_call(proof=bytes(64))
        yield "the longest proof", self._join_call(proof=b"\xff" * LONG)
        yield "a proof for another task", self._join_call(proof=self._transport_key.sign(elsewhere))
        yield "a proof for another's account", self._join_call(proof=self._transport_key.sign(copied))
        if self.params.masked:
            yield "no encryption key", self._join_call(sealing=bytes(32))

    def _registrations(self) -> Iterator[Try]:
        register = self._staking.functions.register
        yield "a role that does not exist", register(NO_ROLE, 0, 0)
        yield "a commission of more than 100 %", register(Role.HOSPITAL, BEYOND_UNITS, 0)
        yield "the largest commission", register(Role.VOTER, MOST, 0)
        yield "tokens that it does not have", register(Role.HOSPITAL, 0, MOST)
        yield "no tokens, and a commission of nearly 100 %", register(Role.AGGREGATOR, BEYOND_UNITS - 1, 0)

    def _voter_keys(self) -> Iterator[Try]:
        """Its own key comes last, so that it can join."""
        ledger, register = self.ledger, self._staking.functions.registerVoterKey
        own = public_key(self._key)
        chain_id, account = ledger.connection.chain_id, _bytes20(ledger.address)
        staking = _bytes20(ledger.deployment.staking)
        proof = prove_possession(self._key, chain_id, staking, account)
        elsewhere = prove_possession(self._key, chain_id + 1, staking, account)
        yield "no key", register(b"", proof)
        yield "a key of zeros", register(bytes(256), proof)
        yield "a key off the curve", register(b"\xff" * 256, proof)
        yield "the longest key", register(bytes(LONG), proof)
        yield "no proof", register(own, b"")
        yield "a proof of zeros", register(own, bytes(128))
        yield "the longest proof", register(own, bytes(LONG))
        yield "a proof for another chain", register(own, elsewhere)
        event = next(ledger.logs.of_staking("VoterKeyRegistered", ledger.connection.blocks.number()))
        for call in ledger.connection.blocks.calls_of(self._staking, event.block, event.block):
            if call.name == "registerVoterKey":
                other, theirs = call.arguments.values()
                yield "another's key, and the proof of it", register(other, theirs)
                yield "another's key", register(other, proof)
        yield "its own key", register(own, proof)
        yield "its own key for the second time", register(own, proof)

    def _proposals(self) -> Iterator[Try]:
        """Tasks that cost their proposer nothing, if the contract accepts them."""
        free = replace(self.params, pool=0, tick_bounty=0, aggregator=self.ledger.address)
        worst: dict[str, dict[str, Any]] = {
            "a pool that it cannot pay": {"pool": 2**128 - 1},
            "no aggregator": {"aggregator": "0x" + "00" * 20},
            "the most rounds": {"rounds": 2**16 - 1},
            "no rounds": {"rounds": 0},
            "the most hospitals": {"max_hospitals": 2**16 - 1},
            "the most voters": {"max_voters": 2**16 - 1},
            "the most blobs": {"update_blobs": 2**16 - 1},
            "shares of more than 100 %": {"hospital_share_bps": 2**16 - 1},
            "the longest window": {"join_window": 2**32 - 1},
            "no window": {"reveal_window": 0},
            "a slash for harmless updates": {"harmful_below": LARGEST_SCORE, "accept_floor": LARGEST_SCORE},
            "no bond": {"hospital_bond": 0},
            "the largest bounty": {"tick_bounty": 2**128 - 1},
        }
        for field, values in worst.items():
            yield field, self._tasks.propose(replace(free, **values).to_chain())
        file = self.store.get_file(self.params.spec_hash).replace(b"\nname = ", b"\nname = " + LONGEST_NAME, 1)
        names = {"a file with the longest name": self.store.put_file(file), "no file": bytes(32)}
        for field, digest in names.items():
            yield field, self._tasks.propose(replace(free, spec_hash=digest).to_chain())
        yield (
            "this task once more, with another's aggregator",
            self._tasks.propose(replace(free, aggregator=self.params.aggregator).to_chain()),
        )

    def _out_of_turn(self, round_: int) -> Iterator[Try]:
        yield "not in its phase", self._commit_call(round_, [])  # its phase would refuse it as well
        yield "not in its phase", self._tasks.revealScores(self.task, round_, [0], bytes(32))
        yield "not in its phase", self._join_call()
        yield "another's duty", self._tasks.fixSurvivors(self.task, round_, MOST)

    def _hashes(self, round_: int) -> list[bytes]:
        """As many hashes as its update has blobs. The contract takes any."""
        number = self.params.statistics_blobs if round_ == STATISTICS_ROUND else self.params.update_blobs
        return [b"\x01" * 32] * number

    def _cohort(self, round_: int) -> int:
        """The number of its own cohort; 0 without one."""
        nodes = [hospital.node for hospital in self.ledger.tasks.hospitals(self.task)]
        if self.ledger.address not in nodes:
            return 0
        return self.ledger.tasks.cohort_of(self.task, round_, nodes.index(self.ledger.address)) or 0

    def _commit_call(
        self, round_: int, hashes: Sequence[bytes] | None = None, cohort: int | None = None, share_bundle: bytes = b""
    ) -> Any:
        """A valid update, except where the caller gives other values."""
        hashes = self._hashes(round_) if hashes is None else hashes
        cohort = self._cohort(round_) if cohort is None else cohort
        return self._tasks.commitUpdate(self.task, round_, cohort, (list(hashes), share_bundle, NO_BASE))

    def _commits(self, round_: int) -> Iterator[Try]:
        """The contract refuses them, or they change nothing."""
        commit = self._commit_call
        sound = commit(round_).args[2:]
        # These come first: the contract ignores an update of a hospital that has committed.
        yield from self._relayed(round_)
        yield "a round to come", self._tasks.commitUpdate(self.task, round_ + 1, *sound)
        yield "a round that does not exist", self._tasks.commitUpdate(self.task, MOST, *sound)
        yield "a task that does not exist", self._tasks.commitUpdate(MOST, round_, *sound)
        yield "no points", commit(round_, [])
        yield "the most points", commit(round_, [b"\xff" * 32] * (LONG // 32))
        yield "a cohort that does not exist", commit(round_, cohort=MOST)
        yield "the next cohort", commit(round_, cohort=self._cohort(round_) + 1)

    def _relayed(self, round_: int) -> Iterator[Try]:
        """Updates in another's name and in its own, as all accounts may send them."""
        ledger, relay, cohort = self.ledger, self._tasks.commitUpdates, self._cohort(round_)
        update = CommittedUpdate(self._hashes(round_))
        own = ledger.hospital.sign_update(self.task, round_, update)
        other = ledger.tasks.hospitals(self.task)[0].node
        theirs = replace(own, hospital=other)
        unsigned = replace(theirs, r=bytes(32), vs=bytes(32))
        malleable = replace(theirs, r=b"\xff" * 32, vs=b"\xff" * 32)
        updates: dict[str, list[SignedUpdate]] = {
            "no updates": [],
            "another's, with its own signature": [theirs],
            "another's, without a signature": [unsigned],
            "another's, with the largest signature": [malleable],
            "another's, again and again": [theirs] * 64,
            "its own, with an unknown share bundle": [replace(own, share_bundle=b"\xff" * 32)],
            "its own, with another base": [replace(own, base=b"\xff" * 32)],
            "its own, for another round": [ledger.hospital.sign_update(self.task, round_ + 1, update)],
        }
        for field, given in updates.items():
            yield field, relay(self.task, round_, [update.to_chain(cohort) for update in given])

    def _ballots(self, round_: int) -> Iterator[Try]:
        commit, own, ticket = self._tasks.commitScores, public_key(self._key), self._ticket(round_)
        yield "no key", commit(self.task, round_, b"", ticket, bytes(32))
        yield "the longest key", commit(self.task, round_, bytes(LONG), ticket, bytes(32))
        yield "no ticket", commit(self.task, round_, own, b"", bytes(32))
        yield "a ticket of zeros", commit(self.task, round_, own, bytes(128), bytes(32))
        yield "the longest ticket", commit(self.task, round_, own, b"\xff" * LONG, bytes(32))
        yield "a ticket of another round", commit(self.task, round_, own, self._ticket(round_ + 1), bytes(32))
        yield "a round to come", commit(self.task, round_ + 1, own, ticket, bytes(32))
        yield "a round that does not exist", self._tasks.standDown(self.task, MOST)

    def _ticket(self, round_: int) -> bytes:
        seed = self.ledger.tasks.round_state(self.task, self._round).seat_seed
        return sign_ticket(self._key, self.ledger.messages.ticket(self.task, round_, seed))

    def _extreme(self, round_: int) -> list[int]:
        cohorts = self.ledger.tasks.round_state(self.task, round_).cohorts
        size = ballot_size(self.params, round_, cohorts)
        return [INVALID_SCORE if index % 2 else LARGEST_SCORE for index in range(size)]

    def _reveals(self, round_: int) -> Iterator[Try]:
        reveal, scores = self._tasks.revealScores, self._extreme(round_)
        yield "no scores", reveal(self.task, round_, [], NO_SALT)
        yield "more scores than cohorts", reveal(self.task, round_, [LARGEST_SCORE] * COUNTLESS, NO_SALT)
        yield "all sums marked as not matching", reveal(self.task, round_, [DOES_NOT_MATCH] * len(scores), NO_SALT)
        yield "another salt", reveal(self.task, round_, scores, b"\xff" * 32)
        yield "a round to come", reveal(self.task, round_ + 1, scores, NO_SALT)
        yield "a round that does not exist", reveal(self.task, MOST, scores, NO_SALT)
        yield "a task that does not exist", reveal(MOST, round_, scores, NO_SALT)


def _bytes20(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
