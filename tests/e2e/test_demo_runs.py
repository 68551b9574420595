"""The real demo, every party a process of its own. One at a time: each wants the whole machine."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import consilium
import httpx
import numpy as np
import pandas as pd
import psutil
import pytest
import torch
from consilium_lab.demo.datasets import DemoData, deal_wdbc, examples_of
from consilium_lab.simulation.run import simulate
from demo_driver import DEMO, Demo, Run, address_of, assert_nothing_runs, assert_sound, commitments, gain, journal
from patients import patients
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
HEART = ROOT.parent / "shared" / "data" / "heart"


@dataclass
class Watch:
    """Reads the chain's blocks while a demo runs: its transactions by type, and who sent and paid for them."""

    types: Counter[int] = field(default_factory=Counter)
    senders: set[str] = field(default_factory=set)

    def __call__(self, folder: Path) -> None:
        end = time.monotonic() + 450
        while not (configurations := sorted(folder.glob("nodes/*/node.toml"))) and time.monotonic() < end:
            time.sleep(0.1)
        url, block = tomllib.loads(configurations[0].read_text())["chain_url"], 0
        # One client for all: each new one reads the machine's certificates, and a busy machine's chain would run ahead.
        with httpx.Client() as client:
            while time.monotonic() < end:
                try:
                    found = self._block(client, url, block)
                except httpx.TimeoutException:  # the machine is busy
                    continue
                except httpx.TransportError:  # the demo has ended
                    return
                if found is None:
                    time.sleep(0.2)
                    continue
                self.types.update(int(transaction["type"], 16) for transaction in found["transactions"])
                self.senders.update(transaction["from"].lower() for transaction in found["transactions"])
                block += 1

    def _block(self, client: httpx.Client, url: str, number: int) -> dict[str, Any] | None:
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": [hex(number), True]}
        found: dict[str, Any] | None = client.post(url, json=call).raise_for_status().json()["result"]
        return found


BLOBS = 3  # the type of a transaction that carries some
FEW_VOTERS = ("--voters", "3", "--seats", "3")  # all of them have a seat
ALONE = ("--no-masks", "--hospitals", "4", "--cohorts", "4")  # each hospital a cohort of its own


def test_honest_demo_settles_and_reports_everything(demo: Demo) -> None:
    watch = Watch()
    run = demo("--rounds", "2", *FEW_VOTERS, beside=watch)
    assert_sound(run)
    assert watch.types[BLOBS] == 3  # a publication a round
    report = run.report
    assert (report["data"], report["hospitals"], report["voters"]) == ("wdbc", 6, 3)
    assert report["private"]
    assert [r["outcome"] for r in report["rounds"]] == ["settled"] * 3
    assert [r["refusals"] for r in report["rounds"]] == [[], [], []]
    assert all(balance["honest"] for balance in report["balances"].values())
    assert report["final_metric"] > 0.9
    assert report["final_metric"] >= report["rounds"][1]["base_metric"]
    for round_ in report["rounds"][1:]:
        names = [name for cohort in round_["cohorts"] for name in cohort["members"]]
        assert sorted(names) == sorted({b["name"] for b in run.parties(role="hospital")})
        assert set(round_["committee"]) <= {b["name"] for b in run.parties(role="voter")}
        # The most is for one alone that ends the phase: how many go together is a matter of time.
        assert 20_000 < round_["gas"]["commitUpdates, each hospital"] < 120_000
        assert commitments(run, round_["index"]) == ["relay"] * 6
        assert sum(int(p["amount"]) for p in round_["payouts"]) > 0
    assert all(gain(b) > 0 for b in run.parties(role="hospital"))
    assert gain(run.parties(role="aggregator")[0]) > 0
    burnt = int(report["conservation"]["burnt"])
    assert burnt == forfeited(run) <= 2 * len(report["balances"])  # what rounding left of both rounds
    # Rewards that vest are read rounded down, each of two parts of every node's.
    assert 0 <= -sum(gain(b) for b in report["balances"].values()) - burnt <= 2 * len(report["balances"])
    # Hospitals hold no ether, from beginning to end: others sent, and paid for, what they signed.
    hospitals = {address_of(run.folder, b["name"]) for b in run.parties(role="hospital")}
    assert hospitals.isdisjoint(watch.senders)
    carried_out = {line["account"].lower() for line in journal(run.folder, "sponsor") if line["event"] == "carried-out"}
    assert carried_out == hospitals
    told = [line["event"] for b in run.parties(role="hospital") for line in journal(run.folder, b["name"])]
    assert (told.count("left"), told.count("not-claimed")) == (len(hospitals), 0)
    assert report["bases"] == simulated(run, deal_wdbc(6, 3, 0)), "bit for bit"


