"""Every phase ends, whoever is silent; nobody's money stays behind."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from chain_driver import BOND, SHARED_WINDOWS, LocalChain, TaskDriver, refused, task_params
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.ledger.publishing import CohortsFate
from consilium_chain.ledger.structs import Outcome, Phase, Role, SlashReason, VoidReason
from consilium_chain.rounds.machine import last_round
from consilium_chain.transport_keys import TransportKey


@pytest.fixture(scope="module")
def played(local_chain: LocalChain) -> dict[Phase, TaskDriver]:
    """Tasks in their first training round, by phase."""
    return {
        Phase.UPLOADING: TaskDriver(local_chain, terms=SHARED_WINDOWS).to_committing().commit_all(),
        Phase.SCORING: TaskDriver(local_chain, voters=3, terms=SHARED_WINDOWS).to_scoring(),
    }


@pytest.fixture
def uploading(played: dict[Phase, TaskDriver]) -> Iterator[TaskDriver]:
    """All have committed. What tests bring onto the chain is undone."""
    with played[Phase.UPLOADING].chain.undone():
        yield played[Phase.UPLOADING]


@pytest.fixture
def scoring(played: dict[Phase, TaskDriver]) -> Iterator[TaskDriver]:
    """All of three voters have a seat. What tests bring onto the chain is undone."""
    with played[Phase.SCORING].chain.undone():
        yield played[Phase.SCORING]


def slashes(task: TaskDriver) -> list[tuple[str, int, SlashReason]]:
    return [(e["account"], e["amount"], SlashReason(e["reason"])) for e in task.events("Slashed")]


def ended_with_refund(task: TaskDriver, refund: int) -> None:
    assert task.phase is Phase.ENDED
    assert [e["refund"] for e in task.events("TaskEnded")] == [refund]
    assert task.operator.tasks.state(task.task).pool_left == 0
    assert task.chain.unaccounted() == 0


def test_tick_ends_task_that_nobody_joined(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain)
    with refused("PhaseNotOver", taskId=task.task):
        task.tick()
    before = task.operator.tasks.refundable(task.operator.address)
    task.pass_deadline()
    task.tick()
    ended_with_refund(task, 10_001)
    assert task.operator.tasks.refundable(task.operator.address) == before + 10_001


@pytest.mark.parametrize("missing", ["aggregator", "hospitals", "voters"])
def test_tick_ends_task_with_too_few(local_chain: LocalChain, missing: str) -> None:
    task = TaskDriver(local_chain, terms={"min_hospitals": 2})
    if missing != "aggregator":
        task.aggregator.aggregator.join(task.task)
    for node in task.nodes[: 1 if missing == "hospitals" else 2]:
        node.hospital.join(task.task, 10, TransportKey.generate())
    if missing != "voters":
        task.judges[0].voter.join(task.task)
    task.pass_deadline()
    with refused("PhaseOver"):
        local_chain.staked(Role.HOSPITAL, 3)[2].hospital.join(task.task, 10, TransportKey.generate())
    task.tick()
    ended_with_refund(task, 10_001)
    assert task.operator.staking.release_bond(task.task, task.nodes[0].address)
    assert not task.operator.staking.release_bond(task.task, task.nodes[0].address)
    assert not task.operator.staking.release_bond(task.task, task.operator.address)


def test_operator_stops_a_task_and_the_round_under_way_is_paid(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms=SHARED_WINDOWS).to_scoring()
    assert task.round < task.operator.tasks.params(task.task).rounds
    with refused("NotOperator", caller=task.aggregator.address):
        task.aggregator.operator.stop(task.task)
    task.operator.operator.stop(task.task)
    state = task.operator.tasks.state(task.task)
    assert (state.stopping, last_round(state, 100)) == (True, task.round)
    with refused("AlreadyStopped", taskId=task.task):
        task.operator.operator.stop(task.task)
    task.judge([[20_000] * task.round_state.cohorts] * len(task.judges))
    (end,) = task.events("TaskEnded")
    assert {e["account"] for e in task.events("Rewarded")} >= {node.address for node in task.nodes}
    ended_with_refund(task, end["refund"])
    assert end["refund"] > 0


def test_release_bond_waits_for_the_end(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).join()
    with refused("WrongPhase", actual=Phase.COMMITTING, wanted=Phase.ENDED):
        task.operator.staking.release_bond(task.task, task.nodes[0].address)


def test_unbonding_refuses_what_a_task_holds(local_chain: LocalChain) -> None:
    node = local_chain.funded()
    node.staking.stake(Role.HOSPITAL, BOND)
    task = TaskDriver(local_chain)
    node.hospital.join(task.task, 10, TransportKey.generate())
    start = node.connection.transactions.send(
        node.contracts.staking.contract.functions.startUnbonding(node.address, Role.HOSPITAL, 1)
    )
    assert start.gas_used
    local_chain.pass_time(LOCAL_UNBONDING)
    with refused("StillBacking", node=node.address, locked=BOND, left=BOND - 1):
        node.connection.transactions.send(node.contracts.staking.contract.functions.withdraw(0))


def test_tick_ends_task_whose_statistics_nobody_committed(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain).join()
    task.pass_deadline()
    task.tick()
    assert task.operator.tasks.round_state(task.task, 0).void_reason is VoidReason.TOO_FEW_HOSPITALS
    ended_with_refund(task, 10_001)
    assert slashes(task) == []


@pytest.mark.parametrize(
    ("publishing", "reason"), [(False, VoidReason.SURVIVORS_NOT_FIXED), (True, VoidReason.NOT_PUBLISHED)]
)
def test_tick_voids_round_and_slashes_silent_aggregator(
    uploading: TaskDriver, publishing: bool, reason: VoidReason
) -> None:
    task = uploading
    if publishing:
        task.aggregator.aggregator.publish_sums(task.task, 1, CohortsFate(0b11), [])
    task.pass_deadline()
    task.tick()
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.void_reason) == (Outcome.VOID, reason)
    assert slashes(task) == [(task.aggregator.address, BOND // 4, SlashReason.NOT_PUBLISHED)]
    assert (task.round, task.phase) == (2, Phase.FORMING)
    assert task.events("Rewarded") == []
    assert task.chain.unaccounted() == 0


def test_publication_after_the_deadline_is_refused(uploading: TaskDriver) -> None:
    uploading.pass_deadline()
    with refused("PhaseOver", taskId=uploading.task):
        uploading.publish()


def test_settle_slashes_who_did_not_reveal_and_pays_who_did(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=3, terms={"rounds": 1}).to_scoring()
    for voter in range(3):
        task.score(voter, [5_000])
    task.reveal(0)
    task.reveal(2)
    with refused("PhaseNotOver", taskId=task.task):
        task.operator.phases.settle(task.task, 1)
    task.pass_deadline()
    with refused("PhaseOver"):
        task.reveal(1)
    task.operator.phases.settle(task.task, 1)
    assert slashes(task) == [(task.judges[1].address, BOND // 10, SlashReason.NOT_REVEALED)]
    assert [v.bond for v in task.operator.tasks.voters(task.task)] == [BOND, BOND * 9 // 10, BOND]
    paid = {e["account"]: e["amount"] for e in task.events("Rewarded")}
    # An even part of three seats: the silent one's part goes back to the operator, not to the others.
    assert [paid.get(judge.address, 0) for judge in task.judges] == [666, 0, 666]
    assert local_chain.unaccounted() == 0


def test_tick_voids_round_without_reveals(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=2, terms={"min_reveals": 2}).to_scoring()
    task.score(0, [1])
    task.score(1, [1])
    task.reveal(0)
    task.pass_deadline()
    task.tick()
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.void_reason) == (Outcome.VOID, VoidReason.TOO_FEW_SCORES)
    assert slashes(task) == [(task.judges[1].address, BOND // 10, SlashReason.NOT_REVEALED)]
    assert task.events("Rewarded") == []


def test_tick_voids_round_without_scores(scoring: TaskDriver) -> None:
    task = scoring
    task.pass_deadline()
    task.tick()
    assert task.operator.tasks.round_state(task.task, 1).void_reason is VoidReason.TOO_FEW_SCORES
    assert slashes(task) == []
    assert (task.round, task.phase) == (2, Phase.FORMING)


def test_round_void_when_all_voters_stand_down(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=1, terms={"rounds": 1}).to_scoring()
    task.judges[0].voter.stand_down(task.task, 1)
    assert task.operator.tasks.round_state(task.task, 1).void_reason is VoidReason.TOO_FEW_SCORES
    assert [e["burnt"] for e in task.events("TaskEnded")] == [10_001]  # the round was played
    ended_with_refund(task, 0)


def test_too_few_hospitals_void_the_round_and_end_the_task(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"min_cohort_size": 2, "min_hospitals": 2}).to_committing()
    task.commit(0)
    task.pass_deadline()
    task.tick()
    assert task.operator.tasks.round_state(task.task, 1).void_reason is VoidReason.TOO_FEW_HOSPITALS
    assert [e["hospital"] for e in task.events("HospitalAbsent")] == [task.nodes[1].address]
    ended_with_refund(task, 10_001)
    with refused("WrongPhase", actual=Phase.ENDED):
        task.nodes[1].hospital.resume(task.task)


def test_absent_hospital_sits_out_until_it_resumes(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, terms={"rounds": 3}).to_committing()
    task.commit(0)
    task.pass_deadline()
    task.tick().publish()
    task.draw().judge([[100]])
    assert task.operator.tasks.state(task.task).active_hospitals == 0b01
    # The next assignment's seed is known: nobody may change who is assigned
    assert task.round_state.beacon_request == 0
    with refused("WrongPhase", actual=Phase.FORMING, wanted=Phase.COMMITTING):
        task.nodes[1].hospital.resume(task.task)
    task.form()
    with refused("AlreadyJoined"):
        task.nodes[0].hospital.resume(task.task)
    assert task.round_state.members == 0b01
    task.nodes[1].hospital.resume(task.task)
    with refused("NotAMember", account=task.nodes[1].address):
        task.send_commitment(1, task.make_update(1).committed)
    task.commit_all().publish()
    task.draw().judge([[100]])
    task.form()
    assert task.round_state.members == 0b11


def test_dropped_hospital_leaves_an_exact_sum_of_the_others(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, hospitals=3, terms={"rounds": 1}).to_committing().commit_all()
    task.publish(survivors=[0, 2])
    assert task.round_state.survivors == 0b101
    assert [e["hospital"] for e in task.events("HospitalAbsent")] == [task.nodes[1].address]
    task.draw().judge([[1_000]])
    paid = {e["account"]: e["amount"] for e in task.events("Rewarded")}
    # Weights are 1, 2, 3: the aggregator's fee shrinks by what it left out.
    assert paid[task.aggregator.address] == 1_000 * 4 // 6
    assert task.nodes[1].address not in paid
    assert local_chain.unaccounted() == 0


WRONG_REVEALS: dict[str, Callable[[list[int], bytes], tuple[list[int], bytes]]] = {
    "salt": lambda scores, salt: (scores, bytes(32)),
    "scores": lambda scores, salt: ([scores[0] + 1], salt),
}


@pytest.mark.parametrize("wrong", sorted(WRONG_REVEALS))
def test_reveal_refuses_what_was_not_committed(scoring: TaskDriver, wrong: str) -> None:
    task = scoring
    for voter in range(3):
        task.score(voter, [7])
    scores, salt = WRONG_REVEALS[wrong](*task.ballots[1, 0])
    with refused("RevealMismatch", voter=task.judges[0].address):
        task.judges[0].voter.reveal_scores(task.task, 1, scores, salt)


def test_reveal_refuses_copied_ballot(scoring: TaskDriver) -> None:
    """Whoever copies another's commitment cannot open it: it is bound to its author."""
    task = scoring
    author, copier, _ = task.judges
    salt = secrets.token_bytes(32)
    sealed = author.tasks.score_commitment(task.task, 1, [9], salt)
    author.voter.commit_scores(task.task, 1, task.public_key(0), task.ticket(0), sealed)
    copier.voter.commit_scores(task.task, 1, task.public_key(1), task.ticket(1), sealed)
    task.score(2, [9])
    author.voter.reveal_scores(task.task, 1, [9], salt)
    with refused("RevealMismatch", voter=copier.address):
        copier.voter.reveal_scores(task.task, 1, [9], salt)


