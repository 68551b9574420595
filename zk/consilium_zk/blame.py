"""Blame: who uploaded something else than it committed to, where a masked cohort's sum does not open the commitments'.

In the notation of `masks`: survivors S and dropped D are the masking's hospitals, y_i the upload, Com a commitment, ±
is + towards higher indices and − towards lower. Com is linear, so an update's blobs are taken together, as Σ f_b · blob
with factors f_b that nobody knows before uploads and survivors are fixed: one point a mask, however many blobs. Below
each letter means that combination.

1. With its upload each hospital signs a `Statement`: the upload's digest, and that of each seed that it shares. Two
   that state other digests of the seed that they share cannot both survive (`disagreeing`). Who signs what is no
   statement, or the digest of what is not as many blobs as it committed to, is named for that.
2. Roots are recovered as ever (`Unmasking`, which names who keeps them from being): own roots of S, key roots of D. So
   the own masks p_i, and all seeds that D shares, are facts. Who stated another digest of such a seed is named.
3. The accuser puts 32 bytes on chain (`Case.accusation`), of which the factors come. What is left of i's upload is
   E_i = Com(y_i − p_i − Σ_D ± m_id) − w_i · C_i, for anybody to compute. The sum holds if and only if Σ_S E_i is zero:
   then nobody else is named, and the accuser was wrong.
4. Each survivor i signs, with the accusation, M_ij = Com(m_ij) for each other survivor j (`pair_points`). Who gives
   none is named, and so is who contradicts itself: where E_i is not Σ ± M_ij.
5. Where M_ij is not M_ji, both ends show the seed (`shown_seeds`). It counts if it has the digest that both stated, and
   its expansion says whose M is wrong. If neither end shows it, both are named.

Theorem: no honest hospital is named, and if the sum fails, somebody is.
An honest i states what it derives, uploads its update under these masks, and shows any seed that it must. So 2 finds
nothing, for both ends of a key agreement derive the same; E_i is Σ ± M_ij identically; and in a dispute its seed has
the digest that both stated, and expands to its M. And if nobody is named, every E_i is Σ ± M_ij and every M_ij is M_ji,
so that in Σ_S E_i each M stands with either sign once: the sum holds. Of all this only the combination is not exact. It
passes wrong blobs with a chance of 2^-128 for each accusation that somebody hashes.

What an honest hospital h shows: its statement; its points; its own root and its masks with D, as every survivor of any
round; and the seeds that it shares with who gave another M of them, a liar, which knew them. Roots and seeds are
uniform, so that digests hide them. Its masks with honest survivors stay secret: to everybody else their uploads and
points look the same whichever updates they have, of all with these commitments and this sum. For let x and x', by
weight, be two such choices. Along a tree that spans the honest survivors there are blobs δ with Σ ± δ_hg = x_h − x'_h;
these differences commit to zero, and so do the δ, which are sums of them. So x' under masks m + δ gives the uploads and
points that x gives under m, and these masks are as likely. It takes two honest survivors, as hiding in a sum does.

What callers see to: that statements and points are what their hospital signed, points with the accusation; that the
accusation is the chain's; that who gave no points or seeds is who the chain, not the accuser, says did not; and, on the
hospitals' side, that a seed is shown only against points that the other end signed, for else anybody could ask for it.
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
from .curve import Commitment, parse_commitment, weighted_sum
from .dealing import Dealing, root_digest
from .encoding import uint256
from .errors import BlobMalformed, EvidenceMalformed, PointMalformed, ShapeWrong
from .kzg import commit
from .masks import BYTES_PER_SEED, expand, mask, mask_key, own_seed, pair_seeds, without
from .secure_aggregation import MaskedCohort

SEED_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-SEED")
ACCUSATION_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-ACCUSATION")
_BYTES_PER_DIGEST: Final = 32
_BYTES_PER_FACTOR: Final = 16
_BYTES_PER_INDEX: Final = 2
_ZERO: Final = weighted_sum([], [])


class Reason(StrEnum):
    """Why a hospital is named."""

    STATEMENT_MALFORMED = "its statement is not a digest of its upload and one for each other in the masking"
    FALSE_DIGEST = "its statement has another seed than the one that it shares with a hospital that dropped out"
    UPLOAD_MALFORMED = "its upload is not as many blobs as it committed to"
    NO_POINTS = "it gave no commitment to each mask that it shares with another survivor"
    CONTRADICTION = "its upload is not what it committed to and the masks that it says it added"
    FALSE_POINT = "its commitment to a mask is not what the seed expands to"
    NO_SEED = "its commitment to a mask is not the other end's, and neither end shows the seed"


@dataclass(frozen=True)
class Statement:
    """What a hospital signs with its upload: `upload_digest`, and of each seed that it shares its `seed_digest`."""

    upload: bytes
    seeds: Mapping[int, bytes]

    def to_wire(self) -> bytes:
        """32 bytes for the upload, then for each other in the masking, by index."""
        return b"".join([self.upload, *(self.seeds[other] for other in sorted(self.seeds))])


@dataclass(frozen=True)
class Case:
    """What the chain says of a cohort whose sum does not hold, the same to everybody.

    dealings: of all in the masking. commitments, one per blob, and weights: of the survivors.
    """

    cohort: MaskedCohort
    dealings: Mapping[int, Dealing]
    commitments: Mapping[int, Sequence[Commitment]]
    weights: Mapping[int, int]

    @property
    def survivors(self) -> list[int]:
        return sorted(self.commitments)

    @property
    def blobs(self) -> int:
        """How many an update has."""
        return len(next(iter(self.commitments.values())))

    def accusation(self, statements: Mapping[int, bytes]) -> bytes:
        """The 32 bytes of which the factors come: of all that decides whether the sum holds.

        statements: of the survivors at least, as signed. Raises EvidenceMalformed where one's is missing.
        """
        if missing := set(self.survivors) - statements.keys():
            raise EvidenceMalformed(f"survivors {sorted(missing)} have no statement")
        words = [ACCUSATION_TAG, self.cohort.context, uint256("masking", len(self.dealings))]
        for index, dealing in sorted(self.dealings.items()):
            words += [uint256("index", index), dealing.key, dealing.own_digest]
        for index in self.survivors:
            words += [uint256("index", index), uint256("weight", self.weights[index])]
            words += [keccak(b"".join(self.commitments[index])), keccak(statements[index])]
        return keccak(b"".join(words))


@dataclass(frozen=True)
class Evidence:
    """What a judge needs beyond the chain. An accuser answers for it all, but for what hospitals signed or showed.

    statements: of the survivors as signed; of who uploaded and was left out, if it is to be named for the digests it
    stated. uploads: blobs by survivor, read one by one and twice. own_roots: of the survivors. key_roots: of the rest.
    points: of each survivor that gave them, as signed. seeds: by who showed it and with whom it shares it.
    """

    statements: Mapping[int, bytes]
    uploads: Mapping[int, Collection[bytes]]
    own_roots: Mapping[int, int]
    key_roots: Mapping[int, int]
    points: Mapping[int, bytes]
    seeds: Mapping[tuple[int, int], bytes]


def upload_digest(blobs: Iterable[bytes]) -> bytes:
    """32 bytes: the SHA-256 of the blobs one after another, of which one is in memory at a time.

    No contract needs it, and it takes a tenth of the time of keccak256.
    """
    digest = hashlib.sha256()
    for blob in blobs:
        digest.update(blob)
    return digest.digest()


def seed_digest(seed: bytes) -> bytes:
    """A seed is uniform, so its digest hides it."""
    return keccak(SEED_TAG + seed)


def state(blobs: Iterable[bytes], pairs: Mapping[int, bytes]) -> Statement:
    """A hospital's statement on its masked blobs; `pairs` are the seeds that it shares, by the other end."""
    return Statement(upload_digest(blobs), {other: seed_digest(seed) for other, seed in pairs.items()})


