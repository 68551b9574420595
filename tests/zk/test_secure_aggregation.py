"""A masked round from share bundle to sum: exact whoever drops out when, a named end where it cannot be had, and what
those learn who try for more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pytest
from consilium_zk import blobs
from consilium_zk.blobs import Blob, to_scalars
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB
from consilium_zk.encoding import round_words
from consilium_zk.errors import AnswerMalformed, MaskingTooSmall, SharesInvalid, SharesTooFew, UnmaskingFailed
from consilium_zk.key_exchange import public_key
from consilium_zk.masks import without
from consilium_zk.secret_shares import Entry, Kind, ShareBundle, open_entry
from consilium_zk.secure_aggregation import MaskedCohort, MaskingHospital, Unmasking, threshold
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import BAD_KEYS, field_blob, is_uniform, signed_answer

CONTEXT = round_words(31_337, bytes(range(20)), 7, 3)
BLOBS = 2


@dataclass
class Round:
    """A cohort of hospitals, each with an update of two blobs and a weight."""

    cohort: MaskedCohort
    hospitals: dict[int, MaskingHospital]
    privates: dict[int, bytes]
    updates: dict[int, list[Blob]]  # by weight already
    share_bundles: dict[int, ShareBundle]  # of who has committed

    @classmethod
    def of(cls, size: int, seed: int = 0, committed: Iterable[int] | None = None) -> Round:
        source = random.Random(seed)
        indices = source.sample(range(256), size)
        privates = {index: source.randbytes(32) for index in indices}
        cohort = MaskedCohort({index: public_key(private) for index, private in privates.items()}, CONTEXT)
        hospitals = {i: MaskingHospital(i, source.randbytes(32), privates[i], cohort) for i in indices}
        updates = {
            index: [
                blobs.scale(field_blob(source.randrange(1 << 30)), source.randint(1, 1 << 16)) for _ in range(BLOBS)
            ]
            for index in indices
        }
        present = indices if committed is None else [indices[place] for place in committed]
        share_bundles = {i: cohort.parse(i, hospitals[i].share_bundle().to_wire()) for i in present}
        return cls(cohort, hospitals, privates, updates, share_bundles)

    def upload(self, index: int) -> list[Blob]:
        hospital = self.hospitals[index]
        seeds = hospital.seeds(self.share_bundles)
        return [blobs.add([blob, hospital.mask(seeds, n)]) for n, blob in enumerate(self.updates[index])]

    def signed(self, index: int, survivors: Iterable[int], body: bytes) -> bytes:
        return signed_answer(self.hospitals[index], self.share_bundles, survivors, body)

    def answers(self, survivors: Iterable[int], answering: Iterable[int]) -> dict[int, bytes]:
        return {index: self.hospitals[index].answer(self.share_bundles, survivors)[0] for index in answering}

    def unmasking(self, survivors: Iterable[int], answers: Mapping[int, bytes]) -> Unmasking:
        made = Unmasking(self.cohort, self.share_bundles, survivors)
        for index, answer in answers.items():
            assert made.take(index, answer) == {}
        return made

    def total(self, survivors: list[int], answering: Iterable[int]) -> list[Blob]:
        unmasking = self.unmasking(survivors, self.answers(survivors, answering))
        return self.without_masks(survivors, unmasking)

    def without_masks(self, survivors: list[int], unmasking: Unmasking) -> list[Blob]:
        seeds = unmasking.seeds()
        uploads = [self.upload(index) for index in survivors]
        return [
            without(blobs.add(column), unmasking.residue(seeds, n))
            for n, column in enumerate(zip(*uploads, strict=True))
        ]

    def expected(self, survivors: list[int]) -> list[Blob]:
        return [blobs.add(column) for column in zip(*(self.updates[index] for index in survivors), strict=True)]


@settings(max_examples=25)
@given(st.integers(3, 9), st.integers(0, 2**32), st.data())
def test_sum_is_exact_whoever_drops_out_before_and_after_uploading(size: int, seed: int, data: st.DataObject) -> None:
    least = max(threshold(size), 3)
    committed = data.draw(st.lists(st.integers(0, size - 1), min_size=least, max_size=size, unique=True))
    made = Round.of(size, seed, committed)
    survivors = data.draw(st.lists(st.sampled_from(sorted(made.share_bundles)), min_size=least, unique=True))
    answering = data.draw(st.lists(st.sampled_from(survivors), min_size=threshold(size), unique=True))
    assert made.total(survivors, answering) == made.expected(survivors)


@pytest.mark.deep
def test_sum_of_the_largest_cohort_is_exact() -> None:
    """Of 256, with a sixth of them gone after they committed, and as many silent after they uploaded as may be."""
    size = 256
    made = Round.of(3, 1)
    source = random.Random(5)
    privates = {index: source.randbytes(32) for index in range(size)}
    cohort = MaskedCohort({index: public_key(private) for index, private in privates.items()}, CONTEXT)
    survivors = sorted(source.sample(range(size), 214))
    answering = sorted(source.sample(survivors, threshold(size)))
    hospitals = {i: MaskingHospital(i, source.randbytes(32), privates[i], cohort) for i in range(size)}
    share_bundles = {index: hospital.share_bundle() for index, hospital in hospitals.items()}
    update = made.updates[next(iter(made.updates))][0]
    total = blobs.add(
        blobs.add([update, hospitals[index].mask(hospitals[index].seeds(share_bundles), 0)]) for index in survivors
    )
    unmasking = Unmasking(cohort, share_bundles, survivors)
    for index in answering:
        assert unmasking.take(index, hospitals[index].answer(share_bundles, survivors)[0]) == {}
    assert without(total, unmasking.residue(unmasking.seeds(), 0)) == blobs.scale(update, len(survivors))


@settings(max_examples=15)
@given(st.integers(3, 9), st.integers(0, 2**32), st.data())
def test_fewer_answers_than_the_threshold_give_nothing(size: int, seed: int, data: st.DataObject) -> None:
    made = Round.of(size, seed)
    survivors = sorted(made.share_bundles)
    answering = data.draw(st.lists(st.sampled_from(survivors), max_size=made.cohort.threshold - 1, unique=True))
    with pytest.raises(UnmaskingFailed) as caught:
        made.unmasking(survivors, made.answers(survivors, answering)).seeds()
    silent = set(survivors) - set(answering)
    assert caught.value.faults.keys() == silent  # and of these nobody has more than its shares of one kind
    for fault in caught.value.faults.values():
        assert isinstance(fault, SharesTooFew)
        assert (fault.count, fault.threshold) == (len(answering), made.cohort.threshold)


def shares_in(made: Round, answers: Mapping[int, bytes], dealer: int, kind: Kind, at: int | None = None) -> int:
    """How many answers hold the share of this kind that they were dealt, at the dealer's place or another."""
    place = sorted(made.share_bundles).index(dealer) if at is None else at
    count = 0
    for recipient, answer in answers.items():
        if recipient != dealer:
            word = int.from_bytes(answer[32 * place : 32 * place + 32], "big")
            entry, key = made.share_bundles[dealer].entries[recipient], made.share_bundles[dealer].sender_key
            own = made.privates[recipient], made.cohort.encryption_keys[recipient]
            dealt = open_entry(entry, own, dealer, key, recipient, CONTEXT)
            count += word == dealt[kind]
    return count


