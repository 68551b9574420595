"""A node's metrics for Prometheus, on this machine alone."""
