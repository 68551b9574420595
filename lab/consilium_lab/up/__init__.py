"""`consilium up`: the whole network on one machine, for trying things."""
