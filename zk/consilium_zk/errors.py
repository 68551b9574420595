"""Errors of the zk room.

    ZkError (a ValueError)
    ├── ArgumentInvalid     a setting or number is outside the range of the function
    ├── ShapeWrong          an array or sequence has the wrong length, dimension or type
    ├── UpdateInvalid       an update cannot be packed
    │   ├ NotFinite             it has NaN or an infinity
    │   └ LanesTooWide          a sum of its lanes would not fit into a scalar
    ├── LaneOutOfRange      honest updates cannot add up to this lane
    ├── Malformed           bytes are not a valid encoding or proof
    │   ├ BlobMalformed         not 4096 canonical scalars
    │   ├ PointMalformed        not a canonical point of the group
    │   ├ KeyMalformed          a key is malformed, the identity, zero or of small order
    │   ├ PathMalformed         hashes are not a path of a Merkle tree
    │   ├ RoundUnsigned         a point is not the signature of the drand round
    │   └ SetupMalformed        the ceremony's setup is missing or is not the ceremony's
    ├── AgreementUnproven   bytes do not prove the key exchange of two keys
    ├── SharesTooFew        fewer shares of a secret than its threshold
    ├── SharesInvalid       secret shares are not those that their dealer commits to
    │   ├ ShareBundleInvalid        they differ from the dealer's commitment
    │   ├ CiphertextInvalid           this sender did not encrypt these bytes for this recipient
    │   └ SharesInconsistent    they are not of one polynomial
    ├── MaskingTooSmall     too few hospitals of a cohort take part
    ├── AnswerMalformed     a hospital's answer does not match the shares that it was dealt
    ├── UnmaskingFailed     a cohort has no sum: some hospital's root is missing
    └── EvidenceMalformed   an accuser's evidence proves nothing

The names below a class are its faults (`error.name`). Errors carry their values, but no secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from consilium_core.faults import FaultError


class ZkError(ValueError):
    """Root of this room's errors."""


class ArgumentInvalid(ZkError):
    """A setting or number is outside the range of the function."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name, self.value, self.wanted = name, value, wanted
        super().__init__(f"{name} is {value!r}; it must be {wanted}")


class ShapeWrong(ZkError):
    """An array or sequence has the wrong length, dimension or element type."""

    def __init__(self, name: str, actual: object, wanted: str) -> None:
        self.name, self.actual, self.wanted = name, actual, wanted
        super().__init__(f"{name} has {actual}; it must have {wanted}")


class UpdateInvalid(FaultError, ZkError):
    """An update cannot be packed."""

    MESSAGES: ClassVar[Mapping[str, str]] = {
        "NotFinite": "value {index} of the update is not finite; training diverged, or the update is corrupt",
        "LanesTooWide": "{bits} bits at a total weight of {total_weight} need lanes of {lane_bits} bits, more than the"
        " {widest} that fit; lower the bits, the weights or the number of hospitals",
    }


class Malformed(FaultError, ZkError):
    """Bytes from outside are not a valid encoding or proof. No message contains key material."""

    MESSAGES: ClassVar[Mapping[str, str]] = {
        "BlobMalformed": "the bytes are not a blob: {reason}",
        "PointMalformed": "{what} is not a point of the group: {reason}",
        "KeyMalformed": "the key is invalid: {reason}",
        "PathMalformed": "the hashes are not a path of this Merkle tree: {reason}",
        "RoundUnsigned": "the point is not the drand chain's signature on round {round}; ask another relay",
        "SetupMalformed": "the trusted setup {path} {reason}; reinstall eth-account",
    }


class SharesInvalid(FaultError, ZkError):
    """Secret shares are not those that their dealer commits to."""

    MESSAGES: ClassVar[Mapping[str, str]] = {
        "ShareBundleInvalid": "the dealer is at fault: {reason}",
        "CiphertextInvalid": "this sender did not encrypt these bytes for this recipient in this context",
        "SharesInconsistent": "the shares at {coordinates} do not lie on one polynomial of threshold {threshold}",
    }


class LaneOutOfRange(ZkError):
    """Lane `index` has `value`, outside [0, `bound`]: no sum of honest updates can have it.

    Bits above the lanes of a scalar count as overflow of its highest lane.
    """

    def __init__(self, index: int, value: int, bound: int) -> None:
        self.index, self.value, self.bound = index, value, bound
        super().__init__(f"lane {index} has {value}, outside [0, {bound}]; refuse the update or sum")


class AgreementUnproven(ZkError):
    """Bytes are not the shared point of these two keys with its proof, in this context."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the bytes do not prove the key exchange of the two keys: {reason}")


class SharesTooFew(ZkError):
    """`count` shares of a secret that needs `threshold`."""

    def __init__(self, count: int, threshold: int) -> None:
        self.count, self.threshold = count, threshold
        super().__init__(f"only {count} of {threshold} needed shares have arrived; wait until more hospitals answer")


class MaskingTooSmall(ZkError):
    """Only `hospitals` of a cohort of `size` take part, fewer than `least`: they could read this one's update."""

    def __init__(self, hospitals: int, least: int, size: int) -> None:
        self.hospitals, self.least, self.size = hospitals, least, size
        super().__init__(
            f"only {hospitals} of the cohort's {size} hospitals take part, and at least {least} must; this hospital"
            " sends nothing in this round"
        )


class AnswerMalformed(ZkError):
    """A hospital's answer does not match the shares that it was dealt."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the answer is invalid: {reason}")


class UnmaskingFailed(ZkError):
    """A cohort has no sum: `faults` has the reason for each hospital whose root is missing."""

    def __init__(self, faults: Mapping[int, ZkError]) -> None:
        self.faults = dict(faults)
        reasons = "; ".join(f"hospital {index}: {error}" for index, error in sorted(self.faults.items()))
        super().__init__(f"the cohort's sum cannot be unmasked: {reasons}")


class EvidenceMalformed(ZkError):
    """An accuser's evidence is malformed or incomplete: the accuser is at fault, and no hospital is named."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the evidence proves nothing: {reason}")