@pytest.mark.parametrize("scores", [[], [1, 2]])
def test_reveal_refuses_wrong_number_of_scores(scoring: TaskDriver, scores: list[int]) -> None:
    task = scoring
    for voter in range(3):
        task.score(voter, [7])
    with refused("ScoreCountWrong", given=len(scores), wanted=1):
        task.judges[0].voter.reveal_scores(task.task, 1, scores, bytes(32))


def test_reveal_refuses_voter_without_a_seat_and_second_reveal(scoring: TaskDriver) -> None:
    task = scoring
    task.judges[2].voter.stand_down(task.task, 1)
    task.score(0, [7])
    task.score(1, [7])
    with refused("NotSeated", voter=task.judges[2].address):
        task.judges[2].voter.reveal_scores(task.task, 1, [7], bytes(32))
    task.reveal(0)
    with refused("AlreadyActed", voter=task.judges[0].address):
        task.reveal(0)


@pytest.mark.parametrize("phase", ["forming", "drawing"])
def test_beacon_refuses_early_and_foreign_headers(local_chain: LocalChain, phase: str) -> None:
    task = TaskDriver(local_chain).join().first_round()
    if phase == "drawing":
        task.form().commit_all().publish()
    ledger = task.operator
    request = task.round_state.beacon_request
    call = (
        ledger.contracts.tasks.contract.functions.formCohorts
        if phase == "forming"
        else ledger.contracts.tasks.contract.functions.drawSeats
    )
    head = ledger.connection.blocks.number()
    if head < request:  # the block exists in the future alone; another proves nothing
        with refused("SeedNotReady", request=request):
            ledger.connection.call(call(task.task, ledger.connection.blocks.header(head)))
    task.beacon()
    header = ledger.connection.blocks.header(request)
    for foreign in (ledger.connection.blocks.header(request - 1), header[:-1] + b"\0", header + b"\0", b""):
        with refused("SeedProofInvalid", request=request):
            ledger.connection.transactions.send(call(task.task, foreign))
    ledger.connection.transactions.send(call(task.task, header))
    assert task.phase is (Phase.COMMITTING if phase == "forming" else Phase.SCORING)


