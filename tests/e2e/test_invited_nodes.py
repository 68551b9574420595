"""An operator's invite on a real chain: a hospital and a voter begin with it and their data alone, and a stranger's is
refused.
"""

from __future__ import annotations

import json
import stat
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import consilium as api
import pytest
from chain_driver import LocalChain
from command_line import CommandLine, done, refused
from consilium_chain.errors import InviteRefused
from consilium_chain.invites import read_invite
from consilium_chain.keystore import LIGHT_SCRYPT_N, open_keystore, write_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.consent import NEW_HOSPITAL
from consilium_client.errors import ConsentError
from consilium_client.home import HospitalHome
from consilium_core.connectivity import TASK_HEADER
from file_server import FileServer
from invite_driver import TASK, World, invited_world
from raised_faults import raises_fault
from tls_driver import server
from typed import typed


@pytest.fixture
def world(consilium: CommandLine, local_chain: LocalChain, tmp_path: Path) -> World:
    return invited_world(consilium, local_chain, tmp_path)


def test_a_hospital_needs_the_invite_its_data_and_a_yes(world: World) -> None:
    """Without: nine answers, then two files and an address for `join`."""
    done(world.invite("--name", "Charité"), "It has no secrets", "consilium hospital init --invite heart.invite")
    answers = {"This hospital's data (file or folder)": "rows.csv", "Make the home with this policy? [y/N]": "y"}
    said = typed(world.folder, "consilium hospital init --invite heart.invite", answers)
    for words in (
        "who will fall ill",
        world.operator.address,
        "who goes by Charité",
        "signed this invite, and proposed the task",
        "127.0.0.1:9092/9100",
        read_invite(world.file).fingerprint,
        "models logistic; columns age, sick",
        f"Next: consilium hospital join {world.task}",
    ):
        assert words in " ".join(said.split()), said
    home = HospitalHome.open(world.home)
    policy = tomllib.loads((world.home / "policy.toml").read_text())
    assert policy == {
        "operators": [world.operator.address], "models": ["logistic"], "columns": ["age", "sick"], **NEW_HOSPITAL
    }  # fmt: skip
    for name in ("password", "key.json", "invite.json"):
        assert stat.S_IMODE((world.home / name).stat().st_mode) == 0o600, name
    assert len((world.home / "password").read_text().strip()) == 32
    account = open_keystore(home.settings.keystore, home.settings.password_file)
    world.chain.treasury.token.transfer(account.address, 500 * TOKEN)
    world.chain.rpc("anvil_setBalance", account.address, hex(10**18))
    said = typed(world.folder, f"consilium hospital join {world.task}", {"lock the bond? [y/N]": "y"})
    assert "joined as hospital" in said
    assert home.approval(world.task).superlink == "127.0.0.1:9092/9100"
    kept = (world.home / "tasks" / f"{world.task}.ca.crt").read_bytes()
    assert kept == (world.folder / "tls" / "ca.crt").read_bytes()


@pytest.mark.deep
def test_a_voter_needs_no_more(world: World) -> None:
    done(world.invite("--link"), "consilium-invite:")
    link = read_invite(world.file).link
    refused(world.init(invite=link, role="voter"), "answer y, or pass --yes")
    assert not world.home.exists()
    done(world.init("--yes", "--max-tasks", "2", invite=link, role="voter"), "metrics log_loss; max_tasks 2")
    policy = api.Voter(world.home).policy()
    assert (policy.operators, policy.models) == ([world.operator.address.lower()], ["logistic"])
    assert (policy.metrics, policy.max_tasks) == (["log_loss"], 2)


def test_python_takes_an_invite_as_the_command_does(world: World) -> None:
    done(world.invite("--sponsor-url", "https://127.0.0.1:1", "--sponsor-ca", str(world.folder / "tls" / "ca.crt")))
    asked: list[api.Invitation] = []

    def no(found: api.Invitation) -> bool:
        asked.append(found)
        return False

    data = world.folder / "rows.csv"
    with raises_fault(ConsentError, "NotConfirmed"):
        api.Client.create(world.home, invite=world.file, data=data, confirm=no)
    assert not world.home.exists()
    assert (asked[0].invite.task, asked[0].task.spec.name) == (world.task, "who will fall ill")
    client = api.Client.create(world.home, invite=asked[0], data=data, hours="19:00-07:00")
    assert client.settings.sponsor is not None
    assert client.settings.sponsor.ca_certificate == world.home / "sponsor.crt"
    assert (world.home / "sponsor.crt").read_bytes() == (world.folder / "tls" / "ca.crt").read_bytes()
    assert (str(client.policy().hours), client.policy().operators) == ("19:00-07:00", [world.operator.address.lower()])
    for wrong in ({"artifacts": "artifacts"}, {"invite": world.file, "address_book": "book.json"}):
        with pytest.raises(TypeError, match="invite"):
            api.Client.create(world.folder / "none", data=data, **wrong)


