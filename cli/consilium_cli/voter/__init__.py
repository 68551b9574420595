"""`consilium voter`: from a folder with a key to a node that judges the tasks that its owner allows."""
