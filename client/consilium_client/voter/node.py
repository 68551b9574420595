"""A voter's node: draws its ticket, evaluates every cohort's candidate on its own held-out data, commits, reveals.

A dishonest voter overrides `scores` and `reveal`. If the published sums are missing or wrong, a voter says so, and
gives no scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import ChainUnreachable, RecordIncomplete, Refused, TransactionRejected, name_of
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    STATISTICS_ROUND,
    Role,
    RoundState,
    TaskState,
    ballot_size,
    members,
)
from consilium_chain.rounds.disputes import find_cheaters
from consilium_chain.rounds.machine import AsVoter, Step, View, next_steps
from consilium_chain.settlement.leaving import collect
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_core.logs import emit
from consilium_core.tracing import span
from consilium_core.units import tokens
from consilium_zk.errors import EvidenceMalformed
from consilium_zk.evaluation import held_out_root
from consilium_zk.tickets import draw, public_key, seat_threshold, sign_ticket

from consilium_client.config import VoterSettings
from consilium_client.data.door import admitted
from consilium_client.data.examples import Examples
from consilium_client.data.kinds import read_held_out
from consilium_client.errors import BallotError, ConsentError, MismatchError
from consilium_client.home import is_paused
from consilium_client.membership import ROUND_ERRORS, Membership, log_failed
from consilium_client.models import model_of
from consilium_client.models.worth import require_metric_installed
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask, load_task
from consilium_client.voter.ballots import Ballot, Ballots, held_out_secret
from consilium_client.voter.evaluating import Judge

# A lagging store or chain node may be the reason for these: the node tries again during the first half of the phase.
UNREADABLE = (ArtifactMissing, ArtifactCorrupt, RecordIncomplete, OSError)


def is_half_over(state: TaskState, score_window: int, now: int) -> bool:
    """True after half of Scoring's window: then unreadable files count as not published.

    The other half is for the transaction. `now`: the chain's clock in seconds.
    """
    return state.deadline - now <= score_window // 2


class VoterNode:
    """One voter in one task, over the connection that it shares with the same voter's other tasks.

    It reads task, rows and record only when it needs them. A reveal needs none of them.
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
        self.membership = Membership(ledger, self.number, Role.VOTER)
        self.ballots = Ballots(settings.home, ledger, self.number)
        self.actions: dict[Step, Callable[[TaskState, RoundState], object]] = {
            Step.JOIN: lambda *_: self.membership.join_again(self.join),
            Step.STAND_DOWN: self._stand_down,
            Step.SCORE: self._score,
            Step.REVEAL: self._reveal,
        }
        self._fingerprints: tuple[bytes, ...] = ()  # of the models in the latest scores
        self._given_up: set[tuple[int, Step]] = set()  # by round
        self.failed: set[tuple[int, Step, str]] = set()  # and the logged fault; they are tried again

    @cached_property
    def task(self) -> JoinedTask:
        return load_task(self.ledger, self.store, self.number)

    @cached_property
    def examples(self) -> Examples:
        """Raises DataError; before it has joined, also RemarksUnanswered."""
        settings, spec = self.settings, self.task.spec
        if self.membership.find() is not None:
            return read_held_out(settings.data, spec, settings.mapping)
        found = admitted(settings.data, spec, settings.mapping, settings.data_accepted, held_out=True)
        found.tell()
        return found.examples

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.task, self.record, self.examples)

    @cached_property
    def record(self) -> PublicRecord:
        return PublicRecord(self.ledger, self.store, self.task)

    def join(self) -> None:
        """Joins with free stake, unless this account is in the task already.

        Raises StakeTooSmall, and the errors of reading task and data, before it sends anything.
        """
        is_new = self.membership.find() is None
        if is_new:
            model_of(self.task.spec).require_installed()
            require_metric_installed(self.task.spec)
            rows, bond = self.examples.rows, self.task.params.voter_bond
            free = self.ledger.staking.stake_of(self.ledger.address, Role.VOTER).free
            if free < bond:
                raise ConsentError("StakeTooSmall", task=self.number, bond=tokens(bond), free=tokens(free))
            self.record.base_digest(STATISTICS_ROUND)  # may start from another task
            self._commit_held_out()
            self.ledger.voter.join(self.number)
        index = self.membership.require()
        if is_new:
            emit("joined", role="voter", index=index, rows=rows)
        else:
            emit("in-task", index=index)

    def _commit_held_out(self) -> None:
        """Commits on chain to its held-out rows, unless it did before: it cannot choose other rows afterwards."""
        secret = held_out_secret(self.settings.home, self.ledger.folder_name(self.number))
        root = held_out_root(secret, self.judge.rows)
        if self.ledger.votes.held_out_root(self.number, self.ledger.address) != root:
            self.ledger.voter.commit_held_out(root)

    @property
    def index(self) -> int:
        """This voter's in the task, once it has joined."""
        return self.membership.index

    def poll(self) -> tuple[Step, ...]:
        """Takes the steps that are due, which may take long, and returns them. The caller retries on ChainUnreachable.

        A refused or unpaid step is tried again with each block, because a lagging chain node refuses, too. So is a step
        that failed on a full or missing disk: a voter that has committed and does not reveal is slashed. The chain
        shows which steps are done, and not this process, because a reorganisation undoes them.
        """
        seen = self.ledger.snapshots.of(self.number, Role.VOTER)
        self.membership.log_payouts(seen.state)
        view = View(seen.state, seen.round)
        is_member = self.membership.stands(seen.state, seen.roster)
        party = AsVoter(self.index, is_member, is_paused(self.settings.home))
        due = next_steps(view, party)
        for step in due:
            if step in self.actions and (seen.state.round, step) not in self._given_up:
                self._take(step, view)
        return due

    def _take(self, step: Step, view: View) -> None:
        round_ = view.state.round
        try:
            with span(step.name.lower(), task=self.number, round=round_):
                self.actions[step](view.state, view.round)
        except ChainUnreachable:
            raise
        except (Refused, TransactionRejected) as error:
            if self._is_first(round_, step, "refused"):
                log_failed(self.ledger, error, "not-voted", round=round_)
        except BallotError:
            if self._is_first(round_, step, "lost"):
                emit("ballot-lost", round=round_)
        except OSError as error:
            if self._is_first(round_, step, "disk"):
                emit("round-failed", round=round_, error=name_of(error))
        except ROUND_ERRORS as error:
            now = self.ledger.tasks.state(self.number), self.ledger.tasks.round_state(self.number, round_)
            if now == (view.state, view.round):  # else the error may come from undone blocks
                emit("round-failed", round=round_, error=name_of(error))
                self._given_up.add((round_, step))

    def _is_first(self, round_: int, step: Step, fault: str) -> bool:
        is_first = (round_, step, fault) not in self.failed
        self.failed.add((round_, step, fault))
        return is_first

    def leave(self) -> bool:
        """Takes the bond and the rewards. False if the block that ended the task was undone: a ballot may have to be
        revealed again.
        """
        try:
            if not collect(self.ledger, self.number, Role.VOTER):
                return False
        except (Refused, TransactionRejected) as error:
            log_failed(self.ledger, error, "not-claimed")
        self.store.forget()
        self.ledger.snapshots.forget(self.number)
        emit("left", role="voter", balance=str(self.ledger.token.balance(self.ledger.address)))
        return True

    def _stand_down(self, state: TaskState, round_state: RoundState) -> None:
        self.ledger.voter.stand_down(self.number, state.round)
        emit("sits-out", round=state.round, why="paused")

    def _score(self, state: TaskState, round_state: RoundState) -> None:
        message = self.ledger.messages.ticket(self.task.number, state.round, round_state.seat_seed)
        ticket = sign_ticket(self.key, message)
        bond = self.ledger.tasks.voters(self.task.number)[self.index].bond
        if draw(ticket) >= seat_threshold(self.task.params.seats, bond, round_state.seat_weight):
            self.ledger.voter.stand_down(self.task.number, state.round)
            emit("stood-down", round=state.round)
            return
        started = time.monotonic()
        ballot = self.ballots.of(state.round, lambda: (self._judged(state, round_state), self._fingerprints))
        commitment = self.ledger.tasks.score_commitment(self.task.number, state.round, ballot.scores, ballot.salt)
        receipt = self.ledger.voter.commit_scores(self.task.number, state.round, self.public_key, ticket, commitment)
        emit("scored", round=state.round, gas=receipt.gas_used, seconds=round(time.monotonic() - started, 3))

    def _judged(self, state: TaskState, round_state: RoundState) -> tuple[int, ...]:
        """The scores, or only DOES_NOT_MATCH. Unreadable files are tried again while there is time."""
        params, block, fault = self.task.params, 0, ""
        self._fingerprints = ()
        while not fault:
            try:
                with span("evaluate", task=self.number, round=state.round):
                    return self.scores(state.round, round_state)
            except (MismatchError, EvidenceMalformed) as error:
                fault = name_of(error)
            except UNREADABLE as error:
                if is_half_over(state, params.score_window, self.ledger.connection.blocks.now()):
                    # A failing store proves nothing, and the contract itself checks the publications of plain tasks.
                    if isinstance(error, OSError) or not (params.decoys or params.digests or round_state.named):
                        raise
                    fault = name_of(error)
                else:
                    block = self.ledger.connection.blocks.wait_after(block)
        emit("does-not-match", round=state.round, error=fault)
        return (DOES_NOT_MATCH,) * ballot_size(params, state.round, round_state.cohorts)

    def scores(self, round_: int, round_state: RoundState) -> tuple[int, ...]:
        """Improvement of candidates over the base on this voter's rows by the task's metric, in millionths.

        One for each cohort's published sum; in a decoy round, then one for each sign-flipped sum. Round 0 gets no
        scores, but reading its published sums may raise one of UNREADABLE. Hospitals that are named for cohorts without
        a sum must be the cheaters that this voter finds.
        """
        if round_state.named:
            self._require_named(round_, round_state)
        nothing = (0,) * ballot_size(self.task.params, round_, round_state.cohorts)
        if not round_state.viable_cohorts:
            return nothing
        if round_ == STATISTICS_ROUND:
            self.record.sums.readings(round_, 0, round_state)
            return nothing
        self.record.refresh(round_)
        if self.task.params.has_decoys(round_):
            self.record.require_decoys(round_)
        judged = self.judge.judged(round_, round_state)
        self._fingerprints = judged.fingerprints
        return judged.scores

    def _require_named(self, round_: int, round_state: RoundState) -> None:
        """Raises CheatersMismatched, EvidenceMalformed, and where evidence is missing one of UNREADABLE."""
        found = find_cheaters(self.ledger, self.store, self.task.number, round_, round_state)
        if round_state.named != sum(1 << index for index in found):
            raise MismatchError(
                "CheatersMismatched", round=round_, named=list(members(round_state.named)), found=list(found)
            )

    def _reveal(self, state: TaskState, round_state: RoundState) -> None:
        self.reveal(self.ballots.kept(state.round))

    def reveal(self, ballot: Ballot) -> None:
        self.ledger.voter.reveal_scores(self.number, ballot.round, ballot.scores, ballot.salt)
        emit("revealed", round=ballot.round)
