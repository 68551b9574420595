"""A hospital's home: what is written is read back, and one process at a time works for a task."""

from __future__ import annotations

import datetime
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from consilium_client.consent import Policy
from consilium_client.errors import ConsentError, HomeError, OwnersRefusal
from consilium_client.home import Approval, HospitalHome, is_running, running_alone
from consilium_core.errors import ConfigInvalid
from raised_faults import raises_fault

POLICY: dict[str, Any] = {"operators": "any", "models": "any", "columns": "any"}
APPROVAL = Approval(
    place="31337-0xcontract-7",
    spec_hash="ab" * 32,
    approved_at=datetime.datetime(2026, 11, 22, 9, 30, tzinfo=datetime.UTC),
    superlink="consilium.example:9092",
)


@pytest.fixture
def home(tmp_path: Path) -> HospitalHome:
    settings = {"chain_url": "http://127.0.0.1:1", "artifacts": "/store", "data": "rows.csv"}
    return HospitalHome.create(tmp_path / "home", settings, POLICY)


def test_a_home_is_its_owners_alone_and_names_files_below_itself(home: HospitalHome) -> None:
    again = HospitalHome.open(home.folder)
    assert again == home
    assert again.settings.data == home.folder / "rows.csv"
    assert again.settings.keystore == home.folder / "key.json"
    assert again.settings.artifacts == (Path("/store"),)
    assert again.policy().model_dump() == Policy.model_validate(POLICY).model_dump()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.folder, home.folder / "node.toml")] == [0o700, 0o600]


def test_places_of_artifacts_are_folders_below_the_home_and_urls(home: HospitalHome) -> None:
    path = home.folder / "node.toml"
    places = '["copies", "https://mirror.example/a/", "file:///srv/artifacts"]'
    path.write_text(path.read_text().replace('"/store"', places))
    expected = (home.folder / "copies", "https://mirror.example/a", Path("/srv/artifacts"))
    again = HospitalHome.open(home.folder)
    assert again.settings.artifacts == expected
    again.approve(7, APPROVAL, b"")
    assert again.node_settings(7, APPROVAL.task_key).artifacts == expected
    for nonsense in ("[]", "7", '"ftp://mirror.example"', '["copies", "https://user:hush@mirror.example"]'):
        path.write_text(path.read_text().replace(places, nonsense))
        with pytest.raises(ConfigInvalid, match="artifacts") as refused:
            HospitalHome.open(home.folder)
        assert "hush" not in str(refused.value)
        places = nonsense


def test_the_owners_addresses_go_to_each_tasks_node(home: HospitalHome) -> None:
    path = home.folder / "node.toml"
    mail = '[mail]\nhost = "smtp.example.org"\nsender = "a@b.org"\npassword_file = "smtp"\n'
    path.write_text('notify = ["https://A.org/b", "mailto:a@B.org"]\n' + path.read_text() + mail)
    again = HospitalHome.open(home.folder)
    again.approve(7, APPROVAL, b"")
    settings = again.node_settings(7, APPROVAL.task_key)
    assert settings.notify == ("https://a.org/b", "mailto:a@b.org")
    assert settings.mail is not None
    assert settings.mail.password_file == home.folder / "smtp"
    whole = path.read_text()
    for wrong in (whole.replace("https:", "http:"), whole.replace(mail, "")):
        path.write_text(wrong)
        with pytest.raises(ConfigInvalid, match="notify"):
            HospitalHome.open(home.folder)


def test_a_moved_home_is_the_same_home(home: HospitalHome) -> None:
    moved = home.folder.rename(home.folder.with_name("elsewhere"))
    assert HospitalHome.open(moved).settings.data == moved / "rows.csv"


def test_homes_are_not_made_twice_and_not_out_of_nothing(home: HospitalHome, tmp_path: Path) -> None:
    before = (home.folder / "node.toml").read_bytes()
    with raises_fault(HomeError, "HomeTaken", match="--home"):
        HospitalHome.create(home.folder, {}, POLICY)
    assert (home.folder / "node.toml").read_bytes() == before
    with raises_fault(HomeError, "HomeMissing", match="consilium hospital init"):
        HospitalHome.open(tmp_path / "none")


def test_settings_that_do_not_hold_are_refused(home: HospitalHome) -> None:
    path = home.folder / "node.toml"
    path.write_text(path.read_text() + "task = 1\n")
    with pytest.raises(ConfigInvalid, match="task: Extra inputs"):
        HospitalHome.open(home.folder)


def test_a_home_without_its_policy_allows_nothing(home: HospitalHome) -> None:
    (home.folder / "policy.toml").unlink()
    with raises_fault(OwnersRefusal, "PolicyInvalid"):
        home.policy()


def test_an_approval_is_read_back_until_it_is_withdrawn(home: HospitalHome) -> None:
    with raises_fault(OwnersRefusal, "NotApproved", match="hospital join 7"):
        home.node_settings(7, APPROVAL.task_key)
    home.approve(7, APPROVAL, b"authority")
    assert (home.approval(7), home.approved_tasks()) == (APPROVAL, [7])
    settings = home.node_settings(7, APPROVAL.task_key)
    assert (settings.task, settings.approved, settings.policy) == (7, "ab" * 32, home.folder / "policy.toml")
    assert settings.flower.superlink == "consilium.example:9092"
    assert settings.flower.ca_certificate.read_bytes() == b"authority"
    home.withdraw(7)
    assert home.approved_tasks() == []
    for late in (lambda: home.withdraw(7), lambda: home.node_settings(7, APPROVAL.task_key)):
        with raises_fault(OwnersRefusal, "NotApproved"):
            late()


def test_an_approval_is_of_one_deployments_task(home: HospitalHome) -> None:
    home.approve(7, APPROVAL, b"")
    with raises_fault(OwnersRefusal, "ApprovalStale", match="31337-0xanother-7"):
        home.node_settings(7, "31337-0xanother-7")


@pytest.mark.parametrize("text", ["", "place = ", 'place = "p"\nspec_hash = "xy"\n', "x" * 1000])
def test_an_approval_that_does_not_hold_is_refused(home: HospitalHome, text: str) -> None:
    home.approve(7, APPROVAL, b"")
    (home.folder / "tasks" / "7.toml").write_text(text)
    with raises_fault(OwnersRefusal, "ApprovalInvalid", match=r"7\.toml"):
        home.approval(7)


def test_pausing_lasts_until_it_is_taken_back(home: HospitalHome) -> None:
    assert not home.paused
    home.pause()
    home.pause()
    assert HospitalHome.open(home.folder).paused
    home.resume()
    home.resume()
    assert not home.paused


HOLD = "import sys, time; from pathlib import Path; from consilium_client.home import running_alone\n"
HOLD += "with running_alone(Path(sys.argv[1]), 1): print('held', flush=True); time.sleep(60)"


def test_one_process_at_a_time_runs_a_task_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    assert not is_running(tmp_path / "task-1")
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "task-1")], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_running(tmp_path / "task-1")
        with raises_fault(ConsentError, "AlreadyRunning"), running_alone(tmp_path / "task-1", 1):
            pass
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        end = time.monotonic() + 10
        while is_running(tmp_path / "task-1") and time.monotonic() < end:
            time.sleep(0.05)
        with running_alone(tmp_path / "task-1", 1):
            assert is_running(tmp_path / "task-1")
    finally:
        holder.kill()
        holder.wait()
        holder.stdout and holder.stdout.close()
