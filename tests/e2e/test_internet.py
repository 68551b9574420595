"""Rounds across a small internet: each party a host with an address, names and a firewall of its own, over real TLS."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from consilium_chain.ledger.structs import Outcome, Phase
from consilium_client.home import HospitalHome, VoterHome
from consilium_core.children import child_environment
from consilium_server.jobs.supervisor import TLS
from consilium_verify.verification import verify_round
from hypothesis import given, settings
from hypothesis import strategies as st
from internet.faults import FAULTS, PHASES, PROCESSES, Cell, Play, Played, matrix, packed, plan, play_cells, why_not
from internet.hosts import Host, Internet, Link, why_not_here
from internet.network import CHAIN, CONSILIUM, HOSPITALS, NODE_PORT, Network, small_internet, until
from internet.proxy import FLEET, MIRROR
from internet.slow_link import QUEUE, Line

HERE = why_not_here()
pytestmark = [pytest.mark.skipif(HERE is not None, reason=str(HERE)), pytest.mark.timeout(580)]

# Asks the SuperLink for its nodes, as anybody can who reaches its control API: `python - HOST:PORT AUTHORITY`.
CONTROL = """
import pathlib, sys
from flwr.proto.control_pb2 import ListNodesRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
client = ControlHttpClient.from_server_address(
    server_address=sys.argv[1], insecure=False, root_certificates=pathlib.Path(sys.argv[2]).read_bytes(),
    interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
)
try:
    print("nodes:", len(client.ListNodes(ListNodesRequest()).nodes_info))
except Exception as error:
    print(type(error).__name__, getattr(getattr(error, "response", None), "status_code", None))
"""
KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
    print("open")
except OSError as error:
    print(type(error).__name__)
"""
DRAIN = """
import socket
listening = socket.create_server(("0.0.0.0", 9000))
while True:
    connection, _ = listening.accept()
    while connection.recv(65_536):
        pass
    connection.close()
"""
TELL_TIME = """
import threading, time
while True:
    began = time.monotonic()
    with (condition := threading.Condition()):
        condition.wait(0.25)
    time.sleep(0.25)
    print(time.time(), time.monotonic() - began)
"""
SEND = """
import socket, sys, time
began = time.monotonic()
with socket.create_connection((sys.argv[1], 9000), 3) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(30)
    connection.recv(1)
print(time.monotonic() - began)
"""


def assert_whole(played: Played) -> None:
    assert (played.broken, played.outcome, played.absent) == ([], "settled", [])


def control_api(network: Network, host: str, address: str, authority: Path) -> str:
    """What somebody on `host` gets to see of the SuperLink's control API."""
    asked = network.host(host).run([sys.executable, "-W", "ignore", "-c", CONTROL, address, str(authority)])
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.strip()


def passing_files(network: Network) -> list[Path]:
    """What only a running task needs: of what mirrors gave, of updates on their way, of Flower's."""
    nodes: list[HospitalHome | VoterHome] = [*network.homes.values(), *network.voter_homes.values()]
    kept = [home.folder.glob(f"{kind}/*/**/*") for home in nodes for kind in ("artifacts", "pending", "masking")]
    tasks = network.worker_home / "tasks"
    kept += [tasks.glob("*/replies/**/*"), tasks.glob("*/superlink.sqlite*")]
    return [file for files in kept for file in files if file.is_file()]


def knock(network: Network, host: str, address: str, port: int) -> str:
    return network.host(host).run([sys.executable, "-c", KNOCK, address, str(port)]).stdout.strip()


