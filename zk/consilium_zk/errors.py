"""Everything this room raises.

    ZkError (a ValueError)
    ├── ArgumentInvalid     a setting or number outside what the function takes
    ├── ShapeWrong          an array or sequence of the wrong length, dimension or type
    ├── NotFinite           NaN or infinity in an update
    ├── LanesTooWide        a sum of lanes would not fit into its place in a scalar
    ├── LaneOutOfRange      a lane that honest updates cannot add up to
    ├── BlobMalformed       bytes that are not 4096 canonical scalars
    ├── PointMalformed      bytes that are not a canonical point of the group
    ├── OpeningInvalid      a KZG opening that does not verify or does not parse
    ├── ChallengeOnDomain   an opening there would reveal one of the blob's scalars
    ├── KeyMalformed        a key that is malformed, the identity, zero or of small order
    ├── AgreementUnproven   bytes that do not show what two keys agree on
    ├── SharesTooFew        fewer shares of a secret than its threshold
    ├── SharesInconsistent  shares of a secret that are not of one polynomial
    ├── DealingInvalid      shares that are not what their dealer shows
    ├── MaskingTooSmall     fewer hospitals of a cohort than its threshold
    ├── AnswerMalformed     what a hospital gives back of others' masks is not what it was dealt
    ├── UnmaskingFailed     a cohort's sum cannot be had: some hospital's root is missing
    ├── EvidenceMalformed   what an accuser gives is not what it must
    ├── PathMalformed       hashes that are no path of a Merkle tree
    ├── SealInvalid         bytes that this sender did not seal for this recipient
    ├── RoundUnsigned       a point that is not the signature of the drand round
    └── SetupMalformed      the ceremony's setup is missing or is not the ceremony's

Errors carry their values as attributes, and never carry secrets.
"""

from __future__ import annotations

from collections.abc import Mapping


class ZkError(ValueError):
    """Root of everything raised on purpose by this package."""


class ArgumentInvalid(ZkError):
    """A setting or number is outside what the function takes."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name, self.value, self.wanted = name, value, wanted
        super().__init__(f"{name} is {value!r}; it must be {wanted}")


class ShapeWrong(ZkError):
    """An array or sequence has the wrong length, dimension or element type."""

    def __init__(self, name: str, actual: object, wanted: str) -> None:
        self.name, self.actual, self.wanted = name, actual, wanted
        super().__init__(f"{name} has {actual}; it must have {wanted}")


class NotFinite(ZkError):
    """An update contains NaN or an infinity, first at `index`."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"value {index} is not finite; training diverged or the update is corrupt")


class LanesTooWide(ZkError):
    """`bits` for a value plus head-room for `total_weight` summands exceed the widest lane."""

    def __init__(self, bits: int, total_weight: int, lane_bits: int, widest: int) -> None:
        self.bits, self.total_weight, self.lane_bits, self.widest = bits, total_weight, lane_bits, widest
        super().__init__(
            f"{bits} bits summed over a total weight of {total_weight} need lanes of {lane_bits} bits, "
            f"at most {widest} fit; lower the bits, the weights or the number of hospitals"
        )


class LaneOutOfRange(ZkError):
    """Lane `index` holds `value`, outside [0, `bound`]: no sum of honest updates can.

    Where bits are set above the lanes of a scalar, they count as overflow of its highest lane.
    """

    def __init__(self, index: int, value: int, bound: int) -> None:
        self.index, self.value, self.bound = index, value, bound
        super().__init__(f"lane {index} holds {value}, outside [0, {bound}]; the update or sum must be refused")


class BlobMalformed(ZkError):
    """Bytes are not 4096 canonical big-endian scalars."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"not a blob: {reason}")


class PointMalformed(ZkError):
    """Bytes are not the canonical encoding of a point of the prime-order group."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"{what} is not a point of the group: {reason}")


class OpeningInvalid(ZkError):
    """A KZG opening does not verify, or its value is not a canonical scalar."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"opening refused: {reason}")


class ChallengeOnDomain(ZkError):
    """The challenge is one of the 4096 points at which the blob's own scalars are the values."""

    def __init__(self, challenge: int) -> None:
        self.challenge = challenge
        super().__init__(f"challenge {challenge:#x} is a 4096th root of unity; opening there would reveal a scalar")


class KeyMalformed(ZkError):
    """A key is malformed, zero, the identity or of small order. The message never contains key material."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"key refused: {reason}")


class AgreementUnproven(ZkError):
    """Bytes are no agreed point with its proof, for these two keys in this context."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"they do not show what the two keys agree on: {reason}")


class SharesTooFew(ZkError):
    """`count` shares of a secret that `threshold` give."""

    def __init__(self, count: int, threshold: int) -> None:
        self.count, self.threshold = count, threshold
        super().__init__(f"{count} shares are here and {threshold} are needed; wait for more hospitals to answer")


class SharesInconsistent(ZkError):
    """Shares at `places`, more than `threshold`, are not of one polynomial: a share or its dealer is wrong."""

    def __init__(self, places: tuple[int, ...], threshold: int) -> None:
        self.places, self.threshold = places, threshold
        super().__init__(f"the shares at {places} are not of one polynomial with threshold {threshold}")


class DealingInvalid(ZkError):
    """What a dealer dealt is not what it shows."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the dealer is at fault: {reason}")


class MaskingTooSmall(ZkError):
    """`hospitals` of a cohort of `size` take part where `least` must: the others could read this one's update."""

    def __init__(self, hospitals: int, least: int, size: int) -> None:
        self.hospitals, self.least, self.size = hospitals, least, size
        super().__init__(
            f"only {hospitals} of the cohort's {size} hospitals take part, and {least} must;"
            " this hospital gives nothing in this round"
        )


class AnswerMalformed(ZkError):
    """What a hospital gave back is not a word for each in the masking, or a word is not what it was dealt."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the answer is refused: {reason}")


class UnmaskingFailed(ZkError):
    """A cohort's sum cannot be had: `faults` says of each hospital whose root is missing, why."""

    def __init__(self, faults: Mapping[int, ZkError]) -> None:
        self.faults = dict(faults)
        said = "; ".join(f"hospital {index}: {error}" for index, error in sorted(self.faults.items()))
        super().__init__(f"roots are missing: {said}")


class EvidenceMalformed(ZkError):
    """What an accuser gives is not what it must: it is the accuser's fault and names no hospital."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the evidence proves nothing: {reason}")


class PathMalformed(ZkError):
    """Hashes are no path to this place of a tree of this size."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"not a path of this Merkle tree: {reason}")


class SealInvalid(ZkError):
    """The bytes are not what this sender sealed for this recipient in this context."""

    def __init__(self) -> None:
        super().__init__("not sealed by this sender for this recipient in this context")


class RoundUnsigned(ZkError):
    """A point is not the signature of the drand round: of another round, of another chain, or of nobody."""

    def __init__(self, round: int) -> None:
        self.round = round
        super().__init__(f"the point is not the chain's signature of drand round {round}; ask another relay")


class SetupMalformed(ZkError):
    """The ceremony's setup cannot be found, or its bytes are not the ceremony's."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"trusted setup {path}: {reason}; reinstall eth-account")