@settings(max_examples=10)
@given(st.integers(3, 7), st.integers(0, 2**32), st.data())
def test_an_answer_holds_one_kind_of_share_of_each(size: int, seed: int, data: st.DataObject) -> None:
    made = Round.of(size, seed)
    indices = sorted(made.share_bundles)
    survivors = data.draw(st.lists(st.sampled_from(indices), min_size=made.cohort.least, unique=True))
    answers = made.answers(survivors, survivors)
    for dealer in indices:
        others = len(set(survivors) - {dealer})
        given_kind, other = (Kind.OWN, Kind.KEY) if dealer in survivors else (Kind.KEY, Kind.OWN)
        assert shares_in(made, answers, dealer, given_kind) == others
        assert shares_in(made, answers, dealer, other) == 0


def test_an_aggregator_that_lies_about_who_dropped_out_does_not_read_the_upload() -> None:
    """It has the upload of one that it calls dropped, and all masks between hospitals; not that one's own mask."""
    made = Round.of(6, 3)
    victim, *survivors = sorted(made.share_bundles)
    answers = made.answers(survivors, survivors)
    unmasking = made.unmasking(survivors, answers)
    _, dropped = unmasking.seeds()
    assert dropped.keys() == {victim}
    assert shares_in(made, answers, victim, Kind.OWN) == 0
    hospital = made.hospitals[victim]
    read = without(made.upload(victim)[0], hospital.mask((bytes(32), dropped[victim]), 0))
    assert read != made.updates[victim][0]
    assert is_uniform(without(read, made.updates[victim][0]))
    assert made.without_masks(survivors, unmasking) == made.expected(survivors)  # for all that, the sum is the sum


