"""Tables of facts that the indexer read. All of them can be read again from chain and artifacts.

The results of jobs are here, too. They may be deleted.
"""
