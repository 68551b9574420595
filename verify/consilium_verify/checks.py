"""The checks of an audit over values that were read before. Pure: no I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from consilium_chain.ledger.publishing import Canaries
from consilium_chain.ledger.record import ShownBlinders
from consilium_chain.ledger.structs import (
    STATISTICS_ROUND,
    Hospital,
    Outcome,
    Role,
    RoundState,
    SlashReason,
    TaskParams,
    VoidReason,
    Voter,
    members,
)
from consilium_chain.rounds.sums import Retreat
from consilium_chain.rpc.event_logs import Event
from consilium_chain.settlement.payouts import penalty
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle
from consilium_chain.tasks.proposal import with_pool_of
from consilium_core.units import tokens
from consilium_zk.blame import Reason
from consilium_zk.blobs import Blob
from consilium_zk.canaries import is_turned, published_commitment, read_lanes, seed_commitment
from consilium_zk.curve import Commitment, weighted_sum
from consilium_zk.errors import ZkError
from consilium_zk.kzg import versioned_hash
from consilium_zk.packing import LaneLayout, unpack
from numpy.typing import NDArray

from consilium_verify.report import Check, Name, fails, holds, unchecked

Points = Mapping[str, Sequence[Commitment]]

JUDGED = (VoidReason.NONE, VoidReason.TOO_FEW_SCORES, VoidReason.NOT_OPENED, VoidReason.MISMATCHED)


@dataclass(frozen=True)
class Published:
    """A cohort with a published sum: its survivors' weights by address, and the versioned hash of each blob."""

    cohort: int
    weights: Mapping[str, int]
    hashes: Sequence[bytes]
    is_turned: bool = False

    @property
    def weight(self) -> int:
        return sum(self.weights.values())


def terms_match(of_file: TaskParams, on_chain: TaskParams) -> Check:
    """A task file whose hash is the chain's, as terms, against those that the contract enforces."""
    wanted = with_pool_of(on_chain, of_file)
    faults = [
        f"{field.name} is {getattr(wanted, field.name)} in the file and {getattr(on_chain, field.name)} on chain"
        for field in fields(TaskParams)
        if getattr(wanted, field.name) != getattr(on_chain, field.name)
    ]
    if faults:
        return fails(Name.TASK_FILE, faults)
    more = on_chain.pool - of_file.pool
    added = f", and its operator added {tokens(more)} tokens to the pool" if more else ""
    return holds(Name.TASK_FILE, f"keccak256 {on_chain.spec_hash.hex()}; its terms are those on chain{added}")


# --- canaries ------------------------------------------------------------------------------------------------------


def canaries_follow(
    task: int,
    round_: int,
    said: Canaries,
    retreat_digest: bytes,
    shown: Sequence[ShownBlinders],
    cohorts: Sequence[Published],
) -> Check:
    """What the aggregator said before it published, against the record; which sums are turned, against its seed."""
    if said.retreat_digest != retreat_digest:
        return fails(
            Name.CANARIES,
            f"said to take back {said.retreat_digest.hex()}, but the record gives {retreat_digest.hex()}",
        )
    takes_back = "what they take back is what the record gives"
    seed = next((one.seed for one in shown if seed_commitment(one.seed) == said.seed_commitment), None)
    if seed is None:
        return unchecked(
            Name.CANARIES,
            f"{takes_back}; which sums are turned was not recomputed, since no transaction shows the seed:"
            " it rests on the contract's check in openCanaries",
        )
    faults = [
        f"cohort {one.cohort} is {_turned(one.is_turned)} on chain, but {_turned(not one.is_turned)} by the seed"
        for one in cohorts
        if is_turned(seed, task, round_, one.cohort) != one.is_turned
    ]
    if faults:
        return fails(Name.CANARIES, faults)
    return holds(Name.CANARIES, f"{takes_back}, and the seed turns the sums that the chain says")


def _turned(is_so: bool) -> str:
    return "turned" if is_so else "not turned"


# --- sums ----------------------------------------------------------------------------------------------------------


def plain_sums(points: Points, cohorts: Sequence[Published]) -> Check:
    """Σ weight · commitment of each cohort's survivors, blob by blob, against the hash that the contract holds."""
    faults = [
        *_incomplete(points, cohorts),
        *(
            _mismatch(one, blob, [total])
            for one, blob, total in _totals(points, cohorts)
            if versioned_hash(total) != one.hashes[blob]
        ),
    ]
    return fails(Name.SUMS, faults) if faults else _recomputed(points, cohorts)


