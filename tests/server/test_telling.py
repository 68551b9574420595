"""Watch lists, addresses and their proofs, and the outbox: with strangers, crashes and reorganisations."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from api_wallet import Wallet
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.errors import KeystoreError
from consilium_core.notify import MailServer, Reach
from consilium_core.private_files import write_private_file
from consilium_server.api.watch import PROOFS
from consilium_server.config import NotifySettings
from consilium_server.database.engine import open_database, writing
from consilium_server.database.tables import EventRow
from consilium_server.telling import delivery, outbox
from consilium_server.telling.delivery import Teller, teller_of
from consilium_server.telling.outbox import fill
from consilium_server.telling.tables import ChannelRow, MessageRow, WatchRow
from consilium_server.telling.words import told_of
from fastapi.testclient import TestClient
from httpx2 import Response
from indexed_network import HOSPITALS, OPERATOR, START, TASK_FILE, VOTERS, IndexedNetwork, app_of, populated
from sqlalchemy import select
from sqlalchemy.orm import Session
from told_servers import Hooks, Mails, hooks, mails
from worker_driver import Worker, until

ORIGIN = "https://consilium.example:8443"
CONFIRMATIONS = 2
NODE, TASK = HOSPITALS[3], 1


class World:
    """A network, its API, a worker that tells, a webhook and a mail server. `at`: the worker's clock."""

    def __init__(self, folder: Path, servers: ExitStack, url: str | None = None) -> None:
        self.network = IndexedNetwork(folder, url)
        servers.callback(self.end)  # after all that asks the databases
        with self.network.mined():
            for node in HOSPITALS:
                self.network.register(node, Role.HOSPITAL)
                self.network.delegate(node, node, Role.HOSPITAL, 1_000 * TOKEN)
            self.network.propose(TASK, TASK_FILE)
        with self.network.mined():
            for node in VOTERS:
                self.network.register(node, Role.VOTER)
            self.network.join(TASK)
        self.hooks: Hooks = servers.enter_context(hooks(folder))
        self.mails: Mails = servers.enter_context(mails(folder))
        sender = MailServer("localhost", self.mails.port, False, "told@consilium.example.org")
        self.engine = open_database(self.network.url)
        self.teller = Teller(self.engine, ORIGIN, CONFIRMATIONS, self.hooks.reach(), sender, 1_000)
        self.client = servers.enter_context(TestClient(app_of(self.network, limits={"files_per_hour": 100})))
        self.at = time.time()
        self.turn()

    def turn(self, seconds: float = 0.0) -> None:
        self.at += seconds
        self.teller.run(self.at)

    def slash(self, node: str = NODE, amount: int = 5 * TOKEN, confirmed: bool = True) -> None:
        with self.network.mined():
            self.network.pay(TASK, 1, node, Role.HOSPITAL, "slash", amount)
        for _ in range(CONFIRMATIONS if confirmed else 0):
            self.network.pass_block()

    def rows(self, kind: Any = MessageRow) -> list[Any]:
        with Session(self.engine) as db:
            return list(db.scalars(select(kind)))

    def end(self) -> None:
        self.engine.dispose()
        self.network.engine.dispose()


class Person:
    """An account that signed in. Its webhook is the world's, by its own path."""

    def __init__(self, world: World) -> None:
        self.world, self.wallet = world, Wallet()
        self.token = self.wallet.sign_in(world.client).json()["token"]

    def ask(self, method: str, path: str, **given: Any) -> Response:
        return self.world.client.request(
            method, f"/v1{path}", headers={"Authorization": f"Bearer {self.token}"}, **given
        )

    def watch(self, tasks: list[int] = [], nodes: list[str] = []) -> Response:  # noqa: B006
        return self.ask("PUT", "/watch", json={"tasks": tasks, "nodes": nodes})

    def give(self, address: str) -> Response:
        return self.ask("PUT", "/watch/channels", json={"address": address})

    @property
    def channels(self) -> list[dict[str, Any]]:
        return list(self.ask("GET", "/watch").json()["channels"])

    def by_hook(self) -> str:
        """Confirms a webhook; returns its secret."""
        given = self.give(self.world.hooks.url(f"/{self.wallet.address}"))
        assert given.status_code == 200, given.text
        self.world.turn()
        assert self.channels[0]["state"] == "confirmed"
        return str(given.json()["secret"])

    def by_mail(self, address: str = "ward@hospital.example.org") -> None:
        assert self.give(f"mailto:{address}").status_code == 200
        self.world.turn()
        assert confirm(self.world, link(self.world, "confirm")).status_code == 200


