"""The contract of a plug-in, as a test suite: its author runs it before a hospital does.

All of it goes the way that a node goes: by the process that has neither keys nor other files nor a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.family_spec import Data
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_chain.tasks.plugin_specs import MetricPlugin, ReaderPlugin
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.plugins import call_contracts, model_contract
from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.findings import Checks, Findings, noted
from consilium_client.plugins.installed import Installed, find, require_intact

_UNKNOWN: Final = {"unknown": [1]}  # shapes, until the plug-in has told its own


def examine(
    distribution: str, data: Data, arguments: Mapping[str, Any], entry: str | None = None,
    task: TaskSpec | None = None, path: Path | None = None,
) -> Findings:  # fmt: skip
    """Tries an installed plug-in on drawn rows, or a reader on the file or folder at `path`, for a task. `entry`: which
    of its entry points; needed if it has several.

    Raises PluginError (PluginMissing, PluginMalformed), ValueError for arguments that no task file can have, or if a
    reader has no task and no path.
    """
    found, findings = find(distribution), Findings()
    if not found.entries:
        why = "it has no entry point in consilium.models, consilium.metrics or consilium.readers"
        raise PluginError("PluginMalformed", plugin=found.in_words, why=why)
    if entry not in found.entries and (entry is not None or len(found.entries) > 1):
        why = f"name one of its entry points by --entry: {', '.join(found.entries)}"
        raise PluginError("PluginMalformed", plugin=found.in_words, why=why)
    checks = _suite(found, entry or next(iter(found.entries)), data, arguments, task, path, findings)
    with noted(findings, "its files are those of its RECORD"):
        require_intact(found)
    while findings.holds and (check := next(checks, None)) is not None:  # what follows a failure needs it
        name, run = check
        with noted(findings, name) as tell:
            tell(run() or "")
    return findings


def _suite(
    found: Installed, entry: str, data: Data, arguments: Mapping[str, Any], task: TaskSpec | None, path: Path | None,
    findings: Findings,
) -> Checks:  # fmt: skip
    record, group = found.record, found.entries[entry].group
    named = {
        "distribution": record.distribution, "version": record.version, "record": record.digest, "entry": entry,
        "arguments": dict(arguments),
    }  # fmt: skip
    if group == "metrics":
        return call_contracts.metric_suite(MetricPlugin.model_validate(named), max(2, len(data.classes)), findings)
    if group == "readers":
        if task is None or path is None:
            raise ValueError("a reader needs a task file and data to read: pass --task-file and --data")
        return call_contracts.reader_suite(ReaderPlugin.model_validate(named), task, path, findings)
    if not isinstance(data, TableSchema | ImageSchema):
        raise ValueError("a plug-in's model reads tables and images so far")
    spec = PluginSpec.model_validate({"name": "plugin", **named, "shapes": _UNKNOWN})
    return model_contract.suite(spec, data, findings)
