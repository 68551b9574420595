"""A cohort's masked sum: the masks of each hospital, its answer to remove the others' masks, and the unmasking.

The chain says who is in the cohort, who has committed with which secret shares (`secret_shares`), and who survived. The
hospitals with sound secret shares are the masking (`share_bundles` below, by index); survivors are some of them. A
hospital's answer has a word for each of them, in order: its own root at its own index, otherwise its share of the
other's own root if that one survived, and of its key root if not. Never both: both kinds for one hospital reveal its
update. So survivors must be fixed once, and a hospital must answer for one set of survivors only. Without a sound share
the word says so, and a proof follows the words (`show_bad_entry`). The hospital signs its answer for this masking and
these survivors.

With a threshold of answers the sum is known, or some cheater is exposed for each missing root (`Unmasking.at_fault`),
and never an honest hospital. A dealer's root is known from the dealer itself or from a threshold of right shares. If
these do not give the root, the dealer is at fault. A hospital that answers without such a share proves that the dealer
encrypted none, or is at fault itself.

Source: Bonawitz et al., CCS 2017 (see `masks`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eth_utils.crypto import keccak

from .blobs import Blob, to_scalars
from .constants import BLS_MODULUS, BYTES_PER_FIELD_ELEMENT
from .encoding import uint256
from .errors import (
    AgreementUnproven,
    AnswerMalformed,
    MaskingTooSmall,
    SharesInvalid,
    SharesTooFew,
    UnmaskingFailed,
    ZkError,
)
from .key_exchange import BYTES_PER_KEY, BYTES_PER_SHOWN, BYTES_PER_SIGNATURE, derived, has_signed, is_usable, sign
from .masks import between, expand, mask, mask_private, own_seed, pair_seeds, residue
from .secret_shares import (
    Kind,
    Roots,
    ShareBundle,
    deal,
    is_bad_entry,
    is_share,
    open_entry,
    parse_share_bundle,
    recover_root,
    root_digest,
    show_bad_entry,
)

MIN_MASKED: Final = 3  # of two, each knows the other's update by their sum
_NO_SHARE: Final = b"\xff" * BYTES_PER_FIELD_ELEMENT  # no scalar
_SEAL_TAG: Final = b"CONSILIUM-V1-SEAL-KEY"
_ANSWER_TAG: Final = b"CONSILIUM-V1-ANSWER"
MASKING_TAG: Final[bytes] = keccak(b"CONSILIUM-V1-MASKING")
_BYTES_PER_MAP: Final = 32


def threshold(size: int) -> int:
    """The number of a cohort's `size` hospitals that must answer: two thirds, rounded up.

    Any two such sets share an honest hospital while fewer than a third cheat.
    """
    return -(-2 * size // 3)


@dataclass(frozen=True)
class MaskedCohort:
    """A cohort of a round on the chain: its hospitals' encryption keys by index, and the round's context.

    A hospital whose key is not a point of the group has no part in the masking.
    """

    encryption_keys: Mapping[int, bytes]
    context: bytes

    @cached_property
    def threshold(self) -> int:
        """Counts all hospitals of the cohort, with or without a key or a commitment."""
        return threshold(len(self.encryption_keys))

    @property
    def least(self) -> int:
        """The smallest number of masking hospitals, and of survivors, for a sum."""
        return max(self.threshold, MIN_MASKED)

    def require_enough(self, hospitals: Collection[int]) -> None:
        """Raises MaskingTooSmall.

        Otherwise an aggregator that keeps commitments off the chain could choose who masks with whom, so that all other
        hospitals of a sum are its accomplices.
        """
        if len(hospitals) < self.least:
            raise MaskingTooSmall(len(hospitals), self.least, len(self.encryption_keys))

    @cached_property
    def usable(self) -> dict[int, bytes]:
        return {index: key for index, key in self.encryption_keys.items() if is_usable(key)}

    def require_masking(self, index: int, share_bundles: Collection[int]) -> None:
        """Raises MaskingTooSmall; ShareBundleInvalid where hospital `index` itself is not in the masking."""
        self.require_enough(share_bundles)
        if index not in share_bundles:
            raise SharesInvalid(
                "ShareBundleInvalid",
                reason=f"hospital {index} sent no sound secret shares, and has no part in the masking",
            )

    def recipients(self, dealer: int) -> dict[int, bytes]:
        """The hospitals that get shares of this dealer: all others."""
        return {index: key for index, key in self.usable.items() if index != dealer}

    def parse(self, dealer: int, raw: bytes) -> ShareBundle:
        """Secret shares from the bytes that the dealer signed. Raises ShareBundleInvalid."""
        if dealer not in self.usable:
            raise SharesInvalid(
                "ShareBundleInvalid", reason="its encryption key is not a point of the prime-order group"
            )
        return parse_share_bundle(raw, self.recipients(dealer))


def masking_digest(cohort: MaskedCohort, share_bundles: Mapping[int, ShareBundle]) -> bytes:
    """32 bytes for the hospitals of a masking, their keys and the round."""
    words = [MASKING_TAG, cohort.context, uint256("masking", len(share_bundles))]
    for index, share_bundle in sorted(share_bundles.items()):
        words += [uint256("index", index), share_bundle.key, share_bundle.own_digest]
    return keccak(b"".join(words))


class MaskingHospital:
    """One hospital in one masked round.

    seed: 32 uniform bytes of this round alone. All its secrets come from it, so a restart gives the same. private: of
    its encryption key.
    """

    def __init__(self, index: int, seed: bytes, private: bytes, cohort: MaskedCohort) -> None:
        self._index, self._private, self._cohort = index, private, cohort
        self._roots, self._coefficients = _secrets(seed, cohort.threshold)
        self._seal_private = derived(seed, _SEAL_TAG, cohort.context, BYTES_PER_KEY)

    def share_bundle(self) -> ShareBundle:
        """Always the same; also if too few hospitals have a key for a sum."""
        cohort = self._cohort
        recipients = cohort.recipients(self._index)
        return deal(self._index, self._roots, self._coefficients, self._seal_private, recipients, cohort.context)

    def seeds(self, share_bundles: Mapping[int, ShareBundle]) -> tuple[bytes, dict[int, bytes]]:
        """Its own seed, and those that it shares with all others in the masking, for `mask`.

        Raises as `MaskedCohort.require_masking`.
        """
        self._cohort.require_masking(self._index, share_bundles)
        keys = {index: share_bundle.key for index, share_bundle in share_bundles.items()}
        context = self._cohort.context
        return own_seed(self._roots.own, context), pair_seeds(self._index, self._roots.key, keys, context)

    def mask(self, seeds: tuple[bytes, dict[int, bytes]], blob: int) -> Blob:
        """The mask that it adds to its weighted blob of this number."""
        own, pairs = seeds
        return mask(self._index, own, pairs, blob)

    @property
    def mask_private(self) -> bytes:
        """The private key to its mask key of this round."""
        return mask_private(self._roots.key)

    def answer(
        self, share_bundles: Mapping[int, ShareBundle], survivors: Iterable[int]
    ) -> tuple[bytes, dict[int, ZkError]]:
        """The answer: 32 bytes for each hospital in the masking, 96 for each without a sound share, and a signature of
        64. Also returns the hospitals without a sound share, with the reasons.

        Raises as `seeds`; MaskingTooSmall also if too few survived.
        """
        alive = share_bundles.keys() & set(survivors)
        self._cohort.require_masking(self._index, share_bundles)
        self._cohort.require_enough(alive)
        faults: dict[int, ZkError] = {}
        words, shown = [], []
        for index in sorted(share_bundles):
            if index == self._index:
                words.append(self._roots.own.to_bytes(BYTES_PER_FIELD_ELEMENT, "big"))
                continue
            try:
                share = self._share(index, share_bundles[index], Kind.OWN if index in alive else Kind.KEY)
                words.append(share.to_bytes(BYTES_PER_FIELD_ELEMENT, "big"))
            except SharesInvalid as error:
                faults[index] = error
                words.append(_NO_SHARE)
                share_bundle, context = share_bundles[index], self._cohort.context
                shown.append(show_bad_entry(share_bundle, self._private, index, self._index, context))
        answer = b"".join(words + shown)
        masking = masking_digest(self._cohort, share_bundles)
        return answer + sign(self._seal_private, _answered(self._index, masking, alive, answer)), faults

    def _share(self, dealer: int, share_bundle: ShareBundle, kind: Kind) -> int:
        entry, own = share_bundle.entries[self._index], (self._private, self._cohort.encryption_keys[self._index])
        return open_entry(entry, own, dealer, share_bundle.sender_key, self._index, self._cohort.context)[kind]


class Unmasking:
    """A cohort's answers, and the masks that remain in the sum of its survivors' uploads."""

    def __init__(
        self, cohort: MaskedCohort, share_bundles: Mapping[int, ShareBundle], survivors: Iterable[int]
    ) -> None:
        self._cohort, self._share_bundles, self._survivors = cohort, share_bundles, frozenset(survivors)
        self._masking = masking_digest(cohort, share_bundles)
        self._own: dict[int, int] = {}
        self._shares: dict[int, dict[int, int]] = {index: {} for index in share_bundles}
        self._at_fault: dict[int, dict[int, ZkError]] = {
            index: {} for index in share_bundles
        }  # that its root is missing

    def take(self, hospital: int, answer: bytes) -> dict[int, ZkError]:
        """Takes a survivor's answer; returns the dealers without a share in it, with the reasons: ShareBundleInvalid is
        the dealer's fault, AnswerMalformed the answering hospital's.

        Raises AnswerMalformed.
        """
        if hospital not in self._survivors or hospital not in self._share_bundles:
            raise AnswerMalformed(f"hospital {hospital} is not a survivor")
        answer, signature = answer[:-BYTES_PER_SIGNATURE], answer[-BYTES_PER_SIGNATURE:]
        signed = _answered(hospital, self._masking, self._survivors, answer)
        if not has_signed(self._share_bundles[hospital].sender_key, signature, signed):
            raise AnswerMalformed("this hospital did not sign it for these survivors")
        faults: dict[int, ZkError] = {}
        for index, (word, shown) in self._words(answer).items():
            try:
                self._take(hospital, index, word, shown)
            except AnswerMalformed as error:
                faults[index] = error
                self._at_fault[index][hospital] = error
            except SharesInvalid as error:
                faults[index] = error
                self._at_fault[index][index] = error
        return faults

    def at_fault(self) -> dict[int, ZkError]:
        """The cheaters because of whom roots are missing, by the answers so far: ShareBundleInvalid, AnswerMalformed.

        Empty if the roots are known. Never an honest hospital, and never empty if roots are missing after a threshold
        of answers.
        """
        try:
            self.roots()
        except UnmaskingFailed as error:
            return {
                liar: lie
                for index, fault in error.faults.items()
                for liar, lie in (self._at_fault[index] if isinstance(fault, SharesTooFew) else {index: fault}).items()
            }
        return {}

    def _words(self, answer: bytes) -> dict[int, tuple[bytes, bytes]]:
        """An answer's words by hospital in the masking, each with its proof. Raises AnswerMalformed."""
        size, indices = BYTES_PER_FIELD_ELEMENT, sorted(self._share_bundles)
        words = [answer[start : start + size] for start in range(0, size * len(indices), size)]
        without = words.count(_NO_SHARE)
        wanted = size * len(indices) + BYTES_PER_SHOWN * without
        if len(answer) != wanted:
            raise AnswerMalformed(f"it has {len(answer)} bytes instead of {wanted}")
        behind = iter(range(size * len(indices), wanted, BYTES_PER_SHOWN))
        starts = [next(behind) if word == _NO_SHARE else wanted for word in words]
        shown = [answer[start : start + BYTES_PER_SHOWN] for start in starts]
        return dict(zip(indices, zip(words, shown, strict=True), strict=True))

    def _take(self, hospital: int, index: int, word: bytes, shown: bytes) -> None:
        """Raises ShareBundleInvalid, AnswerMalformed."""
        share_bundle, context, value = self._share_bundles[index], self._cohort.context, int.from_bytes(word, "big")
        if index == hospital:
            if value >= BLS_MODULUS or root_digest(value, context) != share_bundle.own_digest:
                raise SharesInvalid("ShareBundleInvalid", reason="its own root does not match its digest")
            self._own[index] = value
        elif is_share(share_bundle, hospital, self._kind(index), value):
            self._shares[index][hospital] = value
        elif word != _NO_SHARE:
            raise AnswerMalformed("a share does not match the dealer's digest")
        else:
            try:
                bad = is_bad_entry(
                    share_bundle, shown, index, hospital, self._cohort.encryption_keys[hospital], context
                )
            except AgreementUnproven as error:
                raise AnswerMalformed("it has neither a share nor a proof that none was dealt") from error
            if not bad:
                raise AnswerMalformed("the share that it calls bad can be decrypted")
            raise SharesInvalid(
                "ShareBundleInvalid", reason=f"its encrypted shares for hospital {hospital} do not match their digests"
            )

    def residue(self, seeds: tuple[list[bytes], dict[int, dict[int, bytes]]], blob: int) -> Blob:
        """The residue to subtract from the sum of the survivors' blobs of this number."""
        own, dropped = seeds
        return residue(own, dropped, blob)

    def seeds(self) -> tuple[list[bytes], dict[int, dict[int, bytes]]]:
        """The seeds of the survivors' own masks, and of those that dropped hospitals share with survivors.

        Raises UnmaskingFailed with the reason for each missing root: SharesTooFew, or ShareBundleInvalid if enough
        right shares give another root.
        """
        context, roots = self._cohort.context, self.roots()
        keys = {index: self._share_bundles[index].key for index in sorted(self._survivors)}
        own = [own_seed(roots[index], context) for index in keys]
        gone = [index for index in self._share_bundles if index not in keys]
        return own, {index: pair_seeds(index, roots[index], keys, context) for index in gone}

    def roots(self) -> dict[int, int]:
        """All roots of the masking: the survivors' own roots, the key roots of the rest. Raises UnmaskingFailed."""
        roots: dict[int, int] = {}
        faults: dict[int, ZkError] = {}
        for index, share_bundle in self._share_bundles.items():
            shares, needed = self._shares[index], self._cohort.threshold
            try:
                known = self._own.get(index)
                if known is None:
                    known = recover_root(share_bundle, self._kind(index), shares, needed, self._cohort.context)
                roots[index] = known
            except ZkError as error:
                faults[index] = error
        if faults:
            raise UnmaskingFailed(faults)
        return roots

    def _kind(self, index: int) -> Kind:
        return Kind.OWN if index in self._survivors else Kind.KEY


def _answered(hospital: int, masking: bytes, survivors: Iterable[int], answer: bytes) -> bytes:
    """The message that a hospital signs with its answer."""
    alive = sum(1 << index for index in survivors).to_bytes(_BYTES_PER_MAP, "big")
    return b"".join([_ANSWER_TAG, masking, alive, between(hospital, hospital), answer])


def _secrets(seed: bytes, threshold: int) -> tuple[Roots, tuple[list[int], list[int]]]:
    """Both roots, and the coefficients of the polynomials that share them."""
    scalars = to_scalars(expand(seed, 0))
    key, own = scalars[:threshold], scalars[threshold : 2 * threshold]
    return Roots(key[0], own[0]), (key[1:], own[1:])
