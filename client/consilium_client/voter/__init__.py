"""The voter's node: it scores candidates on held-out rows, and can show that it did."""
