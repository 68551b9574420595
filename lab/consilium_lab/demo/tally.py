"""The demo's report as plain values: the chain's record, and reference trainings without a chain."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from consilium_chain.deploying.address_book import SUPPLY
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, RoundState, SlashReason, VoidReason, members
from consilium_chain.rounds.deadlines import Missed, fields_of, in_words
from consilium_chain.settlement.accounting import take_stock, worths
from consilium_chain.settlement.settlement import Reason
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import joined
from consilium_client.models import model_of
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_verify.report import derived

from consilium_lab.demo.arena import arena_of
from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.datasets import examples_of
from consilium_lab.demo.network import Network, Role
from consilium_lab.demo.options import TableOptions
from consilium_lab.demo.processes import Line
from consilium_lab.pay import Earner, Share, pay_in_words

MASKED = (
    "Masked: nobody else saw a hospital's update. The aggregator learned each cohort's sum, which the chain verified"
    " and everybody can read."
)
PUBLIC = "An arena: everybody saw each hospital's update (never its rows)."
UNMASKED = "Not masked: the aggregator saw each hospital's update (never its rows)."
NO_NOISE = "No noise hides a hospital's part in a sum."


def privacy_in_words(spec: TaskSpec) -> str:
    noise = NO_NOISE
    if spec.privacy is not None:
        bound = f"(epsilon {spec.privacy.epsilon:g}, delta {spec.privacy.delta:g})"
        noise = f"Hospitals trained with noise: all rounds together cost each row at most {bound}."
    return f"{PUBLIC if spec.is_arena else MASKED if spec.update.masked else UNMASKED} {noise}"


class Evaluator:
    """Metrics of every round's base model, derived from chain and artifact store, as anybody can do."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._held_out = joined(examples_of(network.data.held_out, network.data.schema))
        task = load_task(network.treasury, network.store, network.task)
        self._record = PublicRecord(network.treasury, network.store, task)
        self._model = model_of(task.spec)

    def metrics(self, round_: int) -> dict[str, float | None]:
        """Metrics of the base model of a round. The round after the last has the final model."""
        inputs = self._model.inputs(self._held_out, self._record.statistics())
        answers = self._model.evaluate(self._record.base(round_), inputs).answers(self._held_out.labels)
        return self._model.objective.measured(*answers)

    def digest(self, round_: int) -> str:
        """SHA-256 of a round's base model, as `consilium verify` shows it."""
        return derived("model", self._record.base(round_)).sha256


def report(
    network: Network, chronicle: Chronicle, references: Mapping[str, Mapping[str, float]], wall_s: float
) -> dict[str, Any]:
    """The whole report, ready for JSON. Amounts are decimal strings of the smallest unit."""
    evaluator = Evaluator(network)
    last = network.treasury.tasks.state(network.task).round
    statistics_settled = network.treasury.tasks.round_state(network.task, STATISTICS_ROUND).outcome is Outcome.SETTLED
    derivable = range(1, last + 2) if statistics_settled else ()
    by_round = {r: evaluator.metrics(r) for r in derivable}
    final = by_round.get(last + 1, dict.fromkeys(references["pooled"]))
    late = late_parties(chronicle.missed, chronicle.lines_of("refused"), lambda account: _name(network, account))
    metric = network.spec.data.asked.shown[0]
    found: dict[str, Any] = {
        "data": network.options.data,
        "description": network.data.description,
        "hospitals": len(network.of(Role.HOSPITAL)),
        "voters": len(network.of(Role.VOTER)),
        "seed": network.options.seed,
        "attacks": list(network.options.attacks),
        "cheat": network.options.cheat,
        "wall_s": round(wall_s, 2),
        "metric_name": metric,
        "final_metric": final[metric],
        "local_only_metric": references["local_only"][metric],
        "pooled_metric": references["pooled"][metric],
        "metrics": {"final": final, **references},
        "bases": [evaluator.digest(r) for r in derivable],
        "private": network.spec.update.masked,
        "privacy": privacy_in_words(network.spec),
        "conservation": conservation(network),
        "balances": balances(network),
        "pay": pay_in_words(earners(network, last), network.spec.rounds, is_arena=network.spec.is_arena),
        "missed": late,
        "why_no_model": why_no_model(network, late) if final[metric] is None else None,
        "rounds": [_round(network, chronicle, round_, by_round.get(max(round_, 1), {})) for round_ in range(last + 1)],
        "next": next_steps(network.options.table),
        "all_gas": all_gas(network, chronicle),
        "setup_s": round(chronicle.seen[0].at, 3) if chronicle.seen else None,
        "strangers": strangers(chronicle.lines_of("tried")),
        "arena": arena_of(network, chronicle, last, final) if network.spec.is_arena else None,
    }
    return found | {"broken": broken(found)}


def strangers(tried: Sequence[Line]) -> list[dict[str, Any]]:
    """By call: how often strangers tried it, how often it was refused by which error, and the accepted calls."""
    calls = dict.fromkeys(line.fields["call"] for line in tried)
    return [_of_strangers(call, [line for line in tried if line.fields["call"] == call]) for call in calls]


