"""`consilium hospital check-data`: a hospital's data held against a task, before or without saying yes to it."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import kind_of
from consilium_client.errors import ConsentError
from consilium_client.home import HospitalHome
from rich.console import Console

from consilium_cli.hospital.profile_screen import WIDTH, screen
from consilium_cli.hospital.status import Visit


def check_data(
    folder: Path, number: int | None, task_file: Path | None, data: Path | None, mapping: Path | None
) -> None:
    """Shows what can be read first, then raises what is wrong with it, if something is."""
    if task_file is not None:
        spec = _spec_in(task_file)
    elif number is not None:
        spec = Visit.of(folder).task(number).spec
    else:
        approved = HospitalHome.open(folder).approved_tasks()
        raise ConsentError("WhichTask", approved=", ".join(map(str, approved)) or "none")
    if data is None or task_file is None:  # with files of both, no home is needed
        settings = HospitalHome.open(folder).settings
        data, mapping = data or settings.data, mapping or settings.mapping
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    kind = kind_of(spec.data)
    raw = kind.read(data, spec.data, mapping)
    console.print(screen(kind.profile(raw, spec)))
    kind.examples(raw, spec.data)
    console.print(f"[green]The {spec.data.things} fit.[/green]")


def _spec_in(path: Path) -> TaskSpec:
    try:
        return parse_task_spec(path.read_bytes())
    except OSError as error:
        raise SpecInvalid(f"{path} cannot be read: {error.strerror}; pass the path of a task file") from error