def simulated(run: Run, data: DemoData) -> list[str]:
    """The bases of a simulation of the run's task on the same rows, with the same seed."""
    hospitals, voters = examples_of(data.hospitals, data.schema), examples_of(data.held_out, data.schema)
    named = [{str(index): part for index, part in enumerate(parts)} for parts in (hospitals, voters)]
    return simulate(
        (run.folder / "task.toml").read_bytes(), named[0], named[1], locations=[run.folder / "artifacts"]
    ).bases


@pytest.mark.deep
def test_a_brought_module_trains_commits_and_is_judged_by_few_numbers_as_simulated(demo: Demo, tmp_path: Path) -> None:
    """Real nodes, masks, decoys and proofs on the numbers of a codec, of a model that the hospitals have no code of."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(30, 2), nn.Tanh(), nn.Linear(2, 1))
    consilium.export(module, torch.zeros(2, 30), tmp_path / "model")
    options = ("--program", str(tmp_path / "model"), "--codec", "hash:50")
    run = demo("--hospitals", "3", "--voters", "2", "--rounds", "2", *options)
    assert_sound(run)
    assert "65 parameters as 50 numbers (codec hash)" in run.said
    assert all(cohort["accepted"] for round_ in run.report["rounds"][1:] for cohort in round_["cohorts"])
    assert run.report["bases"] == simulated(run, deal_wdbc(3, 2, 0)), "bit for bit"
    assert run.report["final_metric"] > 0.8


@pytest.mark.deep
def test_ones_own_table_runs_with_all_parties(demo: Demo, tmp_path: Path) -> None:
    """One hospital records no creatinine. Against scikit-learn on pooled rows, and bit for bit as the simulation."""
    table = tmp_path / "own.csv"
    frame = patients()
    frame.loc[frame["hospital"] == "west", "creatinine"] = np.nan
    frame.to_csv(table, index=False)
    few = ("--label", "died", "--sites", "hospital", "--rounds", "2", *FEW_VOTERS)
    run = demo("--data", "table", "--file", str(table), *few)
    assert_sound(run)
    assert {b["name"] for b in run.parties(role="hospital")} == {"north", "south", "east", "west"}
    task = consilium.Task.read(run.folder / "task.toml")
    mapping = run.folder / "mapping.toml"
    played = consilium.simulate(task, table=table, sites="hospital", voters=3, mapping=mapping)
    assert run.report["bases"] == played.bases
    assert run.report["final_metric"] == played.metrics.loc["together", "accuracy"]
    assert played.metrics.loc["together", "accuracy"] > pooled_by_scikit_learn(frame) - 0.08


def pooled_by_scikit_learn(frame: pd.DataFrame) -> float:
    """Accuracy of a logistic regression on age and creatinine, ten-fold."""
    x = frame[["age", "creatinine"]].fillna(frame["creatinine"].mean())
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return float(cross_val_score(model, x, frame["died"], cv=10).mean())


def assert_sold(run: Run, count: int) -> None:
    sales = run.report["sales"]
    assert run.code == 0, run.said
    zero = ("lost", "paid_twice", "unredeemed", "difference", "parts_missing")
    assert [int(sales[name]) for name in zero] == [0] * len(zero)
    assert int(sales["paid"]) == count * int(sales["price"])
    assert int(sales["server"]) == int(sales["paid"]) * 20 // 100
    assert sales["kills"] == 2


def test_predictions_are_sold_though_the_server_is_killed(demo: Demo) -> None:
    assert_sold(demo("--rounds", "1", "--sell", "120"), 120)


@pytest.mark.deep
def test_ten_thousand_predictions_cost_little_gas(demo: Demo) -> None:
    run = demo("--rounds", "1", "--sell", "10000")
    assert_sold(run, 10_000)
    assert run.report["sales"]["gas_per_prediction"] <= 100


@pytest.mark.deep
def test_sign_flipping_hospital_ends_poorer_than_every_honest_one(demo: Demo) -> None:
    run = demo(*ALONE, "--attack", "sign-flip", "--rounds", "2")
    assert_sound(run)
    (attacker,) = run.parties(role="hospital", honest=False)
    honest = run.parties(role="hospital", honest=True)
    assert len(honest) == 3
    assert gain(attacker) < 0 < min(gain(b) for b in honest)
    for round_ in run.report["rounds"][1:]:
        theirs = [c for c in round_["cohorts"] if c["members"] == [attacker["name"]]]
        assert [c["accepted"] for c in theirs] == [False]
    reasons = {(s["who"], s["reason"]) for r in run.report["rounds"] for s in r["slashes"]}
    assert (attacker["name"], "harmful_cohort") in reasons


def forfeited(run: Run) -> int:
    """The part of the pool that no party was paid: burnt, since the rounds were played."""
    (operator,) = run.parties(role="operator")
    paid = sum(int(payout["amount"]) for round_ in run.report["rounds"] for payout in round_["payouts"])
    return -gain(operator) - paid


def slashed(run: Run, index: int) -> list[tuple[str, str]]:
    return [(s["who"], s["reason"]) for s in run.report["rounds"][index]["slashes"]]


def assert_cheat_in_second_round_is_refused_and_slashed(run: Run) -> None:
    """It cannot disclose its publication of round 2: the round is void, and the aggregator pays for it."""
    first, cheated = run.report["rounds"][1:3]
    assert first["outcome"] == "settled"
    (refused,) = cheated["refusals"]
    assert refused == {"who": "aggregator", "what": "discloseDecoys", "error": "BlobMismatch"}
    assert (cheated["outcome"], cheated["void_reason"]) == ("void", "not_disclosed")
    assert not any(c["accepted"] or c["sum_verified_on_chain"] for c in cheated["cohorts"])
    assert slashed(run, 2) == [("aggregator", "not_disclosed")]
    assert cheated["payouts"] == []


def test_lazy_voter_and_aggregator_that_changes_a_sum_pay_for_it_and_nobody_else(demo: Demo) -> None:
    """Without blobs: the voter is found out by the first round's decoys, the aggregator by the second's disclosure."""
    watch = Watch()
    options = ("--no-masks", "--hospitals", "3", *FEW_VOTERS, "--rounds", "2", "--digests")
    run = demo(*options, "--attack", "lazy", "--cheat", "change-blob", beside=watch)
    assert_sound(run)
    assert watch.types[BLOBS] == 0
    assert watch.types.total() > 30
    (lazy,), (aggregator,) = run.parties(role="voter", honest=False), run.parties(role="aggregator")
    assert slashed(run, 1) == [(lazy["name"], "failed_decoy")]  # a first round improves enough to tell
    assert gain(lazy) < 0 < min(gain(b) for b in run.parties(role="voter", honest=True))
    assert_cheat_in_second_round_is_refused_and_slashed(run)
    assert run.report["final_metric"] == pytest.approx(run.report["rounds"][2]["base_metric"])
    # Of its fees the aggregator loses, beside half of its bond, half of what had not vested, if anything had not.
    paid, lost = Counter[str](), {}
    for payout in (payout for round_ in run.report["rounds"] for payout in round_["payouts"]):
        paid[payout["who"]] += int(payout["amount"])
    for party in run.report["balances"].values():
        if party["role"] != "operator":
            lost[party["name"]] = paid[party["name"]] - gain(party)
    (slash,) = run.report["rounds"][2]["slashes"]
    assert lost[aggregator["name"]] >= int(slash["amount"]) >= 2 * paid[aggregator["name"]] > 0
    at_fault = lost.pop(aggregator["name"]) + lost.pop(lazy["name"])
    by_slashes = int(run.report["conservation"]["burnt"]) - forfeited(run)
    assert 0 <= at_fault - by_slashes <= 4  # of two, each read rounded down in two parts
    assert all(0 <= small <= 2 for small in lost.values())


def assert_lazy_is_slashed(run: Run) -> None:
    (lazy,) = run.parties(role="voter", honest=False)
    assert (lazy["name"], "failed_decoy") in slashed(run, 1)
    assert {who for r in run.report["rounds"] for who in slashed(run, r["index"])} == {(lazy["name"], "failed_decoy")}
    assert gain(lazy) < 0 < min(gain(b) for b in run.parties(role="voter", honest=True))


def test_interrupt_ends_every_process(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = [*DEMO, "--output", str(folder), "--no-masks", "--hospitals", "2", "--voters", "1", "--rounds", "3"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        journal = folder / "logs" / "aggregator.jsonl"
        while not (journal.exists() and "joined" in journal.read_text()):  # everybody runs by then
            assert child.poll() is None, child.stdout and child.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.2)
        family = psutil.Process(child.pid).children(recursive=True)
        assert len(family) > 5
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    assert child.returncode == 130, said
    assert "Traceback" not in said
    assert_nothing_runs(folder)
    _, alive = psutil.wait_procs(family, timeout=15)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_strangers_that_try_the_worst_of_every_call_stop_nothing_and_gain_nothing(demo: Demo) -> None:
    run = demo("--attack", "stranger", "--hospitals", "3", "--voters", "2", "--rounds", "2")
    assert_sound(run)  # its exit code is an error for a void round, a slash of the honest, and for a richer stranger
    assert (run.report["broken"], [r["outcome"] for r in run.report["rounds"]]) == ([], ["settled"] * 3)
    names = [b["name"] for b in run.parties(role="stranger")]
    assert names == [b["name"] for b in run.parties(honest=False)] == ["stranger-1", "stranger-2"]
    assert {who for r in run.report["rounds"] for who, _ in slashed(run, r["index"])} <= set(names)
    assert max(gain(b) for b in run.parties(role="stranger")) <= 0
    assert min(gain(b) for b in run.parties(role="hospital") + run.parties(role="voter")) > 0
    calls = {call["call"]: call for call in run.report["strangers"]}
    errors = {name: call["errors"].keys() for name, call in calls.items()}
    assert errors["joinAsHospital"] >= {
        "TaskUnknown", "RowsAreZero", "TransportKeyInvalid", "EncryptionKeyMissing", "StakeInsufficient",
    }  # fmt: skip
    assert errors["joinAsVoter"] >= {"VoterKeyMissing", "TaskUnknown"}
    # The last to join lets the task begin, and then the phase refuses its second call.
    assert all(errors[call] & {"AlreadyJoined", "WrongPhase"} for call in ("joinAsHospital", "joinAsVoter"))
    assert errors["registerVoterKey"] == {"VoterKeyMalformed", "ProofOfPossessionInvalid"}
    assert errors["register"] >= {"CommissionTooHigh", "ERC20InsufficientAllowance", "AlreadyRegistered"}
    assert errors["propose"] == {"ParamsInvalid"}
    assert errors["commitUpdate"] >= {
        "WrongRound", "TaskUnknown", "PointsWrong", "NotInCohort", "NotAMember", "WrongPhase",
    }  # fmt: skip
    assert errors["commitUpdates"] >= {"SignatureInvalid", "NotAggregator", "NotAMember"}
    assert errors["revealScores"] >= {"WrongRound", "ScoreCountWrong", "RevealMismatch", "NotAMember", "WrongPhase"}
    joined = [one["field"] for one in calls["joinAsHospital"]["taken"]]
    assert joined == ["the most rows, and the group's identity as its encryption key"]
    assert [one["who"] for one in calls["joinAsVoter"]["taken"]] == ["stranger-2"]
    assert [one["field"] for one in calls["revealScores"]["taken"]] == ["the least and the largest score"]


# Depth: every attack, every cheat, the other data set, other seeds.


@pytest.mark.deep
def test_hospitals_that_the_aggregator_ignores_commit_themselves(demo: Demo) -> None:
    """And deal on chain what removes their masks."""
    run = demo("--hospitals", "3", "--cheat", "ignore-commitments", "--rounds", "2")
    assert_sound(run)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 3
    assert (commitments(run, 1), commitments(run, 2)) == (["relay"] * 3, ["own"] * 3)
    assert sum(len(c["members"]) for c in run.report["rounds"][2]["cohorts"]) == 3


@pytest.mark.deep
def test_who_breaks_a_masked_sum_is_named_and_slashed_and_the_others_settle(demo: Demo) -> None:
    run = demo("--attack", "false-upload", "--rounds", "1")
    assert_sound(run)
    (attacker,) = run.parties(role="hospital", honest=False)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 2
    assert slashed(run, 1) == [(attacker["name"], "false_upload")]
    broken = [cohort for cohort in run.report["rounds"][1]["cohorts"] if attacker["name"] in cohort["members"]]
    assert [(cohort["dropped"], cohort["accepted"]) for cohort in broken] == [(True, False)]
    assert gain(attacker) < 0 <= min(gain(b) for b in run.parties(role="hospital", honest=True))
    keys = list((run.folder / "nodes").glob("hospital-*/masking/*/encryption.key"))
    assert keys == []


@pytest.mark.deep
def test_private_hospitals_add_their_noise_below_the_masks_and_keep_account(demo: Demo) -> None:
    run = demo("--hospitals", "3", "--voters", "2", "--seats", "2", "--rounds", "2", "--epsilon", "8")
    assert_sound(run)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 3
    assert "epsilon 8" in run.report["privacy"]
    for hospital in run.parties(role="hospital"):
        costs = [line["epsilon"] for line in journal(run.folder, hospital["name"]) if line["event"] == "privacy"]
        assert len(costs) == 2
        assert 0 < costs[0] < costs[1] <= 8
        ledger = run.folder / "nodes" / hospital["name"] / "privacy.jsonl"
        assert [json.loads(line)["round"] for line in ledger.read_text().splitlines()] == [1, 2]


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [
        ["drop-hospital"],
        ["drop-hospital", "--digests"],
        ["change-blob", "--digests"],
        ["change-blob", "--no-masks", "--hospitals", "4"],
    ],
)
def test_every_changed_sum_is_refused_and_slashed(demo: Demo, options: list[str]) -> None:
    run = demo("--rounds", "2", "--cheat", *options)
    assert_sound(run)
    assert_cheat_in_second_round_is_refused_and_slashed(run)


@pytest.mark.deep
def test_honest_demo_by_digest_settles_without_a_blob(demo: Demo) -> None:
    watch = Watch()
    run = demo("--digests", "--rounds", "3", beside=watch)
    assert_sound(run)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 4
    assert all(gain(b) > 0 for b in run.parties(role="hospital"))
    assert int(run.report["conservation"]["burnt"]) < 100  # the remainders of divisions, in millionths of a token
    assert watch.types[BLOBS] == 0


@pytest.mark.deep
def test_copied_commitment_is_left_out_and_slashed_and_the_others_settle(demo: Demo) -> None:
    run = demo("--hospitals", "4", "--cheat", "copied-commitment", "--rounds", "2")
    assert_sound(run)
    (colluder,) = run.parties(role="hospital", honest=False)
    last = run.report["rounds"][2]
    assert last["outcome"] == "settled"
    assert colluder["name"] not in [name for cohort in last["cohorts"] for name in cohort["members"]]
    assert slashed(run, 2) == [(colluder["name"], "WithheldUpload")]
    assert gain(colluder) < min(gain(b) for b in run.parties(role="hospital", honest=True))


@pytest.mark.deep
@pytest.mark.parametrize("attack", ["noise", "label-flip"])
def test_poisoning_hospital_alone_in_its_cohort_loses(demo: Demo, attack: str) -> None:
    run = demo(*ALONE, "--attack", attack, "--rounds", "3")
    assert_sound(run)
    (attacker,) = run.parties(role="hospital", honest=False)
    assert gain(attacker) < min(gain(b) for b in run.parties(role="hospital", honest=True))
    assert gain(attacker) < 0
    assert run.report["final_metric"] > 0.9


@pytest.mark.deep
@pytest.mark.parametrize("options", [["--rounds", "3"], ["--rounds", "1", "--hospitals", "3", "--digests"]])
def test_lazy_voter_fails_the_decoys_and_ends_poorer(demo: Demo, options: list[str]) -> None:
    run = demo("--attack", "lazy", "--seats", "5", *options)
    assert_sound(run)
    assert_lazy_is_slashed(run)


@pytest.mark.deep
def test_silent_voter_earns_less_than_an_honest_seat(demo: Demo) -> None:
    run = demo("--attack", "silent", "--rounds", "3", "--seats", "5")
    assert_sound(run)
    (silent,) = run.parties(role="voter", honest=False)
    assert gain(silent) < min(gain(b) for b in run.parties(role="voter", honest=True))
    reasons = {(s["who"], s["reason"]) for r in run.report["rounds"] for s in r["slashes"]}
    assert (silent["name"], "not_revealed") in reasons


@pytest.mark.deep
def test_killed_hospital_is_masked_away_and_the_round_settles(demo: Demo) -> None:
    run = demo("--hospitals", "4", "--kill-in-round", "1", "--rounds", "2")
    assert_sound(run)
    first = run.parties(role="hospital")[0]["name"]
    for round_ in run.report["rounds"][1:]:
        names = [name for cohort in round_["cohorts"] for name in cohort["members"]]
        assert first not in names
        assert len(names) == 3
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 3


def assert_arena(run: Run) -> None:
    """Pay is the formula's to the unit, and falls by rank; the best alone moved the model."""
    arena = run.report["arena"]
    assert arena["largest_difference"] == "0"
    for entry, one_round in zip(arena["rounds"], run.report["rounds"][1:], strict=True):
        ranked = [one for one in entry["standings"] if one["rank"] is not None]
        assert [one["rank"] for one in ranked] == list(range(1, len(ranked) + 1))
        assert all(one["median"] > 0 and int(one["paid"]) > 0 for one in ranked)
        assert all(one["paid"] == "0" for one in entry["standings"] if one["rank"] is None)
        moved = [cohort["members"] for cohort in one_round["cohorts"] if cohort["accepted"]]
        assert moved == [[one["who"]] for one in ranked[:1]]


