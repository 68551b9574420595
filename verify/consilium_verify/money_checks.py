"""Checks of money: slashes for a broken sum, and a round's settlement. Pure: the values were read before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from consilium_chain.rpc.event_logs import Event
from consilium_chain.settlement.payouts import penalty
from consilium_chain.settlement.round_record import RoundRecord, Terms
from consilium_chain.settlement.settlement import Settlement, settle
from consilium_zk.disputes import Reason

from consilium_verify.report import Check, Name, fails, holds, unchecked

JUDGED = (VoidReason.NONE, VoidReason.TOO_FEW_SCORES, VoidReason.NOT_DISCLOSED, VoidReason.MISMATCHED)


@dataclass(frozen=True)
class Books:
    """The inputs of a settlement: the task's parties, and its events of money and scores of all rounds."""

    hospitals: Sequence[Hospital]
    voters: Sequence[Voter]
    cohorts: Sequence[int]  # bit maps of hospitals, by cohort
    rewarded: Sequence[Event]
    slashed: Sequence[Event]
    bounties: Sequence[Event]
    settled: Sequence[Event]
    revealed: Sequence[Event]


def could_testify(state: RoundState) -> bool:
    """True if the accused had time to submit evidence. It begins when all other cohorts are published or dropped."""
    return state.published_cohorts == state.viable_cohorts


def accusation(state: RoundState) -> str:
    """The named hospitals of cohorts without a sum, and the committee's verdict, in words."""
    if not state.named:
        return "the aggregator named no hospital in time"
    who, several = _hospitals(members(state.named)), state.named.bit_count() > 1
    if _is_upheld(state):
        came = "and the committee agreed"
    elif state.void_reason is VoidReason.MISMATCHED:
        came = "but most of the committee said that the round does not match"
    else:
        came = "and the round is void for another reason"
    return f"{who} {'were' if several else 'was'} named, {came}"


def cheaters_follow(
    params: TaskParams, round_: int, state: RoundState, books: Books, found: Mapping[int, Reason], flaw: str = ""
) -> Check:
    """Compares the cheaters by the evidence with the named hospitals, the verdict, and the slashes.

    found: by index of hospital. flaw: the reason if the evidence proves nothing. An aggregator that names no hospital
    is slashed in any case.
    """
    nodes, named = [hospital.node for hospital in books.hospitals], set(members(state.named))
    slashed = {
        event.values["account"]
        for event in books.slashed
        if event.values["round"] == round_ and event.values["reason"] == SlashReason.FALSE_UPLOAD
    }
    given = f"the evidence gives {_hospitals(sorted(found))}" if found else "by the evidence no hospital broke a sum"
    lines = [f"{accusation(state)}; {flaw or given}"]
    for index in sorted(named | found.keys()):
        done = f"{'' if index in named else 'not '}named, {'' if nodes[index] in slashed else 'not '}slashed"
        lines.append(f"hospital {index} ({nodes[index]}): {done}; {found.get(index, 'no evidence against it')}")

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
        return fails(Name.CHEATERS, lines + faults)
    is_right, is_refuted = found.keys() == named, state.void_reason is VoidReason.MISMATCHED
    if is_right and is_refuted:
        if state.viable_cohorts and (params.digests or params.has_decoys(round_)):
            lines.append("the committee may have meant the published sums, which are not checked in a void round")
            return unchecked(Name.CHEATERS, "\n".join(lines))
        lines.append(
            "the aggregator named the right hospitals, unless the store did not have the evidence at that time"
        )
        return fails(Name.CHEATERS, lines)
    if is_right or is_refuted or not named:
        return holds(Name.CHEATERS, "\n".join(lines))
    return fails(Name.CHEATERS, lines)


def _is_upheld(state: RoundState) -> bool:
    return state.outcome is Outcome.SETTLED or state.void_reason is VoidReason.NO_SUMS


def _hospitals(indices: Iterable[int]) -> str:
    shown = [str(index) for index in indices]
    return f"hospital{'' if len(shown) == 1 else 's'} {', '.join(shown)}"


# --- settlement ----------------------------------------------------------------------------------------------------


def settlement_follows(params: TaskParams, round_: int, state: RoundState, books: Books) -> Check:
    """Recomputes medians, acceptance, rewards and slashes of a round, and compares them with state and events.

    Raises SettlementInvalid if no round can leave this record.
    """
    if round_ == STATISTICS_ROUND:
        return unchecked(Name.SETTLEMENT, "the statistics round pays nothing; its slashes were not recomputed")
    if state.void_reason not in JUDGED:
        return unchecked(Name.SETTLEMENT, "the round ended before the scoring; its slashes were not recomputed")
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
    return holds(Name.SETTLEMENT, f"rewards ({len(+paid)}) and slashes ({len(+slashed)}) are those of the rules")


def _record(params: TaskParams, round_: int, state: RoundState, books: Books) -> RoundRecord:
    """The record before the round's rewards and slashes."""
    taken = Counter[str]()
    for event in books.slashed:
        if event.values["round"] < round_:
            taken[event.values["account"]] += event.values["amount"]
    ends = [(event.block, event.index) for event in books.settled if event.values["round"] == round_]
    spent = [event for event in books.rewarded if event.values["round"] < round_]
    spent += [event for event in books.bounties if ends and (event.block, event.index) < ends[0]]
    scores = {e.values["voter"]: tuple(e.values["scores"]) for e in books.revealed if e.values["round"] == round_}
    is_disclosed = params.decoys and state.outcome is Outcome.SETTLED
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
        flipped=state.flipped_cohorts if is_disclosed else None,
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