@pytest.mark.deep  # some 8300 blocks take minutes, and slow down whoever reads this chain's events after
def test_tick_asks_anew_only_when_the_beacons_value_is_lost() -> None:
    with LocalChain() as chain:
        task = TaskDriver(chain).join().first_round()
        request = task.beacon()
        with refused("PhaseNotOver", taskId=task.task):
            task.tick()
        assert not task.operator.phases.beacon_expired(request)
        chain.mine(8_300)
        assert task.operator.phases.beacon_expired(request)
        with refused("SeedExpired", request=request):
            task.operator.phases.form_cohorts(task.task, request)
        task.tick()
        assert task.round_state.beacon_request > request
        task.form()
        assert task.phase is Phase.COMMITTING


@pytest.mark.parametrize("method", ["state", "params", "hospitals", "voters"])
def test_reading_an_unknown_task_is_refused_by_name(local_chain: LocalChain, method: str) -> None:
    with refused("TaskUnknown", taskId=10**6):
        getattr(local_chain.treasury.tasks, method)(10**6)


def test_claim_refuses_an_account_with_nothing(local_chain: LocalChain) -> None:
    ledger = local_chain.funded()
    ledger.operator.claim_refund()  # sends nothing
    with refused("NothingToClaim", account=ledger.address):
        ledger.contracts.tasks.send("claim")
    ledger.staking.stake(Role.VOTER, BOND)
    ledger.staking.claim(Role.VOTER)  # sends nothing
    with refused("NothingToClaim", account=ledger.address):
        ledger.connection.transactions.send(
            ledger.contracts.staking.contract.functions.claim(ledger.address, Role.VOTER)
        )


