"""The hospital's node: it trains on its own rows, commits, masks and uploads."""
