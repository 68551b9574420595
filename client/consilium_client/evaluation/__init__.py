"""A finished model on labelled rows. The operator's and each node's evaluations are this room's."""
