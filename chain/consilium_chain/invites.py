"""An operator's invite to a task: everything public that a node needs to join it, signed by the operator's account.

The account signs typed data (EIP-712) in the domain of chain and task contract: task, expiry, and a SHA-256 of the
whole content. An invite has no secret. It is a JSON file, or the same bytes in base64url behind `consilium-invite:`.
It may name further shards of the task's model, and then serves hospitals of them all.

A contract signs by its own rule (EIP-1271). Only a chain node can judge that, so `parse` takes such a signature as it
is, and `require_on_chain` and `require_of` ask. An invite's own chain node could vouch for any signature: the node must
be the reader's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from consilium_core.artifacts.backends import parse_location
from consilium_core.connectivity import fleet_address
from consilium_core.strict_json import parse_json
from consilium_core.typed_toml import Section, validation_faults
from consilium_core.visible_text import parse_own_name, shown
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from eth_account.messages import SignableMessage, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address
from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from consilium_chain.addresses import ExactAddress
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.node import DeployNode
from consilium_chain.deploying.verify import Code, code_at, strangers_of
from consilium_chain.errors import InviteRefused, Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, TaskState
from consilium_chain.profiles import LONGEST_NAME
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.tasks.judging_spec import MAX_SHARDS
from consilium_chain.typed_data import typed_data
from consilium_chain.wallet_signatures import KEY_SIGNATURE, MOST_SIGNATURE, contract_accepts, signer_of

FORMAT = "consilium-invite-1"
PREFIX = "consilium-invite:"
MOST_BYTES = 1 << 15  # of a file, and of a link
LONGEST_URL, MOST_STORES, MOST_CERTIFICATES = 300, 8, 4
LEAST_STORES = 2  # of a task by digest, whose sums no chain keeps
USUAL_DAYS, MOST_DAYS = 14, 90
DAY, MOST_NUMBER = 86_400, 1 << 53  # seconds; exact in JSON
UNUSED = ("shards", "signed_by_contract")  # in most invites
STRUCT = {"operator": "address", "task": "uint256", "expiresAt": "uint64", "content": "bytes32"}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LINK = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}(?:/[0-9]{1,5})?")
# Providers of chain nodes put a customer's key into the path, some into the host.
_KEY_IN_PATH, _KEY_IN_HOST = re.compile(r"[\w-]{16,}"), re.compile(r"[0-9a-f]{24,}")


def _link(text: str) -> str:
    if not _LINK.fullmatch(text):
        raise ValueError("write host:port, or host:port/9100")
    fleet_address(text)
    return text


def _authority(text: str) -> str:
    if text != certificates_pem(text.encode()):
        raise ValueError("it has more than certificates (PEM)")
    return text


Url = Annotated[str, Field(max_length=LONGEST_URL, pattern=r"^[!-~]*$")]
Pem = Annotated[str, Field(max_length=MOST_BYTES), AfterValidator(_authority)]
TaskNumber = Annotated[int, Field(ge=1, lt=MOST_NUMBER)]
SuperLink = Annotated[str, AfterValidator(_link)]


class FurtherShard(Section):
    """Another task that trains the same model. `authority` of the invite signed its SuperLink's certificate, too."""

    task: TaskNumber
    superlink: SuperLink


