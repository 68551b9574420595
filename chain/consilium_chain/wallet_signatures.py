"""Messages that wallets sign (EIP-191, EIP-712): by a key, or by a contract's own rule (EIP-1271)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import SignableMessage
from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

if TYPE_CHECKING:
    from consilium_chain.rpc.endpoint import Endpoint

KEY_SIGNATURE = 65  # bytes
MOST_SIGNATURE = 2_048  # bytes of a contract's: some thirty owners of a multisignature
DELEGATED = b"\xef\x01\x00"  # begins the code of an account with a key (EIP-7702)
MAGIC = bytes.fromhex("1626ba7e")  # the selector of isValidSignature(bytes32,bytes), and its answer for yes
YES = "0x" + MAGIC.ljust(32, b"\0").hex()
MOST_GAS = 2_000_000  # of a call. A multisignature, or a passkey in Solidity, takes less; a megabyte more


def is_contract(code: bytes) -> bool:
    """True for the code of an account without a key, whose signatures only its contract can judge."""
    return bool(code) and not code.startswith(DELEGATED)


def signer_of(message: SignableMessage, signature: bytes) -> str | None:
    """The checksummed account whose key signed the message; None if the signature is invalid."""
    if len(signature) != KEY_SIGNATURE:
        return None
    try:
        return str(Account.recover_message(message, signature=signature))
    except (BadSignature, ValidationError, ValueError, TypeError):
        return None


def contract_accepts(endpoint: Endpoint, account: str, message: SignableMessage, signature: bytes) -> bool:
    """True if `account` is a contract that takes the signature as its own. Raises ChainUnreachable.

    A stranger's contract does as it likes in this call. Its gas bounds its time and the length of its answer.
    """
    digest = keccak(b"\x19" + message.version + message.header + message.body)
    call = MAGIC + encode(["bytes32", "bytes"], [digest, signature])
    asked = {"to": account, "data": "0x" + call.hex(), "gas": hex(MOST_GAS)}
    # An account without code answers with nothing, and a reverting contract with an error.
    return endpoint.answer("eth_call", asked, "latest").get("result") == YES
