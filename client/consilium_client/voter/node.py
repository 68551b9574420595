"""A voter's node: draws its ticket, evaluates every cohort's candidate on its own held-out data, commits, reveals.

`scores` and `reveal` are what a dishonest voter would replace. Where what is published cannot be had, or is not what it
should be, a voter says so in place of its scores.
"""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import (
    ArtifactCorrupt,
    ArtifactMissing,
    ChainUnreachable,
    RecordIncomplete,
    Refused,
    TransactionRejected,
    name_of,
)
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    STATISTICS_ROUND,
    Phase,
    Role,
    RoundState,
    TaskState,
    ballot_size,
    members,
)
from consilium_chain.rounds.disputes import find_culprits
from consilium_core.logs import emit
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.evaluation import held_out_root
from consilium_zk.tickets import draw, public_key, seat_threshold, sign_ticket

from consilium_client.config import VoterSettings
from consilium_client.data.examples import Examples, read_examples
from consilium_client.errors import BallotLost, CulpritsMismatched, NotInTask, RetreatMismatched, StakeTooSmall
from consilium_client.home import is_paused
from consilium_client.models import model_of
from consilium_client.polling import ROUND_ERRORS, SettledRounds
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask, load_task
from consilium_client.voter.ballots import Ballot, ballot_path, held_out_secret
from consilium_client.voter.evaluating import Judge

PLACE_LOOKS = 5  # blocks
# What may be a store or chain node that lags behind: tried again until the voter's patience is over.
UNREADABLE = (ArtifactMissing, ArtifactCorrupt, RecordIncomplete, OSError)


def patience_is_over(state: TaskState, score_window: int, now: int) -> bool:
    """Whether to take what cannot be read in Scoring for not published: half of the phase's window has passed.

    The other half is for the transaction. `now` is the chain's clock in seconds.
    """
    return state.deadline - now <= score_window // 2


