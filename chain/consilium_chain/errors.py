"""Errors of the chain room.

ChainError
├── ChainUnreachable        no node answers at the URL
├── NotPossible             this installation, chain or file is not fit for what was asked
├── Refused                 the contract refused a call: carries the Solidity error's name and values
├── TransactionRejected     the chain node took no transaction: most often for want of ether
│   ├── EtherMissing            the account has less ether than the transaction may cost
│   └── SponsorFailed           the sponsor of this account did not carry its transaction out
├── DeploymentInvalid       the address book is missing, malformed or of another chain
├── DeployFailed            contracts were not, or not all, deployed
├── RelayFailed             one drand relay gave no proof of a round
├── RandomnessUnavailable   no drand relay gave a proof of a round: carries each one's failure
├── LocalNodeError          the local node did not start, or has ended, or its port is taken
├── SignedUpdateMalformed   bytes from a hospital are not a signed update
├── StoreMissing            a part of the artifact store does not answer, which says nothing about any artifact
├── StoreUnwritable         nothing can be written to a part of the artifact store
├── MirrorUnsupported       the package that reaches such a store is not installed
├── ArtifactMissing         no artifact of that hash in any part of the store
├── ArtifactCorrupt         an artifact's bytes do not have its hash
├── RecordIncomplete        the public record does not give a model, statistics or canaries yet, or gives none
├── SpecInvalid             a task file is malformed, or its values do not fit together
├── SpecMismatch            a task file is not the one that the chain names
├── TransportKeyMalformed   a node key is not one of P-256
├── SettlementInvalid       a round's record is not one that a chain could hold
├── ConfigInvalid           a node's configuration file is missing, malformed or incomplete
└── KeystoreError           a key file is missing, readable by others, or does not open with the password
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from consilium_core.faults import FaultError
from consilium_core.units import ether


class ChainError(Exception):
    """Root of this room's errors."""


DISK_FAULTS = {errno.ENOSPC: "DiskFull", errno.EDQUOT: "DiskFull", errno.EROFS: "DiskReadOnly"}


def name_of(error: Exception) -> str:
    """The name of an error in logs and on screens: a contract's refusal by its Solidity name, a disk that takes nothing
    by that, an error with faults by its fault, and all others by their class."""
    if isinstance(error, OSError) and error.errno in DISK_FAULTS:
        return DISK_FAULTS[error.errno]
    return error.name if isinstance(error, (Refused, FaultError)) else type(error).__name__


class ChainUnreachable(ChainError):
    def __init__(self, url: str, cause: str) -> None:
        self.url = url
        super().__init__(
            f"no chain node answers at {url} ({cause}); start one (`consilium chain local`) or pass another URL"
        )


class NotPossible(FaultError, ChainError):
    """This installation, chain or file is not fit for what was asked, and nothing else can be tried instead."""

    MESSAGES: ClassVar = {
        "ContractsNotBuilt": "contract artifacts are missing at {path}; run `make contracts`",
        "CellProverEnded": (
            "process {pid}, which proves blobs' cells, ended: start this node anew; see that memory is left"
        ),
        "BlobsUnavailable": (
            "chain {chain_id} takes no blob transactions (EIP-4844), and this task publishes its sums as blobs: write"
            ' publication = "digests" under [update] in its file'
        ),
        "ArtifactTooLong": "file {digest} has {size:,} bytes, and artifacts at most {limit:,}: make it shorter",
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
            f"the chain node at {url} rejected {call} of {account}: {why}; see that this account has ether for gas"
        )


class EtherMissing(TransactionRejected):
    """`balance` and `needed`: in wei, the latter the most that the transaction may cost."""

    def __init__(self, call: str, account: str, url: str, balance: int, needed: int) -> None:
        self.call, self.account, self.balance, self.needed = call, account, balance, needed
        ChainError.__init__(
            self,
            f"the chain node at {url} rejected {call} of {account}, which has {ether(balance)} ether and may have to"
            f" pay {ether(needed)}: send it {ether(self.missing)}",
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
            f"the sponsor at {url} carried out nothing for {account} ({why}); try again, name another sponsor, or send"
            " this account some ether, with which it needs none",
        )


class DeploymentInvalid(ChainError):
    pass


