"""A node's metrics: true, on this machine alone, bounded, and all that the alerts and boards of its role ask for."""

from __future__ import annotations

import http.client
import queue
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from chain_driver import LocalChain
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.structs import PayoutReason, Phase, Role
from consilium_chain.rounds.machine import Step, duty
from consilium_client.config import VoterHomeSettings
from consilium_client.monitoring.figures import OUTCOMES, NodeMetrics
from consilium_client.monitoring.serving import PORTS, Watched, watched
from consilium_core.errors import ConfigInvalid
from consilium_core.logs import emit, heard_by, log_to
from consilium_core.typed_toml import parse_toml
from deploy_driver import DEPLOY
from hospital_driver import WINDOW, Committing, start, take
from prometheus_client.parser import text_string_to_metric_families
from told_servers import certificate
from voter_driver import FiledTask, VoterProcess, voter_home
from watched_driver import boards_of, check_board, check_rule, queries, rules_of, told_by, unknown

FOLDER = DEPLOY / "monitoring"
RULES = rules_of(FOLDER / "rules.yaml")
BOARDS = boards_of(FOLDER / "dashboards")
LABELS = {"task", "outcome", "event", "kind", "of", "duty", "process", "role", "version"}


@dataclass
class Pair:
    """A hospital that has committed, and a voter of the same task, with their metrics."""

    made: Committing
    hospital: NodeMetrics
    voter: NodeMetrics

    def value(self, name: str, **labels: str) -> float | None:
        return self.hospital.registry.get_sample_value(f"consilium_node_{name}", labels)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("task")
    with LocalChain() as chain:
        made = start(chain, folder, 3, masked=True)
        flower = made.settings[0].flower.model_copy(update={"ca_certificate": certificate(folder, "authority")})
        hospital, voter = made.node(0, flower=flower), made.voter_node()
        own = NodeMetrics(hospital._watched)
        with heard_by(own.hear):
            hospital.due()
            assert own.registry.get_sample_value(
                "consilium_node_duty_seconds", {"task": str(made.task), "duty": "commit"}
            ) == pytest.approx(WINDOW, abs=300)
            made.relay(made.signed(hospital))
            take(hospital, Step.NOTE_COMMITMENT)
            emit("privacy", round=0, epsilon=1.5, of=8.0)
        own.read_money()
        voter.poll()
        others = NodeMetrics(Watched(Role.VOTER, voter.settings.home, voter.ledger, lambda: {made.task: voter.index}))
        others.read_money()
        others.hear("scored", {"task": made.task, "round": 0, "seconds": 2.5})
        yield Pair(made, own, others)


def test_all_that_rules_and_boards_ask_for_is_told(pair: Pair) -> None:
    with pair.made.chain.undone():
        other = pair.made.node(1)
        other.due()  # it owes its commitment
        told = told_by(
            pair.hospital.text().decode(), pair.voter.text().decode(), NodeMetrics(other._watched).text().decode()
        )
    asked = dict(queries(RULES, BOARDS))
    assert len(asked) > 40
    assert {what: faults for what, query in asked.items() if (faults := unknown(query, told))} == {}
    names = {labels.removeprefix("le") for name in told if name.startswith("consilium_") for labels in told[name]}
    assert names - {"job", "instance"} == LABELS


def test_boards_and_rules_are_whole() -> None:
    assert [board["uid"] for board in BOARDS] == ["consilium-hospital", "consilium-voter"]
    for board in BOARDS:
        check_board(board)
    for rule in RULES:
        check_rule(rule)
    scraped = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())["scrape_configs"]
    ports = {one["job_name"]: int(one["static_configs"][0]["targets"][0].rpartition(":")[2]) for one in scraped}
    assert ports["voter"] >= ports["hospital"] + PORTS


def test_figures_are_the_nodes(pair: Pair) -> None:
    ledger, task = pair.made.node(0).ledger, str(pair.made.task)
    stake = ledger.staking.stake_of(ledger.address, Role.HOSPITAL)
    assert pair.value("stake_tokens", kind="bonded") == stake.locked / 10**18 > 0
    assert pair.value("stake_tokens", kind="free") == stake.free / 10**18
    assert pair.value("ether") == 0
    assert 0 < (pair.value("block") or 0) <= ledger.connection.blocks.number()
    assert 0 < (pair.value("certificate_days", of="superlink") or 0) <= 1
    assert pair.value("training_seconds", task=task) is not None
    assert (pair.value("peak_memory_bytes", process="node") or 0) > 50e6
    assert (pair.value("disk_free_bytes") or 0) > 0
    assert (pair.value("epsilon", task=task), pair.value("epsilon_budget", task=task)) == (1.5, 8.0)
    assert pair.value("duty_seconds", task=task, duty="commit") is None  # it has committed


