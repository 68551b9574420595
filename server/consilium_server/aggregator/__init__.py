"""The aggregator: it collects uploads, publishes sums, and opens disputes and decoys."""
