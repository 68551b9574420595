"""A voter's node: draws its ticket, evaluates every cohort's candidate on its own held-out data, commits, reveals.

`scores` and `reveal` are what a dishonest voter would replace. Where what is published cannot be had, or is not what it
should be, a voter says so in place of its scores.
"""

from __future__ import annotations

import time
from pathlib import Path

from consilium_chain.accusations import find_culprits
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, RecordIncomplete, Refused
from consilium_chain.journal import emit
from consilium_chain.keystore import voter_key
from consilium_chain.ledger import Ledger
from consilium_chain.views import (
    DOES_NOT_MATCH,
    STATISTICS_ROUND,
    Phase,
    Role,
    RoundState,
    TaskState,
    ballot_size,
    members,
)
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.evaluation import held_out_root
from consilium_zk.tickets import draw, public_key, seat_threshold, sign_ticket

from consilium_client.ballots import Ballot, ballot_path, held_out_secret
from consilium_client.config import VoterSettings
from consilium_client.errors import BallotLost, CulpritsMismatched, RetreatMismatched
from consilium_client.evaluating import Judge
from consilium_client.mapping import read_mapping
from consilium_client.replay import PublicRecord
from consilium_client.tables import Table, read_table
from consilium_client.task import JoinedTask, load_task

# What may be a store or chain node that lags behind: tried again until the voter's patience is over.
UNREADABLE = (ArtifactMissing, ArtifactCorrupt, RecordIncomplete, OSError)


def patience_is_over(state: TaskState, score_window: int, now: int) -> bool:
    """Whether to take what cannot be read in Scoring for not published: half of the phase's window has passed.

    The other half is for the transaction. `now` is the chain's clock in seconds.
    """
    return state.deadline - now <= score_window // 2


