"""`consilium hospital check-data`: a table held against a task, before or without saying yes to it."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.data_schemas import TableSchema
from consilium_chain.errors import SpecInvalid
from consilium_chain.task_spec import TaskSpec, parse_task_spec
from consilium_client.errors import WhichTask
from consilium_client.home import HospitalHome
from consilium_client.mapping import read_mapping
from consilium_client.profile import profile
from consilium_client.tables import checked, read_raw
from rich.console import Console

from consilium_cli.hospital.looking import Visit
from consilium_cli.hospital.profile_screen import WIDTH, screen


def check_data(
    folder: Path, number: int | None, task_file: Path | None, data: Path | None, mapping: Path | None
) -> None:
    """Shows the table first, then raises what is wrong with it, if something is."""
    if task_file is not None:
        spec = _spec_in(task_file)
    elif number is not None:
        spec = Visit.of(folder).task(number).spec
    else:
        raise WhichTask(HospitalHome.open(folder).approved_tasks())
    if data is None:  # with a file of its own, a table needs no home
        settings = HospitalHome.open(folder).settings
        data, mapping = settings.data, mapping or settings.mapping
    schema = spec.data
    if not isinstance(schema, TableSchema):
        raise NotImplementedError
    raw = read_raw(data, schema, read_mapping(mapping, schema))
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    console.print(screen(profile(raw, spec)))
    checked(raw, schema)
    console.print("[green]The table fits.[/green]")


def _spec_in(path: Path) -> TaskSpec:
    try:
        return parse_task_spec(path.read_bytes())
    except OSError as error:
        raise SpecInvalid(f"{path} cannot be read: {error.strerror}; pass the path of a task file") from error
