"""A whole masked sum, from keys to the total: whoever drops out when, up to the threshold, and whoever lies."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from consilium_zk import blobs
from consilium_zk.authenticated_encryption import seal
from consilium_zk.blobs import Blob
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.errors import AgreementUnproven, ShapeWrong, SharesInvalid, SharesTooFew
from consilium_zk.key_exchange import public_key
from consilium_zk.masks import between, mask, own_seed, pair_seeds, residue, without
from consilium_zk.secret_shares import (
    BYTES_PER_ENTRY,
    Entry,
    Kind,
    Roots,
    ShareBundle,
    deal,
    is_bad_entry,
    is_proven,
    is_share,
    open_entry,
    parse_entry,
    parse_share_bundle,
    recover_root,
    show_bad_entry,
)
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import BAD_KEYS, field_blob

CONTEXT = b"chain, contract, task, round"


@dataclass
class Hospital:
    index: int
    weight: int
    update: Blob
    private: bytes
    roots: Roots


@dataclass
class Cohort:
    """Hospitals that have committed, and what they dealt to each other."""

    hospitals: dict[int, Hospital]
    threshold: int
    share_bundles: dict[int, ShareBundle]

    @classmethod
    def of(cls, seed: int, size: int, threshold: int) -> Cohort:
        source = random.Random(seed)
        hospitals = {
            index: Hospital(
                index, source.randint(1, 1 << 16), field_blob(source.randrange(1 << 30)), source.randbytes(32),
                Roots(source.randrange(BLS_MODULUS), source.randrange(BLS_MODULUS)),
            )
            for index in source.sample(range(256), size)
        }  # fmt: skip
        made = cls(hospitals, threshold, {})
        for hospital in hospitals.values():
            first, second = ([source.randrange(BLS_MODULUS) for _ in range(threshold - 1)] for _ in Kind)
            others = made.others(hospital.index)
            made.share_bundles[hospital.index] = deal(
                hospital.index, hospital.roots, (first, second), hospital.private, others, CONTEXT
            )
        return made

    def others(self, index: int) -> dict[int, bytes]:
        return {other: public_key(h.private) for other, h in self.hospitals.items() if other != index}

    @property
    def keys(self) -> dict[int, bytes]:
        return {index: share_bundle.key for index, share_bundle in self.share_bundles.items()}

    def upload(self, index: int) -> Blob:
        hospital = self.hospitals[index]
        masked = mask(
            index,
            own_seed(hospital.roots.own, CONTEXT),
            pair_seeds(index, hospital.roots.key, self.keys, CONTEXT),
            0,
        )
        return blobs.add([blobs.scale(hospital.update, hospital.weight), masked])

    def share(self, recipient: int, dealer: int, kind: Kind) -> int:
        """What a recipient gives back of a dealer's root."""
        hospital = self.hospitals[recipient]
        share_bundle = self.share_bundles[dealer]
        entry = share_bundle.entries[recipient]
        own = hospital.private, public_key(hospital.private)
        return open_entry(entry, own, dealer, share_bundle.sender_key, recipient, CONTEXT)[kind]

    def root(self, dealer: int, kind: Kind, answering: list[int]) -> int:
        """Of who answers and is asked by name, whom an answer names itself, and everybody else's shares."""
        if kind is Kind.OWN and dealer in answering:
            return self.hospitals[dealer].roots.own
        shares = {other: self.share(other, dealer, kind) for other in answering if other != dealer}
        assert all(is_share(self.share_bundles[dealer], other, kind, share) for other, share in shares.items())
        return recover_root(self.share_bundles[dealer], kind, shares, self.threshold, CONTEXT)

    def total(self, survivors: list[int], answering: list[int]) -> Blob:
        """What the aggregator makes of the survivors' uploads and of who answers afterwards."""
        uploads = blobs.add(self.upload(index) for index in survivors)
        own = [own_seed(self.root(index, Kind.OWN, answering), CONTEXT) for index in survivors]
        keys = {index: self.keys[index] for index in survivors}
        dropped = {
            index: pair_seeds(index, self.root(index, Kind.KEY, answering), keys, CONTEXT)
            for index in self.hospitals
            if index not in survivors
        }
        return without(uploads, residue(own, dropped, 0))

    def expected(self, survivors: list[int]) -> Blob:
        return blobs.add(blobs.scale(self.hospitals[i].update, self.hospitals[i].weight) for i in survivors)


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.integers(3, 8), st.data())
def test_sum_is_exact_whoever_drops_out_up_to_the_threshold(seed: int, size: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(2, size - 1))
    cohort = Cohort.of(seed, size, threshold)
    order = data.draw(st.permutations(sorted(cohort.hospitals)))
    survivors = order[: data.draw(st.integers(threshold, size))]
    answering = survivors[: data.draw(st.integers(threshold, len(survivors)))]
    assert cohort.total(survivors, answering) == cohort.expected(survivors)


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.integers(4, 8), st.data())
def test_below_the_threshold_there_is_a_clear_end(seed: int, size: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(3, size - 1))
    cohort = Cohort.of(seed, size, threshold)
    order = data.draw(st.permutations(sorted(cohort.hospitals)))
    survivors, answering = order[:-1], order[: threshold - 1]
    with pytest.raises(SharesTooFew) as caught:
        cohort.total(survivors, answering)
    assert (caught.value.count, caught.value.threshold) == (threshold - 1, threshold)


