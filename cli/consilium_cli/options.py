"""Options that several commands share. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# For commands that read a chain and an artifact store without a home.
ArtifactsOption = Annotated[
    list[str],
    typer.Option(
        help="folder or URL of the artifact store, or of a copy; may be repeated: if the first is a folder, it keeps"
        " artifacts from the others"
    ),
]
RpcOption = Annotated[
    str,
    typer.Option(
        envvar="CONSILIUM_RPC_URL",
        help="URL of a chain node (http or ws); if the URL holds a key, set the variable instead",
    ),
]
AddressBookOption = Annotated[Path, typer.Option(help="file with the contracts' addresses, JSON")]

KeystoreOption = Annotated[
    Path | None, typer.Option(help="encrypted key file of the account to use; not needed on the local chain")
]
PasswordFileOption = Annotated[Path | None, typer.Option(help="file with the key file's password, mode 600")]

# For commands that make a home. They ask for a value that is None.
NewInviteOption = Annotated[
    str | None,
    typer.Option("--invite", help="the operator's invite, a file or a link: then only the data are asked for"),
]
NewChainUrlOption = Annotated[str | None, typer.Option("--chain-url", help="URL of a chain node (http or ws)")]
NewAddressBookOption = Annotated[
    Path | None,
    typer.Option("--address-book", help="file with the contracts' addresses, JSON; it is copied into the home"),
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="make a home for the contracts of --address-book, with the account, policy, data and privacy ledger of"
        " this other home",
    ),
]
NewArtifactsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--artifacts", help="folder or URL of the artifact store; may be repeated: first this node's own, then mirrors"
    ),
]
NewMappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="file that maps its columns to a task's columns, TOML (docs/data.md)")
]
NewReportToOption = Annotated[
    str | None,
    typer.Option(
        "--report-to",
        help="https address of the operator's API, which gets each ended task's report if `share_evaluation` in"
        " policy.toml allows it",
    ),
]
NewWithdrawalAddressOption = Annotated[
    str | None,
    typer.Option(
        "--withdrawal-address",
        help="account that gets this node's own stake and rewards, set when it first stakes; by default its own",
    ),
]
NewKeystoreOption = Annotated[
    Path | None,
    typer.Option("--keystore", help="encrypted key file of an existing account; by default a new account is made"),
]
NewPasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        help="file with the key file's password, mode 600; by default the command asks for the password",
    ),
]
NewOperatorsOption = Annotated[
    list[str] | None,
    typer.Option("--operator", help='operator whose tasks may be joined (its address), or "any"; may be repeated'),
]
TaskArgument = Annotated[int, typer.Argument(min=1, metavar="TASK", help="number of the task")]
ShareOption = Annotated[
    Path | None,
    typer.Option(
        help="also write a signed report of rounded figures into this file, for the task's operator; policy.toml must"
        " allow it (`share_evaluation`)",
        dir_okay=False,
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="seed of the intervals' draws")]
TokensArgument = Annotated[
    int | None, typer.Argument(min=1, metavar="[TOKENS]", help="number of tokens to unstake; at most all staked ones")
]
YesOption = Annotated[bool, typer.Option("--yes", help="answer yes to all questions")]