def impostor(made: Round, victim: int, index: int) -> None:
    """Hospital `index` shows the victim's encryption key and share bundle as its own."""
    made.cohort = MaskedCohort({**made.cohort.encryption_keys, index: made.cohort.encryption_keys[victim]}, CONTEXT)
    for other in made.hospitals:
        made.hospitals[other] = MaskingHospital(other, bytes([other % 251]) * 32, made.privates[other], made.cohort)
    made.share_bundles = {i: hospital.share_bundle() for i, hospital in made.hospitals.items() if i != index}
    copied = {**made.share_bundles[victim].entries, victim: made.share_bundles[victim].entries[index]}
    del copied[index]
    made.share_bundles[index] = replace(made.share_bundles[victim], entries=copied)


@pytest.mark.parametrize("size", [4, 5, 7])
def test_a_copied_share_bundle_gives_nobody_shares_of_the_one_that_it_was_copied_from(size: int) -> None:
    """Else the aggregator, calling the impostor dropped and the victim not, had both kinds of the victim's shares."""
    made = Round.of(size, 13)
    victim, *others, liar = sorted(made.privates)
    impostor(made, victim, liar)
    survivors = [victim, *others]
    for index in others:
        answer, faults = made.hospitals[index].answer(made.share_bundles, survivors)
        assert {dealer: type(fault) for dealer, fault in faults.items()} == {liar: SharesInvalid}
        assert answer[-160:-64] == bytes(96)  # nothing is shown to a dealer that has not proven its keys
        for dealer in (victim, liar):
            assert shares_in(made, {index: answer}, victim, Kind.KEY, sorted(made.share_bundles).index(dealer)) == 0
        unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
        assert {dealer: type(fault) for dealer, fault in unmasking.take(index, answer).items()} == {liar: SharesInvalid}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_copied_mask_key_cancels_nobodys_masks(place: int) -> None:
    """In a cohort of three whose third is the aggregator's: what is left of an upload without the own mask."""
    made = Round.of(3, 14)
    indices = sorted(made.privates)
    liar = indices.pop(place)
    for reader, victim in (indices, indices[::-1]):
        impostor(made, victim, liar)
        own, pairs = made.hospitals[reader].seeds(made.share_bundles)
        left = without(made.upload(reader)[0], made.hospitals[reader].mask((own, {}), 0))
        assert left != made.updates[reader][0]
        assert is_uniform(without(left, made.updates[reader][0]))
        assert len(set(pairs.values())) == 2


def test_no_two_sets_of_survivors_get_as_many_answers_as_are_needed() -> None:
    """As long as fewer than a third of a cohort lie: an honest hospital answers for one set only."""
    for size in range(3, 257):
        liars = math.ceil(size / 3) - 1
        assert 2 * (threshold(size) - liars) > size - liars
        assert size / 2 < threshold(size) < size


