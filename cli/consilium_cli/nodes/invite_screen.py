"""The screen of an operator's invite, before its owner says yes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from consilium_core.visible_text import shown
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consilium_cli.nodes.status import listed

if TYPE_CHECKING:
    from consilium.invites import Invitation


def show_invite(found: Invitation, policy: Mapping[str, Any], chain_url: str | None) -> None:
    """`policy`: the rules that a yes would write. `chain_url`: of the owner's own chain node, if that was asked."""
    invite, console = found.invite, Console(highlight=False, emoji=False)  # fingerprints have :CD:
    book, until = invite.deployment, datetime.datetime.fromtimestamp(invite.expires_at, datetime.UTC)
    named = f", who goes by {invite.name}" if invite.name else ""
    signed = "its contract took this invite's signature" if invite.signed_by_contract else "signed this invite"
    rows = [
        ("operator", f"{invite.operator}{named}: {signed}, and proposed the task"),
        ("chain", f"{book.chain_id}, node {chain_url or invite.chain_url}"),
        ("contracts", f"Tasks {book.tasks}, Staking {book.staking}, token {book.token}"),
        ("artifacts", ", ".join(invite.artifacts)),
        ("SuperLink", f"{', '.join(invite.superlinks.values())}, authority SHA-256 {invite.fingerprint}"),
        ("sponsor", invite.sponsor_url),
        ("reports", invite.report_to),
        ("valid until", f"{until:%Y-%m-%d %H:%M} UTC"),
        (
            "policy",
            "; ".join(f"{name} {listed(rule) if isinstance(rule, list) else rule}" for name, rule in policy.items()),
        ),
    ]
    console.print(f"[bold]Invite to task {invite.shown_tasks}: {escape(found.task.spec.name)}[/bold]")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in rows:
        if words:
            grid.add_row(name, escape(shown(words)))
    console.print(grid)
    console.print("Compare the operator's address with one that you have by another way, such as by telephone.")
