"""A look at the chain: the newest block's number and time, and contracts' answers as of it, by one request.

The request is an `eth_call` that creates a contract (EVM yellow paper, 7): the node runs its code and returns what it
returns, as it would a new contract's code. Nothing is deployed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WORD = 32
# At most 24,576 bytes are returned (EIP-170). A task's state has 320, a round's with most cohorts 2,944.
MOST_CALLS = 14
_NUMBER, _TIMESTAMP, _MSTORE, _CODECOPY, _RETURNDATASIZE = b"\x43", b"\x42", b"\x52", b"\x39", b"\x3d"
_RETURNDATACOPY, _STATICCALL, _GAS, _ADD, _KECCAK256, _RETURN = b"\x3e", b"\xfa", b"\x5a", b"\x01", b"\x20", b"\xf3"
_ZERO, _DUP2, _DUP3, _DUP4 = b"\x5f", b"\x81", b"\x82", b"\x83"


@dataclass(frozen=True)
class Asked:
    """A read of a contract by its address (20 bytes) and calldata. `hashed`: its answer's keccak256 is enough."""

    contract: bytes
    data: bytes
    hashed: bool = False


@dataclass(frozen=True)
class Look:
    """`time`: in seconds since the epoch. `answers`: undecoded; None for a revert."""

    number: int
    time: int
    answers: Mapping[Asked, bytes | None]


def program(asked: Sequence[Asked]) -> bytes:
    """The code that returns number, time, and for each read: success, length, and the answer or its hash."""
    start = len(_code(asked, 0))
    return _code(asked, start) + b"".join(one.data for one in asked)


def _code(asked: Sequence[Asked], at: int) -> bytes:
    """`at`: the offset of the first calldata. Between two steps the stack holds the end of what is written so far."""
    grow = _push(_WORD, 1) + _ADD
    code = [_NUMBER, _ZERO, _MSTORE, _TIMESTAMP, _push(_WORD, 1), _MSTORE, _push(2 * _WORD, 1)]
    for one in asked:
        length = _push(len(one.data), 2)
        code += [length, _push(at, 2), _DUP3, _CODECOPY]
        code += [_ZERO, _ZERO, length, _DUP4, _push(int.from_bytes(one.contract, "big"), 20), _GAS, _STATICCALL]
        code += [_DUP2, _MSTORE, grow, _RETURNDATASIZE, _DUP2, _MSTORE, grow]
        code += [_RETURNDATASIZE, _ZERO, _DUP3, _RETURNDATACOPY, _RETURNDATASIZE]
        code += [_DUP2, _KECCAK256, _DUP2, _MSTORE, grow] if one.hashed else [_ADD]
        at += len(one.data)
    return b"".join([*code, _ZERO, _RETURN])


def _push(value: int, width: int) -> bytes:
    return bytes([0x5F + width]) + value.to_bytes(width, "big")


def parse_look(asked: Sequence[Asked], answer: object) -> Look:
    """Raises TypeError or ValueError for bytes that the program does not return."""
    if not isinstance(answer, str) or not answer.startswith("0x"):
        raise TypeError("the answer is not a hex string")
    raw = bytes.fromhex(answer[2:])
    number, time, at, answers = _word(raw, 0), _word(raw, _WORD), 2 * _WORD, {}
    if max(number, time) >= 1 << 64:
        raise ValueError("the answer names no block")
    for one in asked:
        succeeded, length, at = _word(raw, at), _word(raw, at + _WORD), at + 2 * _WORD
        length = _WORD if one.hashed else length
        if at + length > len(raw):
            raise ValueError("the answer is too short")
        answers[one] = raw[at : at + length] if succeeded else None
        at += length
    if at != len(raw):
        raise ValueError("the answer is too long")
    return Look(number, time, answers)


def _word(raw: bytes, at: int) -> int:
    if at + _WORD > len(raw):
        raise ValueError("the answer is too short")
    return int.from_bytes(raw[at : at + _WORD], "big")
