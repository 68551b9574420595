"""One invite to all shards of a model: hospitals spread over them, and the loser of a last seat gets another one."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import consilium as api
import pytest
from chain_driver import ENCRYPTION_KEY, LocalChain
from command_line import CommandLine, done, refused
from consilium.joining import emptier_of_two
from consilium.node_results import Joining
from consilium_chain.errors import InviteRefused, Refused
from consilium_chain.invites import FurtherShard, SignedInvite, read_invite
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_client.errors import ConsentError
from consilium_client.home import approval_file
from consilium_core.connectivity import TASK_HEADER
from invite_driver import TASK, World, invited_world
from raised_faults import raises_fault
from tls_driver import server

SEATS, SHARDS = 3, 3
TEXT = f"{TASK}[rounds]\nshards = {SHARDS}\nmax_hospitals = {SEATS}\n"
LINKS = [f"127.0.0.1:9092/{9100 + place}" for place in range(SHARDS)]


@pytest.fixture
def world(consilium: CommandLine, local_chain: LocalChain, tmp_path: Path) -> World:
    return invited_world(consilium, local_chain, tmp_path, TEXT)


def invited(world: World, *more: str) -> tuple[int, str]:
    return world.invite(*more, superlinks=LINKS)


def fill(world: World, task: int, seats: int = SEATS) -> bool:
    """Hospitals that are in no shard yet join this one."""
    tasks = world.operator.tasks
    taken = {node.node for shard in tasks.shards(world.task) for node in tasks.hospitals(shard)}
    able = world.chain.staked(Role.HOSPITAL, SEATS * SHARDS, 500 * TOKEN)
    for hospital in [one for one in able if one.address not in taken][:seats]:
        hospital.hospital.join(task, 60, TransportKey.generate(), ENCRYPTION_KEY)
    return True


def new_client(world: World, name: str = "home") -> api.Client:
    done(world.init("--yes", "--home", str(world.folder / name)), "Next: consilium hospital join")
    client = api.Client(world.folder / name)
    account = open_keystore(client.settings.keystore, client.settings.password_file)
    world.chain.treasury.token.transfer(account.address, 500 * TOKEN)
    world.chain.rpc("anvil_setBalance", account.address, hex(10**18))
    return client


def named(world: World, task: int) -> bytes:
    place = world.chain.deployment.folder_name(task)
    return f"HTTP/1.1 401 Unauthorized\r\n{TASK_HEADER}: {place}\r\nContent-Length: 0\r\n\r\n".encode()


def shard_of(world: World, client: api.Client) -> list[int]:
    tasks = world.operator.tasks
    return [one for one in tasks.shards(world.task) if client.account in [node.node for node in tasks.hospitals(one)]]


def test_an_invite_to_all_shards_names_each_superlink_and_is_shown(world: World) -> None:
    named = f"{world.task}, {world.task + 1} or {world.task + 2}"
    code, said = invited(world)
    done((code, said), f"invite to tasks {named}", "consilium hospital init --invite heart.invite")
    assert said.rstrip().endswith("consilium hospital join")
    signed = read_invite(world.file)
    assert signed.superlinks == {world.task + place: link for place, link in enumerate(LINKS)}
    assert read_invite(signed.link) == signed
    done(world.init("--yes"), f"Invite to task {named}", *LINKS)


def test_superlinks_in_another_order_are_found_before_anything_is_signed(world: World) -> None:
    with ExitStack() as stack:
        links = [
            f"127.0.0.1:{stack.enter_context(server(world.folder / 'tls', named(world, world.task + place)))}"
            for place in range(SHARDS)
        ]
        swapped = world.invite(superlinks=[links[0], links[2], links[1]])
        refused(swapped, "error (InviteSuperLinkWrong)", f"{links[2]} serves", f"and not task {world.task + 1},")
        assert not world.file.exists()
        code, said = world.invite(superlinks=links)
    done((code, said), "It has no secrets")
    assert "does not accept hospitals now" not in said


def test_a_hospital_joins_a_shard_with_room_and_the_same_one_again(world: World) -> None:
    done(invited(world))
    client, tasks = new_client(world), list(world.operator.tasks.shards(world.task))
    fill(world, tasks[0])
    fill(world, tasks[2])
    home = ("--home", str(client.folder))
    done(world.consilium("hospital", "join", "--yes", *home), f"shard 2 of {SHARDS}", f"run {tasks[1]}")
    assert shard_of(world, client) == [tasks[1]]
    assert client._home.approval(tasks[1]).superlink == LINKS[1]
    assert client.join() == tasks[1]
    again = world.consilium("hospital", "join", "--yes", "--superlink", "h:1", "--ca-certificate", "ca.crt", *home)
    refused(again, "goes only with the number of its task", code=2)
    fill(world, tasks[1], SEATS - 1)
    late = new_client(world, "late")
    with raises_fault(InviteRefused, "InviteTooLate", match=f"task {tasks[0]}, {tasks[1]} or {tasks[2]};"):
        late.join()
    assert late._home.approved_tasks() == []
    assert client.join() == tasks[1]  # its seat is its own, although none is free


def test_a_shard_that_was_begun_is_taken_again(world: World) -> None:
    """One for which a signature was fetched, although another shard is emptier."""
    done(invited(world))
    client, asked = new_client(world), list[int]()

    def no(found: Joining) -> bool:
        asked.append(found.task)
        return False

    for begun in world.operator.tasks.shards(world.task):
        approval_file(client.folder, begun).parent.mkdir(exist_ok=True)
        approval_file(client.folder, begun).touch()
        with raises_fault(ConsentError, "NotConfirmed"):
            client.join(confirm=no)
        approval_file(client.folder, begun).unlink()
    assert asked == list(world.operator.tasks.shards(world.task))


def test_the_loser_of_a_last_seat_is_asked_about_another_shard(world: World) -> None:
    done(invited(world))
    client, asked = new_client(world), list[int]()

    def slow(found: Any) -> bool:
        """Others take all seats of the first task while the owner reads it."""
        asked.append(found.task)
        return len(asked) > 1 or fill(world, found.task)

    told: list[tuple[str, dict[str, Any]]] = []
    with api.log_to(lambda event, fields: told.append((event, dict(fields)))):
        joined = client.join(confirm=slow)
    assert [fields["task"] for event, fields in told if event == "shard-closed"] == asked[:1]
    assert (asked[1:], shard_of(world, client), client._home.approved_tasks()) == ([joined], [joined], [joined])
    other = new_client(world, "other")
    with raises_fault(ConsentError, "NotConfirmed"):
        other.join(confirm=lambda _: False)
    assert shard_of(world, other) == other._home.approved_tasks() == []


def test_an_own_choice_of_shard_stands_and_its_loss_ends_the_call(world: World) -> None:
    done(invited(world))
    client, last = new_client(world), world.task + SHARDS - 1
    with pytest.raises(Refused) as full:
        client.join(last, confirm=lambda _: fill(world, last))
    assert (full.value.name, client._home.approved_tasks()) == ("TaskFull", [])
    assert client.join(world.task) == world.task
    with raises_fault(ConsentError, "SuperLinkUnknown"):
        client.join(world.task + SHARDS)


def test_a_task_that_is_no_shard_is_refused_on_both_sides(world: World) -> None:
    done(invited(world))
    further = (FurtherShard(task=world.task + SHARDS, superlink="h:1"),)
    before = world.operator.operator.propose(world.operator.tasks.params(world.task))
    assert before == world.task + SHARDS  # the same operator's, of the same file and terms, but of another model
    refused(
        world.invite(superlinks=[*LINKS, "h:1"]),
        "error (InviteNotShards)",
        f"task {before} and task {world.task} of the invite",
    )
    refused(world.init("--yes", invite=world.changed(shards=further)), "error (InviteNotShards)")
    stranger = world.chain.funded()
    foreign = stranger.operator.propose(world.operator.tasks.params(world.task))
    other = (FurtherShard(task=foreign, superlink="h:1"),)
    refused(world.init("--yes", invite=world.changed(shards=other)), "error (InviteNotOperators)", f"task {foreign}")
    assert not world.home.exists()
    tree = json.loads(world.file.read_bytes())
    tree["shards"][0]["superlink"] = "attacker.example.org:443"
    with raises_fault(InviteRefused, "InviteForged"):
        SignedInvite.parse(json.dumps(tree).encode())


def test_one_open_shard_keeps_an_invite_open(world: World) -> None:
    done(invited(world))
    for task in list(world.operator.tasks.shards(world.task))[:-1]:
        world.operator.operator.stop(task)
    client = new_client(world)
    assert client.join() == world.task + SHARDS - 1
    world.operator.operator.stop(world.task + SHARDS - 1)
    refused(world.init("--yes", "--home", str(world.folder / "late")), "error (InviteTooLate)")


def test_hospitals_spread_evenly_one_by_one_and_in_a_rush() -> None:
    """Drawing one shard alone would leave some with 2 of 4 and others with 7."""
    accounts = ["0x" + secrets.token_hex(20) for _ in range(1_000)]
    free = dict.fromkeys(range(3, 19), 256)
    for account in accounts:
        free[emptier_of_two(account, free)] -= 1
    taken = [256 - left for left in free.values()]
    assert (sum(taken), max(taken) - min(taken) <= 6) == (1_000, True), taken
    rush = Counter(emptier_of_two(account, dict.fromkeys(range(3, 7), 256)) for account in accounts)
    assert len(rush) == 4
    assert max(rush.values()) <= 1_000 / 4 + 5 * (1_000 * 3 / 16) ** 0.5, rush  # five deviations of chance
    assert {emptier_of_two(one, {3: 1, 4: 2}) for one in accounts} == {4}
    assert emptier_of_two(accounts[0], {7: 1}) == 7
    assert emptier_of_two(accounts[0].upper().replace("0X", "0x"), free) == emptier_of_two(accounts[0], free)
