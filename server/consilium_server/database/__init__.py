"""Tables of the facts that the indexer read: chain and artifacts could give all of them again.

They also record how jobs went, which nobody would miss.
"""
