"""The chain room. Its import restores Python's recursion limit, which py_ecc (a part of eth-account) raises to 100,000.

At 100,000 calls the C stack overflows: nested JSON in a request, an artifact or a Flower message could end the process.
At Python's own 1,000 it raises RecursionError.
"""

import sys

import py_ecc as _py_ecc  # noqa: F401  (first, so that no later import raises the limit)

DEPTH = 1_000
sys.setrecursionlimit(min(sys.getrecursionlimit(), DEPTH))
