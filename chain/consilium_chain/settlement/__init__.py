"""Rewards and slashes of a round, as the contracts compute them."""