def parse_statement(raw: bytes, others: Collection[int]) -> Statement:
    """A statement from its wire form; `others` are all in the masking but who makes it. Raises ShapeWrong."""
    digests = _pieces("statement", raw, _BYTES_PER_DIGEST, 1 + len(others))
    return Statement(digests[0], dict(zip(sorted(others), digests[1:], strict=True)))


def disagreeing(statements: Mapping[int, Statement]) -> set[int]:
    """Whom to leave out so that all others' digests of the seeds that they share are the same.

    Those who disagree with the most others go, all at once, until nobody disagrees. A lone liar is an end of every
    disagreement there is: with two or more it goes alone, and with one, where the two ends look the same to everybody,
    it takes the honest end with it. Of k liars none stays that disagrees with more than k by the time an honest
    hospital goes, so that no more than k² honest ones do. Who made an honest hospital go is named afterwards
    (FALSE_DIGEST), because the key root of who is left out becomes known, and with it what the seed was.
    """
    differing = {index: set[int]() for index in statements}
    for one, other in combinations(statements, 2):
        if statements[one].seeds[other] != statements[other].seeds[one]:
            differing[one].add(other)
            differing[other].add(one)
    left_out: set[int] = set()
    while most := max((len(others) for others in differing.values()), default=0):
        going = {index for index, others in differing.items() if len(others) == most}
        differing = {index: others - going for index, others in differing.items() if index not in going}
        left_out |= going
    return left_out


