"""The Flower side of a hospital: a relay without torch, keys or data.

SuperNode ── executor ── relay app ── Unix socket ── node. Only the node, another process, has keys and data.
"""