def test_arena_pays_by_rank_and_no_copy(demo: Demo) -> None:
    run = demo("--data", "wdbc", "--arena", "4", "--rounds", "2", "--attack", "copy", *FEW_VOTERS)
    assert_sound(run)
    assert_arena(run)
    (copier,) = run.parties(does="copy")
    first, *_ = run.report["arena"]["rounds"]
    assert [one["rank"] for one in first["standings"]] == [1, 2, 3, None]
    assert gain(copier) == 0
    assert all(gain(b) > 0 for b in run.parties(role="hospital", honest=True))


@pytest.mark.deep
def test_arena_of_x_rays_reaches_the_best_single_trainer(demo: Demo) -> None:
    folder = ROOT.parent / "shared" / "data" / "pneumoniamnist"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    run = demo("--arena", "8", "--data", "pneumonia", "--data-dir", str(folder))
    assert_sound(run)
    assert_arena(run)
    arena = run.report["arena"]
    assert arena["final"] >= arena["best_alone_metric"] - 0.01


@pytest.mark.deep
def test_heart_data_federates_above_training_alone(demo: Demo) -> None:
    if not HEART.is_dir():
        pytest.skip(f"the UCI Heart Disease files are not in {HEART}")
    run = demo("--data", "heart", "--data-dir", str(HEART))
    assert_sound(run)
    assert {b["name"] for b in run.parties(role="hospital")} == {"cleveland", "hungarian", "switzerland", "va"}
    assert run.report["final_metric"] > run.report["local_only_metric"]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(5))
