"""The server's only use of Flower's private API (flwr 1.41.0)."""