def dropped_seeds(case: Case, key_roots: Mapping[int, int]) -> dict[int, dict[int, bytes]]:
    """Of each who dropped out, the seeds that it shares with all others in the masking, from its key root.

    Raises EvidenceMalformed where a root is not the one that its hospital's dealing shows.
    """
    keys = {index: dealing.key for index, dealing in case.dealings.items()}
    for index, root in key_roots.items():
        if not 0 <= root < BLS_MODULUS or mask_key(root) != keys[index]:
            raise EvidenceMalformed(f"the key root of hospital {index} is not the one that it shows")
    return {index: pair_seeds(index, root, keys, case.cohort.context) for index, root in key_roots.items()}


def false_digests(statements: Mapping[int, Statement], dropped: Mapping[int, Mapping[int, bytes]]) -> set[int]:
    """Who stated another seed than the one that it shares with a hospital that dropped out, or that did so itself.

    dropped: `dropped_seeds`. Needs no failed sum: it is also how who had an honest hospital left out is found.
    """
    return {
        one
        for gone, seeds in dropped.items()
        for other, seed in seeds.items()
        for one, end in ((gone, other), (other, gone))
        if one in statements and statements[one].seeds[end] != seed_digest(seed)
    }


def pair_points(
    index: int, pairs: Mapping[int, bytes], survivors: Collection[int], accusation: bytes, blobs: int
) -> dict[int, Commitment]:
    """What hospital `index` says of the masks that it shares with other survivors: of each, the combination's point.

    pairs: its seeds with others. accusation: the chain's. blobs: how many an update has.
    """
    return {other: _point(pairs[other], accusation, blobs) for other in sorted(survivors) if other != index}


def points_to_wire(points: Mapping[int, Commitment]) -> bytes:
    """48 bytes for each other survivor, by index."""
    return b"".join(points[other] for other in sorted(points))


def parse_points(raw: bytes, others: Collection[int]) -> dict[int, Commitment]:
    """Points from their wire form; `others` are all survivors but who gives them. Raises ShapeWrong, PointMalformed."""
    points = _pieces("points", raw, BYTES_PER_COMPRESSED_G1, len(others))
    return {other: parse_commitment(point) for other, point in zip(sorted(others), points, strict=True)}


def shown_seeds(
    index: int,
    pairs: Mapping[int, bytes],
    mine: Mapping[int, Commitment],
    theirs: Mapping[int, Mapping[int, Commitment]],
) -> dict[int, bytes]:
    """The seeds that hospital `index` must show: shared with who says something else of them than it does.

    mine: its own `pair_points`. theirs: points of other survivors under the same accusation, whose signatures the
    caller has checked: no honest hospital has signed other ones.
    """
    return {other: pairs[other] for other, points in sorted(theirs.items()) if points[index] != mine[other]}


def seeds_to_wire(seeds: Mapping[int, bytes]) -> bytes:
    """34 bytes for each: the other end's index, big-endian, and the seed."""
    return b"".join(other.to_bytes(_BYTES_PER_INDEX, "big") + seeds[other] for other in sorted(seeds))


