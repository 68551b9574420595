"""An account whose key several processes hold: each transaction gets a number of its own, and none is lost."""

from __future__ import annotations

import subprocess
import sys

from chain_driver import LocalChain
from consilium_core.children import child_environment

PROCESSES, TRANSFERS = 3, 8
SENDING = """
import sys
from consilium_chain.rpc.connection import Connection
from eth_account import Account
url, recipient = sys.argv[1:3]
connection = Connection(url, Account.from_key(sys.stdin.readline().strip()))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    connection.transactions.send_ether(recipient, 1)
"""


def test_processes_of_one_account_send_at_once(local_chain: LocalChain) -> None:
    sender, recipient = local_chain.funded(0), local_chain.funded(0)
    before = recipient.connection.ether()
    command = [sys.executable, "-c", SENDING, local_chain.node.url, recipient.address, str(TRANSFERS)]
    processes = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=child_environment(),
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(sender.connection.signer.key.hex() + "\n")
        process.stdin.flush()
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    codes = []
    for process in processes:
        process.communicate(timeout=120)
        codes.append(process.returncode)
    assert codes == [0] * PROCESSES
    assert recipient.connection.ether() - before == PROCESSES * TRANSFERS
