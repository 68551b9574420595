"""Errors of the chain room.

ChainError
├── ChainUnreachable        no node answers at the URL
├── NotPossible             this installation, chain or file does not allow the operation
├── Refused                 the contract refused a call: carries the Solidity error's name and values
├── TransactionRejected     the chain node rejected a transaction: most often the account lacks ether
│   ├── EtherMissing            the account has less ether than the transaction may cost
│   └── SponsorFailed           the sponsor did not send this account's transaction
├── DeploymentInvalid       the address book is missing, malformed or of another chain
├── DeployFailed            a deployment stopped before its end
├── RelayFailed             one drand relay gave no proof of a round
├── RandomnessUnavailable   no drand relay gave a proof of a round: carries each relay's failure
├── LocalNodeError          the local node did not start or has ended, or its port is in use
├── SignedUpdateMalformed   bytes from a hospital are not a signed update
├── InviteRefused           an invite is damaged, expired, unsafe, or not by the task's operator
├── ProfileInvalid          a profile breaks a rule: the text names the field and the remedy
├── ProfileRefused          a server did not take a profile
├── StatementMalformed      bytes from a hospital are not a signed statement
├── SiteReportInvalid       a node's report of a model is not signed by it, or is of something else
├── RecordIncomplete        the public record does not give a model, statistics or decoys (yet)
├── SpecInvalid             a task file is malformed, or its values do not fit together
├── SpecMismatch            the hash of a task file is not the hash on the chain
├── TransportKeyMalformed   a node key is not a P-256 key
└── SettlementInvalid       no round on a chain can have this record
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from consilium_core.errors import CoreError
from consilium_core.faults import Fault, FaultError
from consilium_core.units import ether


class ChainError(CoreError):
    """Root of this room's errors."""


DISK_FAULTS = {errno.ENOSPC: "DiskFull", errno.EDQUOT: "DiskFull", errno.EROFS: "DiskReadOnly"}


def name_of(error: Exception) -> str:
    """The name of an error in logs and on screens: a Solidity error's, a disk fault's, a fault's, else the class's."""
    if isinstance(error, OSError) and error.errno in DISK_FAULTS:
        return DISK_FAULTS[error.errno]
    return error.name if isinstance(error, Fault) else type(error).__name__


class ChainUnreachable(ChainError):
    def __init__(self, url: str, cause: str) -> None:
        self.url = url
        super().__init__(
            f"no chain node answers at {url} ({cause}); start one (`consilium chain local`), or pass another URL"
        )


class NotPossible(FaultError, ChainError):
    """This installation, chain or file does not allow the operation. A second try does not help."""

    MESSAGES: ClassVar = {
        "ContractsNotBuilt": "the compiled contract {path} is missing; run `make contracts`",
        "CellProverEnded": (
            "process {pid} ended before it proved the cells of a blob; restart this node, and check its free memory"
        ),
        "BlobsUnavailable": (
            "this task publishes its sums as blobs, and chain {chain_id} takes no blob transactions (EIP-4844); write"
            ' publication = "digests" under [update] in the task file'
        ),
        "ChainNotLocal": (
            "nothing was sent: the node is on chain {chain_id}, and the faucet is on the local chain ({local}) only;"
            " pass the --rpc of `consilium chain local`, or send tokens and ether with a wallet"
        ),
        "FaucetShort": (
            "nothing was sent: the faucet has {tokens:,} tokens and {ether:,} ether to give; ask for less, or start the"
            " local chain anew"
        ),
        "AddressMalformed": "this is not an address: it needs 0x and 40 hexadecimal digits",
        "AddressMistyped": "mistyped: the capital letters do not match the checksum (EIP-55)",
        "ArtifactTooLong": "file {digest} has {size:,} bytes, more than the {limit:,} of an artifact; make it shorter",
    }


class Refused(ChainError):
    """The contract refused a call; `name` is its Solidity error, `values` that error's fields, `data` both in bytes."""

    def __init__(self, name: str, values: Mapping[str, Any], call: str, data: bytes = b"") -> None:
        self.name, self.values, self.call, self.data = name, dict(values), call, data
        shown = ", ".join(f"{k}={v}" for k, v in self.values.items())
        super().__init__(f"the contract refused {call}: {name}({shown})")


class TransactionRejected(ChainError):
    def __init__(self, call: str, account: str, url: str, why: str) -> None:
        self.call, self.account = call, account
        super().__init__(
            f"the chain node at {url} rejected {call} of {account}: {why}; check that this account has ether for gas"
        )


class EtherMissing(TransactionRejected):
    """`balance` and `needed` in wei. `needed`: the most that the transaction may cost."""

    def __init__(self, call: str, account: str, url: str, balance: int, needed: int) -> None:
        self.call, self.account, self.balance, self.needed = call, account, balance, needed
        ChainError.__init__(
            self,
            f"the chain node at {url} rejected {call} of {account}: the account has {ether(balance)} ether, and the"
            f" call may cost {ether(needed)}; send it {ether(self.missing)} ether",
        )

    @property
    def missing(self) -> int:
        """In wei."""
        return self.needed - self.balance


class SponsorFailed(TransactionRejected):
    def __init__(self, url: str, account: str, why: str) -> None:
        self.call, self.account, self.url, self.why = "execute", account, url, why
        ChainError.__init__(
            self,
            f"the sponsor at {url} did not send the transaction of {account} ({why}); try again, name another sponsor,"
            " or send this account some ether, so that it needs no sponsor",
        )


class DeploymentInvalid(ChainError):
    pass


