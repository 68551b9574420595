"""How values of the chain are kept in columns: alike in SQLite and PostgreSQL, and in the order of their numbers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import String, types
from sqlalchemy.engine.interfaces import Dialect

MAP_DIGITS = 64  # hexadecimal, of 256 bits


class Amount(types.TypeDecorator[int]):
    """An unsigned number below 2^`bits`, as of tokens in their smallest unit or shares: decimal, of one length, so that
    text sorts as numbers do. Databases' own numbers end at 2^63 or are not exact.
    """

    impl = String
    cache_ok = True

    def __init__(self, bits: int = 128) -> None:
        self.bits, self.digits = bits, len(str((1 << bits) - 1))
        super().__init__(self.digits)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if not 0 <= value < 1 << self.bits:
            raise ValueError(f"{value} is no amount: it does not fit {self.bits} bits")
        return f"{value:0{self.digits}d}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value)


class BitMap(types.TypeDecorator[int]):
    """A set of indices below 256 (`views.members`): hexadecimal, of one length."""

    impl = String(MAP_DIGITS)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else f"{value:0{MAP_DIGITS}x}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value, 16)


class Hex(types.TypeDecorator[bytes]):
    """A hash, 32 bytes: 0x and 64 hexadecimal digits, as people search for it."""

    impl = String(66)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else "0x" + bytes(value).hex()

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return None if value is None else bytes.fromhex(value[2:])
