"""Transactions that one account signs and a sponsor pays for."""
