"""The HTTP API over the index."""