@pytest.mark.parametrize("size", range(3, 13))
def test_a_hospital_gives_nothing_to_fewer_than_its_cohorts_threshold(size: int) -> None:
    """Whoever keeps others' commitments back, or calls others dropped: else two of nine read a third one's update."""
    made = Round.of(size, 20)
    victim, *others = sorted(made.share_bundles)
    hospital, everybody = made.hospitals[victim], made.share_bundles
    few = [victim, *others[: made.cohort.least - 2]]
    with pytest.raises(MaskingTooSmall):
        hospital.answer(everybody, few)
    made.share_bundles = {index: everybody[index] for index in few}
    for give in (lambda: hospital.seeds(made.share_bundles), lambda: hospital.answer(made.share_bundles, few)):
        with pytest.raises(MaskingTooSmall) as caught:
            give()
        assert (caught.value.hospitals, caught.value.size) == (len(few), size)
    made.share_bundles = {index: everybody[index] for index in others}
    if size > 3:
        with raises_fault(SharesInvalid, "ShareBundleInvalid", match="has no part in the masking"):
            hospital.seeds(made.share_bundles)


def mixed(made: Round, liar: int, victims: Iterable[int]) -> ShareBundle:
    """A share bundle that opens everywhere, and to the victims with shares of other polynomials."""
    twin = MaskingHospital(liar, bytes(32), made.privates[liar], made.cohort)
    twin._seal_private = made.hospitals[liar]._seal_private
    share_bundle, other = made.share_bundles[liar], twin.share_bundle()
    return replace(share_bundle, entries={**share_bundle.entries, **{index: other.entries[index] for index in victims}})


@pytest.mark.parametrize("size", [3, 4, 8])
def test_a_hospital_that_deals_inconsistent_shares_is_named(size: int) -> None:
    made = Round.of(size, 4)
    liar, *others = sorted(made.share_bundles)
    made.share_bundles[liar] = mixed(made, liar, others[1::2])
    if size == 3:  # of two recipients each has a share of another polynomial
        survivors, answering = [liar, *others], others
    else:
        survivors, answering = others, others
    answers = made.answers(survivors, answering)
    with pytest.raises(UnmaskingFailed) as caught:
        made.unmasking(survivors, answers).seeds()
    assert {index: type(fault) for index, fault in caught.value.faults.items()} == {liar: SharesInvalid}


