"""Imports a plug-in's code: in the process that computes it, and in no other."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from consilium_chain.tasks.plugin_specs import NamedPlugin

from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.installed import verified

IMPORT = "its import"


def imported(spec: NamedPlugin) -> Callable[..., Any]:
    """Its entry point. Raises PluginError (PluginFailed, and as `verified` does)."""
    found = verified(spec)
    # A compiled file beside a module is in no RECORD, and Python would take it instead of the module.
    sys.pycache_prefix = "/dev/null"
    importlib.invalidate_caches()
    for name in found.record.importable:
        own = importlib.machinery.PathFinder.find_spec(name)
        paths = [] if own is None else [own.origin, *(own.submodule_search_locations or ())]
        path = next((one for one in paths if one is not None), None)
        if name in sys.modules or path is None or not Path(path).resolve().is_relative_to(found.root.resolve()):
            why = f"another module has the name {name} here"
            raise PluginError("PluginMalformed", plugin=spec.in_words, why=why)
    where, _, name = found.entries[spec.entry].value.partition(":")
    try:
        entry: Any = reduce(getattr, name.split("."), importlib.import_module(where))
    except (Exception, SystemExit) as error:
        raise failed(spec, IMPORT, told(error)) from None
    if not callable(entry):
        raise failed(spec, IMPORT, f"{name} is no function or class")
    return entry  # type: ignore[no-any-return]  # checked by its results


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if f"{error}" else type(error).__name__


def failed(spec: NamedPlugin, step: str, why: str) -> PluginError:
    return PluginError("PluginFailed", plugin=spec.in_words, step=step, why=why)
