"""The roles that a machine may have. Imported before anything heavy is."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    API = "api"
    INDEX = "index"
    WORKER = "worker"
    AGGREGATOR = "aggregator"
    SPONSOR = "sponsor"
    HOSPITAL = "hospital"
    VOTER = "voter"
