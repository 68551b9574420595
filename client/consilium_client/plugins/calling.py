"""Answers of the process that calls a plug-in's metric or reader. It loads no library of models."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from consilium_chain.tasks.plugin_specs import MetricPlugin, NamedPlugin, ReaderPlugin

from consilium_client.plugins.importing import failed, imported
from consilium_client.plugins.packing import READING, Unpackable, packed
from consilium_client.programs.confined import Progress
from consilium_client.programs.frames import Arrays
from consilium_client.programs.serving import Answer, Found

CALL: Final = "its call"


def rehearse() -> None:
    np.random.default_rng(0).permutation(3)


def read(header: Mapping[str, Any], arrays: Arrays, progress: Progress) -> Mapping[str, Answer]:
    """Imports the plug-in."""
    of_readers = header["group"] == "readers"
    kind = ReaderPlugin if of_readers else MetricPlugin
    spec: NamedPlugin = kind.model_validate(header["model"])
    call = imported(spec)
    if of_readers:
        return {"read-data": lambda header, arrays, _: _data(spec, call, header)}
    return {"measure": lambda header, arrays, _: _worth(spec, call, arrays)}


def _worth(spec: NamedPlugin, metric: Callable[..., Any], arrays: Arrays) -> Found:
    found = _called(spec, CALL, lambda: metric(arrays["labels"], arrays["predictions"], **spec.arguments))
    if not isinstance(found, Real):
        raise failed(spec, CALL, f"it gives {type(found).__name__}, and no number")
    return {"worth": np.array([_called(spec, CALL, lambda: float(found))])}


def _data(spec: NamedPlugin, reader: Callable[..., Any], header: Mapping[str, Any]) -> Found:
    facts, arguments = (MappingProxyType(dict(one)) for one in (header["facts"], spec.arguments))
    found = _called(spec, READING, lambda: reader(header["path"], facts, arguments))
    try:
        return packed(found, header["facts"])
    except Unpackable as error:
        raise failed(spec, READING, str(error)) from None


def _called(spec: NamedPlugin, step: str, call: Callable[[], Any]) -> Any:
    """Each call draws alike. Raises PluginError (PluginFailed) with the error's kind: its text may tell of rows."""
    np.random.seed(0)
    random.seed(0)
    try:
        return call()
    except (Exception, SystemExit) as error:
        raise failed(spec, step, type(error).__name__) from None
