"""An account's aggregator on two machines that share a database: one is lost in each phase, and the other goes on.

A whole network as the demo starts it, every party a process of its own on a real chain. A machine is a home. Each loses
all that it had, apart from its authority, which hospitals trust here without a proxy.
"""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from consilium_chain.ledger.structs import Phase
from consilium_core.private_files import write_private_file
from consilium_server.aggregator.round_secrets import SecretFiles
from consilium_server.aggregator.sharing import LEASE, holder
from consilium_server.database.engine import open_database, reading
from consilium_server.database.tables import AggregatorRow, SealedSecretsRow
from consilium_server.index.store import table_of
from postgres_driver import Postgres
from sqlalchemy import select
from test_aggregator_killed import Play, playing, start_others
from worker_driver import until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]  # each loss takes a lease, half a minute


class Machines:
    """Homes of one account, each used once. `url`: of their database."""

    def __init__(self, play: Play, url: str, folder: Path) -> None:
        self.play, self._folder, self._count = play, folder, 0
        self._settings = tomllib.loads((play.aggregator.home / "node.toml").read_text())
        self._settings |= {"database_url": url, "tls": str(play.aggregator.home / "tls")}
        self._url = url
        self.seeds: list[bytes] = []

    def new_home(self) -> None:
        """The aggregator's next process starts in an empty home."""
        own, network = self.play.aggregator, self.play.network
        self._count += 1
        home = self._folder / f"machine-{self._count}"
        home.mkdir(parents=True)
        write_private_file(home / "node.toml", tomli_w.dumps(self._settings | {"home": str(home)}))
        network.parties[network.parties.index(own)] = replace(own, home=home)

    def lose(self) -> None:
        """The machine is lost with all that is on it, and another one begins."""
        lost = self.play.aggregator
        for file in lost.home.glob("decoys/*/round-*.json"):
            found = SecretFiles(file.parent).latest(int(file.stem.partition("-")[2]))
            assert found is not None
            self.seeds.append(found.seed)
        self.new_home()
        self.play.kill(of=lost, before_start=self._await_lease)
        shutil.rmtree(lost.home)

    def _await_lease(self) -> None:
        """As workers do, which look at it before they start an aggregator."""
        network, database = self.play.network, open_database(self._url)
        task_key = network.treasury.folder_name(network.task)
        until(lambda: holder(database, task_key) is None, 2 * LEASE)
        database.dispose()


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "plain"])
def test_a_machine_is_lost_in_each_phase_and_the_other_goes_on(
    tmp_path: Path, postgres: Postgres, masked: bool
) -> None:
    url = postgres.database()
    with playing(tmp_path, masked=masked, starts=False) as play:
        machines = Machines(play, url, tmp_path / "machines")
        machines.new_home()
        play.start_aggregator()
        play.wait_for("joined")
        machines.lose()
        play.wait_for("joined", count=2)
        start_others(play)
        play.to_the_end([
            (0, Phase.COMMITTING), (0, Phase.UPLOADING), *([(0, Phase.PUBLISHING)] if masked else []),
            (1, Phase.FORMING), (1, Phase.UPLOADING), *([(1, Phase.PUBLISHING)] if masked else []), (1, Phase.DRAWING),
            (1, Phase.REVEALING), (2, Phase.SCORING), (2, Phase.ENDED),
        ], machines.lose)  # fmt: skip
        play.assert_as_without_a_kill()
        # The sum of a round is that of its survivors' commitments, which the chain checks: all are in it.
        ledger, task = play.network.treasury, play.network.task
        assert [ledger.tasks.round_state(task, n).survivors for n in range(3)] == [0b111] * 3

    database = open_database(url)
    with reading(database) as connection:
        left = [list(connection.execute(select(table_of(kind)))) for kind in (AggregatorRow, SealedSecretsRow)]
    database.dispose()
    assert left == [[], []]  # the task has ended
    assert len(set(machines.seeds)) >= 2
    files = [path.read_bytes() for path in (postgres.folder / "data").rglob("*") if path.is_file()]
    shown = [seed for seed in machines.seeds for form in (seed, seed.hex().encode()) for one in files if form in one]
    assert shown == []
