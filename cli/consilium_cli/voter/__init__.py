"""`consilium voter`: from a folder with a key to a node that judges whatever task its owner allows."""
