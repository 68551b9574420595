"""How an account takes its bond and its rewards out of an ended task."""

from __future__ import annotations

from consilium_core.logs import emit

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role


def collect(ledger: Ledger, task: int, role: Role) -> bool:
    """Takes the account's bond back, and its vested rewards. False if the block that ended the task was undone: then
    the task goes on.

    Raises Refused, TransactionRejected: nothing is lost, since both can be done at any later time.
    """
    try:
        ledger.staking.release_bond(task, ledger.address)
        ledger.staking.claim(role)
    except Refused as error:
        if error.name != "WrongPhase":
            raise
        emit("end-undone", role=role.name.lower())
        return False
    return True
