"""`consilium.Client` and `consilium.Voter` on a real chain: they do what the commands do, say the same, and print
nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import consilium as api
import pytest
from chain_driver import LocalChain
from command_line import CommandLine
from consilium.node_results import Activity, Departure, Joining, Registration
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.errors import ConsentError, DataError, HomeError, ModelError, OwnersRefusal
from consilium_core.private_files import write_private_file
from consilium_core.units import tokens
from consilium_server.certificates import ensure_certificates
from raised_faults import raises_fault
from task_files import DATA

TASK = f'name = "who will fall ill"\n{DATA}\n[model]\nname = "logistic"\n'


class Rig:
    """An open task with its store, and an account with money, whose home is to be made."""

    def __init__(self, chain: LocalChain, folder: Path, text: str = TASK) -> None:
        self.chain, self.folder, self.home = chain, folder, folder / "home"
        spec = parse_task_spec(text.encode())
        (aggregator,) = chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
        digest = ArtifactStore(folder / "artifacts").put_file(text.encode())
        self.task = chain.treasury.operator.propose(task_params(spec, digest, aggregator.address))
        self.account: Ledger = chain.funded()
        write_keystore(folder / "key.json", self.account.connection.signer, "secret", LIGHT_SCRYPT_N)
        write_private_file(folder / "password", "secret\n")
        chain.deployment.write(folder / "book.json")
        (folder / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n50,1\n60,0\n" * 15)
        ensure_certificates(folder / "tls")

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "chain_url": self.chain.node.url, "address_book": self.folder / "book.json",
            "artifacts": self.folder / "artifacts", "data": self.folder / "rows.csv", "operators": "any",
            "keystore": self.folder / "key.json", "password_file": self.folder / "password",
        } | changes  # fmt: skip

    def aggregator(self) -> dict[str, Any]:
        return {"superlink": "127.0.0.1:9092", "ca_certificate": self.folder / "tls" / "ca.crt"}


def no(asked: list[Any]) -> Callable[[Any], bool]:
    """Refuses, and keeps the question."""

    def answer(question: Any) -> bool:
        asked.append(question)
        return False

    return answer


@pytest.fixture
def rig(local_chain: LocalChain, tmp_path: Path) -> Rig:
    return Rig(local_chain, tmp_path)


def test_a_client_joins_and_reads_its_status_as_the_command_says_it(
    rig: Rig, consilium: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    client = api.Client.create(rig.home, **rig.settings())
    assert client.account == rig.account.address
    newest = client.tasks().tasks[0]
    assert (newest.number, newest.is_in, newest.objections) == (rig.task, False, ())
    assert client.check_data(rig.task).fault is None

    asked: list[Joining] = []
    with raises_fault(ConsentError, "NotConfirmed") as refused:
        client.join(rig.task, **rig.aggregator(), confirm=no(asked))
    assert (refused.value.values, client.status().approved) == ({"about": f"task {rig.task}"}, ())
    (found,) = asked
    assert (found.task, found.rows) == (rig.task, 60)
    assert found.shut_out is not None  # nothing listens there

    events: list[str] = []

    def tell(event: str, fields: Mapping[str, object]) -> None:
        events.append(event)

    with api.log_to(tell):
        client.join(rig.task, **rig.aggregator())
    assert "joined" in events
    status, standing = client.status(), client.standing()
    assert (status.is_reachable, status.approved, status.epsilon) == (True, (rig.task,), None)
    (own,) = standing.tasks
    assert (own.number, own.is_in, own.activity, own.bond) == (rig.task, True, Activity.STOPPED, 500 * TOKEN)
    membership = client.membership(client.task(rig.task))
    assert capsys.readouterr() == ("", "")

    code, said = consilium("hospital", "status", "--home", str(rig.home))
    assert code == 0
    assert f"{own.number} joining {own.activity} {tokens(own.bond)} {tokens(own.rewards)}" in said
    assert f"stake {tokens(standing.stake.active)}, of which free {tokens(standing.stake.free)}" in said
    assert all(f"{one.level} {one.check}" in said for one in status.findings)
    _, said = consilium("hospital", "show", str(rig.task), "--home", str(rig.home))
    assert membership.in_words in said
    _, said = consilium("hospital", "tasks", "--all", "--home", str(rig.home))
    assert f"{rig.task} who will fall ill" in said

    with raises_fault(ConsentError, "NotConfirmed"):
        client.leave(rig.task, confirm=lambda state: state.phase is not Phase.JOINING)
    assert client.leave(rig.task) is Departure.BOND_LOCKED
    assert client.standing().tasks[0].activity is Activity.LEFT
    assert client.export_audit(rig.folder / "audit.export") == len((rig.home / "audit.jsonl").read_text().splitlines())
    code, said = consilium("verify-audit", str(rig.folder / "audit.export"))
    assert (code, rig.account.address in said) == (0, True)


def test_a_clients_errors_are_faults_with_names_and_values(rig: Rig) -> None:
    with raises_fault(HomeError, "HomeMissing") as missing:
        api.Client(rig.home)
    assert (missing.value.values["folder"], isinstance(missing.value, api.Fault)) == (rig.home, True)
    nowhere = rig.folder / "nowhere.csv"
    with raises_fault(DataError, "DataFileMissing") as refused:
        api.Client.create(rig.home, **rig.settings(data=nowhere))
    assert refused.value.values["path"] == nowhere
    with raises_fault(OwnersRefusal, "PolicyInvalid"):
        api.Client.create(rig.home, **rig.settings(), hours="at night")
    with pytest.raises(TypeError, match="password"):
        api.Client.create(rig.home, **rig.settings(password_file=None))
    assert not rig.home.exists()

    client = api.Client.create(rig.home, **rig.settings(operators=["0x" + "77" * 20]))
    with raises_fault(HomeError, "HomeTaken"):
        api.Client.create(rig.home, **rig.settings())
    with raises_fault(OwnersRefusal, "NotAllowed") as unlisted:
        client.join(rig.task, **rig.aggregator())
    assert unlisted.value.values["task"] == "who will fall ill"
    with pytest.raises(ValueError, match="host:port"):
        client.join(rig.task, superlink="127.0.0.1", ca_certificate=rig.folder)
    with raises_fault(ConsentError, "WhichTask"):
        client.run()
    (rig.folder / "rows.csv").write_text("years,sick\n50,0\n")
    with raises_fault(DataError, "ColumnsWrong"):
        client.check_data(rig.task)
    assert client.membership(client.task(rig.task)).is_assumed


def test_a_task_that_needs_torch_is_refused_before_joining_without(local_chain: LocalChain, tmp_path: Path) -> None:
    rig = Rig(local_chain, tmp_path, f"{TASK}[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0\n")
    client = api.Client.create(rig.home, **rig.settings())
    settings = rig.home / "node.toml"
    settings.write_text(f'device = "numpy"\n{settings.read_text()}')
    client = api.Client(rig.home)
    assert client.tasks().tasks[0].objections == ("it needs torch for differential privacy",)
    with raises_fault(ModelError, "TorchNeeded", match="install torch"):
        client.join(rig.task, **rig.aggregator())
    assert client.status().approved == ()


def test_importing_loads_nothing_heavy() -> None:
    program = "import consilium, sys\nprint({'torch', 'web3', 'flwr', 'pandas', 'matplotlib'} & set(sys.modules))"
    program += "\nprint(consilium.Client.__name__, 'Voter' in dir(consilium), hasattr(consilium, 'Nurse'))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.split("\n")[:2] == ["set()", "Client True False"]


def test_readable_data_with_a_fault_still_have_a_profile(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("age,sick\n,0\n,1\n")
    found = api.check_data(api.Task.parse(TASK), rows)
    assert (found.profile.rows, found.fault and found.fault.name) == (2, "ColumnAllMissing")
    with raises_fault(DataError, "ColumnAllMissing"):
        found.require()


def test_a_voter_registers_and_reads_its_standing_as_the_command_says_it(
    rig: Rig, consilium: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rig.settings(keystore=None, password_file=None, password=lambda: "a new password")
    other = api.Voter.create(rig.folder / "other", **made)
    assert other.account != rig.account.address
    assert (rig.folder / "other" / "password").read_text() == "a new password\n"

    voter = api.Voter.create(rig.home, **rig.settings(), max_tasks=2)
    assert voter.policy().max_tasks == 2
    assert "0.00 tokens of stake are free" in " ".join(voter.tasks().tasks[0].objections)
    steps: list[Registration] = []
    with raises_fault(ConsentError, "NotConfirmed"):
        voter.register(stake=1000, commission=2.5, confirm=no(steps))
    assert not voter.balance().is_voter
    (to_do,) = steps
    assert (to_do.becomes_voter, to_do.makes_key, to_do.stakes) == (True, True, 1000 * TOKEN)
    done = voter.register(stake=1000, commission=2.5)
    assert done is not None
    assert 0 < done.paid <= to_do.gas
    assert (done.stake.free, voter.balance().commission) == (1000 * TOKEN, 2.5)
    assert voter.register(stake=1000) is None
    (listed,) = [one for one in voter.tasks().tasks if one.number == rig.task]
    assert (listed.objections, listed.is_in, listed.members) == ((), False, 0)
    assert voter.use_table(rig.task, rig.folder / "rows.csv") == 60
    status, standing = voter.status(), voter.standing()
    assert (status.runs, standing.tasks, standing.claimable) == (False, (), 0)
    assert capsys.readouterr() == ("", "")

    _, said = consilium("voter", "tasks", "--home", str(rig.home))
    assert f"{tokens(listed.bond)}" in said
    assert "joins it" in said
    code, said = consilium("voter", "status", "--home", str(rig.home))
    assert (code, "node does not run" in said, "at most 2 tasks" in said) == (0, True, True)
    assert f"stake {tokens(standing.stake.active)}, of which free {tokens(standing.stake.free)}" in said

    assert voter.unstake(400) == 400 * TOKEN
    (waiting,) = voter.unbondings()
    assert waiting.amount == 400 * TOKEN
    assert voter.withdraw() == 0
    rig.chain.pass_time(LOCAL_UNBONDING)
    assert voter.withdraw() == 400 * TOKEN
    assert (voter.unbondings(), voter.claim().released) == ([], ())


def test_the_doctor_finds_the_same_as_its_command(rig: Rig, consilium: CommandLine) -> None:
    api.Client.create(rig.home, **rig.settings())
    (rig.home / "key.json").chmod(0o644)
    found = api.doctor("hospital", rig.home)
    _, said = consilium("doctor", "hospital", "--json", "--home", str(rig.home))
    told = json.loads(said)
    assert told["fit"] is found.fit is False
    assert [(one["check"], one["level"]) for one in told["findings"]] == [
        (one.check, one.level) for one in found.findings
    ]
    assert "files" in {one.check for one in found.findings if one.level == "fault"}
    with pytest.raises(ValueError, match="nurse"):
        api.doctor("nurse", rig.home)
