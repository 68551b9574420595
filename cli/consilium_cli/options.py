"""Options that several commands have, worded once. Imported by what is parsed before anything heavy is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Of who reads a chain and an artifact store, and has no home.
ArtifactsOption = Annotated[
    list[str],
    typer.Option(
        help="folder or URL of the artifact store, or of a copy; may be given more than once, and the first, if it is"
        " a folder, keeps what the others had to give"
    ),
]
RpcOption = Annotated[
    str,
    typer.Option(
        envvar="CONSILIUM_RPC_URL", help="HTTP endpoint of a chain node; one with a key belongs into the variable"
    ),
]
AddressBookOption = Annotated[Path, typer.Option(help="the contracts' addresses, JSON")]

# Of who makes a home; None is asked for.
NewChainUrlOption = Annotated[str | None, typer.Option("--chain-url", help="HTTP endpoint of a chain node")]
NewAddressBookOption = Annotated[
    Path | None, typer.Option("--address-book", help="the contracts' addresses, JSON; copied into the home")
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="a home for the contracts of --address-book, with all that this other home has: its account, policy, data"
        " and privacy ledger stay there, and serve both",
    ),
]
NewArtifactsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--artifacts",
        help="folder or URL of the artifact store; may be given more than once: this node's own, then mirrors",
    ),
]
NewMappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="how its columns become tasks' columns, TOML (docs/data.md)")
]
NewKeystoreOption = Annotated[
    Path | None,
    typer.Option("--keystore", help="encrypted key file of an account that is there already; else one is made"),
]
NewPasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file", help="file with the key file's password, mode 600; without it the password is asked for"
    ),
]
NewOperatorsOption = Annotated[
    list[str] | None,
    typer.Option("--operator", help='account whose tasks may be joined, or "any"; may be given more than once'),
]
TaskArgument = Annotated[int, typer.Argument(min=1, metavar="TASK", help="number of the task")]
TokensArgument = Annotated[
    int | None, typer.Argument(min=1, metavar="[TOKENS]", help="so much more to send home; all, if it is more")
]
YesOption = Annotated[bool, typer.Option("--yes", help="do not ask")]