def test_shares_that_their_dealer_does_not_show_are_named_and_missed() -> None:
    made = Round.of(6, 5)
    liar, victim, *_ = sorted(made.share_bundles)
    entries = dict(made.share_bundles[liar].entries)
    entries[victim] = Entry(bytes(80), entries[victim].digests)
    made.share_bundles[liar] = replace(made.share_bundles[liar], entries=entries)
    survivors = sorted(made.share_bundles)
    answer, faults = made.hospitals[victim].answer(made.share_bundles, survivors)
    assert {index: type(fault) for index, fault in faults.items()} == {liar: SharesInvalid}
    unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
    assert unmasking.take(victim, answer).keys() == {liar}  # whom the aggregator hears of, too
    for index in survivors:
        if index != victim and index != liar:
            assert unmasking.take(index, made.answers(survivors, [index])[index]) == {}
    unmasking.seeds()  # the others' shares are enough


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(0, 255))
def test_a_changed_answer_is_named_and_the_sum_had_without_it(seed: int, word: int, bit: int) -> None:
    made = Round.of(6, seed)
    survivors = sorted(made.share_bundles)
    liar = survivors[2]
    unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
    changed = bytearray(made.answers(survivors, [liar])[liar][:-64])
    changed[32 * word + bit // 8] ^= 1 << bit % 8
    assert unmasking.take(liar, made.signed(liar, survivors, bytes(changed))).keys() == {survivors[word]}
    for index in survivors:
        if index != liar:
            unmasking.take(index, made.answers(survivors, [index])[index])
    assert made.without_masks(survivors, unmasking) == made.expected(survivors)


def test_answers_of_another_shape_or_of_no_survivor_are_refused() -> None:
    made = Round.of(4, 6)
    gone, *survivors = sorted(made.share_bundles)
    unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
    with pytest.raises(AnswerMalformed, match="not a survivor"):
        unmasking.take(gone, bytes(128))
    for size in (0, 127, 160):
        with pytest.raises(AnswerMalformed, match=f"{size} bytes instead of 128"):
            unmasking.take(survivors[0], made.signed(survivors[0], survivors, bytes(size)))
    right = made.answers(survivors, [survivors[0]])[survivors[0]]
    everybody = made.answers(sorted(made.share_bundles), [survivors[0]])[survivors[0]]
    for wrong in (right[:-1], bytes(64) + right[64:], right[:-64] + bytes(64), everybody, b""):
        with pytest.raises(AnswerMalformed, match="did not sign it for these survivors"):
            unmasking.take(survivors[0], wrong)
    with pytest.raises(AnswerMalformed, match="did not sign"):
        unmasking.take(survivors[1], right)


def test_share_bundles_that_are_none_are_refused() -> None:
    made = Round.of(4, 7)
    index = min(made.share_bundles)
    wire = made.share_bundles[index].to_wire()
    assert made.cohort.parse(index, wire) == made.share_bundles[index]
    for raw in (b"", wire[:-1], wire + b"\0", wire[:-144]):
        with raises_fault(SharesInvalid, "ShareBundleInvalid", match="bytes instead of"):
            made.cohort.parse(index, raw)
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="not a point of the prime-order group"):
        made.cohort.parse(index, bytes(32) + wire[32:])


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
@pytest.mark.parametrize("size", [4, 5])
def test_a_hospital_whose_key_is_none_keeps_the_others_from_nothing(size: int, key: bytes) -> None:
    made = Round.of(size, 8)
    outsider, *indices = sorted(made.cohort.encryption_keys)
    made.cohort = MaskedCohort({**made.cohort.encryption_keys, outsider: key}, CONTEXT)
    assert made.cohort.threshold == threshold(size)
    made.hospitals = {i: MaskingHospital(i, bytes([i]) * 32, made.privates[i], made.cohort) for i in indices}
    wires = {i: hospital.share_bundle().to_wire() for i, hospital in made.hospitals.items()}
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="not a point of the prime-order group"):
        made.cohort.parse(outsider, wires[indices[0]])
    made.share_bundles = {i: made.cohort.parse(i, wire) for i, wire in wires.items()}
    assert made.total(indices, indices[: made.cohort.threshold]) == made.expected(indices)


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_copied_encryption_key_costs_nobody_else_anything(place: int) -> None:
    """Hospital `place` announced the key of another, to which it has no private one: it can open nothing."""
    made = Round.of(4, 22)
    indices = sorted(made.privates)
    copier = indices.pop(place)
    made.cohort = MaskedCohort(
        {**made.cohort.encryption_keys, copier: made.cohort.encryption_keys[indices[0]]}, CONTEXT
    )
    made.hospitals = {i: MaskingHospital(i, bytes([i]) * 32, made.privates[i], made.cohort) for i in made.privates}
    made.share_bundles = {
        i: made.cohort.parse(i, hospital.share_bundle().to_wire()) for i, hospital in made.hospitals.items()
    }
    everybody = sorted(made.privates)
    assert made.total(everybody, indices) == made.expected(everybody)
    assert made.total(indices, indices) == made.expected(indices)
    unmasking = Unmasking(made.cohort, made.share_bundles, everybody)
    wrong, faults = made.hospitals[copier].answer(made.share_bundles, everybody)
    assert {dealer: type(fault) for dealer, fault in faults.items()} == dict.fromkeys(indices, SharesInvalid)
    assert {type(fault) for fault in unmasking.take(copier, wrong).values()} == {AnswerMalformed}
    unmasking.take(indices[0], made.answers(everybody, indices)[indices[0]])
    unmasking.take(indices[1], made.answers(everybody, indices)[indices[1]])
    assert unmasking.at_fault().keys() == {copier}  # three have answered, and the third one's root is missing