class VoterNode:
    """One voter in one task, over the connection that it shares with the same voter's other tasks.

    What it judges by is read when it is first needed: to reveal takes none of it.
    """

    def __init__(self, settings: VoterSettings, ledger: Ledger) -> None:
        self.settings = settings
        self.number = settings.task
        self.ledger = ledger
        if self.ledger.connection.account is None:
            raise ValueError("a voter needs an account")
        self.key = voter_key(self.ledger.connection.account)
        self.public_key = public_key(self.key)
        passing = settings.home / CACHE / ledger.folder_name(settings.task)
        self.store = ArtifactStore(settings.artifacts, passing=passing)
        self._fingerprints: tuple[bytes, ...] = ()  # of the models that the latest scores are of
        self._settled = SettledRounds(ledger, settings.task)
        self._given_up: set[tuple[int, Phase]] = set()
        self._failed: set[tuple[int, Phase, str]] = set()  # how: told, and tried again
        self._unkept: tuple[Path, Ballot] | None = None  # what could not be written where it belongs

    @cached_property
    def task(self) -> JoinedTask:
        return load_task(self.ledger, self.store, self.number)

    @cached_property
    def examples(self) -> Examples:
        settings = self.settings
        return read_examples(settings.data, self.task.spec.data, settings.mapping, allow_one_class=False)

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.task, self.record, self.examples)

    @cached_property
    def record(self) -> PublicRecord:
        return PublicRecord(self.ledger, self.store, self.task)

    def join(self) -> None:
        """Joins with free stake, unless this account is in the task already.

        Raises StakeTooSmall, and what reading the task and the table raises, before anything is sent.
        """
        is_new = self.ledger.address not in self._voters()
        if is_new:
            model_of(self.task.spec).require_installed()
            rows, bond = self.examples.rows, self.task.params.voter_bond
            free = self.ledger.staking.stake_of(self.ledger.address, Role.VOTER).free
            if free < bond:
                raise StakeTooSmall(self.number, bond, free)
            self._commit_held_out()
            self.ledger.voter.join(self.number)
        self.index = self._place_joined()
        if is_new:
            emit("joined", role="voter", index=self.index, rows=rows)
        else:
            emit("in-task", index=self.index)

    def _commit_held_out(self) -> None:
        """Says on chain by which rows it will judge, unless it said so before: nobody can choose them afterwards."""
        secret = held_out_secret(self.settings.home, self.ledger.folder_name(self.number))
        root = held_out_root(secret, self.judge.rows)
        if self.ledger.record.held_out_root(self.number, self.ledger.address) != root:
            self.ledger.voter.commit_held_out(root)

    def _voters(self) -> list[str]:
        return [voter.node for voter in self.ledger.tasks.voters(self.number)]

    def _place_joined(self) -> int:
        """This account's among the task's voters, once it has joined. Raises NotInTask."""
        block = 0
        for _ in range(PLACE_LOOKS):  # a chain node may lag behind the one that told of the receipt
            if self.ledger.address in (voters := self._voters()):
                return voters.index(self.ledger.address)
            block = self.ledger.connection.blocks.wait_after(block)
        raise NotInTask(self.number, self.ledger.address)

    def _keeps_place(self, state: TaskState) -> bool:
        """Whether it is in the task. Joins again where the block that had it is gone, and stands where others' joining
        has come to put it: a reorganisation may bring transactions back in another order.
        """
        if state.round != STATISTICS_ROUND or state.phase is Phase.ENDED:
            return True
        voters = self._voters()
        if self.ledger.address in voters:
            self.index = voters.index(self.ledger.address)
            return True
        if state.phase is Phase.JOINING:
            emit("joining-undone", role="voter")
            self.join()
        return False

    def turn(self) -> Phase:
        """Does what the chain's state asks for, which may take long. What raises ChainUnreachable is done anew.

        So is, with each block, what is refused or not paid for, and what a disk does not take or give, which may have
        room again, or be mounted again: who has committed and does not reveal is slashed. And a chain node that lags
        behind the one that told of the phase refuses, too. What is done the chain says, not what this process
        remembers: a reorganisation undoes it.
        """
        state = self.ledger.tasks.state(self.number)
        self._settled.tell(state)
        moment = state.round, state.phase
        score = self._sit_out if is_paused(self.settings.home) else self._score
        action = {Phase.SCORING: score, Phase.REVEALING: self._reveal}.get(state.phase)
        if not self._keeps_place(state) or action is None or moment in self._given_up or not self._may_act(state):
            return state.phase
        round_state = None
        try:
            round_state = self.ledger.tasks.round_state(self.number, state.round)
            action(state, round_state)
        except ChainUnreachable:
            raise
        except (Refused, TransactionRejected) as error:
            if self._is_first(moment, "refused"):
                self._tell_failed(error, "not-voted", round=state.round)
        except BallotLost:
            if self._is_first(moment, "lost"):
                emit("ballot-lost", round=state.round)
        except OSError as error:
            if self._is_first(moment, "disk"):
                emit("round-failed", round=state.round, error=name_of(error))
        except ROUND_ERRORS as error:
            if not self._has_moved(state, round_state):
                emit("round-failed", round=state.round, error=name_of(error))
                self._given_up.add(moment)
        return state.phase

    def _has_moved(self, state: TaskState, round_state: RoundState | None) -> bool:
        """Whether the chain says something else than before: then what failed may be of blocks that are gone."""
        now = self.ledger.tasks.state(self.number)
        return now != state or self.ledger.tasks.round_state(self.number, state.round) != round_state

    def _is_first(self, moment: tuple[int, Phase], how: str) -> bool:
        is_first = (*moment, how) not in self._failed
        self._failed.add((*moment, how))
        return is_first

    def leave(self) -> None:
        """Takes an ended task's bond back, and collects what has vested of the rewards."""
        try:
            self.ledger.staking.release_bond(self.number, self.ledger.address)
            self.ledger.staking.claim(Role.VOTER)
        except (Refused, TransactionRejected) as error:  # nothing is lost: both can be done at any later time
            self._tell_failed(error, "not-claimed")
        self.store.forget()
        emit("left", role="voter", balance=str(self.ledger.token.balance(self.ledger.address)))

    def _may_act(self, state: TaskState) -> bool:
        """Whose bond is slashed to nothing takes no seat any more; what it committed to, it still reveals."""
        return state.phase is not Phase.SCORING or bool(state.active_voters >> self.index & 1)

    def _tell_failed(self, error: Refused | TransactionRejected, unpaid: str, **fields: object) -> None:
        """The chain node's words stay out of the journal; `unpaid`: the event, and what the account has for gas."""
        if isinstance(error, Refused):
            emit("refused", call=error.call, error=error.name, **fields)
        else:
            wei = str(self.ledger.connection.ether())
            emit(unpaid, call=error.call, error=type(error).__name__, wei=wei, **fields)

    def _sit_out(self, state: TaskState, round_state: RoundState) -> None:
        """Others need not wait then for a ballot that does not come."""
        if not (round_state.seated | round_state.stood_down) >> self.index & 1:
            self.ledger.voter.stand_down(self.number, state.round)
            emit("sits-out", round=state.round, why="paused")

    def _score(self, state: TaskState, round_state: RoundState) -> None:
        if (round_state.seated | round_state.stood_down) >> self.index & 1:
            return
        message = self.ledger.messages.ticket(self.task.number, state.round, round_state.seat_seed)
        ticket = sign_ticket(self.key, message)
        bond = self.ledger.tasks.voters(self.task.number)[self.index].bond
        if draw(ticket) >= seat_threshold(self.task.params.seats, bond, round_state.seat_weight):
            self.ledger.voter.stand_down(self.task.number, state.round)
            emit("stood-down", round=state.round)
            return
        started = time.monotonic()
        ballot = self._ballot(state, round_state)
        commitment = self.ledger.tasks.score_commitment(self.task.number, state.round, ballot.scores, ballot.salt)
        receipt = self.ledger.voter.commit_scores(self.task.number, state.round, self.public_key, ticket, commitment)
        emit("scored", round=state.round, gas=receipt.gas_used, seconds=round(time.monotonic() - started, 3))

    def _ballot(self, state: TaskState, round_state: RoundState) -> Ballot:
        """On disk before its commitment leaves, and never a second one: of two, an earlier process may have committed
        to the first, in a transaction that is on no block yet.
        """
        path = self._ballot_path(state.round)
        try:
            return Ballot.kept(path, state.round)
        except BallotLost:
            if self._unkept is None or self._unkept[0] != path:
                scores = self._judged(state, round_state)
                self._unkept = path, Ballot.bound(state.round, scores, self._fingerprints)
            ballot = self._unkept[1]
            ballot.keep(path)
            self._unkept = None
            return ballot

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
                if patience_is_over(state, params.score_window, self.ledger.connection.blocks.now()):
                    # A store that fails shows nothing; and the contract itself checked what plain tasks publish.
                    if isinstance(error, OSError) or not (params.canaries or params.digests or round_state.named):
                        raise
                    fault = type(error).__name__
                else:
                    block = self.ledger.connection.blocks.wait_after(block)
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
        self.ledger.voter.reveal_scores(self.number, ballot.round, ballot.scores, ballot.salt)
        emit("revealed", round=ballot.round)

    def _ballot_path(self, round_: int) -> Path:
        seed = self.ledger.tasks.round_state(self.number, round_).seat_seed
        return ballot_path(self.settings.home, self.ledger.folder_name(self.number), round_, seed)
