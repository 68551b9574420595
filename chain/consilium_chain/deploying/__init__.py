"""Deploying to a named network: what it takes, step by step so that it can be cut off, and proof that it is right.

Knows the rest of this room; `deployment` (the address book) does not know it.
"""
