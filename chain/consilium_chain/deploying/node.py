"""A connection with the calls that only a deployer makes."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from eth_typing import HexStr
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import ContractLogicError, TransactionNotFound

from consilium_chain.errors import DeployFailed, TransactionRejected
from consilium_chain.rpc import transactions
from consilium_chain.rpc.abi import ContractName, contract_artifact
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import Own, Unsent, bounded_gas
from consilium_chain.rpc.pace import GROWTH, LONGEST_PAUSE


class DeployNode(Connection):
    """One account's connection from which contracts are deployed. Every method raises ChainUnreachable."""

    def creation_code(self, name: ContractName, *arguments: Any) -> bytes:
        """Init code of a contract with its ABI-encoded constructor arguments."""
        artifact = contract_artifact(name)
        factory = self.web3.eth.contract(abi=artifact.abi, bytecode=HexStr(artifact.bytecode))
        return bytes(HexBytes(factory.constructor(*arguments).data_in_transaction))

    def call_data(self, name: ContractName, address: str, function: str, *arguments: Any) -> bytes:
        return bytes(HexBytes(self.contract(name, address).encode_abi(function, arguments)))

    def read(self, name: ContractName, address: str, function: str) -> Any:
        """The answer of a function without arguments. Raises DeploymentInvalid if no such contract is there."""
        return self.call(self.contract(name, address).get_function_by_name(function)())

    def nonce(self, with_pending: bool) -> int:
        """The number of the account's transactions on the chain; with `with_pending`, also of those on their way."""
        with self.endpoint.reading():
            return int(self.web3.eth.get_transaction_count(self.address, "pending" if with_pending else "latest"))

    def code(self, address: str) -> bytes:
        with self.endpoint.reading():
            return bytes(self.web3.eth.get_code(Web3.to_checksum_address(address)))

    def ask_precompile(self, address: int, data: bytes) -> bytes:
        """A precompile's answer; b"" if the address is empty, or it refuses the data."""
        to = Web3.to_checksum_address(f"0x{address:040x}")
        try:
            with self.endpoint.reading():
                return bytes(self.web3.eth.call({"to": to, "data": HexStr(HexBytes(data).to_0x_hex())}))
        except ContractLogicError:
            return b""

    def runtime_of(self, creation: bytes) -> bytes:
        """The code that a creation would leave, with its immutables. Raises Refused by the constructor."""
        with self.transactions.named_errors("a constructor"):
            return bytes(self.web3.eth.call({"from": self.address, "data": HexStr(HexBytes(creation).to_0x_hex())}))

    def sign(self, call: str, to: str | None, data: bytes, nonce: int) -> Own:
        """Raises Refused if the chain would refuse it."""
        unsent = Unsent(HexStr(HexBytes(data).to_0x_hex()), None if to is None else Web3.to_checksum_address(to), call)
        with self.transactions.named_errors(call):
            estimate = self.signing.estimate({"to": unsent.to, "data": unsent.data})
            l1_gas = self.signing.l1_gas(unsent.to, unsent.data)
            gas = bounded_gas((estimate - l1_gas) * 11 // 10, l1_gas)
            return self.signing.sign(unsent, self.signing.fields(unsent, gas) | {"nonce": nonce})

    def broadcast(self, own: Own, call: str) -> None:
        """Raises TransactionRejected."""
        with self.transactions.named_errors(call):
            self.web3.eth.send_raw_transaction(own.signed.raw_transaction)

    def knows(self, digest: str) -> bool:
        """True if a transaction is on the chain or on its way."""
        with self.endpoint.reading():
            return self.transactions.knows(HexBytes(digest))

    def wait_mined(self, digest: str, call: str, again: Own | None = None) -> int:
        """The block of a transaction. `again`: sent again if the node has forgotten it. Raises DeployFailed
        (DeploymentPending, DeploymentReverted).
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
                            with suppress(TransactionRejected):  # it has arrived meanwhile, or waits for an earlier one
                                self.broadcast(again, call)
                    time.sleep(pause)
                    pause = min(GROWTH * pause, LONGEST_PAUSE)
        if receipt["status"] != 1:
            raise DeployFailed("DeploymentReverted", call=call, transaction=digest)
        return int(receipt["blockNumber"])

    def wait_confirmed(self, block: int, confirmations: int) -> None:
        """Waits until the chain has `confirmations` blocks from `block` on, with this one."""
        seen = self.blocks.number()
        while seen < block + confirmations - 1:
            seen = self.blocks.wait_after(seen)