class DeployFailed(FaultError, ChainError):
    """A deployment stopped. The next run of the same command continues it."""

    MESSAGES: ClassVar = {
        "NetworkUnknown": "network {network!r} is unknown; choose {known}, or add it to a file and pass --networks",
        "ChainMismatch": (
            "{network} is chain {expected}, but {url} is a node of chain {found}; correct the URL or the chain_id"
        ),
        "PrecompileMissing": (
            "chain {chain_id} (node {url}) lacks the precompile {precompile} ({rule}) at 0x{address:x}, which the"
            " contracts call; deploy to a chain with Ethereum's Osaka upgrade, or start anvil without --hardfork"
        ),
        "BookTaken": "the address book {path} exists already: {why}; pass another --address-book, or move it away",
        "JournalInvalid": "the deployment journal {path} {why}",
        "JournalStale": "{why}",
        "DeploymentRunning": (
            "another deployment writes to {folder}; wait until it ends, or pass another --address-book"
        ),
        "ContractTooLarge": (
            "{contract} has {size:,} bytes of {part}, more than the {limit:,} that chains take ({rule}); split"
            " it, or optimise for size"
        ),
        "DeployerUnfunded": (
            "{account} needs {needed} ether to deploy and lacks {missing}; send it {missing} ether, or try"
            " again when fees are lower"
        ),
        "NotConfirmed": "the deployment was not confirmed and nothing was sent; answer y, or pass --yes",
        "DeploymentPending": (
            "{call} is not on the chain yet (transaction {transaction}); run the same command again to wait for it"
        ),
        "DeploymentReverted": (
            "{call} failed on the chain (transaction {transaction}); look it up in an explorer, then run the same"
            " command again to send it anew"
        ),
        "CodeMismatch": (
            "{contract} at {address}: {why}; build the version that was deployed, or move the journal away to deploy"
            " everything anew"
        ),
        "WiringWrong": "{field} is {found} instead of {expected}; do not use this deployment, and deploy anew",
    }


class RelayFailed(FaultError, ChainError):
    """A drand relay gave no proof of the round. Another relay may."""

    MESSAGES: ClassVar = {
        "RelayUnreachable": "{url}: {why}",
        "RelayAnswerMalformed": "{url}: {why}",
        "RelayRoundWrong": "{url}: the answer is of round {found}",
        "RelaySignatureInvalid": "{url}: the signature is not the drand chain's on this round",
    }


class RandomnessUnavailable(ChainError):
    def __init__(self, round: int, failures: Sequence[RelayFailed]) -> None:
        self.round, self.failures = round, tuple(failures)
        reasons = "; ".join(map(str, failures))
        super().__init__(
            f"no relay proves drand round {round} ({reasons}); try again, or name other relays in `drand_relays`"
        )


class LocalNodeError(ChainError):
    pass


class SignedUpdateMalformed(ChainError):
    def __init__(self, why: str) -> None:
        super().__init__(f"the bytes are not a signed update: {why}")


class SiteReportInvalid(ChainError):
    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"a site's report is refused: {why}; ask its node for the file that `evaluate --share` wrote")


class InviteRefused(FaultError, ChainError):
    """An invite is of no use. Nothing was written."""

    MESSAGES: ClassVar = {
        "InviteUnreadable": "the invite {path} cannot be read: {why}; pass the operator's file, or its link",
        "InviteTooLong": "the invite has more than {most:,} bytes, so it is none; pass the operator's file",
        "InviteMalformed": "the invite is damaged: {why}; ask its operator for it again",
        "InviteVersionUnknown": "the invite is of the form {version}, and this program knows {known}; install the"
        " operator's version",
        "InviteUnsafe": "the invite's `{field}` cannot be used: {why}; ask its operator for another one, with"
        " public https URLs and no secrets",
        "InviteForged": "the invite is not signed by {operator}, which it names; ask this operator for it again",
        "InviteNeedsOwnNode": "the contract {operator} signed the invite, so only a chain node can judge the signature,"
        " and the invite's own node could lie; pass --chain-url with a node that you trust",
        "InviteExpired": "the invite expired {days:.1f} days ago; ask its operator for another one",
        "InviteNotOperators": "the invite's signer {signer} did not propose task {task}: {operator} did. Do not join;"
        " ask the operator by another way",
        "InviteContractsWrong": "the invite's contracts do not belong together ({wrong}). Do not join; ask the operator"
        " by another way",
        "InviteNotShards": "task {task} and task {first} of the invite are not shards of one model; ask its operator"
        " for it again",
        "InviteTooLate": "no more nodes can join task {task}; ask its operator for an invite to another one",
        "InviteOneStore": "task {task} publishes by digest, so its sums are in artifact stores alone, and the invite"
        " names one host of a store ({named}); name a second one with another --artifacts, so that one may fail",
        "InviteSuperLinkWrong": "the SuperLink {superlink} serves {found} and not task {task}, so nothing was signed;"
        " `consilium server aggregators` shows each task's port",
        "InviteOfAnother": "the invite is {found}, and not {asked}; pass the right one",
    }


class ProfileInvalid(ChainError):
    pass


class ProfileRefused(ChainError):
    def __init__(self, url: str, why: str) -> None:
        self.url, self.why = url, why
        super().__init__(f"{url} did not take the profile: {why}")


class StatementMalformed(ChainError):
    """A masked upload lacks its hospital's signed statement."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the upload has no signed statement: {why}")


class RecordIncomplete(ChainError):
    pass


class SpecInvalid(ChainError):
    pass


class SpecMismatch(ChainError):
    pass


class TransportKeyMalformed(ChainError):
    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(f"the node key is not an ECDSA P-256 key ({found}); run `ssh-keygen -t ecdsa -b 256 -N ''`")


class SettlementInvalid(ChainError):
    pass
