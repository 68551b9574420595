"""The calls by which an aggregator publishes a round's sums, each with an upper bound of its gas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from consilium_zk.blobs import Blob
from consilium_zk.curve import Commitment, to_eip2537

# Upper bounds of the contract's gas (snapshots/gas.json, tests/chain/test_gas_bounds.py): a batch fits a transaction
# (EIP-7825), and no node has to estimate the many curve operations.
GAS_PER_BATCH = 14_000_000
_GAS_TO_BEGIN = 500_000
_GAS_PER_DROP = 80_000  # or accusation
_GAS_PER_SLASH = 60_000
_GAS_PER_SUM = 140_000
_GAS_PER_POINT = 20_000
_GAS_PER_OTHER = 2_000
_GAS_PER_SHOWN = 80_000  # without a sum
_GAS_PER_NEGATED_DELTA_POINT = 4_400


@dataclass(frozen=True)
class Decoys:
    """An aggregator's commitments before it publishes a decoy round: 32 bytes each, see `consilium_zk.decoys`."""

    seed_commitment: bytes
    negated_delta_digest: bytes


@dataclass(frozen=True)
class Accusation:
    """An accusation of a cohort with a wrong sum (`consilium_zk.disputes`). `evidence`: the keccak256 of a file in the
    artifact store. 32 bytes each.
    """

    accusation: bytes
    evidence: bytes


@dataclass(frozen=True)
class SaidBefore:
    """The part of a round's publication that is on chain, as (cohort, blob): sums of commitments, and published blobs;
    and `decoys` if they are set.
    """

    summed: frozenset[tuple[int, int]] = frozenset()
    published: frozenset[tuple[int, int]] = frozenset()
    decoys: Decoys | None = None


NOTHING_SAID = SaidBefore()


@dataclass(frozen=True)
class CohortsFate:
    """The first part of a publication: the survivors (a bit map) if they are not fixed yet, and in a masked round the
    cohorts without a sum. Hospitals of the `accused` ones make dispute statements.
    """

    survivors: int | None = None
    dropped: Sequence[int] = ()
    accused: Mapping[int, Accusation] = field(default_factory=dict)


@dataclass(frozen=True)
class Commitments:
    """All commitments of a cohort to one blob, in the order in which the chain took them.

    order: the index of each hospital. others: the hashes of points (32 bytes) of those that are no survivors. points:
    of the survivors.
    """

    order: Sequence[int]
    others: Sequence[bytes]
    points: Sequence[Commitment]

    def to_chain(self) -> tuple[bytes, list[bytes], bytes]:
        """One byte an index, and G1 in EIP-2537 encoding, 128 bytes a point."""
        return bytes(self.order), list(self.others), b"".join(map(to_eip2537, self.points))


def cohort_commitments(
    hashes: Mapping[int, Sequence[bytes]], cohort: int, survivors: Mapping[int, Sequence[Commitment]]
) -> list[Commitments]:
    """A cohort's commitments, for each blob.

    hashes: of points, one per blob, by index of all hospitals that committed, in the chain's order. cohort: a bit map
    of its members. survivors: the points of each, one per blob.
    """
    order = [index for index in hashes if cohort >> index & 1]
    others = [hashes[index] for index in order if index not in survivors]
    shown = [survivors[index] for index in order if index in survivors]
    return [
        Commitments(order, [row[blob] for row in others], [row[blob] for row in shown])
        for blob in range(len(shown[0]) if shown else 0)
    ]


@dataclass(frozen=True)
class PublishedCohort:
    """A cohort's sum for publication. `blobs`: 131,072 bytes each. `commitments`: to each. `digests`: for each blob its
    versioned hash, if that is published instead.
    """

    index: int
    blobs: Sequence[Blob]
    commitments: Sequence[Commitments]
    digests: Sequence[bytes] = ()


@dataclass(frozen=True)
class DisclosedBlob:
    """The blinders of the sum behind a published blob, and the cohort's commitments to it."""

    blinders: tuple[int, int]
    commitments: Commitments


