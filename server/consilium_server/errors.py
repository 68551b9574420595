"""Errors of the server room: one class for each decision of a caller, with the printed names of its faults.

ServerError           only a person can help
│                     AlreadyConducting, CertificatesUnusable, SecretExposed, AggregatorEnded, BrokerUrlInvalid,
│                     DatabaseUrlInvalid
├── Unavailable       it may work in a moment: DatabaseUnreachable, BrokerUnreachable, ChainMoved
├── DatabaseUnfit     the database is not of this program or chain: SchemaTooNew, SourceMismatch, IndexDiffers,
│                     EventsInconsistent
├── RequestRefused    a client is told why: NotSponsored, SignInMalformed, SignInRefused, CursorInvalid
├── AnswerBroken      a begun answer is broken off: ClientStalled, ExportReorganised
├── SuperLinkFailed   another SuperLink is started
├── ReplyRefused      a hospital's reply is left out: UploadInvalid, PartFailed, SecondReply
├── SumMismatch       a cohort's sum is not the committed one, and no single upload is to blame
└── CanariesLost      the secrets that disclose a round's decoys are no longer on this aggregator's disk
"""

from __future__ import annotations

import re
from typing import ClassVar

from consilium_core.faults import FaultError


class ServerError(FaultError):
    """Root of this room's errors. Its own faults end a command, or are shown to the operator."""

    MESSAGES: ClassVar = {
        "AlreadyConducting": (
            "another aggregator runs in {home}: stop it first, or name another home; two with one key would publish"
            " one round twice, and pay for it"
        ),
        "CertificatesUnusable": (
            "{path} {why}: restore it, or move its folder away, in whose place another authority is made"
        ),
        "SecretExposed": ("{path} {why}: delete it, and the next start makes another (everybody has to sign in again)"),
        "AggregatorEnded": (
            "the aggregator of task {task} ended before its task did ({cause}); {journal} says more. It is started"
            " again"
        ),
        # Neither URL is ever shown: it may hold a password.
        "BrokerUrlInvalid": (
            "the broker's URL is not of a known kind: write redis://:PASSWORD@HOST:PORT/NUMBER (or rediss://), or leave"
            " it out for jobs within one process"
        ),
        "DatabaseUrlInvalid": (
            "the database's URL is not of a known kind: write sqlite:///PATH or"
            " postgresql://USER:PASSWORD@HOST:PORT/NAME"
        ),
    }


class Unavailable(ServerError):
    MESSAGES: ClassVar = {
        "DatabaseUnreachable": "the database {shown} does not answer ({cause}); start it, or correct its URL",
        "BrokerUnreachable": (
            "the broker takes no messages ({cause}); start it, correct its URL, or see why it refuses to write"
        ),
        "ChainMoved": "the chain was reorganised while it was read ({what}): try again",
    }


class DatabaseUnfit(ServerError):
    MESSAGES: ClassVar = {
        "SchemaTooNew": (
            "the tables of {shown} are of version {revision}, which this program does not know, and it writes nothing"
            " into them: update the program, or name another database"
        ),
        "SourceMismatch": (
            "{shown} holds what {found} said, and the address book names {expected}: name another database, or the"
            " address book that fits"
        ),
        "IndexDiffers": (
            "{rows} rows of {shown} are not what the chain says up to block {last}: run"
            " `consilium server reindex --replace`, and find out who else writes there"
        ),
        "EventsInconsistent": (
            "the events of blocks {first} to {last}, as {url} gives them, do not follow on those before: it leaves"
            " some out, or did; name another node, and run `consilium server reindex --replace` with it"
        ),
    }


class RequestRefused(ServerError):
    """`values["what"]` of SignInRefused: domain, uri, chain, issued-at, expired, not-before, signature or nonce."""

    MESSAGES: ClassVar = {
        "NotSponsored": "{why}",
        "SignInMalformed": "this is no message of Sign-In with Ethereum: {why}",
        "SignInRefused": "the signed message is refused: {why}",
        "CursorInvalid": "this cursor is not one given for this question: begin again without a cursor",
    }


class AnswerBroken(ServerError):
    """The answer has begun, so it can only be broken off: its client sees that the end is missing."""

    MESSAGES: ClassVar = {
        "ClientStalled": "the client took nothing of its answer for {seconds:g} s: its connection is closed",
        "ExportReorganised": ("the chain was reorganised while the history of {account} was sent: ask for it again"),
    }


class SuperLinkFailed(ServerError):
    MESSAGES: ClassVar = {"SuperLinkFailed": "{why}"}


class ReplyRefused(ServerError):
    """PartFailed: the hospital says so, or Flower in its place. It may be able to in a moment."""

    MESSAGES: ClassVar = {
        "UploadInvalid": "upload refused: {why}",
        "PartFailed": "upload refused: {why}",
        "SecondReply": "the hospital sent two different ones of a round's {what}: the first one counts",
    }


class SumMismatch(ServerError):
    MESSAGES: ClassVar = {"SumMismatch": "cohort {cohort}, blob {blob}: the uploads' sum is not the commitments' sum"}


class CanariesLost(ServerError):
    MESSAGES: ClassVar = {
        "CanariesLost": (
            "{path} does not hold a round's seed and blinders: the round cannot be disclosed; restore it from a copy"
            " before the deadline"
        )
    }


def broker_unreachable(error: BaseException) -> Unavailable:
    """Tells of a broker by the code that Redis gave, else by the error's kind: its words may repeat the URL.

    The code is the first word of an error of RESP, before which a pipeline puts its command.
    """
    found = re.search("(?:^|caused error: )([A-Z]{2,20}) ", str(error))
    code = getattr(error, "status_code", None) or (found and found[1])
    return Unavailable("BrokerUnreachable", cause=code or type(error).__name__)
