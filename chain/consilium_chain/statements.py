"""What a hospital signs with its masked upload and with its answer, so that it answers for these bytes.

EIP-712, as the update itself: UploadStatement(uint256 taskId,uint256 round,bytes statement), whose statement is
`consilium_zk.blame.Statement`, and UnmaskingAnswer(uint256 taskId,uint256 round,bytes32 masking,uint256 survivors,
bytes answer), whose masking is `consilium_zk.blame.masking_digest`. No contract reads them; they are evidence for those
who judge why a cohort has no sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature

from consilium_chain.errors import StatementMalformed
from consilium_chain.relaying import typed_data

BYTES_PER_SIGNATURE = 65  # r, s, v


@dataclass(frozen=True)
class SignedStatement:
    """The bytes of a statement or answer, and its hospital's signature."""

    statement: bytes
    signature: bytes

    def to_wire(self) -> bytes:
        return self.signature + self.statement


def parse_signed_statement(raw: bytes) -> SignedStatement:
    """From its wire form, unchecked. Raises StatementMalformed where there is no room for a signature."""
    if len(raw) < BYTES_PER_SIGNATURE:
        raise StatementMalformed(f"{len(raw)} bytes hold no signature")
    return SignedStatement(raw[BYTES_PER_SIGNATURE:], raw[:BYTES_PER_SIGNATURE])


@dataclass(frozen=True)
class Signing(ABC):
    """Where what is signed is of: a round of a task on one chain."""

    chain_id: int
    contract: str
    task: int
    round: int

    def sign(self, account: LocalAccount, statement: bytes) -> SignedStatement:
        signed = account.sign_typed_data(full_message=self._message(statement))
        return SignedStatement(statement, bytes(signed.signature))

    def is_by(self, hospital: str, signed: SignedStatement) -> bool:
        """Whether the account behind this address has signed it."""
        message = encode_typed_data(full_message=self._message(signed.statement))
        try:
            return bool(Account.recover_message(message, signature=signed.signature) == hospital)
        except (BadSignature, ValueError):
            return False

    @abstractmethod
    def _message(self, statement: bytes) -> dict[str, object]:
        """As EIP-712 has it."""


class StatementSigning(Signing):
    """Of statements on uploads."""

    def _message(self, statement: bytes) -> dict[str, object]:
        fields = {"taskId": "uint256", "round": "uint256", "statement": "bytes"}
        values = {"taskId": self.task, "round": self.round, "statement": statement}
        return typed_data(self.chain_id, self.contract, "UploadStatement", fields, values)


@dataclass(frozen=True)
class AnswerSigning(Signing):
    """Of answers, for one masking and one bit map of its survivors: after a reorganisation they are of no others."""

    masking: bytes
    survivors: int

    def _message(self, statement: bytes) -> dict[str, object]:
        fields = {
            "taskId": "uint256", "round": "uint256", "masking": "bytes32", "survivors": "uint256", "answer": "bytes",
        }  # fmt: skip
        values = {
            "taskId": self.task, "round": self.round, "masking": self.masking, "survivors": self.survivors,
            "answer": statement,
        }  # fmt: skip
        return typed_data(self.chain_id, self.contract, "UnmaskingAnswer", fields, values)
