"""An aggregator survives a second one, its own end, the SuperLink's end, an absent chain node and a lack of ether."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from chain_driver import GAS_MONEY, LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import EtherMissing, LocalNodeError, TransactionRejected
from consilium_chain.ledger.publishing import CohortsFate, SaidBefore
from consilium_chain.ledger.structs import Outcome, Phase, Role
from consilium_chain.rounds.machine import Step
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_server.aggregator.node import home_lock
from consilium_server.errors import ServerError, SuperLinkFailed
from consilium_server.flower import internals
from consilium_server.flower.internals import SuperLink, unfinished_runs
from decoy_driver import DecoyDriver
from raised_faults import raises_fault
from test_decoys_kept import aggregator_of, attempt, give_uploads, party, played, uploaded, weighted
from voter_driver import TASK, Door, FiledTask

__all__ = ["played", "uploaded"]  # fixtures
PATIENCE = 120.0


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


# One to a home

HOLD = """
import subprocess, sys, time
from pathlib import Path
from consilium_server.aggregator.node import home_lock
with home_lock(Path(sys.argv[1])):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


@contextmanager
def running(program: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program, and the process that it started and whose number it prints first."""
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pid = None
    try:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        yield process, pid
    finally:
        process.kill()
        process.communicate()
        if pid is not None and psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_home_has_one_aggregator_and_a_killed_one_frees_it_at_once(tmp_path: Path) -> None:
    with running(HOLD, str(tmp_path)) as (holder, child):
        with (
            raises_fault(ServerError, "AlreadyConducting", match="stop it first, or use another home"),
            home_lock(tmp_path),
        ):
            pytest.fail("two at once")
        holder.kill()
        holder.wait()
        assert psutil.pid_exists(child)  # which did not inherit the lock
        with home_lock(tmp_path):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    with home_lock(tmp_path):
        pass


# Its SuperLink

START = """
import sys, time
from pathlib import Path
from consilium_server.flower.internals import SuperLink
with SuperLink(Path(sys.argv[1]), int(sys.argv[2])) as superlink:
    superlink.wait_until_up()
    superlink.register(Path(sys.argv[3]).read_bytes())
    with superlink.run():
        print(superlink._process.pid, flush=True)
        time.sleep(600)
"""


def outlive(superlink: SuperLink, left: int) -> None:
    """Starts a run, and calls a killed SuperLink: the call must not wait long."""
    with superlink.run() as (grid, _):
        with superlink._control() as control:
            (own,) = unfinished_runs(control)
        assert own != left
        assert grid.get_node_ids() == []
        assert not superlink.has_ended()
        superlink._process.kill()
        wait_until(superlink.has_ended)
        killed = time.monotonic()
        try:
            grid.get_node_ids()
        finally:
            assert time.monotonic() - killed < internals.ANSWER_TIMEOUT / 2


def test_superlink_ends_with_a_killed_aggregator_and_the_next_one_stops_its_run(tmp_path: Path) -> None:
    key, port = tmp_path / "transport.key", free_port()
    make_transport_key(key)
    public = transport_public_key(key)
    (tmp_path / "public").write_bytes(public)
    with running(START, str(tmp_path), str(port), str(tmp_path / "public")) as (starter, child):
        starter.kill()
        starter.wait()
        wait_until(lambda: not psutil.pid_exists(child))
    with SuperLink(tmp_path, port) as superlink:  # on the same port
        superlink.wait_until_up()
        with superlink._control() as control:
            (left,) = unfinished_runs(control)
        node = superlink.register(public)
        assert superlink.register(public) == node  # as before: the database has the key
        with pytest.raises(SuperLinkFailed, match="does not answer"):
            outlive(superlink, left)


def test_superlink_waits_for_a_port_that_is_about_to_be_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        threading.Timer(1.0, taken.close).start()
        with SuperLink(tmp_path, port) as superlink:
            assert not superlink.has_ended()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(internals, "PORT_TIMEOUT", 0.5)
        with pytest.raises(LocalNodeError, match="stop the program that listens there"):
            SuperLink(tmp_path, taken.getsockname()[1])


def test_an_upload_with_other_points_than_the_committed_ones_is_left_out(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a point made of the others' would stand in the sum."""
    aggregator = aggregator_of(*party(uploaded, tmp_path))
    given = weighted(uploaded)
    (blobs, _), (_, others) = given[1], given[0]
    give_uploads(aggregator, given | {1: (blobs, others)})
    attempt(aggregator, Step.PUBLISH)
    assert (uploaded.phase, uploaded.round_state.survivors) == (Phase.DRAWING, 0b01)
    told = lines(capsys, [], "upload-refused")
    assert [(line["hospital"], line["error"]) for line in told] == [(1, "OtherPoints")]


# Chain and ether


def judged(task: DecoyDriver, folder: Path, url: str | None = None) -> Any:
    """An aggregator in the last round of its task, without scores: it must tick at the deadline."""
    whose = party(task, folder)
    aggregator = aggregator_of(url or whose[0], *whose[1:])
    give_uploads(aggregator, weighted(task))
    attempt(aggregator, Step.PUBLISH)
    task.draw()
    task.pass_deadline()
    return aggregator


@contextmanager
def conducting(aggregator: Any) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=aggregator.conduct, args=(None, {}), daemon=True)
    thread.start()
    yield thread
    thread.join(PATIENCE)
    assert not thread.is_alive()


