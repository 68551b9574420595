"""Several machines of one account: one has a task's lease, and all know the rounds' secrets, unlike all others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from consilium_server.aggregator import sharing
from consilium_server.aggregator.round_secrets import RoundSecrets, SecretFiles
from consilium_server.aggregator.sharing import Lease, SharedSecrets, holder, known_owner, owner_of, port_of, take
from consilium_server.config import AggregatorSettings
from consilium_server.database.engine import open_database, updating
from consilium_server.database.tables import AggregatorRow, SealedSecretsRow
from consilium_server.errors import DecoysLost, ServerError
from consilium_server.index.store import table_of
from consilium_zk.curve import GENERATOR
from consilium_zk.decoys import seed_commitment
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_driver import Postgres
from pydantic import ValidationError
from raised_faults import raises_fault
from sqlalchemy import Engine, select, text, update
from worker_driver import until

TASK_KEY = "31337-0x00000000000000000000000000000000000000aa-3"
KEY, OTHER_KEY = b"\x11" * 32, b"\x12" * 32
SEALED = table_of(SealedSecretsRow)
SECRETS = RoundSecrets(bytes(range(32)), {0: [(2**250 + 7, 5)], 2: [(1, 2**200)]}, {1: [GENERATOR]}, 0b11)


@pytest.fixture
def database_url(postgres: Postgres) -> str:
    """Machines share PostgreSQL alone."""
    return postgres.database()


def lease(database: Engine, owner: str, renewal: float = 100.0) -> Lease:
    return Lease(database, TASK_KEY, 9_100, owner, renewal)


@contextmanager
def away(postgres: Postgres, database: Engine) -> Iterator[None]:
    """The database takes no connections, and has ended those that there were."""
    name = database.url.database
    with psycopg.connect(host=str(postgres.folder), dbname="postgres", user="postgres", autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def is_lost(one: Lease) -> bool:
    try:
        one.require()
    except ServerError as error:
        return error.name == "LeaseLost"
    return False


# Leases


def test_one_machine_at_a_time_has_a_task(database: Engine) -> None:
    with lease(database, "one"):
        held = holder(database, TASK_KEY)
        assert held is not None
        assert held.owner == "one"
        assert 0 <= held.seconds < 10 < held.left <= sharing.LEASE
        with raises_fault(ServerError, "LeaseHeld", match="another machine \\(one\\)"), lease(database, "two"):
            pass
        assert holder(database, "31337-0xbb-3") is None
    assert holder(database, TASK_KEY) is None
    with lease(database, "two") as second:
        second.require()


def test_of_machines_that_begin_at_once_one_has_the_task(database: Engine) -> None:
    machines = 5
    together = Barrier(machines)

    def begin(number: int) -> bool:
        together.wait()
        try:
            with lease(database, f"machine {number}"):
                together.wait()  # until all have tried
                return True
        except ServerError:
            together.wait()
            return False

    with ThreadPoolExecutor(machines) as pool:
        assert sum(pool.map(begin, range(machines))) == 1


def test_a_machine_that_does_not_renew_loses_the_task_and_learns_it(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "LEASE", 0.5)
    with lease(database, "cut off", renewal=2.0) as first:
        time.sleep(0.6)
        monkeypatch.setattr(sharing, "LEASE", 30.0)
        with lease(database, "second"):
            first.require()  # it does not know yet
            until(lambda: is_lost(first))
            with raises_fault(ServerError, "LeaseLost", match="All goes on there"):
                first.require()
            first.__exit__()
            held = holder(database, TASK_KEY)
            assert held is not None
            assert held.owner == "second"  # the first one's end releases nothing of the second's


def test_a_renewed_lease_does_not_end(database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LEASE", 3.0)
    with lease(database, "one", renewal=0.2) as first:
        time.sleep(4.0)
        with raises_fault(ServerError, "LeaseHeld"), lease(database, "two"):
            pass
        first.require()


def test_a_home_takes_its_own_lease_again(database: Engine, tmp_path: Path) -> None:
    """So a killed process costs no waiting where it is started again."""
    assert known_owner(tmp_path) is None
    owner = owner_of(tmp_path)
    assert owner_of(tmp_path) == known_owner(tmp_path) == owner
    assert owner_of(tmp_path / "other") != owner
    assert take(database, TASK_KEY, 9_100, owner)  # and is killed
    assert not take(database, TASK_KEY, 9_100, "two")
    with lease(database, owner_of(tmp_path)) as again:
        again.require()


def test_without_the_database_a_machine_goes_on_and_says_so_once(
    database: Engine, postgres: Postgres, capsys: pytest.CaptureFixture[str]
) -> None:
    with lease(database, "one", renewal=0.1) as first:
        with away(postgres, database):
            time.sleep(2.0)
            first.require()
        until(lambda: (held := holder(database, TASK_KEY)) is not None and held.left > sharing.LEASE - 1)
        first.require()
    told = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["lease-not-renewed"]


# Ports


def test_all_machines_have_one_port_for_a_task_and_another_for_each_task(database: Engine) -> None:
    def choose(others: dict[str, int]) -> int:
        return next(port for port in range(9_100, 9_200) if port not in others.values())

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: port_of(database, f"task {n % 4}", choose), range(16)))
    assert found == found[:4] * 4
    assert sorted(found[:4]) == [9_100, 9_101, 9_102, 9_103]
    with Lease(database, "task 2", 1, "one"):  # taking a lease does not change it
        assert port_of(database, "task 2", choose) == found[2]


# Secrets


def secrets_at(folder: Path, database: Engine, key: bytes = KEY, task_key: str = TASK_KEY) -> SharedSecrets:
    return SharedSecrets(SecretFiles(folder), database, task_key, key)


def test_another_machine_has_the_secrets(database: Engine, tmp_path: Path) -> None:
    first, second = (secrets_at(tmp_path / name, database) for name in ("one", "two"))
    assert second.latest(1) is None
    first.store(1, SECRETS)
    assert second.latest(1) == second.of(1, seed_commitment(SECRETS.seed), 0b11) == first.latest(1) == SECRETS
    assert SecretFiles(tmp_path / "one").of(1) == SECRETS  # also on its own disk
    assert not (tmp_path / "two").exists()


def test_a_damaged_file_costs_nothing_while_the_database_is_there(database: Engine, tmp_path: Path) -> None:
    own = secrets_at(tmp_path, database)
    own.store(1, SECRETS)
    (tmp_path / "round-1.json").write_bytes(b"{")
    assert own.of(1, None, 0b11) == own.latest(1) == SECRETS
    own.forget()
    with pytest.raises(DecoysLost):  # never a new seed: a publication with the earlier one may be on its way
        own.latest(1)


def test_a_lost_database_costs_nothing_while_the_disk_is_there(
    postgres: Postgres, database: Engine, tmp_path: Path
) -> None:
    secrets_at(tmp_path, database).store(1, SECRETS)
    other = open_database(postgres.database())
    assert secrets_at(tmp_path, other).of(1, None, 0b11) == SECRETS
    other.dispose()


def test_the_database_has_nothing_in_the_clear(postgres: Postgres, database: Engine, tmp_path: Path) -> None:
    """Neither in the row, nor in any file of the server, with its write-ahead log."""
    seed = bytes.fromhex("c0ffee") + b"\x5a" * 29
    blinder = int.from_bytes(b"\x3c" * 31, "big")
    secrets_at(tmp_path, database).store(1, RoundSecrets(seed, {0: [(blinder, blinder + 1)]}))
    with psycopg.connect(host=str(postgres.folder), dbname="postgres", user="postgres", autocommit=True) as admin:
        admin.execute("CHECKPOINT")
    forms = [seed, seed.hex().encode(), blinder.to_bytes(31, "big"), hex(blinder)[2:].encode(), KEY, KEY.hex().encode()]
    files = [path.read_bytes() for path in (postgres.folder / "data").rglob("*") if path.is_file()]
    assert [form for form in forms if any(form in content for content in files)] == []
    assert any(TASK_KEY.encode() in content for content in files)  # these are the files that have the row


@pytest.mark.parametrize("how", ["other account", "other task", "other round", "damaged", "cut", "empty"])
def test_a_row_that_is_not_this_rounds_is_refused(database: Engine, tmp_path: Path, how: str) -> None:
    secrets_at(tmp_path / "one", database).store(1, SECRETS)
    key, task_key, round_ = KEY, TASK_KEY, 1
    match how:
        case "other account":
            key = OTHER_KEY
        case "other task":
            task_key = TASK_KEY[:-1] + "4"
            change: dict[str, object] = {"task_key": task_key}
        case "other round":
            round_ = 2
            change = {"round": 2}
        case _:
            with updating(database) as connection:
                sealed = connection.scalar(select(SEALED.c.sealed))
            assert sealed is not None
            spoilt = {"damaged": sealed[:-1] + bytes([sealed[-1] ^ 1]), "cut": sealed[:20], "empty": b""}
            change = {"sealed": spoilt[how]}
    if how != "other account":
        with updating(database) as connection:
            connection.execute(update(SEALED).values(**change))
    reader = secrets_at(tmp_path / "two", database, key, task_key)
    if how != "other account":
        assert secrets_at(tmp_path / "one", database).of(1, None, 0b11) == SECRETS  # its own disk has them
    with pytest.raises(DecoysLost) as caught:
        reader.latest(round_)
    with pytest.raises(DecoysLost):
        reader.of(round_, None, 0b11)
    assert SECRETS.seed.hex() not in str(caught.value)


@settings(max_examples=20, deadline=None)
@given(attempts=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1)), min_size=1, max_size=6))
def test_each_publication_can_be_disclosed_whichever_reaches_the_chain(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, attempts: list[tuple[int, int]]
) -> None:
    """`attempts`: survivors, and the machine that tries to publish them, each with a seed of its own at its worst."""
    engine = open_database(postgres.database())
    folder = tmp_path_factory.mktemp("homes")
    machines = [secrets_at(folder / str(number), engine) for number in range(2)]
    last: dict[tuple[int, int], RoundSecrets] = {}
    for blinder, (survivors, machine) in enumerate(attempts):
        made = RoundSecrets(bytes([machine]) * 32, {0: [(blinder, 1)]}, survivors=survivors)
        machines[machine].store(1, made)
        last[survivors, machine] = made
        for reader in machines:
            found = {(known, by): reader.of(1, seed_commitment(bytes([by]) * 32), known) for known, by in last}
            assert found == last
            assert reader.latest(1) in last.values()
    assert machines[machine].latest(1) == made
    with pytest.raises(DecoysLost):
        machines[0].of(1, seed_commitment(bytes([2]) * 32), 0)
    engine.dispose()


def test_while_the_database_is_away_a_round_goes_on_and_its_secrets_are_shared_later(
    postgres: Postgres, database: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = (secrets_at(tmp_path / name, database) for name in ("one", "two"))
    with Lease(database, TASK_KEY, 9_100, "one", 0.1, own.share):
        with away(postgres, database):
            assert own.latest(1) is None
            own.store(1, SECRETS)
            assert own.latest(1) == own.of(1, seed_commitment(SECRETS.seed), 0b11) == SECRETS
            with pytest.raises(DecoysLost):
                other.of(1, None, 0)
            time.sleep(0.5)  # until a renewal fails
        until(lambda: other.latest(1) == SECRETS)
    events = {json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()}
    assert events == {"lease-not-renewed", "secrets-not-shared"}


def test_secrets_of_a_process_that_ended_before_it_could_share_them_are_shared(
    postgres: Postgres, database: Engine, tmp_path: Path
) -> None:
    with away(postgres, database):
        secrets_at(tmp_path / "one", database).store(1, SECRETS)
    again, other = (secrets_at(tmp_path / name, database) for name in ("one", "two"))
    assert other.latest(1) is None
    assert again.latest(1) == SECRETS
    again.share()
    assert other.latest(1) == SECRETS


def test_an_upgrade_by_the_other_machine_costs_no_bond(database: Engine, tmp_path: Path) -> None:
    """Its program is newer for a while, and others write nothing else from then on."""
    with updating(database) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    own, other = (secrets_at(tmp_path / name, database) for name in ("one", "two"))
    with Lease(database, TASK_KEY, 9_100, "one", 0.1, own.share) as held:
        own.store(1, SECRETS)
        assert other.latest(1) == SECRETS
        time.sleep(0.5)
        held.require()


def test_machines_that_share_at_once_lose_no_secrets(database: Engine, tmp_path: Path) -> None:
    machines, together = 4, Barrier(4)

    def attempt(number: int) -> RoundSecrets:
        found = replace(SECRETS, seed=bytes([number]) * 32)
        together.wait()
        secrets_at(tmp_path / str(number), database).store(1, found)
        return found

    with ThreadPoolExecutor(machines) as pool:
        made = list(pool.map(attempt, range(machines)))
    reader = secrets_at(tmp_path / "reader", database)
    assert [reader.of(1, seed_commitment(one.seed), one.survivors) for one in made] == made


def test_a_machine_that_lost_its_task_still_shares_what_it_published(
    postgres: Postgres, database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cut off from the database alone, so its publication may be on the chain."""
    monkeypatch.setattr(sharing, "LEASE", 0.3)
    own, other = (secrets_at(tmp_path / name, database) for name in ("one", "two"))
    with Lease(database, TASK_KEY, 9_100, "one", 0.5, own.share) as first:
        with away(postgres, database):
            own.store(1, SECRETS)
        until(lambda: take(database, TASK_KEY, 9_100, "two"))
        until(lambda: other.latest(1) == SECRETS)
        until(lambda: is_lost(first))


def test_rows_of_an_ended_task_are_deleted_and_no_others(database: Engine, tmp_path: Path) -> None:
    own, other = secrets_at(tmp_path / "a", database), secrets_at(tmp_path / "b", database, task_key="another")
    for one in (own, other):
        one.store(1, SECRETS)
    port_of(database, TASK_KEY, lambda _: 9_100)
    own.forget()
    with updating(database) as connection:
        assert [row.task_key for row in connection.execute(select(SEALED))] == ["another"]
        assert list(connection.execute(select(table_of(AggregatorRow)))) == []


def test_only_postgresql_is_shared() -> None:
    """A file of SQLite is one machine's."""
    with pytest.raises(ValidationError, match="machines share a PostgreSQL database"):
        AggregatorSettings.model_validate({"database_url": "sqlite:////tmp/x.sqlite"})
