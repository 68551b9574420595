"""Task files: what is refused, and with which words; and what the contract is told of one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from chain_driver import LocalChain, refused, task_params
from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import TaskParams
from consilium_chain.tasks import proposal
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.money_spec import TOKEN, MoneySpec
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_chain.tasks.windows_spec import WindowsSpec
from consilium_core.kinds import of_kind
from consilium_zk.errors import ZkError
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from task_files import DATA

TASK = f"""
name = "a task"
{DATA}
[[data.features]]
kind = "category"
name = "site"
values = [1.0, 2.0, 3.0]
[model]
name = "logistic"
[update]
bits = 24
[rounds]
max_hospitals = 4
[judging]
max_voters = 5
[money]
pool = 100
[windows]
commit = 60
"""


def edited(old: str, new: str) -> bytes:
    assert TASK.count(old) == 1
    return TASK.replace(old, new).encode()


def test_task_file_parses_to_its_defaults() -> None:
    spec = parse_task_spec(TASK.encode())
    assert of_kind(TableSchema, spec.data).columns == 3
    assert (spec.parameters, spec.update_blobs, spec.statistics_values) == (4, 1, 9)
    assert spec_hash(TASK.encode()) == keccak(TASK.encode())


def test_task_file_is_private_only_where_it_says_so() -> None:
    assert parse_task_spec(TASK.encode()).privacy is None
    spec = parse_task_spec(edited("[update]", "[privacy]\nepsilon = 8\nmax_grad_norm = 1\n[update]"))
    assert spec.privacy is not None
    assert (spec.privacy.epsilon, spec.privacy.delta, spec.privacy.max_grad_norm) == (8.0, 1e-5, 1.0)


def test_task_file_column_without_a_kind_is_numeric() -> None:
    assert parse_task_spec(edited('kind = "numeric"', "")) == parse_task_spec(TASK.encode())


NAN_FIELDS = [
    ("min = 0.0", "min = nan"),
    ("max = 120.0", "max = inf"),
    ("values = [1.0, 2.0, 3.0]", "values = [1.0, nan]"),
    ("bits = 24", "bits = 24\nvalue_range = nan"),
    ("bits = 24", "bits = 24\nvalue_range = inf"),
    ("bits = 24", "bits = 24\nclip_norm = inf"),
    ("max_voters = 5", "max_voters = 5\naccept_floor = nan"),
    ("max_voters = 5", "max_voters = 5\nharmful_below = nan"),
    ("max_voters = 5", "max_voters = 5\nharmful_below = -inf"),
    ("max_voters = 5", "max_voters = 5\ntolerance = inf"),
    ("[update]", "[training]\nlearning_rate = nan\n[update]"),
    ("[update]", "[training]\nlearning_rate = inf\n[update]"),
    ("[update]", "[training]\nweight_decay = nan\n[update]"),
    ("[update]", "[privacy]\nepsilon = nan\nmax_grad_norm = 1.0\n[update]"),
    ("[update]", "[privacy]\nepsilon = 1.0\nmax_grad_norm = inf\n[update]"),
    ("[update]", "[privacy]\nepsilon = 1.0\nmax_grad_norm = 1.0\ndelta = nan\n[update]"),
]


@pytest.mark.parametrize(("old", "new"), NAN_FIELDS, ids=[new.splitlines()[-1] for _, new in NAN_FIELDS])
def test_task_file_refuses_values_that_are_no_numbers(old: str, new: str) -> None:
    with pytest.raises(SpecInvalid):
        parse_task_spec(edited(old, new))


CASES = {
    "lanes too wide": ("max_hospitals = 4", "max_hospitals = 256\nmax_weight = 4294967295", "lower the bits"),
    "more weight than adds up": (
        "max_hospitals = 4",
        "max_hospitals = 256\ncohorts = 64\nshards = 16\nmax_weight = 268435456",
        "4096 hospitals of weight 268435456 are too many to add up updates of 24 bits: lower max_weight to 134217727",
    ),
    "more shards than sixteen": ("max_hospitals = 4", "max_hospitals = 4\nshards = 17", "shards"),
    "seats above voters": ("max_voters = 5", "max_voters = 5\nseats = 6", "6 seats are more than the 5 voters"),
    "default seats above voters": ("max_voters = 5", "max_voters = 3", "4 seats are more than the 3 voters"),
    "reveals above seats": ("max_voters = 5", "max_voters = 5\nseats = 2\nmin_reveals = 3", "min_reveals 3 is above"),
    "min above max voters": ("max_voters = 5", "max_voters = 5\nmin_voters = 6", "min_voters 6 is above"),
    "min above max hospitals": ("max_hospitals = 4", "max_hospitals = 4\nmin_hospitals = 5", "min_hospitals 5"),
    "cohorts above hospitals": ("max_hospitals = 4", "max_hospitals = 4\ncohorts = 5", "5 cohorts of at least 3"),
    "too few to mask": (
        "max_hospitals = 4",
        "max_hospitals = 4\nmin_cohort_size = 2",
        "cohorts of at least 3: in a cohort of two",
    ),
    "too few for a cohort": ("max_hospitals = 4", "max_hospitals = 4\nmin_hospitals = 2", "is below min_cohort_size 3"),
    "too small cohorts": ("max_hospitals = 4", "max_hospitals = 4\ncohorts = 2\nmin_cohort_size = 3", "need 6"),
    "too many hospitals": ("max_hospitals = 4", "max_hospitals = 257", "rounds.max_hospitals"),
    "shares": (
        "pool = 100",
        "pool = 100\nhospital_share_bps = 7001",
        "add up to 10001 basis points: they must add up to 10000",
    ),
    "negative share": (
        "pool = 100",
        "pool = 100\nhospital_share_bps = -1\nvoter_share_bps = 9001",
        "money.hospital_share_bps",
    ),
    "an arena of shared cohorts": (
        "pool = 100",
        "pool = 100\nrank_decay_bps = 8500",
        "set min_cohort_size = 1, shards = 1, and cohorts = max_hospitals, of which there are 1 and 4",
    ),
    "an arena that pays the first alone": ("pool = 100", "pool = 100\nrank_decay_bps = 4999", "money.rank_decay_bps"),
    "slash above everything": ("pool = 100", "pool = 100\nharmful_slash_bps = 10001", "money.harmful_slash_bps"),
    "aggregator's bond below two slashes": (
        "pool = 100",
        "pool = 100\nnot_published_slash_bps = 5001",
        "money.not_published_slash_bps",
    ),
    "aggregator that can afford to cheat": (
        "pool = 100",
        "pool = 100\naggregator_bond = 7",
        "loses 3.5 tokens, less than twice its 2 for a round",
    ),
    "bounties for the whole pool": (
        "pool = 100",
        "pool = 100\ntick_bounty = 1",
        "hundredth of the pool of 100 over 5 rounds: lower it to 0",
    ),
    "bond zero": ("pool = 100", "pool = 100\nhospital_bond = 0", "money.hospital_bond"),
    "fractional pool": ("pool = 100", "pool = 100.5", "money.pool"),
    "negative pool": ("pool = 100", "pool = -1", "money.pool"),
    "harmful above accepted": (
        "max_voters = 5",
        "max_voters = 5\naccept_floor = -0.1\nharmful_below = 0.0",
        "accepted and slashed at once",
    ),
    "harm near zero": (
        "max_voters = 5",
        "max_voters = 5\naccept_floor = 0.0\nharmful_below = -0.009",
        "harmful_below -0.009 is too near to zero: chance alone would slash honest hospitals; set it to -0.01 or less",
    ),
    "fewer rows than of all classes": (
        "max_voters = 5",
        "max_voters = 5\nleast_rows = 30\nleast_of_class = 20",
        "least_of_class 20 for 2 class(es) needs a least_rows of 40 or more: raise least_rows",
    ),
    "rows of a class without rows": ("max_voters = 5", "max_voters = 5\nleast_of_class = 1", "a least_rows of 2 or"),
    "a prevalence that does not add up": (
        "[windows]",
        '[start]\nname = "seed"\nprevalence = [0.9, 0.2]\n[windows]',
        "the shares of the classes add up to 1.1: they must add up to 1",
    ),
    "a prevalence of other classes": (
        "[windows]",
        '[start]\nname = "seed"\nprevalence = [0.5, 0.25, 0.25]\n[windows]',
        "prevalence has 3 shares for 2 class(es): give one for each",
    ),
    "a class that never is": ("[windows]", '[start]\nname = "seed"\nprevalence = [1, 0]\n[windows]', "prevalence.0"),
    "exact statistics in a private task": (
        'name = "a task"\n',
        'name = "a task"\nstatistics = "exact"\nprivacy = { epsilon = 1.0, max_grad_norm = 1.0 }\n',
        "exact statistics are sums without noise, which epsilon does not bound",
    ),
    "unknown statistics": ('name = "a task"\n', 'name = "a task"\nstatistics = "own"\n', "statistics: Input should be"),
    "longer than half a year": (
        "commit = 60",
        "commit = 2600000",
        "may last 187.6 days (with 7 for a dead beacon), more than the 180 for which a task may lock bonds",
    ),
    "a mean out of range": ("max = 120.0", "max = 120.0\nmean = 121.0", "the mean 121 must lie between min and max"),
    "a deviation of nothing": ("max = 120.0", "max = 120.0\ndeviation = 0.1", "between a thousandth and a half of the"),
    "a deviation of all": ("max = 120.0", "max = 120.0\ndeviation = 61.0", "deviation 61 must lie between"),
    "unknown key": ("commit = 60", "commit = 60\ncomit = 60", "windows.comit: Extra inputs"),
    "unknown section": ("[windows]", "[code]\nrun = 'x'\n[windows]", "code: Extra inputs"),
    "window zero": ("commit = 60", "commit = 0", "windows.commit"),
    "bits": ("bits = 24", "bits = 41", "update.bits"),
    "no bit left for decoys": ("bits = 24", "bits = 40", "decoys need one bit more than the 40 of the update"),
    "unknown publication": ("bits = 24", 'bits = 24\npublication = "ipfs"', "update.publication"),
    "margin below nothing": ("max_voters = 5", "max_voters = 5\ndecoy_margin = -0.1", "judging.decoy_margin"),
    "no margin": ("max_voters = 5", "max_voters = 5\ndecoy_margin = 4e-7", "a decoy_margin of at least a millionth"),
    "one bit": ("bits = 24", "bits = 1", "update.bits"),
    "range": ("bits = 24", "bits = 24\nvalue_range = 0.0", "update.value_range"),
    "unknown model": ('name = "logistic"', 'name = "pickle"', "model: Input tag 'pickle'"),
    "mlp without widths": ('name = "logistic"', 'name = "mlp"', "model.mlp.hidden: Field required"),
    "logistic with widths": (
        'name = "logistic"',
        'name = "logistic"\nhidden = [3]',
        "model.logistic.hidden: Extra inputs",
    ),
    "range turned round": ("min = 0.0", "min = 130.0", "min must be below max"),
    "unknown kind": ('kind = "numeric"', 'kind = "number"', "features.0: Input tag 'number'"),
    "category without its kind": ('kind = "category"', "", "data.table.features.1.numeric.values: Extra inputs"),
    "one value": ("values = [1.0, 2.0, 3.0]", "values = [1.0]", "values"),
    "one class": ('classes = ["no", "yes"]', 'classes = ["no"]', "at least two classes"),
    "a class twice": ('classes = ["no", "yes"]', 'classes = ["no", "no"]', "a class appears twice"),
    "a class that leads out of a folder": ('classes = ["no", "yes"]', 'classes = ["no", "../yes"]', "classes.1"),
    "unknown kind of data": ('label = "sick"', 'label = "sick"\nkind = "sound"', "data: Input tag 'sound'"),
    "epsilon of nothing": ("[update]", "[privacy]\nepsilon = 0.0\nmax_grad_norm = 1.0\n[update]", "privacy.epsilon"),
    "epsilon of anything": ("[update]", "[privacy]\nepsilon = 101.0\nmax_grad_norm = 1.0\n[update]", "privacy.epsilon"),
    "no epsilon": ("[update]", "[privacy]\nmax_grad_norm = 1.0\n[update]", "privacy.epsilon: Field required"),
    "no norm": ("[update]", "[privacy]\nepsilon = 1.0\n[update]", "privacy.max_grad_norm: Field required"),
    "norm zero": ("[update]", "[privacy]\nepsilon = 1.0\nmax_grad_norm = 0.0\n[update]", "privacy.max_grad_norm"),
    "delta one": (
        "[update]",
        "[privacy]\nepsilon = 1.0\ndelta = 1.0\nmax_grad_norm = 1.0\n[update]",
        "privacy.delta",
    ),
    "not TOML": ("[windows]", "[windows", "is not TOML"),
    "no name": ('name = "a task"', "", "name: Field required"),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_task_file_refuses_and_says_where(case: str) -> None:
    old, new, said = CASES[case]
    with pytest.raises(SpecInvalid) as caught:
        parse_task_spec(edited(old, new))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values = [1.0, 2.0, 3.0]", "values = [1.0, 1.0]"),
        ('name = "site"', 'name = "age"'),
        ('name = "site"', 'name = "sick"'),
        ("max_voters = 5", "max_voters = 5\naccept_floor = 1e30"),
        ("max_voters = 5", "max_voters = 5\ntolerance = 1e30"),
    ],
    ids=["value twice", "feature twice", "feature named as label", "floor beyond 64 bits", "tolerance beyond 64 bits"],
)
def test_task_file_refuses_what_no_node_could_follow(old: str, new: str) -> None:
    with pytest.raises(SpecInvalid):
        parse_task_spec(edited(old, new))


@pytest.mark.parametrize("raw", [b"\xff\xfe", TASK.encode("utf-16"), TASK.encode() + b"\x80"])
def test_task_file_refuses_what_is_not_utf_8(raw: bytes) -> None:
    with pytest.raises(SpecInvalid, match="not UTF-8"):
        parse_task_spec(raw)


@pytest.mark.parametrize("raw", [b"a = " + b"[" * 100_000, b"a = " + b"9" * 5_000], ids=["nested", "long integer"])
def test_task_file_refuses_what_breaks_the_toml_parser(raw: bytes) -> None:
    with pytest.raises(SpecInvalid, match="not TOML"):
        parse_task_spec(raw)


def test_task_file_reports_every_fault_at_once() -> None:
    text = TASK.replace("bits = 24", "bits = 99").replace("commit = 60", "commit = -1")
    with pytest.raises(SpecInvalid, match=r"update\.bits.*windows\.commit"):
        parse_task_spec(text.encode())


def test_a_task_at_the_limits_of_time_and_harm_holds() -> None:
    edge = "max_voters = 5\nharmful_below = -0.01\naccept_floor = -0.01"
    assert parse_task_spec(edited("max_voters = 5", edge)).judging.harmful_below == -0.01
    windows = parse_task_spec(edited("commit = 60", "commit = 2490820")).windows
    assert windows.longest(5) == 120 + 6 * (2_490_820 + 90 + 6 * 30 + 60 + 30) == 173 * 86_400
    assert WindowsSpec(upload=1).longest(2) == 120 + (3 * (2 * 150 + 3 + 12 * 30) + 1) // 2  # half a second, rounded up


def test_task_params_are_exact_integers() -> None:
    raw = edited("max_voters = 5", "max_voters = 5\naccept_floor = -0.0123455\nharmful_below = -0.29")
    params = proposal.task_params(parse_task_spec(raw), spec_hash(raw), "0x" + "11" * 20)
    assert (params.pool, params.hospital_bond) == (100 * TOKEN, 500 * TOKEN)
    assert params.harmful_below == -290_000
    assert abs(params.accept_floor - -0.0123455 * MICRO) <= 1
    assert all(isinstance(value, int | str | bytes) for value in params.to_chain())


def test_task_params_of_decoys_and_digests() -> None:
    def params(old: str = "bits = 24", new: str = "bits = 24") -> TaskParams:
        raw = edited(old, new)
        return proposal.task_params(parse_task_spec(raw), spec_hash(raw), "0x" + "11" * 20)

    usual, plain = params(), params("max_voters = 5", "max_voters = 5\ndecoys = false")
    assert (usual.decoys, usual.digests, usual.decoy_margin) == (True, False, 50_000)
    assert (usual.update_bits, usual.lane_bits) == (24, 24 + 1 + 8)  # four hospitals of weight 64
    assert (plain.decoys, plain.update_bits, plain.lane_bits) == (False, 24, 24 + 8)
    assert (usual.withheld_slash_bps, usual.failed_decoy_slash_bps) == (200, 5_000)
    assert params(new='bits = 24\npublication = "digests"').digests


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 9])
def test_aggregator_with_the_least_bond_loses_by_cheating_in_every_other_round(rounds: int) -> None:
    money = MoneySpec(aggregator_share_bps=333)
    bond = money.least_aggregator_bond(rounds)
    slash = money.model_copy(update={"aggregator_bond": bond}).aggregator_slash
    assert slash >= 2 * money.aggregator_fee(rounds)
    assert money.model_copy(update={"aggregator_bond": bond - 1}).aggregator_slash < 2 * money.aggregator_fee(rounds)
    assert 2 * slash <= bond * TOKEN
    honest_rounds, missed = rounds // 2, rounds - rounds // 2
    assert honest_rounds * money.aggregator_fee(rounds) < missed * slash


@st.composite
def dealt(draw: st.DrawFn) -> dict[str, int]:
    """Hospitals at most, cohorts and their least size, as they fit together."""
    size = draw(st.integers(1, 40))
    hospitals = draw(st.integers(size, 256))
    cohorts = draw(st.integers(1, min(64, hospitals // size)))
    return {"max_hospitals": hospitals, "cohorts": cohorts, "min_cohort_size": size}


@given(bits=st.integers(2, 40), dealt=dealt(), weight=st.integers(1, 2**32 - 1), decoys=st.booleans())
def test_lanes_hold_the_sum_of_any_cohort_however_it_is_published(
    bits: int, dealt: dict[str, int], weight: int, decoys: bool
) -> None:
    """A sum's lane is at most 2·W·h, a sign-flipped one's 4·W·h, with W the weight of all and h the quantiser's
    offset. Any number of hospitals may join, and the contract deals them evenly.
    """
    size, hospitals = dealt["min_cohort_size"], dealt["max_hospitals"]
    counts = {joined: min(dealt["cohorts"], joined // size) for joined in range(size, hospitals + 1)}
    largest = max(-(-joined // count) for joined, count in counts.items())
    spec = parse_task_spec(TASK.encode())
    update = spec.update.model_copy(update={"bits": bits})
    rounds = spec.rounds.model_copy(update={**dealt, "max_weight": weight})
    judging = spec.judging.model_copy(update={"decoys": decoys})
    spec = spec.model_copy(update={"update": update, "rounds": rounds, "judging": judging})
    assert rounds.largest_cohort == largest
    try:
        layout = spec.update_layout
    except ZkError:  # LanesTooWide, or 41 bits
        return
    most = (4 if decoys else 2) * largest * weight * (2 ** (bits - 1) - 1)
    assert most < 2**layout.lane_bits
    assert most <= layout.max_sum(largest * weight)
    assert spec.lanes == spec.update_blobs * layout.lanes_per_blob >= spec.parameters


def test_propose_keeps_params_to_the_letter(local_chain: LocalChain) -> None:
    raw = TASK.encode()
    params = proposal.task_params(parse_task_spec(raw), spec_hash(raw), local_chain.treasury.address)
    number = local_chain.treasury.operator.propose(params)
    assert local_chain.treasury.tasks.params(number) == params


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"aggregator": "0x" + "00" * 20}, "aggregator"),
        ({"rounds": 0}, "rounds"),
        ({"cohorts": 0}, "cohorts"),
        ({"cohorts": 3}, "cohorts"),
        ({"min_cohort_size": 0}, "minCohortSize"),
        ({"min_cohort_size": 2}, "minHospitals"),
        ({"masked": True, "min_cohort_size": 2}, "minCohortSize"),
        ({"max_hospitals": 257}, "maxHospitals"),
        ({"max_voters": 257}, "maxVoters"),
        ({"min_voters": 2}, "minVoters"),
        ({"seats": 2}, "seats"),
        ({"seats": 0}, "seats"),
        ({"min_reveals": 2}, "minReveals"),
        ({"update_blobs": 0}, "updateBlobs"),
        ({"statistics_blobs": 129}, "statisticsBlobs"),
        ({"max_weight": 0}, "maxWeight"),
        ({"harmful_below": 1, "accept_floor": 0}, "harmfulBelow"),
        ({"voter_share_bps": 2_001}, "shareBps"),
        ({"harmful_slash_bps": 10_001}, "harmfulSlashBps"),
        ({"not_published_slash_bps": 5_001}, "notPublishedSlashBps"),
        ({"aggregator_bond": 3_999}, "aggregatorBond"),
        ({"tick_bounty": 9}, "tickBounty"),
        ({"hospital_bond": 0}, "hospitalBond"),
        ({"commit_window": 0}, "commitWindow"),
    ],
)
def test_propose_refuses_and_names_the_field(local_chain: LocalChain, change: dict[str, Any], field: str) -> None:
    params: TaskParams = replace(task_params(local_chain.treasury.address), **change)
    with refused("ParamsInvalid", field=field):
        local_chain.treasury.operator.propose(params)


def test_a_key_of_thousands_of_parts_is_refused_at_once() -> None:
    """tomllib would take gigabytes and minutes for these 60 kB; an operator's API reads such files from strangers."""
    with pytest.raises(SpecInvalid, match="a dotted key of more than 32 parts"):
        parse_task_spec(b".".join([b"a"] * 30_000) + b"=1")
    with pytest.raises(SpecInvalid, match="more than 1048576"):
        parse_task_spec(b"#" * (1 << 20) + b"\n")


def test_many_columns_are_read_in_time_that_grows_with_their_number() -> None:
    columns = ",".join(f'{{name="{n:x}",min=0,max=1}}' for n in range(35_000))
    head = 'name="n"\nmodel={name="logistic"}\n[data]\nlabel="l"\nclasses=["a","b"]\n'
    started = time.process_time()
    assert len(parse_task_spec(f"{head}features=[{columns}]\n".encode()).data.used) == 35_001
    assert time.process_time() - started < 20


@pytest.mark.parametrize("amount", ["pool", "aggregator_bond", "tick_bounty"])
def test_amounts_beyond_all_tokens_are_refused_by_name(amount: str) -> None:
    """Beyond 10^308 their quotient is no float any more."""
    text = TASK.replace("pool = 100\n", "") + f"[money]\n{amount} = 1{'0' * 400}\n"
    with pytest.raises(SpecInvalid, match=f"money.{amount}"):
        parse_task_spec(text.replace("[money]\n[windows]", "[windows]").encode())
