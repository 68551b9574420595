"""What the commands do: `consilium server index` and `consilium server reindex`."""

from __future__ import annotations

from consilium_core.logs import emit

from consilium_server.config import IndexerSettings
from consilium_server.database.engine import open_database, shown
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex


def index(settings: IndexerSettings) -> None:
    """Follows the chain for good. Raises as `Indexer.catch_up`, and what the settings raise."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    ledger, database = settings.connect(), open_database(settings.url)
    emit("indexing", database=shown(database), chain=ledger.connection.shown_url)
    Indexer(ledger, database, settings.store).follow()


def compare(settings: IndexerSettings, replace: bool) -> None:
    """Raises as `reindex`."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = open_database(settings.url)
    reindex(settings.connect(), database, settings.store, settings.home, replace)