@pytest.mark.deep
def test_the_owners_own_values_stand_before_the_invites(world: World) -> None:
    done(world.invite())
    with FileServer(world.folder / "artifacts") as mirror:
        done(world.init("--yes", "--operator", world.operator.address, "--model", "any", "--artifacts", mirror.url))
    client = api.Client(world.home)
    assert (client.policy().models, [str(one) for one in client.settings.artifacts]) == ("any", [mirror.url])
    gone = f"http://127.0.0.1:{free_port()}"
    refused(world.init("--yes", "--chain-url", gone, "--home", str(world.folder / "n")), "no chain node answers")


def test_an_invite_that_does_not_hold_writes_nothing(world: World) -> None:
    done(world.invite())
    stranger = world.chain.funded()
    book = world.chain.deployment
    others = replace(book, beacon=book.token), replace(book, staking=book.token)
    spec = parse_task_spec(TASK.encode())
    digest = world.operator.tasks.params(world.task).spec_hash
    own = stranger.operator.propose(task_params(spec, digest, world.operator.tasks.params(world.task).aggregator))
    cases: list[tuple[str, Callable[[], str], tuple[str, ...]]] = [
        ("InviteNotOperators", lambda: world.changed(stranger.connection.signer), (world.operator.address,)),
        ("InviteOfAnother", lambda: world.changed(stranger.connection.signer, task=own), (stranger.address,)),
        ("Refused", lambda: world.changed(task=999_999), ("TaskUnknown",)),
        ("InviteExpired", lambda: world.changed(expires_at=int(time.time())), ("days ago",)),
        ("InviteContractsWrong", lambda: world.changed(deployment=others[0]), ("Tasks.beacon",)),
        ("InviteContractsWrong", lambda: world.changed(deployment=others[1]), ("no answer to token",)),
        ("DeploymentInvalid", lambda: world.changed(
            deployment=replace(book, tasks="0x" + "77" * 20)), ("no contract at",)),
        ("DeploymentInvalid", lambda: world.changed(
            deployment=replace(book, chain_id=1), chain_url="https://rpc.example.org",
            artifacts=("https://a.example.org",)), ("of chain 1, but",)),
        ("InviteUnreadable", lambda: str(world.folder / "none"), ("cannot be read",)),
    ]  # fmt: skip
    for name, invite, words in cases:
        more = ["--yes", "--operator", world.operator.address]
        more += ["--chain-url", world.chain.node.url] if "of chain 1, but" in words else []
        refused(world.init(*more, invite=invite()), f"error ({name})", *words)
    contracts = ("--address-book", str(world.folder / "book.json"))
    for against in (contracts, ("--offline",), ("--like", str(world.folder))):
        refused(world.init("--yes", *against), "--invite", code=2)
    (world.folder / "artifacts").rename(world.folder / "moved")
    refused(world.init("--yes"), "artifacts does not exist")
    assert not world.home.exists()


@pytest.mark.deep
def test_a_sponsored_account_of_other_code_is_refused(world: World) -> None:
    done(world.invite())
    book = replace(world.chain.deployment, sponsored_account=world.chain.deployment.token)
    done(world.init("--yes", invite=world.changed(deployment=book)))  # without a sponsor nothing points to it
    found = world.changed(deployment=book, sponsor_url="https://sponsor.example.org")
    refused(world.init("--yes", "--home", str(world.folder / "n"), invite=found), "SponsoredAccount")


def test_a_task_that_began_takes_no_invited_node(world: World) -> None:
    done(world.invite())
    world.operator.operator.stop(world.task)
    refused(world.init("--yes"), "error (InviteTooLate)", f"no more nodes can join task {world.task};")
    refused(world.invite(), "error (InviteTooLate)")


