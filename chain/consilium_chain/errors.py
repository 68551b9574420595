"""Errors of the chain room.

ChainError
├── ChainUnreachable        no node answers at the URL
├── ContractsNotBuilt       the contracts' ABI and bytecode are missing from this installation
├── Refused                 the contract refused a call: carries the Solidity error's name and values
├── TransactionRejected     the chain node took no transaction: most often for want of ether
├── DeploymentInvalid       the address book is missing, malformed or of another chain
├── CellProverEnded         a process that proves blobs' cells ended
├── RelayFailed             one drand relay gave no proof of a round
│   ├── RelayUnreachable        it does not answer, not in time, or with an error
│   ├── RelayAnswerMalformed    what it answers is not a round
│   ├── RelayRoundWrong         it answers with another round
│   └── RelaySignatureInvalid   its signature is not the drand chain's on that round
├── RandomnessUnavailable   no drand relay gave a proof of a round: carries each one's failure
├── LocalNodeError          the local node did not start, or its port is taken
├── ArtifactMissing         no artifact of that hash in the store
├── ArtifactCorrupt         an artifact's bytes do not have its hash
├── SpecInvalid             a task file is malformed, or its values do not fit together
├── SpecMismatch            a task file is not the one that the chain names
├── SettlementInvalid       a round's record is not one that a chain could hold
├── ConfigInvalid           a node's configuration file is missing, malformed or incomplete
└── KeystoreError           a key file is missing, readable by others, or does not open with the password
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ChainError(Exception):
    """Root of this room's errors."""


class ChainUnreachable(ChainError):
    def __init__(self, url: str, cause: str) -> None:
        self.url = url
        super().__init__(
            f"no chain node answers at {url} ({cause}); start one (`consilium chain local`) or pass another URL"
        )


class ContractsNotBuilt(ChainError):
    def __init__(self, path: str) -> None:
        super().__init__(f"contract artifacts are missing at {path}; run `make contracts`")


class Refused(ChainError):
    """The contract refused a call; `name` is its Solidity error, `values` that error's fields."""

    def __init__(self, name: str, values: Mapping[str, Any], call: str) -> None:
        self.name, self.values, self.call = name, dict(values), call
        shown = ", ".join(f"{k}={v}" for k, v in self.values.items())
        super().__init__(f"the contract refused {call}: {name}({shown})")


class TransactionRejected(ChainError):
    def __init__(self, call: str, account: str, url: str, why: str) -> None:
        self.call, self.account = call, account
        super().__init__(
            f"the chain node at {url} rejected {call} of {account}: {why}; see that this account has ether for gas"
        )


class DeploymentInvalid(ChainError):
    pass


class CellProverEnded(ChainError):
    def __init__(self, pid: int) -> None:
        super().__init__(
            f"process {pid}, which proves blobs' cells, ended: start this node anew; see that memory is left"
        )


class RelayFailed(ChainError):
    """A drand relay gave no proof of `round`; the others may."""

    def __init__(self, url: str, round: int, what: str) -> None:
        self.url, self.round = url, round
        super().__init__(f"{url}: {what}")


class RelayUnreachable(RelayFailed):
    pass


class RelayAnswerMalformed(RelayFailed):
    pass


class RelayRoundWrong(RelayFailed):
    pass


class RelaySignatureInvalid(RelayFailed):
    pass


class RandomnessUnavailable(ChainError):
    def __init__(self, round: int, failures: Sequence[RelayFailed]) -> None:
        self.round, self.failures = round, tuple(failures)
        told = "; ".join(map(str, failures))
        super().__init__(
            f"no relay proves drand round {round} ({told}); try again, or name other relays in `drand_relays`"
        )


class LocalNodeError(ChainError):
    pass


class ArtifactMissing(ChainError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(f"artifact {digest} is not in {where}; add another mirror, or ask its publisher")


class ArtifactCorrupt(ChainError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(
            f"the bytes stored as {digest} in {where} hash to something else; delete the file and fetch it again"
        )


class SpecInvalid(ChainError):
    pass


class SpecMismatch(ChainError):
    pass


class SettlementInvalid(ChainError):
    pass


class ConfigInvalid(ChainError):
    pass


class KeystoreError(ChainError):
    pass