def lines(capsys: pytest.CaptureFixture[str], kept: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    kept += [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in kept if line["event"] == event]


def test_aggregator_without_ether_says_what_is_missing_and_goes_on_when_it_comes(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aggregator = judged(uploaded, tmp_path)
    account, told = aggregator.ledger.address, list[dict[str, Any]]()
    uploaded.chain.rpc("anvil_setBalance", account, hex(5))
    with conducting(aggregator):
        wait_until(lambda: len(lines(capsys, told, "no-ether")) > 1)
        assert uploaded.phase is Phase.SCORING
        uploaded.chain.rpc("anvil_setBalance", account, hex(GAS_MONEY))
    line = lines(capsys, told, "no-ether")[0]
    assert (line["account"], line["wei"], line["call"]) == (account, "5", "tick")
    assert 10**9 < int(line["missing"]) < 10**17
    assert [line["tries"] for line in lines(capsys, told, "no-ether")][:2] == [1, 2]
    assert uploaded.operator.tasks.round_state(uploaded.task, 1).outcome is Outcome.VOID


def test_aggregator_outlasts_a_chain_node_that_does_not_answer(
    uploaded: DecoyDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = list[dict[str, Any]]()
    with Door(uploaded.chain.node.url) as door:
        aggregator = judged(uploaded, tmp_path, door.url)
        door.shut = True
        with conducting(aggregator):
            wait_until(lambda: len(lines(capsys, told, "chain-unreachable")) > 1)
            door.shut = False
    assert uploaded.operator.tasks.round_state(uploaded.task, 1).outcome is Outcome.VOID


def test_what_an_account_lacks_is_by_the_most_that_the_transaction_may_cost(local_chain: LocalChain) -> None:
    poor, rich = local_chain.funded(), local_chain.funded()
    for balance in (0, 10**10):
        local_chain.rpc("anvil_setBalance", poor.address, hex(balance))
        with pytest.raises(EtherMissing, match=f"{poor.address}: the account has") as caught:
            poor.token.transfer(rich.address, 1)
        assert caught.value.balance == balance
        assert isinstance(caught.value, TransactionRejected)
    local_chain.rpc("anvil_setBalance", poor.address, hex(caught.value.needed * 2))  # fees move with every block
    poor.token.transfer(rich.address, 1)
    connection = Connection(local_chain.node.url, poor.connection.account)
    with pytest.raises(EtherMissing) as caught:
        connection.transactions.send_ether(rich.address, 10**20)
    assert caught.value.missing > 9 * 10**19


# Others


def test_who_adds_up_before_the_aggregator_does_costs_it_nothing(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any account may call sumCommitments, here between the aggregator's read and its transaction."""
    task = FiledTask(local_chain, tmp_path)
    task.judges = local_chain.staked(Role.VOTER, 1)
    task.join().commit_all()
    ArtifactStore(tmp_path / "store").put_file(TASK.encode())
    aggregator = aggregator_of(*party(task, tmp_path))
    give_uploads(aggregator, weighted(task, 0), 0)
    task.aggregator.aggregator.publish_digests(
        task.task, 0, CohortsFate(0b1), []
    )  # survivors are fixed, and that is all
    assert task.phase is Phase.PUBLISHING
    look, rival = aggregator.ledger.record.published_so_far, task.nodes[0]
    given = task.commitments(0, [0])[0].to_chain()

    def look_and_be_overtaken(number: int, round_: int) -> SaidBefore:
        before = look(number, round_)
        if not before.summed:
            rival.connection.transactions.send(
                rival.contracts.tasks.contract.functions.sumCommitments(number, round_, 0, 0, given)
            )
        return before

    monkeypatch.setattr(aggregator.ledger.record, "published_so_far", look_and_be_overtaken)
    attempt(aggregator, Step.PUBLISH)
    assert (task.phase, aggregator.rounds.of(0).refused) == (Phase.PUBLISHING, None)
    attempt(aggregator, Step.PUBLISH)
    assert task.round_state.published_cohorts == 1


def test_who_was_ended_between_staking_and_joining_stakes_no_second_bond(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    task = FiledTask(local_chain, tmp_path)
    ArtifactStore(tmp_path / "store").put_file(TASK.encode())
    aggregator = aggregator_of(*party(task, tmp_path))
    before = aggregator.ledger.staking.stake_of(aggregator.ledger.address, Role.AGGREGATOR)
    assert before.free >= task.params.aggregator_bond  # the driver has staked, and not joined
    aggregator._join()
    assert aggregator.ledger.tasks.state(task.task).aggregator_joined
    assert aggregator.ledger.staking.stake_of(aggregator.ledger.address, Role.AGGREGATOR).active == before.active
