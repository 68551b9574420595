"""Access to a chain node: transactions, reads, events, and reverts by name."""