def test_a_cohort_of_three() -> None:
    cohort = Cohort.of(3, 3, 2)
    indices = sorted(cohort.hospitals)
    for survivors in (indices, indices[:2], indices[1:]):
        assert cohort.total(survivors, survivors) == cohort.expected(survivors)


# Lies


@pytest.mark.parametrize("kind", Kind)
def test_a_share_that_is_given_back_wrong_names_who_gave_it(kind: Kind) -> None:
    cohort = Cohort.of(5, 5, 3)
    dealer, *others = cohort.hospitals
    right = {other: cohort.share(other, dealer, kind) for other in others}
    share_bundle = cohort.share_bundles[dealer]
    assert all(is_share(share_bundle, other, kind, share) for other, share in right.items())
    liar = others[1]
    other_kind = Kind.OWN if kind is Kind.KEY else Kind.KEY
    wrong = [(right[liar] + 1) % BLS_MODULUS, right[others[0]], cohort.share(liar, dealer, other_kind), -1, 1 << 256]
    assert not any(is_share(share_bundle, liar, kind, share) for share in wrong)
    assert not is_share(share_bundle, dealer, kind, right[liar])  # a dealer has no share of its own
    # Without the liar's the others' are enough.
    del right[liar]
    root = getattr(cohort.hospitals[dealer].roots, kind.name.lower())
    assert recover_root(share_bundle, kind, right, 3, CONTEXT) == root


@pytest.mark.parametrize("kind", Kind)
def test_shares_of_something_else_name_the_dealer(kind: Kind) -> None:
    """All as shown, and not of one polynomial: nobody sees it before they are put together."""
    cohort = Cohort.of(6, 5, 3)
    dealer = cohort.hospitals[next(iter(cohort.hospitals))]
    recipients = cohort.others(dealer.index)
    other = deal(
        dealer.index,
        Roots(dealer.roots.key + 1, dealer.roots.own + 1),
        ([1, 2], [3, 4]),
        dealer.private,
        recipients,
        CONTEXT,
    )
    mixed = dict(cohort.share_bundles[dealer.index].entries)
    victim = min(recipients)
    mixed[victim] = other.entries[victim]
    cohort.share_bundles[dealer.index] = replace(cohort.share_bundles[dealer.index], entries=mixed)
    shares = {index: cohort.share(index, dealer.index, kind) for index in recipients}
    assert all(is_share(cohort.share_bundles[dealer.index], index, kind, share) for index, share in shares.items())
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match=f"{kind.name.lower()} root"):
        recover_root(cohort.share_bundles[dealer.index], kind, shares, 3, CONTEXT)


