"""A round: its state machine, its public sums, its disputes, and its randomness."""
