"""The statement that a hospital signs with its masked upload (`consilium_zk.disputes.Statement`).

EIP-712, as the update itself: UploadStatement(uint256 taskId,uint256 round,bytes statement). No contract reads it:
it is evidence in a dispute.
"""

from __future__ import annotations

from dataclasses import dataclass

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature

from consilium_chain.errors import StatementMalformed
from consilium_chain.rounds.signed_updates import DOMAIN
from consilium_chain.typed_data import typed_data

BYTES_PER_SIGNATURE = 65  # r, s, v


@dataclass(frozen=True)
class SignedStatement:
    """A statement's bytes, and its hospital's signature."""

    statement: bytes
    signature: bytes

    def to_wire(self) -> bytes:
        return self.signature + self.statement


def parse_signed_statement(raw: bytes) -> SignedStatement:
    """From its wire form, unchecked. Raises StatementMalformed if the bytes are too short."""
    if len(raw) < BYTES_PER_SIGNATURE:
        raise StatementMalformed(f"{len(raw)} bytes are too short for a signature")
    return SignedStatement(raw[BYTES_PER_SIGNATURE:], raw[:BYTES_PER_SIGNATURE])


@dataclass(frozen=True)
class StatementSigning:
    """Signs and checks statements of one round."""

    chain_id: int
    contract: str
    task: int
    round: int

    def sign(self, account: LocalAccount, statement: bytes) -> SignedStatement:
        signed = account.sign_typed_data(full_message=self._message(statement))
        return SignedStatement(statement, bytes(signed.signature))

    def is_by(self, hospital: str, signed: SignedStatement) -> bool:
        """True if the account of this address signed it."""
        message = encode_typed_data(full_message=self._message(signed.statement))
        try:
            return bool(Account.recover_message(message, signature=signed.signature) == hospital)
        except (BadSignature, ValueError):
            return False

    def _message(self, statement: bytes) -> dict[str, object]:
        fields = {"taskId": "uint256", "round": "uint256", "statement": "bytes"}
        values = {"taskId": self.task, "round": self.round, "statement": statement}
        return typed_data(DOMAIN, self.chain_id, self.contract, {"UploadStatement": fields}, values)
