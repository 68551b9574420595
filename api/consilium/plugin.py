"""Plug-ins: installed wheels with models that no graph of operators can say, with metrics, or with readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilium_client.plugins.findings import Findings
    from consilium_client.plugins.record import Record

    from consilium.task import Task


@dataclass(frozen=True)
class InstalledPlugin:
    """`models`, `metrics`, `readers`: names of its entry points. `digest`: for tasks and policies, 64 hexadecimal
    digits. `fault`: the reason why no task can use it, if there is one.
    """

    distribution: str
    version: str
    models: tuple[str, ...]
    digest: str
    fault: str = ""
    metrics: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()


def plugins() -> tuple[InstalledPlugin, ...]:
    """The plug-ins that this Python finds, by name. None of their code runs, and their files are checked."""
    from consilium_client.plugins.errors import PluginError
    from consilium_client.plugins.installed import GROUPS, all_installed, require_intact

    found = []
    for one in all_installed():
        if isinstance(one, PluginError):
            found.append(InstalledPlugin(str(one.values["plugin"]), "", (), "", str(one)))
            continue
        record, fault = one.record, ""
        try:
            require_intact(one)
        except PluginError as error:
            fault = str(error)
        models, metrics, readers = (
            tuple(name for name, entry in one.entries.items() if entry.group == group) for group in GROUPS.values()
        )
        named = record.distribution, record.version, models, record.digest, fault
        found.append(InstalledPlugin(*named, metrics, readers))
    return tuple(found)


def plugin_digest(wheel: str | Path) -> Record:
    """The RECORD of a wheel's file, which installs nothing: `digest` is the one that tasks and policies name.

    Raises PluginError (PluginMalformed), OSError.
    """
    from consilium_client.plugins.installed import digest_of_wheel

    return digest_of_wheel(Path(wheel))


def check_plugin(
    distribution: str,
    *,
    entry: str | None = None,
    task: Task | None = None,
    columns: int = 4,
    classes: int = 2,
    arguments: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
) -> Findings:
    """Tries an installed plug-in on drawn rows, as a node would compute it. `entry`: its entry point, if it has
    several. `task`: gives the data's section; else it is a table of `columns` numbers and `classes`. `arguments`: for
    the plug-in. `data`: a file or folder for a reader, which needs `task`, too.

    `checks` has the result of each check, `notes` faults of a reader's data, `section` the lines of a task file or
    mapping, and `write_start` writes a model's start.
    Raises PluginError (PluginMissing, PluginMalformed), ValueError for arguments or data that no task can have.
    """
    from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
    from consilium_client.plugins.contract import examine

    schema: DataSchema
    if task is not None:
        schema = task.spec.data
    else:
        schema = TableSchema.model_validate({
            "label": "label", "classes": [f"class {at}" for at in range(classes)],
            "features": [{"name": f"column {at}", "min": -1, "max": 1} for at in range(columns)],
        })  # fmt: skip
    spec, path = None if task is None else task.spec, None if data is None else Path(data)
    return examine(distribution, schema, arguments or {}, entry, spec, path)
