"""Who broke a masked sum is named, whatever the liars do, and no honest hospital is, nor is its update shown."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

import pytest
from consilium_zk import blobs, kzg
from consilium_zk.blobs import Blob
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import Commitment, weighted_sum
from consilium_zk.disputes import (
    Case,
    Evidence,
    Reason,
    _proven_seed,
    agreements_to_wire,
    cheaters,
    disputed,
    dropped_seeds,
    pair_points,
    parse_agreements,
    parse_points,
    parse_statement,
    points_to_wire,
    show_pair,
    state,
    withholders,
)
from consilium_zk.encoding import round_words
from consilium_zk.errors import EvidenceMalformed, Malformed, ShapeWrong
from consilium_zk.key_exchange import public_key
from consilium_zk.masks import expand, mask, own_seed, residue, without
from consilium_zk.secret_shares import Kind, ShareBundle, open_entry, recover_root
from consilium_zk.secure_aggregation import MaskedCohort, MaskingHospital, threshold
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from zk_support import field_blob, is_uniform, signed_answer

CONTEXT = round_words(31_337, bytes(range(20)), 7, 3)
BLOBS = 2
LARGEST = 8


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    kzg.setup()  # with which commitments are fast


@cache
def committed(place: int) -> tuple[list[Blob], list[Commitment]]:
    """An update of a weight of one, and its commitments."""
    update = [field_blob(1_000 * place + number) for number in range(BLOBS)]
    return update, [kzg.commit(blob) for blob in update]


@dataclass(frozen=True)
class Hospitals:
    """A cohort all of which has committed, before any lie."""

    cohort: MaskedCohort
    hospitals: dict[int, MaskingHospital]
    privates: dict[int, bytes]
    share_bundles: dict[int, ShareBundle]
    own: dict[int, bytes]
    pairs: dict[int, dict[int, bytes]]
    weights: dict[int, int]

    def root(self, dealer: int, kind: Kind) -> int:
        """As the aggregator recovers it, of what others have been dealt."""
        share_bundle, keys = self.share_bundles[dealer], self.cohort.encryption_keys
        shares = {
            index: open_entry(
                entry, (self.privates[index], keys[index]), dealer, share_bundle.sender_key, index, CONTEXT
            )[kind]
            for index, entry in share_bundle.entries.items()
        }
        return recover_root(share_bundle, kind, shares, self.cohort.threshold, CONTEXT)


@cache
def cohort_of(size: int) -> Hospitals:
    source = random.Random(size)
    indices = source.sample(range(256), size)
    privates = {index: source.randbytes(32) for index in indices}
    cohort = MaskedCohort({index: public_key(private) for index, private in privates.items()}, CONTEXT)
    hospitals = {i: MaskingHospital(i, source.randbytes(32), privates[i], cohort) for i in indices}
    share_bundles = {index: hospital.share_bundle() for index, hospital in hospitals.items()}
    seeds = {index: hospital.seeds(share_bundles) for index, hospital in hospitals.items()}
    own, pairs = {index: one for index, (one, _) in seeds.items()}, {index: many for index, (_, many) in seeds.items()}
    weights = {index: source.randint(1, 1 << 16) for index in indices}
    return Hospitals(cohort, hospitals, privates, share_bundles, own, pairs, weights)


@dataclass
class Play:
    """A round in which some lie: `uploads` are what they give, `moved` by what their points are off, blob by blob and
    other end, and the rest what they hold back or make up.
    """

    base: Hospitals
    liars: set[int]
    absent: set[int] = field(default_factory=set)  # dropped out before they uploaded
    uploads: dict[int, list[bytes]] = field(default_factory=dict)
    moved: dict[tuple[int, int], list[tuple[int, Blob]]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    garbage: set[int] = field(default_factory=set)
    hiding: set[int] = field(default_factory=set)
    made_up: dict[tuple[int, int], bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, size: int, liars: Iterable[int] = (), absent: Iterable[int] = ()) -> Play:
        """liars and absent by place in the order of indices."""
        base = cohort_of(size)
        indices = sorted(base.share_bundles)
        made = cls(base, {indices[place] for place in liars}, {indices[place] for place in absent})
        for place, index in enumerate(indices):
            if index in made.absent:
                continue
            masks = [base.hospitals[index].mask((base.own[index], base.pairs[index]), n) for n in range(BLOBS)]
            made.uploads[index] = [blobs.add(pair) for pair in zip(made.update(place), masks, strict=True)]
        return made

    def update(self, place: int) -> list[Blob]:
        weight = self.base.weights[self.indices[place]]
        return [blobs.scale(blob, weight) for blob in committed(place)[0]]

    @property
    def indices(self) -> list[int]:
        return sorted(self.base.share_bundles)

    def shift(self, index: int, number: int, by: Blob) -> None:
        self.uploads[index][number] = blobs.add([Blob(self.uploads[index][number]), by])

    def shift_to_match(self, index: int, other: int, number: int, by: Blob) -> None:
        """An upload that is off, and a point of the mask with `other` that is off by as much."""
        self.shift(index, number, by)
        mask = by if index < other else blobs.negate(by)
        self.moved.setdefault((index, other), []).append((number, mask))

    @property
    def survivors(self) -> list[int]:
        return sorted(self.uploads)

    @property
    def case(self) -> Case:
        places = {index: place for place, index in enumerate(self.indices)}
        commitments = {index: committed(places[index])[1] for index in self.survivors}
        return Case(self.base.cohort, self.base.share_bundles, commitments, self.base.weights)

    def statements(self) -> dict[int, bytes]:
        base = self.base
        return {i: state(upload, base.cohort, base.share_bundles).to_wire() for i, upload in self.uploads.items()}

    def holds(self) -> bool:
        """Whether the survivors' sum is that of their updates: told from the blobs, with no point."""
        survivors = self.survivors
        try:
            uploads = [[blobs.parse_blob(raw) for raw in self.uploads[index]] for index in survivors]
            columns = list(zip(*uploads, strict=True))
        except ValueError:
            return False
        if any(len(upload) != BLOBS for upload in uploads):
            return False
        base, gone = self.base, set(self.indices) - set(survivors)
        own = [base.own[index] for index in survivors]
        pairs = {index: {other: base.pairs[index][other] for other in survivors} for index in gone}
        expected = zip(*(self.update(self.indices.index(index)) for index in survivors), strict=True)
        return all(
            without(blobs.add(column), residue(own, pairs, n)) == blobs.add(updates)
            for n, (column, updates) in enumerate(zip(columns, expected, strict=True))
        )

    def points(self, case: Case, accusation: bytes) -> dict[int, dict[int, Commitment]]:
        made = {
            index: pair_points(index, self.base.pairs[index], self.survivors, accusation, BLOBS)
            for index in self.survivors
            if index not in self.silent
        }
        words = (keccak(accusation + number.to_bytes(32, "big"))[:16] for number in range(BLOBS))
        factors = [int.from_bytes(word, "big") for word in words]
        for (index, other), shifts in self.moved.items():
            if index in made and other in made[index]:
                off = [kzg.commit(by) for _, by in shifts]
                terms = [1, *(factors[number] for number, _ in shifts)]
                made[index][other] = weighted_sum([made[index][other], *off], terms)
        return made

    def agreement(self, index: int, other: int, accusation: bytes) -> bytes:
        private, share_bundle = self.base.hospitals[index].mask_private, self.base.share_bundles[other]
        return show_pair(index, private, other, share_bundle, CONTEXT, accusation)

    def evidence(self, *, asked: bool = True) -> tuple[Case, bytes, Evidence]:
        """asked: whether hospitals were asked for points and agreements."""
        case, survivors = self.case, self.survivors
        accusation = case.accusation(self.statements())
        points = self.points(case, accusation) if asked else {}
        shown: dict[tuple[int, int], bytes] = {}
        for index, mine in points.items():
            theirs = {i: given for i, given in points.items() if i != index and i not in self.garbage}
            against = disputed(index, mine, theirs) if index not in self.hiding else []
            assert index in self.liars or set(against) <= self.liars
            shown |= {(index, other): self.agreement(index, other, accusation) for other in against}
        wires = {i: points_to_wire(given) if i not in self.garbage else bytes(48) for i, given in points.items()}
        return (
            case,
            accusation,
            Evidence(
                statements=self.statements(),
                uploads={index: self.uploads[index] for index in survivors},
                own_roots={index: self.base.root(index, Kind.OWN) for index in survivors},
                key_roots={index: self.base.root(index, Kind.KEY) for index in self.indices if index not in survivors},
                points=wires,
                agreements=shown | self.made_up,
            ),
        )