def _of_strangers(call: str, tried: Sequence[Line]) -> dict[str, Any]:
    errors = Counter(line.fields["error"] for line in tried if line.fields["error"] is not None)
    return {
        "call": call,
        "tried": len(tried),
        "refused": errors.total(),
        "errors": dict(errors.most_common()),
        "taken": [
            {"who": line.process, "round": line.fields["round"], "field": line.fields["field"]}
            for line in tried
            if line.fields["error"] is None
        ],
    }


def broken(report: Mapping[str, Any]) -> list[str]:
    """Harm that strangers did, in words. All other parties must be honest."""
    parties = report["balances"].values()
    own = {party["name"]: party for party in parties if party["role"] == Role.STRANGER}
    if not own:
        return []
    joined = {
        taken["who"] for call in report["strangers"] if call["call"].startswith("joinAs") for taken in call["taken"]
    }
    void = [f"round {r['index']} did not settle" for r in report["rounds"] if r["outcome"] != "settled"]
    slashed = [
        f"{slash['who']}, who is honest, was slashed in round {r['index']}"
        for r in report["rounds"]
        for slash in r["slashes"]
        if slash["who"] not in own
    ]
    richer = [f"{name} is richer" for name, party in own.items() if int(party["after"]) > int(party["before"])]
    return void + slashed + richer + [f"{name} did not join" for name in own if name not in joined]


def faults(report: Mapping[str, Any]) -> list[str]:
    """Reasons for which a run counts as failed, in words: tokens that are not accounted for, no model, and harm."""
    difference, no_model = report["conservation"]["difference"], report["why_no_model"]
    lost = [f"{difference} of the token's smallest unit are in no account"] if difference != "0" else []
    harm: list[str] = report["broken"]
    return lost + ([f"no model: {no_model}"] if no_model is not None else []) + harm


def late_parties(missed: Sequence[Missed], refused: Sequence[Line], name: Callable[[str], str]) -> list[str]:
    """Missed deadlines in words: the parties, and how late they were by the chain's events and their own logs.

    `name`: gives an account's name.
    """
    found = []
    for one in missed:
        names = [name(account) for account in one.missing]
        late = [
            f"{line.process} tried {line.fields['call']} {line.fields['late_s']} s late"
            for line in refused
            if line.process in names and line.fields.get("round") == one.round and "late_s" in line.fields
        ]
        found.append("; ".join([in_words({**fields_of(one), "missing": names}), *late]))
    return found


def why_no_model(network: Network, late: Sequence[str]) -> str:
    """The reason in words, for a task whose statistics round did not settle."""
    if late:
        return late[-1]
    reason = network.treasury.tasks.round_state(network.task, STATISTICS_ROUND).void_reason
    return f"round {STATISTICS_ROUND} is void: {reason.name.lower().replace('_', ' ')}"


def conservation(network: Network) -> dict[str, str]:
    """Compares all minted tokens with the contracts' accounts, and with tokens burnt by a slash or at a task's end."""
    accounts = [network.treasury.address, *(party.address for party in network.parties)]
    books = take_stock(network.treasury, SUPPLY, accounts)
    amounts = asdict(books) | {"held": books.held, "difference": books.difference}
    return {name: str(amount) for name, amount in amounts.items()}


def balances(network: Network) -> dict[str, dict[str, Any]]:
    """Each party's wealth before and after the task: wallet, stake and rewards. `rows`: of a hospital, else None."""
    rows = dict(zip(network.data.hospital_names, map(len, network.data.hospitals), strict=True))
    after = worths(network.treasury, [party.address for party in network.parties])
    return {
        party.address: {
            "name": party.name,
            "role": party.role,
            "honest": party.attack is None,
            "does": party.attack,
            "rows": rows.get(party.name),
            "before": str(party.before),
            "after": str(after[party.address]),
        }
        for party in network.parties
    }


def earners(network: Network, last: int) -> list[Earner]:
    """The hospitals that joined, with their settled rounds up to round `last`, as the contract explains them."""
    tasks, task = network.treasury.tasks, network.task
    weights = {hospital.node: hospital.weight for hospital in tasks.hospitals(task)}
    settled = [r for r in range(1, last + 1) if tasks.round_state(task, r).outcome is Outcome.SETTLED]
    found = []
    for party, frame in zip(network.of(Role.HOSPITAL), network.data.hospitals, strict=True):
        if party.address in weights:
            payouts = {r: tasks.explain(task, r, party.address) for r in settled}
            shares = {r: Share(payout.reward, Reason[payout.reason.name]) for r, payout in payouts.items()}
            found.append(Earner(party.name, len(frame), weights[party.address], shares))
    return found


def next_steps(table: TableOptions | None) -> str:
    """Commands, a line each."""
    if table is None:
        return "consilium demo --data table --file TABLE\nconsilium task new --from TABLE"
    command = ["consilium", "task", "new", "--from", str(table.file)]
    command += ["--label", table.label] if table.label else []
    command += ["--sites", table.sites] if table.sites else []
    return shlex.join(command)