def canary_sums(
    points: Points, cohorts: Sequence[Published], retreat: Retreat, shown: Sequence[ShownBlinders]
) -> Check:
    """The same in a canary round, in which a sum is published without its blinders, and turned or not.

    The blinders need no trust: with any two numbers that make the equation hold, all other scalars of the published
    blob are those of the sum, or KZG's binding is broken. Without them nothing can be said: two fit every blob.
    """
    faults, missing = _incomplete(points, cohorts), 0
    for one, blob, total in _totals(points, cohorts):
        pairs = {each.blinders for each in shown if (each.cohort, each.blob) == (one.cohort, blob)}
        back = retreat.points[blob]
        found = [
            published_commitment(total, one.weight, pair, back, retreat.layout, one.is_turned) for pair in sorted(pairs)
        ]
        missing += not found
        if found and one.hashes[blob] not in [versioned_hash(each) for each in found]:
            faults.append(_mismatch(one, blob, found))
    if faults:
        return fails(Name.SUMS, faults)
    if missing:
        return unchecked(
            Name.SUMS,
            f"no transaction shows the blinders of {missing} of {_blobs(cohorts)}, without which every sum fits: that"
            " these are the survivors' rests on the contract's check in openCanaries",
        )
    return _recomputed(points, cohorts)


def _totals(points: Points, cohorts: Sequence[Published]) -> Iterable[tuple[Published, int, Commitment]]:
    for one in cohorts:
        if any(_committed(points, one, who) for who in one.weights):
            continue
        for blob in range(len(one.hashes)):
            chosen = [points[who][blob] for who in one.weights]
            yield one, blob, weighted_sum(chosen, list(one.weights.values()))


def _incomplete(points: Points, cohorts: Sequence[Published]) -> list[str]:
    return [fault for one in cohorts for who in one.weights if (fault := _committed(points, one, who))]


def _committed(points: Points, one: Published, who: str) -> str:
    """What is wrong with a survivor's number of commitments; empty if nothing is."""
    count, wanted = len(points.get(who, ())), len(one.hashes)
    if count == wanted:
        return ""
    return f"cohort {one.cohort}: the events hold {count} commitments of survivor {who}, where a sum has {wanted} blobs"


def _mismatch(one: Published, blob: int, found: Sequence[Commitment]) -> str:
    given = " or ".join(versioned_hash(each).hex() for each in found)
    return (
        f"cohort {one.cohort}, blob {blob}: the chain holds {one.hashes[blob].hex()}, but the survivors' commitments"
        f" give {given}"
    )


def _recomputed(points: Points, cohorts: Sequence[Published]) -> Check:
    count = sum(len(one.weights) for one in cohorts)
    return holds(
        Name.SUMS, f"{count} survivors' commitments, weighted and added up, give {_blobs(cohorts)} as the chain has it"
    )


def _blobs(cohorts: Sequence[Published]) -> str:
    count = sum(len(one.hashes) for one in cohorts)
    return f"{count} blob{'' if count == 1 else 's'} of {len(cohorts)} cohort{'' if len(cohorts) == 1 else 's'}"


# --- lanes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lanes:
    """How a round's blobs are read: layout, lanes in use, and in a canary round what turned sums are read with."""

    layout: LaneLayout
    count: int
    bits: int  # of a quantised value
    retreat: NDArray[np.uint64] | None = None  # (count,)

    def fault(self, one: Published, blobs: Sequence[Blob]) -> str:
        """The first lane that no sum of quantised values has, in words; empty if there is none."""
        try:
            lanes = unpack(blobs, self.count, self.layout, one.weight)
            if self.retreat is not None:
                read_lanes(lanes, self.retreat, one.weight, self.bits, one.is_turned)
        except ZkError as error:
            return f"cohort {one.cohort}: {error}"
        return ""