SOLO = [
    "upload", "own mask", "pair mask", "match", "points", "silent", "garbage", "fewer blobs", "scalar", "false proof",
]  # fmt: skip
DUO = ["cancel", "no proof"]


def lie(play: Play, kind: str, one: int, other: int, source: random.Random) -> None:
    """What liar `one` does, with or to `other`; in a duo both are liars."""
    number, by = source.randrange(BLOBS), field_blob(source.randrange(1 << 30))
    match kind:
        case "upload":
            play.shift(one, number, by)
        case "own mask":
            play.shift(one, number, without(expand(source.randbytes(32), number), expand(play.base.own[one], number)))
        case "pair mask":
            pair = play.base.pairs[one][other]
            play.shift(one, number, without(expand(source.randbytes(32), number), expand(pair, number)))
        case "match":
            play.shift_to_match(one, other, number, by)
        case "points":
            play.moved.setdefault((one, other), []).append((number, by))
        case "silent":
            play.shift(one, number, by)
            play.silent.add(one)
        case "garbage":
            play.shift(one, number, by)
            play.garbage.add(one)
        case "fewer blobs":
            play.uploads[one] = play.uploads[one][:-1]
        case "scalar":
            play.uploads[one] = [b"\xff" * 32 + blob[32:] for blob in play.uploads[one]]
        case "false proof":
            play.shift_to_match(one, other, number, by)
            play.hiding.add(one)
            play.made_up[one, other] = source.randbytes(96)
        case "cancel":
            play.shift_to_match(one, other, number, by)
            play.shift_to_match(other, one, number, blobs.negate(by))
        case "no proof":
            play.hiding.update((one, other))
            play.shift_to_match(one, other, number, by)
            play.made_up[one, other] = source.randbytes(source.choice([0, 95, 96]))


