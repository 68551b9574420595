"""The aggregator's settings."""

from __future__ import annotations

from typing import Annotated

from consilium_chain.settings import NodeSettings
from pydantic import Field


class AggregatorSettings(NodeSettings):
    superlink_port: Annotated[int, Field(ge=1, le=65_535, description="port of the SuperLink, on loopback")]
