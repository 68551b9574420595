"""A connection with what only a deployer asks of a node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import requests
from eth_account import Account
from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import ContractLogicError, TransactionNotFound, Web3Exception, Web3RPCError

from consilium_chain.errors import ChainUnreachable, DeployFailed, TransactionRejected
from consilium_chain.rpc import transactions
from consilium_chain.rpc.abi import ContractName, contract_artifact
from consilium_chain.rpc.blocks import SLOWEST_BLOCK_POLL, TIP
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import TRANSACTION_GAS_LIMIT, Unsent
from consilium_chain.rpc.reverts import refusal_of


@dataclass(frozen=True)
class GasPrice:
    """Wei per gas: what a transaction would pay now, and the most that it offers."""

    now: int
    most: int


@dataclass(frozen=True)
class Signed:
    """A transaction that can be sent any number of times and happens once at most, for it has a nonce."""

    raw: bytes
    digest: str


class DeployNode(Connection):
    """One account's connection from which contracts are deployed. Every method raises ChainUnreachable."""

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Whatever goes wrong in a question; providers' nodes differ in what they leave out."""
        try:
            yield
        except Web3RPCError as error:
            raise ChainUnreachable(self.shown_url, f"{refusal_of(error)}, asked for {what}") from error
        except (requests.exceptions.RequestException, Web3Exception) as error:
            raise ChainUnreachable(self.shown_url, f"{type(error).__name__}, asked for {what}") from error

    def creation_code(self, name: ContractName, *arguments: Any) -> bytes:
        """Init code of a contract with its ABI-encoded constructor arguments."""
        artifact = contract_artifact(name)
        factory = self.web3.eth.contract(abi=artifact.abi, bytecode=HexStr(artifact.bytecode))
        return bytes(HexBytes(factory.constructor(*arguments).data_in_transaction))

    def call_data(self, name: ContractName, address: str, function: str, *arguments: Any) -> bytes:
        return bytes(HexBytes(self.contract(name, address).encode_abi(function, arguments)))

    def read(self, name: ContractName, address: str, function: str) -> Any:
        """The answer of a function without arguments. Raises DeploymentInvalid where no such contract is."""
        return self.call(self.contract(name, address).get_function_by_name(function)())

    def balance(self) -> int:
        with self._asking("the account's balance"):
            return int(self.web3.eth.get_balance(self.address))

    def nonce(self, with_pending: bool) -> int:
        """The number of the account's transactions on the chain; with `with_pending`, of those on their way, too."""
        with self._asking("the account's nonce"):
            return int(self.web3.eth.get_transaction_count(self.address, "pending" if with_pending else "latest"))

    def code(self, address: str) -> bytes:
        with self._asking("a contract's code"):
            return bytes(self.web3.eth.get_code(Web3.to_checksum_address(address)))

    def ask_precompile(self, address: int, given: bytes) -> bytes:
        """A precompile's answer to the input; b"" where its address is empty, or it refuses the input."""
        to = Web3.to_checksum_address(f"0x{address:040x}")
        with self._asking("a precompile"):
            try:
                return bytes(self.web3.eth.call({"to": to, "data": HexStr(HexBytes(given).to_0x_hex())}))
            except ContractLogicError:
                return b""

    def genesis(self) -> str:
        """Hash of the first block: local chains that were started anew share an id, but not this."""
        with self._asking("the first block"):
            return HexBytes(self.web3.eth.get_block(0)["hash"]).to_0x_hex()

    def gas_price(self) -> GasPrice:
        with self._asking("the current fee"):
            base = self.web3.eth.get_block("latest").get("baseFeePerGas")
        if base is None:
            raise ChainUnreachable(self.shown_url, "its blocks name no base fee, EIP-1559")
        return GasPrice(base + TIP, 2 * base + TIP)

    def runtime_of(self, creation: bytes) -> bytes:
        """The code that a creation would leave, its immutables filled in. Raises Refused by the constructor."""
        with self.transactions.named_errors("a constructor"):
            return bytes(self.web3.eth.call({"from": self.address, "data": HexStr(HexBytes(creation).to_0x_hex())}))

    def sign(self, call: str, to: str | None, data: bytes, nonce: int) -> Signed:
        """Raises Refused where the chain would refuse it."""
        target: ChecksumAddress | None = None if to is None else Web3.to_checksum_address(to)
        with self.transactions.named_errors(call):
            hex_data = HexStr(HexBytes(data).to_0x_hex())
            request: Any = {"from": self.address, "data": hex_data} | ({} if target is None else {"to": target})
            gas = min(self.web3.eth.estimate_gas(request) * 11 // 10, TRANSACTION_GAS_LIMIT)
            transaction = self.signing.fields(Unsent(hex_data, target, call), gas) | {"nonce": nonce}
            signed = Account.sign_transaction(transaction, self.signer.key)
        return Signed(bytes(signed.raw_transaction), HexBytes(signed.hash).to_0x_hex())

    def broadcast(self, signed: Signed, call: str) -> None:
        """Raises TransactionRejected."""
        with self.transactions.named_errors(call):
            self.web3.eth.send_raw_transaction(signed.raw)

    def knows(self, digest: str) -> bool:
        """True if a transaction is on the chain or on its way."""
        with self._asking("a transaction"):
            try:
                self.web3.eth.get_transaction(HexStr(digest))
            except TransactionNotFound:
                return False
            return True

    def wait_mined(self, digest: str, call: str, again: Signed | None = None) -> int:
        """The block of a transaction; `again` is sent once more where the node has forgotten it. Raises
        DeployFailed (DeploymentPending, DeploymentReverted).
        """
        end, pause = time.monotonic() + transactions.RECEIPT_TIMEOUT, transactions.RECEIPT_POLL
        look = time.monotonic() + transactions.LOOK_AGAIN
        with self.transactions.named_errors(call):
            while True:
                try:
                    receipt = self.web3.eth.get_transaction_receipt(HexStr(digest))
                    break
                except TransactionNotFound:
                    if time.monotonic() > end:
                        raise DeployFailed("DeploymentPending", call=call, transaction=digest) from None
                    if again is not None and time.monotonic() > look:
                        look = time.monotonic() + transactions.LOOK_AGAIN
                        if not self.knows(digest):
                            with suppress(TransactionRejected):  # it is there meanwhile, or waits for one before it
                                self.broadcast(again, call)
                    time.sleep(pause)
                    pause = min(1.5 * pause, SLOWEST_BLOCK_POLL)
        if receipt["status"] != 1:
            raise DeployFailed("DeploymentReverted", call=call, transaction=digest)
        return int(receipt["blockNumber"])

    def wait_confirmed(self, block: int, confirmations: int) -> None:
        """Waits until the chain has grown to `confirmations` blocks from `block` on, it included."""
        seen = self.blocks.number()
        while seen < block + confirmations - 1:
            seen = self.blocks.wait_after(seen)