def lanes_in_range(faults: Mapping[int, str], accepted: int) -> Check:
    """By cohort, what is wrong with its lanes, empty for nothing. What is not accepted enters no model."""
    bad = [fault for cohort, fault in faults.items() if fault and accepted >> cohort & 1]
    if bad:
        return fails(Name.LANES, bad)
    outside = [str(cohort) for cohort, fault in faults.items() if fault]
    aside = f"; out of range, and rightly not accepted: cohort {', '.join(outside)}" if outside else ""
    good = len(faults) - len(outside)
    return holds(Name.LANES, f"{good} of {len(faults)} sums are of values within the quantiser's range{aside}")


# --- culprits ------------------------------------------------------------------------------------------------------


def was_heard(state: RoundState) -> bool:
    """Whether the accused had their time to testify: it begins when all other cohorts are published or dropped."""
    return state.published_cohorts == state.viable_cohorts


def naming(state: RoundState) -> str:
    """Who was named for cohorts without a sum, and what came of it, in words."""
    if not state.named:
        return "nobody was named in time"
    who, several = _hospitals(members(state.named)), state.named.bit_count() > 1
    if _is_upheld(state):
        came = "and the committee let it stand"
    elif state.void_reason is VoidReason.MISMATCHED:
        came = "but most of the committee said that the round does not match"
    else:
        came = "and the round is void for another reason"
    return f"{who} {'were' if several else 'was'} named, {came}"


def culprits_follow(
    params: TaskParams, round_: int, state: RoundState, books: Books, found: Mapping[int, Reason], flaw: str = ""
) -> Check:
    """Whom the evidence on accused cohorts gives, against who was named, what came of it, and who paid for it.

    found: by index of hospital; flaw: why the evidence proves nothing, where it does not. An aggregator that names
    nobody is slashed whatever the evidence gives.
    """
    nodes, named = [hospital.node for hospital in books.hospitals], set(members(state.named))
    slashed = {
        event.values["account"]
        for event in books.slashed
        if event.values["round"] == round_ and event.values["reason"] == SlashReason.FALSE_UPLOAD
    }
    given = f"the evidence gives {_hospitals(sorted(found))}" if found else "by the evidence nobody broke a sum"
    said = [f"{naming(state)}; {flaw or given}"]
    for index in sorted(named | found.keys()):
        done = f"{'' if index in named else 'not '}named, {'' if nodes[index] in slashed else 'not '}slashed"
        said.append(f"hospital {index} ({nodes[index]}): {done}; {found.get(index, 'nothing is shown against it')}")

    guilty = list(members(state.named)) if _is_upheld(state) else []
    costs = penalty(params.hospital_bond, params.harmful_slash_bps, params.hospital_bond) > 0
    paying = sorted(nodes[index] for index in guilty) if costs else []
    faults = [
        f"{what} {shown} on chain, but {own} by the rules"
        for what, shown, own in [
            ("guilty are hospitals", list(members(state.guilty)), guilty),
            ("slashed for false uploads are", sorted(slashed), paying),
        ]
        if shown != own
    ]
    if faults:
        return fails(Name.CULPRITS, said + faults)
    is_right, is_refuted = found.keys() == named, state.void_reason is VoidReason.MISMATCHED
    if is_right and is_refuted:
        if state.viable_cohorts and (params.digests or params.has_canaries(round_)):
            said.append("most may have said so for what was published, which of a void round is not checked")
            return unchecked(Name.CULPRITS, "\n".join(said))
        said.append("the aggregator named whom it should, unless the evidence was not in the store at that time")
        return fails(Name.CULPRITS, said)
    if is_right or is_refuted or not named:
        return holds(Name.CULPRITS, "\n".join(said))
    return fails(Name.CULPRITS, said)


def _is_upheld(state: RoundState) -> bool:
    return state.outcome is Outcome.SETTLED or state.void_reason is VoidReason.NO_SUMS


def _hospitals(indices: Iterable[int]) -> str:
    shown = [str(index) for index in indices]
    return f"hospital{'' if len(shown) == 1 else 's'} {', '.join(shown)}"


# --- settlement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Books:
    """What a settlement is recomputed from: the task's people, and its events of money and scores, all rounds'."""

    hospitals: Sequence[Hospital]
    voters: Sequence[Voter]
    cohorts: Sequence[int]  # bit maps of hospitals, by cohort
    rewarded: Sequence[Event]
    slashed: Sequence[Event]
    bounties: Sequence[Event]
    settled: Sequence[Event]
    revealed: Sequence[Event]