def test_two_hospitals_of_one_owner_with_one_encryption_key_are_two_hospitals() -> None:
    made = Round.of(5, 23)
    indices = sorted(made.privates)
    one, twin, *_ = indices
    made.privates[twin] = made.privates[one]
    made.cohort = MaskedCohort({i: public_key(private) for i, private in made.privates.items()}, CONTEXT)
    made.hospitals = {i: MaskingHospital(i, bytes([i]) * 32, made.privates[i], made.cohort) for i in indices}
    made.share_bundles = {
        i: made.cohort.parse(i, hospital.share_bundle().to_wire()) for i, hospital in made.hospitals.items()
    }
    assert made.total(indices, indices[:4]) == made.expected(indices)
    assert made.total(indices[1:], indices[1:]) == made.expected(indices[1:])


# Who is at fault that roots are missing


def sealing_nothing(share_bundle: ShareBundle, recipients: Iterable[int]) -> ShareBundle:
    bad = {index: replace(share_bundle.entries[index], sealed=bytes(80)) for index in recipients}
    return replace(share_bundle, entries={**share_bundle.entries, **bad})


@pytest.mark.parametrize("size", range(4, 9))
def test_a_dealer_whose_shares_cannot_be_opened_is_at_fault(size: int) -> None:
    """It is silent afterwards, and has cost its cohort the sum: by its own share bundle, which the others show."""
    made = Round.of(size, 24)
    liar, *others = survivors = sorted(made.share_bundles)
    made.share_bundles[liar] = sealing_nothing(made.share_bundles[liar], others)
    unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
    for index in others:
        faults = unmasking.take(index, made.hospitals[index].answer(made.share_bundles, survivors)[0])
        assert {dealer: type(fault) for dealer, fault in faults.items()} == {liar: SharesInvalid}
    found = unmasking.at_fault()
    assert {index: type(fault) for index, fault in found.items()} == {liar: SharesInvalid}


def test_a_hospital_that_says_it_was_dealt_nothing_must_show_it() -> None:
    made = Round.of(4, 25)
    silent, liar, *others = survivors = sorted(made.share_bundles)
    right = made.answers(survivors, [liar, *others])
    place = 32 * survivors.index(silent)
    shown: dict[str, bytes | MaskingHospital] = {
        "nothing": bytes(96),
        "another's": MaskingHospital(others[0], bytes(32), made.privates[others[0]], made.cohort),
        "its own, which can be opened": MaskingHospital(liar, bytes(32), made.privates[liar], made.cohort),
    }
    bad = {**made.share_bundles, silent: sealing_nothing(made.share_bundles[silent], [liar, *others])}
    for claim in shown.values():
        proof = claim if isinstance(claim, bytes) else claim.answer(bad, survivors)[0][-160:-64]
        word = right[liar][:place] + b"\xff" * 32 + right[liar][place + 32 : -64]
        unmasking = made.unmasking(survivors, {index: right[index] for index in others})
        signed = made.signed(liar, survivors, word + proof)
        assert {type(fault) for fault in unmasking.take(liar, signed).values()} == {AnswerMalformed}
        assert unmasking.at_fault().keys() == {liar}
        for wrong in (word, word + proof[:-1], word + proof + proof):
            with pytest.raises(AnswerMalformed, match="bytes instead of"):
                unmasking.take(liar, made.signed(liar, survivors, wrong))


