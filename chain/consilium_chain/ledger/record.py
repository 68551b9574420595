"""Reads of the events of a task's parties: keys, commitments, sums, accusations."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_zk.kzg import Commitment, parse_commitment
from eth_utils.crypto import keccak

from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.events import ContractEvents
from consilium_chain.ledger.publishing import Accusation, Decoys, SaidBefore
from consilium_chain.ledger.structs import Phase
from consilium_chain.ledger.tasks import Tasks
from consilium_chain.rounds.signed_updates import NO_BASE, NO_SHARE_BUNDLE

COMMITMENT_BYTES = 48


@dataclass(frozen=True)
class ShownBlinders:
    """An unverified disclosure of one blob of a decoy round: the round's seed (32 bytes) and the sum's blinders.
    Readers check it (`consilium_zk.decoys.published_commitment`).
    """

    cohort: int
    blob: int
    seed: bytes
    blinders: tuple[int, int]


class Record:
    """Reads by the events of this account's node. Every method raises ChainUnreachable."""

    def __init__(self, contracts: Contracts, events: ContractEvents, tasks: Tasks) -> None:
        self._connection, self._contract = contracts.connection, contracts.tasks.contract
        self._events, self._tasks = events, tasks

    def proposals(self, operator: str, spec_hash: bytes) -> list[int]:
        """The tasks that an account has proposed with a file of this hash, ascending."""
        proposed = self._events.of_tasks("TaskProposed", operator=operator)
        return sorted(event.values["taskId"] for event in proposed if bytes(event.values["specHash"]) == spec_hash)

    def tasks_of_voter(self, voter: str) -> list[int]:
        """All tasks that it has joined, ascending."""
        return sorted(event.values["taskId"] for event in self._events.of_tasks("VoterJoined", voter=voter))

    def transport_keys(self, task: int) -> dict[int, bytes]:
        """Flower node keys by index of hospital, as announced on joining."""
        return self._announced("transportKey", task)

    def encryption_keys(self, task: int) -> dict[int, bytes]:
        """Encryption keys by index of hospital, as announced on joining."""
        return self._announced("encryptionKey", task)

    def _announced(self, field: str, task: int) -> dict[int, bytes]:
        joined = self._events.of_tasks("HospitalJoined", taskId=task)
        return {event.values["index"]: bytes(event.values[field]) for event in joined}

    def point_hashes(self, task: int, round_: int) -> dict[str, list[bytes]]:
        """The hashes of points by hospital that has committed, 32 bytes per blob, in the order of their commitments."""
        return {
            event.values["hospital"]: [bytes(one) for one in event.values["pointHashes"]]
            for event in self._events.of_tasks("UpdateCommitted", taskId=task, round=round_)
        }

    def point_hashes_of(self, task: int, round_: int, hospital: str) -> list[bytes] | None:
        """A hospital's hashes of points in a round; None without an event."""
        for event in self._events.of_tasks("UpdateCommitted", taskId=task, round=round_, hospital=hospital):
            return [bytes(one) for one in event.values["pointHashes"]]
        return None

    def shown_points(self, task: int, round_: int) -> dict[str, dict[int, Commitment]]:
        """The points of survivors behind their hashes, by hospital and blob. The contract has compared them.

        Raises PointMalformed.
        """
        nodes = [hospital.node for hospital in self._tasks.hospitals(task)]
        found: dict[str, dict[int, Commitment]] = {}
        for event in self._events.of_tasks("PointsShown", taskId=task, round=round_):
            points = bytes(event.values["points"])
            for position, index in enumerate(bytes(event.values["hospitals"])):
                raw = points[position * COMMITMENT_BYTES :][:COMMITMENT_BYTES]
                found.setdefault(nodes[index], {})[event.values["blob"]] = parse_commitment(raw)
        return found

    def stated_bases(self, task: int, round_: int) -> dict[str, bytes]:
        """Digests of the base, 32 bytes, by hospital that has committed and states one: unverified."""
        found = {
            event.values["hospital"]: bytes(event.values["base"])
            for event in self._events.of_tasks("UpdateCommitted", taskId=task, round=round_)
        }
        return {hospital: base for hospital, base in found.items() if base != NO_BASE}

    def rounds_committed(self, hospital: str) -> list[tuple[int, int]]:
        """Task and round of all commitments of a hospital, in the chain's order."""
        committed = self._events.of_tasks("UpdateCommitted", hospital=hospital)
        return [(event.values["taskId"], event.values["round"]) for event in committed]

    def share_digests(self, task: int, round_: int) -> dict[str, bytes]:
        """keccak256 of the secret shares by hospital that has committed, without hospitals that sent none."""
        found = {
            event.values["hospital"]: bytes(event.values["shareBundle"])
            for event in self._events.of_tasks("UpdateCommitted", taskId=task, round=round_)
        }
        return {hospital: digest for hospital, digest in found.items() if digest != NO_SHARE_BUNDLE}

    def shares_on_chain(self, task: int, round_: int) -> dict[bytes, bytes]:
        """Secret shares by their keccak256, of hospitals that committed with a transaction of their own."""
        events = self._events.of_tasks("SharesPublished", taskId=task, round=round_)
        return {
            keccak(share_bundle): share_bundle
            for share_bundle in (bytes(event.values["shareBundle"]) for event in events)
        }

    def decoys_set(self, task: int, round_: int) -> Decoys | None:
        """None without an event."""
        for event in self._events.of_tasks("DecoysSet", taskId=task, round=round_):
            return Decoys(bytes(event.values["seedCommitment"]), bytes(event.values["negatedDelta"]))
        return None

    def published_so_far(self, task: int, round_: int) -> SaidBefore:
        """The part of a round's publication that has events."""
        summed, published = (
            frozenset(
                (e.values["cohort"], e.values["blob"]) for e in self._events.of_tasks(name, taskId=task, round=round_)
            )
            for name in ("CohortSummed", "CohortPublished")
        )
        return SaidBefore(summed, published, self.decoys_set(task, round_))

    def shown_blinders(self, task: int, round_: int) -> list[ShownBlinders]:
        """The unverified disclosures in the transactions that disclose a decoy round, also in refused ones.

        No event has them. They are read from the calls to the contract between the phase's start and the last cohort's
        disclosure, except calls by another contract.
        """
        started = [
            event.block
            for event in self._events.of_tasks("PhaseStarted", taskId=task, round=round_)
            if event.values["phase"] == Phase.DISCLOSING
        ]
        disclosed = [event.block for event in self._events.of_tasks("CohortDisclosed", taskId=task, round=round_)]
        if not started or not disclosed:
            return []
        found = []
        for call in self._connection.blocks.calls_of(self._contract, min(started), max(disclosed)):
            given = call.arguments
            if call.name == "discloseDecoys" and (given["taskId"], given["number"]) == (task, round_):
                for index, one in enumerate(given["disclosed"], given["firstBlob"]):
                    blinders = (one["first"], one["second"])
                    found.append(ShownBlinders(given["cohort"], index, bytes(given["seed"]), blinders))
        return found

    def phase_block(self, task: int, round_: int, phase: Phase) -> int | None:
        """The block in which a phase of a round last started; None without an event."""
        started = self._events.of_tasks("PhaseStarted", taskId=task, round=round_)
        return max((event.block for event in started if event.values["phase"] == phase), default=None)

    def accusations(self, task: int, round_: int) -> dict[int, Accusation]:
        """By cohort."""
        return {
            event.values["cohort"]: Accusation(bytes(event.values["accusation"]), bytes(event.values["evidence"]))
            for event in self._events.of_tasks("CohortAccused", taskId=task, round=round_)
        }

    def submitted_evidence(self, task: int, round_: int) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Dispute statements of step 0 and of step 1, by index of hospital: the first of each hospital in that step."""
        indices = {hospital.node: index for index, hospital in enumerate(self._tasks.hospitals(task))}
        found: tuple[dict[int, bytes], dict[int, bytes]] = {}, {}
        for event in self._events.of_tasks("EvidenceSubmitted", taskId=task, round=round_):
            evidence = bytes(event.values["evidence"])
            found[event.values["step"]].setdefault(indices[event.values["hospital"]], evidence)
        return found

    def ending_hash(self, task: int, round_: int) -> bytes:
        """Hash of the block in which a round was settled or voided, 32 bytes. Raises RecordIncomplete."""
        for name in ("RoundSettled", "RoundVoided"):
            for event in self._events.of_tasks(name, taskId=task, round=round_):
                return self._connection.blocks.hash_of(event.block)
        raise RecordIncomplete(f"round {round_} of task {task} has not ended; wait, or choose an earlier round")
