"""An indexer that its test kills: in ranges so short that a kill falls between, before and within transactions.

Run as `python index_killed.py CONFIG`; it follows the chain as `consilium server index` does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from consilium_chain.settings import read_settings
from consilium_server.config import IndexerSettings
from consilium_server.index import indexer
from consilium_server.index.indexer import index

indexer.FIRST_SPAN = indexer.LONGEST_SPAN = 3
index(read_settings(Path(sys.argv[1]), IndexerSettings))