def test_a_recipient_sees_at_once_that_it_was_dealt_something_else_than_is_shown() -> None:
    anna, bert = ((private, public_key(private)) for private in (bytes([k]) * 32 for k in (1, 2)))
    share_bundle = deal(2, Roots(5, 6), ([7], [8]), anna[0], {0: bert[1], 1: bert[1]}, CONTEXT)
    first, second = share_bundle.entries[0], share_bundle.entries[1]
    assert open_entry(first, bert, 2, anna[1], 0, CONTEXT) == {Kind.KEY: 5 + 7, Kind.OWN: 6 + 8}
    with raises_fault(SharesInvalid, "CiphertextInvalid"):  # for another
        open_entry(Entry(second.sealed, first.digests), bert, 2, anna[1], 0, CONTEXT)
    with raises_fault(SharesInvalid, "CiphertextInvalid"):  # by another
        open_entry(first, bert, 1, anna[1], 0, CONTEXT)
    for entry in (
        Entry(first.sealed, (first.digests[0], second.digests[1])),
        Entry(first.sealed, (first.digests[1], first.digests[0])),
    ):
        with raises_fault(SharesInvalid, "ShareBundleInvalid", match="does not match its digest"):
            open_entry(entry, bert, 2, anna[1], 0, CONTEXT)
    with raises_fault(SharesInvalid, "CiphertextInvalid"):  # of another round
        open_entry(first, bert, 2, anna[1], 0, b"another round")


def test_a_share_outside_the_field_names_the_dealer() -> None:
    anna, bert = ((private, public_key(private)) for private in (bytes([k]) * 32 for k in (1, 2)))
    honest = deal(2, Roots(5, 6), ([7], [8]), anna[0], {0: bert[1], 1: bert[1]}, CONTEXT)
    tag = keccak(b"CONSILIUM-V1-DEALT")
    words = [(BLS_MODULUS + 12).to_bytes(32, "big"), (14).to_bytes(32, "big")]
    entry = Entry(
        seal(b"".join(words), anna, bert[1], CONTEXT + between(2, 0)),
        (keccak(tag + words[0]), keccak(tag + words[1])),
    )
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="outside the field"):
        open_entry(entry, bert, 2, anna[1], 0, CONTEXT)
    share_bundle = replace(honest, entries={**honest.entries, 0: entry})
    assert is_share(share_bundle, 0, Kind.KEY, BLS_MODULUS + 12)  # it is what was shown, and that is the fault
    shares = {0: BLS_MODULUS + 12, 1: open_entry(honest.entries[1], bert, 2, anna[1], 1, CONTEXT)[Kind.KEY]}
    with raises_fault(SharesInvalid, "ShareBundleInvalid", match="outside the field"):
        recover_root(share_bundle, Kind.KEY, shares, 2, CONTEXT)


def test_what_is_dealt_is_signed_as_a_whole() -> None:
    cohort = Cohort.of(8, 4, 2)
    share_bundle = next(iter(cohort.share_bundles.values()))
    index, entry = next(iter(share_bundle.entries.items()))
    changed = [
        replace(share_bundle, key=bytes(32)),
        replace(share_bundle, sender_key=bytes(32)),
        replace(share_bundle, possessions=share_bundle.possessions[::-1]),
        replace(share_bundle, own_digest=bytes(32)),
        replace(share_bundle, entries={k: v for k, v in share_bundle.entries.items() if k != index}),
        replace(share_bundle, entries={**share_bundle.entries, index: replace(entry, sealed=bytes(80))}),
        replace(
            share_bundle, entries={**share_bundle.entries, index: replace(entry, digests=(bytes(32), entry.digests[1]))}
        ),
    ]
    assert len({one.to_wire() for one in (share_bundle, *changed)}) == 1 + len(changed)
    assert (
        replace(share_bundle, entries=dict(reversed([*share_bundle.entries.items()]))).to_wire()
        == share_bundle.to_wire()
    )