def test_an_operator_signs_no_secrets_and_no_task_of_another(world: World) -> None:
    for more in (("--chain-url", "https://rpc.example.org/v3/" + "0a1b" * 8), ("--artifacts", "https://k:hush@a.org")):
        code, said = world.invite(*more)
        assert (code, "error (InviteUnsafe)" in said, "hush" in said, "0a1b" in said) == (1, True, False, False)
    refused(world.invite("--superlink", "nowhere"), "error (InviteMalformed)", "superlink: write host:port")
    refused(
        world.invite("--superlink", "localhost:443/x"),
        "error (InviteMalformed)",
        "superlink: write host:port, or host:port/9100",
    )
    refused(world.invite("--name", "Char\u202eité"), "error (InviteMalformed)", "name")
    refused(world.invite("--days", "91"), code=2)
    with raises_fault(InviteRefused, "InviteMalformed"):
        api.Operator(world.chain.node.url, world.folder / "book.json").invite(
            world.task, superlink="h:1", ca_certificate=world.folder / "tls" / "ca.crt", artifacts=["https://a"], days=0
        )
    treasury = ("--keystore", str(world.folder / "treasury.json"))
    write_keystore(world.folder / "treasury.json", world.chain.treasury.connection.signer, "secret", LIGHT_SCRYPT_N)
    refused(world.invite(*treasury), "error (InviteNotOperators)")
    assert not world.file.exists()


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (f"401 Unauthorized\r\n{TASK_HEADER}: 1-0x77-\x1b[2J3", "InviteSuperLinkWrong", "serves 1-0x77-"),
        (f"404 Not Found\r\n{TASK_HEADER}: {'x' * 5_000}", "InviteSuperLinkWrong", "consilium server aggregators"),
        ("404 Not Found", None, "does not accept hospitals now: no SuperLink is there"),
        ("502 Bad Gateway", None, "does not accept hospitals now: nothing runs behind its proxy"),
    ],
)
def test_an_address_is_asked_before_it_is_signed(world: World, answer: str, error: str | None, said: str) -> None:
    with server(world.folder / "tls", f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode()) as port:
        code, words = world.invite(superlinks=[f"127.0.0.1:{port}"])
    assert (code, f"error ({error})" in words, said in words) == (int(error is not None), error is not None, True), (
        words
    )
    assert ("\x1b" in words, len(words) < 1_000, world.file.exists()) == (False, True, error is None)


def test_an_aggregator_may_start_later(world: World) -> None:
    done(world.invite(superlinks=[f"127.0.0.1:{free_port()}"]), "now: nothing listens there", "It has no secrets")


def test_a_task_by_digest_names_stores_on_two_hosts(world: World) -> None:
    """The chain keeps none of its sums, and one host may fail."""
    spec = parse_task_spec((TASK + '[update]\npublication = "digests"\n').encode())
    (aggregator,) = world.chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    world.task = world.operator.operator.propose(task_params(spec, bytes(32), aggregator.address))
    refused(world.invite(), "error (InviteOneStore)", f"task {world.task} publishes by digest", "--artifacts")
    same = ("--artifacts", "https://a.example.org/one", "--artifacts", "https://a.example.org/two")
    operator = api.Operator(
        world.chain.node.url, world.folder / "book.json", keystore=world.folder / "operator.json",
        password_file=world.folder / "password",
    )  # fmt: skip
    with raises_fault(InviteRefused, "InviteOneStore", match=r"one host of a store \(a\.example\.org\)"):
        operator.invite(
            world.task, superlink="h:1", ca_certificate=world.folder / "tls" / "ca.crt", artifacts=same[1::2]
        )
    assert not world.file.exists()
    done(world.invite("--artifacts", "https://b.example.org/artifacts"))


@pytest.mark.deep
def test_a_later_task_is_joined_by_its_own_invite(world: World) -> None:
    done(world.invite())
    done(world.init("--yes"))
    client, first = api.Client(world.home), world.task
    with raises_fault(ConsentError, "SuperLinkUnknown", match="--superlink"):
        client.join(first + 1_000)
    refused(world.consilium("hospital", "join", str(first), "--home", str(world.home), "--superlink", "h:1"), code=2)
    for changes in ({"task": first + 1}, {"deployment": replace(world.chain.deployment, tasks="0x" + "77" * 20)}):
        with raises_fault(InviteRefused, "InviteOfAnother"):
            client.join(first, invite=world.signed(**changes).link)
    with raises_fault(InviteRefused, "InviteNotOperators"):
        client.join(first, invite=world.signed(world.chain.funded().connection.signer).link)
    with raises_fault(InviteRefused, "InviteExpired"):
        client.join(first, invite=world.signed(expires_at=1).link)
    found: list[str] = []

    def no(joining: Any) -> bool:
        found.append(joining.superlink)
        return False

    for invite in (None, world.signed(superlink="127.0.0.1:9093").link):
        with raises_fault(ConsentError, "NotConfirmed"):
            client.join(first, invite=invite, confirm=no)
    assert found == ["127.0.0.1:9092/9100", "127.0.0.1:9093"]
    kept = world.home / "invite.json"
    kept.write_bytes(world.signed(expires_at=1).written)  # it was in time when the home was made
    with raises_fault(ConsentError, "NotConfirmed"):
        client.join(first, confirm=no)
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"superlink": "127.0.0.1:9094"}))
    with raises_fault(InviteRefused, "InviteForged"):
        client.join(first, confirm=no)
