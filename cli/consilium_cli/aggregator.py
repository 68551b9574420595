"""`python -m consilium_cli.aggregator CONFIG`: `consilium server run`, as a worker starts it.

It builds no tree of commands, which takes 9 MB of each process.
"""

from __future__ import annotations

import sys
from functools import partial

import consilium

from consilium_cli.main import run

if __name__ == "__main__":
    run(partial(consilium.run_server, "aggregator", sys.argv[1]))
