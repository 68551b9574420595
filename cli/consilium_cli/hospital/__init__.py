"""`consilium hospital`: from a folder with a key to a node that takes part, step by step, each of them shown first."""
