"""State of the API's process that its parts share."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.tasks.estimate import ChainTerms
from sqlalchemy import Engine

from consilium_server.api.limits import Limits
from consilium_server.api.metrics import Metrics
from consilium_server.api.sessions import Seal, Sessions
from consilium_server.config import ApiSettings


@dataclass
class State:
    """Settings, database, store, limits and metrics.

    `chain_head`: latest block of the chain node. `chain_terms`: gas prices and fees. Both are None until the node
    answers, and while it does not.
    """

    settings: ApiSettings
    deployment: Deployment
    engine: Engine
    store: ArtifactStore
    seal: Seal
    sessions: Sessions
    limits: Limits
    metrics: Metrics
    chain_head: int | None = None
    chain_terms: ChainTerms | None = None
