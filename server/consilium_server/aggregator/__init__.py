"""The aggregator collects uploads, publishes sums, accuses cheaters and discloses decoys."""
