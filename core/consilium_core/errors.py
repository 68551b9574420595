"""Errors of the core room.

CoreError                   (ChainError derives from it)
├── ConfigInvalid           a configuration is missing, malformed or incomplete
├── KeystoreError           a secret file is missing, readable by others, or does not open with the password
├── StoreMissing            a location of the artifact store does not answer: its artifacts are unknown
├── StoreUnwritable         a location of the artifact store takes no files
├── MirrorUnsupported       the package that reads such a mirror is not installed
├── ArtifactMissing         no location of the store has an artifact of that hash
├── ArtifactCorrupt         an artifact's bytes do not have its hash
├── StarterLost             the process that forks others has ended
└── NotSent                 a webhook or mail server did not take a message
"""

from __future__ import annotations

from consilium_core.faults import Fault


class CoreError(Fault):
    """Root of this room's errors, and of the chain room's."""


class ConfigInvalid(CoreError):
    pass


class KeystoreError(CoreError):
    pass


class StoreMissing(CoreError, FileNotFoundError):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"the artifact store does not answer: {where}; mount it, or correct `artifacts` in the settings"
        )


class StoreUnwritable(CoreError, OSError):
    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        super().__init__(
            f"cannot write to the artifact store at {where} ({why}); free space, correct its permissions, or name"
            " another location first"
        )


class MirrorUnsupported(CoreError):
    def __init__(self, protocol: str, package: str) -> None:
        self.protocol, self.package = protocol, package
        super().__init__(
            f"reading {protocol}:// needs a package that is not installed: run `pip install {package}`, or name a"
            " folder or an https:// mirror"
        )


class ArtifactMissing(CoreError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(f"artifact {digest} is not in {where}; add another mirror, or ask its publisher")


class ArtifactCorrupt(CoreError):
    def __init__(self, digest: str, where: str) -> None:
        super().__init__(
            f"the file {digest} in {where} does not have the hash in its name; delete it and fetch it again"
        )


class StarterLost(CoreError):
    def __init__(self) -> None:
        super().__init__("the process that starts the others has ended; see starter.err in the folder of this run")


class NotSent(CoreError):
    """`is_gone`: the webhook does not want messages any more (410)."""

    def __init__(self, why: str, is_gone: bool = False) -> None:
        self.why, self.is_gone = why, is_gone
        super().__init__(f"the message was not sent: {why}")