@dataclass(frozen=True)
class DisclosedCohort:
    index: int
    blobs: Sequence[DisclosedBlob]


@dataclass(frozen=True)
class Priced:
    """ABI-encoded calls that go together, with an upper bound of their gas."""

    calls: list[str]
    gas: int


class RoundCalls:
    """The calls of one round that are not on chain yet. `encode` takes a function's name and its arguments."""

    def __init__(self, encode: Callable[..., str], task: int, round_: int, before: SaidBefore = NOTHING_SAID) -> None:
        self._encode, self._task_round, self._before = encode, (task, round_), before

    def beginning(self, fate: CohortsFate, decoys: Decoys | None, committed: int) -> Priced:
        """The calls before any sum. `committed`: the bit map of hospitals that have committed."""
        calls, gas = [], _GAS_TO_BEGIN + _GAS_PER_DROP * (len(fate.dropped) + len(fate.accused))
        if fate.survivors is not None:
            calls.append(self._call("fixSurvivors", fate.survivors))
            gas += _GAS_PER_SLASH * (committed & ~fate.survivors).bit_count()
        calls += [self._call("dropCohort", cohort) for cohort in fate.dropped]
        for cohort, said in fate.accused.items():
            calls.append(self._call("accuseCohort", cohort, said.accusation, said.evidence))
        if decoys is not None and self._before.decoys is None:
            calls.append(self._call("setDecoys", decoys.seed_commitment, decoys.negated_delta_digest))
        return Priced(calls, gas)

    def missing(self, cohort: PublishedCohort) -> list[int]:
        """The numbers of the cohort's blobs that are not published."""
        return [blob for blob in range(len(cohort.blobs)) if (cohort.index, blob) not in self._before.published]

    def blob(self, cohort: PublishedCohort, blob: int, position: int, in_decoy_round: bool) -> Priced:
        """Publishes the transaction's blob at this position."""
        return self._shown(cohort, blob, in_decoy_round, self._call("publish", cohort.index, blob, position, 1))

    def digest(self, cohort: PublishedCohort, blob: int, in_decoy_round: bool) -> Priced:
        """Publishes a blob's versioned hash."""
        publish = self._call("publishDigests", cohort.index, blob, [cohort.digests[blob]])
        return self._shown(cohort, blob, in_decoy_round, publish)

    def _shown(self, cohort: PublishedCohort, blob: int, in_decoy_round: bool, publish: str) -> Priced:
        """In a decoy round, sums are added up when they are disclosed."""
        commitments = cohort.commitments[blob]
        if in_decoy_round or (cohort.index, blob) in self._before.summed:
            return Priced([publish], _GAS_PER_SHOWN)
        added = self._call("sumCommitments", cohort.index, blob, commitments.to_chain())
        return Priced([added, publish], _gas_to_sum(commitments))

    def disclosure(
        self, cohort: DisclosedCohort, blob: int, seed: bytes, negated_delta: Sequence[Commitment]
    ) -> Priced:
        """Discloses one sum of a decoy round. `negated_delta`: the commitment to each blob of the round's negated
        delta.
        """
        disclosed = cohort.blobs[blob]
        said = [(*disclosed.blinders, disclosed.commitments.to_chain())]
        call = self._call("discloseDecoys", cohort.index, blob, seed, b"".join(map(to_eip2537, negated_delta)), said)
        return Priced([call], _gas_to_sum(disclosed.commitments) + _GAS_PER_NEGATED_DELTA_POINT * len(negated_delta))

    def settling(self, gas: int) -> Priced:
        return Priced([self._call("settle")], gas)

    def _call(self, name: str, *arguments: object) -> str:
        return self._encode(name, *self._task_round, *arguments)


def _gas_to_sum(commitments: Commitments) -> int:
    points, others = len(commitments.points), len(commitments.others)
    return _GAS_PER_SUM + _GAS_PER_POINT * points + _GAS_PER_OTHER * others
