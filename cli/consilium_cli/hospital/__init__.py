"""`consilium hospital`: the steps from a new home to a node that takes part. Each is shown before it is done."""
