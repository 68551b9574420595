"""Primary names of accounts in the Ethereum Name Service (ENSIP-19), read from a node of Ethereum's mainnet."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from consilium_chain.rpc.connection import Connection

UNIVERSAL_RESOLVER = "0xeEeEEEeE14D718C2B47D9923Deab1335E144EeEe"  # docs.ens.domains, "Universal Resolver"
MAINNET = 60  # ENSIP-9's number of Ethereum
LONGEST = 100  # characters of a name
_REVERSE = keccak(b"reverse(bytes,uint256)")[:4]
# Names in their normal form (ENSIP-15) of these letters alone: others could look like them.
_NAME = re.compile(r"(?!.*--)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


class EnsNames:
    """Asks ENS's universal resolver, which resolves the name that it finds, and refuses the name of another account.

    It does not follow a resolver to a server (CCIP read, EIP-3668): strangers would choose that server.
    """

    def __init__(self, url: str | Sequence[str]) -> None:
        self._url = url
        self._connection: Connection | None = None

    def name_of(self, account: str) -> str | None:
        """None without a name in Latin letters. Raises ChainUnreachable."""
        call = _REVERSE + encode(["bytes", "uint256"], [to_canonical_address(account), MAINNET])
        if self._connection is None:
            self._connection = Connection(self._url)
        answer = self._connection.answer(UNIVERSAL_RESOLVER, "0x" + call.hex())
        try:
            name, *_ = decode(["string", "address", "address"], bytes.fromhex(str(answer or "").removeprefix("0x")))
        except (DecodingError, ValueError):
            return None
        return name if len(name) <= LONGEST and _NAME.fullmatch(name) else None