def test_a_silent_chain_is_a_fault_and_keeps_the_last_figures(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = pair.made.chain
    before, faults = pair.value("ether"), pair.value("faults_total", event="chain-unreachable") or 0

    def silent(*_: object) -> None:
        raise ChainUnreachable(chain.node.url, "no answer")

    monkeypatch.setattr("consilium_chain.ledger.staking.Staking.stake_of", silent)
    pair.hospital.read_money()
    assert pair.value("faults_total", event="chain-unreachable") == faults + 1
    assert pair.value("ether") == before


@pytest.fixture
def counted(pair: Pair, tmp_path: Path) -> NodeMetrics:
    """Metrics of a voter that has heard nothing."""
    return NodeMetrics(Watched(Role.VOTER, tmp_path, pair.made.aggregator, dict))


def test_rounds_deadlines_slashes_and_faults_are_counted(counted: NodeMetrics) -> None:
    value = counted.registry.get_sample_value
    assert OUTCOMES.keys() == {reason.name for reason in PayoutReason}
    assert value("consilium_node_rounds_total", {"outcome": "rejected"}) == 0  # so that the first one is an increase
    for round_, reason in enumerate(("PAID", "NO_IMPROVEMENT", "HARMFUL", "NOT_REVEALED", "NO_SEAT", "MISMATCHED")):
        slash = str(25 * 10**17) if reason in ("HARMFUL", "NOT_REVEALED") else "0"
        counted.hear("settled", {"task": 3, "round": round_, "reason": reason, "reward": str(10**18), "slash": slash})
    outcomes = {one: value("consilium_node_rounds_total", {"outcome": one}) for one in OUTCOMES.values()}
    assert outcomes == {"accepted": 2, "rejected": 1, "missed": 1, "absent": 1, "void": 1}
    assert value("consilium_node_missed_deadlines_total") == 1
    assert (value("consilium_node_slashed_tokens_total"), value("consilium_node_rewards_tokens_total")) == (5, 6)
    counted.hear("round-failed", {"task": 3, "round": 1, "error": "/home/ward/rows.csv"})
    assert value("consilium_node_faults_total", {"event": "round-failed"}) == 1
    assert b"rows.csv" not in counted.text()
    assert value("consilium_node_chain_changes_total") == 0
    counted.hear("chain-node-changed", {"node": "https://b", "before": "https://a", "error": "HTTP 503"})
    assert value("consilium_node_chain_changes_total") == 1


def test_money_is_read_again_after_what_moves_it(counted: NodeMetrics, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: queue.Queue[None] = queue.Queue()
    monkeypatch.setattr(counted, "read_money", lambda: reads.put(None))
    thread = threading.Thread(target=counted.keep_reading)
    thread.start()
    reads.get(timeout=30)
    for event in ("joined", "left"):
        counted.hear(event, {"task": 3})
        reads.get(timeout=30)
    counted.hear("revealed", {"task": 3})
    counted.stop()
    thread.join(30)
    assert (thread.is_alive(), reads.qsize()) == (False, 0)


def test_ended_tasks_leave(counted: NodeMetrics) -> None:
    for task in range(1, 101):
        counted.hear("scored", {"task": task, "round": 1, "seconds": 1.0})
        counted.hear("privacy", {"task": task, "round": 1, "epsilon": 1.0, "of": 2.0})
        assert b'task="' in counted.text()
        counted.hear("left", {"task": task, "role": "voter", "balance": "0"})
    text = counted.text().decode()
    assert 'task="' not in text
    assert sum(len(family.samples) for family in text_string_to_metric_families(text)) < 120


@pytest.mark.parametrize(
    ("role", "phase", "owing", "step"),
    [
        (Role.HOSPITAL, Phase.COMMITTING, {"members": 2}, Step.COMMIT),
        (Role.HOSPITAL, Phase.COMMITTING, {"members": 2, "committed": 2}, None),
        (Role.HOSPITAL, Phase.COMMITTING, {"members": 5}, None),
        (Role.HOSPITAL, Phase.UPLOADING, {"members": 2, "committed": 2}, Step.UPLOAD),
        (Role.HOSPITAL, Phase.PUBLISHING, {"survivors": 2}, Step.UNMASK),
        (Role.HOSPITAL, Phase.DISPUTING, {"survivors": 3, "accused": 1}, None),
        (Role.HOSPITAL, Phase.DISPUTING, {"survivors": 3, "accused": 2}, Step.DISPUTE),
        (Role.HOSPITAL, Phase.SCORING, {"members": 2}, None),
        (Role.VOTER, Phase.SCORING, {}, Step.SCORE),
        (Role.VOTER, Phase.SCORING, {"seated": 2}, None),
        (Role.VOTER, Phase.SCORING, {"stood_down": 2}, None),
        (Role.VOTER, Phase.REVEALING, {"seated": 2}, Step.REVEAL),
        (Role.VOTER, Phase.REVEALING, {"seated": 2, "revealed": 2}, None),
        (Role.VOTER, Phase.COMMITTING, {"members": 2}, None),
    ],
)
def test_duty(pair: Pair, role: Role, phase: Phase, owing: dict[str, int], step: Step | None) -> None:
    node, task = pair.made.aggregator, pair.made.task
    nothing = dict.fromkeys(("members", "committed", "survivors", "accused", "seated", "stood_down", "revealed"), 0)
    state = replace(node.tasks.state(task), phase=phase, active_voters=2)
    round_ = replace(node.tasks.round_state(task, 0), **nothing | owing)  # type: ignore[arg-type]
    assert duty(role, state, round_, 1) is step


# Over HTTP


def ask(port: int, path: str = "/metrics", host: str | None = None, method: str = "GET") -> tuple[int, str]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request(method, path, headers={} if host is None else {"Host": host})
    answer = link.getresponse()
    return answer.status, answer.read().decode()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    "address", ["0.0.0.0:9464", "192.168.1.4:9464", "[::]:9464", "localhost:9464", "metrics.example.org:9464"]
)
def test_only_this_machine_may_read(address: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"is not this machine's own address: write 127.0.0.1:PORT"):
        parse_toml(f'metrics = "{address}"'.encode(), VoterHomeSettings, "node.toml", ConfigInvalid)


def test_off_unless_asked_for(counted: NodeMetrics) -> None:
    with log_to(lambda event, _: pytest.fail(event)), watched(None, counted._node):
        pass


def test_the_next_port_is_taken_and_a_page_of_another_name_reads_nothing(counted: NodeMetrics) -> None:
    heard: list[tuple[str, object]] = []
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        first.listen()
        port = int(first.getsockname()[1])
        with (
            log_to(lambda event, fields: heard.append((event, fields["at"]))),
            watched(f"127.0.0.1:{port}", counted._node),
        ):
            ((event, at),) = heard
            assert event == "metrics-served"
            own = int(str(at).rpartition(":")[2])
            assert port < own < port + PORTS
            status, text = ask(own)
            assert (status, "consilium_node_info" in text) == (200, True)
            assert ask(own, host=f"localhost:{own}")[0] == 200
            assert ask(own, host="rebound.example.org")[0] == 403
            assert ask(own, host="")[0] == 403
            assert ask(own, "/")[0] == 404
            assert ask(own, method="POST")[0] == 501
            with socket.create_connection(("127.0.0.1", own)):  # one that asks nothing keeps no other waiting
                assert ask(own)[0] == 200
        with pytest.raises(ConnectionRefusedError):
            ask(own)


def test_a_node_without_a_free_port_goes_on(counted: NodeMetrics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consilium_client.monitoring.serving.PORTS", 1)
    heard: list[str] = []
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        first.listen()
        address = f"127.0.0.1:{first.getsockname()[1]}"
        with log_to(lambda event, _: heard.append(event)), watched(address, counted._node):
            pass
    assert heard == ["metrics-not-served"]


def test_a_running_hospital_answers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    node, heard, answers = pair.made.node(0, metrics=f"127.0.0.1:{free_port()}"), list[str](), list[str]()

    def take_part() -> None:
        answers.append(ask(int(heard[-1].rpartition(":")[2]))[1])

    monkeypatch.setattr(node, "_take_part", take_part)
    monkeypatch.setattr(node, "leave", lambda: True)
    with log_to(lambda event, fields: heard.append(str(fields.get("at", event)))):
        node.run()
    assert 'consilium_node_info{role="hospital"' in answers[0]


def test_a_running_voter_answers(local_chain: LocalChain, tmp_path: Path) -> None:
    with local_chain.undone():
        task = FiledTask(local_chain, tmp_path)
        home, _ = voter_home(local_chain, tmp_path / "voter")
        path, port = home.folder / "node.toml", free_port()
        path.write_text(f'metrics = "127.0.0.1:{port}"\n' + path.read_text())
        with VoterProcess(home) as voter:
            at = str(voter.wait_for("metrics-served")["at"])
            voter.wait_for("joined", task=task.task)
            status, text = ask(int(at.rpartition(":")[2]))
    samples = {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}
    assert (status, samples["consilium_node_info"]) == (200, 1)
    assert samples["consilium_node_block"] > 0
    assert samples["consilium_node_clock_ahead_seconds"] <= samples["consilium_node_block_age_seconds"]


NEEDS_PROMTOOL = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus"
)
# By alert: a series, its values a minute apart ("a+bxn": from a, n steps of b), and when it must fire.
FIRING = {
    "NodeDown": ('up{job="voter",instance="a"}', "1 0 0 0 0", "4m"),
    "DutyNearDeadline": ('consilium_node_duty_seconds{task="3",duty="reveal"}', "200 100", "1m"),
    "BlockOld": ("consilium_node_block_age_seconds", "170+60x5", "4m"),
    "ClockBehind": ("consilium_node_clock_ahead_seconds", "-9+0x5", "2m"),
    "ChainErrors": ('consilium_node_faults_total{event="chain-unreachable"}', "0+1x20", "15m"),
    "NodeFault": ('consilium_node_faults_total{event="ballot-lost"}', "0 1 1", "2m"),
    "Slashed": ("consilium_node_slashed_tokens_total", "0 2.5 2.5", "2m"),
    "DeadlineMissed": ("consilium_node_missed_deadlines_total", "0 1 1", "2m"),
    "RoundsRejected": ('consilium_node_rounds_total{outcome="rejected"}', "0+1x9", "9m"),
    "EtherLow": ('consilium_node_ether{job="voter"}', "0.009+0x15", "11m"),
    "StakeUsedUp": ('consilium_node_stake_tokens{job="voter",kind="free"}', "0+0x70", "61m"),
    "BudgetNearlySpent": ('consilium_node_epsilon{task="3"}', "7.3 7.3", "1m"),
    "DiskNearlyFull": ("consilium_node_disk_free_bytes", "1e9+0x9", "6m"),
    "CertificateEnds": ('consilium_node_certificate_days{of="superlink"}', "13+0x70", "61m"),
}
CALM = {
    "up": "1", 'consilium_node_duty_seconds{duty="upload"}': "5", "consilium_node_block_age_seconds": "12",
    "consilium_node_clock_ahead_seconds": "14", 'consilium_node_faults_total{event="chain-unreachable"}': "7",
    'consilium_node_faults_total{event="not-voted"}': "7", "consilium_node_slashed_tokens_total": "7",
    "consilium_node_missed_deadlines_total": "7", 'consilium_node_rounds_total{outcome="rejected"}': "7",
    'consilium_node_ether{job="hospital"}': "0", 'consilium_node_stake_tokens{job="voter",kind="free"}': "9",
    "consilium_node_epsilon": "7", "consilium_node_epsilon_budget": "8", "consilium_node_disk_free_bytes": "9e9",
    "consilium_node_certificate_days": "15",
}  # fmt: skip


def test_each_alert_has_a_series_that_fires_it() -> None:
    assert list(FIRING) == [rule["alert"] for rule in RULES]


@pytest.mark.deep
@NEEDS_PROMTOOL
def test_promtool_accepts_the_rules() -> None:
    operator = DEPLOY / "compose" / "operator" / "prometheus"
    for path in (FOLDER / "rules.yaml", operator / "rules.yaml"):
        subprocess.run(["promtool", "check", "rules", "--lint-fatal", path], check=True)
    subprocess.run(["promtool", "check", "config", FOLDER / "prometheus.yaml"], check=True)


@pytest.mark.deep
@NEEDS_PROMTOOL
def test_alerts_fire_when_they_should_and_not_on_a_calm_day(tmp_path: Path) -> None:
    tests: list[dict[str, object]] = []
    budget = {"series": 'consilium_node_epsilon_budget{task="3"}', "values": "8+0x9"}
    for alert, (series, values, at) in FIRING.items():
        query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
        fires = {"expr": query, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}]}
        given = [{"series": series, "values": values}, budget]
        tests.append({"name": alert, "interval": "1m", "input_series": given, "promql_expr_test": [fires]})
    still = [{"series": series, "values": f"{value}+0x90"} for series, value in CALM.items()]
    quiet = {"expr": "count(ALERTS)", "eval_time": "90m", "exp_samples": []}
    tests.append({"name": "calm", "interval": "1m", "input_series": still, "promql_expr_test": [quiet]})
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(FOLDER / "rules.yaml")], "tests": tests}))
    subprocess.run(["promtool", "test", "rules", path], check=True)