class DeployFailed(FaultError, ChainError):
    """A deployment ended with a fault. Another run of it goes on from there."""

    MESSAGES: ClassVar = {
        "NetworkUnknown": "no network {network!r}; known are {known}; add it to a file, and pass --networks",
        "ChainMismatch": (
            "{network} is chain {expected}, but {url} is a node of chain {found}: correct the URL or the chain_id"
        ),
        "PrecompileMissing": (
            "chain {chain_id}, by its node at {url}, lacks the precompile {precompile} ({rule}) at 0x{address:x}, and"
            " the contracts call it: deploy to a chain with Ethereum's upgrade Osaka; start anvil without --hardfork"
        ),
        "BookTaken": "the address book {path} is there already: {why}; pass another --address-book or move it",
        "JournalInvalid": "the deployment journal {path} {why}",
        "JournalStale": "{why}",
        "DeploymentRunning": (
            "another deployment writes into {folder}: wait for its end, or pass another --address-book"
        ),
        "ContractTooLarge": (
            "{contract} has {size:,} bytes of {part}, and chains take {limit:,} ({rule}): split it, or optimise for"
            " size"
        ),
        "DeployerUnfunded": (
            "{account} must hold {needed} ether to deploy and lacks {missing}: send it that, or try again when fees"
            " are lower"
        ),
        "NotConfirmed": "nothing was sent: answer y, or pass --yes if nobody can answer",
        "DeploymentPending": (
            "{call} is not on the chain yet (transaction {transaction}): run the same command again, which waits for it"
        ),
        "DeploymentReverted": (
            "{call} failed on the chain (transaction {transaction}): look it up in an explorer, then run the same"
            " command again, which sends it anew"
        ),
        "CodeMismatch": (
            "{contract} at {address}: {why}; build the version that was deployed, or move the journal away to deploy"
            " anew"
        ),
        "WiringWrong": "{field} is {found} instead of {expected}: do not use this deployment; deploy anew",
    }


class RelayFailed(FaultError, ChainError):
    """A drand relay gave no proof of the round in its URL; the others may."""

    MESSAGES: ClassVar = {
        "RelayUnreachable": "{url}: {why}",
        "RelayAnswerMalformed": "{url}: {why}",
        "RelayRoundWrong": "{url}: it answers with round {found}",
        "RelaySignatureInvalid": "{url}: its signature is not the chain's on this round",
    }


class RandomnessUnavailable(ChainError):
    def __init__(self, round: int, failures: Sequence[RelayFailed]) -> None:
        self.round, self.failures = round, tuple(failures)
        told = "; ".join(map(str, failures))
        super().__init__(
            f"no relay proves drand round {round} ({told}); try again, or name other relays in `drand_relays`"
        )


class LocalNodeError(ChainError):
    pass


class SignedUpdateMalformed(ChainError):
    def __init__(self, why: str) -> None:
        super().__init__(f"no signed update: {why}")


class StatementMalformed(ChainError):
    """A masked upload without what its hospital must sign on it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no signed statement on the upload: {why}")


class StoreMissing(ChainError, FileNotFoundError):
    def __init__(self, where: str) -> None:
        super().__init__(f"there is no artifact store at {where}; mount it, or correct `artifacts` in the settings")


class StoreUnwritable(ChainError, OSError):
    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        super().__init__(
            f"nothing can be written to the artifact store at {where} ({why}); free space, correct its permissions, or"
            " name another place first"
        )


class MirrorUnsupported(ChainError):
    def __init__(self, protocol: str, package: str) -> None:
        self.protocol, self.package = protocol, package
        super().__init__(
            f"an artifact store at {protocol}:// needs a package that is not installed: `pip install {package}`, or"
            " name a folder or an https:// mirror"
        )


class ArtifactMissing(ChainError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(f"artifact {digest} is not in {where}; add another mirror, or ask its publisher")


class ArtifactCorrupt(ChainError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(
            f"the bytes stored as {digest} in {where} hash to something else; delete the file and fetch it again"
        )


class RecordIncomplete(ChainError):
    pass


class SpecInvalid(ChainError):
    pass


class SpecMismatch(ChainError):
    pass


class TransportKeyMalformed(ChainError):
    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(f"not an ECDSA P-256 key: {found}; make one with `ssh-keygen -t ecdsa -b 256 -N ''`")


class SettlementInvalid(ChainError):
    pass


class ConfigInvalid(ChainError):
    pass


class KeystoreError(ChainError):
    pass
