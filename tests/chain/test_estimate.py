"""What a task is said to cost, against what real ones cost; what is to be thought over, rule by rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import rlp
from chain_driver import LocalChain, TaskDriver
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.outgoing import MAX_BLOBS_PER_TRANSACTION
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.concerns import MAX_BLOBS_PER_TRANSACTION as BLOBS_AT_ONCE
from consilium_chain.tasks.concerns import Rule
from consilium_chain.tasks.costs import _relayed as relayed_bytes
from consilium_chain.tasks.costs import posted_bytes
from consilium_chain.tasks.estimate import _relayed, estimate
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from decoy_driver import DecoyDriver
from eth_utils.crypto import keccak

DATA = {"label": "sick", "classes": ["no", "yes"], "features": [{"name": "age", "min": 0.0, "max": 120.0}]}
PHASES = ("join", "commit", "upload", "publish", "score", "reveal")
TRANSFER, RELEASE = (
    "0x" + keccak(text=name)[:4].hex() for name in ("transfer(address,uint256)", "releaseBond(uint256,address)")
)
CHAIN = ChainTerms(10**9, 1, block_seconds=12, beacon_seconds=36)
# Nothing to think over.
QUIET: dict[str, dict[str, Any]] = {
    "privacy": {"epsilon": 8, "max_grad_norm": 1.0},
    "rounds": {"rounds": 5, "cohorts": 2, "min_hospitals": 6, "max_hospitals": 8},
    "judging": {"max_voters": 8, "seats": 5, "min_reveals": 3},
    "money": {"pool": 100_000, "aggregator_bond": 8_000},
    "windows": dict.fromkeys(PHASES, 600),
}


def spec_of(**changes: dict[str, Any] | None) -> TaskSpec:
    """QUIET, and of each section what differs; None leaves one out."""
    sections = {
        name: {**QUIET.get(name, {}), **(changes.get(name) or {})}
        for name in QUIET.keys() | changes.keys()
        if changes.get(name, {}) is not None
    }
    return TaskSpec.model_validate({"name": "priced", "data": DATA, "model": {"name": "logistic"}, **sections})


def rules(spec: TaskSpec, chain: ChainTerms | None = CHAIN) -> set[Rule]:
    found = estimate(spec, chain).concerns
    assert all(concern.reason for concern in found)
    return {concern.rule for concern in found}


# --- gas -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_chain() -> Iterator[LocalChain]:
    """Its accounts have not staked yet, which is a part of what a task costs."""
    with LocalChain() as chain:
        yield chain


def spent(chain: LocalChain, first_block: int) -> tuple[Counter[str], Counter[str], int]:
    """Gas and bytes of signed transactions by sender, and blobs. Without transfers of tokens, with which the driver
    begins, and without the releases of everybody's bonds, which it does in one's name: estimates have each party's own.
    """
    gas, posted, blobs = Counter[str](), Counter[str](), 0
    for number in range(first_block, chain.treasury.connection.blocks.number() + 1):
        for sent in chain.rpc("eth_getBlockByNumber", hex(number), True)["transactions"]:
            receipt = chain.rpc("eth_getTransactionReceipt", sent["hash"])
            if sent["input"][:10] not in (TRANSFER, RELEASE):
                gas[sent["from"].lower()] += int(receipt["gasUsed"], 16)
                posted[sent["from"].lower()] += signed_bytes(sent)
            blobs += len(sent.get("blobVersionedHashes") or [])
    return gas, posted, blobs


def signed_bytes(sent: dict[str, Any]) -> int:
    """As a rollup posts it: RLP of a type 2 transaction, with its signature. Such a chain takes no blobs."""
    numbers = [int(sent[name], 16) for name in ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas")]
    signature = [int(sent[name], 16) for name in ("yParity", "r", "s")]
    to, data = bytes.fromhex(sent["to"][2:]), bytes.fromhex(sent["input"][2:])
    return 1 + len(rlp.encode([*numbers, to, int(sent["value"], 16), data, [], *signature]))


@pytest.mark.parametrize(
    ("hospitals", "voters", "cohorts", "decoys", "publication"),
    [
        (3, 2, 1, False, "digests"), (12, 3, 4, True, "blobs"),
        pytest.param(3, 2, 1, False, "blobs", marks=pytest.mark.deep),
        pytest.param(4, 3, 2, True, "digests", marks=pytest.mark.deep),
    ],
)  # fmt: skip
def test_a_played_task_costs_what_it_was_said_to(
    own_chain: LocalChain, hospitals: int, voters: int, cohorts: int, decoys: bool, publication: str
) -> None:
    """Everybody's first task, in gas and in bytes. Its hospitals commit for themselves, and its operator does what
    anybody may.
    """
    chain = own_chain
    for pool in chain._pools.values():
        pool.clear()
    spec = spec_of(
        privacy=None,
        update={"masked": False, "publication": publication},
        rounds={
            "rounds": 2, "cohorts": cohorts, "max_hospitals": hospitals, "min_hospitals": 1, "min_cohort_size": 1,
            "max_weight": 16,
        },
        judging={"max_voters": voters, "seats": voters, "min_reveals": 1, "decoys": decoys},
        money={"pool": 1_000},
        windows=dict.fromkeys(PHASES, 100_000),
    )  # fmt: skip
    terms = asdict(task_params(spec, bytes(32), ""))
    del terms["aggregator"]
    first = chain.treasury.connection.blocks.number() + 1
    kind, more = (DecoyDriver, {"flipped": 1}) if decoys else (TaskDriver, {})
    task = kind(
        chain, hospitals=hospitals, voters=voters, lanes=spec.parameters, terms=terms, layout=spec.update_layout,
        statistics=(spec.statistics_layout, spec.statistics_values), **more,
    )  # fmt: skip
    task.join().first_round()
    good = [60_000 - cohort for cohort in range(cohorts)]
    for _ in range(spec.rounds.rounds):
        task.form().commit_all().publish()
        if isinstance(task, DecoyDriver):
            task.draw().vote([task.ballot(good, [-80_000] * cohorts)] * voters)
            task.open()
        else:
            task.draw().judge([good] * voters)
    assert task.phase is Phase.ENDED
    task.home()
    gas, posted, blobs = spent(chain, first)
    found, count = estimate(spec), spec.rounds.rounds
    relayed = _relayed(hospitals, spec.statistics_blobs, 1) + count * _relayed(hospitals, spec.update_blobs, cohorts)

    def of(counted: Counter[str], *ledgers: Any) -> int:
        return sum(counted[ledger.address.lower()] for ledger in ledgers)

    ours = (task.operator, task.aggregator)
    for who, paid, said in [
        ("hospitals", of(gas, *task.nodes), hospitals * found.hospital_alone.total),
        ("voters", of(gas, *task.judges), voters * found.seated.total),
        ("others", of(gas, *ours), found.operator.total + found.aggregator.total - relayed),
    ]:
        assert paid <= said <= 1.9 * paid, who
    most = posted_bytes(spec)
    for who, sent, said in [
        ("hospitals", of(posted, *task.nodes), hospitals * most["hospital_alone"]),
        ("voters", of(posted, *task.judges), voters * most["seated"]),
        (
            "others",
            of(posted, *ours),
            most["operator"] + most["aggregator"] - (1 + count) * relayed_bytes(hospitals, 1),
        ),
    ]:
        assert sent <= said <= 1.5 * sent, who
    assert blobs == found.published_blobs


def test_all_gas_is_everybodys() -> None:
    found = estimate(spec_of())
    voters = 5 * found.seated.total + 3 * found.standing.total
    assert found.all_gas == found.operator.total + found.aggregator.total + 8 * found.hospital.total + voters
    assert CHAIN.wei(found.all_gas, found.blob_gas) == found.all_gas * 10**9 + found.published_blobs * 131_072


def test_digests_pay_for_no_blob_and_judge_the_statistics() -> None:
    blobs, digests = estimate(spec_of()), estimate(spec_of(update={"publication": "digests"}))
    assert (blobs.published_blobs, digests.published_blobs) == (1 + 5 * 2, 0)
    assert digests.artifact_bytes == blobs.artifact_bytes == 11 * 131_072
    assert digests.seated.rounds > blobs.seated.rounds


def test_drand_costs_more_than_prevrandao() -> None:
    plain, drand = estimate(spec_of(), CHAIN), estimate(spec_of(), replace(CHAIN, has_drand=True))
    assert drand.aggregator.rounds - plain.aggregator.rounds == (5 + 1) * 101_500


def test_pay_of_all_who_earn_alike_is_within_the_pool() -> None:
    found = estimate(spec_of())
    roles = (found.hospitals_pay, found.voters_pay, found.aggregator_pay)
    assert 5 * sum(pay.role for pay in roles) == 100_000 * 10**18
    assert (found.hospitals_pay.one, found.voters_pay.one) == (1_750 * 10**18, 800 * 10**18)


# --- time ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "more"),
    [("join", 1), ("commit", 6), ("upload", 6), ("publish", 6 + 18 + 5), ("score", 5), ("reveal", 5)],
)
def test_each_second_of_a_window_counts_as_often_as_its_phase_comes(window: str, more: int) -> None:
    """Six rounds with the statistics, of which five are judged and disclosed; masked, so that each may come to a
    dispute.
    """
    base, longer = estimate(spec_of(), CHAIN), estimate(spec_of(windows={window: 601}), CHAIN)
    assert base.longest is not None
    assert longer.longest is not None
    assert longer.longest - base.longest == more
    assert base.expected is not None
    assert base.expected < base.longest


def test_without_a_chain_there_is_no_time() -> None:
    assert (estimate(spec_of()).longest, estimate(spec_of()).expected) == (None, None)


# --- concerns ------------------------------------------------------------------------------------------------------


def test_nothing_is_said_of_a_quiet_task() -> None:
    assert rules(spec_of()) == set()
    assert rules(spec_of(judging={"accept_floor": -0.03, "harmful_below": -0.06})) == set()
    assert rules(spec_of(outer={"name": "momentum"})) == rules(spec_of(outer={"name": "adam"})) == set()
    assert rules(spec_of(outer={"name": "nesterov"})) == set()


ALONE = {"cohorts": 2, "min_cohort_size": 1, "min_hospitals": 2}
BROKEN: list[tuple[Rule, dict[str, Any]]] = [
    (Rule.NO_MASKS, {"update": {"masked": False}}),
    (
        Rule.ARENA,
        {
            "update": {"masked": False},
            "rounds": {"cohorts": 8, "min_cohort_size": 1, "max_hospitals": 8, "max_weight": 1},
            "judging": {"rank_floor": 0.01},
            "money": {"rank_decay_bps": 8_500},
        },
    ),
    (Rule.NO_PRIVACY, {"privacy": None}),
    (Rule.HIGH_EPSILON, {"privacy": {"epsilon": 10.5}}),
    (Rule.HIGH_DELTA, {"privacy": {"delta": 0.01}}),
    (Rule.NO_DECOYS, {"judging": {"decoys": False}}),
    (Rule.DECOYS_FREE, {"money": {"failed_decoy_slash_bps": 0}}),
    (Rule.DECOYS_FADE, {"outer": {"name": "momentum", "momentum": 0.51}}),
    (Rule.DECOYS_FADE, {"outer": {"name": "nesterov", "fading": 0.71}}),
    (Rule.DECOYS_FADE, {"outer": {"name": "adam", "learning_rate": 0.031}}),
    (Rule.DIGESTS, {"update": {"publication": "digests"}}),
    (Rule.ONE_COHORT, {"rounds": {"cohorts": 1}}),
    (Rule.SMALL_COMMITTEE, {"judging": {"seats": 2, "min_reveals": 2, "tolerance": 0.01}}),
    (Rule.FEW_REVEALS, {"judging": {"min_reveals": 2}}),
    (Rule.NO_TOLERANCE, {"judging": {"tolerance": 0, "tolerance_bps": 0}}),
    (Rule.NOTHING_ACCEPTED, {"judging": {"accept_floor": 0.0}}),
    (Rule.HARM_NEAR_NOISE, {"judging": {"accept_floor": -0.03, "harmful_below": -0.059}}),
    (Rule.UNFAIR, {"judging": {"metric": "auc"}}),
    (Rule.UNFAIR, {"judging": {"metric": "accuracy", "least_rows": 50, "least_of_class": 20}}),
    (
        Rule.HARM_OVERLOOKED,
        {
            "judging": {
                "metric": "auc",
                "least_rows": 200,
                "least_of_class": 20,
                "accept_floor": -0.05,
                "harmful_below": -0.1,
            }
        },
    ),
    (
        Rule.FEW_OF_CLASS,
        {
            "judging": {
                "metric": "auc",
                "least_rows": 200,
                "least_of_class": 19,
                "accept_floor": -0.2,
                "harmful_below": -0.4,
            }
        },
    ),
    (Rule.NO_POOL, {"money": {"pool": 0}}),
    (Rule.BONDS_ABOVE_PAY, {"money": {"hospital_bond": 10_000}}),
    (Rule.BONDS_ABOVE_PAY, {"money": {"voter_bond": 5_000}}),
    (Rule.HARM_FREE, {"money": {"harmful_slash_bps": 0}}),
    (Rule.SILENCE_FREE, {"money": {"not_revealed_slash_bps": 0}}),
    *((Rule.SHORT_WINDOW, {"windows": {name: 35}}) for name in PHASES),
]


@pytest.mark.parametrize(("rule", "change"), BROKEN, ids=lambda value: str(value))
def test_each_rule_is_told_where_it_is_broken_and_alone(rule: Rule, change: dict[str, Any]) -> None:
    assert rules(spec_of(**change)) == {rule}


def test_what_comes_together_is_told_together() -> None:
    assert rules(spec_of(update={"masked": False}, rounds=ALONE)) == {Rule.NO_MASKS, Rule.PUBLISHED_ALONE}
    local = spec_of(training={"local": ["0.bias"]}, privacy=None)
    assert rules(local) == {Rule.LOCAL, Rule.NO_PRIVACY}
    lone = spec_of(judging={"seats": 1, "min_reveals": 1, "tolerance": 0.5})
    assert rules(lone) == {Rule.SMALL_COMMITTEE, Rule.WIDE_TOLERANCE}
    assert rules(spec_of(), replace(CHAIN, takes_blobs=False)) == {Rule.NO_BLOBS}
    assert rules(spec_of(update={"publication": "digests"}), replace(CHAIN, takes_blobs=False)) == {Rule.DIGESTS}


def test_a_window_is_short_by_the_chains_blocks_and_by_blobs_to_publish() -> None:
    assert BLOBS_AT_ONCE == MAX_BLOBS_PER_TRANSACTION
    edge = spec_of(windows={"publish": 3 * 12 + 3})
    assert rules(edge) == set()
    assert rules(edge, replace(CHAIN, block_seconds=13)) == {Rule.SHORT_WINDOW}
    final = replace(CHAIN, confirmations=12)
    for name, least in (("commit", 3 * 12), ("upload", 3 * 12 + 3)):
        for masked, waits in ((True, 11 * 12), (False, 0)):
            told = [
                Rule.SHORT_WINDOW in rules(spec_of(windows={name: window}, update={"masked": masked}), final)
                for window in (least + waits - 1, least + waits)
            ]
            assert told == [True, False]
    wide = {"model": {"name": "mlp", "hidden": [8_192, 16]}}  # several blobs a cohort
    sections = spec_of(windows={"publish": 3 * 12 + 3}).model_dump(exclude_none=True) | wide
    many = TaskSpec.model_validate(sections)
    assert many.update_blobs * many.rounds.cohorts > MAX_BLOBS_PER_TRANSACTION
    assert rules(many) == {Rule.SHORT_WINDOW}
    assert rules(many, None) == set()


GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "operator.md").read_text()


def test_the_guide_has_every_rule_and_a_task_file_that_breaks_none() -> None:
    assert [rule for rule in Rule if f"| `{rule}` |" not in GUIDE] == []
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert rules(parse_task_spec(text.encode())) == set()
