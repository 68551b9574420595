"""Errors of the server room: one class for each decision of a caller, with the printed names of its faults.

ServerError           a person must correct it
│                     AlreadyConducting, LeaseHeld, LeaseLost, CertificatesUnusable, SecretExposed, AggregatorEnded,
│                     MachineFull, BrokerUrlInvalid, DatabaseUrlInvalid
├── Unavailable       a later attempt may work: DatabaseUnreachable, BrokerUnreachable, ChainMoved
├── DatabaseUnfit     the database does not fit this program or chain: SchemaTooNew, SourceMismatch, IndexDiffers,
│                     EventsInconsistent
├── RequestRefused    the client gets the reason: NotSponsored, SignInMalformed, SignInRefused, CursorInvalid
├── AnswerBroken      an answer that has begun is broken off: ClientStalled, ExportReorganised
├── SuperLinkFailed   another SuperLink is started
├── ReplyRefused      a hospital's reply is not used: UploadInvalid, PartFailed, SecondReply
├── SumMismatch       a cohort's sum is not the committed one, and no single upload explains it
└── DecoysLost      the secrets that disclose a round's decoys are on no disk of this aggregator
"""

from __future__ import annotations

import re
from typing import ClassVar

from consilium_core.faults import FaultError


class ServerError(FaultError):
    """Root of this room's errors. Its own faults end a command, or the operator sees them."""

    MESSAGES: ClassVar = {
        "AlreadyConducting": (
            "another aggregator runs in {home}: stop it first, or use another home. Two aggregators with one key would"
            " publish a round twice, and be slashed for it"
        ),
        "LeaseHeld": (
            "another machine ({owner}) runs the aggregator of {task_key}: stop it there, or wait until its lease of"
            " half a minute ends"
        ),
        "LeaseLost": (
            "another machine runs the aggregator of {task_key} now, because this one did not renew its lease in time."
            " All goes on there: find out why the database did not answer here"
        ),
        "CertificatesUnusable": (
            "{path} {why}: restore it, or move its folder away. The next start then makes a new authority"
        ),
        "SecretExposed": "{path} {why}: delete it. The next start makes a new one, and all users must sign in again",
        "AggregatorEnded": (
            "the aggregator of task {task} ended before the task ({cause}): read {journal}. The worker starts it again"
        ),
        "MachineFull": (
            "task {task} has no aggregator, because this machine runs {most}: raise max_aggregators, or start a worker"
            " of the same account and database on another machine"
        ),
        # These messages never show the URL, because it may contain a password.
        "BrokerUrlInvalid": (
            "the broker's URL is not valid: write redis://:PASSWORD@HOST:PORT/NUMBER (or rediss://), or leave it out to"
            " keep jobs in one process"
        ),
        "DatabaseUrlInvalid": (
            "the database's URL is not valid: write sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME"
        ),
    }


class Unavailable(ServerError):
    MESSAGES: ClassVar = {
        "DatabaseUnreachable": "the database {shown} does not answer ({cause}): start it, or correct its URL",
        "BrokerUnreachable": (
            "the broker accepts no messages ({cause}): start it, correct its URL, or find out why it refuses to write"
        ),
        "ChainMoved": "the chain was reorganised during the read ({what}): try again",
    }


class DatabaseUnfit(ServerError):
    MESSAGES: ClassVar = {
        "SchemaTooNew": (
            "the tables of {shown} have the unknown version {revision}, so this program writes nothing: update the"
            " program, or use another database"
        ),
        "SourceMismatch": (
            "{shown} is the index of {found}, but the address book names {expected}: use another database, or the"
            " matching address book"
        ),
        "IndexDiffers": (
            "{rows} rows of {shown} differ from the chain up to block {last}: run `consilium server reindex --replace`,"
            " and find out which other program writes there"
        ),
        "EventsInconsistent": (
            "the events of blocks {first} to {last} from {url} contradict earlier events, because the node left some"
            " out: use another node, and run `consilium server reindex --replace` with it"
        ),
    }


class RequestRefused(ServerError):
    """`values["what"]` of SignInRefused: domain, uri, chain, issued-at, expired, not-before, signature or nonce."""

    MESSAGES: ClassVar = {
        "NotSponsored": "{why}",
        "SignInMalformed": "this is not a message of Sign-In with Ethereum: {why}",
        "SignInRefused": "the signed message is refused: {why}",
        "CursorInvalid": "this cursor belongs to another request: begin again without a cursor",
    }


class AnswerBroken(ServerError):
    """The answer has begun, so the server can only break it off. The client sees that the end is missing."""

    MESSAGES: ClassVar = {
        "ClientStalled": "the client read nothing of its answer for {seconds:g} s: its connection is closed",
        "ExportReorganised": "the chain was reorganised while the history of {account} was sent: request it again",
    }


class SuperLinkFailed(ServerError):
    MESSAGES: ClassVar = {"SuperLinkFailed": "{why}"}


class ReplyRefused(ServerError):
    """PartFailed: the hospital, or Flower, reports a failure. A later attempt may work."""

    MESSAGES: ClassVar = {
        "UploadInvalid": "upload refused: {why}",
        "PartFailed": "upload refused: {why}",
        "SecondReply": "the hospital sent a second, different {what} in one round: the first one counts",
    }


class SumMismatch(ServerError):
    MESSAGES: ClassVar = {"SumMismatch": "cohort {cohort}, blob {blob}: the uploads' sum is not the commitments' sum"}


class DecoysLost(ServerError):
    MESSAGES: ClassVar = {
        "DecoysLost": (
            "{path} does not contain the round's seed and blinders, which disclose its decoys: restore it from a backup"
            " before the deadline"
        )
    }


def broker_unreachable(error: BaseException) -> Unavailable:
    """Names the cause by Redis's error code, else by the error's class. The error's text may repeat the URL.

    The code is the first word of an error of RESP. A pipeline puts its command before it.
    """
    match = re.search("(?:^|caused error: )([A-Z]{2,20}) ", str(error))
    code = getattr(error, "status_code", None) or (match and match[1])
    return Unavailable("BrokerUnreachable", cause=code or type(error).__name__)