def test_every_seed_conserves_money_and_pays_the_honest(demo: Demo, seed: int) -> None:
    run = demo("--seed", str(seed))
    assert_sound(run)
    assert all(r["outcome"] == "settled" for r in run.report["rounds"])
    assert all(gain(b) > 0 for b in run.parties(role="hospital"))
    assert run.report["final_metric"] > run.report["local_only_metric"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("data", "file", "hospitals", "least"),
    [
        ("pneumonia", "pneumoniamnist/pneumoniamnist_rebuilt.npz", "4", 0.7),
        ("medquad", "medquad/medquad_qtype9.csv", "3", 0.3),
    ],
)
def test_demo_trains_on_images_and_on_texts(demo: Demo, data: str, file: str, hospitals: str, least: float) -> None:
    """By a small network, and by adapters on a pretrained encoder; evaluations are shown as those of tables are."""
    path = ROOT.parent / "shared" / "data" / file
    if not path.exists():
        pytest.skip(f"there is no {path}")
    options = ("--hospitals", hospitals, "--voters", "3", "--seats", "3", "--cohorts", "1", "--rounds", "2")
    run = demo("--data", data, "--data-dir", str(path.parent), *options)
    assert_sound(run)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 3
    assert all(cohort["accepted"] for r in run.report["rounds"][1:] for cohort in r["cohorts"])
    assert run.report["final_metric"] > least
