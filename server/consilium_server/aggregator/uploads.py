"""Parses hospitals' replies, and checks cohorts' sums against commitments. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import ReplyCode, signed_update_bytes
from consilium_chain.rounds.signed_updates import NO_SHARE_BUNDLE, SignedUpdate, parse_signed_update
from consilium_zk.blobs import Blob, add, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import INFINITY, Commitment, parse_commitment, weighted_sum
from consilium_zk.errors import ZkError
from consilium_zk.kzg import commit, commits_to
from consilium_zk.masks import without
from eth_utils.crypto import keccak
from flwr.app import RecordDict

from consilium_server.errors import ReplyRefused, SumMismatch


@dataclass(frozen=True)
class Signed:
    """A hospital's signed update; in a masked task also its secret shares, whose digest the update holds."""

    update: SignedUpdate
    share_bundle: bytes


@dataclass(frozen=True)
class Upload:
    """A hospital's weighted blobs, masked or not; every scalar is below the field's modulus.

    points: the commitments to its unweighted blobs without masks, unchecked. statement: its signed statement on masked
    blobs, unchecked; empty if they are not masked.
    """

    blobs: Sequence[Blob]
    points: Sequence[Commitment]
    statement: bytes = b""


@dataclass(frozen=True)
class Answer:
    """A survivor's unchecked answer for the unmasking of its cohort's sum (`secure_aggregation.Unmasking`)."""

    words: bytes


def parse_reply(content: RecordDict, hospital: str, blob_count: int) -> Signed | Upload | Answer:
    """Parses a reply of `hospital`, an account. Raises ReplyRefused, SignedUpdateMalformed."""
    status = content.config_records.get("status", {})
    code = status.get("code")
    if code not in (ReplyCode.SIGNED, ReplyCode.ANSWERED):
        return parse_upload(content, blob_count)
    if set(content) != {"status"} or set(status) != {"code", "body"} or not isinstance(status["body"], bytes):
        raise SignedUpdateMalformed("the reply has other records beside the update, or the update is not bytes")
    body = status["body"]
    return Answer(body) if code == ReplyCode.ANSWERED else parse_signed(body, hospital, blob_count)


def parse_signed(body: bytes, hospital: str, blob_count: int) -> Signed:
    """Parses a signed update with its secret shares. Raises SignedUpdateMalformed."""
    size = signed_update_bytes(blob_count)
    update, share_bundle = parse_signed_update(body[:size], hospital, blob_count), body[size:]
    if update.share_bundle != (keccak(share_bundle) if share_bundle else NO_SHARE_BUNDLE):
        raise SignedUpdateMalformed("its secret shares do not match their digest in the update")
    return Signed(update, share_bundle)


def parse_upload(content: RecordDict, blob_count: int) -> Upload:
    """Parses one status with points, and `blob_count` blobs of raw bytes. Raises ReplyRefused (UploadInvalid,
    PartFailed).
    """
    if set(content) != {"status", "blobs"}:
        raise ReplyRefused("UploadInvalid", why=f"its records are {sorted(content)} instead of blobs and status")
    status = content.config_records.get("status", {})
    code, body = status.get("code"), status.get("body", b"")
    if not isinstance(body, bytes):
        raise ReplyRefused("UploadInvalid", why="its points and statement are not bytes")
    if code != ReplyCode.OK:
        name = ReplyCode(code).name if isinstance(code, int) and code in set(ReplyCode) else "unknown code"
        fault = "PartFailed" if code == ReplyCode.FAILED else "UploadInvalid"
        raise ReplyRefused(fault, why=f"the hospital answered {name}")
    arrays = content.array_records.get("blobs", {})
    if set(arrays) != {str(index) for index in range(blob_count)}:
        raise ReplyRefused("UploadInvalid", why=f"it has {len(arrays)} blobs instead of {blob_count}")
    blobs = []
    for index in range(blob_count):
        array = arrays[str(index)]
        if (array.dtype, tuple(array.shape), array.stype) != ("uint8", (BYTES_PER_BLOB,), "raw"):
            raise ReplyRefused("UploadInvalid", why=f"blob {index} is not {BYTES_PER_BLOB} raw bytes")
        try:
            blobs.append(parse_blob(array.data))
        except ZkError as error:
            raise ReplyRefused("UploadInvalid", why=f"blob {index} does not consist of field elements") from error
    points, statement = parse_upload_body(body, blob_count)
    return Upload(blobs, points, statement)


def parse_upload_body(body: bytes, blob_count: int) -> tuple[list[Commitment], bytes]:
    """`blob_count` points of 48 bytes, and the bytes that follow them. Raises ReplyRefused (UploadInvalid)."""
    size = BYTES_PER_COMPRESSED_G1
    points = []
    for blob in range(blob_count):
        try:
            point = parse_commitment(body[blob * size :][:size])
        except ZkError as error:
            raise ReplyRefused("UploadInvalid", why=f"point {blob} is not in the group") from error
        if point == INFINITY:  # the contract takes no such point
            raise ReplyRefused("UploadInvalid", why=f"point {blob} is the point at infinity")
        points.append(point)
    return points, body[blob_count * size :]


@dataclass(frozen=True)
class Contribution:
    """A survivor's upload and its public weight."""

    upload: Upload
    weight: int

    @property
    def points(self) -> Sequence[Commitment]:
        """Its commitments, one per blob."""
        return self.upload.points


def wrong_uploads(contributions: Mapping[int, Contribution]) -> list[int]:
    """Hospitals (by index) whose upload is not `weight` times their committed update.

    It computes a commitment for each upload, so it is called only after a cohort's sum was wrong. It cannot find
    hospitals whose deviations add up to zero, and need not. A KZG commitment is additive and binding: a sum that opens
    the sum of the commitments is the committed sum. Uploads have no other use, and each hospital answers for its
    commitment.
    """
    return [
        index
        for index, c in contributions.items()
        if any(
            commit(blob) != weighted_sum([point], [c.weight])
            for blob, point in zip(c.upload.blobs, c.points, strict=True)
        )
    ]


def sum_commitments(contributions: Sequence[Contribution]) -> list[Commitment]:
    """Weighted sum of the commitments, per blob, as the contract computes it."""
    weights = [c.weight for c in contributions]
    return [weighted_sum(points, weights) for points in zip(*(c.points for c in contributions), strict=True)]


@dataclass(frozen=True)
class CohortSum:
    """A cohort's sum: its blobs, and the commitment to each."""

    blobs: list[Blob]
    commitments: list[Commitment]


def sum_cohort(
    cohort: int,
    contributions: Sequence[Contribution],
    factors: Sequence[int],
    residue: Callable[[int], Blob] | None = None,
) -> CohortSum:
    """The cohort's sum, checked against the commitments that the contract adds up. Raises SumMismatch.

    residue: the mask of the sum's blob of a number, for masked uploads. `factors`, one per blob, are those of
    `consilium_zk.kzg.commits_to`: they must stay unknown until the uploads have arrived.
    """
    expected = sum_commitments(contributions)
    sums = [add([c.upload.blobs[position] for c in contributions]) for position in range(len(expected))]
    if residue is not None:
        sums = [without(total, residue(position)) for position, total in enumerate(sums)]
    if not commits_to(sums, expected, factors):
        wrong = next(i for i, (total, point) in enumerate(zip(sums, expected, strict=True)) if commit(total) != point)
        raise SumMismatch("SumMismatch", cohort=cohort, blob=wrong)
    return CohortSum(sums, expected)
