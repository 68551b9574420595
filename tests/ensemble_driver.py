"""Tasks with parts, of which tests form ensembles."""

from __future__ import annotations

from pathlib import Path

from chain_driver import LocalChain
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.sale_spec import head_of
from voter_driver import TASK, FiledTask

SALE = """
[sale]
server_percent = {server}
operator_percent = 10
trainers_percent = 55
voters_percent = {voters}
"""


def minted(chain: LocalChain, folder: Path, server: int, score: int, text: str = TASK) -> FiledTask:
    """A task whose parts are minted, and whose gain is the score. `server`: its percent of a sale."""
    folder.mkdir(exist_ok=True)
    task = FiledTask(chain, folder, text + SALE.format(server=server, voters=35 - server))
    task.judges, task.voters = chain.staked(Role.VOTER, 1), 1
    task.join(rows=[8]).first_round()
    task.form().commit_all().publish()
    task.draw().judge([[score]])
    assert task.phase is Phase.ENDED
    raw, shares = task.store.get_file(chain.treasury.tasks.params(task.task).spec_hash), chain.treasury.shares
    assert task.spec.sale is not None
    shares.show_terms(task.task, head_of(raw, task.spec), task.spec.sale)
    shares.mint(task.task, 1_000)
    return task
