"""A finished model for sale: its predictions over HTTP, payments, receipts, and buyers."""