def test_rounds_run_across_it_through_faults_and_nobody_loses_anything(tmp_path: Path) -> None:
    with small_internet(tmp_path) as network:
        play = Play(network, 1, [Cell("node", "joining", "kill")])
        assert_whole(play.first)
        assert [network.host(name).refused() for name in network.hospitals] == [0] * HOSPITALS

        # A hospital's own loopback has all that listens there, and its firewall turns away whoever comes.
        for name in network.hospitals[:2]:
            hospital = network.host(name)
            assert hospital.listens_on() == []
            assert knock(network, "stranger", hospital.address, 22) == "TimeoutError"
            assert hospital.refused() > 0

        # The SuperLink's control API asks for nothing: it answers on the operator's own machine, and nowhere else.
        (superlink,) = network.processes_of("superlink")
        port = superlink.cmdline()[superlink.cmdline().index("--port") + 1]
        inside = network.worker_home / TLS / "ca.crt"
        assert control_api(network, "operator", f"127.0.0.1:{port}", inside) == f"nodes: {HOSPITALS}"
        assert control_api(network, "hospital-1", f"{FLEET}:443", network.pki.authority).endswith(" 404")
        for reached in (int(port), 5432, 6379, 8080, 9099):
            assert knock(network, "hospital-1", network.host("operator").address, reached) == "ConnectionRefusedError"
        assert knock(network, "hospital-1", network.host("operator").address, 443) == "open"

        sample = (
            ("proxy", "committing", "full disk"),
            ("aggregator", "uploading", "kill"),
            ("voter-1", "scoring", "kill"),
        )
        assert_whole(play.play(*(Cell(*one) for one in sample), Cell("postgres", "settling", "restart")))
        assert play.finish() == []
        until(lambda: not passing_files(network), "what a task that has ended leaves on nobody's disk")
        for number in range(2):
            assert network.operator.tasks.round_state(play.task, number).outcome is Outcome.SETTLED
        stranger = [
            *CONSILIUM, "verify", str(play.task), "1", "--artifacts", f"https://{MIRROR}",
            "--rpc", f"http://{CHAIN}:{NODE_PORT}", "--address-book", str(network.settings.deployment), "--json",
        ]  # fmt: skip
        trusting = child_environment() | {"SSL_CERT_FILE": str(network.pki.authority)}
        verified = network.host("stranger").run(stranger, timeout=120, env=trusting)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert json.loads(verified.stdout)["holds"]


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_a_machine_of_two_is_lost_in_each_phase_and_the_other_one_goes_on(tmp_path: Path) -> None:
    """Each has a network namespace, a home and a proxy. A machine comes back once the other one has the task."""
    moments = [
        (0, Phase.JOINING), (0, Phase.COMMITTING), (0, Phase.UPLOADING), (0, Phase.PUBLISHING), (1, Phase.FORMING),
        (1, Phase.UPLOADING), (1, Phase.PUBLISHING), (1, Phase.SCORING), (1, Phase.REVEALING), (2, Phase.COMMITTING),
        (2, Phase.UPLOADING),
    ]  # fmt: skip
    with small_internet(tmp_path, machines=2) as network:
        task, spec = network.propose(2)
        took = []
        while moments:
            state = network.operator.tasks.state(task)
            if (state.round, state.phase) > moments[0]:
                missed = moments.pop(0)
                assert missed[1] in (Phase.FORMING, Phase.JOINING), missed
            elif (state.round, state.phase) == moments[0]:
                moments.pop(0)
                took.append(network.change_machine(task))
            time.sleep(0.1)
        until(lambda: network.phase(task) is Phase.ENDED, "the task's end", 600)
        (tmp_path / "taken-over-after.json").write_text(json.dumps(took))
        assert len(took) >= 9
        assert max(took) < 100
        rounds = [network.operator.tasks.round_state(task, number) for number in range(spec.rounds.rounds + 1)]
        assert [one.outcome for one in rounds] == [Outcome.SETTLED] * 3
        assert [one.survivors for one in rounds] == [(1 << HOSPITALS) - 1] * 3  # so the sums are those of all
        for number in range(len(rounds)):
            assert verify_round(network.operator, network.store, task, number).holds
        slashed = [event for event in network.operator.logs.between() if event.name == "Slashed"]
        assert slashed == []


def test_nothing_is_left_of_an_internet_whose_maker_was_killed(tmp_path: Path) -> None:
    maker = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[2])
from internet.hosts import Disk, Internet
folder = pathlib.Path(sys.argv[1])
with Internet(folder) as internet:
    internet.connect({"a": ["a.test"], "b": []})
    Disk(folder / "disk", 1)
    with open("/dev/null", "wb") as null:
        internet.hosts["a"].start(["sleep", "1000"], {"PATH": "/usr/bin:/bin"}, null, null)
    print(internet.prefix, flush=True)
    time.sleep(1000)
