"""Options of several commands, worded once. Imported before anything heavy is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HOSPITAL_HOME, VOTER_HOME = Path("~/.consilium/hospital"), Path("~/.consilium/voter")

# For readers of a chain and an artifact store without a home.
ArtifactsOption = Annotated[
    list[str],
    typer.Option(
        help="folder or URL of the artifact store, or of a copy; may be repeated: the first, if it is a folder, keeps"
        " artifacts that come from the others"
    ),
]
RpcOption = Annotated[
    str,
    typer.Option(
        envvar="CONSILIUM_RPC_URL", help="HTTP endpoint of a chain node; put a URL with a key into the variable"
    ),
]
AddressBookOption = Annotated[Path, typer.Option(help="the contracts' addresses, JSON")]

# For the makers of a home; None is asked for.
NewChainUrlOption = Annotated[str | None, typer.Option("--chain-url", help="HTTP endpoint of a chain node")]
NewAddressBookOption = Annotated[
    Path | None, typer.Option("--address-book", help="the contracts' addresses, JSON; copied into the home")
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="make a home for the contracts of --address-book that shares this other home's account, policy, data and"
        " privacy ledger",
    ),
]
NewArtifactsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--artifacts",
        help="folder or URL of the artifact store; may be repeated: this node's own, then mirrors",
    ),
]
NewMappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="mapping of its columns to tasks' columns, TOML (docs/data.md)")
]
NewKeystoreOption = Annotated[
    Path | None,
    typer.Option("--keystore", help="encrypted key file of an existing account; without it a new one is made"),
]
NewPasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file", help="file with the key file's password, mode 600; without it the password is asked for"
    ),
]
NewOperatorsOption = Annotated[
    list[str] | None,
    typer.Option("--operator", help='account whose tasks may be joined, or "any"; may be repeated'),
]
TaskArgument = Annotated[int, typer.Argument(min=1, metavar="TASK", help="number of the task")]
TokensArgument = Annotated[
    int | None, typer.Argument(min=1, metavar="[TOKENS]", help="number of tokens to unstake; all, if fewer are staked")
]
YesOption = Annotated[bool, typer.Option("--yes", help="do not ask")]