def parse_seeds(raw: bytes) -> dict[int, bytes]:
    """Seeds by the other end from their wire form, checked in nothing but its length. Raises ShapeWrong."""
    size = _BYTES_PER_INDEX + BYTES_PER_SEED
    pieces = _pieces("seeds", raw, size, len(raw) // size)
    return {int.from_bytes(piece[:_BYTES_PER_INDEX], "big"): piece[_BYTES_PER_INDEX:] for piece in pieces}


def culprits(case: Case, accusation: bytes, evidence: Evidence) -> dict[int, Reason]:
    """Who is to blame by hospital index, for the first thing found of each; nobody is where the accuser was wrong.

    accusation: the chain's. The same to everybody who has the same evidence. Raises EvidenceMalformed where the accuser
    gave something else than it must; no hospital's doing brings that about.
    """
    named: dict[int, Reason] = {}
    _require_complete(case, evidence)
    if accusation != case.accusation(evidence.statements):
        raise EvidenceMalformed("the statements are not those of the accusation")
    statements = {}
    for index, raw in evidence.statements.items():
        try:
            statements[index] = parse_statement(raw, case.dealings.keys() - {index})
        except ShapeWrong:
            named[index] = Reason.STATEMENT_MALFORMED
    surviving = {index: statements[index] for index in case.survivors if index in statements}
    if disagreeing(surviving):
        raise EvidenceMalformed(f"of the survivors, {sorted(disagreeing(surviving))} had to be left out")

    gone = dropped_seeds(case, evidence.key_roots)
    for index in false_digests(statements, gone):
        named.setdefault(index, Reason.FALSE_DIGEST)

    left = {}
    for index, statement in surviving.items():
        upload = evidence.uploads[index]
        if upload_digest(upload) != statement.upload:
            raise EvidenceMalformed(f"the upload of hospital {index} is not what it stated")
        try:
            masks = own_seed(evidence.own_roots[index], case.cohort.context), {d: gone[d][index] for d in gone}
            left[index] = _left(case, index, upload, masks, accusation)
        except BlobMalformed:
            named.setdefault(index, Reason.UPLOAD_MALFORMED)
    if left.keys() == case.commitments.keys() and weighted_sum(list(left.values()), [1] * len(left)) == _ZERO:
        return dict(sorted(named.items()))

    points = {}
    for index in case.survivors:
        try:
            others = set(case.survivors) - {index}
            points[index] = parse_points(evidence.points.get(index, b""), others)
        except (ShapeWrong, PointMalformed):
            named.setdefault(index, Reason.NO_POINTS)
    for index in left.keys() & points.keys():
        signs = [1 if index < other else -1 for other in points[index]]
        if weighted_sum(list(points[index].values()), signs) != left[index]:
            named.setdefault(index, Reason.CONTRADICTION)
    both = {index: points[index] for index in sorted(points.keys() & statements.keys())}
    for index, reason in _disputes(case, accusation, both, statements, evidence.seeds):
        named.setdefault(index, reason)
    return dict(sorted(named.items()))


def _require_complete(case: Case, evidence: Evidence) -> None:
    survivors, masking = case.commitments.keys(), case.dealings.keys()
    for what, held, least, most in (
        ("statements", evidence.statements.keys(), survivors, masking),
        ("uploads", evidence.uploads.keys(), survivors, survivors),
        ("own roots", evidence.own_roots.keys(), survivors, survivors),
        ("key roots", evidence.key_roots.keys(), masking - survivors, masking - survivors),
        ("points", evidence.points.keys(), set[int](), survivors),
        ("seeds", {end for pair in evidence.seeds for end in pair}, set[int](), survivors),
    ):
        if wrong := (least - held) | (held - most):
            raise EvidenceMalformed(f"{what} of hospitals {sorted(wrong)} are missing or do not belong here")
    for index, root in evidence.own_roots.items():
        sound = 0 <= root < BLS_MODULUS
        if not sound or root_digest(root, case.cohort.context) != case.dealings[index].own_digest:
            raise EvidenceMalformed(f"the own root of hospital {index} is not the one that it shows")


def _disputes(
    case: Case,
    accusation: bytes,
    points: Mapping[int, Mapping[int, Commitment]],
    statements: Mapping[int, Statement],
    seeds: Mapping[tuple[int, int], bytes],
) -> Iterator[tuple[int, Reason]]:
    """Who is wrong where the two ends' points differ."""
    for one, other in combinations(points, 2):
        if points[one][other] == points[other][one]:
            continue
        digest, shown = statements[one].seeds[other], [seeds.get((one, other), b""), seeds.get((other, one), b"")]
        # Two liars may have stated the digest of bytes that are no seed.
        sound = [seed for seed in shown if len(seed) == BYTES_PER_SEED and seed_digest(seed) == digest]
        truth = _point(sound[0], accusation, case.blobs) if sound else None
        for index, end in ((one, other), (other, one)):
            if points[index][end] != truth:
                yield index, Reason.FALSE_POINT if sound else Reason.NO_SEED


def _left(
    case: Case, index: int, upload: Collection[bytes], masks: tuple[bytes, Mapping[int, bytes]], accusation: bytes
) -> Commitment:
    """E_i: of an upload without its commitments, its own masks and those shared with who dropped out.

    Raises BlobMalformed.
    """
    commitments = case.commitments[index]
    if len(upload) != len(commitments):
        raise BlobMalformed(f"{len(upload)} of them instead of {len(commitments)}")
    bare = (without(parse_blob(raw), mask(index, *masks, number)) for number, raw in enumerate(upload))
    combined = commit(combine(bare, _factors(accusation)))
    weights = [-case.weights[index] * factor for factor in islice(_factors(accusation), len(commitments))]
    return weighted_sum([combined, *commitments], [1, *weights])


def _point(seed: bytes, accusation: bytes, blobs: int) -> Commitment:
    """Com(m_ij) of the masks that a seed expands to, taken together."""
    return commit(combine((expand(seed, number) for number in range(blobs)), _factors(accusation)))


def _factors(accusation: bytes) -> Iterator[int]:
    """Of blobs in order, without end: uniform below 2^128, as `commits_to` takes them."""
    return (int.from_bytes(keccak(accusation + uint256("blob", n))[:_BYTES_PER_FACTOR], "big") for n in count())


def _pieces(what: str, raw: bytes, size: int, number: int) -> list[bytes]:
    if len(raw) != size * number:
        raise ShapeWrong(what, f"{len(raw)} bytes", f"{size * number} bytes")
    return [raw[start : start + size] for start in range(0, len(raw), size)]
