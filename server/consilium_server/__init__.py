"""The server room: aggregator, sponsor, index, jobs and HTTP API."""
