"""Signatures of contract wallets (EIP-1271): each contract judges its own, by a call of the server's chain node.

A stranger's contract does as it likes in this call. Its gas bounds its time and the length of its answer, and few calls
run at once.
"""

from __future__ import annotations

from functools import cached_property
from threading import BoundedSemaphore

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.endpoint import Endpoint
from eth_abi.abi import encode
from eth_account.messages import defunct_hash_message

from consilium_server.api.siwe import SignInMessage
from consilium_server.errors import RequestRefused

MAGIC = bytes.fromhex("1626ba7e")  # the selector of isValidSignature(bytes32,bytes), and its answer for yes
YES = "0x" + MAGIC.ljust(32, b"\0").hex()
MOST_GAS = 2_000_000  # of a call. A multisignature, or a passkey in Solidity, takes less; a megabyte more
TIMEOUT = 3.0  # seconds
MOST_AT_ONCE = 4


class ContractWallets:
    """Asks contracts about signatures. Raises RequestRefused (SignInRefused) if it cannot ask."""

    def __init__(self, chain_url: str) -> None:
        self._url = chain_url
        self._turns = BoundedSemaphore(MOST_AT_ONCE)

    @cached_property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self._url, TIMEOUT, is_patient=False)

    def accepts(self, message: SignInMessage, signature: bytes) -> bool:
        """True if the message's account is a contract that takes the signature as its own."""
        call = MAGIC + encode(["bytes32", "bytes"], [defunct_hash_message(text=message.raw), signature])
        asked = {"to": message.address, "data": "0x" + call.hex(), "gas": hex(MOST_GAS)}
        if not self._turns.acquire(timeout=TIMEOUT):
            raise _unasked(message, "others are asking now")
        try:
            # An account without code answers with nothing, and a reverting contract with an error.
            return self._endpoint.answer("eth_call", asked, "latest").get("result") == YES
        except ChainUnreachable as error:
            raise _unasked(message, "the chain node does not answer") from error
        finally:
            self._turns.release()


def _unasked(message: SignInMessage, why: str) -> RequestRefused:
    text = f"{message.address} did not sign it with a key, and {why}, so a contract wallet cannot be asked: try again"
    return RequestRefused("SignInRefused", what="signature", why=text)
