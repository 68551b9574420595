"""Disputes: the cheaters in a masked cohort whose sum does not match its commitments.

Notation of `masks`: survivors S and dropped hospitals D are the masking, y_i is an upload, Com a commitment, ± is +
towards higher indices and − towards lower ones. Com is linear, so an update's blobs are combined as Σ f_b · blob, with
factors f_b that are unknown until uploads and survivors are fixed: one point for each mask, for any number of blobs.
Below each letter means that combination.

1. With its upload each hospital signs a `Statement`: the digests of the upload and of the masking. A hospital that
   signs the digest of another number of blobs than it committed to is named.
2. Roots are recovered as usual: own roots of S, key roots of D. If some are missing after a threshold of answers, the
   hospitals at fault are named (`withholders`), and nobody else. Otherwise the own masks p_i, and all seeds that D
   shares, are known.
3. The accuser puts 32 bytes on chain (`Case.accusation`), which give the factors. Anybody can compute the rest of i's
   upload, E_i = Com(y_i − p_i − Σ_D ± m_id) − w_i · C_i. The sum is right if and only if Σ_S E_i is zero. Then nobody
   is named, and the accuser was wrong.
4. Each survivor i signs, with the accusation, M_ij = Com(m_ij) for each other survivor j (`pair_points`). A survivor
   that gives none is named, and so is one that contradicts itself: its E_i is not Σ ± M_ij.
5. If M_ij is not M_ji, both hospitals show the shared point of their mask keys, with a proof (`show_pair`). Either
   proof fixes the seed, and its expansion shows whose M is wrong. If neither proves it, both are named. A hospital
   that has not proven its keys is named, and nothing is shown against it.

Theorem: no honest hospital is named, and if the sum is wrong, somebody is.
An honest i uploads its update under the masks that it derives, states this upload, and proves every shared point that
it must. So E_i is Σ ± M_ij identically. In a dispute, any proven seed is the one that i expanded: secret shares fixed
the mask keys, and two keys share one point. If nobody is named, every E_i is Σ ± M_ij and every M_ij is M_ji. So each
M appears in Σ_S E_i once with either sign, and the sum is right. Only the combination and the proofs are not exact:
the combination passes wrong blobs with a chance of 2^-128 for each accusation that somebody hashes.

An honest hospital h shows its statement; its points; its own root and its masks with D, as every survivor of any
round; and the point that its mask key shares with that of a hospital with another M, a liar. The liar knew that point:
it proved that it knows its mask key's private key, so it did not derive its key from a third one. The point gives the
masks between these two in this round, and nothing else. h's masks with honest survivors stay secret: for others, its
uploads and points look the same for all updates with these commitments and this sum. For let x and x', by weight, be
two such choices. Along a tree that spans the honest survivors there are blobs δ with Σ ± δ_hg = x_h − x'_h. These
differences commit to zero, and so do the δ, which are sums of them. So x' under masks m + δ gives the uploads and
points that x gives under m, and these masks are equally likely. It takes two honest survivors, as hiding in a sum
does.

Callers check that statements and points are signed by their hospital, points with the accusation; that the accusation
is the chain's; that the chain, not the accuser, says who gave no points or proofs. A hospital's caller shows a shared
point only against points that the other hospital signed: otherwise anybody could ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, count, islice
from typing import Final

from eth_utils.crypto import keccak

from .blobs import combine, parse_blob
from .constants import BLS_MODULUS, BYTES_PER_COMPRESSED_G1
from .curve import INFINITY, Commitment, parse_commitment, weighted_sum
from .encoding import uint256
from .errors import AgreementUnproven, AnswerMalformed, EvidenceMalformed, Malformed, ShapeWrong, SharesInvalid
from .key_exchange import BYTES_PER_SHOWN, show_agreed, shown_point
from .kzg import commit
from .masks import between, expand, mask, mask_key, own_seed, pair_seed, pair_seeds, without
from .secret_shares import ShareBundle, is_proven, root_digest
from .secure_aggregation import MaskedCohort, Unmasking, masking_digest

ACCUSATION_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-ACCUSATION")
_DISPUTE_TAG: Final = b"CONSILIUM-V1-DISPUTE"
_BYTES_PER_DIGEST: Final = 32
_BYTES_PER_FACTOR: Final = 16
_BYTES_PER_INDEX: Final = 2


class Reason(StrEnum):
    """Why a hospital is named."""

    UPLOAD_MALFORMED = "its upload does not have the number of blobs that it committed to"
    NO_POINTS = "it did not commit to each mask that it shares with another survivor"
    CONTRADICTION = "its upload is not the sum of its committed update and of its stated masks"
    FALSE_POINT = "its commitment to a mask does not match the two keys"
    NO_PROOF = "its commitment to a mask differs from the other hospital's, and neither proves its own"
    FALSE_SHARE_BUNDLE = "its secret shares do not prove its keys, do not decrypt, or do not give its root"
    FALSE_ANSWER = "it did not answer with the share that it was dealt"


@dataclass(frozen=True)
class Statement:
    """The statement that a hospital signs with its upload: `upload_digest` and `masking_digest`."""

    upload: bytes
    masking: bytes

    def to_wire(self) -> bytes:
        """64 bytes: the two digests."""
        return self.upload + self.masking


@dataclass(frozen=True)
class Case:
    """The chain's record of a cohort with a wrong sum, the same for everybody.

    share_bundles: of all in the masking. commitments (one per blob) and weights: of the survivors.
    """

    cohort: MaskedCohort
    share_bundles: Mapping[int, ShareBundle]
    commitments: Mapping[int, Sequence[Commitment]]
    weights: Mapping[int, int]

    @property
    def survivors(self) -> list[int]:
        return sorted(self.commitments)

    @property
    def blobs(self) -> int:
        """The number of blobs of an update."""
        return len(next(iter(self.commitments.values())))

    def accusation(self, statements: Mapping[int, bytes]) -> bytes:
        """The 32 bytes from which the factors come. They depend on everything that decides if the sum is right.

        statements: of the survivors, as signed. Raises EvidenceMalformed if one is missing.
        """
        if missing := set(self.survivors) - statements.keys():
            raise EvidenceMalformed(f"survivors {sorted(missing)} have no statement")
        words = [ACCUSATION_TAG, masking_digest(self.cohort, self.share_bundles)]
        for index in self.survivors:
            words += [uint256("index", index), uint256("weight", self.weights[index])]
            words += [keccak(b"".join(self.commitments[index])), keccak(statements[index])]
        return keccak(b"".join(words))


@dataclass(frozen=True)
class Evidence:
    """The evidence beyond the chain. The accuser is responsible for all of it but the parts that hospitals signed.

    statements: of the survivors, as signed. uploads: blobs by survivor, read one by one and twice. own_roots: of the
    survivors. key_roots: of the rest. points: of each survivor that gave them, as signed. agreements: by the hospital
    that shows it and the other one.
    """

    statements: Mapping[int, bytes]
    uploads: Mapping[int, Collection[bytes]]
    own_roots: Mapping[int, int]
    key_roots: Mapping[int, int]
    points: Mapping[int, bytes]
    agreements: Mapping[tuple[int, int], bytes]


def upload_digest(blobs: Iterable[bytes]) -> bytes:
    """32 bytes: the SHA-256 of the blobs one after another, one in memory at a time. Ten times as fast as keccak256."""
    digest = hashlib.sha256()
    for blob in blobs:
        digest.update(blob)
    return digest.digest()


def state(blobs: Iterable[bytes], cohort: MaskedCohort, share_bundles: Mapping[int, ShareBundle]) -> Statement:
    """A hospital's statement on its masked blobs."""
    return Statement(upload_digest(blobs), masking_digest(cohort, share_bundles))


