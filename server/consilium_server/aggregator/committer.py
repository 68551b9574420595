"""Commits for hospitals that signed: decides when to send which updates, and leaves out those that are refused."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import RoundState, members
from consilium_chain.rounds.signed_updates import SignedUpdate
from consilium_core.logs import emit

# Seconds that a signed update waits for others: long enough for hospitals of one kind to end their training, short
# against any window to commit, after half of which a hospital pays for a transaction of its own.
GATHER = 1.0


def due(waiting: int, missing: int, waited: float) -> bool:
    """True if it is time to commit: all who are missing on chain are here, or the first has waited long enough.

    `waiting` is a bit map within `missing`; `waited` is in seconds.
    """
    return waiting != 0 and (waiting == missing or waited >= GATHER)


class Committer:
    """Brings one round's signed updates onto the chain. `addresses`: hospitals' accounts by index."""

    def __init__(self, ledger: Ledger, task: int, round_: int, addresses: Sequence[str]) -> None:
        self._ledger, self._task, self._round, self._addresses = ledger, task, round_, addresses
        self._wrong = 0
        self._since: float | None = None  # when the first of those that wait came
        self._over = False

    def commit_if_due(self, updates: Mapping[int, SignedUpdate], round_state: RoundState, silent: int) -> None:
        """Commits the updates if it is time to. It waits for none of the `silent` (a bit map) who have not signed.

        A commitment in a block that a reorganisation took back is sent again.
        """
        signed = sum(1 << index for index in updates)
        missing = round_state.members & ~round_state.committed & ~self._wrong & (signed | ~silent)
        waiting = missing & signed
        now = time.monotonic()
        self._since = (self._since or now) if waiting else None
        if not self._over and due(waiting, missing, now - (self._since or now)):
            self._commit(updates, waiting)
            self._since = None

    def _commit(self, updates: Mapping[int, SignedUpdate], waiting: int) -> None:
        """Tries the batch, which costs nothing, and leaves out the hospital that a refusal names."""
        while waiting:
            batch = [updates[index] for index in members(waiting)]
            try:
                receipts = self._ledger.aggregator.commit_updates(self._task, self._round, batch)
            except Refused as error:
                if error.values.get("hospital") not in self._addresses:
                    # Somebody else completed the round, which a reorganisation may undo; or time ran out.
                    if error.name != "WrongPhase":
                        self._over = True
                        emit("refused", call=error.call, error=error.name, round=self._round)
                    return
                wrong = self._addresses.index(error.values["hospital"])
                emit("update-refused", round=self._round, hospital=wrong, error=error.name)
                self._wrong |= 1 << wrong
                committed = self._ledger.tasks.round_state(
                    self._task, self._round
                ).committed  # of a batch before this one
                waiting &= ~self._wrong & ~committed
            else:
                emit(
                    "relayed", round=self._round, hospitals=waiting.bit_count(), transactions=len(receipts),
                    gas=sum(receipt.gas_used for receipt in receipts),
                )  # fmt: skip
                return
