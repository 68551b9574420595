"""Transactions that an account signs: nonces, fees and blob sidecars."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import wait
from contextvars import ContextVar
from typing import Any, cast

from consilium_core.tracing import span
from eth_abi.abi import encode
from eth_account import Account
from eth_account.datastructures import SignedTransaction
from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions import base as blob_transactions
from eth_typing import ChecksumAddress, HexStr
from eth_utils.crypto import keccak
from hexbytes import HexBytes
from web3.types import TxParams

from consilium_chain.rpc.blocks import Fees
from consilium_chain.rpc.cell_proofs import Sidecar
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.outgoing import BLOB_GAS, Own, Unsent, gas_limit

# eth-account computes commitments and cell proofs while it signs, and loads the ceremony setup each time (two seconds).
# It gets those of the sidecars instead.
_signing: ContextVar[Mapping[bytes, Sidecar]] = ContextVar("sidecars of the transaction that is being signed")
blob_transactions.load_trusted_setup = lambda *_: None  # type: ignore[attr-defined]
blob_transactions.blob_to_kzg_commitment = lambda blob, _: _signing.get()[blob].commitment  # type: ignore[attr-defined]
blob_transactions.compute_cells_and_kzg_proofs = lambda blob, _: ([], _signing.get()[blob].proofs.result())  # type: ignore[attr-defined]


# Chains whose gas limits and estimates count a transaction's bytes on L1, and the contract of their nodes that says
# how much: `gasEstimateL1Component` of Nitro's NodeInterface. OP chains charge that fee beside the gas.
ARBITRUM = (42_161, 421_614)
NODE_INTERFACE, NOBODY = "0x" + "00" * 19 + "C8", "0x" + "00" * 20
L1_PART = keccak(text="gasEstimateL1Component(address,bool,bytes)")[:4]


class Signing:
    """Signs an account's transactions. Raises web3's errors, and ValueError without an account."""

    def __init__(self, endpoint: Endpoint, account: LocalAccount | None, fees: Fees) -> None:
        self._endpoint, self._account, self._fees = endpoint, account, fees

    @property
    def signer(self) -> LocalAccount:
        if self._account is None:
            raise ValueError("this connection has no account, so it can only read")
        return self._account

    @property
    def address(self) -> ChecksumAddress:
        return self.signer.address

    def estimate(self, call: Mapping[str, Any]) -> int:
        """The node's estimate of the gas of a call from this account."""
        request = {"from": self.address} | {name: value for name, value in call.items() if value}
        return int(self._endpoint.web3.eth.estimate_gas(cast(TxParams, request)))

    def l1_gas(self, to: ChecksumAddress | None, data: HexStr) -> int:
        """The part of an estimate that pays for the call's bytes on L1. None but Arbitrum's has one: there a fall of
        the price of gas makes the part larger, without a bound.
        """
        if self._endpoint.chain_id not in ARBITRUM:
            return 0
        asked = L1_PART + encode(["address", "bool", "bytes"], [to or NOBODY, to is None, bytes(HexBytes(data))])
        request = {"from": self.address, "to": NODE_INTERFACE, "data": "0x" + asked.hex()}
        return int.from_bytes(self._endpoint.web3.eth.call(cast(TxParams, request))[:32], "big")

    def most(self, unsent: Unsent) -> int:
        """The most wei that a transaction sent now may cost."""
        # Without a price, since nodes refuse to estimate a call that the account cannot pay.
        gas = unsent.gas
        if gas is None:
            estimate = self.estimate({"to": unsent.to, "data": unsent.data})
            gas = gas_limit(estimate, self.l1_gas(unsent.to, unsent.data))
        blobs = len(unsent.sidecars) * BLOB_GAS * self._fees.highest_blob() if unsent.sidecars else 0
        return gas * self._fees.highest() + unsent.value + blobs

    def fields(self, unsent: Unsent, gas: int | None) -> dict[str, Any]:
        """A transaction's fields with the account's next nonce. `gas`: its limit, by default by an estimate."""
        fields: dict[str, Any] = {
            "chainId": self._endpoint.chain_id,
            "nonce": self._endpoint.web3.eth.get_transaction_count(self.address, "pending"),
            "data": unsent.data,
            "value": unsent.value,
            **self._fees.offer(),
        }
        if unsent.to is not None:
            fields["to"] = unsent.to
        if unsent.sidecars:
            fields |= {"type": 3, "maxFeePerBlobGas": self._fees.highest_blob()}
        if unsent.authorizations:
            fields |= {"authorizationList": list(unsent.authorizations)}
        if gas is None:
            estimate = self._endpoint.web3.eth.estimate_gas(cast(TxParams, {**fields, "from": self.address}))
            gas = gas_limit(estimate, self.l1_gas(unsent.to, unsent.data))
        return fields | {"gas": gas}

    def sign(self, unsent: Unsent, fields: Mapping[str, Any]) -> Own:
        token = _signing.set({sidecar.blob: sidecar for sidecar in unsent.sidecars})
        blobs = {"blobs": [sidecar.blob for sidecar in unsent.sidecars]} if unsent.sidecars else {}
        try:
            if unsent.sidecars:
                with span("await cell proofs", blobs=len(unsent.sidecars)):
                    wait([sidecar.proofs for sidecar in unsent.sidecars])
            signed: SignedTransaction = Account.sign_transaction(dict(fields), self.signer.key, **blobs)
            return Own(unsent, fields, signed)
        finally:
            _signing.reset(token)

    def raised(self, own: Own) -> Own:
        """The same with twice the offer: pools want twice as much for blob transactions, a tenth more for others."""
        fields = dict(own.fields)
        fields["maxPriorityFeePerGas"] *= 2
        fields["maxFeePerGas"] = max(2 * fields["maxFeePerGas"], self._fees.highest())
        if "maxFeePerBlobGas" in fields:
            fields["maxFeePerBlobGas"] = max(2 * fields["maxFeePerBlobGas"], self._fees.highest_blob())
        return self.sign(own.unsent, fields)