class VoterNode:
    def __init__(self, settings: VoterSettings) -> None:
        self.settings = settings
        self.ledger: Ledger = settings.connect()
        if self.ledger.connection.account is None:
            raise ValueError("a voter needs an account")
        self.key = voter_key(self.ledger.connection.account)
        self.public_key = public_key(self.key)
        self.store = ArtifactStore(settings.artifacts)
        self.task: JoinedTask = load_task(self.ledger, self.store, settings.task)
        mapping = read_mapping(settings.mapping, self.task.spec.data)
        self.table: Table = read_table(settings.data, self.task.spec.data, mapping=mapping, allow_one_class=False)
        self.record = PublicRecord(self.ledger, self.store, self.task)
        self.judge = Judge(self.task, self.record, self.table)
        self._fingerprints: tuple[bytes, ...] = ()  # of the models that the latest scores are of
        self._acted: set[tuple[int, Phase]] = set()

    def join(self) -> None:
        """Registers the key, stakes the bond and joins, unless this account is in the task already."""
        if self.ledger.address not in [v.node for v in self.ledger.voters(self.task.number)]:
            self.ledger.register_voter_key(self.key)
            self.ledger.stake(Role.VOTER, self.task.params.voter_bond)
            self._commit_held_out()
            self.ledger.join_as_voter(self.task.number)
        self.index = [v.node for v in self.ledger.voters(self.task.number)].index(self.ledger.address)
        emit("joined", role="voter", index=self.index, rows=len(self.table.labels))

    def _commit_held_out(self) -> None:
        """Says on chain by which rows it will judge, unless it said so before: nobody can choose them afterwards."""
        secret = held_out_secret(self.settings.home, self.ledger.place(self.task.number))
        root = held_out_root(secret, self.judge.rows)
        if self.ledger.held_out_root(self.task.number, self.ledger.address) != root:
            self.ledger.commit_held_out(root)

    def run(self) -> None:
        """Judges until the task ends, then takes the bond back and collects the rewards."""
        self.join()
        actions = {Phase.SCORING: self._score, Phase.REVEALING: self._reveal}
        block = 0
        while (state := self.ledger.state(self.task.number)).phase is not Phase.ENDED:
            action = actions.get(state.phase)
            if action is not None and (state.round, state.phase) not in self._acted:
                self._acted.add((state.round, state.phase))
                try:
                    action(state, self.ledger.round_state(self.task.number, state.round))
                except Refused as error:
                    emit("refused", call=error.call, error=error.name, round=state.round)
                except BallotLost:
                    emit("ballot-lost", round=state.round)
            block = self.ledger.connection.next_block(block)
        self.ledger.release_bond(self.task.number, self.ledger.address)
        self.ledger.claim(Role.VOTER)
        emit("left", role="voter", balance=str(self.ledger.balance(self.ledger.address)))

    def _score(self, state: TaskState, round_state: RoundState) -> None:
        if (round_state.seated | round_state.stood_down) >> self.index & 1:
            return
        message = self.ledger.ticket_message(self.task.number, state.round, round_state.seat_seed)
        ticket = sign_ticket(self.key, message)
        bond = self.ledger.voters(self.task.number)[self.index].bond
        if draw(ticket) >= seat_threshold(self.task.params.seats, bond, round_state.seat_weight):
            self.ledger.stand_down(self.task.number, state.round)
            emit("stood-down", round=state.round)
            return
        started = time.monotonic()
        scores = self._judged(state, round_state)
        ballot = Ballot.bound(state.round, scores, self._fingerprints)
        ballot.keep(self._ballot_path(state.round))  # a restart between commit and reveal must not cost the bond
        commitment = self.ledger.score_commitment(self.task.number, state.round, ballot.scores, ballot.salt)
        receipt = self.ledger.commit_scores(self.task.number, state.round, self.public_key, ticket, commitment)
        emit("scored", round=state.round, gas=receipt.gas_used, seconds=round(time.monotonic() - started, 3))

    def _judged(self, state: TaskState, round_state: RoundState) -> tuple[int, ...]:
        """The scores, or DOES_NOT_MATCH throughout; what cannot be read is tried again while there is time."""
        params, block, fault = self.task.params, 0, ""
        self._fingerprints = ()
        while not fault:
            try:
                return self.scores(state.round, round_state)
            except (RetreatMismatched, CulpritsMismatched, EvidenceMalformed) as error:
                fault = type(error).__name__
            except UNREADABLE as error:
                if patience_is_over(state, params.score_window, self.ledger.connection.now()):
                    # A store that fails shows nothing; and the contract itself checked what plain tasks publish.
                    if isinstance(error, OSError) or not (params.canaries or params.digests or round_state.named):
                        raise
                    fault = type(error).__name__
                else:
                    block = self.ledger.connection.next_block(block)
        emit("does-not-match", round=state.round, error=fault)
        return (DOES_NOT_MATCH,) * ballot_size(params, state.round, round_state.cohorts)

    def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
        """Improvement of candidates over the base on this voter's rows by the task's metric, in millionths.

        One for each cohort's sum as published, then, in a canary round, one for each turned. Nothing is scored in
        round 0: what is published of it is there, or reading it raises one of UNREADABLE. Where hospitals are named for
        cohorts without a sum, it is these that this voter finds.
        """
        if round_state.named:
            self._require_named(round_, round_state)
        nothing = (0,) * ballot_size(self.task.params, round_, round_state.cohorts)
        if not round_state.viable_cohorts:
            return nothing
        if round_ == STATISTICS_ROUND:
            self.record.sums.readings(round_, 0, round_state)
            return nothing
        if self.task.params.has_canaries(round_):
            self.record.require_canaries(round_)
        judged = self.judge.judged(round_, round_state)
        self._fingerprints = judged.fingerprints
        return judged.scores

    def _require_named(self, round_: int, round_state: RoundState) -> None:
        """Raises CulpritsMismatched, EvidenceMalformed, and where evidence is missing one of UNREADABLE."""
        found = find_culprits(self.ledger, self.store, self.task.number, round_, round_state)
        if round_state.named != sum(1 << index for index in found):
            raise CulpritsMismatched(round_, list(members(round_state.named)), list(found))

    def _reveal(self, state: TaskState, round_state: RoundState) -> None:
        if not round_state.seated >> self.index & 1 or round_state.revealed >> self.index & 1:
            return
        self.reveal(Ballot.kept(self._ballot_path(state.round), state.round))

    def reveal(self, ballot: Ballot) -> None:
        self.ledger.reveal_scores(self.task.number, ballot.round, ballot.scores, ballot.salt)
        emit("revealed", round=ballot.round)

    def _ballot_path(self, round_: int) -> Path:
        seed = self.ledger.round_state(self.task.number, round_).seat_seed
        return ballot_path(self.settings.home, self.ledger.place(self.task.number), round_, seed)