def _round(
    network: Network, chronicle: Chronicle, round_: int, base_metrics: Mapping[str, float | None]
) -> dict[str, Any]:
    state = network.treasury.tasks.round_state(network.task, round_)
    money = {name: chronicle.of_round(round_, name) for name in ("Rewarded", "Slashed")}
    return {
        "index": round_,
        "kind": "statistics" if round_ == STATISTICS_ROUND else "training",
        "outcome": state.outcome.name.lower(),
        "void_reason": state.void_reason.name.lower() if state.void_reason is not VoidReason.NONE else None,
        "base_metric": base_metrics.get(network.spec.data.asked.shown[0]) if round_ != STATISTICS_ROUND else None,
        "base_metrics": dict(base_metrics) if round_ != STATISTICS_ROUND else None,
        "cohorts": [_cohort(network, chronicle, round_, state, index) for index in range(state.cohorts)],
        "committee": [_name(network, event.values["voter"]) for event in chronicle.of_round(round_, "ScoresCommitted")],
        "revealed": [_name(network, event.values["voter"]) for event in chronicle.of_round(round_, "ScoresRevealed")],
        "refusals": refusals(network, chronicle, round_),
        "payouts": [
            {"who": _name(network, e.values["account"]), "amount": str(e.values["amount"])} for e in money["Rewarded"]
        ],
        "slashes": [
            {
                "who": _name(network, e.values["account"]),
                "amount": str(e.values["amount"]),
                "reason": SlashReason(e.values["reason"]).name.lower(),
            }
            for e in money["Slashed"]
        ],
        "gas": _gas(network, chronicle, round_),
        "seconds": chronicle.phase_seconds(round_),
    }


def _cohort(network: Network, chronicle: Chronicle, round_: int, state: RoundState, index: int) -> dict[str, Any]:
    hospitals = network.treasury.tasks.hospitals(network.task)
    present = network.treasury.tasks.cohort_members(network.task, round_, index) & state.survivors
    judged = round_ != STATISTICS_ROUND and state.outcome is Outcome.SETTLED and bool(state.viable_cohorts >> index & 1)
    weights = [1 if round_ == STATISTICS_ROUND else hospitals[i].weight for i in members(present)]
    published = {e.values["blob"] for e in chronicle.of_round(round_, "CohortPublished") if e.values["cohort"] == index}
    blobs = network.spec.statistics_blobs if round_ == STATISTICS_ROUND else network.spec.update_blobs
    return {
        "members": [_name(network, hospitals[i].node) for i in members(present)],
        "weight": sum(weights),
        "dropped": bool(state.dropped_cohorts >> index & 1),
        "sum_verified_on_chain": len(published) == blobs and bool(state.summed_cohorts >> index & 1),
        "flipped": bool(state.flipped_cohorts >> index & 1),
        "median_improvement": state.medians[index] / 1_000_000 if judged and index < len(state.medians) else None,
        "accepted": bool(state.accepted_cohorts >> index & 1),
    }


def refusals(network: Network, chronicle: Chronicle, round_: int) -> list[dict[str, str]]:
    """Calls that the contract refused in a round, from the refused parties' logs."""
    return [
        {"who": line.process, "what": line.fields["call"], "error": line.fields["error"]}
        for line in chronicle.lines_of("refused")
        if line.fields.get("round") == round_
    ]


def all_gas(network: Network, chronicle: Chronicle) -> int:
    """Gas of all transactions since the task's first event."""
    blocks = network.treasury.connection.blocks
    first = chronicle.seen[0].event.block if chronicle.seen else blocks.number() + 1
    return sum(int(blocks.get(number)["gasUsed"]) for number in range(first, blocks.number() + 1))


def _gas(network: Network, chronicle: Chronicle, round_: int) -> dict[str, int]:
    """Mean gas by kind of transaction, divided by the parties that it served."""
    calls = {
        "UpdateCommitted": "commitUpdates, each hospital",
        "CohortsFormed": "formCohorts",
        "SurvivorsFixed": "publish (survivors and blobs of all cohorts)",
        "SeatsDrawn": "drawSeats",
        "ScoresCommitted": "commitScores",
        "ScoresRevealed": "revealScores",
        "VoterStoodDown": "standDown",
        "RoundSettled": "settle (sums disclosed and settled)",
    }
    used: dict[str, dict[str, int]] = defaultdict(dict)
    parties: Counter[str] = Counter()
    for event in chronicle.of_round(round_):
        if event.name in calls and (round_ != STATISTICS_ROUND or event.name != "RoundSettled"):
            used[calls[event.name]][event.transaction] = network.treasury.connection.transactions.gas_of(
                event.transaction
            )
            parties[calls[event.name]] += 1
    return {call: round(sum(gas.values()) / parties[call]) for call, gas in used.items()}


def _name(network: Network, address: str) -> str:
    party = network.party(address)
    return party.name if party is not None else address