def link(world: World, name: str) -> str:
    found = re.search(rf"{ORIGIN}/#/told\?{name}=(\S+)", world.mails.text())
    assert found is not None, world.mails.text()
    return found[1]


def confirm(world: World, token: str) -> Response:
    return world.client.post("/v1/watch/confirm", json={"token": token})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as servers:
        yield World(tmp_path, servers)


# Words


def test_told_of_names_whom_each_event_concerns() -> None:
    class Known:
        def parties(self, task: int) -> dict[str, tuple[Role, int]]:
            return {"0xA": (Role.HOSPITAL, 0), "0xB": (Role.HOSPITAL, 1), "0xC": (Role.VOTER, 0)}

        def operator(self, task: int) -> str:
            return "0xO"

        def cohorts(self, task: int, round_: int) -> dict[int, int]:
            return {0: 0b01, 1: 0b10}

        def rank_floor(self, task: int) -> int | None:
            return floor

    floor = None

    def told(name: str, account: str | None = None, in_task: bool = True, **values: Any) -> Any:
        task = (3, 1) if in_task else (None, None)
        row = EventRow(
            block=1, log_index=0, item=0, contract="tasks", name=name, transaction=b"", task=task[0], round=task[1],
            account=account, role=None, other=None, values=values,
        )  # fmt: skip
        found = told_of(row, START, Known())
        return found and (found.kind, set(found.accounts), found.words)

    everybody = {"0xA", "0xB", "0xC"}
    later = str(START + 60)
    assert told("Slashed", "0xA", amount=str(TOKEN), reason="3") == (
        "slash", {"0xA"}, "0xA lost 1.00 tokens: not revealed (task 3, round 1).",
    )  # fmt: skip
    assert told("HospitalAbsent", "0xB")[:2] == ("missed", {"0xB"})
    assert told("RoundVoided", reason="3")[:2] == ("void", everybody)
    assert told("RoundSettled", acceptedCohorts="1")[:2] == ("rejected", {"0xB"})
    assert told("RoundSettled", acceptedCohorts="3") is None
    floor = 100  # of an arena, in which the best alone is accepted, and all that improve earn
    assert told("RoundSettled", acceptedCohorts="1", medians=["300", "200"]) is None
    assert told("RoundSettled", acceptedCohorts="1", medians=["300", "99"])[:2] == ("rejected", {"0xB"})
    assert told("TaskStopped")[:2] == ("ended", everybody)
    assert told("TaskEnded", refund="0")[:2] == ("ended", {*everybody, "0xO"})
    assert told("PoolWiped", "0xA", in_task=False)[:2] == ("wiped", {"0xA"})
    assert told("CommissionSet", "0xA", in_task=False, commissionBps="750", effectiveAt=later) == (
        "commission", {"0xA"}, "0xA raises its commission to 7.5 % at 2026-09-21 14:14 UTC.",
    )  # fmt: skip
    assert told("CommissionSet", "0xA", in_task=False, commissionBps="750", effectiveAt=str(START)) is None
    assert told("WithdrawalAddressSet", "0xA", in_task=False, withdrawalAddress="0xB", effectiveAt=later) == (
        "address", {"0xA", "0xB"}, "Stake and rewards of 0xA are paid to 0xB from 2026-09-21 14:14 UTC on.",
    )  # fmt: skip
    assert told("Rewarded", "0xA") is None


# Lists


