"""The commands that `consilium up` prints. Each runs as typed, in the folder where `up` was started."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from consilium_lab.up.network import StandingNetwork

BREAK = " \\\n      "  # a long command goes on in the next line


def commands_to_try(network: StandingNetwork, api: str, first: int | None) -> list[str]:
    """`api`: its URL. `first`: number of the first task, if there is one."""
    options, settings = network.options, network.settings
    book = ["--rpc", settings.chain_url, "--address-book", near(options.address_book)]
    store = ["--artifacts", near(settings.artifacts)]
    found = [shlex.join(["curl", f"{api}/v1/network"])]
    if first is not None:
        found += [_consilium("operator", "watch", str(first), *book)]
        found += [_consilium("verify", str(first), *store, *book)]
    again = ["--again"] if first is not None else []
    propose = _consilium("operator", "propose", near(network.task_file), "--aggregator", network.aggregator)
    found += [propose + BREAK + shlex.join([*store, *book, "--not-private", *again])]
    return [*found, _consilium("server", "jobs", "--config", near(network.server / "worker.toml"))]


def near(path: Path) -> str:
    """The path relative to the present folder, if it is below."""
    return os.fspath(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _consilium(*arguments: str) -> str:
    return shlex.join([*_program(), *arguments])


def _program() -> list[str]:
    """This installation's program by its path: another terminal may find another one by its name, or none."""
    program = Path(sys.executable).with_name("consilium")
    return [near(program)] if program.is_file() else [sys.executable, "-m", "consilium_cli.main"]