def settlement_follows(params: TaskParams, round_: int, state: RoundState, books: Books) -> Check:
    """Medians, acceptance, rewards and slashes of a round, recomputed, against what the chain holds and told.

    Raises SettlementInvalid where no round could have left this record.
    """
    if round_ == STATISTICS_ROUND:
        return unchecked(Name.SETTLEMENT, "statistics pay nobody; slashes over them were not recomputed")
    if state.void_reason not in JUDGED:
        return unchecked(Name.SETTLEMENT, "the round ended before anybody scored; its slashes were not recomputed")
    wanted = settle(Terms.of(params), _record(params, round_, state, books))
    faults = [
        f"{what} is {shown} on chain, but {own} by the rules"
        for what, shown, own in [
            ("void reason", state.void_reason.name.lower(), wanted.void.name.lower()),
            ("medians", list(state.medians), list(wanted.medians)),
            ("accepted cohorts", list(members(state.accepted_cohorts)), list(members(wanted.accepted))),
            ("guilty hospitals", list(members(state.guilty)), list(members(wanted.guilty))),
        ]
        if shown != own
    ]
    paid, slashed = _owed(params, books, wanted)
    faults += _differences("is paid", _amounts(books.rewarded, round_), paid)
    faults += _differences("is slashed", _amounts(books.slashed, round_), slashed)
    if faults:
        return fails(Name.SETTLEMENT, faults)
    return holds(Name.SETTLEMENT, f"what was paid ({len(+paid)}) and slashed ({len(+slashed)}) is what the rules give")


def _record(params: TaskParams, round_: int, state: RoundState, books: Books) -> RoundRecord:
    """As it stood before the round took or paid anything."""
    taken = Counter[str]()
    for event in books.slashed:
        if event.values["round"] < round_:
            taken[event.values["account"]] += event.values["amount"]
    ends = [(event.block, event.index) for event in books.settled if event.values["round"] == round_]
    spent = [event for event in books.rewarded if event.values["round"] < round_]
    spent += [event for event in books.bounties if ends and (event.block, event.index) < ends[0]]
    scores = {e.values["voter"]: tuple(e.values["scores"]) for e in books.revealed if e.values["round"] == round_}
    is_opened = params.canaries and state.outcome is Outcome.SETTLED
    pool_left = params.pool - sum(event.values["amount"] for event in spent)
    return RoundRecord(
        pool_left=pool_left,
        weights=tuple(hospital.weight for hospital in books.hospitals),
        hospital_bonds=tuple(params.hospital_bond - taken[hospital.node] for hospital in books.hospitals),
        voter_bonds=tuple(params.voter_bond - taken[voter.node] for voter in books.voters),
        aggregator_bond=params.aggregator_bond - taken[params.aggregator],
        cohorts=tuple(books.cohorts),
        viable=state.viable_cohorts,
        committed=state.committed,
        survivors=state.survivors,
        turned=state.turned_cohorts if is_opened else None,
        seated=state.seated,
        scores=tuple(scores.get(voter.node) for voter in books.voters),
        dropped=state.dropped_cohorts,
        named=state.named,
        forfeited=pool_left - state.budget,
        late=state.late,
    )


def _owed(params: TaskParams, books: Books, wanted: Settlement) -> tuple[Counter[str], Counter[str]]:
    """Rewards and slashes by address."""
    nodes = {
        Role.HOSPITAL: [hospital.node for hospital in books.hospitals],
        Role.VOTER: [voter.node for voter in books.voters],
        Role.AGGREGATOR: [params.aggregator],
    }
    paid, slashed = Counter[str](), Counter[str]()
    for account in wanted.accounts:
        address = nodes[account.role][account.index]
        paid[address] += account.reward
        slashed[address] += account.slash
    return paid, slashed


def _amounts(events: Sequence[Event], round_: int) -> Counter[str]:
    found = Counter[str]()
    for event in events:
        if event.values["round"] == round_:
            found[event.values["account"]] += event.values["amount"]
    return found


def _differences(what: str, shown: Counter[str], own: Counter[str]) -> list[str]:
    return [
        f"{account} {what} {shown[account]} on chain, but {own[account]} by the rules"
        for account in sorted(shown | own)
        if shown[account] != own[account]
    ]
