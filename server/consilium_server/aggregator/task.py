"""The task for all parts of the aggregator: contract client, artifact store and terms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import SpecMismatch
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, RoundState, TaskParams
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.tasks.proposal import keeps, task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from sqlalchemy import Engine

from consilium_server.aggregator.round_secrets import SecretFiles, SecretStore
from consilium_server.aggregator.sharing import SharedSecrets
from consilium_server.config import AggregatorSettings


@dataclass(frozen=True)
class AggregatedTask:
    """A task that this aggregator serves. `replies_folder` has hospitals' replies. `database`: that of the account's
    machines, if they share one.
    """

    ledger: Ledger
    store: ArtifactStore
    number: int
    params: TaskParams
    sums: PublishedSums
    secrets: SecretStore
    replies_folder: Path
    database: Engine | None

    @classmethod
    def open(cls, settings: AggregatorSettings) -> AggregatedTask:
        """Reads the task from chain and store. Raises SpecMismatch, and the errors of chain, store and database."""
        ledger, number, home = settings.connect(), settings.task, settings.home
        store = ArtifactStore(settings.artifacts, home / CACHE)
        params = ledger.tasks.params(number)
        spec = parse_task_spec(store.get_file(params.spec_hash))
        if not keeps(params, task_params(spec, params.spec_hash, params.aggregator)):
            raise SpecMismatch(f"the terms of task {number} on chain differ from its file: ask its operator")
        task_key = ledger.folder_name(number)
        sums = PublishedSums(ledger, store, number, spec)
        secrets: SecretStore = (files := SecretFiles(home / "decoys" / task_key))
        database = settings.shared_database()
        if database is not None and ledger.connection.account is not None:
            secrets = SharedSecrets(files, database, task_key, bytes(ledger.connection.account.key))
        return cls(ledger, store, number, params, sums, secrets, home / "replies" / task_key, database)

    def blob_count(self, round_: int) -> int:
        """Blobs of one upload."""
        return self.params.statistics_blobs if round_ == STATISTICS_ROUND else self.params.update_blobs

    def cohorts(self, round_: int, round_state: RoundState) -> list[int]:
        """Bit maps of hospitals, by cohort."""
        return [self.ledger.tasks.cohort_members(self.number, round_, c) for c in range(round_state.cohorts)]

    def point_hashes(self, round_: int) -> dict[int, list[bytes]]:
        """The hashes of points of the hospitals that committed, by index, in the order of their commitments. Without
        those that a reorganisation took out of the task between the two reads.
        """
        index_of = {address: index for index, address in enumerate(self.addresses())}
        found = self.ledger.record.point_hashes(self.number, round_)
        return {index_of[hospital]: hashes for hospital, hashes in found.items() if hospital in index_of}

    def addresses(self) -> list[str]:
        """Hospitals' accounts, by index."""
        return [hospital.node for hospital in self.ledger.tasks.hospitals(self.number)]
