"""A statistics round whose sum does not hold, with hospitals' real nodes on a real chain, for tests to judge it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from chain_driver import LocalChain
from consilium_chain.artifacts.store import CHECK_BITS
from consilium_chain.ledger.structs import DOES_NOT_MATCH, Phase, RoundState, TaskState
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.disputes import find_cheaters
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_client.hospital.node import HospitalNode
from consilium_client.voter.node import VoterNode
from consilium_server.aggregator.disputes import Statements, make_accusation
from consilium_server.aggregator.unmasking import cohort_answers
from consilium_server.aggregator.uploads import Answer, Contribution, Upload, parse_upload_body, sum_cohort
from consilium_server.errors import SumMismatch
from consilium_zk.blobs import Blob, add, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import parse_commitment, weighted_sum
from consilium_zk.disputes import Reason
from consilium_zk.kzg import commit
from eth_utils.crypto import keccak
from hospital_driver import WINDOW, Committing, start, take

HOSPITALS = 4
LIAR = 3
ONE = parse_blob((1).to_bytes(32, "big") + bytes(BYTES_PER_BLOB - 32))


class FalseUpload(HospitalNode):
    """Adds one to the first scalar of what it uploads, and signs that."""

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]:
        return [add([masked[0], ONE]), *masked[1:]]


class Covered(FalseUpload):
    """Says of the mask that it shares with hospital 0 what would make its upload right."""

    def dispute_statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        said = super().dispute_statement(step, round_, round_state)
        if step == 1:
            return b""
        accusation = self.ledger.record.accusations(self.task.number, round_)[0].accusation
        factor = int.from_bytes(keccak(accusation + bytes(32))[:16], "big")
        first = parse_commitment(said[:BYTES_PER_COMPRESSED_G1])
        # It is the higher index, and takes the mask away.
        return weighted_sum([first, commit(ONE)], [1, -factor]) + said[BYTES_PER_COMPRESSED_G1:]


class FalseProof(Covered):
    """And shows, as what their keys agree on, what they do not."""

    def dispute_statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        return super().dispute_statement(step, round_, round_state) if step == 0 else bytes(2) + bytes(range(96))


class Silent(FalseUpload):
    def dispute_statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        return b""


class Garbage(FalseUpload):
    """Says something that is neither points nor agreements."""

    def dispute_statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        return b"\xff" * 48 * (HOSPITALS - 1)


class Bribed(VoterNode):
    """Says the opposite of what it finds."""

    def _judged(self, state: TaskState, round_state: RoundState) -> tuple[int, ...]:
        found = super()._judged(state, round_state)
        return (0,) if found == (DOES_NOT_MATCH,) else (DOES_NOT_MATCH,)


@dataclass
class Accused:
    """A statistics round in Disputing, as an honest aggregator brought it there."""

    round: Committing
    nodes: list[HospitalNode]
    uploads: dict[int, Upload]

    @contextmanager
    def restarted(self, liar: type[HospitalNode]) -> Iterator[Accused]:
        """The same with new processes, LIAR's of this kind, which uploaded as before. What the block brings onto the
        chain is gone after it.
        """
        with self.round.chain.undone():
            yield Accused(self.round, processes(self.round, liar), self.uploads)

    @property
    def state(self) -> RoundState:
        return self.round.round_state

    def look(self, *but: int) -> None:
        """A turn of each node, but of these."""
        for node in self.nodes:
            if node.index not in but:
                take(node, Step.DISPUTE)

    def submit_evidence(self, *but: int) -> None:
        """Both steps."""
        for _ in range(2):
            self.look(*but)
            self.round.chain.pass_time(WINDOW)

    def judged(self) -> tuple[int, ...]:
        """What the task's voter says."""
        return self.round.voter_node()._judged(self.round.aggregator.tasks.state(self.round.task), self.state)

    def judge(self, voter: VoterNode) -> None:
        """The committee is this one, and the round is settled."""
        aggregator, task = self.round.aggregator, self.round.task
        shutil.rmtree(voter.settings.home / "ballots", ignore_errors=True)  # of one that was undone
        voter.join()
        self.round.chain.mine(3)  # the beacon's block, and what proves it
        aggregator.phases.draw_seats(task, self.state.beacon_request)
        for _ in ("score", "reveal"):
            voter.poll()
        aggregator.phases.settle(task, 0)

    def cheaters(self) -> dict[int, Reason]:
        return find_cheaters(self.round.aggregator, self.round.store, self.round.task, 0, self.state)


def processes(round_: Committing, liar: type[HospitalNode]) -> list[HospitalNode]:
    """Of all hospitals, LIAR's of this kind."""
    nodes = [round_.node(index) for index in range(HOSPITALS) if index != LIAR]
    nodes.insert(LIAR, liar(round_.settings[LIAR]))
    nodes[LIAR].context.membership.index = LIAR
    return nodes


def accused(chain: LocalChain, folder: Path, liar: type[HospitalNode]) -> Accused:
    round_ = start(chain, folder, HOSPITALS, masked=True)
    aggregator, task = round_.aggregator, round_.task
    nodes = processes(round_, liar)
    round_.relay(*(round_.signed(node) for node in nodes))

    uploads = {}
    for node in nodes:
        reply = round_.ask(node, Part.UPLOAD)
        assert reply.code is ReplyCode.OK
        uploads[node.index] = Upload([parse_blob(blob) for blob in reply.blobs], *parse_upload_body(reply.body, 1))
    statements = Statements(aggregator, task, 0)
    cohort = masked_cohort(aggregator, task, 0, (1 << HOSPITALS) - 1)
    share_bundles = read_share_bundles(aggregator, round_.store, task, 0, cohort)
    assert statements.sound(cohort, share_bundles, uploads) == set(range(HOSPITALS))
    aggregator.aggregator.fix_survivors(task, 0, (1 << HOSPITALS) - 1)

    answers = cohort_answers(aggregator, round_.store, task, 0, (1 << HOSPITALS) - 1, round_.round_state)
    for node in nodes:
        answers.take({node.index: Answer(round_.ask(node, Part.ANSWER).body)})
    parts = [Contribution(upload, 1) for upload in uploads.values()]
    with pytest.raises(SumMismatch):
        sum_cohort(0, parts, [secrets.randbits(CHECK_BITS)], answers.residue())
    accusation = make_accusation(
        aggregator, round_.store, task, 0, round_.round_state, statements, uploads, answers.roots()
    )
    aggregator.aggregator.accuse_cohort(task, 0, 0, accusation.accusation, accusation.evidence)
    assert aggregator.tasks.state(task).phase is Phase.DISPUTING
    for node in nodes:  # of what a sponsor would carry
        round_.set_ether(node, 10**18)
    return Accused(round_, nodes, uploads)