def parse_statement(raw: bytes) -> Statement:
    """A statement from its wire form. Raises ShapeWrong."""
    return Statement(*_pieces("statement", raw, _BYTES_PER_DIGEST, 2))


def dropped_seeds(case: Case, key_roots: Mapping[int, int]) -> dict[int, dict[int, bytes]]:
    """The seeds that each dropped hospital shares with all others in the masking, from its key root.

    Raises EvidenceMalformed if a root does not match its hospital's secret shares.
    """
    keys = {index: share_bundle.key for index, share_bundle in case.share_bundles.items()}
    for index, root in key_roots.items():
        if not 0 <= root < BLS_MODULUS or mask_key(root) != keys[index]:
            raise EvidenceMalformed(f"the key root of hospital {index} does not match its public key")
    return {index: pair_seeds(index, root, keys, case.cohort.context) for index, root in key_roots.items()}


def pair_points(
    index: int, pairs: Mapping[int, bytes], survivors: Collection[int], accusation: bytes, blobs: int
) -> dict[int, Commitment]:
    """The points of hospital `index` for its masks with other survivors: the combination's point of each mask.

    pairs: its seeds with others. accusation: the chain's. blobs: of an update.
    """
    return {other: _point(pairs[other], accusation, blobs) for other in sorted(survivors) if other != index}


