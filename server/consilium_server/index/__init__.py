"""Follows the chain, and stores its facts in tables."""
