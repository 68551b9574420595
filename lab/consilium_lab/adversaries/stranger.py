"""The demo's strangers: accounts with stake and tokens that join the task, and try every call with bad values.

Each tries every call of `worst_calls`. A call that the contract accepts has its effect. One joins as a hospital, the
other as a voter.

Run as a program: `python -m consilium_lab.adversaries.stranger ROLE --home FOLDER --number N`.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from consilium_chain.errors import Refused, TransactionRejected, name_of
from consilium_chain.ledger.structs import Phase, Role, TaskState
from consilium_chain.rounds.machine import PHASES, Step
from consilium_chain.settings import read_settings
from consilium_core.logs import emit
from consilium_zk.tickets import public_key

from consilium_lab.adversaries.worst_calls import (
    ENCRYPTION_KEYS,
    LONG,
    MOST,
    NO_SALT,
    StrangerSettings,
    Try,
    WorstCalls,
)
from consilium_lab.demo.options import Stranger


class Worst(WorstCalls):
    """An account that tries bad calls in one task. `number` counts strangers from one."""

    def __init__(self, settings: StrangerSettings, role: Stranger, number: int) -> None:
        super().__init__(settings)
        self.role, self.number = role, number

    def run(self) -> None:
        """Takes part until the task ends."""
        self._before_joining()
        self._join()
        seen, block = None, 0
        while (state := self.ledger.tasks.state(self.task)).phase is not Phase.ENDED:
            self._round = state.round
            if (moment := (state.round, state.phase)) != seen:
                seen = moment
                self._disturb(state)
            block = self.ledger.connection.blocks.wait_after(block)
        self._leave()

    def _try(self, *tries: Try) -> None:
        """Sends calls, and logs the error of each; None if the contract accepted it."""
        for field, call in tries:
            try:
                self.ledger.connection.transactions.send(call)
                error = None
            except (Refused, TransactionRejected) as refusal:
                error = name_of(refusal)
            emit("tried", round=self._round, call=call.fn_name, field=field, error=error)

    def _before_joining(self) -> None:
        block = 0
        while not self.ledger.tasks.hospitals(self.task):  # some tries need another hospital's values
            block = self.ledger.connection.blocks.wait_after(block)
        self._try(("a missing stake", self._join_call()), ("no voter key", self._tasks.joinAsVoter(self.task)))
        self._try(*self._registrations())
        self.ledger.staking.stake(Role.HOSPITAL, self.params.hospital_bond)
        self.ledger.staking.stake(Role.VOTER, self.params.voter_bond)
        register = self._staking.functions.register
        self._try(("a role for the second time", register(Role.HOSPITAL, 0, 0)))
        self._try(*self._voter_keys(), *self._hospital_joins(), *self._proposals())
        self._try(("no such task", self._tasks.joinAsVoter(MOST)), ("no task", self._tasks.joinAsVoter(0)))
        self._try(("another's duty", self._tasks.joinAsAggregator(self.task)))

    def _join(self) -> None:
        """Joins in its role with the worst values that the contract accepts; then tries both roles once more."""
        as_voter = self._tasks.joinAsVoter(self.task)
        names = list(ENCRYPTION_KEYS)
        name = names[(self.number - 1) // 2 % len(names)]
        as_hospital = self._join_call(rows=MOST, sealing=ENCRYPTION_KEYS[name])
        if self.role is Stranger.HOSPITAL:
            self._try((f"the most rows, and {name} as its encryption key", as_hospital))
        else:
            self._try(("a voter that will not evaluate anything", as_voter))
        self._try(("a second time, as a hospital", as_hospital), ("a second time, as a voter", as_voter))

    def _disturb(self, state: TaskState) -> None:
        """Tries the calls of this phase, and logs `silent` when it does nothing more in this round."""
        if Step.RESUME in PHASES[state.phase].hospital:
            self._try(("although it was not absent", self._tasks.resume(self.task)))
        if state.phase is Phase.COMMITTING:
            self._try(*self._commits(state.round))
            self._commit(state.round)
        elif state.phase is Phase.SCORING:
            self._try(*self._ballots(state.round))
            self._take_seat(state.round)
        elif state.phase is Phase.REVEALING:
            self._try(*self._reveals(state.round))
            self._reveal(state.round)
        else:
            self._try(*self._out_of_turn(state.round))

    def _commit(self, round_: int) -> None:
        """In every second round a valid commitment with garbage for its cohort, but no upload; in others nothing."""
        if round_ % 2:
            call = self._commit_call(round_, share_bundle=b"\xff" * LONG)
            self._try(("the longest share bundle, of garbage", call), ("the same for the second time", call))
        if self.role is Stranger.HOSPITAL:
            emit("silent", round=round_)

    def _take_seat(self, round_: int) -> None:
        """In turn: no seat, a seat with a ballot of extremes, and a seat without a ballot."""
        turn = round_ % 3
        if turn != 1:
            extremes = self.ledger.tasks.score_commitment(self.task, round_, self._extreme(round_), NO_SALT)
            commitment, field = (extremes, "a ballot of extremes") if turn == 2 else (b"\xff" * 32, "no ballot at all")
            call = self._tasks.commitScores(self.task, round_, public_key(self._key), self._ticket(round_), commitment)
            self._try((field, call), ("the same for the second time", call))
            self._try(("after it was seated", self._tasks.standDown(self.task, round_)))
        elif self.role is Stranger.VOTER:
            emit("silent", round=round_)

    def _reveal(self, round_: int) -> None:
        call = self._tasks.revealScores(self.task, round_, self._extreme(round_), NO_SALT)
        self._try(("the least and the largest score", call), ("the same for the second time", call))
        if self.role is Stranger.VOTER:
            emit("silent", round=round_)

    def _leave(self) -> None:
        """All accounts may release all bonds."""
        release = self._tasks.releaseBond
        others = [hospital.node for hospital in self.ledger.tasks.hospitals(self.task)]
        others += [voter.node for voter in self.ledger.tasks.voters(self.task)]
        self._try(("the contract's own bond", release(self.task, self.ledger.deployment.tasks)))
        self._try(*(("another's", release(self.task, other)) for other in others if other != self.ledger.address))
        self._try(("its own", release(self.task, self.ledger.address)))
        self._try(("its own for the second time", release(self.task, self.ledger.address)))
        emit("left", role=self.role)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", type=Stranger, choices=list(Stranger))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--number", type=int, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Worst(read_settings(given.home / "node.toml", StrangerSettings), given.role, given.number).run()


if __name__ == "__main__":
    main()