@pytest.mark.parametrize("role", list(Role))
def test_joining_twice_is_refused(local_chain: LocalChain, role: Role) -> None:
    task = TaskDriver(local_chain)
    joins: dict[Role, Callable[[], object]] = {
        Role.HOSPITAL: lambda: task.nodes[0].hospital.join(task.task, 10, TransportKey.generate()),
        Role.VOTER: lambda: task.judges[0].voter.join(task.task),
        Role.AGGREGATOR: lambda: task.aggregator.aggregator.join(task.task),
    }
    join = joins[role]
    join()
    with refused("AlreadyJoined", taskId=task.task):
        join()


def test_aggregators_of_one_account_join_at_the_same_time(local_chain: LocalChain) -> None:
    key = secrets.token_bytes(32)
    account = local_chain.ledger(key)
    local_chain.rpc("anvil_setBalance", account.address, hex(10**20))
    local_chain.treasury.token.transfer(account.address, 4 * BOND)
    local_chain.accounts[account.address] = account
    tasks = [local_chain.treasury.operator.propose(task_params(account.address)) for _ in range(4)]
    ledgers = [local_chain.ledger(key) for _ in tasks]  # as processes that know nothing of each other
    with ThreadPoolExecutor(len(tasks)) as pool:
        list(pool.map(lambda ledger, task: ledger.aggregator.join(task, BOND), ledgers, tasks))
    assert all(local_chain.treasury.tasks.state(task).aggregator_joined for task in tasks)
    assert account.staking.stake_of(account.address, Role.AGGREGATOR).free == 0
    assert local_chain.unaccounted() == 0


def test_joining_is_refused_without_bond_without_rows_and_when_full(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain)
    poor = local_chain.funded()
    with refused("StakeInsufficient", node=poor.address, free=0, wanted=BOND):
        poor.hospital.join(task.task, 10, TransportKey.generate())
    with refused("RowsAreZero"):
        task.nodes[0].hospital.join(task.task, 0, TransportKey.generate())
    with refused("NotAggregator", caller=poor.address):
        poor.aggregator.join(task.task)
    for node in task.nodes:
        node.hospital.join(task.task, 10, TransportKey.generate())
    with refused("TaskFull", taskId=task.task):
        local_chain.staked(Role.HOSPITAL, 3)[2].hospital.join(task.task, 10, TransportKey.generate())
