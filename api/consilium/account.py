"""An account on a chain, which sends transactions."""

from __future__ import annotations

from pathlib import Path

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC


class Account:
    """Refused transactions raise Refused: `name` is the contract's error. All methods raise ChainUnreachable."""

    def __init__(
        self,
        rpc: str = LOCAL_RPC,
        address_book: str | Path = LOCAL_ADDRESS_BOOK,
        *,
        keystore: str | Path | None = None,
        password_file: str | Path | None = None,
    ) -> None:
        """`keystore`, `password_file`: of the account; on the local chain by default the one with all tokens.

        Raises DeploymentInvalid, ChainUnreachable, KeystoreError.
        """
        from consilium_operators.proposals import operator_ledger

        key, password = (None if path is None else Path(path) for path in (keystore, password_file))
        self._ledger = operator_ledger(rpc, Path(address_book), key, password)

    @property
    def address(self) -> str:
        """The account's address."""
        return self._ledger.address
