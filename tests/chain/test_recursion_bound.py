"""No process of this project can be ended by nested JSON, in whatever order its libraries are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

NESTED = """
import json, sys
try:
    json.loads("[" * 1_000_000)
except RecursionError:
    print("refused", sys.getrecursionlimit())
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import consilium_chain.rpc.connection",
        "import eth_account, py_ecc.bls, consilium_chain.rpc.connection",
        "import consilium_chain, web3, eth_account",
        "import consilium_server.api.app, consilium_server.flower.internals",
        "import consilium_client.relay.app, consilium_client.hospital.node, consilium_client.voter.node",
    ],
)
def test_nested_json_is_refused_and_does_not_end_the_process(imports: str) -> None:
    ended = subprocess.run([sys.executable, "-c", imports + NESTED], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "refused 1000\n"), ended.stderr[-500:]
