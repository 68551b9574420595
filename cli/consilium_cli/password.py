"""`consilium change-password`: a key file's, for every role's key file is of one kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def change_password_command(
    key_file: Annotated[Path, typer.Argument(help="encrypted key file (Web3 Secret Storage)")],
    password_file: Annotated[Path, typer.Option(help="file with its password, one line, mode 600")],
    new_password_file: Annotated[Path, typer.Option(help="file with the password that it is to have, likewise")],
) -> None:
    """Encrypts a key file anew with another password. The account and its key stay the same."""
    from consilium_chain.keystore import change_password

    address = change_password(key_file, password_file, new_password_file)
    typer.echo(f"{key_file}, the key of {address}, opens with the password in {new_password_file} from now on")
    typer.echo(f"Next: mv {new_password_file} {password_file}, before anything that uses them is started again.")
    typer.echo("What runs goes on. Copies of the key file still open with the password before: replace them.")
