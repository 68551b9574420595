"""Solidity's `abi.encode` for static words and one trailing `bytes`, for the protocol's messages.

Source: Solidity contract ABI specification, "Formal specification of the encoding".
"""

from __future__ import annotations

from .errors import ArgumentInvalid, ShapeWrong

WORD = 32
ADDRESS = 20


def uint256(name: str, value: int) -> bytes:
    """One 32-byte big-endian word. Raises ArgumentInvalid outside [0, 2^256)."""
    if not 0 <= value < 1 << 256:
        raise ArgumentInvalid(name, value, "in [0, 2^256)")
    return int(value).to_bytes(WORD, "big")


def address(name: str, value: bytes) -> bytes:
    """A 20-byte address, left-padded to a word. Raises ShapeWrong."""
    if len(value) != ADDRESS:
        raise ShapeWrong(name, f"{len(value)} bytes", f"{ADDRESS} bytes")
    return bytes(WORD - ADDRESS) + value


def bytes32(name: str, value: bytes) -> bytes:
    """Exactly one word. Raises ShapeWrong."""
    if len(value) != WORD:
        raise ShapeWrong(name, f"{len(value)} bytes", f"{WORD} bytes")
    return value


def round_words(chain_id: int, contract: bytes, task: int, round: int) -> bytes:
    """The four words that identify a round, and bind keys, masks and proofs to it. contract: 20 bytes.

    Raises ArgumentInvalid, ShapeWrong.
    """
    words = uint256("chain_id", chain_id), address("contract", contract), uint256("task", task), uint256("round", round)
    return b"".join(words)


def words_then_bytes(words: list[bytes], tail: bytes) -> bytes:
    """Static `words` followed by one dynamic `bytes` argument: its offset, its length, its data padded to words."""
    offset = WORD * (len(words) + 1)
    padding = bytes(-len(tail) % WORD)
    return b"".join([*words, offset.to_bytes(WORD, "big"), len(tail).to_bytes(WORD, "big"), tail, padding])