@settings(max_examples=15)
@given(st.integers(4, 9), st.integers(0, 2**32), st.data())
def test_with_a_threshold_of_answers_the_sum_is_had_or_a_liar_is_at_fault(
    size: int, seed: int, data: st.DataObject
) -> None:
    made = Round.of(size, seed)
    source, survivors = random.Random(seed), sorted(made.share_bundles)
    liars = data.draw(st.lists(st.sampled_from(survivors), min_size=1, max_size=size // 2, unique=True))
    for liar in liars:
        match data.draw(st.sampled_from(["seals nothing", "mixes", "deals"])):
            case "seals nothing":
                victims = source.sample([i for i in survivors if i != liar], source.randint(1, size - 1))
                made.share_bundles[liar] = sealing_nothing(made.share_bundles[liar], victims)
            case "mixes":
                victims = source.sample([i for i in survivors if i != liar], source.randint(1, size - 1))
                made.share_bundles[liar] = mixed(made, liar, victims)
    silent = source.sample(survivors, data.draw(st.integers(0, size - made.cohort.threshold)))
    unmasking = Unmasking(made.cohort, made.share_bundles, survivors)
    for index in survivors:
        if index in silent:
            continue
        answer = bytearray(made.hospitals[index].answer(made.share_bundles, survivors)[0][:-64])
        if index in liars:
            place = source.randrange(size)
            answer[32 * place + 1] ^= source.randint(0, 1)
        try:
            unmasking.take(index, made.signed(index, survivors, bytes(answer)))
        except AnswerMalformed:
            silent.append(index)
    found = unmasking.at_fault()
    assert found.keys() <= set(liars)
    if found or size - len(silent) < made.cohort.threshold:
        return
    assert made.without_masks(survivors, unmasking) == made.expected(survivors)


def test_hospitals_without_a_key_do_not_lower_the_threshold() -> None:
    """Of nine, four have none: the others are fewer than six, deal as ever, and give nothing."""
    made = Round.of(9, 21)
    outside = sorted(made.privates)[:4]
    made.cohort = MaskedCohort({**made.cohort.encryption_keys, **dict.fromkeys(outside, bytes(32))}, CONTEXT)
    inside = made.cohort.usable
    made.hospitals = {i: MaskingHospital(i, bytes([i]) * 32, made.privates[i], made.cohort) for i in inside}
    made.share_bundles = {
        i: made.cohort.parse(i, hospital.share_bundle().to_wire()) for i, hospital in made.hospitals.items()
    }
    for hospital in made.hospitals.values():
        with pytest.raises(MaskingTooSmall, match="only 5 of the cohort's 9 hospitals take part, and at least 6 must"):
            hospital.seeds(made.share_bundles)


def test_a_hospital_deals_the_same_again_after_a_restart() -> None:
    made = Round.of(5, 9)
    index = min(made.privates)
    twice = [
        MaskingHospital(index, b"\7" * 32, made.privates[index], made.cohort).share_bundle().to_wire() for _ in "ab"
    ]
    assert twice[0] == twice[1]
    assert MaskingHospital(index, b"\x08" * 32, made.privates[index], made.cohort).share_bundle().to_wire() != twice[0]


def plain(value: int) -> Blob:
    """As far from uniform as a blob can be."""
    return Blob(value.to_bytes(32, "big") * (BYTES_PER_BLOB // 32))


def test_a_masked_upload_looks_uniform_whatever_is_in_it() -> None:
    made = Round.of(3, 10)
    index = min(made.share_bundles)
    for value in (0, 1, BLS_MODULUS - 1):
        made.updates[index] = [plain(value)] * 8
        assert not is_uniform(*made.updates[index])
        assert is_uniform(*made.upload(index))


def test_two_uploads_of_one_update_share_nothing() -> None:
    """Of one hospital in two rounds, and of two hospitals in one: neither a scalar, nor the difference's look."""
    first, second = Round.of(3, 11), Round.of(3, 12)
    uploads = []
    for made in (first, second):
        for index in sorted(made.share_bundles)[:2]:
            made.updates[index] = [plain(5)] * 4
            uploads.append(made.upload(index))
    for n, one in enumerate(uploads):
        for other in uploads[:n]:
            for a, b in zip(one, other, strict=True):
                assert not set(to_scalars(a)) & set(to_scalars(b))
            assert is_uniform(*(without(a, b) for a, b in zip(one, other, strict=True)))
        assert not set(to_scalars(one[0])) & set(to_scalars(one[1]))
