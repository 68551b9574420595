"""Registers an account as a voter: its stake, and the BLS key that draws its seats."""

from __future__ import annotations

from consilium_chain.keystore import voter_key
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_zk.tickets import public_key
from eth_utils.crypto import keccak


def has_key(ledger: Ledger) -> bool:
    """True if the ledger's account is registered with the BLS key that follows from its own key."""
    return ledger.staking.voter_key_hash(ledger.address) == keccak(public_key(voter_key(ledger.connection.signer)))


def register(ledger: Ledger, stake: int, commission_bps: int) -> None:
    """Registers the ledger's account with its key, and with at least `stake`, free and locked together.

    A step that was done before costs nothing.
    """
    active = ledger.staking.stake_of(ledger.address, Role.VOTER).active
    ledger.staking.register(Role.VOTER, max(stake - active, 0), commission_bps)
    if not has_key(ledger):
        ledger.voter.register_key(voter_key(ledger.connection.signer))
