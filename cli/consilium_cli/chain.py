"""The commands of `consilium chain`. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium.chain import book_of
from consilium_core import units
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.addresses import checked_address
from consilium_cli.asking import agrees
from consilium_cli.options import AddressBookOption, RpcOption, YesOption

if TYPE_CHECKING:
    from consilium_chain.deploying.plan import Survey

app = typer.Typer(help="A local chain, and the deployment of contracts.", no_args_is_help=True)
local = typer.Typer(help="Runs a local chain with the contracts deployed, until Ctrl-C; `fund` gives from its faucet.")
app.add_typer(local, name="local")


@local.callback(invoke_without_command=True)
def run_local(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port on loopback")] = 8545,
    address_book: Annotated[Path, typer.Option(help="file for the contracts' addresses")] = LOCAL_ADDRESS_BOOK,
) -> None:
    """Runs a local chain with the contracts deployed, until Ctrl-C; `fund` gives from its faucet."""
    if context.invoked_subcommand is not None:
        return
    with consilium.LocalChain(port, address_book) as chain:
        typer.echo(f"chain {chain.chain_id} at {chain.url}, addresses in {address_book}; press Ctrl-C to end it")
        chain.wait()


@local.command("fund")
def fund_account(
    account: Annotated[str, typer.Argument(metavar="ADDRESS", help="account that receives them")],
    tokens: Annotated[int, typer.Option(min=0, help="whole tokens")],
    ether: Annotated[int, typer.Option(min=0, help="whole ether, for gas")] = 10,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Sends an account tokens and ether from the faucet of a local chain. No other chain is accepted."""
    address = checked_address(account, "ADDRESS")
    held = consilium.fund_account(address, tokens, ether, rpc=rpc, address_book=address_book)
    typer.echo(
        f"account {address}\nholds   {units.tokens(held.tokens)} tokens, {units.ether(held.wei)} ether\n"
        "Next: consilium operator propose TASK.toml --keystore FILE --password-file FILE, as an operator;\n"
        "      consilium server run --config FILE, as an aggregator, which stakes its bond itself;\n"
        "      consilium hospital init or consilium voter init, with --invite FILE, as a node"
    )


@app.command("deploy")
def deploy_contracts(
    network: Annotated[str, typer.Option(help="name of a network in the networks file")],
    networks: Annotated[
        Path | None, typer.Option(help="networks file, TOML; by default the one of this program")
    ] = None,
    keystore: Annotated[
        Path | None, typer.Option(help="encrypted key file of the deploying account; not needed on the local chain")
    ] = None,
    password_file: Annotated[Path | None, typer.Option(help="file with the key file's password, mode 600")] = None,
    address_book: Annotated[
        Path | None, typer.Option(help="file for the addresses; by default .consilium/NETWORK.json")
    ] = None,
    verification_dir: Annotated[
        Path | None, typer.Option(help="folder for the files with which block explorers verify the sources")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show the steps and the cost, but send nothing")] = False,
    yes: YesOption = False,
) -> None:
    """Deploys the contracts to a network: shows the cost and asks. If it is interrupted, run it again."""
    book = address_book or book_of(network)
    deployment = consilium.deploy(
        network, networks=networks, keystore=keystore, password_file=password_file, address_book=book,
        verification_dir=verification_dir, dry_run=dry_run, on_survey=lambda survey: _show(network, survey),
        confirm=lambda survey: yes or agrees(f"Deploy to chain {survey.chain_id}?"), on_step=typer.echo,
    )  # fmt: skip
    if deployment is None:
        return
    if verification_dir is not None:
        typer.echo(f"sources for block explorers in {verification_dir}")
    typer.echo(f"deployed and verified on chain {deployment.chain_id}; address book {book}")


def _show(name: str, survey: Survey) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"{name}: chain {survey.chain_id}, as its node at {survey.node} confirms", markup=False)
    console.print(f"deployer {survey.deployer}, {units.ether(survey.balance)} ether")
    table = Table(box=None)
    table.add_column("contract", no_wrap=True)
    for column in (f"code ≤ {survey.runtime_limit:,}", f"init ≤ {survey.init_limit:,}", "gas, at most", "ether now"):
        table.add_column(column, justify="right")
    table.add_column("there")
    for contract in survey.contracts:
        sizes = (f"{contract.runtime_bytes:,}", f"{contract.init_bytes:,}")
        costs = ("", "") if contract.address else (f"{contract.gas:,}", units.ether(contract.gas * survey.fees.now))
        there = f"{contract.address[:6]}…{contract.address[-4:]}" if contract.address else "–"
        table.add_row(contract.name, *sizes, *costs, there)
    costs = ("", "") if survey.wired else (f"{survey.wiring_gas:,}", units.ether(survey.wiring_gas * survey.fees.now))
    table.add_row(survey.wiring, "", "", *costs, "done" if survey.wired else "–")
    console.print(table)
    console.print(
        f"to do: {survey.gas:,} gas, {units.ether(survey.cost)} ether at {survey.fees.now / 10**9:.3f} gwei;"
        f" the account must hold {units.ether(survey.most)}"
    )
