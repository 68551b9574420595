"""Errors of the server room.

ServerError
├── AlreadyConducting     another aggregator runs in the same home
├── SuperLinkFailed       the SuperLink did not start, or ended, or does not answer
├── UploadInvalid         a hospital's reply is not what its round asks for
├── SecondReply           a hospital sent two different ones of what it sends once a round
├── NotSponsored          what an account signed is not what a sponsor pays for
├── CertificatesUnusable  a file of the folder of certificates is not what it should be
├── CanariesLost          what opens a canary round is no longer on this aggregator's disk
├── SignInMalformed       text that is no message of EIP-4361
├── SignInRefused         a message that is for another site, chain or time, or that its account did not sign
├── SecretExposed         the file of the server's secret is not one that it alone can read
├── CursorInvalid         a cursor that this server did not give for this question
├── ClientStalled         a client takes no more of its answer
├── ExportReorganised     the chain took back what a page of an export has already told
├── AggregatorEnded       a task's aggregator ended before its task
├── BrokerUrlInvalid      what should name the broker is no URL of one
├── BrokerUnreachable     the broker does not take messages
├── SumMismatch           uploads add up to something else than was committed, and no single one is to blame
├── DatabaseUrlInvalid    what should name the database is no URL of one
├── DatabaseUnreachable   the database does not answer, or another keeps it busy
├── SchemaTooNew          a later version has changed the database's tables
├── SourceMismatch        the database is of other contracts
├── ChainMoved            the chain was reorganised while it was read
├── EventsInconsistent    what a node says of some blocks does not fit what it said before
└── IndexDiffers          the tables are not what the chain says
"""

from __future__ import annotations

import re


class ServerError(Exception):
    """Root of this room's errors."""


class AlreadyConducting(ServerError):
    def __init__(self, home: str) -> None:
        self.home = home
        super().__init__(
            f"another aggregator runs in {home}: stop it first, or name another home; two with one key would publish"
            " one round twice, and pay for it"
        )


class SuperLinkFailed(ServerError):
    pass


class UploadInvalid(ServerError):
    def __init__(self, why: str) -> None:
        super().__init__(f"upload refused: {why}")


class PartFailed(UploadInvalid):
    """Its hospital says so, or Flower in its place: it may be able to in a moment."""


class SecondReply(ServerError):
    def __init__(self, what: str) -> None:
        super().__init__(f"the hospital sent two different ones of a round's {what}: the first one counts")


class NotSponsored(ServerError):
    pass


class CertificatesUnusable(ServerError):
    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path} {why}: restore it, or move its folder away, in whose place another authority is made")


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


class ClientStalled(ServerError):
    """`seconds`: for which it took nothing."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the client took nothing of its answer for {seconds:g} s: its connection is closed")


class ExportReorganised(ServerError):
    """The answer has begun, so it can only be broken off: its client sees that the end is missing."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f"the chain was reorganised while the history of {account} was sent: ask for it again")


class AggregatorEnded(ServerError):
    """`cause`: the error that it named last in its journal, if any."""

    def __init__(self, task: int, cause: str | None, journal: str) -> None:
        self.task, self.cause, self.journal = task, cause, journal
        super().__init__(
            f"the aggregator of task {task} ended before its task did ({cause or 'it named no error'}); {journal} says"
            " more. It is started again"
        )


class BrokerUrlInvalid(ServerError):
    """Never shows what was given: it may hold a password."""

    def __init__(self) -> None:
        super().__init__(
            "the broker's URL is none that is known: write redis://:PASSWORD@HOST:PORT/NUMBER (or rediss://), or leave"
            " it out for jobs within one process"
        )


class BrokerUnreachable(ServerError):
    def __init__(self, cause: str) -> None:
        self.cause = cause
        super().__init__(
            f"the broker takes no messages ({cause}); start it, correct its URL, or see why it refuses to write"
        )

    @classmethod
    def by(cls, error: BaseException) -> BrokerUnreachable:
        """By the code that Redis gave (the first word of an error of RESP, before which a pipeline puts its command),
        else by the error's kind: its words may repeat the URL.
        """
        found = re.search("(?:^|caused error: )([A-Z]{2,20}) ", str(error))
        code = getattr(error, "status_code", None) or (found and found[1])
        return cls(code or type(error).__name__)


class SumMismatch(ServerError):
    def __init__(self, cohort: int, blob: int) -> None:
        super().__init__(f"cohort {cohort}, blob {blob}: the uploads' sum is not the commitments' sum")


class DatabaseUrlInvalid(ServerError):
    """Never shows what was given: it may hold a password."""

    def __init__(self) -> None:
        super().__init__(
            "the database's URL is none that is known: write sqlite:///PATH or"
            " postgresql://USER:PASSWORD@HOST:PORT/NAME"
        )


class DatabaseUnreachable(ServerError):
    def __init__(self, shown: str, cause: str) -> None:
        self.shown = shown
        super().__init__(f"the database {shown} does not answer ({cause}); start it, or correct its URL")


class SchemaTooNew(ServerError):
    def __init__(self, shown: str, revision: str) -> None:
        self.shown, self.revision = shown, revision
        super().__init__(
            f"the tables of {shown} are of version {revision}, which this program does not know, and it writes nothing"
            " into them: update the program, or name another database"
        )


class SourceMismatch(ServerError):
    def __init__(self, shown: str, found: str, expected: str) -> None:
        self.shown, self.found, self.expected = shown, found, expected
        super().__init__(
            f"{shown} holds what {found} said, and the address book names {expected}: name another database, or the"
            " address book that fits"
        )


class ChainMoved(ServerError):
    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"the chain was reorganised while it was read ({what}): try again")


class EventsInconsistent(ServerError):
    def __init__(self, url: str, first: int, last: int) -> None:
        self.first, self.last = first, last
        super().__init__(
            f"the events of blocks {first} to {last}, as {url} gives them, do not follow on those before: it leaves"
            " some out, or did; name another node, and run `consilium server reindex --replace` with it"
        )


class IndexDiffers(ServerError):
    def __init__(self, shown: str, rows: int, last: int) -> None:
        self.shown, self.rows, self.last = shown, rows, last
        super().__init__(
            f"{rows} rows of {shown} are not what the chain says up to block {last}: run"
            " `consilium server reindex --replace`, and find out who else writes there"
        )