def points_to_wire(points: Mapping[int, Commitment]) -> bytes:
    """48 bytes for each other survivor, by index."""
    return b"".join(points[other] for other in sorted(points))


def parse_points(raw: bytes, others: Collection[int]) -> dict[int, Commitment]:
    """Points from their wire form; `others`: all other survivors. Raises ShapeWrong, PointMalformed."""
    points = _pieces("points", raw, BYTES_PER_COMPRESSED_G1, len(others))
    return {other: parse_commitment(point) for other, point in zip(sorted(others), points, strict=True)}


def disputed(index: int, mine: Mapping[int, Commitment], theirs: Mapping[int, Mapping[int, Commitment]]) -> list[int]:
    """The hospitals whose points differ from those of hospital `index`: it must show the shared point with each.

    mine: its own `pair_points`. theirs: points of other survivors under the same accusation, with checked signatures:
    no honest hospital has signed others.
    """
    return [other for other, points in sorted(theirs.items()) if points[index] != mine[other]]


def show_pair(
    index: int, private: bytes, other: int, share_bundle: ShareBundle, context: bytes, accusation: bytes
) -> bytes:
    """The proof of hospital `index`, by the private key of its mask key, in a dispute with `other`: 96 bytes.

    share_bundle: the other's. Zeros if it is not `is_proven`: its dealer could have derived its key from a third one,
    and is named for that.
    """
    if not is_proven(share_bundle, other, context):
        return bytes(BYTES_PER_SHOWN)
    return show_agreed(private, share_bundle.key, _dispute(index, other, context, accusation))


def agreements_to_wire(shown: Mapping[int, bytes]) -> bytes:
    """98 bytes for each: the other hospital's index, big-endian, and the proof."""
    return b"".join(other.to_bytes(_BYTES_PER_INDEX, "big") + shown[other] for other in sorted(shown))