def test_put_watch_keeps_fifty_tasks_and_nodes(world: World) -> None:
    person, stranger = Person(world), Person(world)
    nodes = [f"0x{n:040x}" for n in range(51)]
    assert person.watch([*range(1, 51)], nodes[:50]).status_code == 200
    kept = person.ask("GET", "/watch").json()
    assert (len(kept["tasks"]), len(kept["nodes"])) == (50, 50)
    assert kept["account"] == person.wallet.address
    assert [person.watch([*range(1, 52)]).status_code, person.watch([], nodes).status_code] == [422, 422]
    assert person.ask("GET", "/watch").json() == kept
    assert stranger.ask("GET", "/watch").json()["tasks"] == []
    assert person.watch().json()["tasks"] == []


def test_put_watch_keeps_so_many_lists(tmp_path: Path) -> None:
    network = populated(tmp_path)
    with ExitStack() as servers:
        world = World.__new__(World)
        world.client = servers.enter_context(TestClient(app_of(network, limits={"watch_lists": 2})))
        found = [Person(world).watch([1]).status_code for _ in range(3)]
    assert found == [200, 200, 403]
    network.engine.dispose()


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/watch"), ("PUT", "/watch"), ("PUT", "/watch/channels"), ("DELETE", "/watch/channels/https")],
)
def test_lists_are_for_signed_in_accounts(world: World, method: str, path: str) -> None:
    body = None if method in ("GET", "DELETE") else {"tasks": [], "nodes": [], "address": "mailto:a@b.org"}
    assert world.client.request(method, f"/v1{path}", json=body).status_code == 401


# Webhooks