def sound(play: Play, one: int) -> bool:
    """Whether one can lie on: it uploaded blobs, and nobody has broken them."""
    return len(play.uploads[one]) == BLOBS and play.uploads[one][0][:32] != b"\xff" * 32


@settings(max_examples=3)
@given(st.integers(3, LARGEST), st.integers(0, 2**32), st.data())
def test_only_liars_are_named_and_one_is_whenever_the_sum_fails(size: int, seed: int, data: st.DataObject) -> None:
    names_liars_alone(size, seed, data)


@pytest.mark.deep
@settings(max_examples=30)
@given(st.integers(3, LARGEST), st.integers(0, 2**32), st.data())
def test_only_liars_are_named_in_many_cohorts(size: int, seed: int, data: st.DataObject) -> None:
    names_liars_alone(size, seed, data)


def names_liars_alone(size: int, seed: int, data: st.DataObject) -> None:
    places = data.draw(st.permutations(range(size)))
    absent = places[: data.draw(st.integers(0, (size - 2) // 2))]
    present = places[len(absent) :]
    play = Play.of(size, present[: data.draw(st.integers(1, len(present)))], absent)
    source = random.Random(seed)
    for one in sorted(play.liars):
        for kind in data.draw(st.lists(st.sampled_from(SOLO + DUO), min_size=1, max_size=2)):
            others = play.liars if kind in DUO else play.uploads.keys()
            ends = sorted(index for index in others - {one} if sound(play, index))
            if ends and sound(play, one):
                lie(play, kind, one, source.choice(ends), source)
    holds = play.holds()
    named = cheaters(*play.evidence(asked=not holds))
    assert named.keys() <= play.liars
    assert bool(named) is not holds


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("upload", Reason.CONTRADICTION),
        ("own mask", Reason.CONTRADICTION),
        ("pair mask", Reason.CONTRADICTION),
        ("match", Reason.FALSE_POINT),
        ("false proof", Reason.FALSE_POINT),
        ("silent", Reason.NO_POINTS),
        ("garbage", Reason.NO_POINTS),
        ("fewer blobs", Reason.UPLOAD_MALFORMED),
        ("scalar", Reason.UPLOAD_MALFORMED),
    ],
)
@pytest.mark.parametrize("absent", [[], [3]])
def test_a_lone_liar_is_named_with_what_it_did(kind: str, reason: Reason, absent: list[int]) -> None:
    play = Play.of(4, [1], absent)
    (liar,) = play.liars
    lie(play, kind, liar, play.indices[2], random.Random(1))
    assert not play.holds()
    assert cheaters(*play.evidence()) == {liar: reason}


def test_a_round_without_a_lie_names_nobody() -> None:
    for absent in ([], [0, 2]):
        play = Play.of(5, absent=absent)
        assert play.holds()
        for asked in (False, True):
            assert cheaters(*play.evidence(asked=asked)) == {}


def test_liars_whose_lies_cancel_break_nothing_and_are_not_named() -> None:
    play = Play.of(4, [0, 2])
    one, other = sorted(play.liars)
    lie(play, "cancel", one, other, random.Random(2))
    assert play.holds()
    assert cheaters(*play.evidence()) == {}


def test_liars_that_prove_nothing_are_named() -> None:
    play = Play.of(4, [0, 2])
    liars = one, other = sorted(play.liars)
    lie(play, "no proof", one, other, random.Random(3))
    assert cheaters(*play.evidence()) == dict.fromkeys(liars, Reason.NO_PROOF)
    play.made_up.clear()
    assert cheaters(*play.evidence()) == dict.fromkeys(liars, Reason.NO_PROOF)


def test_one_end_that_proves_its_agreement_is_enough() -> None:
    play = Play.of(4, [0, 2])
    one, other = sorted(play.liars)
    lie(play, "no proof", one, other, random.Random(3))
    play.hiding.remove(other)
    assert cheaters(*play.evidence()) == {one: Reason.FALSE_POINT}


@pytest.mark.parametrize("size", [4, 5, 7, LARGEST])
def test_liars_about_shared_seeds_are_named_and_take_no_honest_hospital_along(size: int) -> None:
    """As many as may be silent, each of whom masks with another seed than the one that it shares with an honest one."""
    play = Play.of(size, range(size - threshold(size)))
    honest = [index for index in play.indices if index not in play.liars]
    for liar, victim in zip(sorted(play.liars), honest, strict=False):
        play.hiding.add(liar)
        play.shift_to_match(liar, victim, 0, field_blob(liar))
    assert set(honest) < set(play.survivors)
    assert cheaters(*play.evidence()) == dict.fromkeys(sorted(play.liars), Reason.FALSE_POINT)


def test_shifts_of_two_blobs_that_cancel_are_a_lie() -> None:
    play = Play.of(3, [0])
    (liar,) = play.liars
    by = field_blob(4)
    play.shift(liar, 0, by)
    play.shift(liar, 1, blobs.negate(by))
    assert cheaters(*play.evidence()) == {liar: Reason.CONTRADICTION}


def test_an_honest_hospital_shows_nothing_of_its_update() -> None:
    """Of five, one has dropped out and two lie about the masks that they share with the two honest ones."""
    play = Play.of(5, [1, 3], [2])
    honest = sorted(set(play.survivors) - play.liars)
    for liar in play.liars:
        for other in honest:
            play.shift_to_match(liar, other, 0, field_blob(liar + other))
    case, accusation, evidence = play.evidence()
    assert cheaters(case, accusation, evidence) == dict.fromkeys(sorted(play.liars), Reason.FALSE_POINT)
    dropped = dropped_seeds(case, evidence.key_roots)
    bare = []
    for index in honest:
        own = own_seed(evidence.own_roots[index], CONTEXT)
        shown = {
            other: _proven_seed(case, accusation, index, other, raw)
            for (one, other), raw in evidence.agreements.items()
            if one == index
        }
        assert shown == {liar: play.base.pairs[index][liar] for liar in play.liars}
        proven = {other: seed for other, seed in shown.items() if seed is not None}
        known = proven | {other: seeds[index] for other, seeds in dropped.items()}
        assert known.keys() == set(play.indices) - set(honest)
        uploaded = [Blob(blob) for blob in play.uploads[index]]
        bare.append([without(blob, mask(index, own, known, n)) for n, blob in enumerate(uploaded)])
    updates = [play.update(play.indices.index(index)) for index in honest]
    for left, update in zip(bare, updates, strict=True):
        assert is_uniform(*left)
        assert is_uniform(*(without(one, other) for one, other in zip(left, update, strict=True)))
    for n in range(BLOBS):  # all that is had is what the sum is made of
        assert blobs.add(left[n] for left in bare) == blobs.add(update[n] for update in updates)


def test_a_hospital_shows_agreements_to_none_but_who_contradicts_it() -> None:
    play = Play.of(4, [3])
    honest = play.indices[0]
    accusation = play.case.accusation(play.statements())
    given = play.points(play.case, accusation)
    theirs = {index: points for index, points in given.items() if index != honest}
    assert disputed(honest, given[honest], theirs) == []
    (liar,) = play.liars
    theirs[liar] = {**theirs[liar], honest: Commitment(given[honest][play.indices[1]])}
    assert disputed(honest, given[honest], theirs) == [liar]


def test_an_agreement_is_shown_for_one_accusation_and_one_pair() -> None:
    """One that was shown in another dispute, or by the other end as its own, counts for nothing."""
    play = Play.of(4, [0])
    (liar,), (honest, third, *_) = play.liars, play.indices[1:]
    lie(play, "match", liar, honest, random.Random(5))
    case, accusation, evidence = play.evidence()
    assert cheaters(case, accusation, evidence) == {liar: Reason.FALSE_POINT}
    right = evidence.agreements[honest, liar]
    for wrong in (
        play.agreement(honest, liar, bytes(32)),
        play.agreement(honest, third, accusation),
        play.agreement(third, liar, accusation),
        right[:64] + bytes(32),
    ):
        only = replace(evidence, agreements={(honest, liar): wrong})
        assert cheaters(case, accusation, only) == dict.fromkeys(sorted((liar, honest)), Reason.NO_PROOF)
    assert cheaters(case, accusation, replace(evidence, agreements={(liar, honest): right})).keys() == {liar, honest}


def test_nothing_is_shown_to_a_dealer_that_has_not_proven_its_keys() -> None:
    """It could have made its mask key of a third hospital's; in a dispute it is named without."""
    play = Play.of(4, [0])
    (liar,), (honest, *_) = play.liars, play.indices[1:]
    lie(play, "match", liar, honest, random.Random(5))
    unproven = replace(play.base.share_bundles[liar], possessions=(bytes(64), bytes(64)))
    play.base = replace(play.base, share_bundles={**play.base.share_bundles, liar: unproven})
    case, accusation, evidence = play.evidence()
    assert evidence.agreements[honest, liar] == bytes(96)
    assert cheaters(case, accusation, evidence) == {liar: Reason.FALSE_SHARE_BUNDLE}


@pytest.fixture(scope="module")
def accused() -> tuple[Case, bytes, Evidence]:
    """One liar and one that dropped out, of four."""
    play = Play.of(4, [0], [3])
    play.shift(play.indices[0], 0, field_blob(5))
    return play.evidence()


@pytest.mark.parametrize("piece", ["statements", "uploads", "own_roots", "key_roots"])
def test_an_accuser_that_leaves_out_a_piece_proves_nothing(accused: tuple[Case, bytes, Evidence], piece: str) -> None:
    case, accusation, evidence = accused
    held = dict(getattr(evidence, piece))
    missing = sorted(held)[0]
    del held[missing]
    with pytest.raises(EvidenceMalformed, match=rf"hospitals \[{missing}\] are missing"):
        cheaters(case, accusation, replace(evidence, **{piece: held}))


def test_an_accuser_that_changes_a_piece_proves_nothing(accused: tuple[Case, bytes, Evidence]) -> None:
    case, accusation, evidence = accused
    first, *_ = survivors = case.survivors
    gone = (case.share_bundles.keys() - set(survivors)).pop()
    upload = [next(iter(evidence.uploads[first])), field_blob(6)]
    forged = {**evidence.statements, first: bytes(32) + evidence.statements[first][32:]}
    for changed, said in (
        (replace(evidence, uploads={**evidence.uploads, first: upload}), "does not match its statement"),
        (replace(evidence, uploads={**evidence.uploads, first: []}), "does not match its statement"),
        (replace(evidence, statements=forged), "do not match the accusation"),
        (replace(evidence, points={**evidence.points, gone: b""}), "or superfluous"),
        (replace(evidence, agreements={(first, gone): bytes(96)}), "or superfluous"),
        (replace(evidence, statements={**evidence.statements, gone: bytes(64)}), "or superfluous"),
        (replace(evidence, uploads={**evidence.uploads, gone: upload}), "or superfluous"),
        (replace(evidence, own_roots={**evidence.own_roots, first: 1}), "own root of hospital"),
        (replace(evidence, own_roots={**evidence.own_roots, first: -1}), "own root of hospital"),
        (replace(evidence, own_roots={**evidence.own_roots, first: 1 << 256}), "own root of hospital"),
        (replace(evidence, key_roots={gone: 1}), "key root of hospital"),
        (replace(evidence, key_roots={gone: BLS_MODULUS}), "key root of hospital"),
    ):
        with pytest.raises(EvidenceMalformed, match=said):
            cheaters(case, accusation, changed)
    with pytest.raises(EvidenceMalformed, match="do not match the accusation"):
        cheaters(case, bytes(32), evidence)


@pytest.mark.parametrize(("changed", "said"), [(bytes(63), "is malformed"), (bytes(64), "of another masking")])
def test_an_accuser_that_let_a_hospital_survive_without_a_sound_statement_proves_nothing(
    accused: tuple[Case, bytes, Evidence], changed: bytes, said: str
) -> None:
    case, _, evidence = accused
    statements = {**evidence.statements, case.survivors[0]: changed}
    with pytest.raises(EvidenceMalformed, match=said):
        cheaters(case, case.accusation(statements), replace(evidence, statements=statements))


# Roots that are missing


def test_withholders_are_named_by_what_they_answered() -> None:
    play = Play.of(5)
    case, base = play.case, play.base
    dealer, liar, *_ = play.indices
    entries = {i: replace(entry, sealed=bytes(80)) for i, entry in base.share_bundles[dealer].entries.items()}
    case = replace(
        case, share_bundles={**case.share_bundles, dealer: replace(base.share_bundles[dealer], entries=entries)}
    )
    answers = {i: base.hospitals[i].answer(case.share_bundles, case.survivors)[0] for i in play.indices if i != dealer}
    assert withholders(case, answers) == {dealer: Reason.FALSE_SHARE_BUNDLE}
    place = 32 * play.indices.index(dealer)
    body = answers[liar][:place] + bytes(32) + answers[liar][place + 32 : -160]
    answers[liar] = signed_answer(base.hospitals[liar], case.share_bundles, case.survivors, body)
    assert withholders(case, answers) == {dealer: Reason.FALSE_SHARE_BUNDLE, liar: Reason.FALSE_ANSWER}

    right = {i: base.hospitals[i].answer(play.case.share_bundles, case.survivors)[0] for i in play.indices}
    for wrong, said in (
        (right, "enough for the sum"),
        ({i: right[i] for i in play.indices[:3]}, "it has 3 answers of 4 needed ones"),
        ({**right, liar: b""}, f"the answer of hospital {liar} is not its own"),
    ):
        with pytest.raises(EvidenceMalformed, match=said):
            withholders(play.case, wrong)


def test_a_verdict_does_not_depend_on_any_order(accused: tuple[Case, bytes, Evidence]) -> None:
    case, accusation, evidence = accused
    backwards = Evidence(**{name: dict(reversed(piece.items())) for name, piece in vars(evidence).items()})
    share_bundles, commitments = (
        dict(reversed([*case.share_bundles.items()])),
        dict(reversed([*case.commitments.items()])),
    )
    reordered = replace(case, share_bundles=share_bundles, commitments=commitments)
    assert list(cheaters(reordered, accusation, backwards).items()) == list(cheaters(*accused).items())
    assert cheaters(*accused) == {case.survivors[0]: Reason.CONTRADICTION}


def test_an_accusation_binds_all_that_decides_whether_the_sum_holds(accused: tuple[Case, bytes, Evidence]) -> None:
    case, accusation, evidence = accused
    first = case.survivors[0]
    share_bundle = case.share_bundles[first]
    others = [
        replace(case, cohort=replace(case.cohort, context=bytes(128))),
        replace(case, weights={**case.weights, first: case.weights[first] + 1}),
        replace(case, commitments={**case.commitments, first: case.commitments[first][::-1]}),
        replace(case, commitments={i: c for i, c in case.commitments.items() if i != first}),
        replace(case, share_bundles={i: d for i, d in case.share_bundles.items() if i in case.commitments}),
        replace(case, share_bundles={**case.share_bundles, first: replace(share_bundle, key=bytes(32))}),
        replace(case, share_bundles={**case.share_bundles, first: replace(share_bundle, own_digest=bytes(32))}),
    ]
    found = {other.accusation(evidence.statements) for other in others}
    found.add(case.accusation({**evidence.statements, first: b""}))
    assert len(found | {accusation}) == len(others) + 2


def test_statements_and_points_are_what_their_bytes_say(accused: tuple[Case, bytes, Evidence]) -> None:
    case, _, evidence = accused
    first = case.survivors[0]
    others = set(case.survivors) - {first}
    assert parse_statement(evidence.statements[first]).to_wire() == evidence.statements[first]
    assert points_to_wire(parse_points(evidence.points[first], others)) == evidence.points[first]
    shown = {2: bytes(range(96)), 258: bytes(96)}
    assert parse_agreements(agreements_to_wire(shown)) == shown
    for raw, parse in (
        (evidence.statements[first], parse_statement),
        (evidence.points[first], lambda wire: parse_points(wire, others)),
        (agreements_to_wire(shown), parse_agreements),
    ):
        for wrong in (raw[:-1], raw + b"\0"):
            with pytest.raises(ShapeWrong):
                parse(wrong)
    with raises_fault(Malformed, "PointMalformed"):
        parse_points(bytes(96), set(case.survivors) - {first})