def parse_agreements(raw: bytes) -> dict[int, bytes]:
    """Proofs by the other hospital, from their wire form. Only the length is checked. Raises ShapeWrong."""
    size = _BYTES_PER_INDEX + BYTES_PER_SHOWN
    pieces = _pieces("agreements", raw, size, len(raw) // size)
    return {int.from_bytes(piece[:_BYTES_PER_INDEX], "big"): piece[_BYTES_PER_INDEX:] for piece in pieces}


def withholders(case: Case, answers: Mapping[int, bytes]) -> dict[int, Reason]:
    """The cheaters by hospital index, if a threshold have answered and roots are missing.

    answers: by survivor. Raises EvidenceMalformed if the accuser was wrong: too few answers, an answer that its
    hospital did not give, or no missing root.
    """
    if len(answers) < case.cohort.threshold:
        raise EvidenceMalformed(f"it has {len(answers)} answers of {case.cohort.threshold} needed ones")
    unmasking = Unmasking(case.cohort, case.share_bundles, case.survivors)
    for index, answer in answers.items():
        try:
            unmasking.take(index, answer)
        except AnswerMalformed as error:
            raise EvidenceMalformed(f"the answer of hospital {index} is not its own: {error}") from error
    found = unmasking.at_fault()
    if not found:
        raise EvidenceMalformed("its answers are enough for the sum")
    return {
        index: Reason.FALSE_SHARE_BUNDLE if isinstance(found[index], SharesInvalid) else Reason.FALSE_ANSWER
        for index in sorted(found)
    }


def cheaters(case: Case, accusation: bytes, evidence: Evidence) -> dict[int, Reason]:
    """The cheaters by hospital index, with the first fault of each; empty if the accuser was wrong.

    accusation: the chain's. The result is the same for the same evidence. Raises EvidenceMalformed for malformed or
    incomplete evidence, which no hospital can cause.
    """
    named: dict[int, Reason] = {}
    _require_complete(case, evidence)
    if accusation != case.accusation(evidence.statements):
        raise EvidenceMalformed("its statements do not match the accusation")
    masking = masking_digest(case.cohort, case.share_bundles)
    statements = {index: _parsed(index, raw) for index, raw in evidence.statements.items()}
    if other := [index for index, statement in statements.items() if statement.masking != masking]:
        raise EvidenceMalformed(f"the statements of hospitals {sorted(other)} are of another masking")

    gone = dropped_seeds(case, evidence.key_roots)
    left = {}
    for index, statement in statements.items():
        upload = evidence.uploads[index]
        if upload_digest(upload) != statement.upload:
            raise EvidenceMalformed(f"the upload of hospital {index} does not match its statement")
        try:
            masks = own_seed(evidence.own_roots[index], case.cohort.context), {d: gone[d][index] for d in gone}
            left[index] = _left(case, index, upload, masks, accusation)
        except Malformed:
            named.setdefault(index, Reason.UPLOAD_MALFORMED)
    if left.keys() == case.commitments.keys() and weighted_sum(list(left.values()), [1] * len(left)) == INFINITY:
        return dict(sorted(named.items()))

    points = {}
    for index in case.survivors:
        try:
            others = set(case.survivors) - {index}
            points[index] = parse_points(evidence.points.get(index, b""), others)
        except (ShapeWrong, Malformed):
            named.setdefault(index, Reason.NO_POINTS)
    for index in left.keys() & points.keys():
        signs = [1 if index < other else -1 for other in points[index]]
        if weighted_sum(list(points[index].values()), signs) != left[index]:
            named.setdefault(index, Reason.CONTRADICTION)
    for index, reason in _disputes(case, accusation, points, evidence.agreements):
        named.setdefault(index, reason)
    return dict(sorted(named.items()))


def _require_complete(case: Case, evidence: Evidence) -> None:
    survivors, masking = case.commitments.keys(), case.share_bundles.keys()
    for what, held, least, most in (
        ("statements", evidence.statements.keys(), survivors, survivors),
        ("uploads", evidence.uploads.keys(), survivors, survivors),
        ("own roots", evidence.own_roots.keys(), survivors, survivors),
        ("key roots", evidence.key_roots.keys(), masking - survivors, masking - survivors),
        ("points", evidence.points.keys(), set[int](), survivors),
        ("agreements", {end for pair in evidence.agreements for end in pair}, set[int](), survivors),
    ):
        if wrong := (least - held) | (held - most):
            raise EvidenceMalformed(f"{what} of hospitals {sorted(wrong)} are missing or superfluous")
    for index, root in evidence.own_roots.items():
        sound = 0 <= root < BLS_MODULUS
        if not sound or root_digest(root, case.cohort.context) != case.share_bundles[index].own_digest:
            raise EvidenceMalformed(f"the own root of hospital {index} does not match its digest")


def _disputes(
    case: Case,
    accusation: bytes,
    points: Mapping[int, Mapping[int, Commitment]],
    agreements: Mapping[tuple[int, int], bytes],
) -> Iterator[tuple[int, Reason]]:
    """The cheaters among hospitals whose points differ."""
    for one, other in combinations(sorted(points), 2):
        if points[one][other] == points[other][one]:
            continue
        context = case.cohort.context
        if unproven := [index for index in (one, other) if not is_proven(case.share_bundles[index], index, context)]:
            yield from ((index, Reason.FALSE_SHARE_BUNDLE) for index in unproven)
            continue
        shown = [(one, other, agreements.get((one, other), b"")), (other, one, agreements.get((other, one), b""))]
        proven = [seed for pair in shown if (seed := _proven_seed(case, accusation, *pair)) is not None]
        truth = _point(proven[0], accusation, case.blobs) if proven else None
        for index, end in ((one, other), (other, one)):
            if points[index][end] != truth:
                yield index, Reason.FALSE_POINT if proven else Reason.NO_PROOF


def _proven_seed(case: Case, accusation: bytes, index: int, other: int, shown: bytes) -> bytes | None:
    """The seed of a pair, if hospital `index` proved the shared point of the two mask keys."""
    keys, context = (case.share_bundles[index].key, case.share_bundles[other].key), case.cohort.context
    try:
        point = shown_point(*keys, shown, _dispute(index, other, context, accusation))
    except AgreementUnproven:
        return None
    return pair_seed(point, (index, other), keys, context)


def _dispute(index: int, other: int, context: bytes, accusation: bytes) -> bytes:
    """The context of a proof: chain, contract, task, round, accusation and pair."""
    return _DISPUTE_TAG + context + accusation + between(index, other)


def _parsed(index: int, raw: bytes) -> Statement:
    """Raises EvidenceMalformed: an accuser leaves out survivors with malformed statements."""
    try:
        return parse_statement(raw)
    except ShapeWrong as error:
        raise EvidenceMalformed(f"the statement of hospital {index} is malformed") from error


def _left(
    case: Case, index: int, upload: Collection[bytes], masks: tuple[bytes, Mapping[int, bytes]], accusation: bytes
) -> Commitment:
    """E_i: an upload minus its commitments, its own masks and those shared with dropped hospitals.

    Raises BlobMalformed.
    """
    commitments = case.commitments[index]
    if len(upload) != len(commitments):
        raise Malformed("BlobMalformed", reason=f"the upload has {len(upload)} blobs instead of {len(commitments)}")
    bare = (without(parse_blob(raw), mask(index, *masks, number)) for number, raw in enumerate(upload))
    combined = commit(combine(bare, _factors(accusation)))
    weights = [-case.weights[index] * factor for factor in islice(_factors(accusation), len(commitments))]
    return weighted_sum([combined, *commitments], [1, *weights])


def _point(seed: bytes, accusation: bytes, blobs: int) -> Commitment:
    """Com(m_ij) of the masks from a seed, combined."""
    return commit(combine((expand(seed, number) for number in range(blobs)), _factors(accusation)))


def _factors(accusation: bytes) -> Iterator[int]:
    """Factors of blobs in order, without end: uniform below 2^128, as `commits_to` takes them."""
    return (int.from_bytes(keccak(accusation + uint256("blob", n))[:_BYTES_PER_FACTOR], "big") for n in count())


def _pieces(what: str, raw: bytes, size: int, number: int) -> list[bytes]:
    if len(raw) != size * number:
        raise ShapeWrong(what, f"{len(raw)} bytes", f"{size * number} bytes")
    return [raw[start : start + size] for start in range(0, len(raw), size)]