def test_a_share_bundle_that_was_read_has_the_entries_that_were_dealt() -> None:
    cohort = Cohort.of(9, 4, 2)
    for share_bundle in cohort.share_bundles.values():
        read = parse_share_bundle(share_bundle.to_wire(), list(share_bundle.entries))
        assert (read, read.to_wire(), len(read.entries)) == (share_bundle, share_bundle.to_wire(), 3)
        for recipient in range(5):
            own = read.to(recipient)
            assert (own.key, own.own_digest) == (share_bundle.key, share_bundle.own_digest)
            assert own.entries == {k: v for k, v in share_bundle.entries.items() if k == recipient}
        with pytest.raises(KeyError):
            read.entries[4]


def test_a_share_bundle_proves_that_its_dealer_knows_its_private_keys() -> None:
    """Else a key could be made of another's, and what is agreed with it would tell what is agreed with that one."""
    cohort = Cohort.of(10, 4, 2)
    (index, share_bundle), (_, other), *_ = cohort.share_bundles.items()
    assert is_proven(share_bundle, index, CONTEXT)
    for changed in (
        replace(share_bundle, key=other.key),
        replace(share_bundle, key=other.key, possessions=(other.possessions[0], share_bundle.possessions[1])),
        replace(share_bundle, sender_key=other.sender_key),
        replace(
            share_bundle, sender_key=other.sender_key, possessions=(share_bundle.possessions[0], other.possessions[1])
        ),
        replace(share_bundle, possessions=(bytes(64), share_bundle.possessions[1])),
        other,
    ):
        assert not is_proven(changed, index, CONTEXT)
        assert show_bad_entry(changed, bytes(32), index, min(share_bundle.entries), CONTEXT) == bytes(96)
        assert is_bad_entry(changed, bytes(96), index, min(share_bundle.entries), other.key, CONTEXT)
    assert not is_proven(share_bundle, index + 1, CONTEXT)
    assert not is_proven(share_bundle, index, b"another round")


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_share_bundle_with_a_key_that_is_none_is_refused(key: bytes) -> None:
    cohort = Cohort.of(10, 4, 2)
    share_bundle = next(iter(cohort.share_bundles.values()))
    for changed in (replace(share_bundle, key=key), replace(share_bundle, sender_key=key)):
        with raises_fault(SharesInvalid, "ShareBundleInvalid", match="not a point of the prime-order group"):
            parse_share_bundle(changed.to_wire(), list(share_bundle.entries))


def test_a_recipient_shows_that_it_was_dealt_nothing_sound_and_no_more() -> None:
    cohort = Cohort.of(11, 5, 3)
    dealer, recipient, third, *_ = cohort.hospitals
    share_bundle, private = cohort.share_bundles[dealer], cohort.hospitals[recipient].private
    entry = share_bundle.entries[recipient]
    shown = show_bad_entry(share_bundle, private, dealer, recipient, CONTEXT)
    place = shown, dealer, recipient, public_key(private), CONTEXT
    assert not is_bad_entry(share_bundle, *place)  # an honest dealer's can be opened
    elsewhere = share_bundle.entries[third]
    for bad in (replace(entry, sealed=bytes(80)), replace(entry, digests=elsewhere.digests), elsewhere):
        assert is_bad_entry(replace(share_bundle, entries={**share_bundle.entries, recipient: bad}), *place)
    wrong = show_bad_entry(share_bundle, cohort.hospitals[third].private, dealer, recipient, CONTEXT)
    for claim in ((wrong, *place[1:]), (shown, dealer, third, *place[3:]), (b"", *place[1:])):
        with pytest.raises(AgreementUnproven):
            is_bad_entry(share_bundle, *claim)


def test_entries_have_one_wire_form() -> None:
    cohort = Cohort.of(9, 3, 2)
    for share_bundle in cohort.share_bundles.values():
        for entry in share_bundle.entries.values():
            assert parse_entry(entry.to_wire()) == entry
    for length in (0, BYTES_PER_ENTRY - 1, BYTES_PER_ENTRY + 1):
        with pytest.raises(ShapeWrong, match="entry"):
            parse_entry(bytes(length))
