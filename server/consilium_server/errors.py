"""Errors of the server room.

ServerError
├── SuperLinkFailed       the SuperLink did not start, or ended
├── UploadInvalid         a hospital's reply is not what its round asks for
├── SecondReply           a hospital sent two different ones of what it sends once a round
├── NotSponsored          what an account signed is not what a sponsor pays for
├── CanariesLost          what opens a canary round is no longer on this aggregator's disk
├── SignInMalformed       text that is no message of EIP-4361
├── SignInRefused         a message that is for another site, chain or time, or that its account did not sign
├── SecretExposed         the file of the server's secret is not one that it alone can read
├── CursorInvalid         a cursor that this server did not give for this question
└── SumMismatch           uploads add up to something else than was committed, and no single one is to blame
"""

from __future__ import annotations


class ServerError(Exception):
    """Root of this room's errors."""


class SuperLinkFailed(ServerError):
    pass


class UploadInvalid(ServerError):
    def __init__(self, why: str) -> None:
        super().__init__(f"upload refused: {why}")


class SecondReply(ServerError):
    def __init__(self, what: str) -> None:
        super().__init__(f"the hospital sent two different ones of a round's {what}: the first one counts")


class NotSponsored(ServerError):
    pass


class CanariesLost(ServerError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} does not hold a round's seed and blinders: the round cannot be opened; restore it from a copy"
            " before the opening's deadline"
        )


class SignInMalformed(ServerError):
    def __init__(self, why: str) -> None:
        super().__init__(f"this is no message of Sign-In with Ethereum: {why}")


class SignInRefused(ServerError):
    """`what`: domain, uri, chain, issued-at, expired, not-before, signature or nonce."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        super().__init__(f"the signed message is refused: {why}")


class SecretExposed(ServerError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} {why}: delete it, and another is made at the next start (who is signed in signs in again)"
        )


class CursorInvalid(ServerError):
    def __init__(self) -> None:
        super().__init__("this cursor is not one given for this question: begin again without a cursor")


class SumMismatch(ServerError):
    def __init__(self, cohort: int, blob: int) -> None:
        super().__init__(f"cohort {cohort}, blob {blob}: the uploads' sum is not the commitments' sum")