"""
    command = [sys.executable, "-c", maker, str(tmp_path), str(Path(__file__).resolve().parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        prefix = process.stdout.readline().strip()
        assert f"{prefix}-a" in namespaces()
        assert str(tmp_path / "disk") in Path("/proc/mounts").read_text()
        process.kill()
    until(lambda: not [one for one in namespaces() if one.startswith(prefix)], "the guard", 30)
    assert not list(Path("/etc/netns").glob(f"{prefix}-*"))
    assert str(tmp_path / "disk") not in Path("/proc/mounts").read_text()


def namespaces() -> list[str]:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()


def test_a_bad_line_delays_and_loses_what_a_whole_one_carries(tmp_path: Path) -> None:
    with Internet(tmp_path) as internet, (tmp_path / "out").open("wb") as out:
        internet.connect({"a": ["a.test"], "b": ["b.test"]})
        near, far = internet.hosts["a"], internet.hosts["b"]
        far.start([sys.executable, "-c", DRAIN], {}, out, out)
        until(lambda: far.listens_on(), "whoever listens", 20)

        def seconds(count: int) -> float:
            sent = near.run([sys.executable, "-c", SEND, "b.test", str(count)])
            assert sent.returncode == 0, sent.stderr
            return float(sent.stdout)

        assert seconds(1_000_000) < 0.5
        far.worsen(Link(delay=0.1, jitter=0.02, loss=0.02, rate=200_000))
        assert seconds(1_000) > 0.3  # there and back, to connect, and again for the answer
        assert seconds(200_000) > 0.9
        far.mend()
        assert seconds(1_000_000) < 0.5
        far.cut_off()
        assert near.run([sys.executable, "-c", SEND, "b.test", "1"]).returncode != 0
        far.back()
        assert seconds(1_000) < 2.5  # the address is asked for anew


def test_the_clock_of_a_host_can_be_wrong_while_its_processes_run(tmp_path: Path) -> None:
    with Internet(tmp_path) as internet, (tmp_path / "out").open("wb") as out:
        internet.connect({"a": [], "b": []})
        near, far = internet.hosts["a"], internet.hosts["b"]
        for host in (near, far):
            with (tmp_path / host.name).open("wb") as told:
                host.start([sys.executable, "-u", "-c", TELL_TIME], child_environment(), told, out)

        def ahead(host: Host) -> tuple[float, float]:
            """Seconds that its clock is ahead, and for how many it waits for half of one."""
            lines = (tmp_path / host.name).read_text().splitlines()
            now = time.time()
            fresh = until(lambda: (tmp_path / host.name).read_text().splitlines()[len(lines) + 1 :], "its time", 20)
            wall, waited = map(float, fresh[0].split())
            return wall - now, waited

        for set_ahead in (3600, -3600, 0):
            near.clock.set(set_ahead)
            for host, expected in ((near, set_ahead), (far, 0)):
                found, waited = ahead(host)
                assert found == pytest.approx(expected, abs=10)
                assert waited == pytest.approx(0.5, abs=2)


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32), loss=st.floats(0, 0.5), jitter=st.floats(0, 0.1),
    frames=st.lists(st.tuples(st.floats(0, 0.05), st.integers(60, 1514)), min_size=1, max_size=60),
)  # fmt: skip
def test_frames_of_a_line_stay_in_order_and_within_its_rate(
    seed: int, loss: float, jitter: float, frames: list[tuple[float, int]]
) -> None:
    line, now, delay, rate = Line(0.1, jitter, loss, 50_000, Random(seed)), 0.0, 0.1, 50_000
    arrived: list[float] = []
    carried = 0
    for pause, length in frames:
        now += pause
        at = line.arrival(now, length)
        if at is not None:
            carried += length
            assert (
                now + length / rate + delay - jitter - 1e-9 <= at <= now + QUEUE + length / rate + delay + jitter + 1e-9
            )
            arrived.append(at)
            assert carried / rate <= at
    assert arrived == sorted(arrived)


def test_a_cell_of_the_matrix_names_what_there_is() -> None:
    cells = matrix()
    assert len(cells) == len(set(cells))
    assert all(why_not(cell) is None for cell in cells)
    assert {cell.phase for cell in cells} == set(PHASES)
    assert {cell.fault for cell in cells} == set(FAULTS)
    assert {cell.process for cell in cells} == set(PROCESSES)


def test_cells_of_a_round_have_nothing_to_do_with_each_other() -> None:
    tasks = plan(matrix())
    rounds = [one for task in tasks for one in (*task.rounds, task.joining) if one]
    assert all(bool(task.liar) == (cell.phase == "disputing") for task in tasks for one in task.rounds for cell in one)
    assert sorted(map(str, (cell for one in rounds for cell in one))) == sorted(map(str, matrix()))
    for one in rounds:
        assert packed(one) == [one]
        assert len({cell.process for cell in one}) == len(one)
        phases = [cell.phase for cell in one]
        assert len(set(phases)) == len(phases) or set(phases) in ({"joining"}, {"disputing"})
        assert sum(cell.fault == "bad line" for cell in one) <= 1
    assert len(rounds) < len(matrix()) / 4


@pytest.mark.deep
@pytest.mark.timeout(5 * 3600)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_cell_of_the_matrix_holds(fault: str, tmp_path: Path) -> None:
    """Hours (docs/faults.md)."""
    with small_internet(tmp_path) as network:
        tasks = plan([cell for cell in matrix() if cell.fault == fault])
        broken = [(list(map(str, one.cells)), one.broken) for one in play_cells(network, tasks) if one.broken]
    assert broken == []
