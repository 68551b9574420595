"""Follows the chain, and keeps what it said in tables."""
