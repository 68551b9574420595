"""The commands of `consilium chain`. Imports nothing heavy at the start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.addresses import checked_address
from consilium_cli.options import AddressBookOption, RpcOption, YesOption

if TYPE_CHECKING:
    from consilium_chain.deploying.networks import Network
    from consilium_chain.deploying.plan import Survey
    from eth_account.signers.local import LocalAccount

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
    from consilium_chain.deploying.address_book import deploy
    from consilium_chain.rpc.connection import Connection
    from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
    from eth_account import Account

    with LocalNode(port, stands=True) as node:
        deployment = deploy(Connection(node.url, Account.from_key(FAUCET_KEY)))
        address_book.parent.mkdir(parents=True, exist_ok=True)
        deployment.write(address_book)
        typer.echo(f"chain {deployment.chain_id} at {node.url}, addresses in {address_book}; press Ctrl-C to end it")
        node.process.wait()


@local.command("fund")
def fund_account(
    account: Annotated[str, typer.Argument(metavar="ADDRESS", help="account that receives them")],
    tokens: Annotated[int, typer.Option(min=0, help="whole tokens")],
    ether: Annotated[int, typer.Option(min=0, help="whole ether, for gas")] = 10,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
) -> None:
    """Sends an account tokens and ether from the faucet of a local chain. No other chain is accepted."""
    from consilium_chain.deploying import faucet
    from consilium_chain.deploying.address_book import Deployment
    from consilium_core import units

    address = checked_address(account, "ADDRESS")
    giver, unit = faucet.faucet_ledger(rpc, Deployment.read(address_book)), units.WEI_PER_ETHER
    held = faucet.fund(giver, address, tokens * unit, ether * unit)
    typer.echo(
        f"account {address}\nholds   {units.tokens(held.tokens)} tokens, {units.ether(held.wei)} ether\n"
        "Next: consilium operator propose TASK.toml --keystore FILE --password-file FILE, as an operator;\n"
        "      consilium server run --config FILE, as an aggregator, which stakes its bond itself;\n"
        "      consilium hospital join or consilium voter register, as a node"
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
    from consilium_chain.deploying.journal import locked
    from consilium_chain.deploying.networks import pick_network, read_networks
    from consilium_chain.deploying.node import DeployNode
    from consilium_chain.deploying.run import Deploying, write_sources

    terms = pick_network(read_networks(networks), network)
    book = address_book or Path(".consilium") / f"{network}.json"
    node = DeployNode(terms.endpoint(), _account(terms, keystore, password_file))
    with locked(book.parent):
        deploying = Deploying.begin(node, network, terms, book)
        survey = deploying.survey()
        _show(network, node.shown_url, survey)
        survey.check()
        if dry_run:
            return
        _confirm(survey, yes or terms.is_local)
        deployment = deploying.carry_out(typer.echo)
        if verification_dir is not None:
            write_sources(verification_dir, deploying)
            typer.echo(f"sources for block explorers in {verification_dir}")
        typer.echo(f"deployed and verified on chain {deployment.chain_id}; address book {book}")


def _account(network: Network, keystore: Path | None, password_file: Path | None) -> LocalAccount:
    from consilium_chain.keystore import open_keystore
    from consilium_chain.rpc.local_node import FAUCET_KEY
    from consilium_core.errors import KeystoreError
    from eth_account import Account

    if keystore is not None and password_file is not None:
        return open_keystore(keystore, password_file)
    if network.is_local and keystore is None and password_file is None:
        account: LocalAccount = Account.from_key(FAUCET_KEY)
        return account
    raise KeystoreError("no account to deploy from: pass both --keystore and --password-file")


def _confirm(survey: Survey, agreed: bool) -> None:
    from consilium_chain.errors import DeployFailed

    if agreed or survey.gas == 0:
        return
    if not sys.stdin.isatty() or not typer.confirm(f"Deploy to chain {survey.chain_id}?"):
        raise DeployFailed("NotConfirmed")


def _show(name: str, shown_url: str, survey: Survey) -> None:
    from consilium_chain.deploying.plan import INIT_LIMIT, RUNTIME_LIMIT, WIRING, WIRING_GAS
    from consilium_core.units import ether
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"{name}: chain {survey.chain_id}, as its node at {shown_url} confirms", markup=False)
    console.print(f"deployer {survey.deployer}, {ether(survey.balance)} ether")
    table = Table(box=None)
    table.add_column("contract", no_wrap=True)
    for column in (f"code ≤ {RUNTIME_LIMIT:,}", f"init ≤ {INIT_LIMIT:,}", "gas, at most", "ether now"):
        table.add_column(column, justify="right")
    table.add_column("there")
    for contract in survey.contracts:
        sizes = (f"{contract.runtime_bytes:,}", f"{contract.init_bytes:,}")
        costs = ("", "") if contract.address else (f"{contract.gas:,}", ether(contract.gas * survey.fees.now))
        there = f"{contract.address[:6]}…{contract.address[-4:]}" if contract.address else "–"
        table.add_row(contract.name, *sizes, *costs, there)
    costs = ("", "") if survey.wired else (f"{WIRING_GAS:,}", ether(WIRING_GAS * survey.fees.now))
    table.add_row(WIRING, "", "", *costs, "done" if survey.wired else "–")
    console.print(table)
    console.print(
        f"to do: {survey.gas:,} gas, {ether(survey.cost)} ether at {survey.fees.now / 10**9:.3f} gwei;"
        f" the account must hold {ether(survey.most)}"
    )
