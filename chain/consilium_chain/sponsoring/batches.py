"""Batches of calls that an account signs and a sponsor sends and pays for: the account needs no ether.

The account points to the code of `SponsoredAccount` by an authorization (EIP-7702) and signs each batch as typed data
(EIP-712) with chain, account, nonce and deadline. The calls are then the account's own. The sponsor can only refuse or
wait: the account's code takes nothing but this batch, once.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
import rlp
from consilium_core.errors import ConfigInvalid
from eth_account.signers.local import LocalAccount
from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.address import is_hex_address, to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError as EthValidationError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from consilium_chain.errors import SponsorFailed
from consilium_chain.typed_data import typed_data

BATCHES_PATH = "/batches"
MAX_CALLS = 8
MAX_DATA = 1 << 16  # bytes of a call: a commitment to 128 blobs takes some 17,000
AUTHORIZATION_MAGIC = b"\x05"  # the prefix of an authorization's signed message (EIP-7702)
SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
DELEGATION_PREFIX = bytes.fromhex("ef0100")  # of the code of an account that points to another's (EIP-7702)
# The storage slot of an account's batch count: ERC-7201 of its name in the contract.
NONCE_SLOT = (
    int.from_bytes(
        keccak((int.from_bytes(keccak(text="consilium.SponsoredAccount.nonce"), "big") - 1).to_bytes(32, "big")), "big"
    )
    & ~0xFF
)
# Seconds: a sponsor answers when the batch is on chain.
ANSWER_TIMEOUT = 150.0
# A sponsor may start at the same time: connecting is tried again after 0, 0.5, 1, 2, 4, 8 and 16 s.
CONNECT_RETRIES = 7
LARGEST_ANSWER = 1 << 17  # bytes; a revert with the longest message has some thousand


def _address(value: str) -> str:
    if not is_hex_address(value):
        raise ValueError("is not an address: write 0x and 40 hexadecimal digits")
    return to_checksum_address(value)


def _from_hex(value: object) -> object:
    """Bytes pass: this code makes these types too."""
    if not isinstance(value, str):
        return value
    if not value.startswith("0x"):
        raise ValueError("is not a hexadecimal string that begins with 0x")
    return bytes.fromhex(value[2:])


Address = Annotated[str, AfterValidator(_address)]
Bytes = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(lambda raw: "0x" + raw.hex(), when_used="json")]
Word = Annotated[int, Field(ge=0, lt=1 << 64)]
Scalar = Annotated[Bytes, Field(min_length=32, max_length=32)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Call(_Wire):
    to: Address
    data: Annotated[Bytes, Field(min_length=4, max_length=MAX_DATA)]


class Authorization(_Wire):
    """An account's signed pointer to the code at `address`, valid while its nonce is `nonce` (EIP-7702)."""

    chain_id: Annotated[int, Field(ge=1, lt=1 << 64)]
    address: Address
    nonce: Word
    y_parity: Annotated[int, Field(ge=0, le=1)]
    r: Scalar
    s: Scalar

    def to_chain(self) -> dict[str, Any]:
        """The entry of a transaction of type 4."""
        return {
            "chainId": self.chain_id, "address": self.address, "nonce": self.nonce, "yParity": self.y_parity,
            "r": int.from_bytes(self.r, "big"), "s": int.from_bytes(self.s, "big"),
        }  # fmt: skip


class SignedBatch(_Wire):
    """Calls of an account. `deadline`: Unix seconds. `authorization`: if the account has no code yet."""

    account: Address
    calls: Annotated[tuple[Call, ...], Field(min_length=1, max_length=MAX_CALLS)]
    nonce: Word
    deadline: Word
    signature: Annotated[Bytes, Field(min_length=65, max_length=65)]
    authorization: Authorization | None = None

    def arguments(self) -> tuple[list[tuple[str, bytes]], int, int, bytes]:
        """The arguments of `SponsoredAccount.execute`."""
        return ([(call.to, call.data) for call in self.calls], self.nonce, self.deadline, self.signature)

    def to_wire(self) -> bytes:
        """The JSON that is posted to a sponsor."""
        return self.model_dump_json().encode()


class Carried(_Wire):
    """A sponsor's answer: the hash of the transaction that it sent."""

    transaction: Annotated[Bytes, Field(min_length=32, max_length=32)]


class RefusedBatch(_Wire):
    """A sponsor's answer if a contract refuses the batch: the revert's data."""

    data: Bytes


