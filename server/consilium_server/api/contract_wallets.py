"""Signatures of contract wallets (EIP-1271): each contract judges its own, by a call of the server's chain node.

Strangers choose the contract, so few calls run at once.
"""

from __future__ import annotations

from functools import cached_property
from threading import BoundedSemaphore

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.settings import ChainUrls
from consilium_chain.wallet_signatures import contract_accepts
from eth_account.messages import encode_defunct

from consilium_server.api.siwe import SignInMessage
from consilium_server.errors import RequestRefused

TIMEOUT = 3.0  # seconds
MOST_AT_ONCE = 4


class ContractWallets:
    """Asks contracts about signatures. Raises RequestRefused (SignInRefused) if it cannot ask."""

    def __init__(self, chain_url: ChainUrls) -> None:
        self._url = chain_url
        self._turns = BoundedSemaphore(MOST_AT_ONCE)

    @cached_property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self._url, TIMEOUT, is_patient=False)

    def accepts(self, message: SignInMessage, signature: bytes) -> bool:
        """True if the message's account is a contract that takes the signature as its own."""
        if not self._turns.acquire(timeout=TIMEOUT):
            raise _unasked(message, "others are asking now")
        try:
            return contract_accepts(self._endpoint, message.address, encode_defunct(text=message.raw), signature)
        except ChainUnreachable as error:
            raise _unasked(message, "the chain node does not answer") from error
        finally:
            self._turns.release()


def _unasked(message: SignInMessage, why: str) -> RequestRefused:
    text = f"{message.address} did not sign it with a key, and {why}, so a contract wallet cannot be asked: try again"
    return RequestRefused("SignInRefused", what="signature", why=text)
