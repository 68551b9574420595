"""What the indexer has read off the chain, in tables: nothing that the chain and the artifacts could not give again.

Beside it, how jobs went: nothing that would be missed.
"""
