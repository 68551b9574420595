"""The chain room. Importing any of it bounds recursion again, which py_ecc, a part of eth-account, takes off.

At py_ecc's 100,000 calls a C stack is long overflown: whoever could get nested JSON into a process, by a request, a
file of the artifact store or a Flower message, could end it. At Python's own 1,000 there is a RecursionError.
"""

import sys

import py_ecc as _py_ecc  # noqa: F401  (first, so that nobody imports it after this)

DEPTH = 1_000
sys.setrecursionlimit(min(sys.getrecursionlimit(), DEPTH))