class Invite(Section):
    """`name`: the operator's own, and no proof. `artifacts`: locations of the artifact store. `authority`,
    `sponsor_authority`: certificates that signed those of SuperLink and sponsor, PEM. `report_to`: the operator's API.
    `shards`: the others that its nodes may join. `signed_by_contract`: the operator's account has no key. Empty texts
    stand for none. `expires_at`: Unix seconds.
    """

    format: Literal["consilium-invite-1"]
    name: str = ""
    deployment: Deployment
    chain_url: Url
    artifacts: Annotated[tuple[Url, ...], Field(min_length=1, max_length=MOST_STORES)]
    task: TaskNumber
    superlink: SuperLink
    shards: Annotated[tuple[FurtherShard, ...], Field(max_length=MAX_SHARDS - 1)] = ()
    authority: Pem
    sponsor_url: Url = ""
    sponsor_authority: Pem | None = None
    report_to: Url = ""
    operator: ExactAddress
    expires_at: Annotated[int, Field(ge=1, lt=1 << 37)]
    signed_by_contract: bool = False

    @field_validator("name")
    @classmethod
    def _visible(cls, text: str) -> str:
        return parse_own_name(text, LONGEST_NAME) if text else text

    @field_validator("deployment")
    @classmethod
    def _bounded(cls, book: Deployment) -> Deployment:
        if not (0 < book.chain_id < MOST_NUMBER and 0 <= book.first_block < MOST_NUMBER):
            raise ValueError("its numbers are out of range")
        return book

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(self.superlinks) <= len(self.shards):
            raise ValueError("shards: it names a task twice")
        return self

    @model_serializer(mode="wrap")
    def _short(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves unused fields out: the signed content of an invite to one task, by a key, needs none of them."""
        tree: dict[str, Any] = dump(self)
        return {name: value for name, value in tree.items() if name not in UNUSED or getattr(self, name)}

    @property
    def superlinks(self) -> dict[int, str]:
        """The SuperLink of each task that it invites to."""
        return {self.task: self.superlink} | {shard.task: shard.superlink for shard in self.shards}

    @property
    def shown_tasks(self) -> str:
        """Their numbers, in words."""
        *others, last = map(str, sorted(self.superlinks))
        return f"{', '.join(others)} or {last}" if others else last

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the SuperLink's authority, as `openssl x509 -fingerprint -sha256` writes it."""
        (first, *_) = x509.load_pem_x509_certificates(self.authority.encode())
        return first.fingerprint(hashes.SHA256()).hex(":").upper()

    def require_safe(self) -> None:
        """Raises InviteRefused (InviteUnsafe) for a URL that has a secret, or leads where no invite should."""
        is_local = self.deployment.chain_id == CHAIN_ID
        urls = {"sponsor_url": self.sponsor_url, "report_to": self.report_to}
        for field, url in {"chain_url": self.chain_url, **{name: one for name, one in urls.items() if one}}.items():
            secure = ("https", "wss") if field == "chain_url" else ("https",)
            if why := _fault_of(url, secure, is_local):
                raise InviteRefused("InviteUnsafe", field=field, why=why)
        host, _, path = self.chain_url.partition("://")[2].partition("/")
        if any(map(_KEY_IN_PATH.fullmatch, path.split("/"))) or any(map(_KEY_IN_HOST.fullmatch, host.split("."))):
            raise InviteRefused("InviteUnsafe", field="chain_url", why="a part of it looks like a provider's key")
        for location in self.artifacts:
            if why := _fault_of_store(location, is_local):
                raise InviteRefused("InviteUnsafe", field="artifacts", why=why)

    def require_stores(self, ledger: Ledger) -> None:
        """Raises InviteRefused (InviteOneStore) unless a task by digest has stores on two hosts."""
        hosts = {urlsplit(location).netloc or location for location in self.artifacts}
        if len(hosts) < LEAST_STORES and ledger.tasks.params(self.task).digests:
            raise InviteRefused("InviteOneStore", task=self.task, named=", ".join(hosts))

    def require_operators(self, ledger: Ledger) -> list[TaskState]:
        """The states of its tasks. Raises InviteRefused (InviteNotOperators, InviteNotShards) unless its signer
        proposed them all, as shards of one model, which have the same file and terms; Refused (TaskUnknown).
        """
        states = {task: ledger.tasks.state(task) for task in self.superlinks}
        for task, state in states.items():
            if state.operator != self.operator:
                raise InviteRefused("InviteNotOperators", signer=self.operator, task=task, operator=state.operator)
        of_model = ledger.tasks.shards(self.task) if self.shards else [self.task]
        for task in states:
            if task not in of_model:
                raise InviteRefused("InviteNotShards", task=task, first=self.task)
        return list(states.values())

    def require_on_chain(self, node: DeployNode) -> Ledger:
        """The contracts' client. Signer, contracts, and a task that takes nodes are as the chain has them.

        Raises ChainUnreachable, DeploymentInvalid, Refused (TaskUnknown), InviteRefused.
        """
        book = self.deployment
        ledger = Ledger(node, book)
        states = self.require_operators(ledger)
        try:
            wrong = strangers_of(node, book)
        except Refused as error:
            wrong = [f"no answer to {error.call}"]
        if self.sponsor_url and code_at(node, "SponsoredAccount", book.sponsored_account) is not Code.SAME:
            wrong.append("SponsoredAccount")  # it may send everything that the node's account has
        if wrong:
            raise InviteRefused("InviteContractsWrong", wrong=", ".join(wrong))
        if all(state.phase is not Phase.JOINING for state in states):
            raise InviteRefused("InviteTooLate", task=self.shown_tasks)
        return ledger

    @property
    def typed(self) -> dict[str, Any]:
        """As wallets take it (`eth_signTypedData_v4`)."""
        content = "0x" + hashlib.sha256(self.model_dump_json(exclude={"signature"}).encode()).hexdigest()
        values = {"operator": self.operator, "task": self.task, "expiresAt": self.expires_at, "content": content}
        book = self.deployment
        contract = to_checksum_address(book.tasks)
        return typed_data("ConsiliumInvite", book.chain_id, contract, {"Invite": STRUCT}, values)

    def message(self) -> SignableMessage:
        return encode_typed_data(full_message=self.typed)

    @property
    def written(self) -> bytes:
        """A file's content."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """A file or a link, with safe URLs. Raises InviteRefused."""
        if len(raw) > MOST_BYTES:
            raise InviteRefused("InviteTooLong", most=MOST_BYTES)
        try:
            raw = _decoded(raw.strip()) if raw.lstrip().startswith(PREFIX.encode()) else raw
            tree = parse_json(raw)
            if isinstance(tree, dict) and (version := tree.get("format")) != FORMAT:
                raise InviteRefused("InviteVersionUnknown", version=shown(str(version), 40), known=FORMAT)
            found = cls.model_validate_json(raw)
        except ValidationError as error:
            raise InviteRefused("InviteMalformed", why=validation_faults(error)) from None
        except ValueError as error:
            raise InviteRefused("InviteMalformed", why=str(error)) from None
        found.require_safe()
        return found

    def require_current(self, now: float) -> None:
        """`now`: Unix seconds. Raises InviteRefused (InviteExpired)."""
        if now >= self.expires_at:
            raise InviteRefused("InviteExpired", days=(now - self.expires_at) / DAY)


class SignedInvite(Invite):
    """`signature`: of a key, or in the form of the operator's contract."""

    signature: Annotated[str, Field(pattern="^0x([0-9a-f]{2})*$", max_length=2 + 2 * MOST_SIGNATURE)]

    @model_validator(mode="after")
    def _of_a_key(self) -> Self:
        if not self.signed_by_contract and len(self._signature) != KEY_SIGNATURE:
            raise ValueError(f"signature: a key's has {KEY_SIGNATURE} bytes")
        return self

    @property
    def _signature(self) -> bytes:
        return bytes.fromhex(self.signature[2:])

    @property
    def link(self) -> str:
        raw = self.model_dump_json(exclude_defaults=True).encode()
        return PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """A file or a link, with safe URLs and a key's valid signature; a contract's is not judged yet.

        Raises InviteRefused.
        """
        found = super().parse(raw)
        if not found.signed_by_contract and signer_of(found.message(), found._signature) != found.operator:
            raise InviteRefused("InviteForged", operator=found.operator)
        return found

    def require_operators(self, ledger: Ledger) -> list[TaskState]:
        """Also raises InviteRefused (InviteForged) unless the operator's contract takes the signature as its own."""
        endpoint = ledger.connection.endpoint
        if self.signed_by_contract and not contract_accepts(endpoint, self.operator, self.message(), self._signature):
            raise InviteRefused("InviteForged", operator=self.operator)
        return super().require_operators(ledger)

    def require_of(self, ledger: Ledger, task: int) -> None:
        """Raises InviteRefused unless it is for this task of the ledger's contracts (InviteOfAnother), and as
        `require_operators` does.
        """
        book = ledger.deployment
        own, here = (self.deployment.chain_id, self.deployment.tasks.lower()), (book.chain_id, book.tasks.lower())
        if own != here or task not in self.superlinks:
            raise InviteRefused(
                "InviteOfAnother", found=f"for task {self.shown_tasks} of {self.deployment.tasks} on chain {own[0]}",
                asked=f"for task {task} of {book.tasks} on chain {book.chain_id}",
            )  # fmt: skip
        self.require_operators(ledger)


def sign_invite(invite: Invite, account: LocalAccount) -> SignedInvite:
    """Raises InviteRefused (InviteUnsafe, InviteMalformed)."""
    return with_signature(invite, "0x" + bytes(account.sign_message(invite.message()).signature).hex())


def with_signature(invite: Invite, signature: str) -> SignedInvite:
    """`signature`: 0x and hexadecimal digits. Raises InviteRefused, as `SignedInvite.parse` does."""
    invite.require_safe()
    tree = json.loads(invite.written) | {"signature": signature.strip().lower()}
    return SignedInvite.parse(json.dumps(tree, ensure_ascii=False).encode())


def read_invite(source: str | Path) -> SignedInvite:
    """From a file's path or a link. Raises InviteRefused."""
    if isinstance(source, str) and source.startswith(PREFIX):
        return SignedInvite.parse(source[: MOST_BYTES + 1].encode())
    return SignedInvite.parse(_read(source))


def read_draft(path: str | Path) -> Invite:
    """An invite that is not signed yet, from its file. Raises InviteRefused."""
    return Invite.parse(_read(path))


def _read(source: str | Path) -> bytes:
    """A file up to a byte more than an invite may have. Raises InviteRefused (InviteUnreadable)."""
    try:
        with Path(source).expanduser().open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path has a zero byte"
        raise InviteRefused("InviteUnreadable", path=shown(str(source), 200), why=why) from None


def certificates_pem(raw: bytes) -> str:
    """The certificates alone of a PEM file, without its other parts. Raises ValueError."""
    found = x509.load_pem_x509_certificates(raw)
    if len(found) > MOST_CERTIFICATES:
        raise ValueError(f"it has {len(found)} certificates, more than {MOST_CERTIFICATES}")
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in found)


def _decoded(link: bytes) -> bytes:
    body = link.removeprefix(PREFIX.encode())
    try:
        return base64.b64decode(body + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("the link is not base64url: copy it again") from None


def _fault_of(url: str, secure: tuple[str, ...], is_local: bool) -> str | None:
    """The reason why an invite cannot have this URL, without the URL."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is not a URL"
    if "@" in parts.netloc or parts.query or parts.fragment or "?" in url or "#" in url:
        return "it has credentials, a query or a fragment"
    plain = is_local and host in LOOPBACK and parts.scheme in ("http", "ws")
    if not host or (parts.scheme not in secure and not plain):
        return f"it does not begin with {' or '.join(f'{one}://' for one in secure)}"
    return None


def _fault_of_store(location: str, is_local: bool) -> str | None:
    try:
        parsed = parse_location(location)
    except ValueError as error:
        return str(error)
    if isinstance(parsed, Path):
        is_folder = is_local and "://" not in location and parsed.is_absolute()
        return None if is_folder else "it is a folder of one machine"
    return None if location.startswith(("s3://", "ipfs://")) else _fault_of(location, ("https",), is_local)
