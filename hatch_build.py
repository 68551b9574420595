"""Refuses to build a distribution without the generated parts: git does not hold them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONTRACTS, DASHBOARD = "chain/consilium_chain/contracts/Tasks.json", "server/consilium_server/dashboard/index.html"
# Set by a container's build, which copies the dashboard beside what is installed.
WITHOUT_DASHBOARD = "CONSILIUM_WITHOUT_DASHBOARD"


class GeneratedParts(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation comes before its generated parts."""
        wanted = [CONTRACTS] if os.environ.get(WITHOUT_DASHBOARD) else [CONTRACTS, DASHBOARD]
        missing = [name for name in wanted if not (Path(self.root) / name).is_file()]
        if missing and version != "editable":
            raise RuntimeError(
                f"{', '.join(missing)} not built yet: run `make wheel`, which needs Node.js 20.19 or newer"
            )