def test_a_webhook_is_told_once_it_has_proven_itself(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    secret = person.by_hook()
    assert secret not in str(person.channels)
    challenge = world.hooks.bodies[0]
    assert (challenge["type"], set(challenge)) == ("proof", {"type", "id", "challenge"})
    world.slash()
    world.turn()
    path, headers, body = world.hooks.got[-1]
    told = json.loads(body)
    assert path == f"/{person.wallet.address}"
    assert told == {
        "id": headers["webhook-id"], "type": "event", "kind": "slash", "task": TASK, "round": 1, "block": 3,
        "words": f"{NODE} lost 5.00 tokens: harmful cohort (task 1, round 1).",
    }  # fmt: skip
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    tag = hmac.digest(bytes.fromhex(secret), signed, "sha256")
    assert b64decode(headers["webhook-signature"].removeprefix("v1,")) == tag
    world.turn(60)
    assert len(world.hooks.got) == 2


def test_a_webhook_that_does_not_repeat_the_challenge_is_asked_three_times(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    world.hooks.proves = False
    person.give(world.hooks.url())
    world.slash()
    for _ in range(5):
        world.turn(4_000)
    assert [body["type"] for body in world.hooks.bodies] == ["proof"] * delivery.PROOFS
    assert person.channels[0]["state"] == "failed"


def test_a_webhook_may_not_lead_into_the_servers_network(world: World) -> None:
    person = Person(world)
    for address in ("https://localhost/", "https://127.0.0.1/", "http://a.example.org/", "ftp://a.example.org/"):
        assert person.give(address).status_code == 422
    world.teller = replace(world.teller, reach=replace(world.hooks.reach(), admits=Reach().admits))
    person.give(world.hooks.url())
    world.turn()
    assert world.hooks.got == []


def test_events_wait_for_confirmations_and_vanish_with_their_block(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    world.slash(confirmed=False)
    world.turn()
    world.network.pass_block()
    world.network.reorganise(world.network.block - 1)
    for _ in range(5):
        world.network.pass_block()
    world.turn()
    assert len(world.hooks.got) == 1  # the challenge


def test_a_deep_reorganisation_takes_back_what_was_told(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    before = world.network.block
    world.slash(amount=TOKEN)
    world.slash(amount=2 * TOKEN)
    world.turn()
    assert len(world.hooks.got) == 3
    world.network.reorganise(before + 4)  # the second
    world.slash(amount=2 * TOKEN)
    world.turn()
    first, second, back, again = world.hooks.bodies[1:]
    assert (back["type"], back["withdraws"], back["words"]) == ("withdrawn", second["id"], second["words"])
    assert (again["words"], again["id"] not in (first["id"], second["id"])) == (second["words"], True)
    world.turn(60)
    assert len(world.hooks.got) == 5


def test_an_event_that_comes_back_is_told_again_only_if_it_was_taken_back(world: World) -> None:
    person, network = Person(world), world.network
    person.watch(nodes=[NODE])
    person.by_hook()
    before = network.block

    def leave(fork: int, blocks: int = 0) -> None:
        network.reorganise(before + 1)
        network.fork = fork
        for _ in range(blocks):
            network.pass_block()

    world.slash()
    world.turn()
    leave(0)  # the node lags
    world.turn()
    world.slash()
    world.turn()
    leave(1, 5)
    with writing(world.engine) as connection:
        fill(connection, CONFIRMATIONS, "https", world.at)
    leave(0)  # before it was taken back
    world.slash()
    world.turn()
    assert [body["type"] for body in world.hooks.bodies] == ["proof", "event"]
    leave(1, 5)
    world.turn()
    leave(0)
    world.slash()
    world.turn()
    world.turn()
    first, back, again = world.hooks.bodies[1:]
    assert (back["withdraws"], again["words"]) == (first["id"], first["words"])
    assert again["id"] not in (first["id"], back["id"])


def test_an_unproven_address_gets_a_proof_alone(world: World) -> None:
    person, before = Person(world), world.network.block
    person.watch(nodes=[NODE])
    person.by_mail()
    world.slash()
    world.turn(1)
    person.give("mailto:new@b.org")
    world.turn(1)
    world.network.reorganise(before + 1)
    for _ in range(6):
        world.network.pass_block()
    for _ in range(3):
        world.turn(4_000)
    assert [mail["Subject"] for mail in world.mails.got] == ["Confirm this address", "1 event", "Confirm this address"]


class Killed(BaseException):
    pass


def killed(*_: object) -> None:
    raise Killed


def test_the_outbox_sends_again_after_a_crash_with_the_same_id(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each kind of database."""
    with ExitStack() as servers:
        world = World(tmp_path, servers, database_url)
        person = Person(world)
        person.watch(tasks=[TASK])
        person.by_hook()
        world.slash()
        with monkeypatch.context() as patch:
            patch.setattr(Teller, "_note", killed)
            with pytest.raises(Killed):
                world.turn()
        with writing(world.engine) as connection:  # looks again at events that are there
            fill(connection, CONFIRMATIONS, "https", world.at)
        world.turn(1)
        assert len(world.hooks.got) == 2  # the address is held
        world.turn(delivery.HELD)
        world.turn(1)
        _, one, other = world.hooks.bodies
        assert one == other
        assert sorted(row.state for row in world.rows()) == ["proven", "sent"]
        person.by_mail()


def test_an_address_that_fails_waits_and_holds_up_no_other(world: World) -> None:
    good, bad = Person(world), Person(world)
    for person in (good, bad):
        person.watch(nodes=[NODE])
        person.by_hook()
    with Session(world.engine) as db, db.begin():  # nobody listens there
        row = db.get(ChannelRow, (bad.wallet.address, "https"))
        assert row is not None
        row.address = "https://hook.example.org:1/"
    for _ in range(3):
        world.slash()
        world.turn(20)
    assert [path for path, _, _ in world.hooks.got[2:]] == [f"/{good.wallet.address}"] * 3
    for seconds in (delivery.PATIENCE + 1, 4_000, 4_000):
        world.turn(seconds)
    assert bad.channels[0]["state"] == "failed"
    assert sorted(row.state for row in world.rows()) == ["dropped"] * 3 + ["proven"] * 2 + ["sent"] * 3


def test_a_slow_webhook_gets_what_a_run_has_time_for_and_nothing_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]  # seconds, of runs
    monkeypatch.setattr(delivery, "SECONDS", 1.0)
    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: clock[0], time=time.time))
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    for amount in range(1, 6):
        world.slash(amount=amount * TOKEN)
    usual = world.teller

    def slow(host: str, port: int) -> list[str]:
        usual.run(world.at)  # another run overlaps
        clock[0] += 0.6
        return ["127.0.0.1"]

    world.teller = replace(usual, reach=world.hooks.reach(resolve=slow))
    world.turn()
    assert len(world.hooks.got) == 3  # a proof, and a message begun at 0 s and at 0.6 s
    world.teller = usual
    world.turn(1)
    assert [body["words"].split()[2] for body in world.hooks.bodies[1:]] == [f"{n}.00" for n in range(1, 6)]


def test_an_unexpected_error_holds_up_no_other_address(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = Person(world), Person(world)
    for person in (good, bad):
        person.watch(nodes=[NODE])
        person.by_hook()
    usual = Teller._post

    def broken(self: Teller, channel: ChannelRow, message: MessageRow) -> None:
        if channel.account == bad.wallet.address:
            raise KeyError
        usual(self, channel, message)

    monkeypatch.setattr(Teller, "_post", broken)
    world.slash()
    world.turn()
    assert [path for path, _, _ in world.hooks.got[2:]] == [f"/{good.wallet.address}"]


def test_a_webhook_that_is_gone_gets_nothing_more(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    world.hooks.status = 410
    world.slash()
    world.turn()
    assert person.channels[0]["state"] == "failed"
    world.slash()
    world.turn(4_000)
    assert len(world.hooks.got) == 2


def test_an_address_has_a_hundred_messages_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_WAITING", 3)
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    for amount in range(1, 5):
        world.slash(amount=amount * TOKEN)
    world.turn()
    assert [body["words"].split()[2] for body in world.hooks.bodies[1:]] == ["2.00", "3.00", "4.00"]


# Mails


def test_a_mail_address_is_told_once_its_link_is_used(world: World) -> None:
    person = Person(world)
    person.watch(tasks=[TASK])
    assert person.give("mailto:Ward@Hospital.Example.ORG").json()["secret"] == ""
    world.turn()
    world.slash()
    world.turn(3_600)
    (asked,) = world.mails.got  # no event before the opt-in
    assert (asked["To"], asked["List-Unsubscribe"]) == ("Ward@hospital.example.org", None)
    token = link(world, "confirm")
    (row,) = world.rows(ChannelRow)
    assert row.token_hash == hashlib.sha256(token.encode()).digest()
    assert [confirm(world, one).status_code for one in ("0" * 64, token, token)] == [404, 200, 404]
    for amount in (1, 2):
        world.slash(amount=amount * TOKEN)
    world.turn(1)
    told = world.mails.got[-1]
    assert (len(world.mails.got), told["Subject"]) == (2, "2 events")
    assert "lost 1.00 tokens" in world.mails.text()
    assert f"{ORIGIN}/#/tasks/1" in world.mails.text()
    stop = told["List-Unsubscribe"].strip("<>").removeprefix(ORIGIN)
    assert stop == f"/v1/watch/stop?token={link(world, 'stop')}"
    ended = [world.client.post(one).status_code for one in (stop[:-1] + ("0" if stop[-1] != "0" else "1"), stop, stop)]
    assert ended == [404, 200, 404]
    assert person.channels == []
    world.slash()
    world.turn(7_200)
    assert len(world.mails.got) == 2


def test_a_link_is_valid_for_a_day_and_the_latest_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(world)
    person.give("mailto:a@b.org")
    world.turn()
    old = link(world, "confirm")
    person.give("mailto:c@d.org")
    world.turn()
    assert confirm(world, old).status_code == 404
    late = time.time() + delivery.TOKEN_LIFE + 1
    with monkeypatch.context() as patch:
        patch.setattr("consilium_server.api.watch.time.time", lambda: late)
        assert confirm(world, link(world, "confirm")).status_code == 404
    assert confirm(world, link(world, "confirm")).status_code == 200


def test_a_mailbox_is_asked_three_times_by_all_strangers(world: World) -> None:
    addresses = ("victim@gmail.com", "Vic.tim@Gmail.com", "victim+1@gmail.com", "VICTIM+2@gmail.com")
    assert [Person(world).give(f"mailto:{one}").status_code for one in addresses] == [200, 200, 200, 429]
    assert Person(world).give("mailto:victim@b.org").status_code == 200
    assert Person(world).give("mailto:vic.tim@b.org").status_code == 200
    world.turn()
    assert len(world.mails.got) == 5


def test_a_mailbox_is_not_locked_out_by_proofs_that_were_not_sent_or_were_its_own(world: World) -> None:
    stranger, owner = Person(world), Person(world)
    for _ in range(delivery.PROOFS):
        assert stranger.give("mailto:owner@b.org").status_code == 200
    stranger.ask("DELETE", "/watch/channels/mailto")
    owner.by_mail("owner@b.org")
    assert len(world.mails.got) == 1  # a channel that was replaced or deleted asks nobody
    for _ in range(2):
        assert stranger.give("mailto:owner@b.org").status_code == 200
        world.turn(delivery.MAIL_EVERY)
    assert [one.give("mailto:owner@b.org").status_code for one in (stranger, owner)] == [429, 200]


def test_a_host_is_asked_a_bounded_number_of_times_a_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROOFS, "https", (2, 1))
    owner = Person(world)
    owner.by_hook()
    codes = [Person(world).give(world.hooks.url(f"/{n}")).status_code for n in range(2)]
    assert (codes, owner.give(world.hooks.url("/moved")).status_code) == ([200, 429], 200)


def test_nobody_ends_anothers_mails(world: World) -> None:
    one, other = Person(world), Person(world)
    one.by_mail("one@b.org")
    other.by_mail("other@b.org")
    world.slash()
    assert one.ask("DELETE", "/watch/channels/mailto").status_code == 200
    assert [channel["address"] for channel in other.channels] == ["other@b.org"]
    forged = f"{other.wallet.address}-{'0' * 32}"
    assert world.client.post(f"/v1/watch/stop?token={forged}").status_code == 404


def test_another_address_gets_nothing_of_the_first_ones(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_mail("first@b.org")
    world.slash()
    with writing(world.engine) as connection:
        fill(connection, CONFIRMATIONS, world.teller.offers, world.at)
    person.give("mailto:second@b.org")
    world.turn(3_600)
    assert [(mail["To"], mail["Subject"]) for mail in world.mails.got[1:]] == [("second@b.org", "Confirm this address")]


def test_an_address_gets_twenty_mails_a_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAILS_A_DAY", 3)
    world.at = (world.at // outbox.DAY + 1) * outbox.DAY  # a day that begins
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_mail()
    for _ in range(4):
        world.slash()
        world.turn(delivery.MAIL_EVERY)
    assert len(world.mails.got) == 3
    world.turn(outbox.DAY)
    assert (len(world.mails.got), world.mails.got[-1]["Subject"]) == (4, "2 events")


def test_all_addresses_together_get_so_many_mails_a_day(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "ASKED_KEPT", 5 * outbox.DAY)  # the next day may be a day away from now
    world.at = (world.at // outbox.DAY + 1) * outbox.DAY
    world.teller = replace(world.teller, mails_per_day=20)
    people = [Person(world) for _ in range(5)]
    for number, person in enumerate(people):
        person.watch(nodes=[NODE])
        person.give(f"mailto:{number}@b.org")
    world.turn()
    world.turn(1)
    assert len(world.mails.got) == 2  # a tenth may be proofs
    proven = str(world.mails.got[0]["To"])
    assert confirm(world, re.findall(r"confirm=(\S+)", world.mails.text(0))[0]).status_code == 200
    world.slash()
    world.turn(1)
    assert (len(world.mails.got), world.mails.got[-1]["To"], world.mails.got[-1]["Subject"]) == (3, proven, "1 event")
    assert capsys.readouterr().out.count('"mails-used-up"') == 1
    world.turn(2.1 * outbox.DAY)  # longer than PATIENCE
    assert len(world.mails.got) == 5
    assert {person.channels[0]["state"] for person in people} == {"asked", "confirmed"}


def test_mails_of_a_deleted_address_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAILS_A_DAY", 3)
    world.at = (world.at // outbox.DAY + 1) * outbox.DAY
    person = Person(world)
    person.watch(nodes=[NODE])
    for name in "abcd":
        assert person.give(f"mailto:{name}@b.org").status_code == 200
        world.turn(1)
        person.ask("DELETE", "/watch/channels/mailto")
        assert person.channels == []
    assert len(world.mails.got) == 3


def test_addresses_and_lists_that_reach_nobody_expire(world: World) -> None:
    told, untold = Person(world), Person(world)
    for person in (told, untold):
        person.watch(nodes=[NODE])
    told.by_hook()
    untold.give("mailto:a@b.org")
    world.turn(outbox.ASKED_KEPT + 60)
    assert [row.account for row in world.rows(ChannelRow)] == [told.wallet.address]
    world.turn(outbox.LISTS_KEPT)
    assert [row.account for row in world.rows(WatchRow)] == [told.wallet.address]


# Off


@pytest.mark.parametrize(
    ("changes", "offers"), [({"mails": None}, ["https"]), ({"reach": None}, ["mailto"]), ({"age": 700}, [])]
)
def test_a_server_that_tells_no_such_address_says_so(world: World, changes: dict[str, Any], offers: list[str]) -> None:
    age = changes.pop("age", 0)
    world.teller = replace(world.teller, **changes)
    world.turn(-age)
    person = Person(world)
    assert person.ask("GET", "/watch").json()["offers"] == offers
    codes = {kind: person.give(one).status_code for kind, one in ADDRESSES.items()}
    assert codes == {kind: 200 if kind in offers else 403 for kind in ADDRESSES}


ADDRESSES = {"https": "https://a.example.org/", "mailto": "mailto:a@b.org"}


def test_matured_unbonding_is_told(world: World) -> None:
    person = Person(world)
    network = world.network
    person.watch(nodes=[OPERATOR])
    person.by_hook()
    at = START + 100
    with network.mined():
        network.unbond(OPERATOR, HOSPITALS[0], 0, at, shares=5)
        network.unbond(OPERATOR, HOSPITALS[0], 1, at, shares=5)
    with network.mined():
        network.unbond(OPERATOR, HOSPITALS[0], 1, at, shares=0)  # redelegated
    world.turn(61)
    assert len(world.hooks.got) == 1  # the tables lag behind the clock
    with network.mined(seconds=30):
        pass
    for seconds in (61, 61):
        world.turn(seconds)
    (told,) = world.hooks.bodies[1:]
    assert (told["kind"], told["task"]) == ("matured", None)


def test_nothing_of_the_past_is_told(world: World) -> None:
    world.slash()
    world.turn()
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    world.turn(60)
    assert len(world.hooks.got) == 1


def test_old_messages_are_forgotten(world: World) -> None:
    person = Person(world)
    person.watch(nodes=[NODE])
    person.by_hook()
    world.slash()
    world.turn()
    assert len(world.rows()) == 2
    world.turn(31 * 86_400)
    assert world.rows() == []


def notify_of(folder: Path) -> dict[str, Any]:
    write_private_file(folder / "smtp", "hush\n")
    mail = {
        "host": "smtp.example.org",
        "sender": "told@Example.org",
        "user": "told",
        "password_file": str(folder / "smtp"),
    }
    return {"origin": ORIGIN, "webhook_ports": [443, 8443], "mail": mail}


def test_a_worker_tells_as_its_settings_say(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'index.sqlite'}")
    given = NotifySettings.model_validate(notify_of(tmp_path))
    teller = teller_of(given, engine)
    assert teller.offers == "https mailto"
    assert teller.reach == Reach(ports=frozenset({443, 8443}))
    assert teller.mails == MailServer("smtp.example.org", 465, True, "told@example.org", "told", "hush")
    off = teller_of(given.model_copy(update={"webhooks": False, "mail": None}), engine)
    assert off.offers == ""
    (tmp_path / "smtp").chmod(0o644)
    with pytest.raises(KeystoreError, match="chmod 600"):
        teller_of(given, engine)
    engine.dispose()


@pytest.mark.deep
def test_a_worker_with_notify_offers_to_tell(local_chain: LocalChain, tmp_path: Path) -> None:
    with Worker(local_chain, tmp_path / "worker", notify=notify_of(tmp_path)) as worker:
        until(lambda: worker.told("working"))
        until(lambda: worker.jobs().get(("tell", ""), {}).get("state") == "done")
        assert worker.end() == 0
        assert worker.told("job-failed") == []
        assert "hush" not in worker.said
