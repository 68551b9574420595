"""An operator's invite to a task: checked against the chain, and made into a new home's values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from consilium_chain.addresses import checked_address
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.node import DeployNode
from consilium_chain.errors import InviteRefused
from consilium_chain.invites import (
    DAY,
    FORMAT,
    MOST_DAYS,
    USUAL_DAYS,
    Invite,
    SignedInvite,
    certificates_pem,
    read_draft,
    read_invite,
    with_signature,
)
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.wallet_signatures import is_contract
from consilium_client.errors import ConsentError
from consilium_client.home import INVITE_FILE
from consilium_client.task import JoinedTask, load_task
from consilium_core.artifacts.backends import parse_locations
from consilium_core.connectivity import FleetAnswer, ask_fleet, fleet_address, why_refused
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.typed_toml import validation_faults
from consilium_core.visible_text import shown
from cryptography import x509
from pydantic import ValidationError

from consilium.homes import checked_book, checked_locations

if TYPE_CHECKING:
    from consilium.node import Node

ANY, HOSPITAL = "any", "hospital"
LONGEST_TASK_KEY = 80  # characters that are shown of a task's name, as a SuperLink gives it


@dataclass(frozen=True)
class Invitation:
    """A checked invite, and its task. The invite's signer proposed the task on the chain of the node that was asked.

    It proposes a policy, which is the owner's to take: tasks of this operator with this task's model and columns.
    """

    invite: SignedInvite
    task: JoinedTask

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        chain_url: str | None = None,
        artifacts: str | Path | Sequence[str | Path] | None = None,
    ) -> Invitation:
        """Reads an invite's file or link, and checks it. Writes and sends nothing.

        `chain_url`, `artifacts`: instead of the invite's; if a contract signed it, `chain_url` is needed. Raises
        InviteRefused, ChainUnreachable, DeploymentInvalid, ConfigInvalid, Refused (TaskUnknown), ArtifactMissing,
        ArtifactCorrupt, SpecInvalid, SpecMismatch.
        """
        invite = read_invite(source)
        invite.require_current(time.time())
        if invite.signed_by_contract and chain_url is None:
            raise InviteRefused("InviteNeedsOwnNode", operator=invite.operator)
        ledger = invite.require_on_chain(DeployNode(chain_url or invite.chain_url))
        locations = checked_locations(invite.artifacts if artifacts is None else artifacts)
        store = ArtifactStore(parse_locations([locations] if isinstance(locations, str) else locations))
        return cls(invite, load_task(ledger, store, invite.task))

    def policy(self, role: str) -> dict[str, Any]:
        """The rules that it proposes."""
        spec = self.task.spec
        rules = {"operators": [self.invite.operator], "models": [spec.model.name]}
        if role == HOSPITAL:
            return rules | {"columns": list(spec.data.used)}
        return rules | {"metrics": [spec.judging.metric]}

    def require_from(self, operators: Sequence[str]) -> None:
        """Raises InviteRefused (InviteOfAnother) unless one of these accounts, or "any", signed it."""
        if operators != ANY and self.invite.operator.lower() not in {one.lower() for one in operators}:
            found, asked = f"by {self.invite.operator}", f"by {', '.join(operators)}"
            raise InviteRefused("InviteOfAnother", found=found, asked=asked)


def new_values(
    invite: str | Path | Invitation | None, role: str, confirm: Callable[[Invitation], bool], values: Mapping[str, Any]
) -> tuple[SignedInvite | None, dict[str, Any]]:
    """The values of a new home: those that are not None, else an invite's, else the usual ones.

    Raises TypeError if a value is missing, or stands against the invite; ConsentError (NotConfirmed), and as
    `Invitation.open` does.
    """
    given = {name: value for name, value in values.items() if value is not None}
    if invite is None:
        usual = {"chain_url": LOCAL_RPC, "address_book": LOCAL_ADDRESS_BOOK, "models": ANY}
        usual |= {"columns": ANY} if role == HOSPITAL else {"metrics": ANY}
        if missing := [name for name in ("artifacts", "operators") if name not in given]:
            raise TypeError(f"pass {' and '.join(missing)}, or an invite")
        return None, usual | given
    if "address_book" in given:
        raise TypeError("pass an invite or an address book: the invite names the contracts")
    found = invite
    if not isinstance(found, Invitation):
        found = Invitation.open(found, chain_url=given.get("chain_url"), artifacts=given.get("artifacts"))
    found.require_from(given.get("operators", ANY))
    if not confirm(found):
        raise ConsentError("NotConfirmed", about=f"the invite to task {found.invite.shown_tasks}")
    content = found.invite
    own = {"chain_url": content.chain_url, "address_book": content.deployment, "artifacts": content.artifacts}
    own |= {name: url for name in ("report_to", "sponsor_url") if (url := getattr(content, name))}
    return content, own | found.policy(role) | given


def way_to(
    node: Node[Any], task: int, superlink: str | None, ca_certificate: str | Path | None, invite: str | Path | None
) -> tuple[str, bytes]:
    """The address of a task's SuperLink, and its authority (PEM): as given, or as an invite has both. By default the
    invite is the one by which the home was made.

    Raises ValueError, TypeError, InviteRefused, ConsentError (CertificateInvalid, SuperLinkUnknown).
    """
    if superlink is not None and ca_certificate is not None:
        fleet_address(superlink)
        return superlink, _certificate(Path(ca_certificate))
    if superlink is not None or ca_certificate is not None:
        raise TypeError("pass superlink and ca_certificate, or neither")
    found = invite_of(node, invite)
    if found is None or (invite is None and task not in found.superlinks):
        raise ConsentError("SuperLinkUnknown", task=task)
    found.require_of(node._ledger, task)
    return found.superlinks[task], found.authority.encode()


def invite_of(node: Node[Any], invite: str | Path | None) -> SignedInvite | None:
    """An invite by its file or link, or else the one by which the home was made. Raises InviteRefused."""
    if invite is None:  # the kept one was in time when its owner took it
        kept = node.folder / INVITE_FILE
        return read_invite(kept) if kept.exists() else None
    found = read_invite(invite)
    found.require_current(time.time())
    return found


class InviteTerms(TypedDict, total=False):
    """The arguments of `Operator.invite` beside the task."""

    superlink: Required[str | Sequence[str]]
    ca_certificate: Required[str | Path]
    artifacts: Required[Sequence[str]]
    chain_url: str | None
    days: int
    name: str
    sponsor_url: str
    sponsor_ca: str | Path | None
    report_to: str
    on_doubt: Callable[[str, str], None]


def draft_invite(task: int, operator: str, rpc: str, address_book: str | Path, **terms: Unpack[InviteTerms]) -> Invite:
    """An invite by an account that signs elsewhere: a contract, such as a Safe, or a wallet's key. `typed` is for the
    account to sign (EIP-712), and `written` for `finish_invite`. The other arguments, and the errors, are those of
    `Operator.invite`; also NotPossible (AddressMalformed, AddressMistyped).
    """
    account, node = checked_address(operator), DeployNode(rpc)
    return drafted(Ledger(node, checked_book(address_book)), task, account, is_contract(node.code(account)), terms)


def finish_invite(draft: str | Path, signature: str, rpc: str) -> SignedInvite:
    """The invite of a draft's file with its account's signature (0x and hexadecimal digits), which is checked.

    Raises InviteRefused (InviteForged, …), ChainUnreachable, DeploymentInvalid.
    """
    found = with_signature(read_draft(draft), signature)
    found.require_current(time.time())
    found.require_on_chain(DeployNode(rpc))
    return found


def drafted(ledger: Ledger, task: int, account: str, signed_by_contract: bool, terms: InviteTerms) -> Invite:
    """An invite of this account before it is signed. Raises as `Operator.invite` does."""
    days = terms.get("days", USUAL_DAYS)
    if not 1 <= days <= MOST_DAYS:
        raise InviteRefused("InviteMalformed", why=f"it is for {days} days: give it 1 to {MOST_DAYS}")
    authority, sponsors = Path(terms["ca_certificate"]), terms.get("sponsor_ca")
    links = terms["superlink"]
    first, *others = [links] if isinstance(links, str) else links
    try:
        invite = Invite.model_validate(
            {
                "format": FORMAT, "deployment": ledger.deployment, "operator": account, "task": task,
                "superlink": first, "signed_by_contract": signed_by_contract,
                "shards": [{"task": task + index, "superlink": link} for index, link in enumerate(others, 1)],
                "chain_url": terms.get("chain_url") or ledger.connection.endpoint.url,
                "artifacts": tuple(terms["artifacts"]),
                "authority": certificates_pem(_certificate(authority)),
                "sponsor_authority": certificates_pem(_certificate(Path(sponsors))) if sponsors else None,
                "expires_at": int(time.time()) + days * DAY,
                **{name: terms.get(name, "") for name in ("name", "sponsor_url", "report_to")},
            }
        )  # fmt: skip
    except ValidationError as error:
        raise InviteRefused("InviteMalformed", why=validation_faults(error)) from None
    except ValueError as error:
        raise InviteRefused("InviteMalformed", why=str(error)) from None
    invite.require_safe()
    invite.require_stores(invite.require_on_chain(DeployNode(invite.chain_url)))
    _require_superlinks(invite, authority, terms.get("on_doubt", lambda link, why: None))
    return invite


def _require_superlinks(invite: Invite, authority: Path, on_doubt: Callable[[str, str], None]) -> None:
    """Asks all SuperLinks, which may start later: a reason why hospitals could not use one now goes to `on_doubt`.

    Raises InviteRefused (InviteSuperLinkWrong) if one serves another task.
    """
    with ThreadPoolExecutor(len(invite.superlinks)) as pool:
        asked = pool.map(lambda link: ask_fleet(fleet_address(link), authority), invite.superlinks.values())
        for (task, link), answer in zip(invite.superlinks.items(), asked, strict=True):
            task_key = invite.deployment.folder_name(task)
            if isinstance(answer, FleetAnswer) and not answer.may_serve(task_key):
                found = shown(answer.task or "", LONGEST_TASK_KEY)
                raise InviteRefused("InviteSuperLinkWrong", superlink=link, found=found, task=task)
            if why := answer if isinstance(answer, str) else why_refused(answer, task_key):
                on_doubt(link, why)


def _certificate(path: Path) -> bytes:
    """Raises CertificateInvalid."""
    try:
        raw = path.read_bytes()
        x509.load_pem_x509_certificates(raw)
    except (OSError, ValueError) as error:
        raise ConsentError("CertificateInvalid", path=path) from error
    return raw