def sign_batch(
    account: LocalAccount,
    chain_id: int,
    calls: Sequence[Call],
    nonce: int,
    deadline: int,
    authorization: Authorization | None,
) -> SignedBatch:
    signed = account.sign_typed_data(full_message=batch_message(account.address, chain_id, calls, nonce, deadline))
    return SignedBatch(
        account=account.address, calls=tuple(calls), nonce=nonce, deadline=deadline, signature=bytes(signed.signature),
        authorization=authorization,
    )  # fmt: skip


def batch_message(account: str, chain_id: int, calls: Sequence[Call], nonce: int, deadline: int) -> dict[str, Any]:
    """The EIP-712 message whose digest is `SponsoredAccount.batchDigest`."""
    types = {
        "Call": {"to": "address", "data": "bytes"},
        "Batch": {"calls": "Call[]", "nonce": "uint256", "deadline": "uint256"},
    }
    values = {"calls": [call.model_dump() for call in calls], "nonce": nonce, "deadline": deadline}
    return typed_data("ConsiliumAccount", chain_id, account, types, values)


def authorize(account: LocalAccount, chain_id: int, code: str, nonce: int) -> Authorization:
    """Signs a pointer of the account to `code`. `nonce`: the account's at that time."""
    # eth-account's stubs have another type than it returns.
    signed: Any = account.sign_authorization({"chainId": chain_id, "address": code, "nonce": nonce})
    return Authorization(
        chain_id=chain_id, address=code, nonce=nonce, y_parity=signed.y_parity,
        r=signed.r.to_bytes(32, "big"), s=signed.s.to_bytes(32, "big"),
    )  # fmt: skip


def authority_of(authorization: Authorization) -> str | None:
    """The account that signed an authorization (EIP-7702); None if the chain would not take the signature."""
    said = [authorization.chain_id, bytes.fromhex(authorization.address[2:]), authorization.nonce]
    r, s = int.from_bytes(authorization.r, "big"), int.from_bytes(authorization.s, "big")
    if s > SECP256K1_ORDER // 2:
        return None
    try:
        signature = Signature(vrs=(authorization.y_parity, r, s))
        key = signature.recover_public_key_from_msg_hash(keccak(AUTHORIZATION_MAGIC + rlp.encode(said)))
    except (BadSignature, EthValidationError):
        return None
    return str(key.to_checksum_address())


def pointer_to(code: str) -> bytes:
    """The code of an account that points to `code`."""
    return DELEGATION_PREFIX + bytes.fromhex(code[2:])


class Sponsor:
    """A sponsor behind a URL. It is not trusted: `SponsoredTransactions` checks the result on chain."""

    def __init__(self, url: str, ca_certificate: Path | None = None) -> None:
        """`ca_certificate`: of the sponsor's authority, by default the system's. Raises ConfigInvalid."""
        self.url = url.rstrip("/")
        try:
            self._trusted = ssl.create_default_context(cafile=ca_certificate)
        except OSError as error:
            why = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise ConfigInvalid(
                f"the CA certificate {ca_certificate} of the sponsor cannot be read: {why}; ask the sponsor's operator"
                " for tls/ca.crt in its home folder"
            ) from error

    def carry_out(self, batch: SignedBatch) -> Carried | RefusedBatch:
        """Raises SponsorFailed, with the sponsor's text if it sent one."""
        try:
            status, content = self._post(batch.to_wire())
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SponsorFailed(self.url, batch.account, type(error).__name__) from error
        try:
            if status == httpx.codes.OK:
                return Carried.model_validate_json(content)
            if status == httpx.codes.CONFLICT:
                return RefusedBatch.model_validate_json(content)
        except ValidationError as error:
            raise SponsorFailed(self.url, batch.account, "its answer is malformed") from error
        raise SponsorFailed(self.url, batch.account, f"{status}: {_beginning(content)}")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        """Status and the answer's beginning, without decompression: a few bytes can become gigabytes."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        transport = httpx.HTTPTransport(verify=self._trusted, retries=CONNECT_RETRIES)
        with (
            httpx.Client(transport=transport, timeout=ANSWER_TIMEOUT) as client,
            client.stream("POST", self.url + BATCHES_PATH, content=body, headers=headers) as answer,
        ):
            content = b""
            for part in answer.iter_raw():
                content += part
                if len(content) > LARGEST_ANSWER:
                    break
            return answer.status_code, content[:LARGEST_ANSWER]


def _beginning(content: bytes) -> str:
    """The beginning of an untrusted text, on one line."""
    return " ".join(content[:300].decode("utf-8", "replace").split())
